// safetensors files with strides, storages and aliases.
#include "core/load/safetensors.h"

#include "tests/fuzz/targets/input_file.h"

using namespace partita;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const fuzz::InputFile input(data, size);
  (void)read_safetensors(input.path());
  return 0;
}

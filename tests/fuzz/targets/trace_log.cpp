// TORCH_TRACE logs, text logs of TORCH_LOGS, and the code in them.
#include "core/load/output_code.h"
#include "tests/fuzz/targets/loaded.h"

using namespace partita;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (is_trace_log(text, "")) fuzz::open_all(load_trace_log, data, size);
  if (is_text_log(text, "")) fuzz::open_all(load_text_log, data, size);
  read_output_code(text);
  return 0;
}

// Pickles: by themselves, as graph_dumper's .input, and with the tensors of a torch.save file.
#include "core/load/pickle.h"

using namespace partita;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (auto metas = read_dumped_inputs(bytes)) (void)write_dumped_inputs(*metas);
  auto pickle = read_pickle(bytes, [](const std::string&) { return Storage::allocate(4096, true); });
  if (!pickle) return 0;
  (void)describe(*pickle);
  (void)to_value(*pickle->root);
  (void)pytree_leaves(*pickle->root);
  return 0;
}

// FX text: the first module, and what print() promises of it.
#include "core/load/fx_text.h"

#include "core/ir/print.h"
#include "core/ir/verify.h"
#include "core/load/runnable.h"

using namespace partita;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)find_fx_graphs(text);
  (void)read_load_args(text);
  auto graph = parse_fx_text(text);
  if (!graph) return 0;
  CHECK(verify(**graph).empty(), "a loaded graph is broken");
  const std::string printed = print(**graph);
  auto again = parse_fx_text(printed);
  CHECK(again, "what was printed cannot be read:\n" + printed);
  const std::string second = print(**again);
  CHECK(second == printed, "what was printed reads as another graph:\n" + printed + "\n" + second);
  (void)plain_code(**graph);
  return 0;
}

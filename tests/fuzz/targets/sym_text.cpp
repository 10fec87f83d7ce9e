// Symbolic expressions and annotations: f32[s0*(s1 + 3), 2**5][1, 1]cpu.
#include "core/base/check.h"
#include "core/ir/meta.h"

using namespace partita;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (auto meta = parse_annotation(text)) (void)annotation(*meta);
  auto e = SymExpr::parse(text);
  if (!e) return 0;
  (void)e->evaluate([](const std::string& name) { return static_cast<std::int64_t>(name.size()); });
  const std::string printed = e->str();
  CHECK(SymExpr::parse(printed), "what was printed cannot be read: " + printed);
  return 0;
}

#include "codegen/size_compilation.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "core/sym/float_symbol.h"

namespace partita {
namespace {

using Json = nlohmann::ordered_json;
using Kind = SizeCompilation::Kind;

constexpr std::string_view kind_names[] = {"symbolic", "fixed", "interpreted"};

std::string assignments(const std::map<std::string, std::int64_t>& sizes, const Guard* of = nullptr) {
  std::vector<std::string> out;
  const std::vector<std::string> symbols = of ? of->condition.symbols() : std::vector<std::string>();
  for (const auto& [symbol, value] : sizes)
    if (!of || std::ranges::find(symbols, symbol) != symbols.end())
      out.push_back(fmt::format("{} = {}", symbol, symbol_value(symbol, value).str()));
  return fmt::format("{}", fmt::join(out, ", "));
}

Json to_json(const Guard& guard) {
  return {{"guard", guard.condition.str()}, {"reason", guard.reason}};
}

}  // namespace

std::string advice_for(const Guard& guard, const Graph& graph) {
  const std::vector<std::string> symbols = guard.condition.symbols();
  std::vector<std::string> sizes, marks;
  for (const std::string& symbol : symbols) {
    const auto place = [&]() -> bool {
      for (const Node* node : graph.placeholders()) {
        const TensorMeta* t = node->meta.tensor();
        for (std::size_t d = 0; t && d < t->sizes.size(); ++d)
          if (!t->sizes[d].is_int() && t->sizes[d].kind() == SymKind::Symbol && t->sizes[d].name() == symbol) {
            sizes.push_back(fmt::format("size {} of {} ({})", d, node->name(), symbol));
            marks.push_back(fmt::format("{}, {}", node->name(), d));
            return true;
          }
      }
      return false;
    };
    if (!place()) sizes.push_back(symbol);
  }
  const std::string which = fmt::format("{}", fmt::join(sizes, " and "));
  if (guard.condition.kind() == SymKind::Eq && symbols.size() == 1 && marks.size() == 1)
    return fmt::format("mark {} dynamic, torch._dynamo.mark_dynamic({}), and change the line that makes a number of it",
                       which, marks[0]);
  if (guard.condition.kind() == SymKind::Eq)
    return fmt::format("keep {} so, or change the line that asks for it", which);
  if (marks.size() == 1)
    return fmt::format(
        "mark {} dynamic within a range that decides it, torch._dynamo.mark_dynamic({}, min=..., "
        "max=...)",
        which, marks[0]);
  return fmt::format("keep {} on one side of it", which);
}

std::string text(const SizeCompilation& c) {
  std::string out = fmt::format("{}: {} for {}", c.graph,
                                c.kind == Kind::Interpreted ? "interpreted" : fmt::format("compilation {}", c.number),
                                assignments(c.sizes));
  if (c.kind != Kind::Symbolic)
    out += fmt::format(" only: {}\n", c.why_not);
  else
    out += fmt::format(" and all sizes from 2 on{}\n", c.guards.empty() ? "" : ", if");
  for (const Guard& g : c.guards)
    if (c.kind == Kind::Symbolic) out += fmt::format("  {}    {}\n", g.condition.str(), g.reason);
  for (const SizeCompilation::Tried& tried : c.tried)
    for (const SizeCompilation::Broken& b : tried.broken)
      out += fmt::format("  compilation {}: guard `{}` failed: {}    {}; {}\n", tried.number, b.guard.condition.str(),
                         assignments(c.sizes, &b.guard), b.guard.reason, b.advice);
  return out;
}

std::string json(const SizeCompilation& c) {
  Json guards = Json::array(), tried = Json::array();
  for (const Guard& g : c.guards) guards.push_back(to_json(g));
  for (const SizeCompilation::Tried& t : c.tried) {
    Json broken = Json::array();
    for (const SizeCompilation::Broken& b : t.broken) {
      broken.push_back(to_json(b.guard));
      broken.back()["failed"] = assignments(c.sizes, &b.guard);
      broken.back()["advice"] = b.advice;
    }
    tried.push_back({{"compilation", t.number}, {"broken", broken}});
  }
  return Json{{"graph", c.graph},     {"compilation", c.number}, {"kind", kind_names[static_cast<std::size_t>(c.kind)]},
              {"sizes", c.sizes},     {"fixed", c.fixed},        {"guards", guards},
              {"why_not", c.why_not}, {"tried", tried}}
      .dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace partita

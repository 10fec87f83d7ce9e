#include "app/tasks/symbols_json.h"

#include <nlohmann/json.hpp>

namespace partita {

using Json = nlohmann::ordered_json;

void add_symbols(Json& out, const ShapeEnv& shapes) {
  const std::map<std::string, std::int64_t> hints = shapes.hints();
  const std::map<std::string, SymRange> ranges = shapes.ranges();
  Json symbols = Json::object();
  for (const auto& [name, hint] : hints) symbols[name]["hint"] = hint;
  for (const auto& [name, range] : ranges) {
    symbols[name]["low"] = range.low == INT64_MIN ? Json(nullptr) : Json(range.low);
    symbols[name]["high"] = range.high == SymRange().high ? Json(nullptr) : Json(range.high);
  }
  Json guards = Json::array();
  for (const Guard& g : shapes.guards()) guards.push_back({{"condition", g.condition.str()}, {"reason", g.reason}});
  if (!symbols.empty()) out["symbols"] = std::move(symbols);
  if (!guards.empty()) out["guards"] = std::move(guards);
}

}  // namespace partita

#include "app/tasks/config_json.h"

namespace partita {

nlohmann::ordered_json config_value(const ConfigRow& row, const Config& config) {
  return std::visit([&](auto member) -> nlohmann::ordered_json { return config.*member; }, row.value);
}

nlohmann::ordered_json config_json(const Config& config, ConfigPart part) {
  nlohmann::ordered_json out = nlohmann::ordered_json::object();
  for (const ConfigRow* row : config_part(config, part)) out[row->name] = config_value(*row, config);
  return out;
}

}  // namespace partita

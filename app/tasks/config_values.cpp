#include "app/tasks/config_values.h"

namespace partita {

nlohmann::ordered_json config_value(const ConfigRow& row, const Config& config) {
  return std::visit([&](auto member) -> nlohmann::ordered_json { return config.*member; }, row.value);
}

nlohmann::ordered_json config_json(const Config& config, ConfigPart part) {
  nlohmann::ordered_json out = nlohmann::ordered_json::object();
  for (const ConfigRow* row : config_part(config, part)) out[row->name] = config_value(*row, config);
  return out;
}

std::vector<std::string> with_configuration(std::vector<std::string> words) {
  for (std::string& word : config_arguments(config(), ConfigPart::Given)) words.push_back(std::move(word));
  return words;
}

}  // namespace partita

#pragma once
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/base/config.h"

namespace partita {

/// A row's value with its JSON type: {"threads": 2}. Sizes and counts are numbers.
nlohmann::ordered_json config_json(const Config& config, ConfigPart part);
nlohmann::ordered_json config_value(const ConfigRow& row, const Config& config);

/// A command of this program, with what its configuration was given.
std::vector<std::string> with_configuration(std::vector<std::string> words);

}  // namespace partita

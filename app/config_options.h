#pragma once
// The configuration on the command line.
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "core/base/config.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace partita {

/// Declares --config, --config-file, and the program's own options of rows: --memory-limit, --verify, ...
void add_config_options(CLI::App& program);
/// Declares an option of a verb (or the program) that sets a row, as --config NAME=VALUE does.
CLI::Option* add_config_option(CLI::App& app, const std::string& option, std::string_view row);
/// Sets the process's configuration once the command line is parsed: the defaults, then the user's file, --config-file,
/// --config, and the options of rows. A later one wins.
Status apply_config_options();

/// A row's value with its JSON type: {"threads": 2}. Sizes and counts are numbers.
nlohmann::ordered_json config_json(const Config& config, ConfigPart part);
nlohmann::ordered_json config_value(const ConfigRow& row, const Config& config);

}  // namespace partita

#pragma once
// The configuration on the command line.
#include <string>
#include <string_view>

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

}  // namespace partita

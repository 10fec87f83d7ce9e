#include "app/config_options.h"

#include <filesystem>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/base/check.h"
#include "core/passes/run_passes.h"

namespace partita {
namespace {

/// What the command line says, in the order in which it takes effect.
struct Asked {
  std::vector<std::string> files;
  std::vector<std::string> patches;  ///< NAME=VALUE
  ConfigPatches options;
};
Asked& asked() {
  static Asked words;
  return words;
}

const ConfigRow& row_named(std::string_view name) {
  const auto row = find_config_row(name);
  CHECK(row, "an option sets a row that the configuration does not have");
  return **row;
}

}  // namespace

CLI::Option* add_config_option(CLI::App& app, const std::string& option, std::string_view name) {
  const ConfigRow& row = row_named(name);
  const auto ask = [name](const std::string& value) { asked().options.emplace_back(name, value); };
  const std::string help(row.help);
  if (row.type == ConfigType::Flag) return app.add_flag_callback(option, [ask] { ask("true"); }, help);
  if (row.type == ConfigType::Names)
    return app.add_option_function<std::vector<std::string>>(
        option, [ask](const std::vector<std::string>& names) { ask(fmt::format("{}", fmt::join(names, ","))); }, help);
  CLI::Option* added = app.add_option_function<std::string>(option, ask, help)->default_str(row.text(Config()));
  if (row.type == ConfigType::Choice)
    added->check(CLI::IsMember(CLI::detail::split(std::string(row.allowed.choices), '|')));
  return added;
}

void add_config_options(CLI::App& program) {
  program
      .add_option("--config", asked().patches,
                  "NAME=VALUE: sets a row of the configuration, which `partita config` lists; may stand several times")
      ->expected(1)
      ->take_all();
  program.add_option("--config-file", asked().files, "sets what the file says, a NAME = VALUE in a line")
      ->expected(1)
      ->take_all();
  add_config_option(program, "--memory-limit", "memory_limit");
  add_config_option(program, "--graph-limit", "graph_limit");
  add_config_option(program, "--loop-limit", "loop_limit");
  add_config_option(program, "--verify", "verify");
  add_config_option(program, "--python", "python");
  add_config_option(program, "--python-import", "python_import")->allow_extra_args(false);
  add_config_option(program, "--operators", "operators");
  add_config_option(program, "--trace", "trace")->check([](const std::string& folder) {
    return folder == "-" ? "standard output is no folder" : std::string();
  });
}

Status apply_config_options() {
  Config out;
  const std::string own = user_config_file();
  std::error_code ignored;
  if (!own.empty() && std::filesystem::exists(own, ignored)) TRY_DO(read_config_file(out, own));
  for (const std::string& file : asked().files) TRY_DO(read_config_file(out, file));
  for (const std::string& patch : asked().patches) {
    const std::size_t equals = patch.find('=');
    if (equals == std::string::npos)
      return input_error("config.syntax", fmt::format("--config takes NAME=VALUE, and got {}", patch));
    TRY_DO(set_value(out, patch.substr(0, equals), patch.substr(equals + 1)));
  }
  for (const auto& [name, value] : asked().options) TRY_DO(set_value(out, name, value));
  set_config(out);
  return check_pass_names(configured_disabled());
}

}  // namespace partita

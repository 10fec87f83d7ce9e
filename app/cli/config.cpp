#include "core/base/config.h"

#include <fmt/format.h>

#include "app/cli/command.h"
#include "app/config_options.h"
#include "app/tasks/config_values.h"

namespace partita::cli {
namespace {

struct ConfigVerbOptions {
  std::string name;
  bool changed = false, json = false;
};

nlohmann::ordered_json as_json(const ConfigRow& row) {
  static constexpr std::string_view uses[] = {"code", "run", "machine"};
  return {{"name", row.name},
          {"type", name_of(row.type)},
          {"value", config_value(row, config())},
          {"default", config_value(row, Config())},
          {"changed", row.differs(config())},
          {"in_key", row.use == ConfigUse::Code},
          {"use", uses[static_cast<std::size_t>(row.use)]},
          {"takes", row.takes()},
          {"help", row.help}};
}

std::string shown(const std::string& value) {
  return value.empty() ? "(none)" : value;
}

void print_row(const ConfigRow& row) {
  fmt::print("{} {:<29}{:<12}{}\n", row.differs(config()) ? '*' : ' ', row.name, shown(row.text(config())), row.help);
}

void print_whole(const ConfigRow& row) {
  fmt::print("{}: {}\nvalue    {}\ndefault  {}\ntakes    {}\nkey      {}\n", row.name, row.help,
             shown(row.text(config())), shown(row.text(Config())), row.takes(),
             row.use == ConfigUse::Code ? "enters the key of stored code" : "does not enter the key of stored code");
}

Result<int> run(const ConfigVerbOptions& o) {
  std::vector<const ConfigRow*> rows = config_part(config(), o.changed ? ConfigPart::Differs : ConfigPart::All);
  if (!o.name.empty()) {
    TRY(const ConfigRow* row, find_config_row(o.name));
    rows = {row};
  }
  nlohmann::ordered_json document = nlohmann::ordered_json::array();
  for (const ConfigRow* row : rows) {
    if (o.json)
      document.push_back(as_json(*row));
    else if (!o.name.empty())
      print_whole(*row);
    else
      print_row(*row);
  }
  if (o.json) fmt::print("{}\n", document.dump(1));
  return 0;
}

}  // namespace

extern const Command config_command = {"config", "The configuration: what may be chosen, and what is",
                                       [](CLI::App& app) -> Action {
                                         auto o = std::make_shared<ConfigVerbOptions>();
                                         app.add_option("name", o->name, "the row to show; all when not given");
                                         app.add_flag("--changed", o->changed, "only what is not at its default");
                                         app.add_flag("--json", o->json, "one JSON document");
                                         return [o] { return run(*o); };
                                       }};

}  // namespace partita::cli

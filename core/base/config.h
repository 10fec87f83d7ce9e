#pragma once
// The configuration: what may be chosen about how Partita works, in one typed table (config.def). Options of the
// command line are other ways of setting the same rows; option structs take their defaults from it.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/base/result.h"

namespace partita {

enum class ConfigType : unsigned char { Flag, Integer, Number, Size, Count, Choice, Names, Text };
std::string_view name_of(ConfigType type);  ///< "whole number"

/// What a row has to do with stored code, and whether it may be handed on; config.def explains them.
enum class ConfigUse : unsigned char { Code, Run, Machine };

/// How the rows' types are held.
namespace config_type {
using Flag = bool;
using Integer = int;
using Number = double;
using Size = std::size_t;
using Count = std::size_t;
using Choice = std::string;
using Names = std::vector<std::string>;
using Text = std::string;
}  // namespace config_type

bool verified_by_default();  ///< in debug builds, and if the environment has PARTITA_VERIFY=1

/// A value for every row.
struct Config {
#define CONFIG(name, type, initial, ...) config_type::type name = initial;
#include "core/base/config.def"
#undef CONFIG
  std::uint64_t given = 0;  ///< bit i: somebody set row i, be it to its default
};

/// What is known of a row.
struct ConfigRow {
  struct Allowed {
    double least = 0, most = 1e300;  ///< of integers and numbers
    std::string_view choices = {};   ///< of a Choice: "min-cut|default"
    std::string_view refusal = {};   ///< what PyTorch says of other values, with {} for the value; empty: our words
  };
  std::string_view name, help;
  ConfigType type;
  ConfigUse use;
  std::variant<bool Config::*, int Config::*, double Config::*, std::size_t Config::*, std::string Config::*,
               std::vector<std::string> Config::*>
      value;
  Allowed allowed;

  std::string text(const Config& config) const;  ///< the value, as set_value() takes it
  std::string takes() const;                     ///< "a whole number from 1 to 1024"
  bool differs(const Config& config) const;      ///< from the default
  bool given(const Config& config) const;        ///< somebody set it
};
/// config.def, in order.
std::span<const ConfigRow> config_rows();
/// Error config.unknown names the nearest row.
Result<const ConfigRow*> find_config_row(std::string_view name);

/// The configuration that holds on this thread: that of the innermost ConfigScope, else the process's.
const Config& config();
/// Changes the process's. References from config() stay valid.
void set_config(const Config& config);

/// Patches: names and the texts of their values.
using ConfigPatches = std::vector<std::pair<std::string, std::string>>;
/// A copy of a configuration with some values replaced; the configuration itself stays (PyTorch's
/// get_patched_config_dict). Errors config.unknown and config.value, which says what is allowed.
Result<Config> patched_config(const ConfigPatches& patches, const Config& from = config());
Status set_value(Config& config, std::string_view name, std::string_view text);

/// While it lives, the configuration of this thread is another one: patches for one call. Threads that the call starts
/// and work that is left for later have what option structs took from it.
class ConfigScope {
 public:
  explicit ConfigScope(Config config);
  ~ConfigScope();
  ConfigScope(const ConfigScope&) = delete;
  ConfigScope& operator=(const ConfigScope&) = delete;

 private:
  Config own_;
  const Config* outer_;
};

/// The rows that enter the key of stored code, with their values.
std::string code_key(const Config& config);

enum class ConfigPart : unsigned char {
  All,
  Given,    ///< what somebody set
  Differs,  ///< what is not at its default, less what is of this machine: for others to read
};
/// The rows of that part, in the table's order.
std::vector<const ConfigRow*> config_part(const Config& config, ConfigPart part);
/// The rows as a file has them: "name = value" lines. A line that begins with # is a comment.
std::string config_text(const Config& config, ConfigPart part);
/// The same as options of the command line: {"--config", "threads=2"}, and as text for a shell: " --config threads=2".
std::vector<std::string> config_arguments(const Config& config, ConfigPart part);
std::string config_words(const Config& config, ConfigPart part);
/// Sets what the text says. Errors config.syntax, config.unknown, config.value with file and line.
Status read_config_text(Config& config, std::string_view text, const std::string& file);
Status read_config_file(Config& config, const std::string& file);
/// $XDG_CONFIG_HOME/partita/config, else ~/.config/partita/config; empty when neither is an absolute path.
std::string user_config_file();

}  // namespace partita

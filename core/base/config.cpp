// Values of config.def's rows as text and back, by type and unit; the configuration of the process and of a thread's
// scopes; and its forms as a file, as words of a command line and as a part of keys.
#include "core/base/config.h"

#include <algorithm>
#include <atomic>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <mutex>
#include <numeric>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/base/text.h"
#include "core/base/user_folder.h"

namespace partita {
namespace {

constexpr ConfigRow table[] = {
#define CONFIG(name, type, initial, use, help, ...) \
  {#name, help, ConfigType::type, ConfigUse::use, &Config::name, {__VA_ARGS__}},
#include "core/base/config.def"
#undef CONFIG
};
static_assert(std::size(table) <= 64, "Config::given has a bit for each row");

thread_local const Config* scoped = nullptr;
constinit std::atomic<const Config*> of_process{nullptr};

const Config& defaults() {
  static const Config initial;
  return initial;
}

std::uint64_t bit_of(const ConfigRow& row) {
  return std::uint64_t{1} << (&row - table);
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    if (const std::string_view part = trimmed(text.substr(0, end)); !part.empty()) parts.emplace_back(part);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0]++;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t above = row[j + 1];
      row[j + 1] = std::min({above + 1, row[j] + 1, diagonal + (a[i] != b[j])});
      diagonal = above;
    }
  }
  return row.back();
}

struct Unit {
  std::string_view name;
  std::size_t factor;
};
constexpr Unit sizes[] = {{"TiB", std::size_t{1} << 40},
                          {"GiB", std::size_t{1} << 30},
                          {"MiB", std::size_t{1} << 20},
                          {"KiB", std::size_t{1} << 10},
                          {"tb", std::size_t{1} << 40},
                          {"gb", std::size_t{1} << 30},
                          {"mb", std::size_t{1} << 20},
                          {"kb", std::size_t{1} << 10},
                          {"t", std::size_t{1} << 40},
                          {"g", std::size_t{1} << 30},
                          {"m", std::size_t{1} << 20},
                          {"k", std::size_t{1} << 10},
                          {"b", 1},
                          {"", 1}};
constexpr Unit counts[] = {{"m", 1'000'000}, {"k", 1'000}, {"", 1}};

std::span<const Unit> units_of(ConfigType type) {
  return type == ConfigType::Size ? std::span<const Unit>(sizes) : std::span<const Unit>(counts);
}

/// The whole text as a number.
bool parse(std::string_view text, auto& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size();
}

bool parse_amount(std::string_view text, std::span<const Unit> units, std::size_t& out) {
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const std::string_view unit = trimmed(text.substr(digits));
  const auto same_letter = [](unsigned char a, unsigned char b) { return std::tolower(a) == std::tolower(b); };
  const auto it =
      std::ranges::find_if(units, [&](const Unit& u) { return std::ranges::equal(u.name, unit, same_letter); });
  return it != units.end() && parse(text.substr(0, digits), out) && !__builtin_mul_overflow(out, it->factor, &out) &&
         out <= std::numeric_limits<std::int64_t>::max();
}

std::string amount_text(std::size_t amount, std::span<const Unit> units) {
  const auto it = std::ranges::find_if(units, [&](const Unit& u) { return amount != 0 && amount % u.factor == 0; });
  const bool plain = it == units.end() || it->factor == 1;
  return plain ? std::to_string(amount) : fmt::format("{}{}", amount / it->factor, it->name);
}

/// Sets the row's value; false if the text is none.
bool assign(const ConfigRow& row, Config& config, std::string_view text) {
  const auto in_range = [&](double number) { return number >= row.allowed.least && number <= row.allowed.most; };
  switch (row.type) {
    case ConfigType::Flag: {
      const bool on = text == "true" || text == "1";
      config.*std::get<bool Config::*>(row.value) = on;
      return on || text == "false" || text == "0";
    }
    case ConfigType::Integer: {
      int& value = config.*std::get<int Config::*>(row.value);
      return parse(text, value) && in_range(value);
    }
    case ConfigType::Number: {
      double& value = config.*std::get<double Config::*>(row.value);
      return parse(text, value) && in_range(value);
    }
    case ConfigType::Size:
    case ConfigType::Count:
      return parse_amount(text, units_of(row.type), config.*std::get<std::size_t Config::*>(row.value));
    case ConfigType::Choice: {
      config.*std::get<std::string Config::*>(row.value) = text;
      return std::ranges::count(split(row.allowed.choices, '|'), text) == 1;
    }
    case ConfigType::Names:
      config.*std::get<std::vector<std::string> Config::*>(row.value) = split(text, ',');
      return true;
    case ConfigType::Text:
      config.*std::get<std::string Config::*>(row.value) = text;
      return text.find('\n') == std::string_view::npos;
  }
  return false;
}

}  // namespace

std::string_view name_of(ConfigType type) {
  static constexpr std::string_view names[] = {"flag",  "whole number", "number",        "size",
                                               "count", "choice",       "list of names", "text"};
  return names[static_cast<std::size_t>(type)];
}

std::string ConfigRow::text(const Config& config) const {
  return std::visit(
      [&](auto member) -> std::string {
        const auto& held = config.*member;
        using T = std::decay_t<decltype(held)>;
        if constexpr (std::is_same_v<T, std::size_t>)
          return amount_text(held, units_of(type));
        else if constexpr (std::is_same_v<T, std::vector<std::string>>)
          return fmt::format("{}", fmt::join(held, ","));
        else
          return fmt::format("{}", held);
      },
      value);
}

std::string ConfigRow::takes() const {
  const auto range = [&](std::string_view what) {
    if (allowed.most >= 1e300) return fmt::format("{} of at least {}", what, allowed.least);
    return fmt::format("{} from {} to {}", what, allowed.least, allowed.most);
  };
  switch (type) {
    case ConfigType::Flag:
      return "true or false";
    case ConfigType::Integer:
      return range("a whole number");
    case ConfigType::Number:
      return range("a number");
    case ConfigType::Size:
      return "bytes, with K, M, G or T as 4M or 2GiB";
    case ConfigType::Count:
      return "a whole number, with k or m as 10k";
    case ConfigType::Choice:
      return fmt::format("{}", fmt::join(split(allowed.choices, '|'), ", "));
    case ConfigType::Names:
      return "names between commas";
    case ConfigType::Text:
      return "text in one line";
  }
  return {};
}

bool ConfigRow::differs(const Config& config) const {
  return text(config) != text(defaults());
}

bool ConfigRow::given(const Config& config) const {
  return (config.given & bit_of(*this)) != 0;
}

std::span<const ConfigRow> config_rows() {
  return table;
}

Result<const ConfigRow*> find_config_row(std::string_view name) {
  const auto it = std::ranges::find(table, name, &ConfigRow::name);
  if (it != std::end(table)) return it;
  const auto near = std::ranges::min_element(
      table, {}, [&](const ConfigRow& row) { return edit_distance(name.substr(0, 100), row.name); });
  return input_error("config.unknown", fmt::format("the configuration has no {}; the nearest name is {}, and `partita "
                                                   "config` lists all",
                                                   name, near->name));
}

const Config& config() {
  if (scoped) return *scoped;
  const Config* own = of_process.load(std::memory_order_acquire);
  return own ? *own : defaults();
}

void set_config(const Config& config) {
  // Earlier ones are kept, because other threads may read them.
  static std::mutex mutex;
  static auto* const kept = new std::vector<std::unique_ptr<const Config>>;
  const std::lock_guard lock(mutex);
  kept->push_back(std::make_unique<const Config>(config));
  of_process.store(kept->back().get(), std::memory_order_release);
}

Status set_value(Config& config, std::string_view name, std::string_view text) {
  TRY(const ConfigRow* row, find_config_row(name));
  Config changed = config;
  if (!assign(*row, changed, trimmed(text)))
    return input_error("config.value", row->allowed.refusal.empty()
                                           ? fmt::format("{} takes {}, and got '{}'", name, row->takes(), text)
                                           : fmt::format(fmt::runtime(row->allowed.refusal), text));
  changed.given |= bit_of(*row);
  config = std::move(changed);
  return {};
}

Result<Config> patched_config(const ConfigPatches& patches, const Config& from) {
  Config out = from;
  for (const auto& [name, text] : patches) TRY_DO(set_value(out, name, text));
  return out;
}

ConfigScope::ConfigScope(Config config) : own_(std::move(config)), outer_(scoped) {
  scoped = &own_;
}

ConfigScope::~ConfigScope() {
  scoped = outer_;
}

std::string code_key(const Config& config) {
  std::string key;
  for (const ConfigRow& row : table)
    if (row.use == ConfigUse::Code) key += fmt::format("{}={}\n", row.name, row.text(config));
  return key;
}

std::vector<const ConfigRow*> config_part(const Config& config, ConfigPart part) {
  std::vector<const ConfigRow*> rows;
  for (const ConfigRow& row : table)
    if (part == ConfigPart::All || (part == ConfigPart::Given && row.given(config)) ||
        (part == ConfigPart::Differs && row.use != ConfigUse::Machine && row.differs(config)))
      rows.push_back(&row);
  return rows;
}

std::string config_text(const Config& config, ConfigPart part) {
  std::string text;
  for (const ConfigRow* row : config_part(config, part)) text += fmt::format("{} = {}\n", row->name, row->text(config));
  return text;
}

std::vector<std::string> config_arguments(const Config& config, ConfigPart part) {
  std::vector<std::string> words;
  for (const ConfigRow* row : config_part(config, part)) {
    words.emplace_back("--config");
    words.push_back(fmt::format("{}={}", row->name, row->text(config)));
  }
  return words;
}

std::string config_words(const Config& config, ConfigPart part) {
  std::string text;
  for (const std::string& word : config_arguments(config, part)) text += " " + shell_word(word);
  return text;
}

Status read_config_text(Config& config, std::string_view text, const std::string& file) {
  int line = 0;
  for (std::string_view words : lines_of(text)) {
    const Where where{.file = file, .line = ++line};
    words = trimmed(words);
    if (words.empty() || words.front() == '#') continue;
    const std::size_t equals = words.find('=');
    if (equals == std::string_view::npos)
      return input_error("config.syntax", "a line of a configuration is NAME = VALUE", where);
    if (Status set = set_value(config, trimmed(words.substr(0, equals)), words.substr(equals + 1)); !set) {
      Diagnostic error = std::move(set).error();
      error.where = where;
      return error;
    }
  }
  return {};
}

Status read_config_file(Config& config, const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream text;
  if (in) text << in.rdbuf();
  if (!in || std::filesystem::is_directory(file))
    return input_error("config.file", "the configuration cannot be read", Where{.file = file});
  return read_config_text(config, text.str(), file);
}

bool verified_by_default() {
  const char* text = std::getenv("PARTITA_VERIFY");
#ifdef NDEBUG
  return text && std::string_view(text) == "1";
#else
  return !text || std::string_view(text) != "0";
#endif
}

std::string user_config_file() {
  const std::string folder = user_folder("XDG_CONFIG_HOME", ".config");
  return folder.empty() ? std::string() : (std::filesystem::path(folder) / "partita" / "config").string();
}

}  // namespace partita

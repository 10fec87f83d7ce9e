#include "core/load/fx_lines.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/base/python_text.h"
#include "core/base/text.h"
#include "core/ir/print.h"

namespace partita::fx {
namespace {

/// The S of "self.a.b['c'] = value"; empty for any other statement, also for "self.a[0] = value", which writes a
/// tensor.
std::string_view assigned_attribute(std::string_view statement) {
  if (!statement.starts_with("self.")) return {};
  std::size_t end = 5;
  int depth = 0;
  for (; end < statement.size(); ++end) {
    const char c = statement[end];
    if (c == '[' && depth++ == 0 && !statement.substr(end + 1).starts_with('\'') &&
        !statement.substr(end + 1).starts_with('"'))
      return {};
    if (depth == 0 && !std::isalnum(static_cast<unsigned char>(c)) && c != '_' && c != '.') break;
    if (c == ']') --depth;
  }
  const std::string_view rest = trimmed(statement.substr(end));
  return rest.starts_with('=') && !rest.starts_with("==") ? statement.substr(0, end) : std::string_view();
}

}  // namespace

bool read_line(std::string_view text, std::size_t at, Line& line) {
  if (at >= text.size()) return false;
  std::size_t end = std::min(text.find('\n', at), text.size());
  std::string_view raw = text.substr(at, end - at);
  line.begin = at;
  line.end = std::min(end + 1, text.size());
  line.indent = std::min(raw.find_first_not_of(" \t"), raw.size());
  line.content = trimmed(raw);
  return true;
}

std::string_view class_name(const Line& line) {
  if (!line.content.starts_with("class ") || !line.content.ends_with(":")) return {};
  std::size_t paren = line.content.find('(');
  return paren == std::string_view::npos ? std::string_view() : trimmed(line.content.substr(6, paren - 6));
}

std::shared_ptr<const Origin> origin_of(std::string_view comment) {
  Origin origin;
  std::size_t file = comment.starts_with("File: ") ? 0 : comment.find(" File: ");
  if (file == std::string_view::npos) {
    std::size_t none = comment.find("No stacktrace found");
    if (none == std::string_view::npos) return nullptr;
    origin.prefix = trimmed(comment.substr(0, none));
    return std::make_shared<const Origin>(std::move(origin));
  }
  origin.prefix = trimmed(comment.substr(0, file));
  std::string_view rest = comment.substr(comment.find("File: ", file) + 6), place = rest;
  if (std::size_t code = rest.find(", code: "); code != std::string_view::npos) {
    origin.code = trimmed(rest.substr(code + 8));
    place = rest.substr(0, code);
  } else if (place.ends_with(", code:")) {
    place.remove_suffix(7);
  }
  if (std::size_t in = place.rfind(" in "); in != std::string_view::npos) {
    origin.function = trimmed(place.substr(in + 4));
    place = place.substr(0, in);
  }
  std::size_t colon = place.rfind(':');
  if (colon != std::string_view::npos &&
      std::from_chars(place.data() + colon + 1, place.data() + place.size(), origin.line).ec == std::errc())
    place = place.substr(0, colon);
  origin.file = trimmed(place);
  return std::make_shared<const Origin>(std::move(origin));
}

Recompute recompute_tag(std::string_view prefix) {
  std::string_view tag;
  if (const std::string_view word = "recompute: "; prefix.find(word) != std::string_view::npos)
    tag = prefix.substr(prefix.rfind(word) + word.size());
  else if (checkpoint_region(prefix) && prefix.find(" - ") != std::string_view::npos)
    tag = prefix.substr(prefix.rfind(" - ") + 3);
  for (const Recompute value :
       {Recompute::MustSave, Recompute::PreferSave, Recompute::MustRecompute, Recompute::PreferRecompute})
    if (tag.starts_with(name_of(value))) return value;
  return Recompute::Unspecified;
}

std::optional<std::int64_t> checkpoint_region(std::string_view prefix) {
  constexpr std::string_view word = "ac_graph_id: ";
  const std::size_t at = prefix.rfind(word);
  if (at == std::string_view::npos) return std::nullopt;
  std::int64_t id = 0;
  const std::string_view digits = prefix.substr(at + word.size());
  if (std::from_chars(digits.data(), digits.data() + digits.size(), id).ec != std::errc()) return std::nullopt;
  return id;
}

void save_region_borders(Graph& graph) {
  const auto recomputed_in = [](const Node& node) -> std::optional<std::int64_t> {
    const bool tagged = node.recompute == Recompute::MustRecompute || node.recompute == Recompute::PreferRecompute;
    return tagged && node.origin ? checkpoint_region(node.origin->prefix) : std::nullopt;
  };
  for (Node* node : graph) {
    const auto region = recomputed_in(*node);
    if (region && std::ranges::any_of(node->users(), [&](const Node* user) { return recomputed_in(*user) > region; }))
      node->recompute = Recompute::MustSave;
  }
}

std::string assigned_attributes(std::string_view text, std::size_t at) {
  std::vector<std::string_view> found;
  Line line;
  for (bool first = true; read_line(text, at, line) && !line.content.starts_with("return"); at = line.end) {
    std::string_view rest = line.content;
    while (!rest.empty()) {
      const std::size_t end = std::min(rest.find(';'), rest.size());
      const std::string_view name = assigned_attribute(trimmed(rest.substr(0, end)));
      if (!name.empty() && found.size() < 20) found.push_back(name.substr(0, 60));
      if (first && found.empty()) return {};
      first = false;
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }
  if (found.empty()) return {};
  return fmt::format(
      "The tensor {} {} {} assigned during export. Such attributes must be registered as buffers using the "
      "`register_buffer` API (https://pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module."
      "register_buffer).",
      found.size() > 1 ? "attributes" : "attribute", fmt::join(found, ", "), found.size() > 1 ? "were" : "was");
}

SymRange range_of(std::string_view symbol) {
  return {symbol.starts_with("s") ? 2 : 0, INT64_MAX};
}

std::optional<SymRange> read_range(std::string_view limits) {
  const auto number = [](std::string_view digits, std::int64_t otherwise) {  // otherwise: of int_oo and -int_oo
    std::int64_t value = otherwise;
    std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return value;
  };
  const std::size_t comma = limits.find(", ");
  if (comma == std::string_view::npos) return std::nullopt;
  return SymRange{number(limits.substr(0, comma), INT64_MIN), number(limits.substr(comma + 2), INT64_MAX)};
}

std::optional<std::pair<std::string_view, std::string_view>> made_module(std::string_view statement) {
  constexpr std::string_view self = "self.";
  const std::size_t assigned = statement.find(" = ");
  if (!statement.starts_with(self) || assigned == statement.npos || !statement.ends_with("()")) return std::nullopt;
  const std::string_view name = statement.substr(self.size(), assigned - self.size());
  const std::string_view made = statement.substr(assigned + 3, statement.size() - assigned - 5);
  if (!is_identifier(name) || !(is_identifier(made) || made == lost_module)) return std::nullopt;
  return std::pair(name, made);
}

std::vector<std::pair<std::string, std::string>> made_modules(std::string_view text, const FxSection& section) {
  std::vector<std::pair<std::string, std::string>> out;
  if (section.form != FxForm::Module) return out;
  const std::string module = section.text_of(text);
  Line line;
  for (std::size_t at = 0; read_line(module, at, line) && !line.content.starts_with("def forward("); at = line.end)
    if (const auto made = made_module(line.content)) out.emplace_back(*made);
  return out;
}

void read_ranges(std::string_view text, ShapeEnv& shapes) {
  constexpr std::string_view heading = "\nRange constraints: {", range = ": VR[";
  const std::size_t begin = text.find(heading);
  if (begin == std::string_view::npos) return;
  text.remove_prefix(begin + heading.size());
  text = text.substr(0, text.find('\n'));
  while (!text.empty()) {
    const std::size_t name_end = text.find(range), end = text.find(']', name_end);
    if (end == std::string_view::npos) return;
    const auto limits = read_range(text.substr(name_end + range.size(), end - name_end - range.size()));
    if (!limits) return;
    shapes.set_range(std::string(text.substr(0, name_end)), *limits);
    text.remove_prefix(std::min(end + 3, text.size()));  // "], "
  }
}

}  // namespace partita::fx

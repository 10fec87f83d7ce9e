#include "core/load/fx_print.h"

#include <fmt/format.h>

#include "core/load/fx_lines.h"
#include "core/load/fx_nodes.h"

namespace partita::fx {
namespace {

constexpr int deepest_list = 100;

/// The parts of "a, (b, c), {d: e}" between commas that stand in no bracket.
std::vector<std::string_view> parts_of(std::string_view list) {
  std::vector<std::string_view> out;
  std::size_t begin = 0;
  int depth = 0;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const char c = list[i];
    if (c == '(' || c == '[' || c == '{') ++depth;
    if (c == ')' || c == ']' || c == '}') --depth;
    if (depth == 0 && list.substr(i).starts_with(", ")) {
      out.push_back(list.substr(begin, i - begin));
      begin = i + 2;
    }
  }
  if (begin < list.size() || !out.empty()) out.push_back(list.substr(begin));
  return out;
}

/// Is the text one pair of these brackets, with something or nothing between?
bool is_bracketed(std::string_view text, char open, char close) {
  if (text.size() < 2 || text.front() != open || text.back() != close) return false;
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    depth += text[i] == open ? 1 : text[i] == close ? -1 : 0;
    if (depth == 0) return i + 1 == text.size();
  }
  return false;
}

/// Reads the lines of a print, in which arguments are as Node.format_node prints them.
class PrintReader {
 public:
  explicit PrintReader(NodeReader& nodes) : nodes_(nodes) {}

  /// %NAME : TYPE[num_users=1] = OP[target=TARGET](args = (...), kwargs = {...}), or "return VALUE".
  Status read(std::string_view line) {
    std::string_view rest = line;
    constexpr std::string_view result = "return ", call = "](args = ", with_default = "](default=";
    if (rest.starts_with(result)) return add_python("output", {}, {}, rest.substr(result.size()));
    const auto name = take_between(rest, "%", " : ");
    const std::size_t users = rest.find("users="), assigned = rest.find("] = ", users);
    if (!name || users == rest.npos || assigned == rest.npos) return refuse(line);
    const std::string_view type = rest.substr(0, users);
    rest.remove_prefix(assigned + 4);
    const auto op = take_between(rest, "", "[target=");
    if (!op) return refuse(line);
    const std::size_t args = rest.find(call), kwargs = rest.rfind(", kwargs = {"), given = rest.find(with_default);
    if (args < kwargs && kwargs != rest.npos && rest.ends_with("})")) {
      TRY(Args positional, items(rest.substr(args + call.size(), kwargs - args - call.size()), 0));
      TRY(ArgDict keywords, dict(rest.substr(kwargs + 11, rest.size() - kwargs - 12), 0));
      TRY_DO(nodes_.add(*op, *name, rest.substr(0, args), std::move(positional), std::move(keywords.items)));
    } else if (given != rest.npos && rest.ends_with(')')) {
      const std::size_t value = given + with_default.size();
      TRY_DO(add_python(*op, *name, rest.substr(0, given), rest.substr(value, rest.size() - value - 1)));
    } else if (rest.ends_with(']')) {
      TRY_DO(nodes_.add(*op, *name, rest.substr(0, rest.size() - 1), {}, {}));
    } else {
      return refuse(line);
    }
    const std::size_t quote = type.find('"'), end = type.rfind('"');
    return quote < end ? nodes_.annotate(type.substr(quote + 1, end - quote - 1)) : Status();
  }

 private:
  Status refuse(std::string_view line) const {
    return nodes_.bad(fmt::format("a node expected, found '{}'", line.substr(0, 60)));
  }

  /// What is returned, and defaults, are printed by Python, with names as they are.
  Status add_python(std::string_view op, std::string_view name, std::string_view target, std::string_view text) {
    TRY(Arg value, nodes_.expression(text, true));
    return nodes_.add(op, name, target, {std::move(value)}, {});
  }

  Result<Args> items(std::string_view brackets, int depth) {
    if (!is_bracketed(brackets, '(', ')') && !is_bracketed(brackets, '[', ']'))
      return nodes_.bad(fmt::format("a list expected, found '{}'", brackets.substr(0, 60)));
    std::string_view inside = brackets.substr(1, brackets.size() - 2);
    if (inside.ends_with(',')) inside.remove_suffix(1);  // (a,)
    Args out;
    for (const std::string_view part : parts_of(inside)) {
      TRY(Arg item, value(part, depth + 1));
      out.push_back(std::move(item));
    }
    return out;
  }

  Result<ArgDict> dict(std::string_view brackets, int depth) {
    ArgDict out;
    for (const std::string_view part : parts_of(brackets.substr(1, brackets.size() - 2))) {
      const std::size_t colon = part.find(": ");
      if (colon == part.npos) return nodes_.bad(fmt::format("'key: value' expected, found '{}'", part.substr(0, 60)));
      TRY(Arg item, value(part.substr(colon + 2), depth + 1));
      out.items.emplace_back(std::string(part.substr(0, colon)), std::move(item));
    }
    return out;
  }

  Result<Arg> value(std::string_view text, int depth) {
    if (depth > deepest_list) return nodes_.bad("nested too deeply");
    const bool tuple = is_bracketed(text, '(', ')');
    if (tuple || is_bracketed(text, '[', ']')) {
      TRY(Args list, items(text, depth));
      return tuple ? Arg::tuple(std::move(list)) : Arg::list(std::move(list));
    }
    if (is_bracketed(text, '{', '}')) {
      TRY(ArgDict entries, dict(text, depth));
      return Arg(std::move(entries));
    }
    if (text.starts_with('%')) {
      if (Node* node = nodes_.find(text.substr(1))) return Arg(node);
      return nodes_.bad(fmt::format("unknown node '{}'", text.substr(0, 60)));
    }
    if (text.starts_with("slice(")) return nodes_.expression(text, true);
    return word(text);
  }

  /// A number, a constant of torch, a device; else a string, which has no quotes here.
  Arg word(std::string_view text) {
    auto constant = nodes_.expression(text, false);
    if (constant && !constant->get<std::string>()) {
      const auto* name = constant->get<ArgName>();
      if (!name || name->text.starts_with("torch.") || name->text == "Ellipsis") return *std::move(constant);
    }
    if (const auto device = Device::parse(text)) return Arg(*device);
    return Arg(std::string(text));
  }

  NodeReader& nodes_;
};

}  // namespace

Result<std::unique_ptr<Graph>> read_print(std::string_view text) {
  NodeReader nodes;
  PrintReader reader(nodes);
  Line line;
  read_line(text, 0, line);
  for (std::size_t at = line.end; read_line(text, at, line); at = line.end) {
    ++nodes.line;
    if (!line.content.empty()) TRY_DO(reader.read(line.content));
  }
  return nodes.finish();
}

}  // namespace partita::fx

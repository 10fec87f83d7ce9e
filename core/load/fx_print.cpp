#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "core/base/assign.h"
#include "core/base/text.h"
#include "core/ir/python_operators.h"
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
    for (const std::string_view part : parts_of(inside)) TRY_DO(assign(out.emplace_back(), value(part, depth + 1)));
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

/// The name that a program writes for a function of the table: "<built-in function add>" is operator.add.
std::string function_of(std::string_view printed) {
  std::string_view rest = printed;
  if (const auto method = take_between(rest, "<built-in method ", " of type object"))
    return fmt::format("torch.{}", *method);
  if (const auto method = take_between(rest, "<method '", "' of ")) return fmt::format("torch.Tensor.{}", *method);
  if (const auto type = take_between(rest, "<class '", "'>")) return fmt::format("builtins.{}", *type);
  if (const auto function = take_between(rest, "<function ", " at ")) {
    constexpr std::string_view of_torch[] = {"sym_float", "sym_int", "sym_ite", "sym_max",
                                             "sym_min",   "sym_not", "sym_sqrt"},
                               functional[] = {"atleast_1d",
                                               "atleast_2d",
                                               "atleast_3d",
                                               "block_diag",
                                               "broadcast_tensors",
                                               "cartesian_prod",
                                               "cdist",
                                               "chain_matmul",
                                               "einsum",
                                               "meshgrid",
                                               "norm",
                                               "split",
                                               "stft",
                                               "tensordot",
                                               "unique",
                                               "unique_consecutive",
                                               "unravel_index"};
    const auto among = [&](const auto& names) { return std::ranges::find(names, *function) != std::end(names); };
    const std::string_view module = among(of_torch)     ? "torch"
                                    : among(functional) ? "torch.functional"
                                                        : "torch.nn.functional";
    return fmt::format("{}.{}", module, *function);
  }
  if (const auto function = take_between(rest, "<built-in function ", ">")) {
    const auto is = [&](const PythonOperator& row) { return row.function == *function; };
    const auto among = [&](const auto& names) { return std::ranges::find(names, *function) != std::end(names); };
    constexpr std::string_view more[] = {"getitem", "setitem", "neg", "pos", "invert", "not_", "contains", "index"},
                               of_python[] = {"getattr", "max", "min", "sum", "abs", "round", "len", "pow", "iter"};
    const bool is_operator =
        std::ranges::any_of(binary_operators, is) || std::ranges::any_of(in_place_operators, is) || among(more);
    const std::string_view module = is_operator ? "operator." : among(of_python) ? "builtins." : "torch._C._nn.";
    return fmt::format("{}{}", module, *function);
  }
  // An operator prints as aten.add.Tensor, a higher-order one as cond.
  return fmt::format("torch.ops.{}{}", printed.find('.') == printed.npos ? "higher_order." : "", printed);
}

/// Where the columns begin: at each run of dashes.
std::vector<std::size_t> columns_of(std::string_view dashes) {
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < dashes.size(); ++i)
    if (dashes[i] == '-' && (i == 0 || dashes[i - 1] != '-')) out.push_back(i);
  return out;
}

/// Adds the nodes of a row of the table, in which arguments are printed by Python.
Status read_row(std::array<std::string_view, 5> cells, NodeReader& nodes) {
  const auto& [op, name, target, args, kwargs] = cells;
  TRY(Arg positional, nodes.expression(args, true));
  TRY(Arg keywords, nodes.expression(kwargs, true));
  const auto* list = positional.get<ArgList>();
  const auto* dict = keywords.get<ArgDict>();
  if (!list || !dict) return nodes.bad("args that are no tuple, or kwargs that are no dict");
  const std::string called = op == "call_function" ? function_of(target) : std::string(target);
  return nodes.add(op, name, called, list->items, dict->items);
}

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

Result<std::unique_ptr<Graph>> read_table(std::string_view text) {
  NodeReader nodes;
  const std::vector<std::string_view> lines = lines_of(text);
  const std::vector<std::size_t> columns = lines.size() > 1 ? columns_of(lines[1]) : std::vector<std::size_t>();
  ++nodes.line;
  if (columns.size() != 5) return nodes.bad("five columns of dashes expected under the heading");
  for (std::size_t i = 2; i < lines.size() && !trimmed(lines[i]).empty(); ++i) {
    ++nodes.line;
    std::array<std::string_view, 5> cells;
    for (std::size_t c = 0; c < cells.size(); ++c) {
      const std::size_t begin = std::min(columns[c], lines[i].size()),
                        end = c + 1 < cells.size() ? columns[c + 1] : lines[i].size();
      cells[c] = trimmed(lines[i].substr(begin, end - begin));
    }
    TRY_DO(read_row(cells, nodes));
  }
  return nodes.finish();
}

}  // namespace partita::fx

// What Graph.print_tabular prints.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "core/base/text.h"
#include "core/ir/python_operators.h"
#include "core/load/fx_nodes.h"
#include "core/load/fx_print.h"

namespace partita::fx {
namespace {

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

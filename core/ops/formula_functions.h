#pragma once
// The functions that formulas may call besides operators. Most are those of PyTorch's FunctionsManual.cpp, with its
// names and the same calls in the same order.
#include <span>

#include "core/ops/call.h"

namespace partita {

struct FormulaCall {
  Builder& build;
  const Args args;

  const TensorMeta& tensor(std::size_t i) const { return Builder::tensor(args[i]); }
  bool has(std::size_t i) const { return i < args.size() && !args[i].is_none(); }
  bool is_tensor(std::size_t i) const { return has(i) && args[i].node() && args[i].node()->meta.tensor(); }
  /// Evaluates an expression over x0, x1, ... = args.
  Arg operator()(std::string_view expression) const;
  Arg operator()(std::string_view expression, std::vector<std::pair<std::string, Arg>> more) const;
};

struct FormulaFunction {
  std::string_view name;
  Arg (*function)(const FormulaCall& call);
};

/// Null when there is no function of that name.
const FormulaFunction* find_formula_function(std::string_view name);
std::span<const FormulaFunction> reduction_formula_functions();  ///< part of the table: formula_reductions.cpp
std::span<const FormulaFunction> matrix_formula_functions();     ///< another: formula_linalg.cpp
std::span<const FormulaFunction> factor_formula_functions();     ///< another: formula_factors.cpp
std::span<const FormulaFunction> nn_formula_functions();         ///< another: formula_nn.cpp

}  // namespace partita

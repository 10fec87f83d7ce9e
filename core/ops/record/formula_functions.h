#pragma once
// The functions that formulas may call besides operators: mostly those of PyTorch's FunctionsManual.cpp, by its names,
// making the same calls in the same order.
#include "core/ops/record/record.h"

namespace partita {

struct FormulaCall {
  Builder& build;
  const Args args;

  const TensorMeta& tensor(std::size_t i) const { return Builder::tensor(args[i]); }
  bool has(std::size_t i) const { return i < args.size() && !args[i].is_none(); }
  bool is_tensor(std::size_t i) const { return has(i) && args[i].node() && args[i].node()->meta.tensor(); }
  // Numbers, which may be nodes of a known value. Fail when they are anything else.
  SymList sizes(std::size_t i) const;  ///< an integer or a list of integers
  Sizes integers(std::size_t i) const;
  std::int64_t integer(std::size_t i) const;
  double real(std::size_t i) const;
  bool flag(std::size_t i) const;  ///< false when it is not there
  /// For conditions on sizes; it has no arguments.
  FakeCall guards() const;
  /// Evaluates a program (core/ops/record/operator_program.h) over x0, x1, ... = args.
  Arg operator()(std::string_view expression) const;
  Arg operator()(std::string_view expression, std::vector<std::pair<std::string, Arg>> more) const;
};

// Those of one family are registered in its file, all others in record/formula_NAME.cpp.

}  // namespace partita

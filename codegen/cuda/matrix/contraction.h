#pragma once
// What products and convolutions have in common: result(g, m, n) = sum over k of a(g, m, k) * b(g, k, n). Where the
// elements of a and b lie is said by text; a convolution says it with divisions, and so needs no matrix of its patches.
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "codegen/cuda/matrix/matrix.h"
#include "codegen/cuda/matrix/unit.h"

namespace partita::codegen {

/// C++ statements that return an element, or `nothing` outside of the tensor. They know the pointers by name, the
/// indices g, and m and k for the left factor, k and n for the right one.
struct Factor {
  std::string body;
  bool along_k = false;  ///< neighbours in memory are neighbours in k
  /// Where an element lies, if so many neighbours from a multiple of `pack` on (in k, else in m or n) are one aligned
  /// load: the pointer's expression.
  std::string address = {};
  int pack = 1;
};

struct Contraction {
  std::string what;              ///< for the text's reader: "product of mm: [64, 32] x [32, 128]"
  DType dtype = DType::Float32;  ///< of the factors
  MatrixUnit unit = MatrixUnit::Scalar;
  SymExpr groups = 1, m = 1, n = 1, k = 1;
  Factor a, b;
  /// Statements that store the result at g, m, n, made of `sum`, a number of sum_type(dtype).
  std::string finish;
};

/// A text with `<word>` replaced by the word's value. What is no word stays: C++ has angle brackets of its own.
using PatternWords = std::vector<std::pair<std::string_view, std::string>>;
std::string filled(std::string_view pattern, const PatternWords& words);

/// mma(), a tensor core's instruction, and what rounds a float for it.
std::string_view mma_text();

/// A tensor argument of the call; nullopt for others.
std::optional<schedule::PlanView> tensor_view(const ExternContext& context, std::size_t i);

/// "float": the type in which products of this dtype are summed. Empty: there are no kernels for it.
std::string_view sum_type(DType dtype);

/// Collects the functions of one call.
class MatrixKernelBuilder {
 public:
  MatrixKernelBuilder(const ExternContext& context, MatrixNames names);

  /// The name of the pointer to a view's buffer.
  std::string pointer(const schedule::PlanView& view, bool written = false);
  /// An element's expression: the view's pointer at its offset and indices times strides.
  std::string element(const schedule::PlanView& view, const std::vector<std::string>& indices, bool written = false);
  /// An element converted to sum_type(): to_float(p0[...]).
  std::string number(const schedule::PlanView& view, const std::vector<std::string>& indices);
  /// The statement of a Factor that returns an element as the unit takes it.
  std::string factor(MatrixUnit unit, const schedule::PlanView& view, const std::vector<std::string>& indices);
  /// A factor whose elements lie as the view's do. `along`: the place of the index k, if neighbours in it are
  /// neighbours in memory, else of m or n.
  Factor factor_of(MatrixUnit unit, const schedule::PlanView& view, const std::vector<std::string>& indices,
                   bool along_k, std::size_t along);
  /// Statements that store `value`, of sum_type(), into a view; into the call's one result, what its epilogue makes of
  /// it.
  std::string store(const schedule::PlanView& view, const std::vector<std::string>& indices, const std::string& value);

  /// The value as an element of the view has it in memory.
  static std::string stored(const schedule::PlanView& view, const std::string& value);

  void add(Contraction contraction) { contractions_.push_back(std::move(contraction)); }
  /// A function in whose text `{parameters}` stands for the parameters. Its name is the symbol and `suffix`.
  struct Function {
    std::string suffix, text;
    SymExpr blocks = 1;
    int threads = 256;
    std::size_t shared_bytes = 0;
    bool cooperates = true;
    double operations = 0;
  };
  void add(Function function) { functions_.push_back(std::move(function)); }
  /// Global memory for the functions; the pointer's name.
  std::string workspace(DType dtype, SymExpr elements);
  /// An expression of sizes: a number, or an operand in brackets.
  std::string text(SymExpr e);
  /// What it is now, for decisions that are right for every value.
  std::int64_t hint(SymExpr e) const;
  /// "constexpr" where all sizes are numbers.
  std::string_view fixed() const { return names_.symbols.empty() ? "constexpr" : "const"; }
  /// "int", or "long long" where a buffer may have more elements than an int counts. Call it after the last pointer().
  std::string_view index_type() const { return large_ ? "long long" : "int"; }

  /// nullopt with a reason when one buffer is read as several dtypes, or sizes are of an unknown form.
  std::optional<MatrixKernel> build(std::string& why_not);

 private:
  void emit(const Contraction& contraction, std::size_t number);
  std::string place(const schedule::PlanView& view, const std::vector<std::string>& indices);
  std::optional<std::string> worked(const std::vector<std::string>& indices, const std::string& stored,
                                    std::string& value);

  const ExternContext& context_;
  MatrixNames names_;
  MatrixKernel out_;
  std::vector<Contraction> contractions_;
  std::vector<Function> functions_;
  std::map<std::string, int> sources_;  ///< of lines of the epilogue: indices into the kernel's origins
  bool mixed_ = false, large_ = false, unknown_ = false;
};

}  // namespace partita::codegen

#pragma once
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/loops/scalar.h"
#include "core/loops/target.h"
#include "core/ops/facts/family.h"
#include "core/ops/record/call.h"

namespace partita {

struct ViewStep;
namespace loops {
class LowerCall;
}

/// torch._prims_common.ELEMENTWISE_TYPE_PROMOTION_KIND.
enum class Promotion : unsigned char { Default, NoOpMath, IntToFloat, AlwaysBool, ComplexToFloat, BoolToLong };

/// The scalar body of a pointwise operator; fake, eval and lower are derived from it. `inputs` are the tensor and
/// Scalar arguments that take part in promotion, in schema order, converted to the computation dtype (f32 for half
/// types). The result is converted to the result dtype.
struct Pointwise {
  using Function = loops::Scalar (*)(loops::ScalarBuilder& b, std::span<const loops::Scalar> inputs,
                                     const FakeCall& call);
  Function body = nullptr;
  Promotion promotion = Promotion::Default;
  /// Names of the arguments that are inputs; empty: every positional Tensor and Scalar argument.
  std::vector<std::string_view> inputs = {};
  /// A boolean tensor that broadcasts with the inputs but takes no part in promotion.
  std::string_view condition = {};
  /// PyTorch's kernel reads a number beside a half tensor as a float (mul, div). Otherwise the number is rounded to the
  /// half type, as every operand is (TensorIterator's common dtype).
  bool exact_numbers = false;
  bool row_major = false;  ///< the result is, whatever the inputs' strides are
  /// Gives the promotion kind where it depends on an argument.
  Promotion (*promotion_of)(const FakeCall& call) = nullptr;
};

/// The gradient of one differentiable argument, as in derivatives.yaml: {"self", "grad * result"}. The formula is a
/// program (core/ops/record/operator_program.h) over `grad` (or grads[i]), `result` (or result0, result1, ...) and the
/// arguments' names. "zero" means constant zero, and a program's None no gradient. For several arguments, {"input,
/// weight", ...}, it gives a tuple; output_mask holds which of them are wanted.
struct Derivative {
  std::string_view input;
  std::string_view formula;
};

/// A view by its schema whose elements are not its argument's: PyTorch sets a bit of the tensor.
enum class ElementChange : unsigned char { None, Conjugate };

/// Where the results of a decomposition into values and vectors are; -1: there is none. Its vectors are determined up
/// to a sign, a phase or a rotation among equal values (core/compare/gauge.h).
struct SpectralResults {
  int left = -1, values = -1, right = -1;
  bool right_is_adjoint = false;  ///< `right` holds conjugated rows (Vh)
  bool orthogonal = true;         ///< the vectors are
  bool known() const { return values >= 0; }
};

/// Where a call is kept although its record has a compile_decompose.
enum class Kept : unsigned char {
  Nowhere,
  HalfTypes,      ///< compiled graphs of half types: PyTorch's kernel rounds between steps, as eval does
  CheckedValues,  ///< compiled graphs: eval refuses some values of its arguments
  CoreAten,       ///< --decompositions core, as in PyTorch's table
};

/// What a call is in an exchange with the other ranks of a job.
enum class CollectivePart : unsigned char { None, Starts, Waits };

/// What a single operator does, for passes that look for just that.
enum class Role : unsigned char {
  None,
  Pads,           ///< puts its third argument, a constant, around the first, as wide as the second says
  Concatenates,   ///< joins the tensors of its first argument along `dim`
  Splits,         ///< its second argument says at which sizes `dim` is cut
  Linear,         ///< a linear layer: weights one above the other give results side by side
  Converts,       ///< _to_copy: gives the argument in another dtype, on another device
  CopiesSecond,   ///< gives the second argument's values in the dtype and sizes of the first
  Uninitialised,  ///< gives memory as it is, so equal calls stay apart: empty
  WholeView,      ///< a view of all of its argument as it lies: alias, detach
  OtherSizes,     ///< view: shows all elements in other sizes, where strides allow it
  ViewsStorage,   ///< views all of its argument's storage, by sizes, strides and offset of its own
};

template <class F>
using FunctionPointer = F*;

// The fields, which record_fields.def documents.
#define ROW(name, text, ...) __VA_ARGS__ name = {};
struct AutogradFields {
#define AUTOGRAD ROW
#include "core/ops/record/record_fields.def"
};
struct CostFields {
#define COST ROW
#include "core/ops/record/record_fields.def"
};
struct PrecisionFields {
#define PRECISION ROW
#include "core/ops/record/record_fields.def"
};
struct ViewFields {
#define VIEWS ROW
#include "core/ops/record/record_fields.def"
};

/// Everything we know of one operator. Fields that are unset are derived (from pointwise, or the functional variant of
/// an in-place overload) or missing; `partita ops NAME` prints every one.
struct OpRecord {
#define RECORD ROW
#define PART ROW
#include "core/ops/record/record_fields.def"
  /// For colours and legends. Unset: derived from other fields and the schema, else that of the file it is registered
  /// in (families.h).
  Family family = Family::Other;
  const Schema* schema = nullptr;  ///< set at registration
};
#undef ROW

/// The meta of a tensor argument by its place among those written; null when it is none.
const TensorMeta* tensor_argument(const Node& call, std::size_t i);

/// A function that derivative formulas may call besides operators (core/ops/record/formula_functions.h).
struct FormulaCall;
using FormulaFunction = Arg (*)(const FormulaCall& call);

class OpTable {
 public:
  /// The family of records added from now on that neither say theirs nor let it be derived.
  Family default_family = Family::Other;

  /// "aten.sigmoid.default"; CHECKs that the schema table knows it and that it is registered once.
  void add(std::string_view name, OpRecord record);
  /// The same by the columns that most operators have; `more` holds what else is known. Without an `eval`, a record is
  /// evaluated by its loops or decomposition.
  void add(std::string_view name, Meta (*fake)(FakeCall&), Value (*eval)(EvalCall&),
           std::vector<Derivative> derivative = {}, OpRecord more = {});
  /// Operators and calls of Python, by base name, that have no record and belong to the family of those added now.
  void add_without_record(std::initializer_list<std::string_view> names);
  /// CHECKs that the names are new.
  void add_formula_functions(std::initializer_list<std::pair<std::string_view, FormulaFunction>> functions);
  const OpRecord* find(const Op* op) const;
  FormulaFunction find_formula_function(std::string_view name) const;  ///< null when there is none
  std::optional<Family> family_without_record(std::string_view base) const;
  std::vector<const OpRecord*> all() const;  ///< sorted by name

 private:
  std::unordered_map<std::string_view, FormulaFunction> formula_functions_;
  std::unordered_map<std::string_view, Family> without_record_;
  std::vector<std::unique_ptr<OpRecord>> records_;
  std::unordered_map<const Op*, const OpRecord*> by_op_;
};

/// The program's table, built from families.cpp at first use.
const OpTable& ops();
/// Null when there is no record. In-place and out variants without a record of their own have their functional
/// variant's.
const OpRecord* find_record(const Op* op);

// Entry functions. `node` names the place in errors; ops.unknown (exit 3) names an operator whose record lacks the
// function.
Result<Meta> infer(const Op* op, const Args& args, const Kwargs& kwargs, ShapeEnv& shapes, const Node* node = nullptr);
Result<Meta> infer(const Node& node);
Result<Value> evaluate(const Op* op, std::vector<Value> args, std::vector<std::pair<std::string, Value>> kwargs,
                       const EvalContext& context = {}, const Node* node = nullptr);
/// What evaluate() refuses of a call before its kernel runs, by the metas: dtypes without arithmetic, and tensors that
/// are expanded to more elements than memory may hold bytes. Compilers ask the same.
Status check_evaluable(const Node& call);
/// Builds the decomposition of `node` before it, by `decompose`, or by compile_decompose if asked. Does not erase the
/// node.
Result<Arg> decompose(Node& node, bool for_compiler = false);
/// Nodes for the gradients of the arguments in `wants`, by schema argument. Each is brought to its argument's sizes and
/// dtype, as the autograd engine does after the formulas. Those of Tensor[] arguments are put in `lists`, by position.
Result<std::vector<Node*>> differentiate(Builder& build, Node& node, std::vector<Node*> grads, std::vector<bool> wants,
                                         std::map<int, std::vector<Node*>>* lists = nullptr);

}  // namespace partita

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
#include "core/ops/call.h"
#include "core/ops/family.h"

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
/// program (core/ops/program.h) over `grad` (or grads[i]), `result` (or result0, result1, ...) and the arguments'
/// names. "zero" means constant zero, and a program's None no gradient. For several arguments, {"input, weight", ...},
/// it gives a tuple; output_mask holds which of them are wanted.
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

/// Everything we know of one operator. Fields that are unset are derived (from pointwise, or the functional variant of
/// an in-place overload) or missing; `partita ops NAME` prints every one.
struct OpRecord {
  Meta (*fake)(FakeCall&) = nullptr;
  Value (*eval)(EvalCall&) = nullptr;
  Pointwise pointwise = {};
  /// Replacement by simpler calls: a node, or a tuple for several results. Is used where the record has no more
  /// specific field.
  Arg (*decompose)(DecomposeCall&) = nullptr;
  /// The same as text (core/ops/program.h); sets `decompose`.
  std::string_view program = {};
  /// Replacement for the compiler only (inductor's table), or for --decompositions core.
  Arg (*compile_decompose)(DecomposeCall&) = nullptr;
  bool compiler_only = false;  ///< --decompositions core keeps the call, as PyTorch's table does
  /// PyTorch's kernel for half types rounds between steps, as eval does and compile_decompose does not. Compiled graphs
  /// call eval for half types.
  bool rounds_halves = false;
  /// eval refuses some values of its arguments, which compile_decompose takes: compiled graphs call eval.
  bool checks_values = false;
  std::vector<Derivative> derivative = {};
  /// For gradients that formulas cannot express: one for each schema argument, null for none.
  std::vector<Node*> (*gradient)(GradCall&) = nullptr;
  /// Whether results beyond the first have gradients, too (formulas say so by naming grads[i]).
  bool all_results_differentiable = false;
  bool not_differentiable = false;  ///< results carry no gradient: comparisons, argmax, arange
  /// Bit i: result i has no gradient, whatever the others have (derivatives.yaml's output_differentiability):
  /// permutations.
  unsigned constant_results = 0;
  /// Loops for it (core/ops/lower_call.h); what a lowering refuses as unsupported stays a call.
  void (*lower)(loops::LowerCall&) = nullptr;
  bool expensive = false;    ///< never recomputed by the partitioner: matmul, convolution, attention, sort
  bool random = false;       ///< depends on a generator
  bool side_effect = false;  ///< kept even when it has no users: asserts
  /// A run in double computes it in the dtypes of the graph: it reads bits, or takes no doubles.
  bool as_written = false;

  /// For colours and legends. Unset: derived from the facts here and in the schema, else that of the family function
  /// that registers it (families.h).
  Family family = Family::Other;
  /// Cheap to compute again in the backward, though neither a view nor pointwise: reductions, copies, factories.
  bool recomputable = false;
  /// Arithmetic operations of a call; null or nullopt: one for each element of its largest tensor.
  std::optional<SymExpr> (*operations)(const Node& call) = nullptr;
  LibraryRoutine library = LibraryRoutine::None;
  unsigned images = 0;  ///< so many first arguments are images, which the library reads channel by channel
  std::string_view from_any_device = {};  ///< an argument that need not be on the device of the others
  bool reads_strides = false;             ///< what it gives depends on its argument's strides, not only on the elements

  // What moves values and computes none.

  /// With such arguments (in schema order) every element stays as and where it is: the result is the first argument if
  /// dtype, sizes and strides are its own too.
  bool (*unchanged_if)(const Args& bound) = nullptr;
  bool pads = false;  ///< puts its third argument, a constant, around the first, as wide as the second says
  /// Of a view that reorders dimensions: result dimension i is dimension order[i] of its argument, which has `rank`.
  /// Nullopt when the arguments are no constants.
  std::optional<std::vector<std::int64_t>> (*dimension_order)(const Args& bound, std::int64_t rank) = nullptr;
  /// Of a view: `base` with what the view shows of it replaced by `value`.
  Node* (*write_through)(Builder& build, const ViewStep& view, Node* base, Node* value) = nullptr;
  /// The operator of the same arguments and values that copies where strides allow no view: reshape of view.
  std::string_view copying_form = {};
  bool may_alias = false;      ///< may give its first argument's memory, which the schema does not say
  bool whole_view = false;     ///< a view of all of its argument as it lies: alias, detach
  bool views_storage = false;  ///< views all of its argument's storage, by sizes, strides and offset of its own
  bool uninitialised = false;  ///< gives memory as it is, so equal calls stay apart: empty
  bool concatenates = false;   ///< joins the tensors of its first argument along `dim`
  bool splits = false;         ///< its second argument says at which sizes `dim` is cut
  bool packs = false;          ///< a linear layer: weights one above the other give results side by side
  bool takes_float8 = false;   ///< copies or converts, and computes nothing
  bool copies_second = false;  ///< gives the second argument's values in the dtype and sizes of the first
  ElementChange element_change = ElementChange::None;
  std::string_view script_name = {};  ///< what TorchScript writes for it
  SpectralResults spectral = {};

  const Schema* schema = nullptr;  ///< set at registration
};

/// The meta of a tensor argument by its place among those written; null when it is none.
const TensorMeta* tensor_argument(const Node& call, std::size_t i);

/// A function that derivative formulas may call besides operators (core/ops/formula_functions.h).
struct FormulaCall;
using FormulaFunction = Arg (*)(const FormulaCall& call);

class OpTable {
 public:
  /// The family of records added from now on that neither say theirs nor let it be derived.
  Family default_family = Family::Other;

  /// "aten.sigmoid.default"; CHECKs that the schema table knows it and that it is registered once.
  void add(std::string_view name, OpRecord record);
  /// The same by the columns that most operators have; `more` holds what else is known.
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

#pragma once
#include <map>
#include <memory>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/loops/scalar.h"
#include "core/ops/call.h"

namespace partita {

namespace loops {
class LowerCall;
}

/// torch._prims_common.ELEMENTWISE_TYPE_PROMOTION_KIND.
enum class Promotion : unsigned char { Default, NoOpMath, IntToFloat, AlwaysBool, ComplexToFloat, BoolToLong };

/// The scalar body of a pointwise operator; fake, eval and lower are derived from it. `inputs` are the tensor and
/// Scalar arguments that take part in promotion, in schema order, converted to the computation dtype (f32 for half
/// types). The result is converted to the result dtype.
struct Pointwise {
  using Body = loops::Scalar (*)(loops::ScalarBuilder& b, std::span<const loops::Scalar> inputs, const FakeCall& call);
  Body body = nullptr;
  Promotion promotion = Promotion::Default;
  /// Names of the arguments that are inputs; empty: every positional Tensor and Scalar argument.
  std::vector<std::string_view> inputs = {};
  /// A boolean tensor that broadcasts with the inputs but takes no part in promotion.
  std::string_view condition = {};
  /// PyTorch's kernel reads a number beside a half tensor as a float (mul, div). Otherwise the number is rounded to the
  /// half type, as every operand is (TensorIterator's common dtype).
  bool exact_numbers = false;
  /// Gives the promotion kind where it depends on an argument.
  Promotion (*promotion_of)(const FakeCall& call) = nullptr;
};

/// The gradient of one differentiable argument, as in derivatives.yaml: {"self", "grad * result"}. The expression is
/// over `grad` (or grads[i]), `result` (or result0, result1, ...) and the arguments' names. "zero" means constant zero.
struct Derivative {
  std::string_view input;
  std::string_view formula;
};

/// Everything that is known of one operator. A field that is not set is derived (from `pointwise`, or from the
/// functional variant of an in-place overload) or missing; `partita ops` prints which.
struct OpRecord {
  Meta (*fake)(FakeCall&) = nullptr;
  Value (*eval)(EvalCall&) = nullptr;
  Pointwise pointwise = {};
  /// Replacement by simpler calls: a node, or a tuple for several results. Is used where the record has no more
  /// specific field.
  Arg (*decompose)(DecomposeCall&) = nullptr;
  /// Replacement for the compiler only (inductor's table), or for --decompositions core.
  Arg (*compile_decompose)(DecomposeCall&) = nullptr;
  /// PyTorch's kernel for half types rounds between steps, as eval does and compile_decompose does not. Compiled graphs
  /// call eval for half types.
  bool rounds_halves = false;
  std::vector<Derivative> derivative = {};
  /// For gradients that formulas cannot express: one for each schema argument, null for none.
  std::vector<Node*> (*gradient)(GradCall&) = nullptr;
  /// Whether results beyond the first have gradients, too (formulas say so by naming grads[i]).
  bool all_results_differentiable = false;
  bool not_differentiable = false;  ///< results carry no gradient: comparisons, argmax, arange
  /// Bit i: result i has no gradient, whatever the others have (derivatives.yaml's output_differentiability):
  /// permutations.
  unsigned constant_results = 0;
  /// Lowers the call to loops (core/ops/lowerings.h). A call that it refuses as unsupported stays a call.
  Status (*lower)(loops::LowerCall&) = nullptr;
  bool expensive = false;    ///< never recomputed by the partitioner: matmul, convolution, attention, sort
  bool random = false;       ///< depends on a generator
  bool side_effect = false;  ///< kept even when it has no users: asserts

  const Schema* schema = nullptr;  ///< set at registration
};

class OpTable {
 public:
  /// "aten.sigmoid.default"; CHECKs that the schema table knows it and that it is registered once.
  void add(std::string_view name, OpRecord record);
  const OpRecord* find(const Op* op) const;
  std::vector<const OpRecord*> all() const;  ///< sorted by name

 private:
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
/// Builds the decomposition of `node` before it, by `decompose`, or by compile_decompose if asked. Does not erase the
/// node.
Result<Arg> decompose(Node& node, bool for_compiler = false);
/// Nodes for the gradients of the arguments in `wants`, by schema argument. Each is brought to its argument's sizes and
/// dtype, as the autograd engine does after the formulas. Those of Tensor[] arguments are put in `lists`, by position.
Result<std::vector<Node*>> differentiate(Builder& build, Node& node, std::vector<Node*> grads, std::vector<bool> wants,
                                         std::map<int, std::vector<Node*>>* lists = nullptr);

}  // namespace partita

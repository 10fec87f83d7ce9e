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

/// The scalar body of a pointwise operator: fake, eval and lower follow from it. `inputs` are the tensor and Scalar
/// arguments that take part in promotion, in schema order, already converted to the computation dtype (f32 for half
/// types); the result is converted to the result dtype.
struct Pointwise {
  using Body = loops::Scalar (*)(loops::ScalarBuilder& b, std::span<const loops::Scalar> inputs, const FakeCall& call);
  Body body = nullptr;
  Promotion promotion = Promotion::Default;
  /// Names of the arguments that are inputs; empty: every Tensor and Scalar positional argument.
  std::vector<std::string_view> inputs = {};
  /// A boolean tensor that is broadcast with the inputs but takes no part in promotion.
  std::string_view condition = {};
  /// PyTorch's kernel reads a number beside a half tensor in float, as mul and div do; else it is rounded to the half
  /// type like every operand (TensorIterator's common dtype).
  bool exact_numbers = false;
  /// Where the promotion kind hangs on an argument.
  Promotion (*promotion_of)(const FakeCall& call) = nullptr;
};

/// The gradient of one differentiable argument, as derivatives.yaml: {"self", "grad * result"}. In the expression
/// `grad` (or grads[i]), `result` (or result0, result1, ...) and the argument names are bound. "zero": constant zero.
struct Derivative {
  std::string_view input;
  std::string_view formula;
};

/// Everything we know of one operator. Fields that are unset are derived (from pointwise, or the functional twin of an
/// in-place overload) or missing; `partita ops` prints which.
struct OpRecord {
  Meta (*fake)(FakeCall&) = nullptr;
  Value (*eval)(EvalCall&) = nullptr;
  Pointwise pointwise = {};
  /// Replacement by simpler calls: the node, or a tuple for several results. Used by everything that has no own field.
  Arg (*decompose)(DecomposeCall&) = nullptr;
  /// Replacement only on the way to the compiler (inductor's table) or for --decompositions core.
  Arg (*compile_decompose)(DecomposeCall&) = nullptr;
  /// PyTorch's kernel for half types rounds between steps, as eval does and compile_decompose does not: compiled graphs
  /// call eval for them.
  bool rounds_halves = false;
  std::vector<Derivative> derivative = {};
  /// For what a formula cannot say: gradients per schema argument, null where none.
  std::vector<Node*> (*gradient)(GradCall&) = nullptr;
  /// The gradient function takes gradients of results beyond the first (formulas say so by naming grads[i]).
  bool all_results_differentiable = false;
  bool not_differentiable = false;  ///< results carry no gradient: comparisons, argmax, arange
  /// Bit i: result i carries none, whatever the others do (derivatives.yaml's output_differentiability): permutations.
  unsigned constant_results = 0;
  /// Loops for it (core/ops/lowerings.h); what a lowering refuses as unsupported stays a call.
  Status (*lower)(loops::LowerCall&) = nullptr;
  bool expensive = false;    ///< never recomputed by the partitioner: matmul, convolution, attention, sort
  bool random = false;       ///< depends on a generator
  bool side_effect = false;  ///< kept although unused: asserts

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

/// The program's table, made at first use from families.cpp.
const OpTable& ops();
/// Null when there is no record; in-place and out variants without their own give their functional twin's.
const OpRecord* find_record(const Op* op);

// The entrances. `node` names the place in errors; ops.unknown (exit 3) names an operator without the aspect.
Result<Meta> infer(const Op* op, const Args& args, const Kwargs& kwargs, ShapeEnv& shapes, const Node* node = nullptr);
Result<Meta> infer(const Node& node);
Result<Value> evaluate(const Op* op, std::vector<Value> args, std::vector<std::pair<std::string, Value>> kwargs,
                       const EvalContext& context = {}, const Node* node = nullptr);
/// Decomposes `node` (calls `decompose`, or compile_decompose if asked) before it; does not erase it.
Result<Arg> decompose(Node& node, bool for_compiler = false);
/// Gradient nodes for the arguments in `wants`, per schema argument, each brought to its argument's sizes and dtype as
/// the autograd engine does once the formulas are through. Those of Tensor[] arguments come in `lists`, by position.
Result<std::vector<Node*>> differentiate(Builder& build, Node& node, std::vector<Node*> grads, std::vector<bool> wants,
                                         std::map<int, std::vector<Node*>>* lists = nullptr);

}  // namespace partita

#include <algorithm>

#include "core/loops/scalar_eval.h"
#include "core/ops/lower_call.h"
#include "core/ops/pointwise.h"

namespace partita::loops {
namespace {

/// Raises what the target has no code for of complex numbers.
void check_complex(const ScalarBuilder& body, const Target& target) {
  const auto has_code = [&](ScalarOp op) {
    const bool moves = op == ScalarOp::Const || op == ScalarOp::Input || op == ScalarOp::Where || op == ScalarOp::Cast;
    return !target.complex_ops.empty() &&
           (moves || std::ranges::find(target.complex_ops, op) != target.complex_ops.end());
  };
  const auto complex = [&](Scalar s) { return s.id >= 0 && is_complex(body.dtype(s)); };
  for (const ScalarNode& n : body.nodes())
    if ((is_complex(n.dtype) || std::ranges::any_of(n.args, complex)) && !has_code(n.op))
      fail_unsupported("complex numbers in loops");
}

}  // namespace

void lower_pointwise(const OpRecord& record, std::shared_ptr<LowerCall> call) {
  SymList sizes = call->out_sizes();
  DType dtype = call->out().dtype;
  std::unordered_map<std::string_view, LoweredTensor> inputs;
  std::vector<std::string_view> names = pointwise_inputs(record);
  if (!record.pointwise.condition.empty()) names.push_back(record.pointwise.condition);
  for (std::string_view name : names) {
    if (!call->has(name)) continue;
    if (call->is_tensor(name)) inputs[name] = call->to.expand(call->in(name), sizes);
  }
  ScalarBuilder trial;
  pointwise_value(record, *call, trial, [&](std::string_view name) { return trial.input(0, inputs.at(name).dtype); });
  unwrap(check_operations(trial));
  check_complex(trial, call->to.target());
  call->give(call->to.map(dtype, sizes, [&record, call, inputs, dtype](Body& body, const Index& i) {
    Scalar value =
        pointwise_value(record, *call, body.b, [&](std::string_view name) { return body.read(inputs.at(name), i); });
    return body.b.cast(value, dtype);
  }));
}

}  // namespace partita::loops

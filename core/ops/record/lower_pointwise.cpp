#include "core/loops/scalar_eval.h"
#include "core/ops/record/lower_call.h"
#include "core/ops/record/pointwise.h"

namespace partita::loops {

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
  call->give(call->to.map(dtype, sizes, [&record, call, inputs, dtype](Body& body, const Index& i) {
    Scalar value =
        pointwise_value(record, *call, body.b, [&](std::string_view name) { return body.read(inputs.at(name), i); });
    return body.b.cast(value, dtype);
  }));
}

}  // namespace partita::loops

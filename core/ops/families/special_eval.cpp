#include "core/base/check.h"
#include "core/ops/families/special.h"

namespace partita {
namespace {

const OpRecord& record_of(const Schema& schema) {
  const OpRecord* record = ops().find(Op::torch(schema.name));
  CHECK(record, "a record evaluates its own calls: " + schema.name);
  return *record;
}

Tensor broadcast_to(const Tensor& t, const Sizes& sizes) {
  Sizes strides(sizes.size(), 0);
  std::size_t skip = sizes.size() - t.sizes.size();
  for (std::size_t d = 0; d < t.sizes.size(); ++d)
    if (t.sizes[d] != 1) strides[skip + d] = t.strides[d];
  return unwrap(t.view_as(sizes, strides, t.offset).contiguous());
}

}  // namespace

Meta fake_by_promotion(FakeCall& call) {
  return fake_pointwise(record_of(call.schema), call);
}

Meta fake_special(FakeCall& call) {
  const DType compute = pointwise_dtypes(record_of(call.schema), call).compute;
  if (is_complex(compute))
    throw Raise{
        unsupported("ops.dtype", call.schema.name + " of " + std::string(torch_name(compute)) + " is not supported")};
  return fake_by_promotion(call);
}

SpecialCall::SpecialCall(const EvalCall& call) {
  const OpRecord& record = record_of(call.schema);
  CallOfValues metas(call);
  DType compute = pointwise_dtypes(record, metas.call).compute;
  computed = unwrap(Tensor::empty(compute, *concrete(fake_pointwise(record, metas.call).tensor()->sizes)));
  for (std::string_view name : pointwise_inputs(record)) {
    Tensor t = call.is_tensor(name) ? unwrap(call.tensor(name).to(compute))
                                    : unwrap(Tensor::scalar(compute, as_double(call.number(name))));
    inputs.push_back(broadcast_to(t, computed.sizes));
  }
}

}  // namespace partita

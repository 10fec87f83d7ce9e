#pragma once
// What is derived from a record's scalar body: the meta, the evaluation, and the value within a larger body (lowering).
#include <functional>

#include "core/ops/record/promote.h"
#include "core/ops/record/record.h"

namespace partita {

/// Names of the body's inputs: record.pointwise.inputs, or every positional Tensor and Scalar argument.
std::vector<std::string_view> pointwise_inputs(const OpRecord& record);
Promoted pointwise_dtypes(const OpRecord& record, const FakeCall& call);
Meta fake_pointwise(const OpRecord& record, const FakeCall& call);
Value eval_pointwise(const OpRecord& record, const EvalCall& call);

/// Appends the body to `b` and returns its value in the result dtype. `load` gives the element of a tensor argument, in
/// the tensor's own dtype.
using LoadInput = std::function<loops::Scalar(std::string_view name)>;
loops::Scalar pointwise_value(const OpRecord& record, const FakeCall& call, loops::ScalarBuilder& b,
                              const LoadInput& load);

/// A number as a constant.
loops::Scalar number_constant(loops::ScalarBuilder& b, const Number& n, DType dtype);
/// A number argument of the call, as a constant in the dtype of `like`.
loops::Scalar constant(loops::ScalarBuilder& b, const FakeCall& call, std::string_view name, loops::Scalar like);

}  // namespace partita

#pragma once
// Pointwise operators whose function is C++ code instead of a scalar body. They are evaluated here, and compiled code
// calls the evaluation.
#include "core/ops/kernels/outputs.h"
#include "core/ops/record/pointwise.h"
#include "core/ops/record/values.h"

namespace partita {

/// The meta: sizes by broadcasting, the dtype by the record's promotion.
Meta fake_by_promotion(FakeCall& call);
/// The same, for functions without a complex kernel: complex operands are refused.
Meta fake_special(FakeCall& call);

/// The inputs, converted to the computation dtype, broadcast and row-major; and the output to fill.
struct SpecialCall {
  explicit SpecialCall(const EvalCall& call);
  std::vector<Tensor> inputs;
  Tensor computed;  ///< row-major, computation dtype
};

/// Applies f to each element, of type float or double, or to those of two inputs.
Value each_element(const EvalCall& call, auto f) {
  SpecialCall s(call);
  kernels::dispatch_floating(s.computed.dtype, call.schema.name.c_str(), [&]<class T>() {
    T* to = s.computed.as<T>();
    const T* a = s.inputs[0].as<T>();
    for (std::int64_t i : steps(s.computed.numel())) {
      if constexpr (requires { f(T(), T()); })
        to[i] = f(a[i], s.inputs[1].as<T>()[i]);
      else
        to[i] = f(a[i]);
    }
  });
  return s.computed;
}
template <auto f>
Value eval_special(EvalCall& call) {
  return each_element(call, f);
}

Value eval_i0e(EvalCall& call);  ///< exp(-|x|) I0(x), of half types as PyTorch computes it

}  // namespace partita

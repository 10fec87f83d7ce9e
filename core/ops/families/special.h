#pragma once
// Pointwise operators whose function is C++ code instead of a scalar body. They are evaluated here, and compiled code
// calls the evaluation.
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
  Tensor result;    ///< with the meta's dtype and strides
};

/// Applies f(T, ...) to each element; T is float or double.
template <auto f>
Value eval_special(EvalCall& call) {
  SpecialCall s(call);
  auto run = [&]<class T>(T) {
    T* to = s.computed.as<T>();
    std::int64_t n = s.computed.numel();
    const T* a = s.inputs[0].as<T>();
    if constexpr (requires { f(T(), T()); }) {
      const T* b = s.inputs[1].as<T>();
      for (std::int64_t i : steps(n)) to[i] = f(a[i], b[i]);
    } else {
      for (std::int64_t i : steps(n)) to[i] = f(a[i]);
    }
  };
  if (s.computed.dtype == DType::Float32)
    run(float());
  else if (s.computed.dtype == DType::Float64)
    run(double());
  else
    fail_unsupported(call.schema.name + " of " + std::string(torch_name(s.computed.dtype)));
  s.result.copy_from(s.computed);
  return s.result;
}

Value eval_i0e(EvalCall& call);

}  // namespace partita

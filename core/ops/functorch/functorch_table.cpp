#include "core/ops/functorch/functorch_table.h"

#include <algorithm>

#include "core/base/check.h"
#include "core/base/raise.h"
#include "core/ops/record/operator_program.h"

namespace partita {
namespace {

struct FunctorchRow {
  std::string_view op;
  bool widens;  ///< half types are computed in float32
  std::string_view program;
  std::string_view option = {};  ///< the row is for calls of approximate=option
};

// aten.is_same_size gives no value of a graph. The operators of cuDNN need a device that no graph here has.
constexpr FunctorchRow functorch_rows[] = {
    {"aten.detach.default", false, "aten.alias.default(self)"},
    {"aten.gelu_backward.default", true,
     "near = aten.mul.Tensor(aten.add.Tensor(erf(aten.mul.Tensor(self, 0.7071067811865476)), 1), 0.5); "
     "bell = exp(aten.mul.Tensor(aten.mul.Tensor(self, self), -0.5)); "
     "slope = aten.mul.Tensor(self, aten.mul.Tensor(bell, 0.3989422804014327)); "
     "aten.mul.Tensor(grad_output, aten.add.Tensor(near, slope))",
     "none"},
    {"aten.gelu_backward.default", true,
     "square = aten.mul.Tensor(self, self); "
     "cube = aten.mul.Tensor(aten.mul.Tensor(square, self), 0.044715); "
     "t = tanh(aten.mul.Tensor(aten.add.Tensor(self, cube), 0.7978845608028654)); "
     "half = aten.mul.Tensor(self, 0.5); "
     "left = aten.mul.Tensor(aten.add.Tensor(t, 1), 0.5); "
     "slope = aten.rsub.Scalar(aten.mul.Tensor(t, t), 1); "
     "inner = aten.mul.Tensor(aten.add.Tensor(aten.mul.Tensor(square, 0.134145), 1), 0.7978845608028654); "
     "right = aten.mul.Tensor(aten.mul.Tensor(half, slope), inner); "
     "aten.mul.Tensor(grad_output, aten.add.Tensor(left, right))",
     "tanh"},
    {"aten.leaky_relu_backward.default", true,
     "where(aten.gt.Scalar(self, 0), grad_output, aten.mul.Tensor(grad_output, negative_slope))"},
    {"aten.sigmoid_backward.default", true,
     "slope = aten.mul.Tensor(output, aten.rsub.Scalar(output, 1)); "
     "aten.mul.Tensor(grad_output, aten._conj_physical.default(slope) if is_complex(slope) else slope)"},
    {"aten.threshold_backward.default", false, "where(aten.le.Scalar(self, threshold), 0, grad_output)"},
    {"aten.hardtanh_backward.default", true,
     "outside = aten.bitwise_or.Tensor(aten.le.Scalar(self, min_val), aten.ge.Scalar(self, max_val)); "
     "where(outside, 0.0, grad_output)"},
    {"aten.hardsigmoid_backward.default", true,
     "inside = aten.bitwise_and.Tensor(aten.gt.Scalar(self, -3.0), aten.lt.Scalar(self, 3.0)); "
     "where(inside, aten.mul.Tensor(grad_output, 0.16666666666666666), 0.0)"},
    {"aten.hardswish_backward.default", true,
     "low = aten.le.Scalar(self, -3); middle = aten.lt.Scalar(self, 3); "
     "slope = aten.mul.Tensor(grad_output, aten.add.Tensor(aten.div.Tensor(self, 3), 0.5)); "
     "where(low, 0.0, where(middle, slope, grad_output))"},
    {"aten.tanh_backward.default", true,
     "slope = aten.rsub.Scalar(aten.mul.Tensor(output, output), 1); "
     "aten.mul.Tensor(grad_output, aten._conj_physical.default(slope) if is_complex(slope) else slope)"},
    {"aten.silu_backward.default", true,
     "s = sigmoid(self); left = aten.mul.Tensor(grad_output, s); "
     "aten.mul.Tensor(left, aten.add.Tensor(aten.mul.Tensor(self, aten.rsub.Scalar(s, 1)), 1))"},
    {"aten.elu_backward.default", true,
     "low = aten.le.Scalar(self_or_result, 0); "
     "slope = aten.mul.Tensor(aten.mul.Tensor(grad_output, input_scale), aten.add.Tensor(self_or_result, alpha * "
     "scale)) if is_result else aten.mul.Tensor(aten.mul.Tensor(aten.mul.Tensor(grad_output, input_scale), alpha * "
     "scale), exp(aten.mul.Tensor(self_or_result, input_scale))); "
     "where(low, slope, aten.mul.Tensor(grad_output, scale))"},
    {"aten.masked_fill.Scalar", false, "where(mask, value, self)"},
    {"aten.masked_fill.Tensor", false, "where(mask, value, self)"},
    {"aten.elu.default", true,
     "high = aten.gt.Scalar(self, 0); linear = aten.mul.Tensor(self, scale); "
     "where(high, linear, aten.mul.Tensor(expm1(aten.mul.Tensor(self, input_scale)), alpha * scale))"},
    {"aten.leaky_relu.default", true, "where(aten.gt.Scalar(self, 0), self, aten.mul.Tensor(self, negative_slope))"},
    {"aten.hardtanh.default", true, "clamp(self, min_val, max_val)"},
    {"aten.hardswish.default", true,
     "aten.div.Tensor(aten.mul.Tensor(self, clamp(clamp(aten.add.Tensor(self, 3), 0), None, 6)), 6)"},
    {"aten.hardsigmoid.default", true, "aten.div.Tensor(clamp(clamp(aten.add.Tensor(self, 3), 0), None, 6), 6)"},
    {"aten.conj_physical.default", false, "aten._conj_physical.default(self) if is_complex(self) else self"},
};

}  // namespace

bool in_functorch_table(const Op* op) {
  return std::ranges::any_of(functorch_rows, [&](const FunctorchRow& row) { return row.op == op->name; });
}

Result<Arg> decompose_by_functorch_table(Node& call) {
  const Schema* schema = find_schema(call.op());
  CHECK(schema, "the table has operators of ATen");
  TRY(Args bound, bind_arguments(*schema, call.args(), call.kwargs()));
  const int option = schema->index_of("approximate");
  const auto fits = [&](const FunctorchRow& row) {
    return row.op == call.op()->name &&
           (row.option.empty() || bound[static_cast<std::size_t>(option)] == Arg(std::string(row.option)));
  };
  const auto row = std::ranges::find_if(functorch_rows, fits);
  if (row == std::end(functorch_rows)) return Arg(&call);
  return catch_raised<Arg>([&]() -> Arg {
    Builder build(call.graph(), &call, call.origin);
    const auto cast = [&](const Arg& value, DType to) {
      return Arg(build.call("aten._to_copy.default", {value}, {{"dtype", to}}));
    };
    const DType given = call.meta.tensor() ? call.meta.tensor()->dtype : DType::Float32;
    const bool widens = row->widens && opmath_dtype(given) != given;
    for (Arg& a : bound)
      if (const Node* n = a.node(); n && widens && n->meta.tensor()) a = cast(a, opmath_dtype(given));
    DecomposeCall decomposed(*schema, std::move(bound), build);
    const Arg value = build_program(decomposed, row->program);
    const TensorMeta* made = value.node() ? value.node()->meta.tensor() : nullptr;
    return made && made->dtype != given ? cast(value, given) : value;
  });
}

}  // namespace partita

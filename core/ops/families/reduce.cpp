// Reductions. Fakes are row-major; kernels run in double (int64, complex<double>) and round once, but for sums.
#include "core/ops/families/lower_reduce.h"
#include "core/ops/families/reduce_parts.h"
#include "core/ops/kernels/cascade_sum.h"
#include "core/ops/record/formula_functions.h"
#include "core/ops/record/record.h"

namespace partita {
namespace {
using namespace loops;

LoweredTensor logical(LowerCall& call, ScalarOp op) {
  LoweredTensor self = call.in("self");
  return call.to.reduce(call.to.cast(self, DType::Bool), op, reduced_dims(call, self.dim()));
}

void lower_sum(LowerCall& call) {
  LoweredTensor x = summand(call, call.out().dtype);
  call.give(call.to.reduce(x, ScalarOp::Add, reduced_dims(call, x.dim())));
}

/// With dtype a half type, the elements are not rounded to it before they are added.
void lower_mean(LowerCall& call) {
  LoweredTensor x = call.to.cast(call.in("self"), opmath_dtype(call.out().dtype));
  std::vector<bool> reduced = reduced_dims(call, x.dim());
  call.give(divided(call.to, call.to.reduce(x, ScalarOp::Add, reduced), count(x, reduced)));
}

void lower_prod(LowerCall& call) {
  LoweredTensor x = summand(call, call.out().dtype);
  call.give(call.to.reduce(x, ScalarOp::Mul, reduced_dims(call, x.dim())));
}

void lower_nansum(LowerCall& call) {
  LoweredTensor x = summand(call, call.out().dtype);
  LoweredTensor numbers = pointwise(call.to, x.dtype, x.dtype, {x}, [](ScalarBuilder& b, auto v) {
    return b.where(b.Ne(v[0], v[0]), b.constant(b.dtype(v[0]), 0), v[0]);
  });
  call.give(call.to.reduce(numbers, ScalarOp::Add, reduced_dims(call, x.dim())));
}

void lower_count_nonzero(LowerCall& call) {
  LoweredTensor self = call.in("self");
  LoweredTensor ones = call.to.cast(call.to.cast(self, DType::Bool), DType::Int64);
  call.give(call.to.reduce(ones, ScalarOp::Add, reduced_dims(call, self.dim())));
}

void lower_any(LowerCall& call) {
  call.give(logical(call, ScalarOp::BitOr));
}

void lower_all(LowerCall& call) {
  call.give(logical(call, ScalarOp::BitAnd));
}

/// Sums and means in single precision are added in PyTorch's order and equal PyTorch's bit by bit. Others are rounded
/// once.
template <DType (*rule)(DType, std::optional<DType>), auto value>
Value eval_sum(EvalCall& call) {
  const Tensor& self = call.tensor("self");
  const DType type = self.dtype;
  if ((type != DType::Float32 && type != DType::Complex64) || rule(type, dtype_argument(call)) != type)
    return eval<rule, value>(call);
  Tensor out = result_of(call, type);
  const std::vector<bool> reduced = reduced_dims(call, self.sizes.size());
  const std::int64_t terms = out.numel() == 0 ? 0 : self.numel() / out.numel();
  auto run = [&]<class T>(T* sums) {
    kernels::cascade_sum(self, reduced, sums);
    if (rule != mean_dtype) return;
    const auto count = static_cast<float>(terms);
    for (std::int64_t i : steps(out.numel()))
      // PyTorch multiplies complex sums by 1 / count.
      sums[i] = is_complex_type<T>::value ? sums[i] * (1 / count) : sums[i] / count;
  };
  if (type == DType::Float32)
    run(out.as<float>());
  else
    run(out.as<std::complex<float>>());
  return out;
}

}  // namespace

void add_reductions(OpTable& t, std::span<const ReductionRow> rows) {
  for (const ReductionRow& row : rows) {
    OpRecord record{.fake = row.fake,
                    .eval = row.eval,
                    .autograd = {.not_differentiable = row.derivative.empty()},
                    .lower = row.lower,
                    .cost = {.recomputable = row.recomputable}};
    if (!row.derivative.empty()) record.autograd.derivative = {{"self", row.derivative}};
    t.add(row.name, std::move(record));
  }
}

void register_reduce(OpTable& t) {
  t.default_family = Family::Reduction;
  const ReductionRow rows[] = {
      {"aten.sum.default", fake<sum_dtype>, eval_sum<sum_dtype, sum_of_line>, "expand(grad, sizes(self))", lower_sum,
       true},
      {"aten.sum.dim_IntList", fake<sum_dtype>, eval_sum<sum_dtype, sum_of_line>,
       "sum_backward(grad, self, dim, keepdim)", lower_sum, true},
      {"aten.nansum.default", fake<sum_dtype>, nullptr,
       "sum_backward(grad, self, dim, keepdim) * logical_not(isnan(self))", lower_nansum},
      {"aten.prod.default", fake<sum_dtype>, nullptr, "prod_backward(grad, self, result)", lower_prod},
      {"aten.prod.dim_int", fake<sum_dtype>, nullptr, "prod_backward(grad, self, result, dim, keepdim)", lower_prod},
      {"aten.mean.default", fake<mean_dtype>, eval_sum<mean_dtype, mean>, "mean_backward(grad, self, None, False)",
       lower_mean, true},
      {"aten.mean.dim", fake<mean_dtype>, eval_sum<mean_dtype, mean>, "mean_backward(grad, self, dim, keepdim)",
       lower_mean, true},
      {"aten.any.default", fake<truth_dtype>, nullptr, "", lower_any, true},
      {"aten.any.dim", fake<truth_dtype>, nullptr, "", lower_any, true},
      {"aten.any.dims", fake<truth_dtype>, nullptr, "", lower_any, true},
      {"aten.all.default", fake<truth_dtype>, nullptr, "", lower_all},
      {"aten.all.dim", fake<truth_dtype>, nullptr, "", lower_all},
      {"aten.all.dims", fake<truth_dtype>, nullptr, "", lower_all},
      {"aten.count_nonzero.default", fake<index_dtype>, nullptr, "", lower_count_nonzero},
      {"aten.count_nonzero.dim_IntList", fake<index_dtype>, nullptr, "", lower_count_nonzero},
  };
  add_reductions(t, rows);
}

}  // namespace partita

// Running sums, products and extremes along one dimension.
#include <limits>

#include "core/ops/families/log_add_exp.h"
#include "core/ops/families/reduce_kernels.h"
#include "core/ops/families/reduce_parts.h"
#include "core/ops/kernels/wrapping.h"
#include "core/ops/record/record.h"
#include "core/ops/record/values.h"

namespace partita {
namespace {

DType scan_dtype(DType self, std::optional<DType> asked) {
  if (asked) return *asked;
  return is_integral(self) || self == DType::Bool ? DType::Int64 : self;
}

Meta fake_sum(FakeCall& call) {
  const TensorMeta& self = call.tensor("self");
  wrap_dim(call.integer("dim"), self.dim());
  return TensorMeta::contiguous(scan_dtype(self.dtype, call.dtype("dtype")), self.sizes, self.device);
}

/// Calls f(offset in a, offset in b, length, stride in a, stride in b) for every line along `dim` of two tensors of the
/// same sizes.
void along(const Tensor& a, const Tensor& b, std::int64_t dim, auto f) {
  std::size_t rank = a.sizes.size();
  if (rank == 0) return f(0, 0, 1, 1, 1);
  std::size_t d = wrap_dim(dim, rank);
  if (a.numel() == 0) return;
  Tensor outer_a = a, outer_b = b;
  outer_a.sizes[d] = outer_b.sizes[d] = 1;
  std::vector<std::int64_t> starts;
  Line(outer_b.sizes, outer_b.strides).each([&](std::int64_t at) { starts.push_back(at); });
  std::size_t i = 0;
  Line(outer_a.sizes, outer_a.strides).each([&](std::int64_t at) {
    f(at, starts[i++], a.sizes[d], a.strides[d], b.strides[d]);
  });
}

template <bool products>
Value eval_sum(EvalCall& call) {
  Tensor self = call.tensor("self"), out = empty_of(call, fake_sum);
  if (self.dtype != out.dtype) self = unwrap(self.to(out.dtype));
  dispatch(out.dtype, [&]<class T>() {
    along(self, out, call.integer("dim"), [&](auto from, auto to, auto n, auto step, auto out_step) {
      AccumulateType<T> total = products ? 1 : 0;
      for (std::int64_t i : steps(n)) {
        auto v = convert<AccumulateType<T>>(self.as<T>()[from + i * step]);
        if constexpr (products)
          total = kernels::wrapping_product(total, v);
        else
          total = kernels::wrapping_sum(total, v);
        out.as<T>()[to + i * out_step] = convert<T>(total);
      }
    });
  });
  return out;
}

Meta fake_extreme(FakeCall& call) {
  const TensorMeta& self = call.tensor("self");
  wrap_dim(call.integer("dim"), self.dim());
  MetaTuple out;
  out.items.emplace_back(TensorMeta::contiguous(self.dtype, self.sizes, self.device));
  out.items.emplace_back(TensorMeta::contiguous(DType::Int64, self.sizes, self.device));
  return out;
}

/// cummax and cummin: of equal elements the last wins. From the first NaN on, the values are NaN.
template <bool greatest>
Value eval_extreme(EvalCall& call) {
  const Tensor& self = call.tensor("self");
  Tensor values = unwrap(Tensor::empty(self.dtype, self.sizes)),
         indices = unwrap(Tensor::empty(DType::Int64, self.sizes));
  dispatch(self.dtype, [&]<class T>() {
    if constexpr (is_complex_type<T>::value) {
      fail("cummax and cummin of complex numbers are not defined");
    } else {
      along(self, values, call.integer("dim"), [&](auto from, auto to, auto n, auto step, auto out_step) {
        Comparable<T> best{};
        std::int64_t where = 0;
        for (std::int64_t i : steps(n)) {
          auto v = convert<Comparable<T>>(self.as<T>()[from + i * step]);
          if (i == 0 || is_nan(v) || (!is_nan(best) && (greatest ? v >= best : v <= best))) {
            best = v;
            where = i;
          }
          values.as<T>()[to + i * out_step] = convert<T>(best);
          indices.as<std::int64_t>()[to + i * out_step] = where;
        }
      });
    }
  });
  return ValueList{values, indices};
}

Meta fake_logcumsumexp(FakeCall& call) {
  const TensorMeta& self = call.tensor("self");
  wrap_dim(call.integer("dim"), self.dim());
  return TensorMeta::contiguous(self.dtype, self.sizes, self.device);
}

Value eval_logcumsumexp(EvalCall& call) {
  const Tensor& self = call.tensor("self");
  if (!is_floating(self.dtype) && !is_complex(self.dtype))
    fail_unsupported("logcumsumexp of " + std::string(torch_name(self.dtype)));
  Tensor out = unwrap(Tensor::empty(self.dtype, self.sizes));
  dispatch(self.dtype, [&]<class T>() {
    if constexpr (!is_integral_type<T>) {
      using Wide = std::conditional_t<is_complex_type<T>::value, std::complex<double>, double>;
      along(self, out, call.integer("dim"), [&](auto from, auto to, auto n, auto step, auto out_step) {
        Wide total = -std::numeric_limits<double>::infinity();
        for (std::int64_t i : steps(n)) {
          total = kernels::log_add_exp(total, convert<Wide>(self.as<T>()[from + i * step]));
          out.as<T>()[to + i * out_step] = convert<T>(total);
        }
      });
    }
  });
  return out;
}

}  // namespace

void register_scan(OpTable& t) {
  t.default_family = Family::Reduction;
  t.add("aten.cumsum.default", fake_sum, eval_sum<false>, {{"self", "cumsum_backward(grad, dim)"}},
        {.library = LibraryRoutine::Cumsum});
  t.add("aten.cumprod.default", fake_sum, eval_sum<true>, {{"self", "cumprod_backward(grad, self, dim, result)"}},
        {.library = LibraryRoutine::Cumprod});
  t.add("aten.cummax.default", fake_extreme, eval_extreme<true>,
        {{"self", "scatter_add(zeros_like(self), dim, result1, grad)"}}, {.library = LibraryRoutine::Cummax});
  t.add("aten.cummin.default", fake_extreme, eval_extreme<false>,
        {{"self", "scatter_add(zeros_like(self), dim, result1, grad)"}}, {.library = LibraryRoutine::Cummin});
  t.add("aten.logcumsumexp.default", fake_logcumsumexp, eval_logcumsumexp,
        {{"self", "logcumsumexp_backward(grad, self, result, dim)"}}, {.library = LibraryRoutine::Logcumsumexp});
}

}  // namespace partita

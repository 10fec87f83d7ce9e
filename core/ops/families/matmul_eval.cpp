#include "core/ops/families/matmul.h"
#include "core/ops/kernels/gemm.h"
#include "core/ops/kernels/outputs.h"
#include "core/ops/record/layout.h"

namespace partita {

namespace {

using namespace kernels;

/// The matrix of batch entry i; the tensor itself when it has two dimensions.
template <class T>
MatrixView<T> matrix(const Tensor& t, std::int64_t i = 0) {
  std::size_t d = t.sizes.size();
  const T* data = t.as<T>() + (d == 3 ? i * t.strides[0] : 0);
  return {data, t.strides[d - 2], t.strides[d - 1]};
}

/// A strided operand in the computation dtype. It is copied only when its dtype differs.
Tensor operand(const Tensor& t, DType dtype) {
  return t.dtype == dtype ? t : load(t, dtype);
}

Sizes product_sizes(const Tensor& a, const Tensor& b) {
  const std::size_t d = a.sizes.size();
  Sizes sizes = a.sizes;
  sizes[d - 1] = b.sizes[d - 1];
  return sizes;
}

/// Row-major a @ b in the accumulator's dtype, for matrices and for batches of them.
Tensor multiply(const Tensor& left, const Tensor& right) {
  const DType dtype = evaluation_dtype(left.dtype);
  const Tensor a = operand(left, dtype), b = operand(right, dtype);
  Tensor out = empty(accumulate_dtype(dtype), product_sizes(a, b));
  const std::size_t d = a.sizes.size();
  const std::int64_t m = a.sizes[d - 2], k = a.sizes[d - 1], n = b.sizes[d - 1];
  dispatch_compute(dtype, "addmm_impl_cpu_", [&]<class T>() {
    for (std::int64_t i = 0, batch = d == 3 ? a.sizes[0] : 1; i < batch; ++i)
      gemm(m, n, k, matrix<T>(a, i), matrix<T>(b, i), out.as<AccumulateType<T>>() + i * m * n, n);
  });
  return out;
}

template <class T>
T as(const Number& n) {
  if constexpr (std::is_same_v<T, std::int64_t>)
    return as_int(n);
  else if constexpr (std::is_floating_point_v<T>)
    return static_cast<T>(as_double(n));
  else {
    const auto* z = std::get_if<std::complex<double>>(&n);
    return z ? T(*z) : T(static_cast<typename T::value_type>(as_double(n)));
  }
}

/// Whether self is read. With beta = 0 it is not, so NaNs in it have no effect.
bool reads_self(const EvalCall& c) {
  return as<std::complex<double>>(c.number("beta")) != 0.0;
}

/// beta * self, expanded to `sizes`, in a tensor of its own.
Tensor scaled_addend(const EvalCall& c, DType dtype, const Sizes& sizes) {
  if (!reads_self(c)) return zeros(dtype, sizes);
  Tensor self = load(c.tensor("self"), dtype);
  const std::size_t lead = sizes.size() - self.sizes.size();
  Sizes strides(sizes.size(), 0);
  for (std::size_t i = 0; i < self.sizes.size(); ++i) strides[lead + i] = self.sizes[i] == 1 ? 0 : self.strides[i];
  Tensor addend = empty(dtype, sizes);
  addend.copy_from(self.view_as(sizes, strides, self.offset));
  dispatch_compute(dtype, "addmm_impl_cpu_", [&]<class T>() {
    const T beta = as<T>(c.number("beta"));
    T* values = addend.as<T>();
    if (beta != T(1))
      for (std::int64_t i : steps(addend.numel())) values[i] = kernels::multiply_add(T(0), beta, values[i]);
  });
  return addend;
}

/// beta * self + alpha * product. Whether NaNs of the product count where alpha is 0, `reads_product` says.
Tensor add_scaled(const EvalCall& c, const Tensor& product, bool reads_product = false) {
  Tensor sum = scaled_addend(c, product.dtype, product.sizes);
  dispatch_compute(product.dtype, "addmm_impl_cpu_", [&]<class T>() {
    const T alpha = as<T>(c.number("alpha"));
    if (alpha == T(0) && !reads_product) return;
    T* values = sum.as<T>();
    const T* products = product.as<T>();
    for (std::int64_t i : steps(sum.numel())) values[i] = kernels::multiply_add(values[i], alpha, products[i]);
  });
  return sum;
}

Value store(const EvalCall& c, Meta (*fake)(FakeCall&), const Tensor& result) {
  Tensor out = allocate(c, fake);
  if (out.dtype == result.dtype && out.is_contiguous()) return result.view_as(out.sizes, out.strides, result.offset);
  out.copy_from(result.view_as(out.sizes, row_major_strides(out.sizes), result.offset));
  return out;
}

/// A vector as a matrix with one row or one column.
Tensor as_row(const Tensor& v) {
  return v.view_as({1, v.sizes[0]}, {0, v.strides[0]}, v.offset);
}
Tensor as_column(const Tensor& v) {
  return v.view_as({v.sizes[0], 1}, {v.strides[0], 0}, v.offset);
}

Tensor multiply_vector(const Tensor& matrix, const Tensor& vec) {
  const Tensor product = multiply(matrix, as_column(vec));
  return product.view_as({product.sizes[0]}, {1}, 0);
}

/// sum of a[i] b[i]
Tensor inner(const Tensor& a, const Tensor& b) {
  return multiply(as_row(a), as_column(b)).view_as({}, {}, 0);
}

}  // namespace

Value eval_int_mm(EvalCall& c) {
  return store(c, fake_int_mm, multiply(c.tensor("self"), c.tensor("mat2")));
}

Value eval_mm(EvalCall& c) {
  return store(c, fake_mm, multiply(c.tensor("self"), c.tensor("mat2")));
}
Value eval_bmm(EvalCall& c) {
  return store(c, fake_bmm, multiply(c.tensor("self"), c.tensor("mat2")));
}

Value eval_addmm(EvalCall& c) {
  return store(c, fake_addmm, add_scaled(c, multiply(c.tensor("mat1"), c.tensor("mat2"))));
}

Value eval_baddbmm(EvalCall& c) {
  return store(c, fake_baddbmm, add_scaled(c, multiply(c.tensor("batch1"), c.tensor("batch2"))));
}

Value eval_addbmm(EvalCall& c) {
  const Tensor products = multiply(c.tensor("batch1"), c.tensor("batch2"));
  Tensor sum = zeros(products.dtype, {products.sizes[1], products.sizes[2]});
  dispatch_compute(sum.dtype, "addbmm", [&]<class T>() {
    for (std::int64_t i = 0, n = sum.numel(); i < products.numel(); ++i)
      sum.as<T>()[i % n] = kernels::multiply_add(sum.as<T>()[i % n], T(1), products.as<T>()[i]);
  });
  return store(c, fake_addbmm, add_scaled(c, sum));
}

Value eval_dot(EvalCall& c) {
  return store(c, fake_dot, inner(c.tensor("self"), c.tensor("tensor")));
}

Value eval_vdot(EvalCall& c) {
  Tensor a = unwrap(c.tensor("self").clone());
  if (is_complex(a.dtype))
    dispatch_compute(a.dtype, "vdot", [&]<class T>() {
      if constexpr (!std::is_arithmetic_v<T>)
        for (std::int64_t i : steps(a.numel())) a.as<T>()[i] = std::conj(a.as<T>()[i]);
    });
  return store(c, fake_vdot, inner(a, c.tensor("other")));
}

Value eval_mv(EvalCall& c) {
  return store(c, fake_mv, multiply_vector(c.tensor("self"), c.tensor("vec")));
}

Value eval_addmv(EvalCall& c) {
  return store(c, fake_addmv, add_scaled(c, multiply_vector(c.tensor("mat"), c.tensor("vec"))));
}

Value eval_addr(EvalCall& c) {
  const Tensor &x = c.tensor("vec1"), &y = c.tensor("vec2");
  const DType dtype = promote(c.tensor("self").dtype, promote(x.dtype, y.dtype));
  return store(c, fake_addr, add_scaled(c, multiply(as_column(load(x, dtype)), as_row(load(y, dtype))), true));
}

}  // namespace partita

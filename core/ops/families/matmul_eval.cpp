#include "core/ops/families/matmul.h"
#include "core/ops/kernels/gemm.h"
#include "core/ops/kernels/outputs.h"
#include "core/ops/layout.h"

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

/// out = alpha a @ b, or out += alpha a @ b when `accumulate`. `out` is row-major.
template <class T>
void multiply_into(const Tensor& a, const Tensor& b, Tensor& out, bool accumulate, T alpha) {
  const std::size_t d = a.sizes.size();
  const std::int64_t m = a.sizes[d - 2], k = a.sizes[d - 1], n = b.sizes[d - 1];
  if (d == 2) return gemm(m, n, k, matrix<T>(a), matrix<T>(b), out.as<T>(), n, accumulate, alpha);
  for (std::int64_t i = 0; i < a.sizes[0]; ++i)
    batch_gemm(m, n, k, matrix<T>(a, i), matrix<T>(b, i), out.as<T>() + i * m * n, n, accumulate, alpha);
}

/// Row-major a @ b in the computation dtype, for matrices and for batches of them.
Tensor multiply(const Tensor& left, const Tensor& right) {
  DType dtype = arithmetic_dtype(left.dtype);
  Tensor a = operand(left, dtype), b = operand(right, dtype);
  Tensor out = empty(dtype, product_sizes(a, b));
  dispatch_compute(dtype, "addmm_impl_cpu_", [&]<class T>() { multiply_into<T>(a, b, out, false, T(1)); });
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
      for (std::int64_t i = 0, n = addend.numel(); i < n; ++i) values[i] = kernels::multiply_add(T(0), beta, values[i]);
  });
  return addend;
}

/// beta * self + alpha * product
Tensor add_scaled(const EvalCall& c, const Tensor& product) {
  Tensor sum = scaled_addend(c, product.dtype, product.sizes);
  dispatch_compute(product.dtype, "addmm_impl_cpu_", [&]<class T>() {
    const T alpha = as<T>(c.number("alpha"));
    T* values = sum.as<T>();
    const T* products = product.as<T>();
    for (std::int64_t i = 0, n = sum.numel(); i < n; ++i)
      values[i] = kernels::multiply_add(values[i], alpha, products[i]);
  });
  return sum;
}

/// beta * self + alpha * left @ right. BLAS adds the product to beta * self; for half types the product is computed
/// first and the sum is separate.
Tensor multiply_onto_self(const EvalCall& c, const Tensor& left, const Tensor& right) {
  const DType dtype = arithmetic_dtype(left.dtype);
  if (dtype != left.dtype) return add_scaled(c, multiply(left, right));
  Tensor sum = scaled_addend(c, dtype, product_sizes(left, right));
  dispatch_compute(dtype, "addmm_impl_cpu_",
                   [&]<class T>() { multiply_into<T>(left, right, sum, reads_self(c), as<T>(c.number("alpha"))); });
  return sum;
}

Value store(const EvalCall& c, Meta (*fake)(FakeCall&), const Tensor& result) {
  Tensor out = allocate(c, fake);
  if (out.dtype == result.dtype && out.is_contiguous()) return result.view_as(out.sizes, out.strides, result.offset);
  out.copy_from(result.view_as(out.sizes, row_major_strides(out.sizes), result.offset));
  return out;
}

Tensor inner(const Tensor& left, const Tensor& right) {
  const DType dtype = arithmetic_dtype(left.dtype);
  const Tensor a = operand(left, dtype), b = operand(right, dtype);
  Tensor out = empty(dtype, {});
  dispatch_compute(dtype, "dot", [&]<class T>() {
    *out.as<T>() = kernels::dot(a.numel(), a.as<T>(), a.strides[0], b.as<T>(), b.strides[0]);
  });
  return out;
}

/// alpha matrix @ vec, added to `out` when `accumulate`.
void multiply_vector(const Tensor& matrix_, const Tensor& vec, Tensor& out, bool accumulate, const Number& alpha) {
  const Tensor a = operand(matrix_, out.dtype), x = operand(vec, out.dtype);
  dispatch_compute(out.dtype, "addmv_impl_cpu", [&]<class T>() {
    gemv(a.sizes[0], a.sizes[1], matrix<T>(a), x.as<T>(), x.strides[0], out.as<T>(), accumulate, as<T>(alpha));
  });
}

/// A vector as a matrix with one row or one column.
Tensor as_row(const Tensor& v) {
  return v.view_as({1, v.sizes[0]}, {0, v.strides[0]}, v.offset);
}
Tensor as_column(const Tensor& v) {
  return v.view_as({v.sizes[0], 1}, {v.strides[0], 0}, v.offset);
}

}  // namespace

Value eval_mm(EvalCall& c) {
  return store(c, fake_mm, multiply(c.tensor("self"), c.tensor("mat2")));
}
Value eval_bmm(EvalCall& c) {
  return store(c, fake_bmm, multiply(c.tensor("self"), c.tensor("mat2")));
}

Value eval_addmm(EvalCall& c) {
  return store(c, fake_addmm, multiply_onto_self(c, c.tensor("mat1"), c.tensor("mat2")));
}

Value eval_baddbmm(EvalCall& c) {
  return store(c, fake_baddbmm, multiply_onto_self(c, c.tensor("batch1"), c.tensor("batch2")));
}

/// Adds the products one after the other to beta * self, as PyTorch's loop over addmm_ does. Half types round after
/// each.
Value eval_addbmm(EvalCall& c) {
  const Tensor &left = c.tensor("batch1"), &right = c.tensor("batch2");
  const DType dtype = arithmetic_dtype(left.dtype);
  const bool half = left.dtype == DType::Float16 || left.dtype == DType::BFloat16;
  const Tensor a = operand(left, dtype), b = operand(right, dtype);
  const std::int64_t batch = a.sizes[0], m = a.sizes[1], k = a.sizes[2], n = b.sizes[2];
  Tensor sum = scaled_addend(c, dtype, {m, n}), product = half ? empty(dtype, {m, n}) : Tensor();
  dispatch_compute(dtype, "addbmm", [&]<class T>() {
    const T alpha = as<T>(c.number("alpha"));
    T* total = sum.as<T>();
    for (std::int64_t i = 0; i < batch; ++i) {
      if (!half) {
        gemm(m, n, k, matrix<T>(a, i), matrix<T>(b, i), total, n, true, alpha);
        continue;
      }
      T* term = product.as<T>();
      gemm(m, n, k, matrix<T>(a, i), matrix<T>(b, i), term, n);
      for (std::int64_t j = 0; j < m * n; ++j) total[j] = rounded(left.dtype, total[j] + alpha * term[j]);
    }
  });
  return store(c, fake_addbmm, sum);
}

Value eval_dot(EvalCall& c) {
  return store(c, fake_dot, inner(c.tensor("self"), c.tensor("tensor")));
}

Value eval_vdot(EvalCall& c) {
  Tensor a = unwrap(c.tensor("self").clone());
  if (is_complex(a.dtype))
    dispatch_compute(a.dtype, "vdot", [&]<class T>() {
      if constexpr (!std::is_arithmetic_v<T>)
        for (std::int64_t i = 0; i < a.numel(); ++i) a.as<T>()[i] = std::conj(a.as<T>()[i]);
    });
  return store(c, fake_vdot, inner(a, c.tensor("other")));
}

Value eval_mv(EvalCall& c) {
  const Tensor& self = c.tensor("self");
  Tensor product = empty(arithmetic_dtype(self.dtype), {self.sizes[0]});
  multiply_vector(self, c.tensor("vec"), product, false, Number(1.0));
  return store(c, fake_mv, product);
}

Value eval_addmv(EvalCall& c) {
  const Tensor& mat = c.tensor("mat");
  Tensor sum = scaled_addend(c, arithmetic_dtype(mat.dtype), {mat.sizes[0]});
  multiply_vector(mat, c.tensor("vec"), sum, reads_self(c), c.number("alpha"));
  return store(c, fake_addmv, sum);
}

/// For half types PyTorch rounds beta, alpha, every product and the sum to the result's dtype.
Value eval_addr(EvalCall& c) {
  DType result = promote(c.tensor("self").dtype, promote(c.tensor("vec1").dtype, c.tensor("vec2").dtype));
  DType dtype = arithmetic_dtype(result);
  if (dtype == result || dtype == DType::Int64) {
    Tensor product = multiply(as_column(load(c.tensor("vec1"), dtype)), as_row(load(c.tensor("vec2"), dtype)));
    return store(c, fake_addr, add_scaled(c, product));
  }
  auto step = [&](double v) { return rounded(result, static_cast<float>(v)); };
  const float beta = step(as_double(c.number("beta"))), alpha = step(as_double(c.number("alpha")));
  Tensor x = load(c.tensor("vec1"), dtype), y = load(c.tensor("vec2"), dtype), self = load(c.tensor("self"), dtype);
  const std::int64_t rows = x.numel(), columns = y.numel();
  auto stride = [&](std::int64_t from_last) {
    const std::int64_t d = self.dim() - from_last;
    return d < 0 || self.sizes[static_cast<std::size_t>(d)] == 1 ? 0 : self.strides[static_cast<std::size_t>(d)];
  };
  Tensor out = empty(dtype, {rows, columns});
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j) {
      const float product = rounded(result, rounded(result, alpha * x.as<float>()[i]) * y.as<float>()[j]);
      const float addend = beta == 0 ? 0 : rounded(result, beta * self.as<float>()[i * stride(2) + j * stride(1)]);
      out.as<float>()[i * columns + j] = addend + product;
    }
  return store(c, fake_addr, out);
}

}  // namespace partita

#include "core/ops/kernels/gemm_narrow.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

namespace partita::kernels {

namespace {

template <class T>
bool is_row_major(const MatrixView<T>& v, std::int64_t columns) {
  return v.column_stride == 1 && v.row_stride >= std::max<std::int64_t>(1, columns);
}

/// May BLAS read it by columns? Whatever it can read neither by rows nor by columns PyTorch copies, row by row.
template <class T>
bool is_column_major(const MatrixView<T>& v, std::int64_t rows) {
  return v.row_stride == 1 && v.column_stride >= std::max<std::int64_t>(1, rows);
}

/// Does BLAS get it as transposed rows?
template <class T>
bool in_columns(const MatrixView<T>& v, std::int64_t rows, std::int64_t columns) {
  return !is_row_major(v, columns) && is_column_major(v, rows);
}

/// Rows of `length` contiguous elements: the matrix's own, or a copy's.
template <class T>
class Rows {
 public:
  Rows(MatrixView<T> v, std::int64_t rows, std::int64_t length) : data_(v.data), stride_(v.row_stride) {
    if (v.column_stride == 1 || length == 1) return;
    copy_.resize(static_cast<std::size_t>(rows * length));
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < length; ++j) copy_[static_cast<std::size_t>(i * length + j)] = v.at(i, j);
    data_ = copy_.data();
    stride_ = length;
  }
  const T* operator[](std::int64_t i) const { return data_ + i * stride_; }

 private:
  std::vector<T> copy_;
  const T* data_;
  std::int64_t stride_;
};

/// Four lanes are a vector of SSE; elements from an address with this remainder to the next vector.
constexpr std::int64_t lanes = 4;
using Lanes = float __attribute__((vector_size(lanes * sizeof(float))));

std::int64_t misaligned(const float* p) {
  return static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(p) / sizeof(float) % lanes);
}

Lanes load(const float* p) {
  Lanes v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

float across(Lanes v) {
  return (v[0] + v[2]) + (v[1] + v[3]);
}

/// `head` products one by one, then vectors of lanes dealt to `sums` registers, `step` elements at a time, then the
/// rest one by one. The head's sum starts the first lane.
template <std::size_t sums, std::int64_t step>
float dot_in_lanes(std::int64_t count, const float* x, const float* y, std::int64_t head) {
  head = std::min(head, count);
  float sum = 0;
  for (std::int64_t i = 0; i < head; ++i) sum += x[i] * y[i];
  std::array<Lanes, sums> total{};
  total[0][0] = sum;
  const std::int64_t end = head + (count - head) / step * step;
  for (std::int64_t i = head, turn = 0; i < end; i += lanes, ++turn)
    total[static_cast<std::size_t>(turn) % sums] += load(x + i) * load(y + i);
  for (std::size_t s = 1; s < sums; ++s) total[0] += total[s];
  sum = across(total[0]);
  for (std::int64_t i = end; i < count; ++i) sum += x[i] * y[i];
  return sum;
}

void put(float& to, float sum, bool accumulate, float alpha) {
  to = accumulate ? to + alpha * sum : alpha * sum;
}

/// y = matrix x, of rows that are contiguous: sgemv, transposed. Four rows at a time begin where the fourth is aligned,
/// the others where x, a row, is; they are added up one by one where BLAS gets it with a stride.
void multiply_rows(std::int64_t rows, std::int64_t k, const Rows<float>& matrix, MatrixView<float> vector, float* y,
                   std::int64_t y_stride, bool accumulate, float alpha) {
  const Rows<float> contiguous(vector, 1, k);
  const float* x = contiguous[0];
  const bool strided_vector = vector.column_stride != 1 && vector.row_stride == 1;
  const std::int64_t in_fours = rows / 4 * 4;
  for (std::int64_t i = 0; i < rows; ++i) {
    const float *row = matrix[i], *aligned = i < in_fours ? matrix[i / 4 * 4 + 3] : x;
    const std::int64_t head = lanes - misaligned(aligned);
    const float sum = i < in_fours        ? dot_in_lanes<1, lanes>(k, row, x, head)
                      : strided_vector    ? dot_in_lanes<1, lanes>(k, row, x, k)
                      : i == in_fours + 1 ? dot_in_lanes<1, 2 * lanes>(k, row, x, head)
                                          : dot_in_lanes<2, 2 * lanes>(k, row, x, head);
    put(y[i * y_stride], sum, accumulate, alpha);
  }
}

/// c = a b^T of contiguous rows: each row of a meets four rows of b at a time, and begins where it is aligned.
void multiply_rows_by_rows(std::int64_t m, std::int64_t n, std::int64_t k, const Rows<float>& a, const Rows<float>& b,
                           float* c, std::int64_t c_row_stride, bool accumulate, float alpha) {
  const std::int64_t in_fours = n / 4 * 4;
  for (std::int64_t i = 0; i < m; ++i) {
    const float* row = a[i];
    const std::int64_t head = (lanes - misaligned(row)) % lanes;
    for (std::int64_t j = 0; j < n; ++j)
      put(c[i * c_row_stride + j],
          j < in_fours ? dot_in_lanes<1, lanes>(k, row, b[j], head) : dot_in_lanes<2, 2 * lanes>(k, row, b[j], head),
          accumulate, alpha);
  }
}

/// Rows of b, times elements of alpha a, are added to rows of c one after the other. In the columns before a row's
/// first aligned vector every other four of them are added up before.
void add_rows(std::int64_t m, std::int64_t n, std::int64_t k, MatrixView<float> a, MatrixView<float> b, float* c,
              std::int64_t c_row_stride, bool accumulate, float alpha) {
  const Rows<float> rows(b, k, n);
  for (std::int64_t i = 0; i < m; ++i) {
    float* row = c + i * c_row_stride;
    if (!accumulate) std::fill_n(row, n, 0.0f);
    std::int64_t head = (lanes - misaligned(row)) % lanes;
    if (n < head + lanes) head = 0;
    for (std::int64_t p = 0; p < k; ++p) {
      const float x = alpha * a.at(i, p);
      const float* from = rows[p];
      for (std::int64_t j = head; j < n; ++j) row[j] += x * from[j];
    }
    for (std::int64_t j = 0; j < head; ++j) {
      auto product = [&](std::int64_t p) { return alpha * a.at(i, p) * rows[p][j]; };
      std::int64_t p = 0;
      for (; p + 8 <= k; p += 8) {
        for (std::int64_t q = p; q < p + 4; ++q) row[j] += product(q);
        row[j] += product(p + 4) + product(p + 5) + product(p + 6) + product(p + 7);
      }
      for (; p < k; ++p) row[j] += product(p);
    }
  }
}

using Complex = std::complex<float>;

/// Four real sums, each of two halves: the first and every second product, and the others.
Complex dot_in_halves(std::int64_t count, const Complex* x, const Complex* y) {
  float real[2] = {}, imag[2] = {}, cross[2] = {}, crossed[2] = {};
  for (std::int64_t i = 0; i < count; ++i) {
    const int half = i > 0 && i % 2 == 0;
    real[half] += x[i].real() * y[i].real();
    imag[half] += x[i].imag() * y[i].imag();
    cross[half] += x[i].real() * y[i].imag();
    crossed[half] += x[i].imag() * y[i].real();
  }
  return {(real[0] + real[1]) - (imag[0] + imag[1]), (cross[0] + cross[1]) + (crossed[0] + crossed[1])};
}

/// y = columns x of a matrix [rows, k], added up four at a time with the third first: cgemv, not transposed.
void add_columns(std::int64_t rows, std::int64_t k, MatrixView<Complex> matrix, MatrixView<Complex> x, Complex* y,
                 std::int64_t y_stride, bool accumulate, Complex alpha) {
  constexpr std::int64_t order[] = {2, 0, 1, 3};
  for (std::int64_t i = 0; i < rows; ++i) {
    Complex& sum = y[i * y_stride];
    if (!accumulate) sum = 0;
    for (std::int64_t p = 0; p < k; ++p) {
      const std::int64_t at = p < k / 4 * 4 ? p / 4 * 4 + order[p % 4] : p;
      sum += matrix.at(i, at) * (alpha == 1.0f ? x.at(at, 0) : alpha * x.at(at, 0));
    }
  }
}

}  // namespace

template <class T>
void gemm_in_order(std::int64_t m, std::int64_t n, std::int64_t k, MatrixView<T> a, MatrixView<T> b, T* c,
                   std::int64_t c_row_stride, bool accumulate, T alpha) {
  std::vector<T> sums(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < m; ++i) {
    std::fill(sums.begin(), sums.end(), T(0));
    for (std::int64_t p = 0; p < k; ++p) {
      const T x = a.at(i, p);
      for (std::int64_t j = 0; j < n; ++j)
        sums[static_cast<std::size_t>(j)] = multiply_add(sums[static_cast<std::size_t>(j)], x, b.at(p, j));
    }
    T* row = c + i * c_row_stride;
    for (std::int64_t j = 0; j < n; ++j) {
      const T sum = sums[static_cast<std::size_t>(j)];
      row[j] = accumulate ? multiply_add(row[j], alpha, sum) : alpha == T(1) ? sum : multiply_add(T(0), alpha, sum);
    }
  }
}

void gemm_as_matrices(std::int64_t m, std::int64_t n, std::int64_t k, MatrixView<float> a, MatrixView<float> b,
                      float* c, std::int64_t c_row_stride, bool accumulate, float alpha) {
  if (!in_columns(b, k, n))
    add_rows(m, n, k, a, b, c, c_row_stride, accumulate, alpha);
  else if (in_columns(a, m, k))
    gemm_in_order(m, n, k, a, b, c, c_row_stride, accumulate, alpha);
  else
    multiply_rows_by_rows(m, n, k, {a, m, k}, {b.transposed(), n, k}, c, c_row_stride, accumulate, alpha);
}

bool gemm_narrow(std::int64_t m, std::int64_t n, std::int64_t k, MatrixView<float> a, MatrixView<float> b, float* c,
                 std::int64_t c_row_stride, bool accumulate, float alpha) {
  if (m >= 4 && n >= 12) return false;
  if (m == 1 && in_columns(b, k, n))
    multiply_rows(n, k, {b.transposed(), n, k}, a, c, 1, accumulate, alpha);
  else if (m > 1 && n == 1 && is_column_major(a, m))
    add_rows(m, n, k, a, b, c, c_row_stride, accumulate, alpha);
  else if (m > 1 && n == 1)
    multiply_rows(m, k, {a, m, k}, b.transposed(), c, c_row_stride, accumulate, alpha);
  else
    gemm_as_matrices(m, n, k, a, b, c, c_row_stride, accumulate, alpha);
  return true;
}

bool gemm_narrow(std::int64_t m, std::int64_t n, std::int64_t k, MatrixView<Complex> a, MatrixView<Complex> b,
                 Complex* c, std::int64_t c_row_stride, bool accumulate, Complex alpha) {
  const bool by_rows = m == 1 ? in_columns(b, k, n) : !is_column_major(a, m);
  if (m > 1 && n > 1) {
    if (n >= 4 && k >= 4) return false;
    gemm_in_order(m, n, k, a, b, c, c_row_stride, accumulate, alpha);
  } else if (!by_rows) {
    if (m == 1)
      add_columns(n, k, b.transposed(), a.transposed(), c, 1, accumulate, alpha);
    else
      add_columns(m, k, a, b, c, c_row_stride, accumulate, alpha);
  } else {
    const Rows<Complex> left(a, m, k), right(b.transposed(), n, k);
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t j = 0; j < n; ++j) {
        Complex& to = c[i * c_row_stride + j];
        const Complex sum = alpha * dot_in_halves(k, left[i], right[j]);
        to = accumulate ? to + sum : sum;
      }
  }
  return true;
}

template <>
float dot(std::int64_t count, const float* x, std::int64_t x_stride, const float* y, std::int64_t y_stride) {
  float sum = 0;
  if (x_stride != 1 || y_stride != 1 || misaligned(x) != misaligned(y)) {
    for (std::int64_t i = 0; i < count; ++i) sum += x[i * x_stride] * y[i * y_stride];
    return sum;
  }
  const std::int64_t head = std::min(count, (lanes - misaligned(y)) % lanes);
  for (std::int64_t i = 0; i < head; ++i) sum += x[i] * y[i];
  std::array<Lanes, 4> total{};
  total[0][0] = sum;
  std::int64_t i = head;
  for (std::int64_t width = 4; width > 0; width /= 2)  // registers in use: 4 while 16 elements are left, then 2, 1
    for (; i + width * lanes <= count; i += width * lanes) {
      for (std::int64_t s = 0; s < width; ++s)
        total[static_cast<std::size_t>(s)] += load(x + i + s * lanes) * load(y + i + s * lanes);
    }
  for (; i < count; ++i) total[0][0] += x[i] * y[i];
  return across(((total[0] + total[1]) + total[2]) + total[3]);
}

template <class T>
T dot(std::int64_t count, const T* x, std::int64_t x_stride, const T* y, std::int64_t y_stride) {
  T sum(0);
  for (std::int64_t i = 0; i < count; ++i) sum = multiply_add(sum, x[i * x_stride], y[i * y_stride]);
  return sum;
}

#define PARTITA_INSTANTIATE(T)                                                                            \
  template void gemm_in_order(std::int64_t, std::int64_t, std::int64_t, MatrixView<T>, MatrixView<T>, T*, \
                              std::int64_t, bool, T);
PARTITA_INSTANTIATE(float)
PARTITA_INSTANTIATE(double)
PARTITA_INSTANTIATE(std::int64_t)
PARTITA_INSTANTIATE(std::complex<float>)
PARTITA_INSTANTIATE(std::complex<double>)
#undef PARTITA_INSTANTIATE
template double dot(std::int64_t, const double*, std::int64_t, const double*, std::int64_t);
template std::int64_t dot(std::int64_t, const std::int64_t*, std::int64_t, const std::int64_t*, std::int64_t);
template std::complex<float> dot(std::int64_t, const std::complex<float>*, std::int64_t, const std::complex<float>*,
                                 std::int64_t);
template std::complex<double> dot(std::int64_t, const std::complex<double>*, std::int64_t, const std::complex<double>*,
                                  std::int64_t);

}  // namespace partita::kernels

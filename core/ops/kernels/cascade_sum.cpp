#include "core/ops/kernels/cascade_sum.h"

#include <algorithm>
#include <array>
#include <bit>

#include "core/base/progress.h"

namespace partita::kernels {

namespace {

/// One dimension of the input and the output. Strides are in elements; the output's stride is 0 along a reduced
/// dimension.
struct Dim {
  std::int64_t size, in, out;
};

/// Above 0: `a` belongs after `b`; 0: undecided (TensorIteratorBase::reorder_dimensions). Reduced dimensions come
/// first, then those with the smallest strides; the output's strides are compared before the input's.
int compare(const Dim& a, const Dim& b) {
  if ((a.out == 0) != (b.out == 0)) return b.out == 0 ? 1 : -1;
  for (const auto& [x, y] : {std::pair(a.out, b.out), std::pair(a.in, b.in)}) {
    if (x == 0 || y == 0) continue;
    if (x != y) return x < y ? -1 : 1;
    if (a.size > b.size) return 1;
  }
  return 0;
}

std::vector<Dim> arranged(const Tensor& in, const std::vector<bool>& reduced) {
  std::vector<Dim> dims;  // the last dimension first
  std::int64_t step = 1;
  for (std::size_t d = in.sizes.size(); d-- > 0;) {
    dims.push_back({in.sizes[d], in.strides[d], reduced[d] ? 0 : step});
    if (!reduced[d]) step *= in.sizes[d];
  }
  for (std::size_t i = 1; i < dims.size(); ++i)
    for (std::size_t at = i, before = i; before-- > 0;) {
      const int order = compare(dims[before], dims[at]);
      if (order < 0) break;
      if (order == 0) continue;
      std::swap(dims[before], dims[at]);
      at = before;
    }
  std::vector<Dim> merged;
  for (const Dim& d : dims) {
    Dim* last = merged.empty() ? nullptr : &merged.back();
    const bool joins =
        last && (last->size == 1 || d.size == 1 || (last->size * last->in == d.in && last->size * last->out == d.out));
    if (!joins) {
      merged.push_back(d);
      continue;
    }
    if (last->size == 1) *last = {1, d.in, d.out};
    last->size *= d.size;
  }
  return merged;
}

/// The lanes of a 256-bit vector.
template <class T>
struct Lanes {
  static constexpr std::size_t count = 32 / sizeof(T);
  std::array<T, count> values{};

  Lanes& operator+=(const Lanes& other) {
    for (std::size_t i = 0; i < count; ++i) values[i] += other.values[i];
    return *this;
  }
};

/// Sums load(i, k) over i < size, for each k < rows. Each level adds up a fixed number of sums of the level below;
/// there are four levels.
template <class V, std::size_t rows, class Load>
std::array<V, rows> sum_rows(std::int64_t size, Load load) {
  constexpr std::size_t levels = 4;
  const int log = size <= 2 ? 1 : std::bit_width(static_cast<std::uint64_t>(size - 1));
  const int power = std::max(4, log / static_cast<int>(levels));
  const std::int64_t step = std::int64_t{1} << power;
  std::array<std::array<V, rows>, levels> sums{};
  auto add = [&](std::int64_t i) {
    for (std::size_t k = 0; k < rows; ++k) sums[0][k] += load(i, static_cast<std::int64_t>(k));
  };
  std::int64_t i = 0;
  while (i + step <= size) {
    StopsLoops::check();
    for (std::int64_t end = i + step; i < end; ++i) add(i);
    for (std::size_t level = 1; level < levels; ++level) {
      for (std::size_t k = 0; k < rows; ++k) {
        sums[level][k] += sums[level - 1][k];
        sums[level - 1][k] = V{};
      }
      if (i & ((step - 1) << (static_cast<int>(level) * power))) break;
    }
  }
  for (; i < size; ++i) add(i);
  for (std::size_t level = 1; level < levels; ++level)
    for (std::size_t k = 0; k < rows; ++k) sums[0][k] += sums[level][k];
  return sums[0];
}

/// Sums one row. As in PyTorch, it is split into four rows of every fourth element.
template <class V, class Load>
V sum_row(std::int64_t size, Load load) {
  constexpr std::int64_t parts = 4;
  auto sums = sum_rows<V, parts>(size / parts, [&](std::int64_t i, std::int64_t k) { return load(i * parts + k); });
  for (std::int64_t i = size / parts * parts; i < size; ++i) sums[0] += load(i);
  for (std::size_t k = 1; k < sums.size(); ++k) sums[0] += sums[k];
  return sums[0];
}

/// Sums over `reduced` and adds the sums to the outputs along `kept`.
template <class T>
void sum_plane(const T* in, T* out, const Dim& reduced, const Dim& kept) {
  using Vector = Lanes<T>;
  constexpr std::int64_t lanes = Vector::count, rows = 4;
  auto vector_at = [](const T* from) {
    Vector v;
    std::copy_n(from, lanes, v.values.begin());
    return v;
  };
  auto put = [&](std::int64_t j, T sum) { out[j * kept.out] += sum; };
  auto sum_of = [&](std::int64_t j) {
    return sum_row<T>(reduced.size, [&](std::int64_t i) { return in[j * kept.in + i * reduced.in]; });
  };
  std::int64_t j = 0;
  if (reduced.in == 1 && reduced.size >= lanes) {
    for (; j < kept.size; ++j) {
      const T* row = in + j * kept.in;
      const Vector sums =
          sum_row<Vector>(reduced.size / lanes, [&](std::int64_t i) { return vector_at(row + i * lanes); });
      T total(0);
      for (std::int64_t i = reduced.size / lanes * lanes; i < reduced.size; ++i) total += row[i];
      for (T lane : sums.values) total += lane;
      put(j, total);
    }
  } else if (kept.in == 1 && kept.size >= lanes) {
    auto put_lanes = [&](std::int64_t at, const Vector& sums) {
      for (std::int64_t l = 0; l < lanes; ++l) put(at + l, sums.values[static_cast<std::size_t>(l)]);
    };
    for (; j + rows * lanes <= kept.size; j += rows * lanes) {
      const auto sums = sum_rows<Vector, rows>(
          reduced.size, [&](std::int64_t i, std::int64_t k) { return vector_at(in + j + k * lanes + i * reduced.in); });
      for (std::int64_t k = 0; k < rows; ++k) put_lanes(j + k * lanes, sums[static_cast<std::size_t>(k)]);
    }
    for (; j + lanes <= kept.size; j += lanes)
      put_lanes(j, sum_row<Vector>(reduced.size, [&](std::int64_t i) { return vector_at(in + j + i * reduced.in); }));
  } else if (reduced.in >= kept.in) {
    for (; j + rows <= kept.size; j += rows) {
      const auto sums = sum_rows<T, rows>(
          reduced.size, [&](std::int64_t i, std::int64_t k) { return in[(j + k) * kept.in + i * reduced.in]; });
      for (std::int64_t k = 0; k < rows; ++k) put(j + k, sums[static_cast<std::size_t>(k)]);
    }
  }
  for (; j < kept.size; ++j) put(j, sum_of(j));
}

}  // namespace

template <class T>
void cascade_sum(const Tensor& in, const std::vector<bool>& reduced, T* out) {
  std::int64_t results = 1;
  for (std::size_t d = 0; d < in.sizes.size(); ++d)
    if (!reduced[d]) results *= in.sizes[d];
  std::fill_n(out, results, T(0));
  if (in.numel() == 0) return;
  std::vector<Dim> dims = arranged(in, reduced);
  while (dims.size() < 2) dims.push_back({1, 0, 0});
  Dim inner = dims[0], outer = dims[1];
  if (inner.out != 0 && outer.out == 0) std::swap(inner, outer);
  if (inner.out != 0) {  // no dimension is reduced: each sum has one term
    dims.insert(dims.begin(), {1, 0, 0});
    inner = dims[0], outer = dims[1];
  }
  std::vector<std::int64_t> at(dims.size(), 0);
  const T* from = in.as<T>();
  for (;;) {
    sum_plane(from, out, inner, outer);
    std::size_t d = 2;
    for (; d < dims.size(); ++d) {
      from += dims[d].in;
      out += dims[d].out;
      if (++at[d] < dims[d].size) break;
      from -= dims[d].in * dims[d].size;
      out -= dims[d].out * dims[d].size;
      at[d] = 0;
    }
    if (d == dims.size()) return;
  }
}

template void cascade_sum(const Tensor&, const std::vector<bool>&, float*);
template void cascade_sum(const Tensor&, const std::vector<bool>&, std::complex<float>*);

}  // namespace partita::kernels

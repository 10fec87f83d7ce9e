// Aligns singular vectors and eigenvectors of two runs, E and F, by Q = E^H F within clusters of equal values (a phase
// each for general eigenvectors). The left vectors' Q holds for the right ones, but for null vectors.
#include "core/compare/gauge.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>

#include "core/base/check.h"
#include "core/ops/facts/views.h"

namespace partita {
namespace {

using Complex = std::complex<double>;

/// A result of a decomposition as an output shows it.
struct Shown {
  const Node* node;
  const SpectralResults* kind;
  std::int64_t result;
  bool transposed = false, conjugated = false;
};

bool swaps_last_two(const std::vector<std::int64_t>& order) {
  const std::size_t n = order.size();
  if (n < 2) return false;
  std::vector<std::int64_t> swapped(n);
  std::iota(swapped.begin(), swapped.end(), 0);
  std::swap(swapped[n - 1], swapped[n - 2]);
  return order == swapped;
}

std::optional<Shown> shown(const Node* node) {
  bool transposed = false, conjugated = false;
  while (node && node->op()->is_call() && !node->is(Op::getitem())) {
    const OpRecord* record = find_record(node->op());
    if (const auto order = dimension_order(*node)) {
      if (!swaps_last_two(*order)) return std::nullopt;
      transposed = !transposed;
    } else if (record && record->views.element_change == ElementChange::Conjugate) {
      conjugated = !conjugated;
    } else {
      return std::nullopt;
    }
    node = node->args()[0].node();
  }
  if (!node || !node->is(Op::getitem())) return std::nullopt;
  const Node* tuple = node->args()[0].node();
  const auto* result = node->args()[1].get<std::int64_t>();
  const OpRecord* record = tuple ? find_record(tuple->op()) : nullptr;
  if (!result || !record || !record->spectral.known()) return std::nullopt;
  return Shown{tuple, &record->spectral, *result, transposed, conjugated};
}

/// A tensor's values as complex numbers, row-major.
std::vector<Complex> complex_values(const Tensor& t) {
  Result<Tensor> dense = Tensor::empty(DType::Complex128, t.sizes);
  CHECK(dense, "out of memory");
  if (t.numel() > 0) dense->copy_from(t);
  const Complex* first = t.numel() > 0 ? dense->as<Complex>() : nullptr;
  return {first, first + t.numel()};
}

/// [batch, rows, columns] -> [batch, columns, rows], and conjugated.
void rearrange(std::vector<Complex>& x, std::size_t rows, std::size_t columns, bool transpose, bool conjugate) {
  if (conjugate)
    for (Complex& v : x) v = std::conj(v);
  if (!transpose) return;
  std::vector<Complex> out(x.size());
  std::size_t area = rows * columns;
  for (std::size_t at = 0; at < x.size(); at += area)
    for (std::size_t i = 0; i < rows; ++i)
      for (std::size_t j = 0; j < columns; ++j) out[at + j * rows + i] = x[at + i * columns + j];
  x = std::move(out);
}

/// Vectors as columns.
struct Vectors {
  std::size_t length = 0, count = 0;
  std::vector<Complex> values;

  Vectors(const Tensor& t, bool rows, bool conjugated) : values(complex_values(t)) {
    auto r = static_cast<std::size_t>(t.sizes[t.sizes.size() - 2]), c = static_cast<std::size_t>(t.sizes.back());
    rearrange(values, r, c, rows, conjugated);
    length = rows ? c : r;
    count = rows ? r : c;
  }
  Complex at(std::size_t batch, std::size_t i, std::size_t j) const { return values[(batch * length + i) * count + j]; }
};

/// Columns i and j may be mixed: their values are equal up to rounding, or they have none (the rest of a full basis).
class Clusters {
 public:
  Clusters(const Tensor& values, bool null_vectors)
      : values_(complex_values(values)),
        length_(values.sizes.empty() ? 1 : static_cast<std::size_t>(values.sizes.back())),
        null_vectors_(null_vectors) {
    bool f64 = real_of(values.dtype) == DType::Float64;
    relative_ = 1e3 * (f64 ? std::numeric_limits<double>::epsilon() : std::numeric_limits<float>::epsilon());
  }

  bool together(std::size_t batch, std::size_t i, std::size_t j) const {
    double largest = 0;
    for (std::size_t k = 0; k < length_; ++k) largest = std::max(largest, std::abs(value(batch, k)));
    return i == j || std::abs(value(batch, i) - value(batch, j)) <= relative_ * largest;
  }
  /// Singular vectors of zero: those of U and V are not tied to each other.
  bool is_null(std::size_t batch, std::size_t i) const { return null_vectors_ && together_with_zero(batch, i); }

 private:
  Complex value(std::size_t batch, std::size_t i) const { return i < length_ ? values_[batch * length_ + i] : 0; }
  bool together_with_zero(std::size_t batch, std::size_t i) const { return together(batch, i, length_); }

  std::vector<Complex> values_;
  std::size_t length_;
  bool null_vectors_;
  double relative_ = 0;
};

}  // namespace

Gauge::Gauge(const Graph& graph, const std::vector<Tensor>& expected, const std::vector<Tensor>& found) {
  struct Group {
    const SpectralResults* kind = nullptr;
    std::optional<std::size_t> values;
    std::vector<std::pair<std::size_t, bool>> vectors;  ///< output, is it the left one
  };
  std::map<const Node*, Group> groups;
  std::size_t output = 0;
  for (const Arg& a : graph.outputs()) {
    if (!a.node() || !a.node()->meta.tensor()) continue;
    std::size_t i = output++;
    std::optional<Shown> s = shown(a.node());
    if (!s || i >= expected.size() || expected[i].sizes != found[i].sizes || expected[i].numel() == 0) continue;
    Group& group = groups[s->node];
    group.kind = s->kind;
    if (s->result == s->kind->values) group.values = i;
    if (s->result != s->kind->left && s->result != s->kind->right) continue;
    bool left = s->result == s->kind->left, adjoint = !left && s->kind->right_is_adjoint;
    group.vectors.emplace_back(i, left);
    outputs_[i] = {s->transposed != adjoint, s->conjugated != adjoint, 0, {}};
  }
  for (auto& [node, group] : groups) {
    if (!group.values) {
      for (auto [i, left] : group.vectors) outputs_.erase(i);
      continue;
    }
    // The left vectors' Q holds for the right ones too.
    std::stable_sort(group.vectors.begin(), group.vectors.end(), [](auto a, auto b) { return a.second > b.second; });
    Clusters clusters(expected[*group.values], group.kind->right >= 0);
    const Freedom* tied = nullptr;
    for (auto [i, left] : group.vectors) {
      Freedom& own = outputs_[i];
      Vectors e(expected[i], own.rows, own.conjugated), f(found[i], own.rows, own.conjugated);
      own.columns = e.count;
      own.q.assign(e.values.size() / (e.length * e.count), Dense(e.count * e.count));
      for (std::size_t b = 0; b < own.q.size(); ++b)
        for (std::size_t r = 0; r < e.count; ++r)
          for (std::size_t c = 0; c < e.count; ++c) {
            if (group.kind->orthogonal ? !clusters.together(b, r, c) : r != c) continue;
            Complex& q = own.q[b][r * e.count + c];
            if (tied && !clusters.is_null(b, r) && !clusters.is_null(b, c)) {
              q = tied->q[b][r * tied->columns + c];
              continue;
            }
            for (std::size_t k = 0; k < e.length; ++k) q += std::conj(e.at(b, k, r)) * f.at(b, k, c);
          }
      if (!tied) tied = &own;
    }
  }
}

/// X Q, or X Q^H when `adjoint`, on the vectors that an output shows.
Tensor Gauge::apply(std::size_t output, const Tensor& t, bool adjoint) const {
  auto at = outputs_.find(output);
  if (at == outputs_.end() || t.numel() == 0) return t;
  const Freedom& own = at->second;
  Vectors x(t, own.rows, own.conjugated);
  std::vector<Complex> y(x.values.size());
  for (std::size_t b = 0; b < own.q.size(); ++b)
    for (std::size_t i = 0; i < x.length; ++i)
      for (std::size_t j = 0; j < x.count; ++j) {
        Complex sum = 0;
        for (std::size_t k = 0; k < x.count; ++k) {
          Complex q = adjoint ? std::conj(own.q[b][j * x.count + k]) : own.q[b][k * x.count + j];
          sum += x.at(b, i, k) * q;
        }
        y[(b * x.length + i) * x.count + j] = sum;
      }
  rearrange(y, x.length, x.count, own.rows, own.conjugated);
  Result<Tensor> out = Tensor::empty(DType::Complex128, t.sizes);
  CHECK(out, "out of memory");
  std::copy(y.begin(), y.end(), out->as<Complex>());
  Result<Tensor> result = out->to(t.dtype);
  CHECK(result, "out of memory");
  return *std::move(result);
}

}  // namespace partita

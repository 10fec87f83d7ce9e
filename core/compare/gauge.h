#pragma once
// What a singular value or eigenvalue decomposition leaves to the library that computes it: signs or phases of vectors,
// and the basis where values coincide.
#include <complex>
#include <cstdint>
#include <map>
#include <vector>

#include "core/ir/graph.h"
#include "core/tensor/value.h"

namespace partita {

/// Two runs of one graph differ by a unitary Q that commutes with the values: U' = U Q, V' = V Q for singular vectors
/// and those of Hermitian matrices; for general eigenvectors, which have norm 1, a phase each. Q is taken from the
/// outputs of both runs, one for U and V together, so results that do not go together are not made to agree. Outputs
/// that are no such vectors, and vectors without their values among the outputs, are left alone.
class Gauge {
 public:
  /// No freedom: everything is left alone.
  Gauge() = default;
  /// `expected` and `found`: the tensors that the graph returns, of equal sizes, in order.
  Gauge(const Graph& graph, const std::vector<Tensor>& expected, const std::vector<Tensor>& found);

  /// No output hangs on the library's choice.
  bool fixed() const { return outputs_.empty(); }
  /// The i-th output of the found run in the gauge of the expected one: equal to the expected output up to rounding if
  /// they differ by the gauge alone.
  Tensor aligned(std::size_t output, const Tensor& found) const;
  /// The gradient of the i-th output, given for the expected run, as it is for the found one: of the same function of
  /// what does not hang on the gauge.
  Tensor tangent(std::size_t output, const Tensor& expected) const;

 private:
  using Dense = std::vector<std::complex<double>>;  ///< row-major

  /// How an output shows vectors: transposed (a row each) or conjugated. Q is [columns, columns] for each matrix of
  /// the batch.
  struct Freedom {
    bool rows = false, conjugated = false;
    std::size_t columns = 0;
    std::vector<Dense> q;
  };

  Tensor apply(std::size_t output, const Tensor& t, bool adjoint) const;

  std::map<std::size_t, Freedom> outputs_;
};

}  // namespace partita

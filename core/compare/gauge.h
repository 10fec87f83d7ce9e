#pragma once
// The freedom of singular value and eigenvalue decompositions that the computing library decides: signs or phases of
// vectors, and the basis where values coincide.
#include <complex>
#include <map>
#include <vector>

#include "core/ir/graph.h"
#include "core/tensor/value.h"

namespace partita {

/// Two runs of one graph differ by a unitary Q that commutes with the values: U' = U Q, V' = V Q for singular vectors
/// and for those of Hermitian matrices; a phase each for general eigenvectors, which have norm 1. Q is computed from
/// the outputs of both runs, one for U and V together, so results that do not fit together are not made to agree. Other
/// outputs, and vectors whose values are not among the outputs, stay as they are.
class Gauge {
 public:
  /// No freedom: every output stays as it is.
  Gauge() = default;
  /// `expected` and `found`: the tensors that the graph returns in each run, of equal sizes, in order.
  Gauge(const Graph& graph, const std::vector<Tensor>& expected, const std::vector<Tensor>& found);

  /// Does no output depend on the library's choice?
  bool fixed() const { return outputs_.empty(); }
  /// The i-th output of the found run in the gauge of the expected run. It equals the expected output up to rounding if
  /// only the gauge differs.
  Tensor aligned(std::size_t output, const Tensor& found) const { return apply(output, found, true); }
  /// Converts the tangent of the i-th output from the expected run to the found run, so that it belongs to the same
  /// function of what does not depend on the gauge.
  Tensor tangent(std::size_t output, const Tensor& expected) const { return apply(output, expected, false); }

 private:
  using Dense = std::vector<std::complex<double>>;  ///< row-major

  /// How an output holds vectors: as rows (transposed) or conjugated. Q is [columns, columns] for each matrix of the
  /// batch.
  struct Freedom {
    bool rows = false, conjugated = false;
    std::size_t columns = 0;
    std::vector<Dense> q;
  };

  Tensor apply(std::size_t output, const Tensor& t, bool adjoint) const;

  std::map<std::size_t, Freedom> outputs_;
};

}  // namespace partita

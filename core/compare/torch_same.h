#pragma once
#include <optional>
#include <string>

#include "core/tensor/value.h"

namespace partita {

struct SameOptions {
  double tolerance = 1e-3;  ///< absolute and relative; torch._dynamo.config.repro_tolerance
  bool equal_nan = true;    ///< as PyTorch's accuracy minifier asks it
};

/// torch._dynamo.utils.same(reference, result, exact): a result is wrong only if it is outside the tolerance and its
/// root mean square distance to the f64 run is more than 2 times (3 for half types and fewer than 1,000 elements) the
/// reference's, plus a tenth of the tolerance. `exact`: the value of the f64 run, None when there is none.
/// Returns what differs: "kind", "dtype", "sizes", "values", "nan"; nothing when they are the same.
std::optional<std::string> torch_difference(const Value& reference, const Value& result, const Value& exact,
                                            const SameOptions& options = {});

}  // namespace partita

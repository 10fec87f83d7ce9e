#pragma once
#include <optional>
#include <string>

#include "core/tensor/value.h"

namespace partita {

struct SameOptions {
  double tolerance = 1e-3;  ///< absolute and relative; torch._dynamo.config.repro_tolerance
  bool equal_nan = true;    ///< the default of PyTorch's accuracy minifier
};

/// torch._dynamo.utils.same(reference, result, exact). A result is wrong only if it is outside the tolerance, and its
/// root mean square distance to the f64 run is more than 2 times the reference's plus a tenth of the tolerance. The
/// factor is 3 for half types, fewer than 1,000 elements, 1x1 images, and tolerances from 0.02 on. `exact`: the value
/// of the f64 run, None without one. Returns what differs: "kind", "dtype", "sizes", "values", "nan"; nullopt when
/// nothing does.
std::optional<std::string> torch_difference(const Value& reference, const Value& result, const Value& exact,
                                            const SameOptions& options = {});

}  // namespace partita

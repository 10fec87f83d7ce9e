#pragma once
#include <utility>

#include "core/base/result.h"

namespace partita {

/// Puts the value of a Result into `target`, or returns its error: TRY_DO(assign(x, f())) is TRY(x, f()) as one
/// statement, for branches.
template <class T, class U>
Status assign(T& target, Result<U> result) {
  if (!result) return std::move(result).error();
  target = *std::move(result);
  return {};
}

}  // namespace partita

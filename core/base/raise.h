#pragma once
// Errors of code that returns plain values. It raises them, and the functions that others call return them as a Result.
#include <new>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "core/base/result.h"

namespace partita {

/// What such code throws.
struct Raise {
  Diagnostic diagnostic;
};

/// The value of a Result; raises its error.
template <class T>
T unwrap(Result<T> r) {
  if (!r) throw Raise{std::move(r).error()};
  if constexpr (!std::is_void_v<T>) return *std::move(r);
}

/// The Result of f(). Its error is also what f raises, and memory that the system refuses.
template <class T, class F>
Result<T> catch_raised(F f) {
  const auto no_memory = [] {
    return input_error("tensor.out_of_memory", "there is no memory for so much; use smaller sizes");
  };
  try {
    return f();
  } catch (Raise& raised) {
    return std::move(raised.diagnostic);
  } catch (const std::bad_alloc&) {
    return no_memory();
  } catch (const std::length_error&) {
    return no_memory();
  }
}

}  // namespace partita

#pragma once
#include <new>
#include <stdexcept>
#include <utility>

#include "core/base/progress.h"
#include "core/ops/record/call.h"
#include "core/sym/sym_error.h"

namespace partita {

/// The Result of f(). Its error is also what f raises, memory that the system refuses, and a loop's end on request.
template <class T, class F>
Result<T> catch_raised(F f) {
  try {
    return f();
  } catch (Raise& raised) {
    return std::move(raised.diagnostic);
  } catch (SymError& raised) {
    return std::move(raised.diagnostic);
  } catch (const Stopped&) {
    return stopped_on_request();
  } catch (const std::bad_alloc&) {
    return input_error("tensor.out_of_memory", "there is no memory for so much; use smaller sizes");
  } catch (const std::length_error&) {
    return input_error("tensor.out_of_memory", "there is no memory for so much; use smaller sizes");
  }
}

}  // namespace partita

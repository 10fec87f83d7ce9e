#pragma once
// How a test runs a program by a backend.
#include "codegen/backends.h"
#include "core/aot/run_program.h"

namespace partita::testing {

/// Without gradients.
inline RunOptions run_options(const Backend& backend) {
  RunOptions options;
  options.aot.train = false;
  options.forward = backend.make({});
  return options;
}

}  // namespace partita::testing

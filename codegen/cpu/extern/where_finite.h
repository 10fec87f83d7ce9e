#pragma once
#include <functional>

#include "codegen/program/extern.h"

namespace partita::codegen {

/// Makes a step, with as many threads; errors are dnnl::error.
using MakeStep = std::function<std::unique_ptr<ExternStep>()>;

/// A step that gives `result`, of single precision, in a faster way, in which an infinity or NaN may reach elements
/// that do not depend on it: after a run whose result is not all finite, the step that `direct` makes computes it
/// again. It is made when it is first needed. Null for results with gaps between their elements.
std::unique_ptr<ExternStep> where_finite(std::unique_ptr<ExternStep> fast, const ConcreteView& result, int threads,
                                         MakeStep direct);

}  // namespace partita::codegen

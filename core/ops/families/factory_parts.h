#pragma once
#include "core/ops/record/call.h"

namespace partita {

/// The meta of a factory call: dtype (`otherwise` when not given) and device as given.
TensorMeta made(const FakeCall& call, DType otherwise, SymList sizes);
/// The same with the memory_format that is given, and sizes from argument `size`.
TensorMeta new_meta(const FakeCall& call, DType otherwise, std::string_view size);
/// The meta of a ..._like call.
TensorMeta like_meta(const FakeCall& call);
Meta fake_like(FakeCall& call);

}  // namespace partita

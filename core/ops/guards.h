#pragma once
#include "core/ops/call.h"

namespace partita {

/// torch's guard_or_true and guard_or_false: the truth of a condition as FakeCall::test finds it, `otherwise` where it
/// hangs on a size known only at run time.
bool guard_or(const FakeCall& call, SymExpr condition, bool otherwise, const char* reason);

/// Must the two be equal? Sizes known only at run time count as equal (torch._check asserts it then).
bool checked_equal(const FakeCall& call, SymExpr a, SymExpr b, const char* reason);

/// Does any of them hang on a size known only at run time?
bool has_unbacked(const FakeCall& call, std::span<const SymExpr> list);

}  // namespace partita

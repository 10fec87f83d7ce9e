#pragma once
#include "core/ops/record/call.h"

namespace partita {

/// torch's guard_or_true and guard_or_false: the truth of a condition as FakeCall::test finds it, or `otherwise` when
/// it depends on a size known only at run time.
bool guard_or(const FakeCall& call, SymExpr condition, bool otherwise, const char* reason);

/// The truth of a condition as FakeCall::test finds it; nullopt when it depends on a number known only at run time.
std::optional<bool> guard_if_known(const FakeCall& call, SymExpr condition, const char* reason);

/// A condition without which a call is refused. Where it depends on a number known only at run time it is taken to
/// hold; whoever runs the call asks again, as torch._check does.
bool checked(const FakeCall& call, SymExpr condition, const char* reason);

/// The same where a call is taken apart, after which nobody asks again: the graph asserts it.
bool checked(const DecomposeCall& call, SymExpr condition, const char* reason);

/// Whether two tensors, or parts of them, have the same sizes, without which a call is refused.
bool checked_sizes(const FakeCall& call, std::span<const SymExpr> a, std::span<const SymExpr> b, const char* reason);

/// The number that a size is for the sizes at hand, which a guard fixes; nullopt when only values decide it.
std::optional<std::int64_t> guarded_number(const FakeCall& call, SymExpr size, const char* reason);

/// Whether the two must be equal. Where this depends on a size known only at run time the answer is true; torch._check
/// asserts it then.
bool checked_equal(const FakeCall& call, SymExpr a, SymExpr b, const char* reason);

/// Whether any of them depends on a size known only at run time.
bool has_unbacked(const FakeCall& call, std::span<const SymExpr> list);

}  // namespace partita

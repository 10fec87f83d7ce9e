#pragma once
#include <optional>

#include "app/backends.h"
#include "core/minify/culprit.h"

namespace partita {

/// The CPU compiler in stages, for who looks for the guilty one; nothing for backends that have none.
std::optional<minify::StagedCompiler> staged_compiler(const Backend& backend, const BackendOptions& options);

/// How a rule is wrong: the value is one percent off, compiling crashes, compiling hangs.
enum class Plant : unsigned char { Wrong, Crash, Hang };
/// "aten.tanh.default:wrong". Error cli.usage.
Result<std::pair<const Op*, Plant>> parse_plant(const std::string& text);
/// A compiler that has a wrong rule for one operator: to see that a check, or the minifier, finds it.
CompileFn planted(CompileFn compile, const Op* op, Plant plant);

}  // namespace partita

#pragma once
#include <string>
#include <utility>

#include "core/aot/compile_fn.h"

namespace partita {

/// How a rule is wrong: the value is one percent off, compiling crashes, compiling hangs.
enum class Plant : unsigned char { Wrong, Crash, Hang };
/// "aten.tanh.default:wrong". Error cli.usage.
Result<std::pair<const Op*, Plant>> parse_plant(const std::string& text);
/// A compiler that has a wrong rule for one operator: to see that a check, or the minifier, finds it.
CompileFn planted(CompileFn compile, const Op* op, Plant plant);

}  // namespace partita

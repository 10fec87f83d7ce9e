#pragma once
#include <nlohmann/json_fwd.hpp>

#include "core/sym/shape_env.h"

namespace partita {

/// Puts "symbols" (their hints and ranges) and "guards" (what the sizes of a run must fulfil, and which call asked for
/// it) into a JSON object; nothing for an environment without symbols.
void add_symbols(nlohmann::ordered_json& out, const ShapeEnv& shapes);

}  // namespace partita

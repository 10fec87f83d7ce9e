#pragma once
// Parts of reports as JSON.
#include <nlohmann/json_fwd.hpp>

#include "core/compare/compare.h"

namespace partita {

/// A number as JSON; NaN and infinities, which JSON lacks, become strings.
nlohmann::ordered_json number_json(double v);
nlohmann::ordered_json statistics_json(const Statistics& statistics);

}  // namespace partita

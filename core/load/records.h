#pragma once
// What the texts of a trace log say, beside its graphs.
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "core/load/session.h"

namespace partita {

/// What an artefact is within its compilation, without the number of a copy, folder and compilation:
/// "inductor_output_code" of "rank_0/0_0.inductor_output_code_1". Of a file, its name.
std::string_view record_name(const Artefact& a);

/// The log that an artefact is part of; empty for one of a file of its own.
std::string_view log_of(const Artefact& a);

/// The name of a log without what PyTorch always writes there: "rank 3 x81", whose letters tell its runs apart.
std::string log_title(std::string_view path);

/// What the log's lines of this name hold under it: {"co_name": ...} for compilation_metrics. Lines that hold none are
/// left out.
std::vector<nlohmann::json> records(const Artefact& a);

/// What a JSON object has under the key; empty or 0 where it has no text or no whole number there, or is no object.
std::string text_field(const nlohmann::json& object, const char* key);
std::int64_t int_field(const nlohmann::json& object, const char* key);

/// The graphs of one compilation: the artefact and those that lie beside it. Null: there is none.
struct StepGraphs {
  const Artefact *joint = nullptr, *forward = nullptr, *backward = nullptr;
};
/// Those of the artefact's group and log. Of several of a kind, the one with the artefact's place among its own.
StepGraphs graphs_beside(std::span<const Artefact* const> artefacts, const Artefact& artefact);
StepGraphs graphs_beside(const Loaded& loaded, const Artefact& artefact);

}  // namespace partita

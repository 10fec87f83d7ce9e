#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

#include "core/aot/one_rank.h"
#include "core/load/session.h"

namespace partita {

/// The artefact with this graph in place of its own.
Artefact with_graph(const Artefact& artefact, std::shared_ptr<const Graph> graph);
/// The artefact with the graph of the rank's own tensors where its graph has DTensors; nullopt for others.
Result<std::optional<Artefact>> artefact_of_rank(const Artefact& artefact, const RankOfJob& job);
/// The same for an artefact that stands alone: its rank is the one in its file's name, else 0. `ranks`: as
/// RankOfJob::ranks.
Result<std::optional<Artefact>> artefact_alone(const Artefact& artefact, std::int64_t ranks);

/// loaded.pick(), and of a graph of DTensors that rank's: what verbs begin with that take a graph apart.
Result<Artefact> pick_of_rank(const Loaded& loaded, std::string_view id, std::int64_t ranks = 0);

}  // namespace partita

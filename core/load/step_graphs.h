#pragma once
#include <span>
#include <vector>

#include "core/load/session.h"

namespace partita {

/// The graphs of one compilation: the artefact and those that lie beside it. Null: there is none.
struct StepGraphs {
  const Artefact *joint = nullptr, *forward = nullptr, *backward = nullptr;
};
/// Those of the artefact's group and log. Of several of a kind, the one with the artefact's place among its own.
StepGraphs graphs_beside(std::span<const Artefact* const> artefacts, const Artefact& artefact);
StepGraphs graphs_beside(const Loaded& loaded, const Artefact& artefact);

}  // namespace partita

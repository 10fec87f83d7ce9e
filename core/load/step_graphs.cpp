#include "core/load/step_graphs.h"

#include <algorithm>
#include <string_view>

#include "core/load/records.h"

namespace partita {

StepGraphs graphs_beside(std::span<const Artefact* const> artefacts, const Artefact& artefact) {
  const std::string_view log = log_of(artefact);
  const auto beside = [&](const Artefact& a) { return a.group == artefact.group && log_of(a) == log; };
  const auto of_kind = [&](ArtefactKind kind) {
    std::vector<const Artefact*> found;
    for (const Artefact* a : artefacts)
      if (a->kind == kind && beside(*a)) found.push_back(a);
    return found;
  };
  const std::vector<const Artefact*> own = of_kind(artefact.kind);
  const auto place = static_cast<std::size_t>(std::ranges::find(own, artefact.id, &Artefact::id) - own.begin());
  const auto pick = [&](ArtefactKind kind) -> const Artefact* {
    const std::vector<const Artefact*> found = of_kind(kind);
    return place < found.size() ? found[place] : nullptr;
  };
  return {pick(ArtefactKind::Joint), pick(ArtefactKind::Forward), pick(ArtefactKind::Backward)};
}

StepGraphs graphs_beside(const Loaded& loaded, const Artefact& artefact) {
  std::vector<const Artefact*> all;
  for (const Artefact& a : loaded.artefacts) all.push_back(&a);
  return graphs_beside(all, artefact);
}

}  // namespace partita

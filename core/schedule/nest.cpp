#include "core/schedule/nest.h"

namespace partita::schedule {

std::vector<Merged> merge_dims(const loops::IndexMath& math, const std::vector<SymExpr>& elements,
                               const Position& position, const SymList& space, const std::vector<std::size_t>& order) {
  std::vector<Merged> merged;
  for (std::size_t d : order) {
    if (space[d].is(1)) continue;
    bool joins = !merged.empty();
    for (std::size_t e = 0; joins && e < elements.size(); ++e) {
      auto outer = math.factor(elements[e], position[merged.back().back()]),
           inner = math.factor(elements[e], position[d]);
      joins = outer && inner && *outer == *inner * space[d];
    }
    if (joins)
      merged.back().push_back(d);
    else
      merged.push_back({d});
  }
  return merged;
}

SymExpr extent(const SymList& space, const Merged& dims) {
  SymExpr n = 1;
  for (std::size_t d : dims) n = n * space[d];
  return n;
}

void place(const loops::IndexMath& math, const SymList& space, const Merged& dims, SymExpr variable, Position& at) {
  SymList sizes;
  for (std::size_t d : dims) sizes.push_back(space[d]);
  loops::Index digits = math.delinearize(variable, sizes);
  for (std::size_t i = 0; i < dims.size(); ++i) at[dims[i]] = digits[i];
}

}  // namespace partita::schedule

#include "core/ops/families/indexing.h"

namespace partita {

void register_index(OpTable& t) {
  t.add_without_record({"setitem"});
  register_advanced_index(t);
  register_gather_scatter(t);
  register_index_along(t);
  register_index_reduce(t);
  register_masked(t);
  register_unique(t);
}

}  // namespace partita

#include "core/ops/families.h"

namespace partita {

void register_families(OpTable& table) {
#define V(name, family)                  \
  table.default_family = Family::family; \
  register_##name(table);
  PARTITA_FAMILY_FILES(V)
#undef V
}

}  // namespace partita

#include "core/ops/families.h"

namespace partita {

void register_families(OpTable& table) {
#define V(family) register_##family(table);
  PARTITA_FAMILIES(V)
#undef V
}

}  // namespace partita

#include "core/ops/families.h"

namespace partita {

void register_softmax(OpTable&) {}

}  // namespace partita

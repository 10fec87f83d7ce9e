#include "codegen/cpu/extern/routines.h"

namespace partita::codegen {

Result<Prepared> prepare_extern(const ExternContext& context, std::string& why_not) {
  if (Prepared p = prepare_library(context, why_not); p.step) return p;
  return prepare_evaluation(context, why_not);
}

}  // namespace partita::codegen

// For libraries whose calls are all done by oneDNN: the operators' evaluations stay out of them.
#include "codegen/cpu/extern/routines.h"

namespace partita::codegen {

extern "C" __attribute__((visibility("hidden"))) Result<Prepared> partita_prepare_library(const ExternContext& context,
                                                                                          std::string& why_not) {
  Prepared p = prepare_library(context, why_not);
  if (p.step) return p;
  return unsupported("library.evaluation",
                     context.call.op->name + " has no code in this library" + (why_not.empty() ? "" : ": " + why_not) +
                         "; compile it with --evaluations",
                     {.node = context.call.origin});
}

}  // namespace partita::codegen

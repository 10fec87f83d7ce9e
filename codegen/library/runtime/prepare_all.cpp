// For libraries with calls that only the operators' evaluations do.
#include "codegen/cpu/extern/extern.h"

namespace partita::codegen {

extern "C" __attribute__((visibility("hidden"))) Result<Prepared> partita_prepare_all(const ExternContext& context,
                                                                                      std::string& why_not) {
  return prepare_extern(context, why_not);
}

}  // namespace partita::codegen

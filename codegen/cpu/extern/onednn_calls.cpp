#include "codegen/cpu/extern/onednn_calls.h"

#include <string>

#include <dlfcn.h>

#include "core/ops/call.h"

namespace partita::codegen {

void* onednn_function(const char* name) {
  static void* const library = [] {
    void* opened = dlopen(PARTITA_ONEDNN_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!opened) fail_unsupported(std::string("oneDNN: ") + dlerror() + "; install the package libdnnl2");
    return opened;
  }();
  void* found = dlsym(library, name);
  if (!found) fail_unsupported(std::string("oneDNN: " PARTITA_ONEDNN_LIBRARY " has no ") + name);
  return found;
}

}  // namespace partita::codegen

#include "codegen/cpu/extern/onednn_calls.h"

#include <string>

#include <dlfcn.h>

#include "core/ops/record/call.h"

namespace partita::codegen {
namespace {

/// As fail_unsupported(), which a model's library cannot call without linking the operators.
[[noreturn]] void refuse(const std::string& why) {
  throw Raise{unsupported("ops.unsupported", "not supported: oneDNN: " + why)};
}

}  // namespace

void* onednn_function(const char* name) {
  static void* const library = [] {
    void* opened = dlopen(PARTITA_ONEDNN_LIBRARY, RTLD_LAZY | RTLD_LOCAL);
    if (!opened) refuse(std::string(dlerror()) + "; install the package libdnnl2");
    return opened;
  }();
  void* found = dlsym(library, name);
  if (!found) refuse(std::string(PARTITA_ONEDNN_LIBRARY " has no ") + name);
  return found;
}

}  // namespace partita::codegen

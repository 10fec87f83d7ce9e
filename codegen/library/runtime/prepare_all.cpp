// For libraries with calls that only the operators' evaluations do.
#include "codegen/cpu/extern/routines.h"
#include "core/interp/interpreter.h"

#define PARTITA_HIDDEN extern "C" __attribute__((visibility("hidden")))

namespace partita::codegen {

PARTITA_HIDDEN Result<Prepared> partita_prepare_all(const ExternContext& context, std::string& why_not) {
  return prepare_extern(context, why_not);
}

PARTITA_HIDDEN Result<std::vector<Value>> partita_interpret(const Graph& graph, std::vector<Value> inputs, int threads,
                                                            const std::shared_ptr<Generator>& generator) {
  return interpret(graph, std::move(inputs), {.threads = threads, .generator = generator});
}

}  // namespace partita::codegen

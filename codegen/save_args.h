#pragma once
#include <string>

#include "core/aot/run_compiled.h"

namespace partita {

/// A compiler that also writes each graph that it gets, and the inputs of its first run, into a new folder graph_N of
/// `folder`, which it makes, and says so on stderr. Frozen parameters are constants there, no inputs. `partita run`
/// opens such a folder's graph.py, with its inputs.safetensors. Error save_args.write.
CompileFn saving_args(CompileFn compile, const std::string& folder);

}  // namespace partita

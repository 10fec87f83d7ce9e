#pragma once
// The folder that `partita record` writes: session.json, graphs/, trace/, and the same below rank_N/ and process_N/.
// codegen/python/partita/record/README.md describes it. Internal to core/load.
#include <string>

#include "core/load/sources.h"

namespace partita {

/// Has the folder a session.json of a recording?
bool is_recording(const std::string& folder);
/// Loads such a folder: its graphs, each with the call whose values were kept, then the trace, whose graphs get the
/// values that fit them. A session.json that cannot be read is an error; what it names and is not there, a warning.
Status load_recording(const std::string& folder, Loading& loading);

}  // namespace partita

#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/load/safetensors.h"
#include "core/load/session.h"

namespace partita::minify {

/// The graph and inputs with which a minification begins.
struct Start {
  std::string id;  ///< id of the artefact
  std::shared_ptr<const Graph> graph;
  std::vector<Value> inputs;
};

/// Takes the artefact's graph, with values from `io`, else the archive, else a dump's example inputs, else random from
/// `seed`. `functional`: the compiler needs functional ATen, so other graphs are converted as for inference.
Result<Start> make_start(const Artefact& artefact, const TensorFile& io, std::uint64_t seed, bool functional);

}  // namespace partita::minify

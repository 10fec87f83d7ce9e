#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/load/safetensors.h"
#include "core/load/session.h"

namespace partita::minify {

/// A graph and its inputs, as a minification begins.
struct Start {
  std::string id;  ///< of the artefact
  std::shared_ptr<const Graph> graph;
  std::vector<Value> inputs;
};

/// The artefact's graph with values out of `io`, else the archive, else a dump's example inputs, else made up from
/// `seed`. `functional`: for compilers that want functional ATen, other graphs are brought there as for an inference.
Result<Start> make_start(const Artefact& artefact, const TensorFile& io, std::uint64_t seed, bool functional);

}  // namespace partita::minify

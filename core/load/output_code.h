#pragma once
// The kernels in the code that inductor wrote, and which nodes of PyTorch's graphs they compute.
#include <string>
#include <string_view>
#include <vector>

#include "core/ir/graph.h"
#include "core/load/session.h"

namespace partita {

/// A call in the wrapper of inductor's output code: of a kernel of its own or of a library.
struct InductorKernel {
  /// What says which nodes it computes.
  enum class Link : unsigned char {
    None,      ///< nothing
    Lines,     ///< only the source lines: inductor_provenance_tracking_kernel_stack_traces
    Comments,  ///< the comments at its code or call
    Flow,      ///< the values that the wrapper hands to it and from it
    Mapping,   ///< inductor_provenance_tracking_node_mappings
  };
  std::string name;        ///< "cpp_fused_gelu_0", "extern_kernels.addmm"
  std::string language;    ///< "cpp", "triton"; "call" when its code is elsewhere
  int call = 0;            ///< line of the call in the output code, from 1
  int begin = 0, end = 0;  ///< lines of its own code, both included; 0: there is none
  std::string handle;      ///< "cpp_fused_gelu_0:2"; empty in older code
  Link link = Link::None;
  std::vector<std::string> nodes;    ///< of the post-grad graph, as far as they are in it
  std::vector<std::string> sources;  ///< of the pre-grad graph, as far as they are in it
  std::vector<std::string> missed;   ///< names that no graph of the compilation has
  std::vector<StackFrame> frames;    ///< of the user's program
};
std::string_view name(InductorKernel::Link link);  ///< "mapping"

/// The output code of one graph.
struct InductorCode {
  const Artefact* code = nullptr;
  const Artefact* post_grad = nullptr;  ///< the graph that it was made from; null: the file does not have it
  const Artefact* pre_grad = nullptr;   ///< the graph before AOTAutograd
  std::string text;                     ///< the whole output code
  std::string key;                      ///< of the cache, "fdyey4..."; empty: the log has none, or it was bypassed
  std::vector<InductorKernel> kernels;  ///< in the order of the calls
  std::size_t found = 0, missed = 0;    ///< links to nodes, and kernels or names without one

  /// The lines of a kernel's own code; without any, the line that calls it.
  std::string code_of(const InductorKernel& kernel) const;
};

/// The calls in output code, with what its comments say; not yet checked against graphs.
std::vector<InductorKernel> read_output_code(std::string_view text);

/// All output code of a log or a debug folder, in order. What is damaged has no links. The result points into `loaded`.
std::vector<InductorCode> inductor_code(const Loaded& loaded);

}  // namespace partita

#pragma once
// What a profile of torch.profiler says of compiled graphs: when each ran, and what it called.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/load/profile/trace_events.h"

namespace partita {

/// Times are nanoseconds of the trace's clock.
struct Profile {
  /// What the wrapper of a compiled graph called: a kernel of its own, an operator, or, where no operator is around it,
  /// a kernel of a device.
  struct Call {
    std::uint32_t name = 0;       ///< "graph_1_cpp_fused_gelu_0", "aten::mm", "triton_poi_fused_gelu_0"
    std::uint32_t dims = 0;       ///< "[[64,64],[64,192]]"; 0: the profile has no shapes
    std::int64_t begin = 0;       ///< on the CPU; of a device's kernel alone, where it was launched
    std::int64_t host = 0;        ///< on the CPU
    std::int64_t device = 0;      ///< the kernels that it launched, together
    std::uint32_t on_device = 0;  ///< how many these are
  };
  /// One time that a compiled graph ran: an annotation "## Call CompiledFxGraph KEY ##".
  struct Run {
    std::uint32_t key = 0;         ///< 0: it has none, since the caches were bypassed
    std::uint32_t compile_id = 0;  ///< "0/1", of the compiled region around it; 0: it is in none, as a backward
    std::uint32_t thread = 0;
    std::int64_t begin = 0, length = 0;
    std::size_t first = 0, last = 0;  ///< in `calls`, the last not included
    std::size_t step = 0;             ///< in `steps`
  };
  struct Step {
    std::string name;  ///< "ProfilerStep#3", "run 1"
    std::int64_t begin = 0, end = 0;
  };

  std::string path;
  std::string device;               ///< "NVIDIA H200"; empty: not named, or there is none
  bool on_device = false;           ///< a device worked for compiled graphs: times are those of its kernels
  TextTable texts;                  ///< names and dims
  std::vector<Call> calls;          ///< by run and beginning
  std::vector<Run> runs;            ///< by beginning
  std::vector<Step> steps;          ///< by beginning; at least one when there are runs
  std::string steps_by;             ///< what ends a step: "ProfilerStep", "Optimizer.step", "the first graph"
  std::int64_t device_outside = 0;  ///< of kernels that no compiled graph launched
  std::vector<Diagnostic> notes;    ///< what could not be read

  std::int64_t time_of(const Call& call) const { return on_device ? call.device : call.host; }
};

/// Reads a chrome trace, plain or compressed by gzip. Errors: those of read_trace_events(); profile.no_graph when no
/// compiled graph ran in it.
Result<std::shared_ptr<const Profile>> read_profile(const std::string& path, const Progress* progress = nullptr);

}  // namespace partita

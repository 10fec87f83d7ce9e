#pragma once
// The kernels that a compiler makes of an artefact: what `partita kernels`, the kernel view and the report show.
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "app/tasks/run_artefact.h"
#include "core/load/output_code.h"
#include "core/partition/partition.h"
#include "core/schedule/kernel_report.h"

namespace partita {

/// One graph of the flow, planned.
struct PlannedGraph {
  StagedCompiler::Planned planned;  ///< the graph after the compiler's passes, and the plan
  schedule::KernelReport report;
};

/// The memory of a step as the compiled program holds it. Compiled code allocates its temporaries once and keeps them,
/// and what it returned, from step to step: `held`, as `bench` measures it. `rows` say what of that is in use when.
struct StepMemory {
  enum class Kind : unsigned char { Temporary, Saved, Result, Gradient, Tangent, Scratch, Constant };
  struct Row {
    Kind kind = Kind::Temporary;
    std::string node;
    double bytes = 0;
    std::size_t first = 0, last = 0;  ///< steps of both graphs, the backward's after the forward's
  };
  std::vector<Row> rows;
  std::vector<std::pair<std::string, std::string>> steps;  ///< the graph and the name of each
  std::map<Kind, double> held;  ///< bytes: of temporaries the room that they share in each graph; Scratch: what
                                ///< kernels keep, and what one call of a library takes at most; Constant: what is
                                ///< computed once, of the weights or of nothing
  double inputs = 0;            ///< bytes of inputs and weights, which the caller holds

  double held_bytes() const;  ///< together, without inputs
  double live(std::size_t step) const;
  std::size_t peak() const;  ///< the step with the most in use; 0 without steps
};
std::string_view name(StepMemory::Kind kind);  ///< "temporary"
/// Of a training step or of inference, as the plans of plan_kernels() have it, without a run.
Result<StepMemory> step_memory(const Artefact& artefact, const RunRequest& request, const Backend& backend);
/// Of a training step of the artefact's graph, cut like this.
Result<StepMemory> step_memory(const Artefact& artefact, const Graph& graph, const PartitionOptions& cut,
                               const Backend& backend, const Progress& progress);
/// Of a cut that is made already.
Result<StepMemory> step_memory(const Partition& cut, const Backend& backend, const Progress* progress);

/// Plans the forward and, when training, the backward as `run` makes them. With an IO file they also run, several times
/// each, and rows have times. `request.path` and `.inputs` are not read. Errors: backend.stages for a backend without
/// kernels, those of aot() and of the compiler.
Result<std::vector<PlannedGraph>> plan_kernels(const Artefact& artefact, const TensorFile* io,
                                               const RunRequest& request, const Backend& backend);

/// What the window's kernel page asks.
struct KernelRequest {
  std::string path, id;  ///< of the file and of the graph in it; no id: it was made in the window
  bool train = false;
  bool measure = false;  ///< run, too, to have times
  std::string inputs;    ///< path of an IO file; empty: the archive's samples, else made up
};
/// plan_kernels() by the compiler for this machine. What is measured runs in a process of `program`, since compiled
/// code may crash. Errors kernels.measure, and those of plan_kernels().
Result<std::vector<PlannedGraph>> asked_kernels(const Artefact& artefact, const KernelRequest& asked,
                                                const std::string& program, const Progress& progress);

/// What this machine can do, as the backend's own code does it; `half`: 16-bit floats, too. The best that was ever
/// measured on this machine, which the store keeps; each call measures again for less than 0.3 s, since a busy machine
/// shows less.
Result<schedule::MachineLimit> machine_limit(const Backend& backend, bool half);

nlohmann::ordered_json kernels_json(const PlannedGraph& graph);
nlohmann::ordered_json memory_json(const StepMemory& memory);
/// "16257036 bytes: 11534336 saved for the backward, ...", as `bench` measures them.
std::string held_text(const StepMemory& memory);
nlohmann::ordered_json inductor_json(const InductorCode& code);

}  // namespace partita

#include "app/tasks/checked_flow.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/base/assign.h"
#include "core/compare/per_node.h"
#include "core/interp/random_values.h"
#include "core/partition/joint_parts.h"

namespace partita {
namespace {

class FlowCheck {
 public:
  FlowCheck(const Artefact& artefact, const TensorFile& io, const RunRequest& request, const AotOptions& how,
            Stage last, const PipelineOptions& post_grad)
      : artefact_(artefact), io_(io), request_(request), how_(how), last_(last), post_grad_(post_grad) {}

  Result<std::vector<CheckedStage>> run() {
    TRY(const Backend* interpreter, find_backend("interp"));
    TRY(const std::shared_ptr<Communicator> communicator, communicator_of(request_));
    interpret_ = interpreter->make(
        {.progress = request_.progress, .generator = std::make_shared<Generator>(), .communicator = communicator});
    // Values are known when graphs run, and stages are earlier, so the flow is made twice.
    RunOptions first = options();
    first.aot.freezing = first.aot.split_constants = false;  // which change the forward's inputs
    first.forward = visited(
        [this](const Graph&, const std::vector<Value>& inputs) { return assign(primals_, copy_values(inputs)); });
    first.backward =
        visited([this](const Graph& graph, const std::vector<Value>& inputs) { return keep_tangents(graph, inputs); });
    TRY_DO(run_program(artefact_, io_, first));
    RunOptions second = options();
    second.aot.pass_runner = [this](Graph& graph, std::span<const Pass> passes, PassContext& context,
                                    const PipelineOptions& how) { return check_stage(graph, passes, context, how); };
    const bool post = last_ == Stage::PostGradPasses;
    second.forward = post ? checking("forward") : interpret_;
    second.backward = post ? checking("backward") : interpret_;
    TRY_DO(run_program(artefact_, io_, second));
    return std::move(stages_);
  }

 private:
  RunOptions options() const {
    RunOptions options = run_options(request_, nullptr);
    options.aot = how_;
    options.aot.train = request_.train;
    return options;
  }

  using Visit = std::function<Status(const Graph& graph, std::vector<Value>& inputs)>;
  /// Interprets a graph, whose inputs `visit` sees before each run.
  CompileFn visited(Visit visit) const {
    return [this, visit = std::move(visit)](const Graph& graph) -> Result<CompiledFn> {
      TRY(const CompiledFn compiled, interpret_(graph));
      return CompiledFn([visit, &graph, compiled](std::vector<Value> inputs) -> Result<std::vector<Value>> {
        TRY_DO(visit(graph, inputs));
        return compiled(std::move(inputs));
      });
    };
  }

  /// A tangent of zeros, as outputs have that are no loss, would show nothing; a random one stands for it.
  Status keep_tangents(const Graph& graph, const std::vector<Value>& inputs) {
    TRY(std::vector<Value> random, random_inputs(graph, request_.seed));
    const std::vector<Node*> placeholders = graph.placeholders();
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (!is_tangent(*placeholders[i])) continue;
      const auto known = statistics_of(inputs[i]);
      tangents_.push_back(known && known->norm > 0 ? inputs[i] : random[i]);
    }
    return {};
  }

  bool failed() const { return !stages_.empty() && stages_.back().checked.failure; }

  Result<PipelineRun> check(const std::string& name, Graph& graph, std::span<const Pass> passes, PassContext& context,
                            const std::vector<Value>& inputs, const PipelineOptions& options) {
    TRY(CheckedRun checked, run_passes_checked(graph, passes, context, inputs, options));
    PipelineRun run = checked.run;
    stages_.push_back({name, std::move(checked)});
    return run;
  }

  Result<PipelineRun> check_stage(Graph& graph, std::span<const Pass> passes, PassContext& context,
                                  const PipelineOptions& options) {
    if (failed() || passes.empty() || passes.front().stage > last_) return run_passes(graph, passes, context, options);
    std::vector<Value> inputs = primals_;
    const bool joint = graph.form == GraphForm::Joint;
    if (joint) inputs.insert(inputs.end(), tangents_.begin(), tangents_.end());
    if (inputs.size() != graph.placeholders().size())
      return Diagnostic{Fault::Internal, "check.inputs",
                        fmt::format("the graph of the stage {} takes {} inputs, and the run has {}",
                                    row_of(passes.front().stage).passes, graph.placeholders().size(), inputs.size())};
    PipelineOptions watched = options;
    watched.snapshots = post_grad_.snapshots;
    return check(graph_of(passes.front().stage, joint), graph, passes, context, inputs, watched);
  }

  CompileFn checking(const std::string& name) {
    return visited([this, name](const Graph& graph, std::vector<Value>& inputs) -> Status {
      if (failed()) return {};
      // The backward's last inputs.
      if (name == "backward")
        std::ranges::copy(tangents_, inputs.end() - static_cast<std::ptrdiff_t>(tangents_.size()));
      const std::unique_ptr<Graph> copy = graph.clone();
      PassContext context{.pack_linears = how_.pack_linears};
      TRY_DO(prepare_post_grad(*copy));
      TRY_DO(check(name, *copy, passes_of(Stage::PostGradPasses), context, inputs, post_grad_));
      return {};
    });
  }

  const Artefact& artefact_;
  const TensorFile& io_;
  const RunRequest& request_;
  const AotOptions& how_;
  const Stage last_;
  const PipelineOptions& post_grad_;
  CompileFn interpret_;
  std::vector<Value> primals_, tangents_;
  std::vector<CheckedStage> stages_;
};

}  // namespace

std::string graph_of(Stage stage, bool joint) {
  if (stage < Stage::Functional) return "given";
  return joint && stage > Stage::Joint ? "joint" : "functional";
}

Result<std::vector<CheckedStage>> check_flow(const Artefact& artefact, const TensorFile& io, const RunRequest& request,
                                             const AotOptions& how, Stage last, const PipelineOptions& post_grad) {
  return FlowCheck(artefact, io, request, how, last, post_grad).run();
}

}  // namespace partita

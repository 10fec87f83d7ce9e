// What the stages of flow.def do, and aot(), which runs, checks and traces them. Also post_grad_passes(), with which
// compilers begin.
#include "core/aot/pipeline.h"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/aot/aot.h"
#include "core/aot/freezing.h"
#include "core/aot/metadata_json.h"
#include "core/aot/one_rank.h"
#include "core/aot/run_compiled.h"
#include "core/aot/text_roles.h"
#include "core/dtensor/calls.h"
#include "core/dtensor/local.h"
#include "core/functionalize/effect_tokens.h"
#include "core/functionalize/functional_rng.h"
#include "core/functionalize/stage_rules.h"
#include "core/grad/joint.h"
#include "core/ir/place.h"
#include "core/load/session.h"
#include "core/load/trace_writer.h"
#include "core/ops/facts/control.h"
#include "core/ops/record/record.h"
#include "core/schedule/channels_last.h"

namespace partita {
namespace {

/// Gives placeholders that have none PyTorch's descriptor (torch/_functorch/_aot_autograd/descriptors.py), by which
/// compilers recognise weights. Inputs whose new values the caller writes back get none, because their values change
/// between runs.
void describe_inputs(Graph& functional, const std::vector<InputBinding>& inputs, const ViewAndMutationMeta& meta) {
  std::vector<Node*> placeholders = functional.placeholders();
  const std::vector<std::size_t> mutated = meta.mutated_runtime_inputs();
  for (std::size_t i = 0; i < inputs.size() && i < placeholders.size(); ++i) {
    if (!placeholders[i]->note.empty() || std::ranges::find(mutated, i) != mutated.end()) continue;
    if (inputs[i].role == InputRole::Parameter)
      placeholders[i]->note = "ParamAOTInput(target='" + inputs[i].name + "')";
    else if (inputs[i].role == InputRole::Buffer)
      placeholders[i]->note = "BufferAOTInput(target='" + inputs[i].name + "')";
  }
}

/// Has this input of a forward a place among the gradients?
bool has_gradient(const Node& input) {
  return !is_forward_seed(input) && !is_effect_token(input);
}

/// The inputs of a joint graph that was given.
void bind_primals(AotGraphs& out) {
  const std::vector<Node*> placeholders = out.partition.forward->placeholders();
  const std::vector<Arg> gradients = out.partition.backward->outputs();
  const std::vector<std::size_t>& of = out.partition.gradient_of;
  std::size_t primal = 0;
  for (const Node* input : placeholders) {
    bool differentiated = false;
    if (has_gradient(*input)) {
      for (std::size_t g = 0; g < of.size(); ++g) differentiated |= of[g] == primal && gradients[g].node();
      ++primal;
    }
    const InputRole role = input->meta.sym() ? InputRole::Symbol : InputRole::User;
    out.inputs.push_back({role, input->name(), differentiated});
  }
}

/// Who runs the backward puts the gradient of each input under the input's name.
Status one_gradient_each(const AotGraphs& graphs) {
  const std::vector<std::size_t>& of = graphs.partition.gradient_of;
  const auto twice = std::ranges::adjacent_find(of);
  if (twice == of.end()) return {};
  std::vector<Node*> inputs = graphs.partition.forward->placeholders();
  std::erase_if(inputs, [](const Node* n) { return !has_gradient(*n); });
  const Node& input = *inputs[*twice];
  return unsupported("aot.subclass_gradient",
                     fmt::format("the gradient of {} is a tensor subclass, which the joint graph returns as its inner "
                                 "tensors; `aot` cuts this graph, and its backward runs as a graph of its own",
                                 input.name()),
                     place_of(input));
}

/// Is it the annotation of a tensor, behind which there may be more: "f32[4, 4][4, 1]cpu, S(0)" of a DTensor?
bool begins_with_tensor(std::string_view text) {
  for (std::size_t end = text.size(); end != std::string_view::npos; end = end ? text.rfind(", ", end - 1) : text.npos)
    if (const auto meta = parse_annotation(text.substr(0, end)); meta && meta->tensor()) return true;
  return false;
}

/// Text names the class of a tensor subclass: TwoTensor(f32[3][1]cpu). What its operators do is Python code.
Status refuse_subclasses(const Graph& graph) {
  for (const Node* input : graph.placeholders()) {
    const auto* opaque = std::get_if<OpaqueMeta>(&input->meta.v);
    const std::size_t open = opaque ? opaque->text.find('(') : std::string::npos;
    if (open == std::string::npos || open == 0 || !opaque->text.ends_with(')')) continue;
    if (begins_with_tensor(std::string_view(opaque->text).substr(open + 1, opaque->text.size() - open - 2)))
      return unsupported(
          "aot.subclass",
          fmt::format("input {} is a {}, a tensor subclass, whose operators are Python code that no file "
                      "holds; take the joint, forward and backward graphs that PyTorch made of it, "
                      "whose inputs are its inner tensors, or declare a class whose operators act on each inner tensor "
                      "apart as `subclasses` in the --inputs file's metadata",
                      input->name(), opaque->text.substr(0, open)),
          place_of(*input));
  }
  return {};
}

/// What one stage hands to the next.
struct Flow {
  const ExportedProgram* program = nullptr;
  const AotOptions& options;
  bool given_joint = false;
  std::unique_ptr<Graph> given = {};  ///< until it is functional
  FunctionalGraph functional = {};    ///< from then on; when training, until it is differentiated
  std::size_t forward_outputs = 0;    ///< of out.joint
  AotGraphs out = {};

  /// The graph that the next stage changes.
  Graph& graph() { return out.joint ? *out.joint : functional.graph ? *functional.graph : *given; }
};

/// Runs the passes of the stage that the flow is at.
Status run_own_passes(Flow& flow, PassContext context = {}) {
  StageRun& record = flow.out.stages.back();
  PipelineOptions options;
  options.disabled = flow.options.disabled;
  options.snapshots = flow.options.snapshots;
  const auto& runner = flow.options.pass_runner;
  const std::vector<Pass> passes = passes_of(record.stage);
  TRY(record.run,
      runner ? runner(flow.graph(), passes, context, options) : run_passes(flow.graph(), passes, context, options));
  return {};
}

/// DTensors are whole until they are differentiated, and passes would take them for what one rank has.
bool has_whole_tensors(Flow& flow) {
  return has_dtensor_calls(flow.graph());
}

Status pre_grad_passes(Flow& flow) {
  if (has_whole_tensors(flow)) return {};
  return run_own_passes(flow, {.pack_linears = flow.options.pack_linears});
}

Status make_functional(Flow& flow) {
  const AotOptions& options = flow.options;
  AotGraphs& out = flow.out;
  out.inputs = bind_inputs(*flow.given, flow.program, options);
  FunctionalizeOptions how;
  // Without an autograd outside, the backward runs before inputs are written.
  how.keep_input_mutations = options.keep_input_mutations && !(options.train && options.tangents_for_aliases);
  for (const InputBinding& b : out.inputs) how.requires_grad.push_back(b.requires_grad);
  how.is_leaf = options.is_leaf;
  how.pre_dispatch = options.pre_dispatch;
  if (has_whole_tensors(flow)) TRY_DO(refuse_writes(*flow.given));
  TRY(flow.functional, functionalize(*flow.given, how));
  out.meta = flow.functional.meta;
  describe_inputs(*flow.functional.graph, out.inputs, out.meta);
  if (options.train || !has_whole_tensors(flow)) return {};
  TRY(auto local, on_local_tensors(*flow.functional.graph));
  flow.functional.no_grad.clear();  // inference does not ask
  flow.functional.graph = std::move(local);
  return {};
}

/// Passes may replace nodes by others, so marks are kept by number. New nodes have none: they stand for calls that all
/// are under no_grad, or none is.
Status functional_passes(Flow& flow) {
  if (has_whole_tensors(flow)) return {};
  std::set<std::size_t> no_grad;
  for (const Node* n : flow.functional.no_grad) no_grad.insert(n->id());
  TRY_DO(run_own_passes(flow));
  flow.functional.no_grad.clear();
  for (const Node* n : *flow.functional.graph)
    if (no_grad.contains(n->id())) flow.functional.no_grad.insert(n);
  return {};
}

Status differentiate(Flow& flow) {
  TRY(Joint joint, make_joint(std::move(flow.functional), {.tangents_for_aliases = flow.options.tangents_for_aliases}));
  flow.out.joint = std::move(joint.graph);
  flow.out.tangent_of = std::move(joint.tangent_of);
  flow.out.train = !flow.out.tangent_of.empty();
  flow.forward_outputs = joint.forward_outputs;
  if (!has_whole_tensors(flow)) return {};
  TRY(const auto local, on_local_tensors(*flow.out.joint));
  flow.out.joint = renamed_in_order(*local);
  return {};
}

Status effect_tokens(Flow& flow) {
  AotGraphs& out = flow.out;
  out.tokens = thread_effects(flow.graph());
  flow.forward_outputs += out.tokens;
  if (out.joint && out.tokens > 0) out.joint = renamed_in_order(*out.joint);
  return {};
}

Status functional_rng(Flow& flow) {
  AotGraphs& out = flow.out;
  TRY_DO(functionalize_random(flow.graph(),
                              out.joint ? flow.forward_outputs : out.tokens + out.meta.num_forward_returns()));
  out.functional_rng = true;
  ++flow.forward_outputs;
  if (out.joint) out.joint = renamed_in_order(*out.joint);
  return {};
}

Status decompose(Flow& flow) {
  const Decompositions which = flow.options.decompositions;
  TRY_DO(which == Decompositions::Core ? decompose_to_core(flow.graph()) : decompose_as_functorch(flow.graph()));
  if (flow.out.joint) flow.out.joint = renamed_in_order(*flow.out.joint);
  return {};
}

Status joint_passes(Flow& flow) {
  return run_own_passes(flow);
}

Status freeze(Flow& flow) {
  AotGraphs& out = flow.out;
  out.frozen = freeze_parameters(flow.graph(), flow.program, flow.options.values, out);
  TRY_DO(run_own_passes(flow));
  std::set<std::string> read;
  for (const Node* n : flow.graph())
    if (n->is(Op::get_attr())) read.insert(n->target);
  std::erase_if(flow.graph().attributes, [&](const auto& entry) { return !read.contains(entry.first); });
  return {};
}

Status separate_constants(Flow& flow) {
  std::vector<std::size_t> fixed;
  const std::vector<std::size_t> mutated = flow.out.meta.mutated_runtime_inputs();
  for (std::size_t i = 0; i < flow.out.inputs.size(); ++i) {
    if (is_weight(flow.out.inputs[i].role) && std::ranges::find(mutated, i) == mutated.end() &&
        !is_written(flow.program, flow.out.inputs[i].name))
      fixed.push_back(i);
  }
  PassContext context;
  const std::vector<Node*> placeholders = flow.graph().placeholders();
  for (std::size_t i : fixed) context.fixed.insert(placeholders[i]->name());
  TRY_DO(run_own_passes(flow, std::move(context)));
  flow.out.constants = split_constants(flow.graph(), fixed, config().fold_limit);
  return {};
}

/// The forward of a joint graph in which there is nothing to differentiate: it lacks the None per primal.
std::unique_ptr<Graph> without_gradients(const Graph& joint, std::size_t forward_outputs) {
  std::unique_ptr<Graph> forward = joint.clone();
  forward->form = GraphForm::Flat;
  std::vector<Arg> kept = forward->outputs();
  kept.resize(forward_outputs);
  forward->set_output(Arg::tuple(std::move(kept)));
  for (Node* n : forward->placeholders())
    if (is_backward_seed(*n)) forward->erase(n);
  return forward;
}

Status cut(Flow& flow) {
  AotGraphs& out = flow.out;
  if (out.train) {
    PartitionOptions how = flow.options.partition;
    if (!flow.given_joint) how.forward_outputs = flow.forward_outputs;
    // Before the cut, since the compiler may also choose the layouts of saved values.
    const auto has_numbers = [](const Node* n) { return n->meta.tensor() && concrete(n->meta.tensor()->sizes); };
    if (flow.options.choose_layouts.value_or(false) && !flow.given_joint &&
        std::ranges::all_of(out.joint->placeholders(), has_numbers))
      schedule::prefer_channels_last(*out.joint, schedule::channels_last_dtypes());
    TRY(out.partition, partition(*out.joint, how));
    if (!flow.given_joint) return {};
    bind_primals(out);
    return flow.options.tangents_for_aliases ? one_gradient_each(out) : Status();
  }
  // For inference, the functional graph is the forward, and nothing is saved.
  out.partition.forward =
      out.joint ? without_gradients(*out.joint, flow.forward_outputs) : renamed_in_order(*flow.functional.graph);
  out.partition.forward_outputs = out.partition.forward->outputs().size();
  return {};
}

struct Step {
  Stage stage;
  Status (*run)(Flow& flow);
  bool (*applies)(const Flow& flow);
};

constexpr Step flow_steps[] = {
#define STAGE(name, text, rules, passes, before, after, run, when) \
  {Stage::name, run, []([[maybe_unused]] const Flow& f) { return when; }},
#include "core/ir/flow.def"
#undef STAGE
};

/// Writes what PyTorch's log has of a stage's graph, with its names. A joint graph is written also without its passes.
void trace_before(Stage stage, Flow& flow) {
  if (stage == Stage::Partition && !flow.options.passes) stage = Stage::JointPasses;
  if (stage == Stage::JointPasses && flow.out.joint)
    trace::entry("aot_joint_graph", flow.graph());
  else if (const char* name = row_of(stage).before)
    trace::artifact(name, flow.graph());
}
void trace_after(Stage stage, Flow& flow) {
  if (const char* name = row_of(stage).after) trace::artifact(name, flow.graph());
  if (stage != Stage::Partition) return;
  const Partition& parts = flow.out.partition;
  trace::artifact("aot_forward_graph_fw_metadata", metadata_json(flow.out));
  trace::entry(parts.backward ? "aot_forward_graph" : "aot_inference_graph", *parts.forward);
  if (parts.backward) trace::entry("aot_backward_graph", *parts.backward);
}

/// The rules of the stage, for a joint graph and for forward and backward; functionalize() checks its own. Joint graphs
/// that are given lack metas of tuples, which a check wants.
Status check_made(const Flow& flow, Stage stage) {
  if (flow.given_joint) return {};
  const Partition& parts = flow.out.partition;
  if (parts.backward) TRY_DO(check_stage(*parts.backward, stage));
  if (parts.forward) return check_stage(*parts.forward, stage);
  return flow.out.joint ? check_stage(*flow.out.joint, stage) : Status();
}

Status run_step(const Step& step, Flow& flow) {
  const bool traced = trace::on();
  if (traced) trace_before(step.stage, flow);
  const auto start = std::chrono::steady_clock::now();
  flow.out.stages.emplace_back().stage = step.stage;
  {
    const trace::Stage timed(row_of(step.stage).name);
    TRY_DO(step.run(flow));
    TRY_DO(check_made(flow, step.stage));
  }
  StageRun& record = flow.out.stages.back();
  record.milliseconds = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  const Partition& parts = flow.out.partition;
  const Graph& made = parts.forward ? *parts.forward : flow.graph();
  record.nodes = made.size() + (parts.backward ? parts.backward->size() : 0);
  if (flow.options.snapshots) record.after = made.clone();
  if (traced) trace_after(step.stage, flow);
  return {};
}

Result<AotGraphs> run_flow(const Graph& given, const ExportedProgram* program, const AotOptions& options) {
  TRY_DO(check_pass_names(options.disabled));
  TRY(const auto of_rank, of_one_rank(given));
  const Graph& graph = of_rank ? *of_rank : given;
  Flow flow{.program = program, .options = options};
  flow.given_joint = options.train && is_joint(graph);
  trace::input(graph, flow.given_joint ? nullptr : program ? "exported_program" : "dynamo_output_graph");
  if (flow.given_joint) {
    flow.out.joint = graph.clone();
    flow.out.train = true;
  } else {
    TRY_DO(refuse_subclasses(graph));
    flow.given = graph.clone();
  }
  for (const Step& step : flow_steps)
    if (step.stage <= options.until && step.applies(flow)) TRY_DO(run_step(step, flow));
  return std::move(flow.out);
}

}  // namespace

Result<AotGraphs> aot(const Graph& graph, const ExportedProgram* program, const AotOptions& options) {
  return trace::compiled([&] { return run_flow(graph, program, options); });
}

std::vector<Node*> AotGraphs::placeholders() const {
  std::vector<Node*> all = partition.forward->placeholders();
  all.erase(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(tokens));
  return all;
}

std::vector<Arg> AotGraphs::results() const {
  std::vector<Arg> all = partition.forward->outputs();
  all.erase(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(tokens));
  return all;
}

std::vector<Node*> AotGraphs::tangents() const {
  if (!partition.backward) return {};
  std::vector<Node*> all = partition.backward->placeholders();
  if (functional_rng) all.resize(all.size() - 2);
  all.erase(all.begin(), all.end() - static_cast<std::ptrdiff_t>(tangent_of.size()));
  return all;
}

std::shared_ptr<const Graph> AotGraphs::after(Stage stage) const {
  for (const StageRun& run : stages)
    if (run.stage == stage) return run.after;
  return nullptr;
}

std::shared_ptr<const Graph> AotGraphs::before_joint_passes() const {
  for (std::size_t i = 1; i < stages.size(); ++i)
    if (stages[i].stage == Stage::JointPasses) return stages[i - 1].after;
  return nullptr;
}

Decompositions configured_decompositions() {
  const std::string& name = config().decompositions;
  return name == "core" ? Decompositions::Core : name == "default" ? Decompositions::Functorch : Decompositions::None;
}

AotOptions as_run(const Graph& graph, AotOptions options) {
  options.tangents_for_aliases = true;
  options.keep_input_mutations = can_write_inputs(graph);
  options.choose_layouts = options.choose_layouts.value_or(true);
  options.split_constants = options.passes && config().use_runtime_constant_folding;
  return options;
}

AotOptions as_run(const Graph& graph, const Artefact& artefact, AotOptions options) {
  options.partition.functorch = artefact.functorch;
  return as_run(graph, std::move(options));
}

Status check_not_cut(const Graph& graph, const Artefact& artefact) {
  if (is_differentiable(artefact.kind) || is_joint(graph)) return {};
  const std::string what = artefact.kind == ArtefactKind::Joint ? "a graph of inference"
                                                                : fmt::format("a {} graph", kind_name(artefact.kind));
  return input_error("aot.cut",
                     fmt::format("{} is {}, which PyTorch has cut out already; it is not differentiated again unless "
                                 "asked (`aot --differentiate`, `--train`)",
                                 artefact.id, what),
                     {.graph = graph.name});
}

Status prepare_post_grad(Graph& graph) {
  TRY_DO(inline_effects(graph));
  for (Node* node : graph) {
    if (node->op()->is_call()) TRY_DO(check_evaluable(*node));
    // Text has no annotations of tuples, but the planner needs their metas.
    if (node->meta.known() || !node->op()->is_call() || find_control(node->op())) continue;
    TRY(node->meta, infer(*node));
    // An item's own annotation counts more than inference, which does not know layouts that were chosen.
    auto* tuple = std::get_if<MetaTuple>(&node->meta.v);
    for (const Node* user : node->users()) {
      const auto* index = tuple && user->is(Op::getitem()) ? user->args()[1].get<std::int64_t>() : nullptr;
      if (index && *index >= 0 && static_cast<std::size_t>(*index) < tuple->items.size() && user->meta.tensor())
        tuple->items[static_cast<std::size_t>(*index)] = user->meta;
    }
  }
  return {};
}

Result<PipelineRun> post_grad_passes(Graph& graph, PassContext& context, const PipelineOptions& options) {
  TRY_DO(check_pass_names(options.disabled));
  TRY_DO(prepare_post_grad(graph));
  return run_passes(graph, passes_of(Stage::PostGradPasses), context, options);
}

}  // namespace partita

#include "core/aot/aot.h"

#include <algorithm>

#include "core/aot/text_roles.h"
#include "core/grad/joint.h"
#include "core/ops/rules.h"

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

Status decompose_by(Decompositions which, Graph& graph) {
  if (which == Decompositions::Core) return decompose_to_core(graph);
  if (which == Decompositions::Functorch) return decompose_as_functorch(graph);
  return {};
}

/// For inference, the functional graph is the forward, and nothing is saved.
Partition forward_only(const FunctionalGraph& functional) {
  Partition p;
  p.forward = renamed_in_order(*functional.graph);
  p.forward_outputs = p.forward->outputs().size();
  return p;
}

Result<AotGraphs> partition_joint(const Graph& joint, const AotOptions& options) {
  AotGraphs out;
  out.train = true;
  TRY(out.partition, partition(joint, options.partition));
  out.joint = joint.clone();
  std::vector<Node*> placeholders = out.partition.forward->placeholders();
  std::vector<Arg> gradients = out.partition.backward->outputs();
  for (std::size_t i = 0; i < placeholders.size(); ++i) {
    bool differentiated = i < gradients.size() && gradients[i].node();
    InputRole role = placeholders[i]->meta.sym() ? InputRole::Symbol : InputRole::User;
    out.inputs.push_back({role, placeholders[i]->name(), differentiated});
  }
  return out;
}

}  // namespace

bool can_be_differentiated(const Node& placeholder) {
  const TensorMeta* t = placeholder.meta.tensor();
  return t && (is_floating(t->dtype) || is_complex(t->dtype));
}

std::vector<InputBinding> bind_inputs(const Graph& graph, const Program* program, const AotOptions& options) {
  std::vector<InputBinding> inputs;
  bool any_parameter = false;
  for (Node* node : graph.placeholders()) {
    InputBinding b =
        program ? InputBinding{node->meta.sym() ? InputRole::Symbol : InputRole::User, node->name()} : text_role(*node);
    const ProgramInput* from = program ? program->input(node->name()) : nullptr;
    if (from && from->kind == ProgramInputKind::Parameter)
      b = {InputRole::Parameter, from->target};
    else if (from && from->kind == ProgramInputKind::Buffer)
      b = {InputRole::Buffer, from->target};
    else if (from && from->kind == ProgramInputKind::Constant)
      b = {InputRole::Constant, from->target};
    any_parameter |= b.role == InputRole::Parameter;
    inputs.push_back(std::move(b));
  }
  std::vector<Node*> placeholders = graph.placeholders();
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    bool wanted =
        any_parameter || program ? inputs[i].role == InputRole::Parameter : inputs[i].role != InputRole::Buffer;
    if (!options.requires_grad.empty()) wanted = i < options.requires_grad.size() && options.requires_grad[i];
    inputs[i].requires_grad = options.train && wanted && can_be_differentiated(*placeholders[i]);
  }
  return inputs;
}

Result<AotGraphs> aot(const Graph& graph, const Program* program, const AotOptions& options) {
  if (options.train && is_joint(graph)) return partition_joint(graph, options);
  AotGraphs out;
  out.inputs = bind_inputs(graph, program, options);
  FunctionalizeOptions functional_options;
  functional_options.keep_input_mutations = !options.train && options.keep_input_mutations;
  for (const InputBinding& b : out.inputs) functional_options.requires_grad.push_back(b.requires_grad);
  functional_options.is_leaf = options.is_leaf;
  TRY(FunctionalGraph functional, functionalize(graph, functional_options));
  out.meta = functional.meta;
  describe_inputs(*functional.graph, out.inputs, out.meta);
  if (options.train) {
    JointOptions joint_options{.tangents_for_aliases = options.tangents_for_aliases};
    TRY(Joint joint, make_joint(std::move(functional), joint_options));
    if (options.decompositions != Decompositions::None) {
      TRY_DO(decompose_by(options.decompositions, *joint.graph));
      joint.graph = renamed_in_order(*joint.graph);
      TRY_DO(check_stage(*joint.graph, Stage::Joint));
    }
    out.joint = std::move(joint.graph);
    out.tangent_of = std::move(joint.tangent_of);
    out.train = !out.tangent_of.empty();
    PartitionOptions cut = options.partition;
    cut.forward_outputs = joint.forward_outputs;
    if (out.train) {
      TRY(out.partition, partition(*out.joint, cut));
      TRY_DO(check_stage(*out.partition.forward, Stage::Functional));
      TRY_DO(check_stage(*out.partition.backward, Stage::Functional));
      return out;
    }
    // If there is nothing to differentiate, the joint graph is the forward with a None per primal.
    out.partition.forward = out.joint->clone();
    out.partition.forward->form = GraphForm::Flat;
    std::vector<Arg> kept = out.partition.forward->outputs();
    kept.resize(joint.forward_outputs);
    out.partition.forward->set_output(Arg::tuple(std::move(kept)));
    out.partition.forward_outputs = joint.forward_outputs;
    return out;
  }
  TRY_DO(decompose_by(options.decompositions, *functional.graph));
  out.partition = forward_only(functional);
  TRY_DO(check_stage(*out.partition.forward, Stage::Functional));
  return out;
}

}  // namespace partita

// aot_export_module and aot_export_joint_simple run the flow without passes and refuse what PyTorch refuses. The former
// also lifts parameters, puts ones in the place of the loss's tangent, and makes the GraphSignature.
#include "core/aot/export_module.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "core/aot/aot.h"
#include "core/aot/graph_io.h"
#include "core/aot/tree_spec.h"
#include "core/aot/wrapper.h"
#include "core/base/assign.h"
#include "core/grad/joint.h"
#include "core/ir/place.h"
#include "core/ir/print.h"
#include "core/ir/symbols_of.h"

namespace partita {
namespace {

/// A graph whose placeholders are in the order of the exported graph's inputs.
struct Lifted {
  std::unique_ptr<Graph> graph;
  std::vector<InputBinding> inputs;
  GraphInputs given;  ///< empty without an inputs' file
  Arg returned;       ///< what forward returns; the graph returns the leaves
  std::string out_spec;
};

/// aot_export_module's order of inputs.
int order_of(InputRole role) {
  return role == InputRole::Parameter ? 0 : role == InputRole::Buffer ? 1 : 2;
}

std::string described(const InputBinding& input) {
  const char* kind = input.role == InputRole::Parameter ? "parameter"
                     : input.role == InputRole::Buffer  ? "buffer"
                                                        : "input";
  return fmt::format("{} {}", kind, input.name);
}

Diagnostic refused(const char* code, std::string message, const Node* node = nullptr) {
  Where where = place_of(node);
  return input_error(code, std::move(message), {.file = where.file, .line = where.line, .origin = where.origin});
}

/// The written value of a program's output whose kind is a mutation goes back into its input by copy_, as it was before
/// the program was made functional.
Status write_mutations(Graph& graph, const ExportedProgram& program) {
  const std::vector<Arg> outputs = graph.outputs();
  std::vector<Arg> kept;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const ProgramOutput* o = i < program.outputs.size() ? &program.outputs[i] : nullptr;
    const ProgramOutputKind kind = o ? o->kind : ProgramOutputKind::UserOutput;
    if (kind == ProgramOutputKind::UserOutput || kind == ProgramOutputKind::Loss) {
      kept.push_back(outputs[i]);
      continue;
    }
    if (kind != ProgramOutputKind::BufferMutation && kind != ProgramOutputKind::ParameterMutation &&
        kind != ProgramOutputKind::UserInputMutation)
      return refused("export.program",
                     fmt::format("output {} is {}; export the program without it", o->name, kind_name(kind)));
    const auto input = std::ranges::find_if(program.inputs, [&](const ProgramInput& p) {
      return kind == ProgramOutputKind::UserInputMutation ? p.name == o->target : p.target == o->target;
    });
    Node* target = input == program.inputs.end() ? nullptr : graph.find(input->name);
    if (!target || !outputs[i].node())
      return refused("export.program", fmt::format("output {} updates {}, which is no input", o->name, o->target));
    Node* copy = graph.create(Op::torch("aten.copy_.default"), {target, outputs[i]}, {}, {}, graph.output());
    copy->meta = target->meta;
  }
  if (kept.size() < outputs.size()) graph.set_output(Arg::tuple(std::move(kept)));
  return {};
}

/// Dynamo gives a graph the sizes of its inputs as inputs. The exported graph reads them off the tensors.
Node* read_size(Graph& graph, Node& symbol) {
  const SymExpr* value = symbol.meta.sym();
  if (!value || value->kind() != SymKind::Symbol) return nullptr;
  Node* call = graph.first();
  while (call->is_placeholder()) call = call->next();
  for (Node* p : graph.placeholders()) {
    const TensorMeta* t = p->meta.tensor();
    for (std::size_t d = 0; t && d < t->dim(); ++d) {
      if (t->sizes[d] != *value) continue;
      Node* size = graph.create(Op::torch("aten.sym_size.int"), {p, static_cast<std::int64_t>(d)}, {}, {}, call);
      size->meta = symbol.meta;
      return size;
    }
  }
  return nullptr;
}

Status check_devices(const Lifted& lifted, const TensorFile& io) {
  const std::vector<Node*> placeholders = lifted.graph->placeholders();
  for (std::size_t i = 0; i < placeholders.size(); ++i) {
    const TensorMeta* meta = placeholders[i]->meta.tensor();
    const Tensor* t = io.find(lifted.given.keys[i]);
    if (!meta || !meta->device_known || !t || meta->device == t->device()) continue;
    return refused(
        "export.device",
        fmt::format("Device mismatch between fake input and example input at position #{}: {} vs {}. It is {}", i,
                    meta->device.str(), t->device().str(), described(lifted.inputs[i])),
        placeholders[i]);
  }
  return {};
}

/// `lift`: parameters and buffers first, as aot_export_module; else the inputs stay as they are.
Result<Lifted> lifted(const Graph& graph, const ExportedProgram* program, const TensorFile* io, bool train, bool lift) {
  if (is_joint(graph))
    return refused("export.joint", fmt::format("graph {} has a backward already; export its forward", graph.name));
  Lifted out;
  out.graph = graph.clone();
  if (program) TRY_DO(write_mutations(*out.graph, *program));
  if (const Node* output = out.graph->output()) out.returned = output->args().empty() ? Arg() : output->args()[0];
  if (program && program->returned)
    if (const std::vector<Arg> leaves = out.graph->outputs(); tree_leaves(*program->returned).size() == leaves.size())
      out.returned = with_leaves(*program->returned, leaves);
  out.out_spec = tree_spec(out.returned);
  out.graph->set_output(Arg::tuple(tree_leaves(out.returned)));

  struct Input {
    Node* node;
    InputBinding binding;
    std::size_t at;  ///< its place in `given`
  };
  std::vector<Input> inputs;
  GraphInputs given;
  if (io) {
    const std::unique_ptr<Graph> scratch = graph.clone();
    TRY(given, gather_inputs(*scratch, program, *io, 0));
  }
  const std::vector<InputBinding> bindings = bind_inputs(*out.graph, program, {.train = train});
  const std::vector<Node*> placeholders = out.graph->placeholders();
  for (std::size_t i = 0; i < placeholders.size(); ++i) {
    inputs.push_back({placeholders[i], bindings[i], i});
    const bool frozen = is_frozen(program, *placeholders[i]);
    if (!io) continue;
    const Tensor* t = io->find(given.keys[i]);
    inputs[i].binding.requires_grad =
        train && can_be_differentiated(*placeholders[i]) &&
        ((lift && !frozen && bindings[i].role == InputRole::Parameter) || (t && t->requires_grad));
  }
  if (lift) {
    std::erase_if(inputs, [&](const Input& input) {
      Node* size = read_size(*out.graph, *input.node);
      if (!size) return false;
      input.node->replace_all_uses_with(size);
      out.returned = map_nodes(out.returned, [&](Node* n) -> Arg { return n == input.node ? size : n; });
      out.graph->erase(input.node);
      return true;
    });
    std::ranges::stable_sort(inputs, {}, [](const Input& input) { return order_of(input.binding.role); });
    Node* first = out.graph->first();
    while (first->is_placeholder()) first = first->next();
    for (const Input& input : inputs) out.graph->move_before(input.node, first);
  }
  for (Input& input : inputs) {
    out.inputs.push_back(std::move(input.binding));
    if (!io) continue;
    out.given.keys.push_back(std::move(given.keys[input.at]));
    out.given.memory.push_back(std::move(given.memory[input.at]));
    out.given.values.push_back(std::move(given.values[input.at]));
  }
  if (io) TRY_DO(check_devices(out, *io));
  return out;
}

Result<AotGraphs> traced(const Lifted& lifted, const ExportedProgram* program, const ExportOptions& options) {
  AotOptions how;
  if (how.functionalize_rng)
    return unsupported("export.functionalize_rng",
                       "an exported graph cannot take its random numbers from a seed and an offset; leave "
                       "functionalize_rng off");
  how.train = options.trace_joint;
  how.pre_dispatch = options.pre_dispatch;
  how.keep_input_mutations = false;
  how.passes = false;
  for (const InputBinding& input : lifted.inputs) how.requires_grad.push_back(input.requires_grad);
  return aot(*lifted.graph, program, how);
}

/// A number or a size that depends on values has no symbol to stand for it when all inputs have known sizes, as fake
/// tensors without a ShapeEnv.
Status refuse_data_dependence(const Lifted& lifted, const Graph& made) {
  std::set<std::string> of_inputs, of_results;
  for (const Node* p : lifted.graph->placeholders()) of_inputs.merge(symbols_of(p->meta));
  if (!of_inputs.empty()) return {};
  for (const Node* n : made) {
    if (!n->op()->is_call()) continue;
    of_results.merge(symbols_of(n->meta));
    if (of_results.empty()) continue;
    const std::string what = fmt::format("{} depends on values; give an input a symbolic size", n->name());
    return refused("export.data_dependent",
                   n->meta.sym() ? "aten._local_scalar_dense.default: " + what : n->op()->name + ": " + what, n);
  }
  return {};
}

std::string type_name(const Arg& arg) {
  if (const Node* n = arg.node()) return n->meta.sym() ? "SymInt" : "Tensor";
  if (const auto* list = arg.get<ArgList>()) return list->is_tuple ? "tuple" : "list";
  if (arg.get<ArgDict>()) return "dict";
  if (arg.get<bool>()) return "bool";
  if (arg.get<std::int64_t>()) return "int";
  if (arg.get<double>()) return "float";
  if (arg.get<std::complex<double>>()) return "complex";
  if (arg.get<std::string>()) return "str";
  return arg.is_none() ? "NoneType" : "object";
}

/// fn_to_trace of aot_export_module: only the loss, a scalar, requires grad. Returns the index of the loss.
Result<std::size_t> find_loss(const Lifted& lifted, const AotGraphs& graphs, std::optional<std::int64_t> index) {
  if (!index)  // PyTorch's words, "Trueit" too
    return refused("export.loss",
                   "If trace_joint=Trueit is required that one of your forward outputs must be a scalar loss. Give its "
                   "index by --loss-index");
  std::vector<Arg> outputs = {lifted.returned};
  if (const auto* list = lifted.returned.get<ArgList>())
    outputs = list->items;
  else if (!lifted.returned.node())
    return refused("export.loss",
                   fmt::format("Expected forward output to be either a tensor or a list/tuple of tensors. "
                               "found <class '{}'>",
                               type_name(lifted.returned)));
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const Node* node = outputs[i].node();
    if (!node || node->meta.sym())
      return refused("export.loss",
                     fmt::format("'{}' object has no attribute 'requires_grad'; output {} is {}", type_name(outputs[i]),
                                 i, print(outputs[i])),
                     node);
    if (graphs.meta.outputs[i].requires_grad && static_cast<std::int64_t>(i) != *index)
      return refused(
          "export.loss",
          fmt::format("Found an output of the forward that requires gradients, that was not the scalar loss. "
                      "The loss is output {}, but output {}, {}, requires gradients; return its .detach()",
                      *index, i, node->name()),
          node);
  }
  const auto count = static_cast<std::int64_t>(outputs.size());
  const std::int64_t at = *index < 0 ? *index + count : *index;
  if (at < 0 || at >= count)
    return refused("export.loss", fmt::format("{} index out of range: output {} is the loss, but there are {} outputs",
                                              type_name(lifted.returned), *index, count));
  const Node* loss = outputs[static_cast<std::size_t>(at)].node();
  if (!graphs.meta.outputs[static_cast<std::size_t>(at)].requires_grad)
    return refused("export.loss",
                   fmt::format("The output at index {} was marked as the loss, but it does not require "
                               "gradients: {}",
                               *index, loss->name()),
                   loss);
  const TensorMeta& meta =
      *graphs.partition.forward->outputs()[graphs.meta.mutated_runtime_inputs().size() + static_cast<std::size_t>(at)]
           .node()
           ->meta.tensor();
  if (!meta.numel().is(1)) {
    std::string sizes;
    for (const SymExpr& s : meta.sizes) sizes += (sizes.empty() ? "" : ", ") + s.str();
    return refused("export.loss",
                   fmt::format("We require the output marked as the loss (at index {}) to be a scalar, "
                               "but it has shape torch.Size([{}]): {}",
                               *index, sizes, loss->name()),
                   loss);
  }
  return static_cast<std::size_t>(at);
}

/// What AOTAutograd refuses for every export (create_aot_state, AOTDedupeWrapper, AOTSyntheticBaseWrapper).
Status check_inputs(const Lifted& lifted, const AotGraphs& graphs) {
  const std::vector<InputAliasInfo>& infos = graphs.meta.inputs;
  for (std::size_t i = 0; i < infos.size(); ++i)
    if (infos[i].mutates_metadata || infos[i].resizes_storage)
      return refused(
          "export.metadata_mutation",
          fmt::format("Found an input that received a metadata mutation, through e.g. a call to `.resize_()` "
                      "or `.transpose_()`. It is {}",
                      described(lifted.inputs[i])));
  for (std::size_t i = 0; i < infos.size(); ++i)
    if (infos[i].requires_grad && infos[i].mutates_data)
      return refused("export.grad_mutation",
                     fmt::format("Found a graph input that requires gradients, and received a mutation. It is {}",
                                 described(lifted.inputs[i])));
  if (lifted.given.values.empty()) return {};
  const auto written = [&](std::size_t i) { return infos[i].mutates_data || infos[i].mutates_metadata; };
  const std::vector<std::string>& keys = lifted.given.keys;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const auto same = static_cast<std::size_t>(std::ranges::find(keys, lifted.given.memory[i]) - keys.begin());
    if (same < i && (written(i) || written(same)))
      return refused(
          "export.shared",
          fmt::format("Encountered duplicated inputs that are mutated in the graph you are trying to export. "
                      "They are {} and {}",
                      described(lifted.inputs[same]), described(lifted.inputs[i])));
  }
  const std::unique_ptr<Graph> scratch = lifted.graph->clone();
  GraphInputs given = lifted.given;
  TRY(const Wrappers wrappers, wrap_inputs(*scratch, given, true));
  const auto* bases = wrappers.empty() ? nullptr : std::get_if<SyntheticBaseWrapper>(&wrappers.back());
  if (!bases) return {};
  const std::vector<std::size_t> place = places_of_inputs(wrappers, lifted.inputs.size());
  const std::size_t first = bases->at[bases->views.front().input];
  std::string names;
  for (std::size_t c = 0; c < place.size(); ++c)
    if (place[c] == first) names += (names.empty() ? "" : ", ") + described(lifted.inputs[c]);
  return refused(
      "export.shared",
      "Encountered aliased inputs that are mutated in the graph you are trying to export. They are " + names);
}

std::string name_of_output(const Arg& output) {
  return output.node() ? output.node()->name() : print(output);
}

/// A signature maps output names, so that one output cannot stand for two things.
Status add_once(NameMap& map, const Arg& output, const std::string& meaning, std::set<std::string>& taken) {
  const std::string name = name_of_output(output);
  if (!taken.insert(name).second)
    return refused("export.same_output",
                   fmt::format("output {} is the value of {} and of another input too, which a signature cannot say",
                               name, meaning));
  map.emplace_back(name, meaning);
  return {};
}

/// Takes the tangent out of a joint graph (the loss's is 1), and the None gradients.
Result<std::unique_ptr<Graph>> without_tangents(const AotGraphs& graphs, const Lifted& lifted, std::size_t loss) {
  std::unique_ptr<Graph> joint = graphs.joint->clone();
  const std::size_t forward_outputs = graphs.partition.forward_outputs;
  const std::vector<Node*> placeholders = joint->placeholders();
  std::vector<Arg> outputs = joint->outputs(),
                   returned(outputs.begin(), outputs.begin() + static_cast<std::ptrdiff_t>(forward_outputs));
  for (std::size_t i = 0; i < lifted.inputs.size(); ++i) {
    if (!lifted.inputs[i].requires_grad) continue;
    if (outputs[forward_outputs + i].is_none())
      return refused("export.no_gradient",
                     "Found a parameter that did not receive a gradient. It is " + described(lifted.inputs[i]));
    returned.push_back(outputs[forward_outputs + i]);
  }
  Node* value = outputs[graphs.meta.mutated_runtime_inputs().size() + loss].node();
  for (std::size_t i = lifted.inputs.size(); i < placeholders.size(); ++i) {
    Node* tangent = placeholders[i];
    const auto reads = [&](const Node* n) {
      const std::vector<Node*> inputs = n->inputs();
      return std::ranges::find(inputs, tangent) != inputs.end();
    };
    Node* before = joint->first();
    while (!before->is_output() && !reads(before)) before = before->next();
    Node* one = joint->create(Op::torch("aten.ones_like.default"), {value},
                              {{"pin_memory", false}, {"memory_format", MemoryFormat::Preserve}}, {}, before);
    one->meta = tangent->meta;
    one->origin = value->origin;
    tangent->replace_all_uses_with(one);
    joint->erase(tangent);
  }
  joint->set_output(Arg::tuple(std::move(returned)));
  joint->form = GraphForm::Flat;
  joint->name = lifted.graph->name;
  for (std::size_t i = 0; i < lifted.inputs.size(); ++i) joint->rename(placeholders[i], fmt::format("arg{}_1", i));
  return renamed_in_order(*joint);
}

/// (args, kwargs) of the exported function: parameters and buffers, then what the module takes. Text does not say what
/// containers that came in.
Arg arguments_tree(std::size_t weights, std::size_t users, const ExportedProgram* program) {
  std::vector<Arg> args(weights), given(users);
  Arg kwargs = ArgDict();
  if (program && program->arguments && tree_leaves(*program->arguments).size() == users) {
    const std::vector<Arg> both = tree_children(*program->arguments);
    if (both.size() == 2 && both[1].get<ArgDict>()) {
      given = tree_children(both[0]);
      kwargs = both[1];
    }
  }
  args.insert(args.end(), given.begin(), given.end());
  return Arg::tuple({Arg::tuple(std::move(args)), std::move(kwargs)});
}

/// create_graph_signature and GraphSignature.from_tracing_metadata.
Result<GraphSignature> signature_of(const Graph& graph, const Lifted& lifted, const AotGraphs& graphs,
                                    const ExportedProgram* program, std::optional<std::size_t> loss,
                                    std::optional<std::int64_t> loss_index) {
  GraphSignature s;
  const std::vector<Node*> inputs = graph.placeholders();
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const InputBinding& b = lifted.inputs[i];
    if (b.role == InputRole::Parameter) {
      s.parameters.push_back(b.name);
      s.inputs_to_parameters.emplace_back(inputs[i]->name(), b.name);
    } else if (b.role == InputRole::Buffer) {
      s.buffers.push_back(b.name);
      s.inputs_to_buffers.emplace_back(inputs[i]->name(), b.name);
    } else {
      s.user_inputs.push_back(inputs[i]->name());
    }
  }
  const std::vector<Arg> outputs = graph.outputs();
  const std::vector<std::size_t> mutated = graphs.meta.mutated_runtime_inputs();
  std::size_t at = 0;
  std::set<std::string> taken;
  for (std::size_t i : mutated) {
    const InputBinding& b = lifted.inputs[i];
    const bool user = b.role != InputRole::Parameter && b.role != InputRole::Buffer;
    NameMap& map = user                             ? s.user_inputs_to_mutate
                   : b.role == InputRole::Parameter ? s.parameters_to_mutate
                                                    : s.buffers_to_mutate;
    TRY_DO(add_once(map, outputs[at++], user ? inputs[i]->name() : b.name, taken));
  }
  for (std::size_t i = 0; i < graphs.meta.outputs.size(); ++i, ++at)
    s.user_outputs.push_back(outputs[at].node() ? std::optional(outputs[at].node()->name()) : std::nullopt);
  s.in_spec = tree_spec(arguments_tree(inputs.size() - s.user_inputs.size(), s.user_inputs.size(), program));
  s.out_spec = lifted.out_spec;
  if (!loss) return s;
  BackwardSignature& b = s.backward.emplace();
  taken.clear();
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!lifted.inputs[i].requires_grad) continue;
    const bool parameter = lifted.inputs[i].role == InputRole::Parameter;
    TRY_DO(add_once(parameter ? b.gradients_to_parameters : b.gradients_to_user_inputs, outputs[at++],
                    parameter ? lifted.inputs[i].name : inputs[i]->name(), taken));
  }
  b.loss = name_of_output(outputs[mutated.size() + *loss]);
  const auto count = static_cast<std::int64_t>(outputs.size());
  b.loss_output =
      name_of_output(outputs[static_cast<std::size_t>(*loss_index < 0 ? *loss_index + count : *loss_index)]);
  return s;
}

void name_inputs(Graph& graph) {
  for (Node* p : graph.placeholders()) p->target = p->name();
}

}  // namespace

Result<ExportedModule> export_module(const Graph& graph, const ExportedProgram* program, const TensorFile* io,
                                     const ExportOptions& options) {
  if (options.pre_dispatch && options.trace_joint)
    return refused("export.pre_dispatch", "pre_dispatch is not supported when trace_joint is True.");
  TRY(const Lifted lifted_graph, lifted(graph, program, io, options.trace_joint, true));
  TRY(AotGraphs graphs, traced(lifted_graph, program, options));
  TRY_DO(refuse_data_dependence(lifted_graph, *graphs.partition.forward));
  std::optional<std::size_t> loss;
  if (options.trace_joint) TRY_DO(assign(loss, find_loss(lifted_graph, graphs, options.loss_index)));
  TRY_DO(check_inputs(lifted_graph, graphs));
  ExportedModule out;
  if (loss) {
    TRY(out.graph, without_tangents(graphs, lifted_graph, *loss));
  } else {
    out.graph = std::move(graphs.partition.forward);
  }
  name_inputs(*out.graph);
  TRY(out.signature, signature_of(*out.graph, lifted_graph, graphs, program, loss, options.loss_index));
  return out;
}

Result<std::unique_ptr<Graph>> export_joint_simple(const Graph& graph, const ExportedProgram* program,
                                                   const TensorFile* io, const ExportOptions& options) {
  constexpr const char* code = "export.joint_simple";
  TRY(const Lifted function, lifted(graph, program, io, options.trace_joint, false));
  TRY(AotGraphs graphs, traced(function, program, options));
  TRY_DO(refuse_data_dependence(function, *graphs.partition.forward));
  TRY_DO(check_inputs(function, graphs));
  for (std::size_t i = 0; i < graphs.meta.inputs.size(); ++i)
    if (graphs.meta.inputs[i].mutates_data)
      return refused(
          code, "aot_export_joint_simple does not support input mutations. It writes " + described(function.inputs[i]));
  const std::vector<Arg> outputs = tree_leaves(function.returned);
  for (std::size_t i = 0; i < graphs.meta.outputs.size(); ++i)
    if (graphs.meta.outputs[i].type != OutputType::NonAlias)
      return refused(
          code, fmt::format("aot_export_joint_simple does not support outputs that alias inputs. Output {}, {}, is {}",
                            i, name_of_output(outputs[i]), name_of(graphs.meta.outputs[i].type)));
  std::string spec = function.out_spec;
  std::erase(spec, '\n');
  if (is_leaf(function.returned))
    return refused(code, fmt::format("aot_export_joint_simple requires outputs to be a single list/tuple. out_spec={}; "
                                     "return ({},)",
                                     spec, name_of_output(function.returned)));
  const std::vector<Arg> children = tree_children(function.returned);
  if (const auto nested = std::ranges::find_if_not(children, is_leaf); nested != children.end())
    return refused(code,
                   fmt::format("aot_export_joint_simple requires individual outputs not to be pytrees. out_spec={}; "
                               "output {} is a {}",
                               spec, nested - children.begin(), type_name(*nested)));
  std::unique_ptr<Graph> made = std::move(graphs.joint ? graphs.joint : graphs.partition.forward);
  if (made->form == GraphForm::Flat) name_inputs(*made);
  return made;
}

}  // namespace partita

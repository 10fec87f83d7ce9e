// Values of a graph from IO files, archives or random numbers, by key: first learns the symbols from sizes, then takes
// each value in the layout of its placeholder. Also results as an OUT file, with aliases and written inputs.
#include "core/aot/graph_io.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/aot/aot.h"
#include "core/aot/text_roles.h"
#include "core/base/check.h"
#include "core/base/hash.h"
#include "core/compare/per_node.h"
#include "core/fake/propagate.h"
#include "core/interp/random_values.h"
#include "core/interp/symbols.h"
#include "core/ir/place.h"
#include "core/ops/facts/effects.h"
#include "core/ops/record/evaluate.h"
#include "core/ops/schema/schema.h"
#include "core/tensor/repeated_elements.h"
#include "core/tensor/significant_strides.h"

namespace partita {
namespace {

/// The keys of the placeholders' values in IO files. For an archive, only user inputs are counted as input.N.
std::vector<std::string> input_keys(const Graph& graph, const ExportedProgram* program, const TensorFile& io) {
  if (!program) return text_keys(graph, io);
  std::vector<std::string> keys;
  int count = 0;
  for (const Node* placeholder : graph.placeholders()) {
    const ProgramInput* input = program->input(placeholder->name());
    const InputBinding role = input_role(*placeholder, program);
    if (input && !input->key.empty())
      keys.push_back(input->key);
    else
      keys.push_back(is_weight(role.role) ? plain_key(role) : fmt::format("input.{}", count++));
  }
  return keys;
}

/// Alternative keys: "tangent.K" for a joint graph's tangents, which come after the primals; "" for other placeholders.
/// A signature says which output each belongs to.
std::vector<std::string> tangent_keys(const Graph& graph, const ExportedProgram* program) {
  std::vector<std::string> keys;
  int count = 0;
  for (const Node* placeholder : graph.placeholders()) {
    const bool is_tangent = !program && graph.form == GraphForm::Joint && placeholder->name().starts_with("tangents_");
    keys.push_back(is_tangent ? fmt::format("tangent.{}", count++) : "");
  }
  return keys;
}

/// Converts a stored tensor to what the meta wants: integers are stored as tensors of one element, tensors perhaps
/// without their strides.
Result<Value> as_meta_wants(const Meta& meta, const Tensor& t, const std::string& key, const SymbolMap& symbols) {
  if (!meta.sym()) {
    TRY(Tensor tensor, laid_out(t, meta, symbols));
    return Value(std::move(tensor));
  }
  if (meta.sym()->is_float() && t.numel() == 1 && !is_complex(t.dtype)) {
    TRY(const Tensor number, t.to(DType::Float64));
    return Value(*number.as<double>());
  }
  if (!is_number(t))
    return input_error("io.number", fmt::format("{} must be one integer, but it is a tensor of {} elements of {}", key,
                                                t.numel(), torch_name(t.dtype)));
  TRY(const Tensor number, t.to(DType::Int64));
  return Value(*number.as<std::int64_t>());
}

/// The value of an input of which nothing is known and that the graph only hands on, as a device mesh: the repr that a
/// file has of it, else its name.
Value handed_on(const Node& node, const TensorFile& io, const std::string& key) {
  if (const auto other = io.metadata.find("other"); other != io.metadata.end())
    if (const auto json = nlohmann::json::parse(other->second, nullptr, false);
        json.is_object() && json.contains(key) && json[key].is_string())
      return Value(json[key].get<std::string>());
  return Value(node.name());
}

bool is_handed_on(const Node& node) {
  return !node.meta.known() && std::ranges::all_of(node.users(), [](const Node* user) { return user->is_output(); });
}

Result<Value> gather(const Node& node, const std::string& key, const std::string& second,
                     const ExportedProgram* program, const TensorFile& io, const SymbolMap& symbols,
                     std::optional<std::uint64_t> seed) {
  if (const Tensor* t = io.find(key)) {
    if (io.storages.contains(key) && !node.meta.sym()) return Value(*t);
    return as_meta_wants(node.meta, *t, key, symbols);
  }
  if (const Tensor* t = io.find(second)) return as_meta_wants(node.meta, *t, second, symbols);
  if (program) {
    if (const Tensor* t = program->tensor_of(node.name())) return Value(*t);
    // Constants of the signature (None, numbers, strings) have no meta.
    if (const ProgramInput* input = program->input(node.name());
        input && (!input->constant.is_none() || (input->kind == ProgramInputKind::UserInput && !node.meta.known()))) {
      const auto* fill = input->constant.get<double>();
      if (fill && node.meta.tensor()) return filled_value(node.meta, *node.graph().shapes, *fill);
      return to_value(input->constant);
    }
  }
  if (!node.meta.known() && node.users().empty()) return Value();  // nothing reads it, as a device mesh
  if (is_handed_on(node) && (seed || io.metadata.contains("other"))) return handed_on(node, io, key);
  if (const SymExpr* e = node.meta.sym())
    if (const auto hint = node.graph().shapes->hint(*e)) return Value(*hint);
  if (seed) {
    auto value = random_value(node.meta, *node.graph().shapes, *seed);
    if (!value) return at_node(std::move(value).error(), node);
    return value;
  }
  if (const auto left = io.left_out.find(key); left != io.left_out.end())
    return input_error("io.left_out",
                       fmt::format("the recording has no values of {} ({}): {}; record with a higher --per-graph or "
                                   "--limit, or use --random-weights SEED",
                                   key, node.name(), left->second));
  if (const auto unread = io.unread.find(key); unread != io.unread.end())
    return unsupported("load.safetensors.dtype",
                       fmt::format("{} has the dtype {}, which is unknown here", key, unread->second), place_of(node));
  return input_error("io.missing",
                     fmt::format("the inputs lack {} ({} {}); add it to the --inputs file or use --random-weights SEED",
                                 key, node.name(), annotation(node.meta)));
}

/// Has the layout elements that share memory, of which the given tensor, which lies otherwise, may have several values?
bool cannot_hold(const TensorMeta& layout, const Tensor& given, const SymbolMap& symbols) {
  if (!layout.strides_known || layout.strides.size() != given.sizes.size()) return false;
  const auto strides = values_of(layout.strides, symbols);
  return strides && may_share_elements(given.sizes, *strides) &&
         !same_significant_strides(given.sizes, *strides, given.strides);
}

/// Sets the hints of symbols from the given inputs, because text has no example values.
/// Returns the symbols' values.
Result<SymbolMap> learn_hints(Graph& graph, const ExportedProgram* program, const TensorFile& io) {
  const std::vector<std::string> keys = input_keys(graph, program, io);
  const auto seconds = tangent_keys(graph, program);
  const std::vector<Node*> placeholders = graph.placeholders();
  std::vector<const Tensor*> stored;
  for (const Node* node : placeholders) {
    const Tensor* t = io.find(keys[stored.size()]);
    if (!t) t = io.find(seconds[stored.size()]);
    if (!t && program) t = program->tensor_of(node->name());
    stored.push_back(t);
  }
  // Sizes first: by them it is known in which strides the graph wants what a file holds row-major.
  SymbolMap sizes;
  for (std::size_t i = 0; i < placeholders.size(); ++i) {
    const TensorMeta* meta = placeholders[i]->meta.tensor();
    for (std::size_t d = 0; meta && stored[i] && d < meta->sizes.size() && d < stored[i]->sizes.size(); ++d)
      sizes.bind(meta->sizes[d], stored[i]->sizes[d]);
  }
  std::vector<Value> given(placeholders.size());
  for (std::size_t i = 0; i < placeholders.size(); ++i) {
    const Meta& meta = placeholders[i]->meta;
    if (!stored[i] || (meta.tensor() && cannot_hold(*meta.tensor(), *stored[i], sizes))) continue;
    TRY(given[i], as_meta_wants(meta, *stored[i], keys[i], sizes));
  }
  TRY(SymbolMap symbols, bind_symbols(graph, given));
  for (const auto& [name, value] : sizes.all()) symbols.bind(SymExpr::symbol(name), value);
  for (const auto& [name, value] : symbols.all())
    if (!graph.shapes->hint(SymExpr::symbol(name))) graph.shapes->set_hint(name, value);
  return symbols;
}

/// Is the attribute a graph to the call that takes it? Tensors of such a call are in lists behind its graphs.
bool is_sub_graph(const Node& node) {
  return std::ranges::any_of(node.users(), [&](const Node* user) {
    return user->op()->of_library("higher_order") &&
           std::ranges::any_of(user->args(), [&](const Arg& arg) { return arg.node() == &node; });
  });
}

Status gather_attributes(Graph& graph, const TensorFile& io, std::optional<std::uint64_t> seed) {
  for (const Node* node : graph) {
    if (!node->is(Op::get_attr()) || graph.attributes.contains(node->target) || graph.child(node->target)) continue;
    const Tensor* found = nullptr;
    for (const char* stem : {"param.", "buffer.", "constant.", ""})
      if (!found) found = io.find(stem + node->target);
    if (found) {
      graph.attributes[node->target] = *found;
    } else if (seed && node->meta.tensor()) {
      TRY(Value made_up, random_value(node->meta, *graph.shapes, hash_combine(*seed, hash64(node->target))));
      graph.attributes[node->target] = *made_up.get<Tensor>();
    } else if (is_sub_graph(*node)) {
      return unsupported("io.sub_graph",
                         fmt::format("the text does not have the sub graph self.{}: prints and scripts of torch 2.13 "
                                     "leave it out; take the graph from a log or from print_readable()",
                                     node->target),
                         place_of(*node));
    } else {
      const std::string& name = node->target;
      return input_error(
          "io.missing",
          seed ? fmt::format("the text does not say what self.{0} is; add param.{0} to the --inputs file", name)
               : fmt::format("the file holds no values for self.{0}; add param.{0} to the --inputs file or use "
                             "--random-weights SEED",
                             name),
          place_of(*node));
    }
  }
  for (auto& [name, child] : graph.children) TRY_DO(gather_attributes(*child, io, seed));
  return {};
}

/// Values that are given in a layout of their own, where the graph's has elements that share memory (an expanded mask,
/// windows), change the graph: what is given counts.
Status take_layouts(Graph& graph, const std::vector<Value>& values, const SymbolMap& symbols) {
  bool changed = false;
  const auto take = [&](Node& node, const Tensor* given) {
    const TensorMeta* meta = node.meta.tensor();
    if (!meta || !given || !cannot_hold(*meta, *given, symbols)) return;
    TensorMeta own = *meta;
    own.strides =
        given->is_contiguous() ? contiguous_strides(own.sizes) : SymList(given->strides.begin(), given->strides.end());
    node.meta = std::move(own);
    changed = true;
  };
  const std::vector<Node*> placeholders = graph.placeholders();
  for (std::size_t i = 0; i < placeholders.size() && i < values.size(); ++i)
    take(*placeholders[i], values[i].get<Tensor>());
  for (Node* node : graph)
    if (const auto it = graph.attributes.find(node->target); node->is(Op::get_attr()) && it != graph.attributes.end())
      take(*node, &it->second);
  if (!changed) return {};
  const auto done = propagate(graph);
  return done ? Status() : Status(done.error());
}

bool same_bytes(const Value& a, const Value& b) {
  const auto *x = a.get<Tensor>(), *y = b.get<Tensor>();
  if (!x || !y) return true;
  if (x->sizes != y->sizes || x->strides != y->strides || x->dtype != y->dtype) return false;
  const auto p = x->contiguous(), q = y->contiguous();
  return p && q && std::memcmp(p->data(), q->data(), static_cast<std::size_t>(p->numel()) * itemsize(p->dtype)) == 0;
}

/// Does an exported program's signature have its caller write inputs?
bool writes_inputs(const ExportedProgram* program) {
  const auto mutates = [](const ProgramOutput& o) {
    return o.kind == ProgramOutputKind::BufferMutation || o.kind == ProgramOutputKind::ParameterMutation ||
           o.kind == ProgramOutputKind::UserInputMutation;
  };
  return program && std::ranges::any_of(program->outputs, mutates);
}

void flatten(const Value& value, std::vector<Value>& out) {
  const auto* list = value.get<ValueList>();
  if (!list) return out.push_back(value);
  for (const Value& item : *list) flatten(item, out);
}

}  // namespace

std::string after_key(const std::string& key) {
  const std::size_t dot = key.find('.');
  return key.substr(0, dot) + "_after" + key.substr(dot);
}

void GraphInputs::drop(std::size_t i, std::size_t kept, std::vector<std::size_t>& at) {
  const auto n = static_cast<std::ptrdiff_t>(i);
  values.erase(values.begin() + n);
  keys.erase(keys.begin() + n);
  memory.erase(memory.begin() + n);
  for (std::size_t& place : at)
    if (place == i)
      place = kept;
    else if (place > i)
      --place;
}

std::optional<Sizes> values_of(const SymList& list, const SymbolMap& symbols) {
  Sizes out;
  for (SymExpr e : list) {
    const auto value = symbols.value(e);
    if (!value) return std::nullopt;
    out.push_back(*value);
  }
  return out;
}

Result<Tensor> laid_out(const Tensor& t, const Meta& meta, const SymbolMap& symbols) {
  const TensorMeta* wanted = meta.tensor();
  if (!wanted || !wanted->strides_known || wanted->strides.size() != t.sizes.size() || !t.is_contiguous()) return t;
  const auto sizes = values_of(wanted->sizes, symbols), strides = values_of(wanted->strides, symbols);
  // Elements that share memory may differ in the file.
  if (!strides || sizes != t.sizes || *strides == t.strides || may_share_elements(t.sizes, *strides)) return t;
  TRY(Tensor out, Tensor::empty_strided(t.dtype, t.sizes, *strides));
  out.copy_from(t);
  out.requires_grad = t.requires_grad;
  return out;
}

bool mutates_inputs(const Graph& graph) {
  for (const Node* node : graph) {
    const Schema* schema = node->op()->is_call() ? find_schema(node->op()) : nullptr;
    if (node->op()->is_call() && !node->is(Op::getitem()) && (!schema || schema->is_mutable)) return true;
    if (schema && schema->composite_implicit && !draws(node->op()) && has_effect(*node)) return true;
  }
  return std::ranges::any_of(graph.children, [](const auto& child) { return mutates_inputs(*child.second); });
}

Result<GraphInputs> gather_inputs(Graph& graph, const ExportedProgram* program, const TensorFile& io,
                                  std::optional<std::uint64_t> random_weights, bool shared) {
  TRY(const SymbolMap symbols, learn_hints(graph, program, io));
  if (random_weights) choose_sizes(graph);
  GraphInputs inputs;
  inputs.keys = input_keys(graph, program, io);
  const auto seconds = tangent_keys(graph, program);
  for (const Node* node : graph.placeholders()) {
    const std::size_t i = inputs.values.size();
    std::optional<std::uint64_t> seed;
    if (random_weights) seed = hash_combine(*random_weights, i + 1);
    TRY(inputs.values.emplace_back(), gather(*node, inputs.keys[i], seconds[i], program, io, symbols, seed));
    const auto memory = io.storages.find(inputs.keys[i]);
    inputs.memory.push_back(memory == io.storages.end() ? "" : memory->second.key);
  }
  const auto count = std::ranges::count_if(inputs.keys, [](auto& key) { return key.starts_with("input."); });
  for (const auto& [key, tensor] : io.tensors)
    if (key.starts_with("input.") && std::atoi(key.c_str() + 6) >= count)
      return input_error("io.surplus", fmt::format("the inputs hold {}, but the graph takes {} inputs", key, count));
  TRY_DO(gather_attributes(graph, io, random_weights));
  TRY_DO(take_layouts(graph, inputs.values, symbols));
  if ((!shared && mutates_inputs(graph)) || writes_inputs(program)) {
    TRY(inputs.values, copy_values(inputs.values));  // the archive's and the file's values must not change
  }
  return inputs;
}

ExportedProgram program_of_joint(const Graph& graph, const ExportedProgram& program, const AotGraphs& made) {
  ExportedProgram out;
  const std::vector<std::string> keys = input_keys(graph, &program, {});
  const std::vector<Node*> placeholders = graph.placeholders(), of_joint = made.joint->placeholders();
  const std::vector<std::size_t> mutated = made.meta.mutated_runtime_inputs();
  const std::size_t tangents_end = placeholders.size() + made.tangent_of.size();
  CHECK(of_joint.size() == tangents_end + (made.functional_rng ? 4 : 0), "the joint graph has other inputs");
  for (std::size_t i = 0; i < of_joint.size(); ++i) {
    ProgramInput input;
    if (i < placeholders.size()) {
      if (const ProgramInput* from = program.input(placeholders[i]->name())) input = *from;
      input.key = keys[i];
      if (const Tensor* stored = program.tensor_of(placeholders[i]->name())) out.tensors[input.target] = *stored;
    } else if (i >= tangents_end) {  // a random seed or offset
      input.key = of_joint[i]->name();
      input.constant = Arg(0.0);
    } else {
      const std::size_t position = made.tangent_of[i - placeholders.size()];
      const TensorMeta* meta = of_joint[i]->meta.tensor();
      const bool of_input = position < mutated.size();
      input.key =
          of_input ? "tangent." + keys[mutated[position]] : fmt::format("tangent.{}", position - mutated.size());
      input.constant = Arg(!of_input && meta && meta->dim() == 0 ? 1.0 : 0.0);
    }
    input.name = of_joint[i]->name();
    out.inputs.push_back(std::move(input));
  }
  return out;
}

Result<TensorFile> collect_outputs(const ExportedProgram* program, const GraphInputs& inputs,
                                   const std::vector<Value>& before, const std::vector<Value>& results) {
  TensorFile file;
  std::vector<Value> outputs;
  for (const Value& v : results) flatten(v, outputs);
  std::map<const Storage*, std::pair<std::string, std::int64_t>> owner;  // first key seen in a storage, and its offset
  for (std::size_t i = 0; i < inputs.values.size(); ++i)
    if (const auto* t = inputs.values[i].get<Tensor>())
      owner.emplace(t->storage.get(), std::pair(inputs.keys[i], t->offset));
  int count = 0;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    std::string key;
    if (program && i < program->outputs.size()) {
      const ProgramOutput& o = program->outputs[i];
      if (o.kind == ProgramOutputKind::BufferMutation) key = "buffer_after." + o.target;
      if (o.kind == ProgramOutputKind::ParameterMutation) key = "param_after." + o.target;
      if (o.kind == ProgramOutputKind::UserInputMutation)
        for (std::size_t k = 0, user = 0; k < program->inputs.size(); ++k) {
          if (program->inputs[k].kind != ProgramInputKind::UserInput) continue;
          if (program->inputs[k].name == o.target) key = fmt::format("input_after.{}", user);
          ++user;
        }
    }
    if (key.empty()) key = fmt::format("output.{}", count++);
    TRY(const auto t, tensor_or_number(outputs[i]));
    if (!t) continue;
    file.tensors[key] = *t;
    const auto [it, is_new] = owner.emplace(t->storage.get(), std::pair(key, t->offset));
    if (!is_new) file.aliases[key] = SharedMemory{it->second.first, t->offset - it->second.second};
  }
  for (std::size_t i = 0; i < before.size(); ++i)
    if (const auto* t = inputs.values[i].get<Tensor>(); t && !same_bytes(before[i], inputs.values[i]))
      file.tensors.insert_or_assign(after_key(inputs.keys[i]), *t);
  return file;
}

}  // namespace partita

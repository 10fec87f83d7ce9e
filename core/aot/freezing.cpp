#include "core/aot/freezing.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "core/aot/text_roles.h"
#include "core/tensor/significant_strides.h"

namespace partita {
namespace {

/// Inputs whose memory the caller gets back or sees written.
std::set<std::size_t> seen_by_caller(const ViewAndMutationMeta& meta) {
  std::set<std::size_t> out;
  for (std::size_t i = 0; i < meta.inputs.size(); ++i)
    if (meta.inputs[i].mutates_data || meta.inputs[i].mutates_metadata) out.insert(i);
  for (const OutputAliasInfo& output : meta.outputs) {
    if (output.base_idx && (output.type == OutputType::AliasOfInput || output.type == OutputType::IsInput))
      out.insert(*output.base_idx);
    if (output.place && output.place->in_input) out.insert(output.place->of);
  }
  return out;
}

bool lies_as(const Tensor& value, const Meta& meta) {
  const TensorMeta* t = meta.tensor();
  if (!t || !t->strides_known || value.device().type != DeviceType::Cpu || value.dtype != t->dtype) return false;
  const auto sizes = concrete(t->sizes), strides = concrete(t->strides);
  return sizes && strides && *sizes == value.sizes && same_significant_strides(*sizes, *strides, value.strides);
}

/// Null for a user's input, for what changes from run to run, and when it is not known.
const Tensor* fixed_value(const ExportedProgram* program, const std::vector<Value>& values,
                          const std::vector<InputBinding>& inputs, std::size_t i) {
  if (!is_weight(inputs[i].role) || is_written(program, inputs[i].name)) return nullptr;
  if (i < values.size()) return values[i].get<Tensor>();
  if (!values.empty() || !program) return nullptr;
  const auto stored = program->tensors.find(inputs[i].name);
  return stored == program->tensors.end() ? nullptr : &stored->second;
}

}  // namespace

bool is_written(const ExportedProgram* program, const std::string& name) {
  return program && std::ranges::any_of(program->outputs, [&](const ProgramOutput& output) {
           return (output.kind == ProgramOutputKind::BufferMutation ||
                   output.kind == ProgramOutputKind::ParameterMutation) &&
                  output.target == name;
         });
}

std::map<std::string, Tensor> freezable(const ExportedProgram* program, const std::vector<Value>& values,
                                        const std::vector<InputBinding>& inputs) {
  std::map<std::string, Tensor> out;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (const Tensor* value = fixed_value(program, values, inputs, i)) out.emplace(inputs[i].name, *value);
  return out;
}

std::vector<std::size_t> freeze_parameters(Graph& graph, const ExportedProgram* program,
                                           const std::vector<Value>& values, const AotGraphs& made) {
  std::vector<std::size_t> frozen;
  const std::set<std::size_t> kept = seen_by_caller(made.meta);
  const std::vector<Node*> placeholders = graph.placeholders();
  for (std::size_t i = 0; i + made.tokens < placeholders.size() && i < made.inputs.size(); ++i) {
    Node& input = *placeholders[i + made.tokens];
    const Tensor* value = fixed_value(program, values, made.inputs, i);
    if (kept.contains(i) || input.users().empty() || !value || !lies_as(*value, input.meta)) continue;
    const std::string name = fmt::format("_frozen_param{}", i);
    Node* constant = graph.create(Op::get_attr(), {}, {}, name, placeholders.back()->next());
    constant->target = name;
    constant->meta = input.meta;
    constant->origin = input.origin;
    graph.attributes.insert_or_assign(name, *value);
    input.replace_all_uses_with(constant);
    frozen.push_back(i);
  }
  return frozen;
}

}  // namespace partita

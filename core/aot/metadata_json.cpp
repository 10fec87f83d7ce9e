#include "core/aot/metadata_json.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace partita {
namespace {

using Json = nlohmann::ordered_json;

std::string_view raw_type(const Arg& value) {
  if (const Node* n = value.node()) return n->meta.sym() ? "SymInt" : "FunctionalTensor";
  if (value.is_none()) return "NoneType";
  return value.get<bool>() ? "bool" : value.get<std::int64_t>() ? "int" : value.get<double>() ? "float" : "str";
}

/// What a result of the forward is, in the words of torch/_functorch/_aot_autograd/descriptors.py.
std::string descriptor(const AotGraphs& graphs, std::size_t result) {
  const ViewAndMutationMeta& meta = graphs.meta;
  const std::vector<std::size_t> mutated = meta.mutated_runtime_inputs();
  if (result < mutated.size()) {
    const std::string& note = graphs.placeholders()[mutated[result]]->note;
    return fmt::format("InputMutationAOTOutput(mutated_input={})",
                       note.empty() ? fmt::format("PlainAOTInput(idx={})", mutated[result]) : note);
  }
  result -= mutated.size();
  if (result < meta.outputs.size()) return fmt::format("PlainAOTOutput(idx={})", result);
  std::size_t base = result - meta.outputs.size();
  for (std::size_t i : meta.outputs_of(OutputType::AliasOfIntermediateSaveAsOutput))
    if (meta.outputs[i].base_idx == base)
      return fmt::format("IntermediateBaseAOTOutput(base_of=PlainAOTOutput(idx={}))", i);
  return fmt::format("IntermediateBaseAOTOutput(base_of={})", base);
}

}  // namespace

Json metadata_json(const AotGraphs& graphs) {
  const ViewAndMutationMeta& meta = graphs.meta;
  const std::vector<std::size_t> mutated = meta.mutated_runtime_inputs();
  const std::vector<Arg> returned = graphs.results();
  Json inputs = Json::array(), outputs = Json::array();
  for (const InputAliasInfo& i : meta.inputs)
    inputs.push_back({{"is_leaf", i.is_leaf},
                      {"mutates_data", i.mutates_data},
                      {"mutates_metadata", i.mutates_metadata},
                      {"mutations_hidden_from_autograd", i.mutations_hidden_from_autograd},
                      {"mutations_under_no_grad_or_inference_mode", i.mutations_under_no_grad},
                      {"mutates_storage_metadata", i.mutates_storage},
                      {"mutation_inductor_storage_resize", i.resizes_storage},
                      {"requires_grad", i.requires_grad},
                      {"keep_input_mutations", meta.keep_input_mutations},
                      {"mutation_type", name_of(i.mutation_type)}});
  std::size_t to_inputs = 0;
  for (std::size_t i = 0; i < meta.outputs.size(); ++i) {
    const OutputAliasInfo& o = meta.outputs[i];
    to_inputs += o.type == OutputType::AliasOfInput || o.type == OutputType::IsInput;
    outputs.push_back({{"output_type", name_of(o.type)},
                       {"raw_type", raw_type(returned[mutated.size() + i])},
                       {"base_idx", o.base_idx ? Json(*o.base_idx) : Json()},
                       {"dynamic_dims", o.dynamic_dims},
                       {"requires_grad", o.requires_grad}});
  }
  Json tangents = Json::array(), descriptors = Json::array(), fixed = Json::array();
  const std::vector<Node*> tangent = graphs.tangents();
  for (std::size_t k = 0; k < tangent.size(); ++k) {
    tangents.push_back(annotation(tangent[k]->meta));
    descriptors.push_back("TangentAOTInput(output=" + descriptor(graphs, graphs.tangent_of[k]) + ")");
  }
  for (std::size_t i = 0; i < graphs.inputs.size(); ++i)
    if (graphs.inputs[i].role == InputRole::Parameter || graphs.inputs[i].role == InputRole::Buffer) fixed.push_back(i);
  const std::size_t aliased = meta.aliased_outputs().size();
  return {{"input_info", inputs},
          {"output_info", outputs},
          {"num_intermediate_bases", meta.num_intermediate_bases},
          {"keep_input_mutations", meta.keep_input_mutations},
          {"mutated_inp_runtime_indices", mutated},
          {"mutated_graph_handled_indices", meta.mutated_in_graph()},
          {"num_outputs", meta.outputs.size()},
          {"num_outputs_non_aliased", meta.outputs.size() - aliased},
          {"num_outputs_aliased_to_inputs", to_inputs},
          {"num_outputs_aliased_to_intermediates", aliased - to_inputs},
          {"num_outputs_aliased", aliased},
          {"aliased_out_indices", meta.aliased_outputs()},
          {"unsafe_view_out_indices", meta.outputs_of(OutputType::UnsafeViewAlias)},
          {"num_mutated_inp_runtime_indices", mutated.size()},
          {"num_forward", meta.num_forward_returns()},
          {"num_forward_returns", meta.num_forward_returns()},
          {"traced_tangents", tangents},
          {"traced_tangents_descs", descriptors},
          {"static_input_indices", fixed},
          {"is_rng_op_functionalized", graphs.functional_rng},
          {"num_outputs_rng_offset", graphs.functional_rng ? 1 : 0},
          {"num_symints_saved_for_bw", graphs.partition.saved_symbols}};
}

}  // namespace partita

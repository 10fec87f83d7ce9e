#include "core/aot/autograd_cache.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/aot/freezing.h"
#include "core/aot/graph_key.h"
#include "core/base/config.h"
#include "core/functionalize/functional_rng.h"
#include "core/ir/archive_meta.h"
#include "core/ir/print.h"
#include "core/schedule/channels_last.h"

namespace partita {

void fields(auto& a, InputAliasInfo& i) {
  a(i.is_leaf, i.mutates_data, i.mutates_metadata, i.mutations_under_no_grad, i.mutations_hidden_from_autograd,
    i.mutates_storage, i.resizes_storage, i.requires_grad);
  a.choice(i.mutation_type, 3);
  a(i.seen_by_autograd, i.memory_of, i.shown);
}
void fields(auto& a, Place& p) {
  a(p.in_input, p.of, p.shown, p.strides);
}
void fields(auto& a, OutputAliasInfo& o) {
  a.choice(o.type, 7);
  a(o.base_idx, o.requires_grad, o.dynamic_dims, o.place);
}
void fields(auto& a, ViewAndMutationMeta& m) {
  a(m.inputs, m.outputs, m.num_intermediate_bases, m.keep_input_mutations);
}
void fields(auto& a, AotSummary& s) {
  a(s.meta, s.tangent_of, s.tangents, s.frozen, s.inputs);
}
void fields(auto& a, AotEntry& e) {
  a(e.summary, e.guards, e.wrappers, e.forward, e.backward, e.forward_constants, e.backward_constants, e.constants,
    e.constant_inputs, e.constants_constants);
}

namespace {

constexpr std::string_view heading = "PTA3";

std::string text_of(const AotOptions& o, bool lazy_backward) {
  std::string text = fmt::format(
      "train={}\npartitioner={}\nmemory_budget={}\nsave={}\nrecompute={}\ndecompositions={}\nrequires_grad={}\n"
      "is_leaf={}\nkeep_input_mutations={}\ntangents_for_aliases={}\npasses={}\nuntil={}\npre_dispatch={}\n"
      "effect_tokens={}\nfunctionalize_rng={}\nlazy_backward={}\nverified={}\nsplit_constants={}\n",
      o.train, int(o.partition.partitioner), memory_budget_of(o.partition), fmt::join(o.partition.save, " "),
      fmt::join(o.partition.recompute, " "), int(o.decompositions), fmt::join(o.requires_grad, " "),
      fmt::join(o.is_leaf, " "), o.keep_input_mutations, o.tangents_for_aliases, o.passes, row_of(o.until).name,
      o.pre_dispatch, o.effect_tokens, o.functionalize_rng, lazy_backward, config().verify, o.split_constants);
  if (o.partition.functorch)
    for (const auto& [name, value] : *o.partition.functorch) text += fmt::format("{}={}\n", name, value);
  if (o.partition.forward_outputs) text += fmt::format("forward_outputs={}\n", *o.partition.forward_outputs);
  if (o.choose_layouts.value_or(false))
    for (DType dtype : schedule::channels_last_dtypes()) text += fmt::format("channels_last={}\n", short_name(dtype));
  if (o.pack_linears) text += "pack_linears\n";
  text += fmt::format("disabled={}\n", fmt::join(o.disabled, " "));
  return text;
}

/// Is it one of PyTorch's own functions, or Python's arithmetic?
bool is_torch_function(const Op& op) {
  if (op.kind != OpKind::Function) return true;
  const std::string_view name = op.name;
  for (std::string_view prefix : {"torch.", "torch_", "_operator.", "operator.", "math.", "builtins."})
    if (name.starts_with(prefix)) return true;
  return name.find('.') == std::string_view::npos;  // getattr, max, ...
}

std::optional<std::string> unsafe_node(const Graph& graph) {
  for (const Node* node : graph) {
    if (!is_torch_function(*node->op())) return fmt::format("Unsupported call_function target {}", node->op()->name);
    if (node->op()->kind == OpKind::Method && (node->args().empty() || !node->args()[0].node()))
      return fmt::format("Unsupported call_method target {}",
                         node->args().empty() ? std::string("None") : print(node->args()[0]));
  }
  for (const auto& [target, child] : graph.children)
    if (auto reason = unsafe_node(*child)) return reason;
  return std::nullopt;
}

}  // namespace

AotSummary AotSummary::of(const AotGraphs& graphs) {
  AotSummary out{.meta = graphs.meta, .tangent_of = graphs.tangent_of, .tangents = {}, .frozen = graphs.frozen};
  if (graphs.partition.backward)
    for (const Node* tangent : graphs.tangents()) out.tangents.push_back(tangent->meta);
  const std::vector<Node*> placeholders = graphs.partition.forward->placeholders();
  out.inputs = static_cast<std::size_t>(
      std::ranges::find_if(placeholders, [](const Node* n) { return is_forward_seed(*n); }) - placeholders.begin());
  if (graphs.constants) out.inputs -= graphs.constants->graph->outputs().size();
  return out;
}

std::optional<std::string> why_not_cached(const Graph& graph, const AotOptions& options) {
  // What makes graphs again for other sizes would hold the parameters that are to be let go of.
  if (options.freezing && !options.train && config().freezing_discard_parameters)
    return "Skipping graph with frozen constants";
  return unsafe_node(graph);
}

KeyParts autograd_key(const Graph& graph, const ExportedProgram* program, const AotOptions& options, bool lazy_backward,
                      const GraphCache& cache) {
  KeyParts parts = graph_parts(graph);
  std::string inputs;
  const std::vector<InputBinding> bindings = bind_inputs(graph, program, options);
  for (const InputBinding& b : bindings)
    inputs += fmt::format("{}: {}{}\n", b.name, int(b.role), b.requires_grad ? ", requires grad" : "");
  parts.emplace_back("inputs", std::move(inputs));
  if (options.freezing && !options.train)
    parts.emplace_back("frozen", text_of(freezable(program, options.values, bindings)));
  parts.emplace_back("options", text_of(options, lazy_backward));
  for (auto& part : common_parts(cache.config)) parts.push_back(std::move(part));
  parts.emplace_back("compiler", cache.compiler);
  return parts;
}

Result<std::string> payload_bytes(AotEntry entry) {
  return to_bytes(heading, std::move(entry));
}

Result<AotEntry> read_aot_entry(std::string_view bytes) {
  if (auto entry = from_bytes<AotEntry>(heading, bytes)) return *std::move(entry);
  return damaged_entry();
}

}  // namespace partita

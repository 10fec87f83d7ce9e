#include "core/aot/run_compiled.h"

#include "core/base/check.h"
#include "core/fake/propagate.h"
#include "core/interp/symbols.h"
#include "core/ops/record.h"
#include "core/ops/rules.h"
#include "core/passes/rewrite.h"

namespace partita {
namespace {

/// Does the value show its input's elements unchanged? There is no conjugate bit, so a conjugated view is a new value.
bool shows_memory(const Node* node) {
  while (node && node->op()->is_call()) {
    const OpRecord* record = node->is(Op::getitem()) ? nullptr : find_record(node->op());
    if (record && record->element_change != ElementChange::None) return false;
    if (!node->is(Op::getitem()) && (!record || !record->schema->is_view)) return true;
    node = node->args()[0].node();
  }
  return true;
}

/// Does the input have the strides that the graph was made for?
bool as_made_for(const Node& placeholder, const Tensor& input) {
  const TensorMeta* meta = placeholder.meta.tensor();
  for (std::size_t d = 0; meta && d < input.sizes.size(); ++d)
    if (input.sizes[d] > 1 && meta->strides[d].is_int() && !meta->strides[d].is(input.strides[d])) return false;
  return meta != nullptr;
}

/// Makes `shown`, which has the values of a view of `input`, that view.
std::optional<Tensor> view_of(const Tensor& input, const Tensor& shown, const Node& node, const SymbolMap& symbols) {
  const TensorMeta* meta = node.meta.tensor();
  if (!meta) return std::nullopt;
  const auto offset = symbols.value(meta->offset);
  if (!offset) return std::nullopt;
  // The offset counts elements, whose size view_as_real changes.
  const auto from = static_cast<std::int64_t>(itemsize(input.dtype)),
             to = static_cast<std::int64_t>(itemsize(shown.dtype));
  return Tensor{input.storage, shown.dtype, shown.sizes, shown.strides, input.offset * from / to + *offset};
}

}  // namespace

Result<std::vector<Value>> finish_forward(const AotGraphs& graphs, const std::vector<Value>& values,
                                          std::vector<Value>& inputs) {
  const ViewAndMutationMeta& meta = graphs.meta;
  const Graph& forward = *graphs.partition.forward;
  const std::vector<Node*> placeholders = forward.placeholders();
  const std::vector<Arg> returned = forward.outputs();
  const std::vector<std::size_t> mutated = meta.mutated_runtime_inputs();
  const auto first = static_cast<std::ptrdiff_t>(mutated.size());
  std::vector<Value> outputs(
      values.begin() + first,
      values.begin() + static_cast<std::ptrdiff_t>(graphs.partition.forward_outputs - meta.num_intermediate_bases));
  TRY(const SymbolMap symbols, bind_symbols(forward, inputs));
  const std::vector<Value> before = inputs;
  std::vector<const Tensor*> newest(inputs.size(), nullptr);
  std::vector<std::pair<Tensor, Tensor>> written;  // new views of inputs, and their values
  for (std::size_t k = 0; k < mutated.size(); ++k) {
    const std::size_t i = mutated[k];
    const Tensor *now = values[k].get<Tensor>(), *input = inputs[i].get<Tensor>();
    CHECK(now && input, "a mutated input is not a tensor");
    const Node* node = returned[k].node();
    // t_ and similar operators only change how the input views its memory, which keeps its place.
    if (meta.inputs[i].mutates_metadata && node && shows_memory(node)) {
      const auto view = view_of(*input, *now, *node, symbols);
      const Result<bool> within = view ? within_storage(*view) : Result<bool>(false);
      if (within && *within) {
        inputs[i] = *view;
        if (meta.inputs[i].mutates_data) written.emplace_back(*view, *now);
        continue;
      }
    }
    newest[i] = now;
  }
  for (std::size_t i = 0; i < outputs.size() && i < meta.outputs.size(); ++i) {
    const OutputAliasInfo& info = meta.outputs[i];
    const Tensor* shown = outputs[i].get<Tensor>();
    const Node* node = returned[mutated.size() + i].node();
    if (!shown || !node || (info.type != OutputType::IsInput && info.type != OutputType::AliasOfInput)) continue;
    const Tensor* input = before[*info.base_idx].get<Tensor>();
    const Tensor* now = newest[*info.base_idx];
    if (!input || shown->storage == input->storage || !as_made_for(*placeholders[*info.base_idx], *input)) continue;
    // An input whose values and sizes both change is replaced, so the output cannot be a view of its memory.
    if (now && (now->sizes != input->sizes || now->strides != input->strides)) continue;
    if (info.type == OutputType::IsInput && shown->sizes == inputs[*info.base_idx].get<Tensor>()->sizes) {
      outputs[i] = inputs[*info.base_idx];
    } else if (shows_memory(node)) {
      if (const auto view = view_of(*input, *shown, *node, symbols)) outputs[i] = *view;
    }
  }
  for (const auto& [view, value] : written) view.copy_from(value);
  for (std::size_t i : mutated) {
    if (!newest[i]) continue;
    if (const Tensor* input = inputs[i].get<Tensor>(); newest[i]->sizes == input->sizes)
      input->copy_from(*newest[i]);
    else
      inputs[i] = *newest[i];
  }
  return outputs;
}

bool can_write_inputs(const Graph& graph) {
  for (const Node* p : graph.placeholders())
    if (const TensorMeta* t = p->meta.tensor(); t && is_complex(t->dtype)) return false;
  return true;
}

Result<std::vector<Value>> run_compiled(const Graph& graph, std::vector<Value> inputs, const CompileFn& compile) {
  if (is_joint(graph)) {
    TRY(const CompiledFn run, compile(graph));
    return run(std::move(inputs));
  }
  // Dropout that drops nothing returns its argument itself. Rewrite it here, before AOT decomposes it into a copy.
  std::unique_ptr<Graph> given = graph.clone();
  PassContext context;
  TRY_DO(rewrite_pre_grad(*given, context));
  TRY(const AotGraphs graphs, aot(*given, nullptr, {.train = false, .keep_input_mutations = can_write_inputs(*given)}));
  TRY(const CompiledFn run, compile(*graphs.partition.forward));
  TRY(const std::vector<Value> values, run(inputs));
  return finish_forward(graphs, values, inputs);
}

Result<std::vector<Value>> run_graph(const Graph& graph, std::vector<Value> inputs, const CompileFn& compile,
                                     bool takes_any_graph) {
  const auto run_as_it_is = [&](const Graph& as_it_is) -> Result<std::vector<Value>> {
    TRY(const CompiledFn run, compile(as_it_is));
    return run(std::move(inputs));
  };
  if (takes_any_graph || verify(graph, Stage::Functional).empty()) return run_as_it_is(graph);
  // Text lacks the metas of tuples.
  const std::unique_ptr<Graph> known = graph.clone();
  if (const auto inferred = propagate(*known); inferred && verify(*known, Stage::Functional).empty())
    return run_as_it_is(*known);
  return run_compiled(graph, std::move(inputs), compile);
}

}  // namespace partita

#include "core/minify/variants.h"

#include "core/fake/propagate.h"
#include "core/ops/schema/schema.h"

namespace partita::minify {
namespace {

Node* copy_of(Graph& graph, const Node& node) {
  return graph.find(node.name());
}

bool look_alike(const Meta& a, const Meta& b) {
  const TensorMeta *x = a.tensor(), *y = b.tensor();
  return x && y && x->dtype == y->dtype && x->sizes == y->sizes && x->device == y->device;
}

}  // namespace

void drop_unread(Graph& graph, std::vector<Value>& inputs) {
  graph.eliminate_dead([](const Node&) { return false; });
  std::vector<Value> read;
  std::size_t i = 0;
  for (Node* node : graph.placeholders()) {
    Value& value = inputs[i++];
    if (node->users().empty())
      graph.erase(node);
    else
      read.push_back(std::move(value));
  }
  inputs = std::move(read);
}

bool infer_again(Graph& graph) {
  for (Node* node : graph)
    if (node->op()->is_call()) node->meta = {};
  return bool(propagate(graph));
}

void fewer_outputs(const Graph& graph, const std::vector<Value>& inputs, const Offer& offer) {
  const std::vector<Arg> outputs = graph.outputs();
  if (outputs.size() < 2) return;
  for (std::size_t size = outputs.size() / 2; size >= 1; size /= 2)
    for (std::size_t begin = 0; begin < outputs.size(); begin += size) {
      Variant v{graph.clone(), inputs, {}};
      std::vector<Arg> left;
      for (std::size_t i = 0; i < outputs.size(); ++i)
        if (outputs[i].node() && (i < begin || i >= begin + size))
          left.emplace_back(copy_of(*v.graph, *outputs[i].node()));
      if (left.empty()) continue;
      v.graph->set_output(Arg::tuple(std::move(left)));
      drop_unread(*v.graph, v.inputs);
      if (offer(std::move(v))) return;
    }
}

void bypassed_calls(const Graph& graph, const std::vector<Value>& inputs, const Offer& offer) {
  for (const Node* node = graph.last(); node; node = node->previous()) {
    if (!node->op()->is_call() || node->users().empty()) continue;
    for (const Node* in : node->inputs()) {
      if (!look_alike(in->meta, node->meta)) continue;
      Variant v{graph.clone(), inputs, {}};
      copy_of(*v.graph, *node)->replace_all_uses_with(copy_of(*v.graph, *in));
      drop_unread(*v.graph, v.inputs);
      if (infer_again(*v.graph) && offer(std::move(v))) return;
    }
  }
}

void fewer_arguments(const Graph& graph, const std::vector<Value>& inputs, const Offer& offer) {
  for (const Node* node : graph) {
    const Schema* schema = node->op()->is_call() ? find_schema(node->op()) : nullptr;
    if (!schema) continue;
    const auto offer_with = [&](const Args& args, const Kwargs& kwargs) {
      Variant v{graph.clone(), inputs, {}};
      const auto copied = [&](Node* n) -> Arg { return copy_of(*v.graph, *n); };
      copy_of(*v.graph, *node)->set_args(map_nodes(args, copied), map_nodes(kwargs, copied));
      drop_unread(*v.graph, v.inputs);
      return infer_again(*v.graph) && offer(std::move(v));
    };
    for (std::size_t k = 0; k < node->kwargs().size(); ++k) {
      const int index = schema->index_of(node->kwargs()[k].first);
      if (index < 0 || !schema->args[static_cast<std::size_t>(index)].has_default) continue;
      Kwargs fewer = node->kwargs();
      fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(k));
      if (offer_with(node->args(), fewer)) return;
    }
    const std::size_t count = node->args().size();
    if (count == 0 || count > schema->args.size() || !schema->args[count - 1].has_default) continue;
    Args fewer = node->args();
    fewer.pop_back();
    if (offer_with(fewer, node->kwargs())) return;
  }
}

void fewer_inputs(const Graph& graph, const std::vector<Value>& inputs, const Offer& offer) {
  const std::vector<Node*> placeholders = graph.placeholders();
  for (std::size_t later = placeholders.size(); later-- > 1;)
    for (std::size_t earlier = 0; earlier < later; ++earlier) {
      const TensorMeta *a = placeholders[earlier]->meta.tensor(), *b = placeholders[later]->meta.tensor();
      if (!look_alike(placeholders[earlier]->meta, placeholders[later]->meta) || a->strides != b->strides) continue;
      Variant v{graph.clone(), inputs, {}};
      copy_of(*v.graph, *placeholders[later])->replace_all_uses_with(copy_of(*v.graph, *placeholders[earlier]));
      drop_unread(*v.graph, v.inputs);
      if (offer(std::move(v))) return;
    }
}

}  // namespace partita::minify

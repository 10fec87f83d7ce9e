#include "core/ops/facts/views.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/ops/facts/requires_grad.h"

namespace partita {

ViewArguments arguments(const ViewStep& step, Node* base) {
  const Schema* schema = find_schema(step.op);
  ViewArguments out;
  std::size_t last = 0;
  for (std::size_t i = 0; i < step.args.size(); ++i) {
    const SchemaArg& a = schema->args[i];
    if (static_cast<int>(i) == step.self || !a.has_default || !(step.args[i] == a.default_value)) last = i + 1;
  }
  for (std::size_t i = 0; i < last; ++i) {
    Arg value = static_cast<int>(i) == step.self ? Arg(base) : step.args[i];
    if (schema->args[i].keyword_only)
      out.kwargs.emplace_back(schema->args[i].name, std::move(value));
    else
      out.args.push_back(std::move(value));
  }
  return out;
}

Node* apply_view(Builder& build, const ViewStep& step, Node* base) {
  ViewArguments given = arguments(step, base);
  Node* view = build.call(step.op->name, std::move(given.args), std::move(given.kwargs));
  return step.part < 0 ? view : build.getitem(view, step.part);
}

namespace {

/// PyTorch's derivative of as_strided_scatter gives its base the gradient of the elements that were replaced. In place
/// of it autograd has CopySlices; this has the same gradients.
Node* write_with_gradient(Builder& build, const ViewStep& step, const OpRecord& record, Node* base, Node* value) {
  Node* nowhere = build.call("aten.zeros_like.default", {base}, {{"dtype", Arg(DType::Bool)}});
  Node* all = build.call("aten.ones_like.default", {value}, {{"dtype", Arg(DType::Bool)}});
  Node* replaced = record.views.write_through(build, step, nowhere, all);
  Node* constant = build.call("aten.detach.default", {base});
  return build.call("aten.where.self", {replaced, record.views.write_through(build, step, constant, value), base});
}

bool any_requires_grad(const Graph& graph) {
  return std::ranges::any_of(graph.placeholders(), [](const Node* n) { return requires_grad(n); });
}

}  // namespace

Node* write_through_view(Builder& build, const ViewStep& step, Node* base, Node* value) {
  const OpRecord* record = ops().find(step.op);
  if (record && record->views.write_through && record->role == Role::ViewsStorage && any_requires_grad(build.graph))
    return write_with_gradient(build, step, *record, base, value);
  if (record && record->views.write_through) return record->views.write_through(build, step, base, value);
  throw Raise{unsupported("functionalize.view",
                          fmt::format("writing through {} is not supported; clone() the view before it is written, or "
                                      "run the graph as it stands (--backend interp)",
                                      step.op->name))};
}

std::optional<std::vector<std::int64_t>> dimension_order(const Node& node) {
  const TensorMeta* meta = node.meta.tensor();
  const OpRecord* record = meta ? ops().find(node.op()) : nullptr;
  if (!record || !record->views.dimension_order) return std::nullopt;
  auto bound = bind_arguments(*record->schema, node.args(), node.kwargs());
  if (!bound) return std::nullopt;
  return record->views.dimension_order(*bound, static_cast<std::int64_t>(meta->dim()));
}

}  // namespace partita

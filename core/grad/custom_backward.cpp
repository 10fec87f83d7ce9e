#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "core/functionalize/functionalize.h"
#include "core/grad/region_backward.h"
#include "core/ir/place.h"
#include "core/ir/replace_uses.h"
#include "core/ops/facts/autocast.h"
#include "core/ops/facts/control.h"
#include "core/ops/record/formula.h"

namespace partita {
namespace {

constexpr std::size_t results_at = 1, saved_at = 2, operands_at = 3;

const std::vector<Arg>& list_of(const Node& call, std::size_t i) {
  return call.args()[i].get<ArgList>()->items;
}

Diagnostic refused(const Node& call, const std::string& why) {
  return unsupported("grad.custom_backward", fmt::format("the backward of a torch.autograd.Function {}", why),
                     place_of(call));
}

/// The placeholders that the graph writes, by their places, but for what kernels of the user's own write. Such a kernel
/// counts as one that writes all that it gets: a backward that only reads what was saved is not to be refused for it.
Result<std::vector<std::size_t>> written_without_kernels(const Graph& body) {
  const std::unique_ptr<Graph> rest = body.clone();
  rest->shapes = body.shapes;
  for (Node* node : *rest)
    if (is_kernel(node->op()) && node->users().empty()) rest->erase(node);
  TRY(const FunctionalGraph functional, functionalize(*rest));
  return functional.meta.mutated_runtime_inputs();
}

}  // namespace

Result<std::vector<Node*>> differentiate_custom(Builder& build, const Node& call, const std::vector<Node*>& grads,
                                                const std::function<bool(const Node*)>& is_shared) {
  TRY(const Graph* const given_body, region_graph(call, 0));
  const std::unique_ptr<Graph> body = given_body->clone();
  body->shapes = call.graph().shapes;
  const std::vector<Arg>&results = list_of(call, results_at), &saved = list_of(call, saved_at);
  std::vector<Node*> placeholders = body->placeholders();
  // Earlier PyTorch gives the context first.
  if (placeholders.size() == results.size() + saved.size() + 1 && placeholders[0]->users().empty()) {
    body->erase(placeholders[0]);
    placeholders.erase(placeholders.begin());
  }
  if (placeholders.size() != results.size() + saved.size())
    return refused(call, fmt::format("takes {} values, but {} results and {} saved values are given",
                                     placeholders.size(), results.size(), saved.size()));
  std::vector<Arg> operands;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const TensorMeta& t = Builder::tensor(results[i]);
    Node* const grad = i < grads.size() ? grads[i] : nullptr;
    operands.emplace_back(grad ? grad
                               : build.call("aten.zeros.default", {build.sizes(t.sizes)},
                                            {{"dtype", t.dtype}, {"device", t.device}, {"pin_memory", false}}));
  }
  operands.insert(operands.end(), saved.begin(), saved.end());
  for (std::size_t i = 0; i < placeholders.size(); ++i)
    if (const Node* n = operands[i].node()) placeholders[i]->meta = n->meta;
  TRY(const FunctionalGraph functional, functionalize(*body));
  const std::vector<std::size_t> mutated = functional.meta.mutated_runtime_inputs();
  const bool runs_kernels = std::ranges::any_of(*body, [](const Node* node) { return is_kernel(node->op()); });
  std::vector<std::size_t> written_surely = mutated;
  if (runs_kernels) {
    TRY(written_surely, written_without_kernels(*body));
  }
  for (const std::size_t i : written_surely) {
    if (i >= results.size()) return refused(call, "writes to what its forward has saved");
    if (i < grads.size() && grads[i] && is_shared(grads[i]))
      return refused(call, "writes to a gradient that is also another value's; it should write to a copy");
  }
  TRY(const Arg returned, copy_body(call, *functional.graph, operands, build.before));
  const ArgList* const list = returned.get<ArgList>();
  const std::vector<Arg>& of = list_of(call, operands_at);
  std::vector<Arg> given = list ? list->items : std::vector<Arg>{returned};
  // What it wrote is read by nobody else.
  given.erase(given.begin(), given.begin() + static_cast<std::ptrdiff_t>(std::min(mutated.size(), given.size())));
  if (given.size() != of.size())
    return refused(call, fmt::format("returns {} gradients for {} operands", given.size(), of.size()));
  std::vector<Node*> gradients;
  for (std::size_t i = 0; i < of.size(); ++i) {
    Node* const grad = given[i].node();
    const bool wanted = grad && of[i].node() && of[i].node()->meta.tensor();
    gradients.push_back(
        wanted ? fit_gradient(build, grad, Builder::tensor(of[i]), "the gradient of " + of[i].node()->name())
               : nullptr);
  }
  return gradients;
}

Status remove_custom_backwards(Graph& graph) {
  std::vector<Node*> calls;
  std::ranges::copy_if(graph, std::back_inserter(calls), [](const Node* n) { return n->is(custom_backward()); });
  for (Node* call : calls) {
    const Arg results = call->args()[results_at];
    TRY_DO(replace_uses(*call, results));
    graph.erase(call);
  }
  return {};
}

}  // namespace partita

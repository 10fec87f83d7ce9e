#include "core/ops/record/gradients.h"

namespace partita {

std::vector<Node*> gradient_of_first(const GradCall& call, Node* gradient) {
  std::vector<Node*> out(call.args.size(), nullptr);
  out[0] = gradient;
  return out;
}

std::vector<Node*> gradients_of_items(GradCall& call, std::string_view list, std::vector<Node*> gradients) {
  call.list_grads[call.schema.index_of(list)] = std::move(gradients);
  return gradient_of_first(call, nullptr);
}

Node* tensor_node(const FakeCall& call, std::string_view name) {
  Node* node = call.arg(name).node();
  if (!node) fail(std::string(name) + " is not a tensor");
  return node;
}

std::vector<Node*> results_of(Builder& build, Node* call) {
  std::vector<Node*> out;
  for (std::size_t i = 0; i < call->meta.tuple()->items.size(); ++i)
    out.push_back(build.getitem(call, static_cast<std::int64_t>(i)));
  return out;
}

Node* to_dtype(Builder& build, const Arg& tensor, DType dtype) {
  if (build.tensor(tensor).dtype == dtype) return tensor.node();
  return build.call("aten._to_copy.default", {tensor}, {{"dtype", dtype}});
}

}  // namespace partita

// As torch/distributed/_functional_collectives.py registers them: sums come back by sums, gathered parts by scattered
// sums and the other way round. Each is waited for at once.
#include <fmt/format.h>

#include "core/ops/families/collectives.h"
#include "core/ops/families/composites.h"

namespace partita {
namespace {

Node* dense(Builder& b, Node* grad) {
  return b.expression("contiguous(x)", {{"x", grad}}).node();
}

Node* waited(Builder& b, Node* started) {
  return b.call("_c10d_functional.wait_tensor.default", {started});
}

/// The gradient of the only tensor by `op` with these arguments after it.
std::vector<Node*> by(GradCall& c, std::string_view op, Args rest) {
  Args args = {dense(c.build, c.grads[0])};
  args.insert(args.end(), rest.begin(), rest.end());
  return gradient_of_first(c, waited(c.build, c.build.call(op, std::move(args))));
}

/// The gradients of a list by one call. Results without a gradient count as zeros: all ranks must send as much.
std::vector<Node*> by_list(GradCall& c, std::string_view op, Args rest) {
  Builder& b = c.build;
  std::vector<Node*> grads;
  for (std::size_t i = 0; i < c.grads.size(); ++i) {
    Node* grad = c.grads[i];
    if (!grad) {
      const TensorMeta& result = Builder::tensor(c.results[i]);
      grad = b.call("aten.zeros.default", {b.sizes(result.sizes)}, options_of(result));
    }
    grads.push_back(dense(b, grad));
  }
  Args args = {list_of(grads)};
  args.insert(args.end(), rest.begin(), rest.end());
  grads = results_of(b, b.call(op, std::move(args)));
  for (Node*& grad : grads) grad = waited(b, grad);
  return gradients_of_items(c, "inputs", std::move(grads));
}

void refuse_others_than_sum(const GradCall& c) {
  const std::string op = c.string("reduce_op"), name(Op::torch(c.schema.name)->brief());
  if (op != "sum") fail(fmt::format("{} backward only supports 'sum' reduction, got '{}'", name, op));
}

}  // namespace

std::vector<Node*> all_reduce_gradient(GradCall& c) {
  refuse_others_than_sum(c);
  return by(c, "_c10d_functional.all_reduce.default", {"sum", c.arg("group_name")});
}
std::vector<Node*> all_reduce_coalesced_gradient(GradCall& c) {
  refuse_others_than_sum(c);
  return by_list(c, "_c10d_functional.all_reduce_coalesced.default", {"sum", c.arg("group_name")});
}
std::vector<Node*> all_gather_gradient(GradCall& c) {
  return by(c, "_c10d_functional.reduce_scatter_tensor.default", {"sum", c.arg("group_size"), c.arg("group_name")});
}
std::vector<Node*> all_gather_coalesced_gradient(GradCall& c) {
  return by_list(c, "_c10d_functional.reduce_scatter_tensor_coalesced.default",
                 {"sum", c.arg("group_size"), c.arg("group_name")});
}
std::vector<Node*> reduce_scatter_gradient(GradCall& c) {
  refuse_others_than_sum(c);
  return by(c, "_c10d_functional.all_gather_into_tensor.default", {c.arg("group_size"), c.arg("group_name")});
}
std::vector<Node*> reduce_scatter_coalesced_gradient(GradCall& c) {
  refuse_others_than_sum(c);
  return by_list(c, "_c10d_functional.all_gather_into_tensor_coalesced.default",
                 {c.arg("group_size"), c.arg("group_name")});
}
std::vector<Node*> all_to_all_gradient(GradCall& c) {
  return by(c, "_c10d_functional.all_to_all_single.default",
            {c.arg("input_split_sizes"), c.arg("output_split_sizes"), c.arg("group_name")});
}

}  // namespace partita

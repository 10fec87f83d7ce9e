#pragma once
// Makes graphs of any size for the tests of views.
#include <memory>
#include <string>

#include "core/ir/graph.h"

namespace partita::tests {

inline TensorMeta f32(std::int64_t rows, std::int64_t columns) {
  return TensorMeta::contiguous(DType::Float32, {rows, columns});
}

/// A joint graph of `layers` times (t, addmm, gelu, add), and its backward: 12 nodes per layer.
inline std::shared_ptr<Graph> joint_graph(int layers, bool backward_has_origins = false) {
  auto graph = std::make_shared<Graph>("joint");
  graph->form = GraphForm::Joint;
  graph->shapes = std::make_shared<ShapeEnv>();
  auto call = [&](const char* op, Args args, TensorMeta meta, const char* name) {
    Node* node = graph->create(Op::torch(op), std::move(args), {}, name);
    node->meta = std::move(meta);
    return node;
  };
  std::vector<Node*> weights, biases;
  Node* x = graph->placeholder("primals_1", f32(8, 64));
  for (int i = 0; i < layers; ++i) {
    weights.push_back(graph->placeholder("primals_" + std::to_string(2 * i + 2), f32(64, 64)));
    biases.push_back(graph->placeholder("primals_" + std::to_string(2 * i + 3), f32(1, 64)));
  }
  Node* grad = graph->placeholder("tangents_1", f32(8, 64));
  struct Layer {
    Node *input, *transposed, *linear;
  };
  std::vector<Layer> made;
  for (int i = 0; i < layers; ++i) {
    auto origin = std::make_shared<Origin>();
    origin->file = "blocks.py";
    origin->line = i + 1;
    origin->function = "forward";
    origin->code = "x = x + gelu(linear(x))";
    origin->modules = "blocks." + std::to_string(i) + ".mlp";
    Node* t = call("aten.t.default", {weights[i]}, f32(64, 64), "t");
    Node* mm = call("aten.addmm.default", {biases[i], x, t}, f32(8, 64), "addmm");
    Node* gelu = call("aten.gelu.default", {mm}, f32(8, 64), "gelu");
    Node* sum = call("aten.add.Tensor", {gelu, x}, f32(8, 64), "add");
    for (Node* node : {t, mm, gelu, sum}) node->origin = origin;
    made.push_back({x, t, mm});
    x = sum;
  }
  std::vector<Arg> outputs{x};
  std::vector<Arg> grads;
  for (int i = layers - 1; i >= 0; --i) {
    Node* gelu = call("aten.gelu_backward.default", {grad, made[i].linear}, f32(8, 64), "gelu_backward");
    Node* t = call("aten.t.default", {made[i].transposed}, f32(64, 64), "t");
    Node* mm = call("aten.mm.default", {gelu, t}, f32(8, 64), "mm");
    Node* turned = call("aten.t.default", {gelu}, f32(64, 8), "t");
    Node* weight = call("aten.mm.default", {turned, made[i].input}, f32(64, 64), "mm");
    Node* bias = call("aten.sum.dim_IntList", {gelu, Arg::list({0}), true}, f32(1, 64), "sum");
    grad = call("aten.add.Tensor", {grad, mm}, f32(8, 64), "add");
    if (backward_has_origins)
      for (Node* node : {gelu, t, mm, turned, weight, bias, grad}) node->origin = made[i].linear->origin;
    grads.insert(grads.begin(), {Arg(weight), Arg(bias)});
  }
  outputs.push_back(grad);
  outputs.insert(outputs.end(), grads.begin(), grads.end());
  graph->set_output(Arg::list(outputs));
  return graph;
}

}  // namespace partita::tests

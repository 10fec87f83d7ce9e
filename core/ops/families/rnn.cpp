// Recurrent layers, unrolled over the sequence as PyTorch's compiler path does.
#include <algorithm>

#include "core/base/check.h"
#include "core/ops/record/gradients.h"
#include "core/ops/record/record.h"

namespace partita {

namespace {

/// The weights of one layer in one direction.
struct Layer {
  Arg input_weight, hidden_weight, input_bias, hidden_bias, projection;
};

/// The state passed from step to step: h, and c for an LSTM.
using State = std::vector<Node*>;

/// One time step. `input` is the part of the gates that depends on the input; it was computed for the whole sequence at
/// once.
using Cell = State (*)(Builder& b, Node* input, const State& state, const Layer& layer);

Node* linear(Builder& b, const Arg& x, const Arg& weight, const Arg& bias) {
  return b.call("aten.linear.default", {x, weight, bias});
}
Node* add(Builder& b, Node* x, Node* y) {
  return b.call("aten.add.Tensor", {x, y});
}
Node* mul(Builder& b, Node* x, Node* y) {
  return b.call("aten.mul.Tensor", {x, y});
}
Node* sigmoid(Builder& b, Node* x) {
  return b.call("aten.sigmoid.default", {x});
}
Node* tanh(Builder& b, Node* x) {
  return b.call("aten.tanh.default", {x});
}

/// Splits the last dimension into `count` parts.
std::vector<Node*> chunks(Builder& b, Node* x, std::int64_t count) {
  return results_of(b, b.call("aten.chunk.default", {x, count, static_cast<std::int64_t>(b.tensor(x).dim()) - 1}));
}

State lstm_cell(Builder& b, Node* input, const State& state, const Layer& layer) {
  Node* gates = add(b, linear(b, state[0], layer.hidden_weight, layer.hidden_bias), input);
  std::vector<Node*> part = chunks(b, gates, 4);
  Node *in = sigmoid(b, part[0]), *forget = sigmoid(b, part[1]), *cell = tanh(b, part[2]), *out = sigmoid(b, part[3]);
  Node* kept = mul(b, forget, state[1]);
  Node* next = add(b, kept, mul(b, in, cell));
  Node* hidden = mul(b, out, tanh(b, next));
  if (!layer.projection.is_none()) hidden = linear(b, hidden, layer.projection, Arg());
  return {hidden, next};
}

State gru_cell(Builder& b, Node* input, const State& state, const Layer& layer) {
  std::vector<Node*> of_input = chunks(b, input, 3);
  std::vector<Node*> of_state = chunks(b, linear(b, state[0], layer.hidden_weight, layer.hidden_bias), 3);
  Node* reset = sigmoid(b, add(b, of_state[0], of_input[0]));
  Node* update = sigmoid(b, add(b, of_state[1], of_input[1]));
  Node* fresh = tanh(b, add(b, of_input[2], mul(b, of_state[2], reset)));
  Node* change = mul(b, b.call("aten.sub.Tensor", {state[0], fresh}), update);
  return {add(b, change, fresh)};
}

template <bool relu>
State plain_cell(Builder& b, Node* input, const State& state, const Layer& layer) {
  Node* sum = add(b, linear(b, state[0], layer.hidden_weight, layer.hidden_bias), input);
  return {relu ? b.call("aten.relu.default", {sum}) : tanh(b, sum)};
}

/// The slices of a tensor along its first dimension.
std::vector<Node*> unbind(Builder& b, Node* x) {
  if (!Builder::tensor(x).sizes.at(0).is_int()) fail_unsupported("a recurrent layer over a symbolic length");
  return results_of(b, b.call("aten.unbind.int", {x}));
}

std::vector<Layer> layers_of(DecomposeCall& c, bool projected) {
  const ArgList* list = c.arg("params").get<ArgList>();
  bool biased = c.boolean("has_biases");
  std::size_t group = 2 + (biased ? 2 : 0) + (projected ? 1 : 0);
  if (!list || list->items.size() % group != 0)
    fail("a recurrent layer takes " + std::to_string(group) + " weights for each layer and direction");
  std::vector<Layer> layers;
  for (std::size_t i = 0; i < list->items.size(); i += group) {
    Layer layer{list->items[i], list->items[i + 1], Arg(), Arg(), Arg()};
    if (biased) {
      layer.input_bias = list->items[i + 2];
      layer.hidden_bias = list->items[i + 3];
    }
    if (projected) layer.projection = list->items[i + group - 1];
    layers.push_back(std::move(layer));
  }
  return layers;
}

struct Run {
  Node* output;
  State last;
};

Run run_layer(Builder& b, Cell cell, Node* input, State state, const Layer& layer, bool reverse) {
  for (Node*& s : state) s = b.call("aten.unsqueeze.default", {s, 0});
  Node* gates = linear(b, input, layer.input_weight, layer.input_bias);
  if (reverse) gates = b.call("aten.flip.default", {gates, Arg::list({0})});
  std::vector<Arg> steps;
  for (Node* step : unbind(b, gates)) {
    state = cell(b, step, state, layer);
    steps.emplace_back(state[0]);
  }
  if (reverse) std::reverse(steps.begin(), steps.end());
  Node* output = b.call("aten.cat.default", {Arg::list(std::move(steps))});
  for (Node*& s : state) s = b.call("aten.squeeze.dim", {s, 0});
  return {output, state};
}

/// Runs all layers. `states` holds the initial state of every layer and direction.
Arg run_layers(DecomposeCall& c, Cell cell, const std::vector<State>& states, const std::vector<Layer>& layers) {
  Builder& b = c.build;
  bool batch_first = c.boolean("batch_first"), both_ways = c.boolean("bidirectional");
  auto count = static_cast<std::size_t>(c.integer("num_layers")), directions = std::size_t{both_ways ? 2u : 1u};
  if (layers.size() != count * directions || states.size() != layers.size())
    fail("the weights or states do not fit the number of layers");
  // There is no dropout between layers: the condition for it in PyTorch's decomposition is never true.
  Node* x = tensor_node(c, "input");
  if (batch_first) x = b.call("aten.transpose.int", {x, 0, 1});
  std::vector<State> last;
  for (std::size_t i = 0; i < count; ++i) {
    Run forward = run_layer(b, cell, x, states[i * directions], layers[i * directions], false);
    last.push_back(forward.last);
    Node* out = forward.output;
    if (both_ways) {
      Run backward = run_layer(b, cell, x, states[2 * i + 1], layers[2 * i + 1], true);
      last.push_back(backward.last);
      out = b.call("aten.cat.default",
                   {Arg::list({forward.output, backward.output}), static_cast<std::int64_t>(b.tensor(out).dim()) - 1});
    }
    x = out;
  }
  if (batch_first) x = b.call("aten.transpose.int", {x, 0, 1});
  std::vector<Arg> results = {x};
  for (std::size_t k = 0; k < last[0].size(); ++k) {
    std::vector<Arg> items;
    for (const State& s : last) items.emplace_back(s[k]);
    results.emplace_back(b.call("aten.stack.default", {Arg::list(std::move(items))}));
  }
  return Arg::tuple(std::move(results));
}

Arg decompose_lstm(DecomposeCall& c) {
  Builder& b = c.build;
  const ArgList* hx = c.arg("hx").get<ArgList>();
  if (!hx || hx->items.size() != 2 || !hx->items[0].node() || !hx->items[1].node())
    fail("lstm expects two hidden states");
  SymExpr hidden = b.tensor(hx->items[0]).sizes.at(2), cell = b.tensor(hx->items[1]).sizes.at(2);
  std::vector<Layer> layers = layers_of(c, hidden != cell);
  std::vector<Node*> h = unbind(b, hx->items[0].node()), s = unbind(b, hx->items[1].node());
  std::vector<State> states;
  for (std::size_t i = 0; i < h.size() && i < s.size(); ++i) states.push_back({h[i], s[i]});
  return run_layers(c, lstm_cell, states, layers);
}

template <Cell cell>
Arg decompose_rnn(DecomposeCall& c) {
  std::vector<State> states;
  for (Node* h : unbind(c.build, tensor_node(c, "hx"))) states.push_back({h});
  return run_layers(c, cell, states, layers_of(c, false));
}

/// A single step (lstm_cell and others): computes the input's part of the gates, then the cell.
State single_step(DecomposeCall& c, Cell cell, const State& state) {
  Layer layer{c.arg("w_ih"), c.arg("w_hh"), c.arg("b_ih"), c.arg("b_hh"), Arg()};
  return cell(c.build, linear(c.build, c.arg("input"), layer.input_weight, layer.input_bias), state, layer);
}

Arg decompose_lstm_cell(DecomposeCall& c) {
  const ArgList* hx = c.arg("hx").get<ArgList>();
  if (!hx || hx->items.size() != 2 || !hx->items[0].node() || !hx->items[1].node())
    fail("lstm_cell expects two hidden states");
  State next = single_step(c, lstm_cell, {hx->items[0].node(), hx->items[1].node()});
  return Arg::tuple({next[0], next[1]});
}

template <Cell cell>
Arg decompose_cell(DecomposeCall& c) {
  return single_step(c, cell, {tensor_node(c, "hx")})[0];
}

}  // namespace

void register_rnn(OpTable& t) {
  t.default_family = Family::Matmul;
  t.add_without_record({"mkldnn_rnn_layer"});
  t.add("aten.lstm.input", {.decompose = decompose_lstm, .family = Family::Matmul});
  t.add("aten.gru.input", {.decompose = decompose_rnn<gru_cell>, .family = Family::Matmul});
  t.add("aten.rnn_tanh.input", {.decompose = decompose_rnn<plain_cell<false>>});
  t.add("aten.rnn_relu.input", {.decompose = decompose_rnn<plain_cell<true>>});
  t.add("aten.lstm_cell.default", {.decompose = decompose_lstm_cell});
  t.add("aten.gru_cell.default", {.decompose = decompose_cell<gru_cell>});
  t.add("aten.rnn_tanh_cell.default", {.decompose = decompose_cell<plain_cell<false>>});
  t.add("aten.rnn_relu_cell.default", {.decompose = decompose_cell<plain_cell<true>>});
}

}  // namespace partita

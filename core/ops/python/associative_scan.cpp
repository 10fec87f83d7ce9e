#include <cstdint>

#include <fmt/format.h>

#include "core/ops/facts/control.h"
#include "core/ops/record/record.h"
#include "core/ops/schema/resolve_parts.h"

namespace partita {
namespace {

/// The steps of a scan: what is carried is the result of each step too.
Node* steps_of(Builder& b, const Graph& combine) {
  const Op* const scan = Op::torch("higher_order.scan");
  std::unique_ptr<Graph> steps = combine.clone();
  std::vector<Arg> results = steps->outputs();
  const std::vector<Arg> again = results;
  results.insert(results.end(), again.begin(), again.end());
  steps->set_output(Arg::tuple(std::move(results)));
  const std::string name = region_names(*find_control(scan), b.graph)[0];
  b.graph.children.emplace_back(name, std::move(steps));
  Node* const attribute = b.graph.create(Op::get_attr(), {}, {}, name, b.before);
  attribute->target = name;
  return attribute;
}

}  // namespace

bool is_associative_scan(const Op* op) {
  return op->name == "higher_order.associative_scan";
}

Arg associative_scan(Builder& b, const Node& call) {
  const Graph& combine = *unwrap(region_graph(call, 0));
  const ArgList* const xs = call.args().size() > 1 ? call.args()[1].get<ArgList>() : nullptr;
  const ArgList* const others = call.args().size() > 2 ? call.args()[2].get<ArgList>() : nullptr;
  const std::size_t read = others ? others->items.size() : 0;
  if (!xs || xs->items.empty()) fail("associative_scan takes a list of tensors");
  const std::size_t count = xs->items.size();
  if (combine.placeholders().size() != 2 * count + read || combine.outputs().size() != count)
    fail(fmt::format("the combine_fn of an associative_scan over {} tensors takes {} and returns {}", count,
                     2 * count + read, count));
  std::vector<Arg> first, rest;
  MetaTuple metas;
  for (const Arg& x : xs->items) {
    const TensorMeta& whole = Builder::tensor(x);
    if (whole.sizes.empty() || whole.sizes[0].is(0)) fail("associative_scan over no elements");
    first.emplace_back(b.call("aten.select.int", {x, 0, 0}));
    rest.emplace_back(b.call("aten.slice.Tensor", {x, 0, 1, INT64_MAX}));
    const TensorMeta& one = Builder::tensor(first.back());
    metas.items.insert(metas.items.begin() + static_cast<std::ptrdiff_t>(first.size()) - 1,
                       TensorMeta::contiguous(one.dtype, one.sizes, one.device));
    metas.items.emplace_back(TensorMeta::contiguous(one.dtype, Builder::tensor(rest.back()).sizes, one.device));
  }
  if (Builder::tensor(xs->items[0]).sizes[0].is(1)) {
    std::vector<Arg> copies;
    for (const Arg& x : xs->items) copies.emplace_back(b.call("aten.clone.default", {x}));
    return Arg::list(std::move(copies));
  }
  Node* const steps = steps_of(b, combine);
  Node* const scan = b.graph.create(
      Op::torch("higher_order.scan"),
      {steps, Arg::list(first), Arg::list(rest), Arg::tuple(others ? others->items : std::vector<Arg>())}, {}, {},
      b.before);
  scan->origin = call.origin;
  scan->meta = std::move(metas);
  std::vector<Arg> results;
  for (std::size_t i = 0; i < count; ++i) {
    Node* const later = b.getitem(scan, static_cast<std::int64_t>(count + i));
    Node* const start = b.call("aten.unsqueeze.default", {first[i], 0});
    results.emplace_back(b.call("aten.cat.default", {Arg::list({start, later}), 0}));
  }
  return Arg::list(std::move(results));
}

}  // namespace partita

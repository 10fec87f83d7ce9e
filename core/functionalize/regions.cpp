#include "core/functionalize/regions.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "core/base/raise.h"
#include "core/ir/place.h"
#include "core/ops/record/record.h"

namespace partita {
namespace {

/// May the sub graphs write to this operand? Rows of map_impl are its own; what each branch of cond gets, it alone runs
/// on; what a loop is given besides what it carries stays the same memory in all steps.
bool may_write(const ControlOp& op, std::size_t graph, const RegionOperand& operand) {
  switch (op.kind) {
    case Control::Cond:
      return true;
    case Control::Map:
      return operand.row;
    case Control::WhileLoop:
      return op.graphs[graph] == op.body && !operand.carried;
    case Control::Scan:
      return !operand.carried && !operand.row;
    default:
      return false;
  }
}

Diagnostic refused(const Node& call, const Graph& child, std::size_t operand, std::string_view why) {
  return unsupported("functionalize.sub_graph",
                     fmt::format("sub graph {} of {} writes to its operand {}, {}; return the new value instead",
                                 child.name, call.name(), operand, why),
                     place_of(call));
}

/// What a sub graph returns, apart.
struct Body {
  std::vector<Arg> results;
  std::map<std::size_t, Arg> written;  ///< new values by operand
};

Result<Body> body_of(const Node& call, const ControlOp& op, std::size_t graph, const FunctionalGraph& f,
                     const std::vector<RegionOperand>& operands) {
  Body body;
  const std::vector<Arg> outputs = f.graph->outputs();
  const std::vector<std::size_t> mutated = f.meta.mutated_runtime_inputs();
  for (std::size_t i = 0; i < f.meta.inputs.size(); ++i)
    if (f.meta.inputs[i].resizes_storage) return refused(call, *f.graph, i, "whose memory is resized");
  for (std::size_t k = 0; k < mutated.size(); ++k) {
    const std::size_t i = mutated[k];
    if (f.meta.inputs[i].mutates_metadata) return refused(call, *f.graph, i, "whose sizes or strides change");
    if (!may_write(op, graph, operands[i])) return refused(call, *f.graph, i, "which PyTorch does not permit there");
    body.written.emplace(i, outputs[k]);
  }
  const auto first = outputs.begin() + static_cast<std::ptrdiff_t>(mutated.size());
  body.results.assign(first, first + static_cast<std::ptrdiff_t>(f.meta.outputs.size()));
  return body;
}

}  // namespace

void refuse_writes(const Node& attribute, const Graph& child) {
  if (std::ranges::any_of(attribute.users(), [](const Node* n) { return n->is(custom_backward()); })) return;
  for (Node* n : child) {
    const Schema* schema = n->op()->kind == OpKind::Torch ? find_schema(n->op()) : nullptr;
    if (schema && schema->is_mutable)
      throw Raise{unsupported(
          "functionalize.sub_graph",
          fmt::format("{} in sub graph {} writes in place; write it out of place", n->op()->name, child.name),
          place_of(*n))};
  }
}

Result<FunctionalRegion> functionalize_region(const Node& call, const ControlOp& op, const std::vector<bool>& wants,
                                              FunctionalGraph& into) {
  FunctionalRegion out;
  const std::vector<RegionOperand> operands = operands_of(op, call.args());
  std::vector<Body> bodies;
  std::vector<std::size_t> written;  // operands that any sub graph writes, in order
  for (std::size_t g = 0; g < op.graphs.size(); ++g) {
    TRY(const Graph* const child, region_graph(call, op.graphs[g]));
    if (child->placeholders().size() != operands.size())
      return input_error("ops.region",
                         fmt::format("a sub graph of {} takes {} inputs, but {} are given", call.name(),
                                     child->placeholders().size(), operands.size()),
                         place_of(call));
    TRY(FunctionalGraph f, functionalize(*child, {.requires_grad = wants}));
    TRY(bodies.emplace_back(), body_of(call, op, g, f, operands));
    into.no_grad.merge(f.no_grad);
    into.hidden.merge(f.hidden);
    for (const auto& [i, value] : bodies.back().written)
      if (std::ranges::find(written, i) == written.end()) written.push_back(i);
    out.graphs.push_back(std::move(f.graph));
  }
  std::ranges::sort(written);
  const auto carried = static_cast<std::size_t>(std::ranges::count_if(operands, &RegionOperand::carried));
  const std::size_t shift = op.carried >= 0 ? written.size() : 0;
  const auto is_written = [&](std::size_t i) { return std::ranges::binary_search(written, i); };
  std::size_t kept = carried;  // the first operand that is still not carried
  while (kept < operands.size() && is_written(kept)) ++kept;
  for (std::size_t g = 0; g < op.graphs.size(); ++g) {
    Graph& graph = *out.graphs[g];
    const std::vector<Node*> placeholders = graph.placeholders();
    std::vector<Arg> results = bodies[g].results;
    std::vector<Arg> values;
    for (const std::size_t i : written) {
      const auto it = bodies[g].written.find(i);
      values.push_back(it == bodies[g].written.end() ? Arg(placeholders[i]) : it->second);
      if (shift > 0 && i > kept) graph.move_before(placeholders[i], placeholders[kept]);
    }
    if (op.graphs[g] != op.body && op.kind == Control::WhileLoop) {
      if (results.size() == 1) graph.set_output(results[0]);
      continue;
    }
    results.insert(shift > 0 ? results.begin() + static_cast<std::ptrdiff_t>(carried) : results.end(), values.begin(),
                   values.end());
    graph.set_output(Arg::tuple(std::move(results)));
    if (op.graphs[g] != op.body) continue;
    const std::size_t count = bodies[g].results.size();
    for (std::size_t i = 0; i < count; ++i) out.position.push_back(i < carried ? i : i + shift);
    for (std::size_t k = 0; k < written.size(); ++k)
      out.written.emplace_back(operands[written[k]].value, (shift > 0 ? carried : count) + k);
  }
  for (std::size_t i = 0; i < carried; ++i) out.operands.push_back(operands[i]);
  for (std::size_t i = carried; i < operands.size(); ++i)
    if (shift > 0 && is_written(i)) {
      out.operands.push_back(operands[i]);
      out.operands.back().list = static_cast<std::size_t>(op.carried);
      out.operands.back().carried = true;
    }
  for (std::size_t i = carried; i < operands.size(); ++i)
    if (shift == 0 || !is_written(i)) out.operands.push_back(operands[i]);
  return out;
}

}  // namespace partita

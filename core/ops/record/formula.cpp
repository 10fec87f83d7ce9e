#include "core/ops/record/formula.h"

#include <algorithm>
#include <functional>
#include <ranges>

#include <fmt/format.h>

#include "core/ops/record/gradients.h"
#include "core/ops/record/operator_program.h"

namespace partita {

std::vector<Node*> result_nodes(Node& node) {
  auto* tuple = node.meta.tuple();
  if (!tuple) return {&node};
  std::vector<Node*> results(tuple->items.size(), nullptr);
  for (Node* user : node.users()) {
    if (!user->is(Op::getitem())) continue;
    auto* index = user->args()[1].get<std::int64_t>();
    if (index && *index >= 0 && *index < static_cast<std::int64_t>(results.size()))
      results[static_cast<std::size_t>(*index)] = user;
  }
  Node* after = node.next();
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (results[i] || !tuple->items[i].known()) continue;
    results[i] = node.graph().create(Op::getitem(), {&node, Arg(static_cast<std::int64_t>(i))}, {}, {}, after);
    results[i]->meta = tuple->items[i];
    results[i]->origin = node.origin;
  }
  return results;
}

Node* sum_to_size(Builder& build, Node* grad, const SymList& sizes) {
  const TensorMeta& t = Builder::tensor(grad);
  if (t.sizes == sizes || t.dim() < sizes.size()) return grad;
  if (sizes.empty()) return build.call("aten.sum.default", {grad});
  std::size_t leading = t.dim() - sizes.size();
  std::vector<Arg> dims;
  const auto is_one = [&](SymExpr e) {
    const auto one = build.graph.shapes->evaluate(sym_eq(e, 1), "the gradient of a broadcast");
    return one && *one;
  };
  const auto broadcast = [&](SymExpr from, SymExpr to) { return from != to && is_one(from) && !is_one(to); };
  for (std::size_t d = 0; d < t.dim(); ++d)
    if (d < leading || broadcast(sizes[d - leading], t.sizes[d])) dims.push_back(static_cast<std::int64_t>(d));
  if (!dims.empty()) grad = build.call("aten.sum.dim_IntList", {grad, Arg::list(dims), true});
  if (leading > 0) grad = build.call("aten.view.default", {grad, build.sizes(sizes)});
  return grad;
}

Node* fit_gradient(Builder& build, Node* grad, const TensorMeta& target, const std::string& what) {
  grad = sum_to_size(build, grad, target.sizes);
  const SymList& sizes = Builder::tensor(grad).sizes;
  const auto differ = [&](SymExpr a, SymExpr b) { return build.graph.shapes->statically(sym_eq(a, b)) == false; };
  if (!std::ranges::equal(sizes, target.sizes, std::not_fn(differ)))
    fail_unsupported(fmt::format("{} has size [{}], the argument [{}]; PyTorch refuses it, too", what, join(sizes),
                                 join(target.sizes)));
  return to_dtype(build, grad, target.dtype);
}

namespace {

/// "input, weight" -> input and weight
std::vector<std::string> split(std::string_view names) {
  std::vector<std::string> out;
  for (auto name : std::views::split(names, std::string_view(", "))) out.emplace_back(name.begin(), name.end());
  return out;
}

}  // namespace

std::vector<Node*> apply_formulas(const std::vector<Derivative>& formulas, GradCall& call) {
  std::vector<std::pair<std::string, Arg>> names;
  for (std::size_t i = 0; i < call.schema.args.size(); ++i) names.emplace_back(call.schema.args[i].name, call.args[i]);
  std::vector<Arg> grads;
  for (std::size_t i = 0; i < call.results.size(); ++i) {
    names.emplace_back(fmt::format("result{}", i), call.results[i] ? Arg(call.results[i]) : Arg());
    grads.push_back(i < call.grads.size() && call.grads[i] ? Arg(call.grads[i]) : Arg());
  }
  names.emplace_back("result", names.back().second);
  if (!call.results.empty() && call.results[0]) names.back().second = call.results[0];
  for (const Arg& g : grads)
    if (g.node()) {
      names.emplace_back("grad", g);
      break;
    }
  names.emplace_back("grads", Arg::list(grads));

  std::vector<Node*> out(call.schema.args.size(), nullptr);
  if (std::ranges::all_of(grads, &Arg::is_none)) return out;
  for (std::size_t i = 0; i < call.schema.args.size(); ++i) {
    const std::string& name = call.schema.args[i].name;
    const auto names_it = [&](const Derivative& d) { return std::ranges::count(split(d.input), name) > 0; };
    if (call.wants[i] && std::ranges::none_of(formulas, names_it))
      fail_unsupported(
          fmt::format("the derivative for '{}' of {}, for which PyTorch has no formula", name, call.schema.name));
  }
  // PyTorch's generated code computes the gradients in alphabetical order of the arguments' names.
  std::vector<Derivative> sorted = formulas;
  std::sort(sorted.begin(), sorted.end(), [](auto& a, auto& b) { return a.input < b.input; });
  for (const Derivative& d : sorted) {
    const std::vector<std::string> inputs = split(d.input);
    std::vector<Arg> wanted;
    for (const std::string& input : inputs) wanted.emplace_back(call.want(input));
    if (d.formula == "zero" || std::ranges::none_of(wanted, [](const Arg& w) { return *w.get<bool>(); })) continue;
    names.emplace_back("output_mask", Arg::list(wanted));
    const Arg value = build_program(call.build, d.formula, names);
    names.pop_back();
    for (std::size_t k = 0; k < inputs.size(); ++k) {
      if (!*wanted[k].get<bool>()) continue;
      const auto* list = value.get<ArgList>();
      Arg gradient = inputs.size() == 1 ? value
                     : list             ? list->items.at(k)
                                        : Arg(call.build.getitem(value.node(), static_cast<std::int64_t>(k)));
      if (!gradient.is_none() && !gradient.node())
        fail(fmt::format("{}: the formula for '{}' gives no tensor", call.schema.name, inputs[k]));
      out[static_cast<std::size_t>(call.schema.index_of(inputs[k]))] = gradient.node();
    }
  }
  return out;
}

}  // namespace partita

#include "core/ops/families/view_inverse.h"

#include <fmt/format.h>

#include "core/ops/facts/views.h"
#include "core/ops/record/promote.h"

namespace partita {
namespace {

const Arg& argument(const ViewStep& step, std::string_view name) {
  int i = find_schema(step.op)->index_of(name);
  if (i < 0) fail(fmt::format("{} has no argument {}", step.op->name, name));
  return step.args[static_cast<std::size_t>(i)];
}

std::int64_t integer(const ViewStep& step, std::string_view name) {
  auto* i = argument(step, name).get<std::int64_t>();
  if (!i) fail_unsupported(fmt::format("writing through {} with a symbolic {}", step.op->name, name));
  return *i;
}

std::vector<std::int64_t> integers(const Arg& a) {
  std::vector<std::int64_t> out;
  if (auto* i = a.get<std::int64_t>()) out.push_back(*i);
  if (auto* list = a.get<ArgList>())
    for (const Arg& item : list->items)
      if (auto* i = item.get<std::int64_t>()) out.push_back(*i);
  return out;
}

}  // namespace

Node* scatter_back(Builder& build, const ViewStep& step, Node* base, Node* value) {
  const std::string name = fmt::format("aten.{}_scatter.default", step.op->brief());
  const Schema* schema = find_schema(name);
  Args args = {base, value};
  for (std::size_t i = 1; i < step.args.size(); ++i) args.push_back(step.args[i]);
  while (args.size() > 2 && schema->args[args.size() - 1].has_default &&
         args.back() == schema->args[args.size() - 1].default_value)
    args.pop_back();
  return build.call(name, std::move(args));
}
Node* reshape_back(Builder& build, const ViewStep&, Node* base, Node* value) {
  return build.call("aten.view.default", {value, build.sizes(Builder::tensor(base).sizes)});
}
Node* pass_on(Builder&, const ViewStep&, Node*, Node* value) {
  return value;
}
Node* view_again(Builder& build, const ViewStep& step, Node*, Node* value) {
  Args args = step.args;
  args[0] = value;
  return build.call(step.op->name, std::move(args));
}
Node* permute_back(Builder& build, const ViewStep& step, Node* base, Node* value) {
  std::vector<std::int64_t> dims = integers(argument(step, "dims"));
  auto rank = static_cast<std::int64_t>(Builder::tensor(base).dim());
  std::vector<Arg> inverse(dims.size());
  for (std::size_t i = 0; i < dims.size(); ++i)
    inverse[static_cast<std::size_t>(dims[i] < 0 ? dims[i] + rank : dims[i])] = static_cast<std::int64_t>(i);
  return build.call("aten.permute.default", {value, Arg::list(std::move(inverse))});
}
Node* squeeze_back(Builder& build, const ViewStep& step, Node*, Node* value) {
  return build.call("aten.squeeze.dim", {value, argument(step, "dim")});
}
Node* unsqueeze_back(Builder& build, const ViewStep&, Node* base, Node* value) {
  const SymList target = Builder::tensor(base).sizes;
  for (std::size_t d = 0; d < target.size(); ++d) {
    const SymList& now = Builder::tensor(value).sizes;
    if (target[d].is(1) && (d >= now.size() || !now[d].is(1)))
      value = build.call("aten.unsqueeze.default", {value, static_cast<std::int64_t>(d)});
  }
  return reshape_back(build, {}, base, value);
}
Node* real_back(Builder& build, const ViewStep&, Node*, Node* value) {
  return build.call("aten.view_as_complex.default", {value});
}
Node* complex_back(Builder& build, const ViewStep&, Node*, Node* value) {
  return build.call("aten.view_as_real.default", {value});
}
Node* split_back(Builder& build, const ViewStep& step, Node* base, Node* value) {
  std::int64_t dim = integer(step, "dim");
  SymExpr start = 0;
  const SymList& sizes = Builder::tensor(base).sizes;
  std::size_t axis = static_cast<std::size_t>(dim < 0 ? dim + static_cast<std::int64_t>(sizes.size()) : dim);
  // Split sizes are one for all, or a list.
  std::vector<std::int64_t> parts = integers(step.args[1]);
  if (step.args[1].get<std::int64_t>())
    start = parts[0] * step.part;
  else
    for (int i = 0; i < step.part; ++i) start = start + parts[static_cast<std::size_t>(i)];
  SymExpr end = start + Builder::tensor(value).sizes[axis];
  return build.call("aten.slice_scatter.default", {base, value, dim, build.size(start), build.size(end)});
}
Node* unbind_back(Builder& build, const ViewStep& step, Node* base, Node* value) {
  return build.call("aten.select_scatter.default", {base, value, integer(step, "dim"), std::int64_t{step.part}});
}
Node* unfold_back(Builder& build, const ViewStep& step, Node* base, Node* value) {
  const std::int64_t dim = integer(step, "dimension"), size = integer(step, "size"), stride = integer(step, "step");
  const std::size_t rank = Builder::tensor(base).dim();
  if (rank == 0) fail_unsupported("writing through unfold of a tensor without dimensions");
  if (size > stride) fail_unsupported("writing through windows of unfold that overlap");
  const SymExpr windows = Builder::tensor(value).sizes[wrap_dim(dim, rank)];
  for (std::int64_t i = 0; i < size; ++i) {
    Node* part = build.call("aten.select.int", {value, std::int64_t{-1}, i});
    base = build.call("aten.slice_scatter.default",
                      {base, part, dim, i, build.size((windows - 1) * stride + i + 1), stride});
  }
  return base;
}
Node* dtype_back(Builder& build, const ViewStep&, Node* base, Node* value) {
  return build.call("aten.view.dtype", {value, Builder::tensor(base).dtype});
}

}  // namespace partita

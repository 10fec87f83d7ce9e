#include "core/functionalize/view_inverse.h"

#include <fmt/format.h>

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

using Inverse = Node* (*)(Builder&, const ViewStep&, Node* base, Node* value);

/// The scatter of the same arguments: slice -> slice_scatter. Trailing arguments that say no more than the default does
/// are left out, as PyTorch prints it.
template <const char* name>
Node* scatter(Builder& build, const ViewStep& step, Node* base, Node* value) {
  const Schema* schema = find_schema(std::string_view(name));
  Args args = {base, value};
  for (std::size_t i = 1; i < step.args.size(); ++i) args.push_back(step.args[i]);
  while (args.size() > 2 && schema->args[args.size() - 1].has_default &&
         args.back() == schema->args[args.size() - 1].default_value)
    args.pop_back();
  return build.call(name, std::move(args));
}
constexpr char slice_scatter[] = "aten.slice_scatter.default";
constexpr char select_scatter[] = "aten.select_scatter.default";
constexpr char diagonal_scatter[] = "aten.diagonal_scatter.default";
constexpr char as_strided_scatter[] = "aten.as_strided_scatter.default";

Node* reshape_back(Builder& build, const ViewStep&, Node* base, Node* value) {
  return build.call("aten.view.default", {value, build.sizes(Builder::tensor(base).sizes)});
}
Node* pass_on(Builder&, const ViewStep&, Node*, Node* value) {
  return value;
}
Node* transpose_back(Builder& build, const ViewStep&, Node*, Node* value) {
  return build.call("aten.t.default", {value});
}
Node* swap_back(Builder& build, const ViewStep& step, Node*, Node* value) {
  return build.call("aten.transpose.int", {value, argument(step, "dim0"), argument(step, "dim1")});
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
  return build.call(slice_scatter, {base, value, dim, build.size(start), build.size(end)});
}
Node* unbind_back(Builder& build, const ViewStep& step, Node* base, Node* value) {
  return build.call(select_scatter, {base, value, integer(step, "dim"), std::int64_t{step.part}});
}
Node* dtype_back(Builder& build, const ViewStep&, Node* base, Node* value) {
  return build.call("aten.view.dtype", {value, Builder::tensor(base).dtype});
}

struct Row {
  std::string_view op;
  Inverse inverse;
};
constexpr Row rows[] = {
    {"aten.view.default", reshape_back},
    {"aten._unsafe_view.default", reshape_back},
    {"aten._reshape_alias.default", reshape_back},
    {"aten.view.dtype", dtype_back},
    {"aten.alias.default", pass_on},
    {"aten.detach.default", pass_on},
    {"aten.t.default", transpose_back},
    {"aten.transpose.int", swap_back},
    {"aten.permute.default", permute_back},
    {"aten.unsqueeze.default", squeeze_back},
    {"aten.squeeze.default", unsqueeze_back},
    {"aten.squeeze.dim", unsqueeze_back},
    {"aten.squeeze.dims", unsqueeze_back},
    {"aten.slice.Tensor", scatter<slice_scatter>},
    {"aten.select.int", scatter<select_scatter>},
    {"aten.diagonal.default", scatter<diagonal_scatter>},
    {"aten.as_strided.default", scatter<as_strided_scatter>},
    {"aten.split.Tensor", split_back},
    {"aten.split_with_sizes.default", split_back},
    {"aten.unbind.int", unbind_back},
    {"aten.view_as_real.default", real_back},
    {"aten.view_as_complex.default", complex_back},
};

}  // namespace

Node* apply_view(Builder& build, const ViewStep& step, Node* base) {
  const Schema* schema = find_schema(step.op);
  Args args;
  Kwargs kwargs;
  std::size_t last = 0;
  for (std::size_t i = 0; i < step.args.size(); ++i) {
    const SchemaArg& a = schema->args[i];
    if (static_cast<int>(i) == step.self || !a.has_default || !(step.args[i] == a.default_value)) last = i + 1;
  }
  for (std::size_t i = 0; i < last; ++i) {
    Arg value = static_cast<int>(i) == step.self ? Arg(base) : step.args[i];
    if (schema->args[i].keyword_only)
      kwargs.emplace_back(schema->args[i].name, std::move(value));
    else
      args.push_back(std::move(value));
  }
  Node* view = build.call(step.op->name, std::move(args), std::move(kwargs));
  return step.part < 0 ? view : build.getitem(view, step.part);
}

Node* write_through_view(Builder& build, const ViewStep& step, Node* base, Node* value) {
  for (const Row& row : rows)
    if (row.op == step.op->name) return row.inverse(build, step, base, value);
  throw Raise{unsupported("functionalize.view", fmt::format("writing through {} is not supported", step.op->name))};
}

}  // namespace partita

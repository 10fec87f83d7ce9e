// Batching rules of vmap: functions for views, matrix products and cat; tables for operators with dimension arguments,
// whole reductions, and operators that take leading dimensions; one rule for all pointwise ones.
#include <algorithm>
#include <array>

#include "core/ops/functorch/vmap.h"
#include "core/ops/record/gradients.h"
#include "core/ops/record/promote.h"
#include "core/ops/record/record.h"
#include "core/ops/schema/functional_variant.h"

namespace partita {
namespace {

using Results = std::optional<std::vector<Arg>>;

Arg number(std::size_t n) {
  return static_cast<std::int64_t>(n);
}

/// With dimensions of size 1 after the batch, so that it has `rank` without the batch.
Arg padded(const BatchedCall& c, const Arg& tensor, std::size_t rank) {
  Arg whole = c.whole(tensor);
  for (std::size_t r = BatchedCall::rank(tensor); r < rank; ++r)
    whole = c.build.call("aten.unsqueeze.default", {whole, 1});
  return whole;
}

Arg with_batch(const BatchedCall& c, const Arg& tensor) {
  return c.has_batch(tensor) ? c.whole(tensor) : for_each_part(c.build, tensor, c.size);
}

Arg with_size(const BatchedCall& c, const Arg& sizes) {
  std::vector<Arg> items = sizes.get<ArgList>() ? sizes.get<ArgList>()->items : std::vector<Arg>{sizes};
  items.insert(items.begin(), c.size);
  return Arg::list(std::move(items));
}

/// The call with other arguments, in the schema's order; its results one by one.
std::vector<Arg> call_again(const BatchedCall& c, const Schema& schema, const Args& bound) {
  Node* const made = call_in_order(c.build, schema, bound);
  if (schema.returns.empty()) return {};
  if (!made->meta.tuple()) return {made};
  const std::vector<Node*> results = results_of(c.build, made);
  return std::vector<Arg>(results.begin(), results.end());
}

/// Element by element: tensors of fewer dimensions get theirs after the batch. Comparisons promote by the whole
/// tensors, as functorch's do; other results have the dtype that the call says (vmap.cpp).
Results pointwise(const BatchedCall& c, const Schema& schema, Args bound) {
  const TensorMeta* result = c.node.meta.tensor();
  if (!result) return std::nullopt;
  for (Arg& arg : bound) {
    if (arg.get<ArgList>()) return std::nullopt;
    if (c.has_batch(arg)) arg = padded(c, arg, result->sizes.size());
  }
  return call_again(c, schema, bound);
}

/// An operator of which some arguments count dimensions.
struct Dims {
  std::string_view op;
  std::array<std::string_view, 2> arguments = {"dim"};
  bool all_when_missing = false;  ///< None and [] are all dimensions
  bool one_more = false;          ///< counts the dimension that it makes, too
};
const Dims dims_table[] = {{"aten.sum.dim_IntList", {"dim"}, true},
                           {"aten.mean.dim", {"dim"}, true},
                           {"aten.amax.default", {"dim"}, true},
                           {"aten.amin.default", {"dim"}, true},
                           {"aten.var.correction", {"dim"}, true},
                           {"aten.std.correction", {"dim"}, true},
                           {"aten.var_mean.correction", {"dim"}, true},
                           {"aten.std_mean.correction", {"dim"}, true},
                           {"aten.linalg_vector_norm.default", {"dim"}, true},
                           {"aten.logsumexp.default"},
                           {"aten.prod.dim_int"},
                           {"aten.any.dim"},
                           {"aten.all.dim"},
                           {"aten.any.dims", {"dim"}, true},
                           {"aten.all.dims", {"dim"}, true},
                           {"aten.argmax.default"},
                           {"aten.argmin.default"},
                           {"aten.max.dim"},
                           {"aten.min.dim"},
                           {"aten.cumsum.default"},
                           {"aten.cumprod.default"},
                           {"aten.logcumsumexp.default"},
                           {"aten._softmax.default"},
                           {"aten._log_softmax.default"},
                           {"aten.softmax.int"},
                           {"aten.log_softmax.int"},
                           {"aten.sort.default"},
                           {"aten.sort.stable"},
                           {"aten.topk.default"},
                           {"aten.flip.default", {"dims"}},
                           {"aten.unsqueeze.default", {"dim"}, false, true},
                           {"aten.squeeze.dim"},
                           {"aten.squeeze.dims"},
                           {"aten.select.int"},
                           {"aten.slice.Tensor"},
                           {"aten.split.Tensor"},
                           {"aten.split_with_sizes.default"},
                           {"aten.unbind.int"},
                           {"aten.transpose.int", {"dim0", "dim1"}},
                           {"aten.gather.default"},
                           {"aten.scatter.src"},
                           {"aten.scatter.value"},
                           {"aten.scatter_add.default"},
                           {"aten.diagonal.default", {"dim1", "dim2"}},
                           {"aten.unfold.default", {"dimension"}},
                           {"aten.glu.default"}};

Arg next_dim(const Arg& dim, std::size_t rank) {
  const auto* d = dim.get<std::int64_t>();
  if (!d) fail("a dimension is no number");
  return number(wrap_dim(*d, rank) + 1);
}

Results by_dims(const BatchedCall& c, const Dims& rule, const Schema& schema, Args bound) {
  const std::size_t rank = BatchedCall::rank(bound[0]);
  if (rank == 0 && !rule.one_more) return std::nullopt;  // such tensors have the dimensions 0 and -1
  for (Arg& arg : bound) {
    if (!arg.node() || !arg.node()->meta.tensor()) continue;
    if (BatchedCall::rank(arg) != rank) return std::nullopt;
    arg = with_batch(c, arg);
  }
  for (const std::string_view name : rule.arguments) {
    if (name.empty()) continue;
    Arg& arg = bound[static_cast<std::size_t>(schema.index_of(name))];
    std::vector<Arg> all;
    if (const auto* list = arg.get<ArgList>(); list || arg.is_none()) {
      if (list)
        for (const Arg& d : list->items) all.push_back(next_dim(d, rank));
      if (all.empty() && !rule.all_when_missing) return std::nullopt;
      for (std::size_t d = 1; all.empty() && d <= rank; ++d) all.push_back(number(d));
      arg = Arg::list(std::move(all));
    } else {
      arg = next_dim(arg, rank + (rule.one_more ? 1 : 0));
    }
  }
  return call_again(c, schema, bound);
}

/// Reductions of everything, as those of all dimensions but the batch's.
struct Whole {
  std::string_view op, by_dims;
};
constexpr Whole whole_table[] = {
    {"aten.sum.default", "aten.sum.dim_IntList"}, {"aten.mean.default", "aten.mean.dim"},
    {"aten.max.default", "aten.amax.default"},    {"aten.min.default", "aten.amin.default"},
    {"aten.any.default", "aten.any.dims"},        {"aten.all.default", "aten.all.dims"}};

Results of_everything(const BatchedCall& c, const Whole& rule, const Schema& schema, const Args& bound) {
  const std::size_t rank = BatchedCall::rank(bound[0]);
  if (rank == 0) return std::nullopt;
  std::vector<Arg> dims;
  for (std::size_t d = 1; d <= rank; ++d) dims.push_back(number(d));
  Kwargs kwargs;
  if (const int dtype = schema.index_of("dtype"); dtype >= 0)
    kwargs.emplace_back("dtype", bound[static_cast<std::size_t>(dtype)]);
  return std::vector<Arg>{c.build.call(rule.by_dims, {c.whole(bound[0]), Arg::list(std::move(dims))}, kwargs)};
}

/// A view stays one, which may be written; memory that has no such view is copied only where the call may copy too.
Results view(const BatchedCall& c, const Schema& schema, const Args& bound) {
  return std::vector<Arg>{c.build.call(schema.name, {c.whole(bound[0]), with_size(c, bound[1])})};
}

Results expand(const BatchedCall& c, const Schema&, const Args& bound) {
  const auto* sizes = bound[1].get<ArgList>();
  const Arg whole = padded(c, bound[0], sizes ? sizes->items.size() : 1);
  return std::vector<Arg>{c.build.call("aten.expand.default", {whole, with_size(c, bound[1])})};
}

Results squeezed(const BatchedCall& c, const Schema&, const Args& bound) {
  const SymList& sizes = Builder::tensor(bound[0]).sizes;
  std::vector<Arg> dims;
  for (std::size_t d = 0; d < sizes.size(); ++d)
    if (sizes[d].is(1)) dims.push_back(number(d + 1));
  return std::vector<Arg>{c.build.call("aten.squeeze.dims", {c.whole(bound[0]), Arg::list(std::move(dims))})};
}

Results permuted(const BatchedCall& c, const Schema&, const Args& bound) {
  const auto* order = bound[1].get<ArgList>();
  if (!order) return std::nullopt;
  std::vector<Arg> dims{Arg(0)};
  for (const Arg& d : order->items) dims.push_back(next_dim(d, BatchedCall::rank(bound[0])));
  return std::vector<Arg>{c.build.call("aten.permute.default", {c.whole(bound[0]), Arg::list(std::move(dims))})};
}

Results transposed(const BatchedCall& c, const Schema&, const Args& bound) {
  if (BatchedCall::rank(bound[0]) < 2) return std::vector<Arg>{c.whole(bound[0])};
  return std::vector<Arg>{c.build.call("aten.transpose.int", {c.whole(bound[0]), 1, 2})};
}

Arg matmul(const BatchedCall& c, const Arg& a, const Arg& b) {
  const auto as_it_is = [&](const Arg& t) { return c.has_batch(t) ? c.whole(t) : t; };
  return c.build.call("aten.matmul.default", {as_it_is(a), as_it_is(b)});
}

Results product(const BatchedCall& c, const Schema&, const Args& bound) {
  return std::vector<Arg>{matmul(c, bound[0], bound[1])};
}

Results product_of_vectors(const BatchedCall& c, const Schema& schema, const Args& bound) {
  if (!c.has_batch(bound[1])) return product(c, schema, bound);
  const Arg column = c.build.call("aten.unsqueeze.default", {c.whole(bound[1]), -1});
  Arg left = c.has_batch(bound[0]) ? c.whole(bound[0]) : bound[0];
  const bool dot = BatchedCall::rank(bound[0]) == 1;
  if (dot) left = c.build.call("aten.unsqueeze.default", {left, -2});
  Arg out = c.build.call("aten.squeeze.dim", {c.build.call("aten.matmul.default", {left, column}), -1});
  if (dot) out = c.build.call("aten.squeeze.dim", {out, -1});
  return std::vector<Arg>{out};
}

/// beta * self + alpha * (a @ b)
Results product_and_sum(const BatchedCall& c, const Schema& schema, const Args& bound) {
  const auto times = [&](const Arg& tensor, const char* factor) -> Arg {
    const Arg& by = bound[static_cast<std::size_t>(schema.index_of(factor))];
    if (by == Arg(1) || by == Arg(1.0)) return tensor;
    return c.build.call("aten.mul.Scalar", {tensor, by});
  };
  const Arg self = c.has_batch(bound[0]) ? padded(c, bound[0], c.node.meta.tensor()->sizes.size()) : bound[0];
  return std::vector<Arg>{
      c.build.call("aten.add.Tensor", {times(matmul(c, bound[1], bound[2]), "alpha"), times(self, "beta")})};
}

Results join(const BatchedCall& c, const Schema& schema, Args bound) {
  const auto* list = bound[0].get<ArgList>();
  if (!list || !c.node.meta.tensor()) return std::nullopt;
  const std::size_t rank = c.node.meta.tensor()->sizes.size();
  std::vector<Arg> items;
  for (const Arg& item : list->items) {
    if (BatchedCall::rank(item) != rank) return std::nullopt;  // an empty list of numbers among others
    items.push_back(with_batch(c, item));
  }
  bound[0] = Arg::list(std::move(items));
  bound[1] = next_dim(bound[1], rank);
  return call_again(c, schema, bound);
}

/// Operators that take any dimensions before those that they work on in the argument `batch`.
struct Leading {
  std::string_view op;
  std::size_t batch = 0;
};
constexpr Leading leading_table[] = {
    {"aten.native_layer_norm.default"},  {"aten.embedding.default", 1},         {"aten.view_as_real.default"},
    {"aten.view_as_complex.default"},    {"aten._linalg_check_errors.default"}, {"aten._linalg_det.default"},
    {"aten._linalg_slogdet.default"},    {"aten._linalg_eigh.default"},         {"aten._linalg_svd.default"},
    {"aten.linalg_inv_ex.default"},      {"aten.linalg_cholesky_ex.default"},   {"aten.linalg_qr.default"},
    {"aten.linalg_lu_factor_ex.default"}};

Results leading(const BatchedCall& c, const Leading& rule, const Schema& schema, Args bound) {
  for (std::size_t i = 0; i < bound.size(); ++i)
    if (c.has_batch(bound[i]) != (i == rule.batch)) return std::nullopt;
  bound[rule.batch] = c.whole(bound[rule.batch]);
  if (const int matrix = schema.index_of("is_matrix"); matrix >= 0) bound[static_cast<std::size_t>(matrix)] = false;
  return call_again(c, schema, bound);
}

struct Rule {
  std::string_view op;
  Results (*apply)(const BatchedCall&, const Schema&, Args);
};

template <Results (*f)(const BatchedCall&, const Schema&, const Args&)>
Results by(const BatchedCall& c, const Schema& schema, Args bound) {
  return f(c, schema, bound);
}

constexpr Rule rules[] = {{"aten.view.default", by<view>},
                          {"aten.reshape.default", by<view>},
                          {"aten._unsafe_view.default", by<view>},
                          {"aten.expand.default", by<expand>},
                          {"aten.squeeze.default", by<squeezed>},
                          {"aten.permute.default", by<permuted>},
                          {"aten.t.default", by<transposed>},
                          {"aten.mm.default", by<product>},
                          {"aten.bmm.default", by<product>},
                          {"aten.mv.default", by<product_of_vectors>},
                          {"aten.dot.default", by<product_of_vectors>},
                          {"aten.addmm.default", by<product_and_sum>},
                          {"aten.baddbmm.default", by<product_and_sum>},
                          {"aten.cat.default", join},
                          {"aten.copy_.default", pointwise},
                          {"aten.clone.default", pointwise},
                          {"aten._to_copy.default", pointwise},
                          {"aten.detach.default", pointwise},
                          {"aten.alias.default", pointwise},
                          {"aten._conj.default", pointwise},
                          {"aten._neg_view.default", pointwise},
                          {"aten.zeros_like.default", pointwise},
                          {"aten.ones_like.default", pointwise},
                          {"aten.full_like.default", pointwise}};

auto find_rule(const auto& table, std::string_view op) {
  const auto it = std::ranges::find_if(table, [&](const auto& rule) { return rule.op == op; });
  return it == std::end(table) ? nullptr : &*it;
}

}  // namespace

Arg for_each_part(Builder& build, const Arg& tensor, const Arg& size) {
  std::vector<Arg> sizes(BatchedCall::rank(tensor), Arg(-1));
  sizes.insert(sizes.begin(), size);
  return build.call("aten.expand.default",
                    {build.call("aten.unsqueeze.default", {tensor, 0}), Arg::list(std::move(sizes))});
}

Results call_on_batch(const BatchedCall& call) {
  const Schema* schema = find_schema(call.node.op());
  if (!schema) return std::nullopt;
  const auto bound = bind_arguments(*schema, call.node.args(), call.node.kwargs());
  if (!bound || bound->empty()) return std::nullopt;
  const std::string& op = schema->name;
  if (const Rule* rule = find_rule(rules, op)) return rule->apply(call, *schema, *bound);
  if (const Dims* rule = find_rule(dims_table, op)) return by_dims(call, *rule, *schema, *bound);
  if (const Whole* rule = find_rule(whole_table, op)) return of_everything(call, *rule, *schema, *bound);
  if (const Leading* rule = find_rule(leading_table, op)) return leading(call, *rule, *schema, *bound);
  return schema->pointwise ? pointwise(call, *schema, *bound) : std::nullopt;
}

}  // namespace partita

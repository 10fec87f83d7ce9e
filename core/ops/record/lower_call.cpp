#include "core/ops/record/lower_call.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/base/check.h"
#include "core/ops/record/promote.h"

namespace partita::loops {

LoweredTensor LowerCall::in(std::string_view name) const {
  const Node* node = arg(name).node();
  if (!node) fail_unsupported("argument " + std::string(name) + " is not a tensor");
  return value_(node);
}

std::vector<LoweredTensor> LowerCall::ins(std::string_view name) const {
  std::vector<LoweredTensor> list;
  const Arg& a = arg(name);
  const ArgList* items = a.get<ArgList>();
  if (!items) return {in(name)};
  for (const Arg& item : items->items) list.push_back(item.node() ? value_(item.node()) : LoweredTensor());
  return list;
}

const TensorMeta& LowerCall::out(std::size_t i) const {
  const Meta* meta = &node.meta;
  if (const MetaTuple* tuple = meta->tuple()) {
    CHECK(i < tuple->items.size(), "result " + std::to_string(i) + " of " + node.name());
    meta = &tuple->items[i];
  }
  CHECK(meta->tensor(), "no meta for result " + std::to_string(i) + " of " + node.name());
  return *meta->tensor();
}

SymList LowerCall::out_sizes(std::size_t i) const {
  return to.plain(out(i).sizes);
}

void LowerCall::give(LoweredTensor t) {
  std::size_t i = results.size();
  const SymList sizes = out_sizes(i);
  const SymExpr expected = product(sizes);
  // A guard makes sure that the expressions are equal in each run.
  const auto same = [&](SymExpr a, SymExpr b) {
    return a == b || (to.symbolic() && test(sym_eq(a, b), "equal sizes"));
  };
  if (t.sizes != sizes && std::ranges::equal(t.sizes, sizes, same))
    t = to.view(t, sizes, [](Body&, const Index& i) { return i; });
  if (t.numel() != expected && to.number(t.numel() - expected) != 0)
    fail(
        fmt::format("{} elements are computed where the annotation {} stands for {}; do the sizes of the inputs fit "
                    "together?",
                    t.numel().str(), annotation(out(i)), expected.str()));
  results.push_back(to.reshape(to.cast(t, out(i).dtype), sizes));
}

Number LowerCall::number(std::string_view name) const {
  const Number n = FakeCall::number(name);
  if (const auto* c = std::get_if<std::complex<double>>(&n); c && c->imag() != 0)
    fail_unsupported("a complex number in loops");
  return n;
}

std::size_t LowerCall::dim(std::string_view name, std::size_t rank) const {
  return wrap_dim(integer(name), rank);
}

std::vector<bool> LowerCall::dims(std::string_view name, std::size_t rank) const {
  std::vector<bool> mask(rank, false);
  Sizes list;
  if (schema.index_of(name) >= 0 && has(name)) list = arg(name).get<ArgList>() ? integers(name) : Sizes{integer(name)};
  for (std::int64_t d : list)
    if (rank > 0) mask[wrap_dim(d, rank)] = true;
  // An empty list means all dimensions; for any.dims and all.dims it means none.
  const bool nothing = schema.name.ends_with(".dims") && has(name);
  if (list.empty() && !nothing) mask.assign(rank, true);
  return mask;
}

LoweredTensor pointwise(Lowering& to, DType compute, DType result, const std::vector<LoweredTensor>& inputs,
                        ScalarFunction f) {
  SymList sizes;
  for (const LoweredTensor& t : inputs) sizes = to.broadcast(sizes, t.sizes);
  std::vector<LoweredTensor> expanded;
  for (const LoweredTensor& t : inputs) expanded.push_back(to.expand(t, sizes));
  return to.map(result, sizes, [=, f = std::move(f)](Body& body, const Index& i) {
    std::vector<Scalar> x;
    for (const LoweredTensor& t : expanded) x.push_back(body.b.cast(body.read(t, i), compute));
    return body.b.cast(f(body.b, x), result);
  });
}

void give_copy(LowerCall& call, std::string_view argument) {
  const DType dtype = call.out().dtype;
  const LoweredTensor from = call.to.expand(call.in(argument), call.out_sizes());
  call.give(call.to.map(dtype, from.sizes,
                        [=](Body& body, const Index& i) { return body.b.cast(body.read(from, i), dtype); }));
}

}  // namespace partita::loops

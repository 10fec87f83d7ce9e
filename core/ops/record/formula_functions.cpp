// How formula functions read their arguments, and the functions on sizes, dtypes, views and powers. Others are in
// formula_NAME.cpp or in the file of their family.
#include "core/ops/record/formula_functions.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "core/ops/facts/view_strides.h"
#include "core/ops/record/formula.h"
#include "core/ops/record/gradients.h"
#include "core/ops/record/operator_program.h"
#include "core/ops/record/promote.h"

namespace partita {

FakeCall FormulaCall::guards() const {
  static const Schema none;
  return FakeCall(none, {}, *build.graph.shapes);
}

Arg FormulaCall::operator()(std::string_view expression) const {
  return (*this)(expression, {});
}

Arg FormulaCall::operator()(std::string_view expression, std::vector<std::pair<std::string, Arg>> more) const {
  for (std::size_t i = 0; i < args.size(); ++i) more.emplace_back("x" + std::to_string(i), args[i]);
  return build_program(build, expression, std::move(more));
}

namespace {

SymExpr size_of(const Arg& a) {
  if (auto* i = a.get<std::int64_t>()) return *i;
  if (a.node() && a.node()->meta.sym()) return *a.node()->meta.sym();
  fail("a size is expected in a formula");
}

/// A number that the graph computes.
const SymExpr* symbolic(const Arg& a) {
  const SymExpr* e = a.node() ? a.node()->meta.sym() : nullptr;
  return e && !e->is_int() && e->kind() != SymKind::Float ? e : nullptr;
}

/// The value of a symbolic integer, which a guard fixes.
std::int64_t fixed(const FormulaCall& f, SymExpr e) {
  const auto hint = e.is_float() ? std::nullopt : f.build.graph.shapes->hint(e);
  if (!hint) fail_unsupported("a gradient by a number that is known only at run time: " + e.str());
  f.guards().test(sym_eq(e, *hint), "a gradient needs a number");
  return *hint;
}

Number number_of(const FormulaCall& f, const Arg& a) {
  if (const auto literal = as_number(a)) return *literal;
  const SymExpr* e = a.node() ? a.node()->meta.sym() : nullptr;
  if (!e) fail("a number is expected in a formula");
  if (e->kind() == SymKind::Float) return e->as_float();
  return fixed(f, *e);
}

/// The number in argument i as a tensor that takes part in type promotion as a number does beside x.
Arg number_beside(const FormulaCall& f, std::size_t i, const TensorMeta& x) {
  const DType dtype = x.dim() == 0 || is_complex(x.dtype) ? x.dtype : DType::Float64;
  return f.build.call("aten.scalar_tensor.default", {f.args[i]}, {{"dtype", dtype}});
}

}  // namespace

SymList FormulaCall::sizes(std::size_t i) const {
  const auto* list = args[i].get<ArgList>();
  if (!list) return {size_of(args[i])};
  SymList out;
  for (const Arg& a : list->items) out.push_back(size_of(a));
  return out;
}
Sizes FormulaCall::integers(std::size_t i) const {
  Sizes out;
  for (SymExpr e : sizes(i)) out.push_back(fixed(*this, e));
  return out;
}
std::int64_t FormulaCall::integer(std::size_t i) const {
  const Sizes all = integers(i);
  if (all.size() != 1) fail("one number is expected in a formula");
  return all[0];
}
double FormulaCall::real(std::size_t i) const {
  return as_double(number_of(*this, args[i]));
}
bool FormulaCall::flag(std::size_t i) const {
  return has(i) && as_double(number_of(*this, args[i])) != 0;
}

namespace {

Arg sizes(const FormulaCall& f) {
  return f.build.sizes(f.tensor(0).sizes);
}
/// size(x, dim)
Arg size(const FormulaCall& f) {
  const TensorMeta& t = f.tensor(0);
  if (t.sizes.empty()) fail("Dimension specified as " + std::to_string(f.integer(1)) + " but tensor has no dimensions");
  return f.build.size(t.sizes[wrap_dim(f.integer(1), t.dim())]);
}
Arg dim_of(const FormulaCall& f) {
  return static_cast<std::int64_t>(f.tensor(0).dim());
}
Arg has_floating_dtype(const FormulaCall& f) {
  return is_floating(f.tensor(0).dtype);
}
Arg has_complex_dtype(const FormulaCall& f) {
  return is_complex(f.tensor(0).dtype);
}
/// zeros_of(x, grad): new zeros like x, made from grad.
Arg zeros_of(const FormulaCall& f) {
  const TensorMeta& t = f.tensor(0);
  return f.build.call("aten.new_zeros.default", {f.args[1], f.build.sizes(t.sizes)},
                      {{"dtype", t.dtype}, {"layout", Layout::Strided}, {"device", t.device}});
}
/// negated(list of sizes)
Arg negated(const FormulaCall& f) {
  SymList list = f.sizes(0);
  for (SymExpr& e : list) e = -e;
  return f.build.sizes(list);
}
/// sum_to(x, like): x summed over the dimensions that `like` was expanded by.
Arg sum_to(const FormulaCall& f) {
  return sum_to_size(f.build, f.args[0].node(), f.tensor(1).sizes);
}
/// The sum of two gradients; None counts as 0.
Arg sum_of(const FormulaCall& f) {
  return f("x1 if x0 is None else x0 if x1 is None else x0 + x1");
}
Arg refuse(const FormulaCall& f) {
  fail(*f.args[0].get<std::string>());
}
Arg refuse_as_unsupported(const FormulaCall& f) {
  fail_unsupported(*f.args[0].get<std::string>());
}
Arg dtype(const FormulaCall& f) {
  return f.tensor(0).dtype;
}
/// in_dtype(x, dtype): x itself where it has the dtype.
Arg in_dtype(const FormulaCall& f) {
  return to_dtype(f.build, f.args[0], *f.args[1].get<DType>());
}

Arg conj(const FormulaCall& f) {
  if (auto* c = f.args[0].get<std::complex<double>>()) return std::conj(*c);
  if (!f.is_tensor(0) || !is_complex(f.tensor(0).dtype)) return f.args[0];
  return f.build.call("aten._conj.default", {f.args[0]});
}

Arg maybe_multiply(const FormulaCall& f) {
  const Arg& factor = f.args[1];
  if (factor == Arg(1) || factor == Arg(1.0) || factor == Arg(true)) return f.args[0];
  return f.build.call("aten.mul.Scalar", {f.args[0], factor});
}

/// at::reshape: a view where the strides allow one, else a view of a copy.
Arg reshape(const FormulaCall& f) {
  const TensorMeta& t = f.tensor(0);
  FakeCall guards = f.guards();
  SymList target = infer_size(guards, f.sizes(1), t.numel());
  if (view_geometry(guards, t.sizes, t.strides, target))
    return f.build.call("aten.view.default", {f.args[0], f.args[1]});
  Node* dense = f.build.call("aten.clone.default", {f.args[0]}, {{"memory_format", MemoryFormat::Contiguous}});
  return f.build.call("aten._unsafe_view.default", {dense, f.build.sizes(target)});
}

Arg contiguous(const FormulaCall& f) {
  const TensorMeta& t = f.tensor(0);
  FakeCall guards = f.guards();
  if (is_contiguous(guards, t.sizes, t.strides)) return f.args[0];
  return f.build.call("aten.clone.default", {f.args[0]}, {{"memory_format", MemoryFormat::Contiguous}});
}

/// A number among the operands becomes a 0-dim tensor in the result's dtype.
Arg where(const FormulaCall& f) {
  std::vector<Operand> operands;
  for (std::size_t i : {1, 2}) {
    operands.push_back(f.is_tensor(i)        ? Operand::of(f.tensor(i))
                       : symbolic(f.args[i]) ? Operand::of_number(*f.args[i].node())
                                             : Operand::of(number_of(f, f.args[i])));
  }
  DType type = result_type(operands);
  auto choice = [&](std::size_t i) -> Arg {
    if (f.is_tensor(i)) return to_dtype(f.build, f.args[i], type);
    return f.build.call("aten.scalar_tensor.default", {f.args[i]},
                        {{"dtype", type}, {"layout", Layout::Strided}, {"device", f.tensor(0).device}});
  };
  // As in PyTorch, the other operand is converted before a tensor that is chosen where the condition holds.
  const bool other_first = f.is_tensor(1);
  const Arg first = choice(other_first ? 2 : 1), second = choice(other_first ? 1 : 2);
  return f.build.call("aten.where.self", {f.args[0], other_first ? second : first, other_first ? first : second});
}

Arg permute_backwards(const FormulaCall& f) {
  const Sizes dims = f.integers(1);
  std::vector<Arg> inverse(dims.size());
  for (std::size_t i = 0; i < dims.size(); ++i) inverse[wrap_dim(dims[i], dims.size())] = static_cast<std::int64_t>(i);
  return f.build.call("aten.permute.default", {f.args[0], Arg::list(std::move(inverse))});
}

/// unsqueeze_to(grad, self[, dim or dims]): restores the dimensions of size 1 that squeeze removed.
Arg unsqueeze_to(const FormulaCall& f) {
  const TensorMeta& self = f.tensor(1);
  std::vector<bool> asked(self.dim(), !f.has(2));
  if (f.has(2)) {
    for (std::int64_t d : f.integers(2))
      if (!self.sizes.empty()) asked[wrap_dim(d, self.dim())] = true;
  }
  Arg out = f.args[0];
  for (std::size_t d = 0; d < self.dim(); ++d)
    if (asked[d] && self.sizes[d].is(1))
      out = f.build.call("aten.unsqueeze.default", {out, static_cast<std::int64_t>(d)});
  return out;
}

Arg slice_backward_wrapper(const FormulaCall& f) {
  Arg start = f.has(3) ? f.args[3] : Arg(0), end = f.has(4) ? f.args[4] : Arg(std::int64_t{INT64_MAX});
  return f.build.call("aten.slice_backward.default",
                      {f.args[0], f.build.sizes(f.tensor(1).sizes), f.args[2], start, end, f.args[5]});
}

/// Whether some element occurs at more than one index.
bool shows_twice(const Sizes& sizes, const Sizes& strides) {
  std::vector<std::size_t> order(sizes.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](auto a, auto b) { return strides[a] < strides[b]; });
  std::int64_t reached = 0;
  for (std::size_t d : order) {
    if (sizes[d] <= 1) continue;
    if (strides[d] <= reached) return true;
    reached += (sizes[d] - 1) * strides[d];
  }
  return false;
}

/// How many elements of memory a view covers. Symbolic sizes are at least 1.
SymExpr covered(const SymList& sizes, const SymList& strides) {
  const auto known = concrete(sizes), known_strides = concrete(strides);
  if (known && known_strides) return unwrap(reach(*known, *known_strides));
  SymExpr last = 0;
  for (std::size_t d = 0; d < sizes.size(); ++d) last = last + (sizes[d] - 1) * strides[d];
  return last + 1;
}

/// as_strided_backward(grad, self, size, stride, storage_offset). Where each element occurs in the view at most once,
/// grad is scattered into zeros. Otherwise the gradients of all indices of an element are added up, in a buffer that
/// covers both self and the view.
Arg as_strided_backward(const FormulaCall& f) {
  const TensorMeta& self = f.tensor(1);
  FakeCall guards = f.guards();
  const auto sizes = concrete(f.sizes(2)), strides = concrete(f.sizes(3));
  if (!is_non_overlapping_and_dense(guards, self.sizes, self.strides))
    fail_unsupported("the gradient of as_strided of a tensor that is not dense");
  if (sizes && strides && !shows_twice(*sizes, *strides)) {
    Node* zeros = f.build.call("aten.new_empty_strided.default",
                               {f.args[0], f.build.sizes(self.sizes), f.build.sizes(self.strides)});
    Node* zeroed = f.build.call("aten.zeros_like.default", {zeros});
    return f.build.call("aten.as_strided_scatter.default", {zeroed, f.args[0], f.args[2], f.args[3], f.args[4]});
  }
  const auto* given = f.has(4) ? f.args[4].get<std::int64_t>() : nullptr;
  if (!self.offset.is_int() || (f.has(4) && !given))
    fail_unsupported("the gradient of as_strided with a symbolic offset");
  std::int64_t at = self.offset.as_int(), window_at = given ? *given : at;
  const std::int64_t shared = std::min(at, window_at);
  at -= shared;
  window_at -= shared;
  const Arg room =
      f.build.size(sym_max(covered(self.sizes, self.strides) + at, covered(f.sizes(2), f.sizes(3)) + window_at));
  auto flat = [&](const Arg& x) { return reshape({f.build, {x, Arg::list({-1})}}); };
  Node* storage = f.build.call("aten.new_zeros.default", {f.args[0], Arg::list({room})});
  Node* places = f.build.call("aten.arange.start", {0, room},
                              {{"dtype", DType::Int64}, {"layout", Layout::Strided}, {"device", self.device}});
  places = f.build.call("aten.as_strided.default", {places, f.args[2], f.args[3], window_at});
  const Arg grad = flat(f.args[0]), shown = flat(places);
  storage = f.build.call("aten.index_add.default", {storage, 0, shown, grad});
  return f.build.call("aten.as_strided.default", {storage, f.build.sizes(self.sizes), f.build.sizes(self.strides), at});
}

Arg pow_backward_self(const FormulaCall& f) {
  return f("where(eq(x2, 0.0), zero, x0 * conj(x2 * pow(x1, x2 - 1)))",
           {{"zero", f("aten.zeros.default([], dtype=dtype(x0))")}});
}
Arg pow_backward(const FormulaCall& f) {
  if (symbolic(f.args[2]))
    return pow_backward_self({f.build, {f.args[0], f.args[1], number_beside(f, 2, f.tensor(1))}});
  // PyTorch makes a double of an integer exponent.
  const Number exponent = number_of(f, f.args[2]);
  const double e = as_double(exponent);
  const auto* c = std::get_if<std::complex<double>>(&exponent);
  if (c ? *c == 0.0 : e == 0) return f("zeros_like(x1)");
  const Arg factor = c ? Arg(*c) : Arg(e), less = c ? Arg(*c - 1.0) : Arg(e - 1);
  return f("x0 * conj(aten.mul.Scalar(pow(x1, less), factor))", {{"less", less}, {"factor", factor}});
}
/// grad * result * log(self); 0 where the base is 0 and the exponent a real number that is not negative.
Arg pow_backward_exponent(const FormulaCall& f) {
  const std::string_view not_negative =
      is_complex(f.tensor(2).dtype) ? "logical_and(eq(imag(x2), 0), ge(real(x2), 0))" : "ge(x2, 0)";
  const std::vector<std::pair<std::string, Arg>> names = {{"zero", f("aten.zeros.default([], dtype=dtype(x0))")}};
  if (symbolic(f.args[1]))
    return pow_backward_exponent({f.build, {f.args[0], number_beside(f, 1, f.tensor(2)), f.args[2], f.args[3]}});
  if (!f.is_tensor(1)) {
    Number base = number_of(f, f.args[1]);
    // A negative number has a complex logarithm.
    if (is_complex(f.tensor(2).dtype) && !std::holds_alternative<std::complex<double>>(base) && as_double(base) < 0)
      base = std::complex<double>(as_double(base));
    if (auto* c = std::get_if<std::complex<double>>(&base); c && *c != 0.0)
      return f("x0 * conj(aten.mul.Scalar(x3, l))", {{"l", std::log(*c)}});
    if (as_double(base) == 0)
      return f(fmt::format("where({}, zero, x0 * conj(aten.mul.Scalar(x3, -inf)))", not_negative), names);
    return f("x0 * conj(aten.mul.Scalar(x3, l))", {{"l", std::log(as_double(base))}});
  }
  return f(fmt::format("where(logical_and(eq(x1, 0), {}), zero, x0 * conj(x3 * log(x1)))", not_negative), names);
}

/// sgn_backward(self, grad, sgn). Of complex numbers: the part of the gradient across the number; 0 at 0.
Arg sgn_backward(const FormulaCall& f) {
  if (!is_complex(f.tensor(0).dtype)) return f("zeros_like(x1)");
  return f("size = abs(x0); masked_fill(x1 / size - real(x1 / x2) * x2 / size, eq(size, 0), 0)");
}

Arg one_minus(const FormulaCall& f) {
  if (symbolic(f.args[0])) return f("1 - x0");
  Number n = number_of(f, f.args[0]);
  if (auto* c = std::get_if<std::complex<double>>(&n)) return 1.0 - *c;
  return 1 - as_double(n);
}
/// For xlogy.Scalar_Other: xlogy_backward_self(grad, self, other number).
Arg xlogy_backward_self(const FormulaCall& f) {
  if (symbolic(f.args[2]))
    return f("masked_fill(xlogy(x0, t), logical_and(eq(x1, 0.0), le(t, 0.0)), 0.0)",
             {{"t", number_beside(f, 2, f.tensor(1))}});
  if (as_double(number_of(f, f.args[2])) > 0) return f("xlogy(x0, x2)");
  return f("masked_fill(xlogy(x0, x2), eq(x1, 0.0), 0.0)");
}

/// dropout_scale(p, train): the factor by which dropout scales the elements that it keeps.
Arg dropout_scale(const FormulaCall& f) {
  if (!f.flag(1)) return 1.0;
  if (symbolic(f.args[0])) {
    Node* const all = f.build.call("_operator.eq", {f.args[0], 1.0});  // are dropped
    Node* const kept = f.build.call("torch.sym_ite", {all, 1.0, f("1 - x0")});
    return f.build.call("torch.sym_ite", {all, 0.0, f.build.call("_operator.truediv", {1.0, kept})});
  }
  const double p = as_double(number_of(f, f.args[0]));
  return p == 1 ? 0.0 : 1 / (1 - p);
}

/// last_sizes(x, n): the last n sizes.
Arg last_sizes(const FormulaCall& f) {
  const SymList& sizes = f.tensor(0).sizes;
  return f.build.sizes(SymList(sizes.end() - f.integer(1), sizes.end()));
}

}  // namespace

void register_formula_functions(OpTable& t) {
  t.add_formula_functions({
      {"sizes", sizes},
      {"last_sizes", last_sizes},
      {"size", size},
      {"dim", dim_of},
      {"is_floating", has_floating_dtype},
      {"is_complex", has_complex_dtype},
      {"zeros_of", zeros_of},
      {"negated", negated},
      {"sum_to", sum_to},
      {"sum_of", sum_of},
      {"refuse", refuse},
      {"unsupported", refuse_as_unsupported},
      {"dtype", dtype},
      {"in_dtype", in_dtype},
      {"conj", conj},
      {"maybe_multiply", maybe_multiply},
      {"reshape", reshape},
      {"contiguous", contiguous},
      {"where", where},
      {"permute_backwards", permute_backwards},
      {"unsqueeze_to", unsqueeze_to},
      {"slice_backward_wrapper", slice_backward_wrapper},
      {"as_strided_backward", as_strided_backward},
      {"pow_backward", pow_backward},
      {"pow_backward_self", pow_backward_self},
      {"pow_backward_exponent", pow_backward_exponent},
      {"sgn_backward", sgn_backward},
      {"dropout_scale", dropout_scale},
      {"one_minus", one_minus},
      {"xlogy_backward_self", xlogy_backward_self},
  });
}

}  // namespace partita

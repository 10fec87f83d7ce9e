// The inverses of views: they replace the part of a tensor that a view selects (select_scatter), or write that part
// into zeros (the backward functions).
#include <algorithm>

#include "core/ir/arg.h"
#include "core/ops/families/lower_place.h"
#include "core/ops/families/view_parts.h"
#include "core/ops/kernels/broadcast.h"
#include "core/ops/record/guards.h"
#include "core/ops/record/lower_call.h"
#include "core/ops/record/promote.h"
#include "core/ops/record/record.h"
#include "core/ops/record/values.h"

namespace partita {
namespace {
using namespace loops;

/// `base`, with `part` written over every `step`-th index of `dim` from `start` on.
void give_scatter(LowerCall& call, const LoweredTensor& base, const LoweredTensor& part, std::size_t dim, SymExpr start,
                  std::int64_t step) {
  DType dtype = call.out().dtype;
  if (step == 1 && start.is_int() && !part.numel().is(0) && is_picked(call.to, dtype, base.sizes, {&part, 1})) {
    Sizes at(base.dim(), 0);
    at[dim] = start.as_int();
    const auto around = [base](Body& body, const Index& i) { return body.read(base, i); };
    return call.give(picked(call.to, dtype, base.sizes, around, {{part, at}}));
  }
  std::vector<Write> writes{write(base, dtype, [](Body&, const Index& i) { return i; })};
  if (!part.numel().is(0)) writes.push_back(write(part, dtype, dim, start, step));
  call.give(call.to.writes(dtype, base.sizes, std::move(writes)));
}

SymExpr wrap_index(LowerCall& call, SymExpr size) {
  const SymExpr index = call.sym("index");
  return call.test(sym_lt(index, 0), "a place from the end") ? index + size : index;
}

void lower_slice_scatter(LowerCall& call) {
  LoweredTensor self = call.in("self"), src = call.in("src");
  std::size_t dim = call.dim("dim", self.dim());
  give_scatter(call, self, src, dim, slice_place(call, "start", 0, self.sizes[dim]), call.integer("step"));
}

void lower_select_scatter(LowerCall& call) {
  LoweredTensor self = call.in("self");
  std::size_t dim = call.dim("dim", self.dim());
  give_scatter(call, self, unsqueezed(call.to, call.in("src"), dim), dim, wrap_index(call, self.sizes[dim]), 1);
}

void lower_slice_backward(LowerCall& call) {
  LoweredTensor grad = call.in("grad_output"), zero = call.to.constant(grad.dtype, call.out_sizes(), 0);
  std::size_t dim = call.dim("dim", zero.dim());
  const SymExpr size = zero.sizes[dim], start = slice_place(call, "start", 0, size);
  const std::int64_t step = call.integer("step");
  SymExpr length = slice_place(call, "end", size, size) - start;
  if (call.test(sym_lt(length, 0), "an empty slice")) length = 0;
  SymList window = zero.sizes;
  window[dim] = sym_floordiv(length + (step - 1), step);
  window = call.to.plain(window);
  if (grad.sizes != window) fail_unsupported("a gradient that is broadcast");
  give_scatter(call, zero, grad, dim, start, step);
}

void lower_select_backward(LowerCall& call) {
  LoweredTensor grad = call.in("grad_output"), zero = call.to.constant(grad.dtype, call.out_sizes(), 0);
  std::size_t dim = call.dim("dim", zero.dim());
  SymList window = zero.sizes;
  window.erase(window.begin() + static_cast<std::ptrdiff_t>(dim));
  if (grad.sizes != window) fail_unsupported("a gradient that is broadcast");
  give_scatter(call, zero, unsqueezed(call.to, grad, dim), dim, wrap_index(call, zero.sizes[dim]), 1);
}

constexpr const char* select_call = "aten.select.int";
constexpr const char* slice_call = "aten.slice.Tensor";
constexpr const char* select_scatter = "aten.select_scatter.default";
constexpr const char* slice_scatter = "aten.slice_scatter.default";
constexpr const char* diagonal = "aten.diagonal.default";
constexpr const char* as_strided = "aten.as_strided.default";
constexpr const char* unfold = "aten.unfold.default";

/// Sizes of the view of `base` that operator `view` gives with the call's arguments from the third on (after self,
/// src).
SymList symbolic_window_sizes(const FakeCall& call, std::string_view view, const TensorMeta& base) {
  Graph scratch("view");
  Args args = {scratch.placeholder("base", base)};
  args.insert(args.end(), call.args.begin() + 2, call.args.end());
  return unwrap(infer(Op::torch(view), args, {}, call.shapes)).tensor()->sizes;
}

/// The same; nullopt while sizes or arguments are symbolic. The evaluation has values for them.
std::optional<SymList> window_sizes(const FakeCall& call, std::string_view view, const TensorMeta& base) {
  if (!concrete(base.sizes) || !concrete(base.strides)) return std::nullopt;
  bool symbolic = false;
  for (std::size_t i = 2; i < call.args.size(); ++i) for_each_node(call.args[i], [&](Node*) { symbolic = true; });
  if (symbolic) return std::nullopt;
  return symbolic_window_sizes(call, view, base);
}

/// Whether the sizes are equal; true as long as they are not known.
bool fit(const std::optional<SymList>& window, const SymList& sizes) {
  return !window || !concrete(sizes) || *window == sizes;
}

/// A copy of self (clone_preserve_strides) in which the view's part is replaced by src.
template <const char* const& view>
Meta fake_scatter(FakeCall& call) {
  const TensorMeta& self = call.tensor("self");
  if (!fit(window_sizes(call, view, self), call.tensor("src").sizes))
    fail(call.schema.name + ": expected src to have a size equal to the view of self");
  TensorMeta out = view_meta(self);
  out.storage_id = -1;
  out.offset = 0;
  out.strides = cloned_strides(call, self);
  return out;
}

/// Evaluates a view operator on `base` with the call's arguments from the third on (after self, src).
Tensor show(const EvalCall& call, std::string_view view, Tensor base) {
  std::vector<Value> args = {std::move(base)};
  args.insert(args.end(), call.args.begin() + 2, call.args.end());
  return *unwrap(evaluate(Op::torch(view), std::move(args), {})).get<Tensor>();
}

template <const char* const& view>
Value eval_scatter(EvalCall& call) {
  Tensor out = empty_of(call, fake_scatter<view>);
  out.copy_from(call.tensor("self"));
  show(call, view, out).copy_from(call.tensor("src"));
  return out;
}

/// Zeros, with the gradient written to the view's part. The gradient broadcasts to that part, as with copy_.
template <const char* const& view>
Meta fake_backward(FakeCall& call) {
  const TensorMeta& grad = call.tensor(call.schema.args[0].name);
  TensorMeta out = TensorMeta::contiguous(grad.dtype, call.syms("input_sizes"), grad.device);
  const auto window = window_sizes(call, view, out);
  if (!window || !concrete(grad.sizes)) return out;
  const SymList both[] = {*window, grad.sizes};
  if (broadcast(call, both) != *window) fail(call.schema.name + ": the gradient is larger than the view");
  return out;
}

template <const char* const& view>
Value eval_backward(EvalCall& call) {
  const Tensor& grad = call.tensor(call.schema.args[0].name);
  Tensor out = unwrap(Tensor::zeros(grad.dtype, call.integers("input_sizes")));
  Tensor window = show(call, view, out);
  window.copy_from(kernels::expand_load(grad, window.sizes, grad.dtype));
  return out;
}

/// The gradient must have exactly the sizes of the unfolded input, since windows are added up.
Meta fake_unfold_backward(FakeCall& call) {
  const TensorMeta& grad = call.tensor("grad_in");
  TensorMeta out = TensorMeta::contiguous(grad.dtype, call.syms("input_sizes"), grad.device);
  if (!fit(window_sizes(call, unfold, out), grad.sizes))
    fail("unfold_backward: grad_in does not have the sizes of the unfolded input");
  return out;
}

/// Windows of unfold overlap, so their gradients are added. Each element adds them in the order of the windows (from
/// the last position within a window to the first) and rounds after each.
Value eval_unfold_backward(EvalCall& call) {
  const Tensor& grad = call.tensor("grad_in");
  Tensor out = unwrap(Tensor::zeros(grad.dtype, call.integers("input_sizes")));
  std::int64_t size = grad.sizes.back();
  for (std::int64_t i = size; i-- > 0;) {
    auto call_op = [](std::string_view op, std::vector<Value> args) {
      return *unwrap(evaluate(Op::torch(op), std::move(args), {})).get<Tensor>();
    };
    Value last = std::int64_t{-1}, at = i;
    Tensor window = call_op("aten.select.int", {show(call, unfold, out), last, at});
    Tensor part = call_op("aten.select.int", {grad, last, at});
    window.copy_from(call_op("aten.add.Tensor", {window, part}));
  }
  return out;
}

/// Decomposes a view's backward function: scatters the gradient, expanded to the view's sizes, into zeros.
template <const char* const& view, const char* const& scatter>
Arg backward_as_scatter(DecomposeCall& call) {
  const TensorMeta& grad = call.tensor("grad_output");
  Node* zeros = call.build.call(
      "aten.full.default", {call.arg("input_sizes"), 0},
      {{"dtype", grad.dtype}, {"layout", Layout::Strided}, {"device", grad.device}, {"pin_memory", false}});
  Args args = {zeros, call.arg("grad_output")};
  if (const SymList window = symbolic_window_sizes(call, view, Builder::tensor(zeros));
      window != grad.sizes && !has_unbacked(call, window))
    args[1] = call.build.call("aten.expand.default", {args[1], call.build.sizes(window)});
  args.insert(args.end(), call.args.begin() + 2, call.args.end());
  return call.build.call(scatter, std::move(args));
}

}  // namespace

SymList cloned_strides(const FakeCall& call, const TensorMeta& self) {
  for (std::size_t d = 0; d < self.sizes.size(); ++d)
    if (guard_or(call, sym_eq(self.strides[d], 0), false, "internal overlap") &&
        call.test(sym_lt(1, self.sizes[d]), "internal overlap"))
      return strides_like(call, self, self.sizes, MemoryFormat::Preserve);
  return self.strides;
}

void register_scatter_view(OpTable& t) {
  t.default_family = Family::Index;
  t.add("aten.select_scatter.default", fake_scatter<select_call>, eval_scatter<select_call>,
        {{"self", "select_scatter(grad, zeros_like(src), dim, index)"}, {"src", "select(grad, dim, index)"}},
        {.lower = lower_select_scatter, .from_any_device = "src"});
  t.add("aten.slice_scatter.default", fake_scatter<slice_call>, eval_scatter<slice_call>,
        {{"self", "slice_scatter(grad, zeros_like(src), dim, start, end, step)"},
         {"src", "slice(grad, dim, start, end, step)"}},
        {.lower = lower_slice_scatter, .from_any_device = "src"});
  t.add("aten.diagonal_scatter.default", fake_scatter<diagonal>, eval_scatter<diagonal>,
        {{"self", "diagonal_scatter(grad, zeros_like(src), offset, dim1, dim2)"},
         {"src", "diagonal(grad, offset, dim1, dim2)"}},
        {.from_any_device = "src"});
  t.add("aten.as_strided_scatter.default",
        {.fake = fake_scatter<as_strided>,
         .eval = eval_scatter<as_strided>,
         .autograd =
             {// As in PyTorch, the gradient of self is that of the part that was written, not
              // that of the rest.
              .derivative = {{"self",
                              "as_strided_scatter(new_zeros(grad, sizes(self)), "
                              "as_strided(contiguous(grad), size, stride, "
                              "storage_offset), size, stride, storage_offset)"},
                             {"src", "as_strided(contiguous(grad), size, stride, storage_offset)"}}},
         .from_any_device = "src"});
  t.add("aten.select_backward.default", fake_backward<select_call>, eval_backward<select_call>,
        {{"grad_output", "select(grad, dim, index)"}},
        {.compile_decompose = backward_as_scatter<select_call, select_scatter>, .lower = lower_select_backward});
  t.add("aten.slice_backward.default", fake_backward<slice_call>, eval_backward<slice_call>,
        {{"grad_output", "slice(grad, dim, start, end, step)"}},
        {.compile_decompose = backward_as_scatter<slice_call, slice_scatter>, .lower = lower_slice_backward});
  t.add("aten.diagonal_backward.default", fake_backward<diagonal>, eval_backward<diagonal>,
        {{"grad_output", "diagonal(grad, offset, dim1, dim2)"}});
  t.add("aten.unfold_backward.default", fake_unfold_backward, eval_unfold_backward,
        {{"grad_in", "unfold(grad, dim, size, step)"}});
}

}  // namespace partita

// The inverses of views: a tensor with what a view of it shows replaced (select_scatter), or zeros around it (the
// backward functions).
#include "core/ops/families/view_parts.h"
#include "core/ops/lowerings.h"
#include "core/ops/promote.h"
#include "core/ops/values.h"

namespace partita {
namespace {

/// clone_preserve_strides: the geometry of self, or where elements share memory (has_internal_overlap), a dense clone's.
Meta fake_scatter(FakeCall& call) {
  const TensorMeta& self = call.tensor("self");
  TensorMeta out = view_meta(self);
  out.storage_id = -1;
  out.offset = 0;
  for (std::size_t d = 0; d < self.sizes.size(); ++d)
    if (self.strides[d].is(0) && call.test(sym_lt(1, self.sizes[d]), "internal overlap")) {
      out.strides = strides_like(call, self, self.sizes, MemoryFormat::Preserve);
      break;
    }
  return out;
}

/// Evaluates a view operator on `base` with the call's arguments from the third on (self, src, ...).
Tensor show(const EvalCall& call, std::string_view view, Tensor base) {
  std::vector<Value> args = {std::move(base)};
  args.insert(args.end(), call.args.begin() + 2, call.args.end());
  return *unwrap(evaluate(Op::torch(view), std::move(args), {})).get<Tensor>();
}

template <const char* const& view>
Value eval_scatter(EvalCall& call) {
  CallOfValues metas(call);
  Tensor out = empty_of(*fake_scatter(metas.call).tensor());
  out.copy_from(call.tensor("self"));
  Tensor window = show(call, view, out);
  const Tensor& src = call.tensor("src");
  if (window.sizes != src.sizes) fail(call.schema.name + ": expected src to have a size equal to the view of self");
  window.copy_from(src);
  return out;
}

Meta fake_backward(FakeCall& call) {
  const TensorMeta& grad = call.tensor(call.schema.args[0].name);
  return TensorMeta::contiguous(grad.dtype, call.syms("input_sizes"), grad.device);
}

template <const char* const& view>
Value eval_backward(EvalCall& call) {
  const Tensor& grad = call.tensor(call.schema.args[0].name);
  Tensor out = unwrap(Tensor::zeros(grad.dtype, call.integers("input_sizes")));
  show(call, view, out).copy_from(grad);
  return out;
}

/// Windows of unfold overlap: their gradients add up.
Value eval_unfold_backward(EvalCall& call) {
  const Tensor& grad = call.tensor("grad_in");
  Tensor out = unwrap(Tensor::zeros(grad.dtype, call.integers("input_sizes")));
  std::int64_t size = grad.sizes.back();
  for (std::int64_t i = 0; i < size; ++i) {
    auto call_op = [](std::string_view op, std::vector<Value> args) {
      return *unwrap(evaluate(Op::torch(op), std::move(args), {})).get<Tensor>();
    };
    Value last = std::int64_t{-1}, at = i;
    Tensor window = call_op("aten.select.int", {show(call, "aten.unfold.default", out), last, at});
    Tensor part = call_op("aten.select.int", {grad, last, at});
    window.copy_from(call_op("aten.add.Tensor", {window, part}));
  }
  return out;
}

Arg slice_backward_as_scatter(DecomposeCall& call) {
  const TensorMeta& grad = call.tensor("grad_output");
  Node* zeros = call.build.call(
      "aten.full.default", {call.arg("input_sizes"), 0},
      {{"dtype", grad.dtype}, {"layout", Layout::Strided}, {"device", grad.device}, {"pin_memory", false}});
  return call.build.call("aten.slice_scatter.default", {zeros, call.arg("grad_output"), call.arg("dim"),
                                                        call.arg("start"), call.arg("end"), call.arg("step")});
}

Arg select_backward_as_scatter(DecomposeCall& call) {
  const TensorMeta& grad = call.tensor("grad_output");
  Node* zeros = call.build.call(
      "aten.full.default", {call.arg("input_sizes"), 0},
      {{"dtype", grad.dtype}, {"layout", Layout::Strided}, {"device", grad.device}, {"pin_memory", false}});
  return call.build.call("aten.select_scatter.default",
                         {zeros, call.arg("grad_output"), call.arg("dim"), call.arg("index")});
}

constexpr const char* select = "aten.select.int";
constexpr const char* slice = "aten.slice.Tensor";
constexpr const char* diagonal = "aten.diagonal.default";
constexpr const char* as_strided = "aten.as_strided.default";

}  // namespace

void add_scatters(OpTable& t) {
  t.add("aten.select_scatter.default", {.fake = fake_scatter,
                                        .eval = eval_scatter<select>,
                                        .derivative = {{"self", "select_scatter(grad, zeros_like(src), dim, index)"},
                                                       {"src", "select(grad, dim, index)"}},
                                        .lower = loops::lower_select_scatter});
  t.add("aten.slice_scatter.default",
        {.fake = fake_scatter,
         .eval = eval_scatter<slice>,
         .derivative = {{"self", "slice_scatter(grad, zeros_like(src), dim, start, end, step)"},
                        {"src", "slice(grad, dim, start, end, step)"}},
         .lower = loops::lower_slice_scatter});
  t.add("aten.diagonal_scatter.default",
        {.fake = fake_scatter,
         .eval = eval_scatter<diagonal>,
         .derivative = {{"self", "diagonal_scatter(grad, zeros_like(src), offset, dim1, dim2)"},
                        {"src", "diagonal(grad, offset, dim1, dim2)"}}});
  t.add("aten.as_strided_scatter.default",
        {.fake = fake_scatter,
         .eval = eval_scatter<as_strided>,
         // As PyTorch has it: what flows into self is the gradient of the part that was written, not of the rest.
         .derivative = {{"self",
                         "as_strided_scatter(new_zeros(grad, sizes(self)), as_strided(contiguous(grad), size, stride, "
                         "storage_offset), size, stride, storage_offset)"},
                        {"src", "as_strided(contiguous(grad), size, stride, storage_offset)"}}});
  t.add("aten.select_backward.default", {.fake = fake_backward,
                                         .eval = eval_backward<select>,
                                         .compile_decompose = select_backward_as_scatter,
                                         .derivative = {{"grad_output", "select(grad, dim, index)"}},
                                         .lower = loops::lower_select_backward});
  t.add("aten.slice_backward.default", {.fake = fake_backward,
                                        .eval = eval_backward<slice>,
                                        .compile_decompose = slice_backward_as_scatter,
                                        .derivative = {{"grad_output", "slice(grad, dim, start, end, step)"}},
                                        .lower = loops::lower_slice_backward});
  t.add("aten.diagonal_backward.default", {.fake = fake_backward,
                                           .eval = eval_backward<diagonal>,
                                           .derivative = {{"grad_output", "diagonal(grad, offset, dim1, dim2)"}}});
  t.add("aten.unfold_backward.default", {.fake = fake_backward,
                                         .eval = eval_unfold_backward,
                                         .derivative = {{"grad_in", "unfold(grad, dim, size, step)"}}});
}

}  // namespace partita

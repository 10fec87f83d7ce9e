// Composites that decompose to views (CompositeImplicitAutograd); they decompose before autograd.
#include <fmt/format.h>

#include "core/ops/facts/view_strides.h"
#include "core/ops/facts/views.h"
#include "core/ops/families/view_parts.h"
#include "core/ops/record/gradients.h"
#include "core/ops/record/guards.h"
#include "core/ops/record/layout.h"
#include "core/ops/record/operator_program.h"
#include "core/ops/record/promote.h"
#include "core/ops/record/record.h"
#include "core/ops/record/values.h"

namespace partita {
namespace {

Meta fake_reshape(FakeCall& call) {
  TensorMeta out = view_meta(call.tensor("self"));
  SymList sizes = infer_size(call, call.syms(call.schema.args[1].name), out.numel());
  auto view = view_geometry(call, out.sizes, out.strides, sizes);
  if (!view) return TensorMeta::contiguous(out.dtype, std::move(sizes), out.device);
  out.sizes = std::move(view->sizes);
  out.strides = std::move(view->strides);
  return out;
}

Value eval_reshape(EvalCall& call) {
  CallOfValues metas(call);
  const Tensor& self = call.tensor("self");
  SymList sizes = infer_size(metas.call, metas.call.syms(call.schema.args[1].name), self.numel());
  TensorMeta out = meta_of(self);
  auto view = view_geometry(metas.call, out.sizes, out.strides, sizes);
  Tensor base = view ? self : unwrap(self.clone());
  out.strides = view ? view->strides : contiguous_strides(sizes);
  out.sizes = std::move(sizes);
  out.offset = base.offset;
  return view_of(base, out);
}

Arg reshape(Builder& build, const Arg& self, const SymList& sizes) {
  return build.expression("reshape(x, size)", {{"x", self}, {"size", build.sizes(sizes)}});
}

Arg decompose_reshape(DecomposeCall& call) {
  return call.build.expression("reshape(x, size)",
                               {{"x", call.arg("self")}, {"size", call.arg(call.schema.args[1].name)}});
}

Arg flatten(DecomposeCall& call) {
  const TensorMeta& self = call.tensor("self");
  std::size_t first = wrap_dim(call.integer("start_dim"), self.dim()),
              last = wrap_dim(call.integer("end_dim"), self.dim());
  if (first > last) fail("flatten() has invalid args: start_dim cannot come after end_dim");
  if (self.sizes.empty()) return reshape(call.build, call.arg("self"), {1});
  if (first == last) return call.arg("self");
  SymList sizes(self.sizes.begin(), self.sizes.begin() + static_cast<std::ptrdiff_t>(first));
  SymExpr merged = 1;
  for (std::size_t d = first; d <= last; ++d) merged = merged * self.sizes[d];
  sizes.push_back(merged);
  sizes.insert(sizes.end(), self.sizes.begin() + static_cast<std::ptrdiff_t>(last) + 1, self.sizes.end());
  return reshape(call.build, call.arg("self"), sizes);
}

Arg unflatten(DecomposeCall& call) {
  const TensorMeta& self = call.tensor("self");
  std::size_t d = wrap_dim(call.integer("dim"), self.dim());
  if (self.sizes.empty()) fail("unflatten: the tensor has no dimensions");
  if (call.syms("sizes").empty()) fail("unflatten: sizes must be non-empty");
  SymList parts = infer_size(call, call.syms("sizes"), self.sizes[d]), sizes = self.sizes;
  sizes.erase(sizes.begin() + static_cast<std::ptrdiff_t>(d));
  sizes.insert(sizes.begin() + static_cast<std::ptrdiff_t>(d), parts.begin(), parts.end());
  return call.build.call("aten.view.default", {call.arg("self"), call.build.sizes(sizes)});
}

/// Where narrow() begins in its dimension. A call that is taken apart asserts what is not known (`checked`).
SymExpr narrow_start(const auto& call) {
  SymExpr start = call.sym("start");
  const SymExpr length = call.sym("length");
  const TensorMeta& self = call.tensor("self");
  if (self.sizes.empty()) fail("narrow() cannot be applied to a 0-dim tensor.");
  const SymExpr size = self.sizes[wrap_dim(call.integer("dim"), self.dim())], from_end = sym_lt(start, 0);
  if (const auto known = guard_if_known(call, from_end, "narrow"))
    start = *known ? start + size : start;
  else
    start = sym_call("Where", {from_end, start + size, start});
  if (!checked(call, sym_le(0, start), "narrow"))
    fail(fmt::format("start out of range (got {})", call.sym("start").str()));
  if (!checked(call, sym_le(0, length), "narrow")) fail("narrow(): length must be non-negative.");
  if (!checked(call, sym_le(start + length, size), "narrow"))
    fail(fmt::format("start ({}) + length ({}) exceeds dimension size ({}).", start.str(), length.str(), size.str()));
  return start;
}

Arg narrow(DecomposeCall& call) {
  const SymExpr start = narrow_start(call);
  return call.build.call("aten.slice.Tensor", {call.arg("self"), call.arg("dim"), call.build.size(start),
                                               call.build.size(start + call.sym("length"))});
}

Meta fake_narrow_copy(FakeCall& call) {
  const TensorMeta& self = call.tensor("self");
  narrow_start(call);
  SymList sizes = self.sizes;
  sizes[wrap_dim(call.integer("dim"), self.dim())] = call.sym("length");
  return new_like(self, sizes);
}

Arg decompose_narrow_copy(DecomposeCall& call) {
  return build_program(call, "clone(part, memory_format=contiguous_format)", {{"part", narrow(call)}});
}

std::vector<Node*> grad_narrow_copy(GradCall& call) {
  Builder& b = call.build;
  const SymExpr start = narrow_start(call);
  return gradient_of_first(
      call, b.call("aten.slice_backward.default", {call.grads[0], b.sizes(call.tensor("self").sizes), call.arg("dim"),
                                                   b.size(start), b.size(start + call.sym("length")), 1}));
}

Arg chunk(DecomposeCall& call) {
  const TensorMeta& self = call.tensor("self");
  std::int64_t chunks = call.integer("chunks");
  if (self.sizes.empty()) fail("chunk expects at least a 1-dimensional tensor");
  if (chunks <= 0) fail(fmt::format("chunk expects `chunks` to be greater than 0, got: {}", chunks));
  SymExpr size = self.sizes[wrap_dim(call.integer("dim"), self.dim())];
  SymExpr each = sym_floordiv(size + chunks - 1, chunks);
  if (size.is(0)) {
    check_result_count(call, chunks);
    std::vector<Arg> lengths(static_cast<std::size_t>(chunks), Arg(0));
    return call.build.call("aten.split_with_sizes.default", {call.arg("self"), Arg::list(lengths), call.arg("dim")});
  }
  return call.build.call(call.schema.base == "aten.chunk" ? "aten.split.Tensor" : "aten.unsafe_split.Tensor",
                         {call.arg("self"), call.build.size(each), call.arg("dim")});
}

Arg tensor_split(DecomposeCall& call) {
  const TensorMeta& self = call.tensor("self");
  if (self.sizes.empty()) fail("tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims");
  std::size_t d = wrap_dim(call.integer("dim"), self.dim());
  SymExpr size = self.sizes[d];
  SymList starts = {0};
  if (call.schema.name.ends_with(".sections")) {
    std::int64_t n = call.integer("sections");
    if (n <= 0) fail(fmt::format("number of sections must be larger than 0, got {}", n));
    check_result_count(call, n);
    SymExpr each = sym_floordiv(size, n), more = sym_mod(size, n);
    for (std::int64_t i = 1; i < n; ++i) starts.push_back(each * i + sym_min(more, i));
  } else {
    for (SymExpr e : call.syms("indices")) starts.push_back(e);
  }
  std::vector<Arg> out;
  for (std::size_t i = 0; i < starts.size(); ++i) {
    SymExpr end = i + 1 < starts.size() ? starts[i + 1] : size;
    out.push_back(call.build.call("aten.slice.Tensor", {call.arg("self"), static_cast<std::int64_t>(d),
                                                        call.build.size(starts[i]), call.build.size(end)}));
  }
  return Arg::list(std::move(out));
}

/// narrow and tensor_split with a tensor argument: the number of results, or the elements they select, depend on its
/// values.
Value eval_narrow_tensor(EvalCall& c) {
  const Tensor& start = c.tensor("start");
  if (!start.sizes.empty() || !is_integral(start.dtype)) fail("start must be an 0-dim integral Tensor.");
  const Value at = *unwrap(start.to(DType::Int64)).as<std::int64_t>();
  return unwrap(evaluate(Op::torch("aten.narrow.default"), {c.arg("self"), c.arg("dim"), at, c.arg("length")}, {}));
}
Value eval_tensor_split(EvalCall& c) {
  const Tensor& where = c.tensor("tensor_indices_or_sections");
  if (where.dtype != DType::Int64)
    fail(fmt::format("tensor_split expected tensor_indices_or_sections to have dtype of long, but got {}",
                     torch_name(where.dtype)));
  if (where.dim() > 1)
    fail(
        fmt::format("tensor_split expected tensor_indices_or_sections to be a zero-dimensional or one-dimensional "
                    "tensor, but got a tensor with {} dims",
                    where.dim()));
  ValueList numbers;
  const Tensor dense = unwrap(where.contiguous());
  for (std::int64_t i : steps(dense.numel())) numbers.emplace_back(dense.as<std::int64_t>()[i]);
  const bool sections = where.sizes.empty();
  const Op* op = Op::torch(sections ? "aten.tensor_split.sections" : "aten.tensor_split.indices");
  return unwrap(evaluate(op, {c.arg("self"), sections ? numbers[0] : Value(numbers), c.arg("dim")}, {}));
}

/// For autograd the number is read from the tensor by an operator of its own.
Arg narrow_by_tensor(DecomposeCall& c) {
  Builder& b = c.build;
  Node* item = b.call("aten._local_scalar_dense.default", {c.arg("start")});
  const SymExpr* start = item->meta.sym();
  if (!start) fail("start must be an 0-dim integral Tensor.");
  return b.call("aten.slice.Tensor", {c.arg("self"), c.arg("dim"), item, b.size(*start + c.sym("length"))});
}

/// movedim: the dimensions in `source` move to `destination`; the others keep their order.
Arg move_dims(DecomposeCall& call) {
  const TensorMeta& self = call.tensor("self");
  Sizes source = call.integers("source"), destination = call.integers("destination");
  if (source.size() != destination.size())
    fail(fmt::format(
        "movedim: Invalid source or destination dims: source ({} dims) should contain the same number of dims as "
        "destination ({} dims)",
        source.size(), destination.size()));
  std::vector<std::int64_t> order(self.dim(), -1);
  std::vector<bool> used(self.dim(), false);
  if (self.sizes.empty()) return call.build.call("aten.alias.default", {call.arg("self")});
  for (std::size_t i = 0; i < source.size(); ++i) {
    std::size_t from = wrap_dim(source[i], self.dim()), to = wrap_dim(destination[i], self.dim());
    if (used[from] || order[to] >= 0) fail("movedim: repeated dim in `source` or `destination`");
    order[to] = static_cast<std::int64_t>(from);
    used[from] = true;
  }
  std::int64_t next = 0;
  for (std::int64_t& slot : order) {
    if (slot >= 0) continue;
    while (used[static_cast<std::size_t>(next)]) ++next;
    slot = next++;
  }
  return call.build.call("aten.permute.default",
                         {call.arg("self"), Arg::list(std::vector<Arg>(order.begin(), order.end()))});
}

Arg reverse_dims(DecomposeCall& call) {
  std::vector<Arg> dims;
  for (std::size_t d = call.tensor("self").dim(); d-- > 0;) dims.push_back(static_cast<std::int64_t>(d));
  return call.build.call("aten.permute.default", {call.arg("self"), Arg::list(std::move(dims))});
}

}  // namespace

void register_view_composite(OpTable& t) {
  t.default_family = Family::View;
  t.add("aten.reshape.default", fake_reshape, eval_reshape, {},
        {.decompose = decompose_reshape,
         .lower = loops::lower_reshape,
         .cost = {.recomputable = true},
         .views = {.unchanged_if = any_arguments}});
  t.add("aten._reshape_copy.default", {.program = "view(clone(self, memory_format=contiguous_format), size)"});
  t.add("aten.flatten.using_ints", {.decompose = flatten});
  t.add("aten.unflatten.int", {.decompose = unflatten});
  t.add("aten.narrow.default", {.decompose = narrow});
  t.add("aten.narrow_copy.default", {.fake = fake_narrow_copy,
                                     .compile_decompose = decompose_narrow_copy,
                                     .kept = Kept::CoreAten,
                                     .autograd = {.gradient = grad_narrow_copy}});
  t.add("aten.chunk.default", {.decompose = chunk});
  t.add("aten.unsafe_chunk.default", {.decompose = chunk});
  t.add("aten.movedim.int", {.decompose = move_dims});
  t.add("aten.movedim.intlist", {.decompose = move_dims});
  t.add("aten.moveaxis.int", {.decompose = move_dims});
  t.add("aten.moveaxis.intlist", {.decompose = move_dims});
  t.add("aten.numpy_T.default", {.decompose = reverse_dims});
  t.add("aten.tensor_split.sections", {.decompose = tensor_split});
  t.add("aten.tensor_split.indices", {.decompose = tensor_split});
  const CompositeRow programs[] = {
      {"aten.ravel.default", "aten.view.default(aten.contiguous.default(self), [-1])"},
      {"aten.swapaxes.default", "transpose(self, axis0, axis1)"},
      {"aten.swapdims.default", "transpose(self, dim0, dim1)"},
      {"aten.expand_as.default", "expand(self, sizes(other))"},
      {"aten.view_as.default", "view(self, sizes(other))"},
      {"aten.reshape_as.default", "reshape(self, sizes(other))"},
      {"aten.broadcast_to.default", "expand(self, size)"},
      {"aten.split.sizes", "split_with_sizes(self, split_size, dim)"},
      {"aten.positive.default", "self"},
      {"aten.resolve_conj.default", "self"},
      {"aten.resolve_neg.default", "self"},
      {"aten.mT.default",
       "refuse('tensor.mT is only supported on matrices or batches of matrices') if dim(self) < 2 else transpose(self, "
       "-2, -1)"},
      {"aten.adjoint.default",
       "refuse('tensor.mT is only supported on matrices or batches of matrices') if dim(self) < 2 else "
       "conj(transpose(self, -2, -1))"},
      {"aten.mH.default",
       "refuse('tensor.mT is only supported on matrices or batches of matrices') if dim(self) < 2 else "
       "conj(transpose(self, -2, -1))"},
  };
  add_composites(t, programs);
  t.add("aten.conj.default", {.program = "conj(self)", .views = {.element_change = ElementChange::Conjugate}});
  t.add("aten.narrow.Tensor", {.eval = eval_narrow_tensor, .decompose = narrow_by_tensor});
  t.add("aten.tensor_split.tensor_indices_or_sections", {.eval = eval_tensor_split});
}

}  // namespace partita

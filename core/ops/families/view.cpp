// Views: results that alias their first argument. The fake computes sizes and strides, and the evaluation takes them
// over (alias_of).
#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "core/base/config.h"
#include "core/base/memory.h"
#include "core/ops/facts/view_strides.h"
#include "core/ops/facts/views.h"
#include "core/ops/families/composites.h"
#include "core/ops/families/view_inverse.h"
#include "core/ops/families/view_parts.h"
#include "core/ops/record/guards.h"
#include "core/ops/record/promote.h"
#include "core/ops/record/record.h"
#include "core/ops/record/values.h"

namespace partita {

TensorMeta view_meta(const TensorMeta& base) {
  TensorMeta out = base;
  out.requires_grad = false;
  return out;
}

SliceRange slice_range(const FakeCall& call, SymExpr size) {
  SymExpr step = call.sym("step");
  if (step.is_int() && step.as_int() <= 0) fail("slice step must be positive");
  bool decided = true;  // false when a bound is known only at run time and may lie on either side of the size
  auto less = [&](SymExpr a, SymExpr b) {
    if (a == b) return false;
    SymExpr condition = sym_lt(a, b);
    decided = decided && (call.shapes.statically(condition) || call.shapes.hint(condition));
    return guard_or(call, condition, false, "a slice's bounds");
  };
  auto wrapped = [&](SymExpr v) {
    if (v.is_int() && v.as_int() >= INT64_MAX) return size;
    if (less(v, 0)) v = v + size;
    if (less(v, 0)) return SymExpr(0);
    return less(size, v) ? size : v;
  };
  SymExpr start = call.has("start") ? wrapped(call.sym("start")) : SymExpr(0);
  SymExpr end = call.has("end") ? wrapped(call.sym("end")) : size;
  if (less(end, start)) end = start;
  if (!decided) return {start, call.shapes.new_unbacked(), step};
  return {start, sym_floordiv(end - start + step - 1, step), step};
}

void check_result_count(const FakeCall& call, std::int64_t count) {
  if (count > 0 && static_cast<std::uint64_t>(count) > config().graph_limit)
    fail(fmt::format("{}: {} results are {}", call.schema.base, count, too_many_nodes()));
}

namespace {

/// The number of results, which a guard fixes where sizes tell it.
std::int64_t result_count(const FakeCall& call, SymExpr count, std::string_view what) {
  const auto number = guarded_number(call, count, "the number of results");
  if (!number) fail_unsupported(fmt::format("{} into a number of pieces known only at run time", what));
  check_result_count(call, *number);
  return *number;
}

Meta fake_alias(FakeCall& call) {
  return view_meta(call.tensor("self"));
}

Meta fake_view(FakeCall& call) {
  TensorMeta out = view_meta(call.tensor("self"));
  SymList sizes = infer_size(call, call.syms("size"), out.numel());
  auto view = view_geometry(call, out.sizes, out.strides, sizes);
  if (!view)
    fail(
        "view size is not compatible with input tensor's size and stride (at least one dimension spans across two "
        "contiguous subspaces). Use .reshape(...) instead.");
  out.sizes = std::move(view->sizes);
  out.strides = std::move(view->strides);
  return out;
}

/// Takes what reshape takes.
Meta fake_view_copy(FakeCall& call) {
  const TensorMeta& given = call.tensor("self");
  const TensorMeta self = TensorMeta::contiguous(given.dtype, given.sizes, given.device);
  const SymList sizes = infer_size(call, call.syms("size"), self.numel());
  const auto view = view_geometry(call, self.sizes, self.strides, sizes);
  return TensorMeta::contiguous(self.dtype, view ? view->sizes : sizes, self.device);
}

Meta fake_view_dtype(FakeCall& call) {
  TensorMeta out = view_meta(call.tensor("self"));
  DType to = *call.dtype("dtype");
  auto from_bytes = static_cast<std::int64_t>(itemsize(out.dtype)), to_bytes = static_cast<std::int64_t>(itemsize(to));
  out.dtype = to;
  if (from_bytes == to_bytes) return out;
  if (out.sizes.empty()) fail("self.dim() cannot be 0 to view a tensor as a dtype of another element size");
  // The stride of an empty tensor is not checked: a compiled graph may have removed the copy that would have made it 1.
  if (!out.strides.back().is(1) && !out.numel().is(0))
    fail("self.stride(-1) must be 1 to view a tensor as a dtype of another element size");
  if (to_bytes > from_bytes) {
    const std::int64_t ratio = to_bytes / from_bytes;
    const auto check = [&](SymExpr e, const std::string& what) {
      if (e.is_int() && e.as_int() % ratio != 0)
        fail(fmt::format("{} must be divisible by {} to view a tensor as a dtype of another element size, but got {}",
                         what, ratio, e.as_int()));
    };
    check(out.sizes.back(), "self.size(-1)");
    check(out.offset, "self.storage_offset()");
    for (std::size_t d = 0; d + 1 < out.strides.size(); ++d)
      if (!out.numel().is(0)) check(out.strides[d], fmt::format("self.stride({})", d));
  }
  auto rescale = [&](SymExpr e) {
    return from_bytes > to_bytes ? e * (from_bytes / to_bytes) : sym_floordiv(e, to_bytes / from_bytes);
  };
  out.sizes.back() = rescale(out.sizes.back());
  for (std::size_t d = 0; d + 1 < out.strides.size(); ++d) out.strides[d] = rescale(out.strides[d]);
  out.offset = rescale(out.offset);
  return out;
}

Meta fake_expand(FakeCall& call) {
  TensorMeta out = view_meta(call.tensor("self"));
  SymList size = call.syms("size");
  if (size.size() < out.dim())
    fail(
        fmt::format("expand: the number of sizes provided ({}) must be greater or equal to the number of dimensions in "
                    "the tensor ({})",
                    size.size(), out.dim()));
  std::size_t lead = size.size() - out.dim();
  // For symbolic sizes FakeTensor gives a new dimension of size 1 another stride than for integers.
  const bool by_expressions = !concrete(out.sizes) || !concrete(out.strides) || !concrete(size);
  const SymExpr outer = out.sizes.empty() ? SymExpr(1) : out.sizes[0] * out.strides[0];
  SymList strides(size.size());
  for (std::size_t d = size.size(); d-- > 0;) {
    bool is_new = d < lead;
    SymExpr old = is_new ? SymExpr(1) : out.sizes[d - lead];
    SymExpr stride = !is_new ? out.strides[d - lead] : d + 1 == size.size() ? SymExpr(1) : size[d + 1] * strides[d + 1];
    if (guard_or(call, sym_eq(size[d], -1), false, "a size that is left out")) {
      if (is_new) fail("The expanded size of the tensor (-1) isn't allowed in a leading, non-existing dimension");
      size[d] = old;
    }
    // One element can be repeated also where only values tell how often.
    const SymExpr same = sym_eq(old, size[d]);
    if (old != size[d] && !(old.is(1) ? guard_or(call, same, false, "expand") : checked(call, same, "expand"))) {
      if (!checked(call, sym_eq(old, 1), "expand"))
        fail(fmt::format(
            "The expanded size of the tensor ({}) must match the existing size ({}) at non-singleton dimension {}",
            size[d].str(), old.str(), d));
      stride = 0;
    }
    strides[d] = is_new && by_expressions && size[d].is(1) ? outer : stride;
  }
  out.sizes = std::move(size);
  out.strides = std::move(strides);
  return out;
}

TensorMeta permuted(const TensorMeta& self, std::span<const std::size_t> dims) {
  TensorMeta out = view_meta(self);
  for (std::size_t i = 0; i < dims.size(); ++i) {
    out.sizes[i] = self.sizes[dims[i]];
    out.strides[i] = self.strides[dims[i]];
  }
  return out;
}

Meta fake_permute(FakeCall& call) {
  const TensorMeta& self = call.tensor("self");
  std::vector<std::size_t> dims;
  for (std::int64_t d : call.integers("dims")) dims.push_back(wrap_dim(d, self.dim()));
  std::vector<std::size_t> sorted = dims;
  std::sort(sorted.begin(), sorted.end());
  for (std::size_t i = 0; i < sorted.size() || i < self.dim(); ++i)
    if (i >= sorted.size() || i >= self.dim() || sorted[i] != i)
      fail(
          fmt::format("permute(sparse_coo): number of dimensions in the tensor input does not match the length of the "
                      "desired ordering of dimensions i.e. input.dim() = {} is not equal to len(dims) = {}",
                      self.dim(), dims.size()));
  return permuted(self, dims);
}

TensorMeta transposed(const TensorMeta& self, std::size_t a, std::size_t b) {
  TensorMeta out = view_meta(self);
  if (out.sizes.empty()) return out;
  std::swap(out.sizes[a], out.sizes[b]);
  std::swap(out.strides[a], out.strides[b]);
  return out;
}

Meta fake_transpose(FakeCall& call) {
  const TensorMeta& self = call.tensor("self");
  return transposed(self, wrap_dim(call.integer("dim0"), self.dim()), wrap_dim(call.integer("dim1"), self.dim()));
}

Meta fake_t(FakeCall& call) {
  const TensorMeta& self = call.tensor("self");
  if (self.dim() > 2) fail(fmt::format("t() expects a tensor with <= 2 dimensions, but self is {}D", self.dim()));
  return transposed(self, 0, self.dim() == 2 ? 1 : 0);
}

Meta fake_unsqueeze(FakeCall& call) {
  TensorMeta out = view_meta(call.tensor("self"));
  std::size_t d = wrap_dim(call.integer("dim"), out.dim() + 1);
  SymExpr stride = d < out.dim() ? out.sizes[d] * out.strides[d] : SymExpr(1);
  out.sizes.insert(out.sizes.begin() + static_cast<std::ptrdiff_t>(d), 1);
  out.strides.insert(out.strides.begin() + static_cast<std::ptrdiff_t>(d), stride);
  return out;
}

TensorMeta squeezed(const FakeCall& call, const TensorMeta& self, const std::vector<bool>& asked) {
  TensorMeta out = view_meta(self);
  out.sizes.clear();
  out.strides.clear();
  for (std::size_t d = 0; d < self.dim(); ++d) {
    if (asked[d] && (self.sizes[d].is(1) || call.test(sym_eq(self.sizes[d], 1), "squeeze"))) continue;
    out.sizes.push_back(self.sizes[d]);
    out.strides.push_back(self.strides[d]);
  }
  return out;
}

Meta fake_squeeze(FakeCall& call) {
  const TensorMeta& self = call.tensor("self");
  return squeezed(call, self, std::vector<bool>(self.dim(), true));
}

Meta fake_squeeze_dims(FakeCall& call) {
  const TensorMeta& self = call.tensor("self");
  std::vector<bool> asked(std::max<std::size_t>(self.dim(), 1), false);
  for (std::int64_t d : call.integers("dim")) asked[wrap_dim(d, self.dim())] = true;
  return squeezed(call, self, asked);
}

Meta fake_slice(FakeCall& call) {
  TensorMeta out = view_meta(call.tensor("self"));
  if (out.sizes.empty()) fail("slice() cannot be applied to a 0-dim tensor.");
  std::size_t d = wrap_dim(call.integer("dim"), out.dim());
  SliceRange range = slice_range(call, out.sizes[d]);
  out.offset = out.offset + range.start * out.strides[d];
  out.sizes[d] = range.length;
  out.strides[d] = out.strides[d] * range.step;
  return out;
}

TensorMeta selected(TensorMeta out, std::size_t d, SymExpr index) {
  out.offset = out.offset + index * out.strides[d];
  out.sizes.erase(out.sizes.begin() + static_cast<std::ptrdiff_t>(d));
  out.strides.erase(out.strides.begin() + static_cast<std::ptrdiff_t>(d));
  return out;
}

Meta fake_select(FakeCall& call) {
  TensorMeta out = view_meta(call.tensor("self"));
  if (out.sizes.empty()) fail("select() cannot be applied to a 0-dim tensor.");
  std::size_t d = wrap_dim(call.integer("dim"), out.dim());
  SymExpr index = call.sym("index"), size = out.sizes[d];
  constexpr const char* reason = "select's index";
  if (!checked(call, sym_le(-size, index), reason) || !checked(call, sym_lt(index, size), reason))
    fail(fmt::format("select(): index {} out of range for tensor of size {} at dimension {}", index.str(), size.str(),
                     d));
  const SymExpr from_end = sym_lt(index, 0);
  if (const auto known = guard_if_known(call, from_end, reason))
    index = *known ? index + size : index;
  else
    index = sym_call("Where", {from_end, index + size, index});
  return selected(std::move(out), d, index);
}

Meta fake_unbind(FakeCall& call) {
  TensorMeta base = view_meta(call.tensor("self"));
  if (base.sizes.empty()) fail("Dimension specified as 0 but tensor has no dimensions");
  std::size_t d = wrap_dim(call.integer("dim"), base.dim());
  const std::int64_t count = result_count(call, base.sizes[d], "unbind");
  MetaTuple out;
  for (std::int64_t i = 0; i < count; ++i) out.items.push_back(selected(base, d, i));
  return out;
}

MetaTuple pieces(const TensorMeta& self, std::size_t d, const SymList& lengths) {
  MetaTuple out;
  SymExpr at = 0;
  for (SymExpr length : lengths) {
    TensorMeta piece = view_meta(self);
    piece.offset = self.offset + at * self.strides[d];
    piece.sizes[d] = length;
    at = at + length;
    out.items.push_back(std::move(piece));
  }
  return out;
}

Meta fake_split(FakeCall& call) {
  const TensorMeta& self = call.tensor("self");
  if (self.sizes.empty()) fail("split expects at least a 1-dimensional tensor");
  std::size_t d = wrap_dim(call.integer("dim"), self.dim());
  SymExpr each = call.sym("split_size"), size = self.sizes[d];
  if (each.is_int() && each.as_int() < 0)
    fail(fmt::format("split expects split_size be non-negative, but got split_size={}", each.as_int()));
  if (each.is(0)) {
    if (!size.is(0))
      fail(fmt::format("split_size can only be 0 if dimension size is 0, but got dimension size of {}", size.str()));
    return pieces(self, d, {0});
  }
  const std::int64_t count = result_count(call, sym_floordiv(size + each - 1, each), "split");
  SymList lengths(static_cast<std::size_t>(std::max<std::int64_t>(count, 1)), each);
  lengths.back() = size - each * (static_cast<std::int64_t>(lengths.size()) - 1);
  return pieces(self, d, lengths);
}

Meta fake_split_with_sizes(FakeCall& call) {
  const TensorMeta& self = call.tensor("self");
  if (self.sizes.empty()) fail("split expects at least a 1-dimensional tensor");
  std::size_t d = wrap_dim(call.integer("dim"), self.dim());
  SymList lengths = call.syms("split_sizes");
  SymExpr total = 0;
  for (SymExpr l : lengths) total = total + l;
  if (!checked(call, sym_eq(total, self.sizes[d]), "split_with_sizes"))
    fail(fmt::format(
        "split_with_sizes expects split_sizes to sum exactly to {} (input tensor's size at dimension {}), but "
        "they sum to {}",
        self.sizes[d].str(), d, total.str()));
  return pieces(self, d, lengths);
}

Meta fake_as_strided(FakeCall& call) {
  TensorMeta out = view_meta(call.tensor("self"));
  out.sizes = call.syms("size");
  out.strides = call.syms("stride");
  if (out.sizes.size() != out.strides.size()) fail("mismatch in length of strides and shape");
  if (call.has("storage_offset")) out.offset = call.sym("storage_offset");
  for (SymExpr s : out.strides)
    if (s.is_int() && s.as_int() < 0)
      fail(fmt::format("as_strided: Negative strides are not supported at the moment, got stride {}", s.as_int()));
  return out;
}

Meta fake_diagonal(FakeCall& call) {
  TensorMeta out = view_meta(call.tensor("self"));
  std::size_t a = wrap_dim(call.integer("dim1"), out.dim()), b = wrap_dim(call.integer("dim2"), out.dim());
  std::int64_t offset = call.integer("offset");
  if (a == b)
    fail(fmt::format("diagonal dimensions cannot be identical {}, {}", call.integer("dim1"), call.integer("dim2")));
  SymExpr rows = out.sizes[a], columns = out.sizes[b];
  SymExpr length = call.shapes.simplified(
      sym_max(0, offset >= 0 ? sym_min(rows, columns - offset) : sym_min(rows + offset, columns)));
  SymExpr stride = out.strides[a] + out.strides[b];
  if (!length.is(0)) out.offset = out.offset + (offset >= 0 ? out.strides[b] * offset : out.strides[a] * -offset);
  for (std::size_t d : {std::max(a, b), std::min(a, b)}) {
    out.sizes.erase(out.sizes.begin() + static_cast<std::ptrdiff_t>(d));
    out.strides.erase(out.strides.begin() + static_cast<std::ptrdiff_t>(d));
  }
  out.sizes.push_back(length);
  out.strides.push_back(stride);
  return out;
}

Meta fake_unfold(FakeCall& call) {
  TensorMeta out = view_meta(call.tensor("self"));
  std::size_t d = wrap_dim(call.integer("dimension"), out.dim());
  std::int64_t size = call.integer("size"), step = call.integer("step");
  SymExpr extent = out.sizes.empty() ? SymExpr(1) : out.sizes[d],
          stride = out.sizes.empty() ? SymExpr(1) : out.strides[d];
  if (step <= 0) fail(fmt::format("step is {} but must be > 0", step));
  if (size < 0 || !checked(call, sym_le(size, extent), "unfold"))
    fail(fmt::format("maximum size for tensor at dimension {} is {} but size is {}", d, extent.str(), size));
  if (!out.sizes.empty()) {
    out.sizes[d] = sym_floordiv(extent - size, step) + 1;
    out.strides[d] = stride * step;
  }
  out.sizes.push_back(size);
  out.strides.push_back(stride);
  return out;
}

Meta fake_view_as_real(FakeCall& call) {
  TensorMeta out = view_meta(call.tensor("self"));
  if (!is_complex(out.dtype)) fail("view_as_real is only supported for complex tensors");
  out.dtype = real_of(out.dtype);
  for (SymExpr& s : out.strides) s = s * 2;
  out.sizes.push_back(2);
  out.strides.push_back(1);
  out.offset = out.offset * 2;
  return out;
}

Meta fake_view_as_complex(FakeCall& call) {
  TensorMeta out = view_meta(call.tensor("self"));
  if (out.dtype != DType::Float16 && out.dtype != DType::Float32 && out.dtype != DType::Float64)
    fail("view_as_complex is only supported for half, float and double tensors");
  if (out.sizes.empty() || !out.sizes.back().is(2)) fail("Tensor must have a last dimension of size 2");
  if (!out.numel().is(0)) {
    if (!out.strides.back().is(1)) fail("Tensor must have a last dimension with stride 1");
    for (std::size_t d = 0; d + 1 < out.strides.size(); ++d)
      if (out.strides[d].is_int() && out.strides[d].as_int() % 2 != 0)
        fail("Tensor must have a stride divisible by 2 for all but last dimension");
  }
  if (out.offset.is_int() && out.offset.as_int() % 2 != 0) fail("Tensor must have a storage_offset divisible by 2");
  out.dtype = complex_of(out.dtype);
  out.sizes.pop_back();
  out.strides.pop_back();
  for (SymExpr& s : out.strides) s = sym_floordiv(s, 2);
  out.offset = sym_floordiv(out.offset, 2);
  return out;
}

template <Meta (*fake)(FakeCall&)>
Meta copied_meta(FakeCall& call) {
  Meta view = fake(call);
  auto dense = [](const TensorMeta& t) { return TensorMeta::contiguous(t.dtype, t.sizes, t.device); };
  const MetaTuple* tuple = view.tuple();
  if (!tuple) return dense(*view.tensor());
  MetaTuple out;
  for (const Meta& item : tuple->items) out.items.push_back(dense(*item.tensor()));
  return out;
}

template <Meta (*fake)(FakeCall&)>
Value copied(EvalCall& call) {
  Value view = alias_of<fake>(call);
  if (auto* one = view.get<Tensor>()) return unwrap(one->clone());
  ValueList out;
  for (const Value& item : *view.get<ValueList>()) out.push_back(unwrap(item.get<Tensor>()->clone()));
  return out;
}

/// Joins the gradients of the pieces by operator `join`. A missing gradient is replaced by zeros.
std::vector<Node*> join_gradients(GradCall& call, std::string_view join) {
  const TensorMeta& self = call.tensor("self");
  std::vector<Arg> grads;
  for (std::size_t i = 0; i < call.grads.size(); ++i) {
    const SymList& sizes = call.node->meta.tuple()->items[i].tensor()->sizes;
    grads.push_back(call.grads[i] ? call.grads[i]
                                  : call.build.call("aten.zeros.default", {call.build.sizes(sizes)}, options_of(self)));
  }
  return gradient_of_first(call, call.build.call(join, {Arg::list(std::move(grads)), call.arg("dim")}));
}
std::vector<Node*> cat_gradients(GradCall& call) {
  return join_gradients(call, "aten.cat.default");
}
std::vector<Node*> stack_gradients(GradCall& call) {
  return join_gradients(call, "aten.stack.default");
}

bool step_is_one(const Args& bound) {
  return bound[4] == Arg(1);
}

using Order = std::optional<std::vector<std::int64_t>>;

std::optional<std::int64_t> constant_dim(const Arg& a, std::int64_t rank) {
  const auto* d = a.get<std::int64_t>();
  if (!d || *d < -rank || *d >= rank) return std::nullopt;
  return *d < 0 ? *d + rank : *d;
}

std::vector<std::int64_t> in_order(std::int64_t rank) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(rank));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

Order permuted_order(const Args& bound, std::int64_t rank) {
  const auto* dims = bound[1].get<ArgList>();
  if (!dims || static_cast<std::int64_t>(dims->items.size()) != rank) return std::nullopt;
  std::vector<std::int64_t> order;
  for (const Arg& a : dims->items) {
    const auto d = constant_dim(a, rank);
    if (!d) return std::nullopt;
    order.push_back(*d);
  }
  return order;
}
Order transposed_order(const Args& bound, std::int64_t rank) {
  const auto a = constant_dim(bound[1], rank), b = constant_dim(bound[2], rank);
  if (!a || !b) return std::nullopt;
  std::vector<std::int64_t> order = in_order(rank);
  std::swap(order[static_cast<std::size_t>(*a)], order[static_cast<std::size_t>(*b)]);
  return order;
}
Order t_order(const Args&, std::int64_t rank) {
  std::vector<std::int64_t> order = in_order(rank);
  if (rank == 2) std::swap(order[0], order[1]);
  return order;
}

/// Registers a view and, unless `copy` is empty, the overload that copies its elements. `gradient` is the formula of
/// self's; the columns come before what few views have.
template <Meta (*fake)(FakeCall&)>
void row(OpTable& t, std::string_view name, std::string_view copy, std::string_view gradient,
         decltype(OpRecord::lower) lower, decltype(ViewFields::write_through) write_through, OpRecord view = {}) {
  view.fake = fake;
  view.eval = alias_of<fake>;
  if (!gradient.empty()) view.autograd.derivative = {{"self", gradient}};
  view.lower = lower;
  view.views.write_through = write_through;
  if (!copy.empty())
    t.add(copy, copied_meta<fake>, copied<fake>, view.autograd.derivative,
          {.autograd = {.gradient = view.autograd.gradient}, .precision = {.as_written = view.precision.as_written}});
  t.add(name, std::move(view));
}

}  // namespace

void register_view(OpTable& t) {
  t.default_family = Family::View;
  t.add_without_record({"getitem"});
  using namespace loops;
  row<fake_alias>(t, "aten.alias.default", "aten.alias_copy.default", "grad", lower_alias, pass_on,
                  {.views = {.unchanged_if = any_arguments}, .role = Role::WholeView});
  row<fake_alias>(
      t, "aten.detach.default", "aten.detach_copy.default", "zero", lower_alias, pass_on,
      {.autograd = {.not_differentiable = true}, .views = {.unchanged_if = any_arguments}, .role = Role::WholeView});
  row<fake_alias>(t, "aten.lift_fresh.default", "", "grad", nullptr, nullptr);
  row<fake_view>(t, "aten.view.default", "", "reshape(grad, sizes(self))", lower_reshape, reshape_back,
                 {.views = {.unchanged_if = any_arguments}, .role = Role::OtherSizes});
  t.add("aten.view_copy.default",
        {.fake = fake_view_copy, .program = "view(clone(self, memory_format=contiguous_format), size)"});
  row<fake_view>(t, "aten._unsafe_view.default", "", "reshape(grad, sizes(self))", lower_reshape, reshape_back,
                 {.cost = {.recomputable = true}, .views = {.unchanged_if = any_arguments, .may_alias = true}});
  row<fake_view_dtype>(t, "aten.view.dtype", "aten.view_copy.dtype", "", nullptr, dtype_back,
                       {.precision = {.as_written = true}});
  row<fake_expand>(t, "aten.expand.default", "aten.expand_copy.default", "grad", lower_expand, nullptr,
                   {.views = {.unchanged_if = any_arguments}});
  row<fake_permute>(t, "aten.permute.default", "aten.permute_copy.default", "permute_backwards(grad, dims)",
                    lower_permute, permute_back, {.views = {.dimension_order = permuted_order}});
  row<fake_transpose>(t, "aten.transpose.int", "aten.transpose_copy.int", "transpose(grad, dim0, dim1)",
                      lower_transpose, view_again, {.views = {.dimension_order = transposed_order}});
  row<fake_t>(t, "aten.t.default", "aten.t_copy.default", "t(grad)", lower_t, view_again,
              {.views = {.dimension_order = t_order}});
  row<fake_unsqueeze>(t, "aten.unsqueeze.default", "aten.unsqueeze_copy.default", "squeeze(grad, dim)", lower_reshape,
                      squeeze_back);
  row<fake_squeeze>(t, "aten.squeeze.default", "aten.squeeze_copy.default", "unsqueeze_to(grad, self)", lower_reshape,
                    unsqueeze_back, {.views = {.unchanged_if = any_arguments}});
  row<fake_squeeze_dims>(t, "aten.squeeze.dim", "aten.squeeze_copy.dim", "unsqueeze_to(grad, self, dim)", lower_reshape,
                         unsqueeze_back, {.views = {.unchanged_if = any_arguments}});
  row<fake_squeeze_dims>(t, "aten.squeeze.dims", "aten.squeeze_copy.dims", "unsqueeze_to(grad, self, dim)",
                         lower_reshape, unsqueeze_back, {.views = {.unchanged_if = any_arguments}});
  row<fake_slice>(t, "aten.slice.Tensor", "aten.slice_copy.Tensor",
                  "slice_backward_wrapper(grad, self, dim, start, end, step)", lower_slice, scatter_back,
                  {.views = {.unchanged_if = step_is_one}});
  row<fake_select>(t, "aten.select.int", "aten.select_copy.int", "select_backward(grad, sizes(self), dim, index)",
                   lower_select, scatter_back);
  row<fake_diagonal>(t, "aten.diagonal.default", "aten.diagonal_copy.default",
                     "diagonal_backward(grad, sizes(self), offset, dim1, dim2)", lower_diagonal, scatter_back);
  row<fake_unfold>(t, "aten.unfold.default", "aten.unfold_copy.default",
                   "unfold_backward(grad, sizes(self), dimension, size, step)", nullptr, unfold_back);
  row<fake_as_strided>(t, "aten.as_strided.default", "aten.as_strided_copy.default",
                       "as_strided_backward(grad, self, size, stride, storage_offset)", lower_as_strided, scatter_back,
                       {.role = Role::ViewsStorage});
  row<fake_view_as_real>(t, "aten.view_as_real.default", "aten.view_as_real_copy.default",
                         "view_as_complex(contiguous(grad))", nullptr, real_back);
  row<fake_view_as_complex>(t, "aten.view_as_complex.default", "aten.view_as_complex_copy.default",
                            "view_as_real(contiguous(grad))", nullptr, complex_back);
  row<fake_split>(t, "aten.split.Tensor", "aten.split_copy.Tensor", "", lower_split, split_back,
                  {.autograd = {.gradient = cat_gradients}, .role = Role::Splits});
  row<fake_split_with_sizes>(t, "aten.split_with_sizes.default", "aten.split_with_sizes_copy.default", "",
                             lower_split_sizes, split_back,
                             {.autograd = {.gradient = cat_gradients}, .role = Role::Splits});
  row<fake_unbind>(t, "aten.unbind.int", "aten.unbind_copy.int", "", lower_unbind, unbind_back,
                   {.autograd = {.gradient = stack_gradients}});
  row<fake_split>(t, "aten.unsafe_split.Tensor", "", "", lower_split, nullptr,
                  {.autograd = {.gradient = cat_gradients}, .views = {.may_alias = true}});
  row<fake_split_with_sizes>(t, "aten.unsafe_split_with_sizes.default", "", "", lower_split_sizes, nullptr,
                             {.autograd = {.gradient = cat_gradients}, .views = {.may_alias = true}});
}

}  // namespace partita

// Operators between tensors and numbers: sizes and strides as numbers, item, asserts.
#include <fmt/format.h>

#include "core/ops/record/promote.h"
#include "core/ops/record/record.h"
#include "core/ops/record/values.h"

namespace partita {
namespace {

Meta tuple_of(const SymList& list) {
  MetaTuple out;
  for (SymExpr e : list) out.items.emplace_back(e);
  return out;
}

SymExpr at_dim(const FakeCall& call, const SymList& list) {
  if (list.empty())
    fail("Dimension specified as " + std::to_string(call.integer("dim")) + " but tensor has no dimensions");
  return list[wrap_dim(call.integer("dim"), list.size())];
}

Meta fake_size(FakeCall& call) {
  return at_dim(call, call.tensor("self").sizes);
}
Meta fake_stride(FakeCall& call) {
  return at_dim(call, call.tensor("self").strides);
}
Meta fake_sizes(FakeCall& call) {
  return tuple_of(call.tensor("self").sizes);
}
Meta fake_strides(FakeCall& call) {
  return tuple_of(call.tensor("self").strides);
}
Meta fake_numel(FakeCall& call) {
  return call.tensor("self").numel();
}
Meta fake_offset(FakeCall& call) {
  return call.tensor("self").offset;
}
Meta fake_dim(FakeCall& call) {
  return SymExpr(static_cast<std::int64_t>(call.tensor("self").dim()));
}
Meta fake_is_contiguous(FakeCall& call) {
  const TensorMeta& t = call.tensor("self");
  auto format = call.memory_format("memory_format").value_or(MemoryFormat::Contiguous);
  bool yes = format == MemoryFormat::Contiguous ? is_contiguous(call, t.sizes, t.strides)
                                                : is_channels_last(call, t.sizes, t.strides);
  return SymExpr(yes ? 1 : 0);
}

/// Evaluates a fake that returns numbers, for a call with values.
template <Meta (*fake)(FakeCall&)>
Value number_of(EvalCall& call) {
  CallOfValues metas(call);
  Meta m = fake(metas.call);
  if (const MetaTuple* tuple = m.tuple()) {
    ValueList out;
    for (const Meta& item : tuple->items) out.push_back(item.sym()->as_int());
    return out;
  }
  return m.sym()->as_int();
}

Value eval_is_contiguous(EvalCall& call) {
  CallOfValues metas(call);
  return fake_is_contiguous(metas.call).sym()->is(1);
}

/// item() of an integer tensor is a new unbacked symbol. Of float and bool tensors it is an unbacked number of that
/// kind; of complex tensors nothing is known.
Meta fake_item(FakeCall& call) {
  const TensorMeta& self = call.tensor("self");
  if (is_integral(self.dtype)) return call.shapes.new_unbacked(INT64_MIN);
  if (is_floating(self.dtype)) return call.shapes.new_unbacked_float();
  if (self.dtype == DType::Bool) return sym_eq(call.shapes.new_unbacked(0, 1), 1);
  return {};
}

Value eval_item(EvalCall& call) {
  const Tensor& self = call.tensor("self");
  if (self.numel() != 1) fail(fmt::format("a Tensor with {} elements cannot be converted to Scalar", self.numel()));
  if (self.dtype == DType::Bool) return self.item_as_double() != 0;
  if (is_floating(self.dtype)) return self.item_as_double();
  if (is_complex(self.dtype)) return *unwrap(self.to(DType::Complex128)).as<std::complex<double>>();
  return *unwrap(self.to(DType::Int64)).as<std::int64_t>();
}

Meta fake_nothing(FakeCall&) {
  return {};
}

/// What is asserted decides later conditions on sizes.
Meta fake_assert_scalar(FakeCall& call) {
  const Arg& condition = call.arg("self");
  if (const Node* n = condition.node(); n && n->meta.sym()) call.shapes.assume(*n->meta.sym());
  return {};
}
Meta fake_constrain(FakeCall& call) {
  const SymExpr size = call.sym("size");
  if (call.has("min")) call.shapes.assume(sym_le(call.sym("min"), size));
  if (call.has("max")) call.shapes.assume(sym_le(size, call.sym("max")));
  return {};
}

Value eval_assert_scalar(EvalCall& call) {
  if (as_double(call.number("self")) == 0) fail(call.string("assert_msg"));
  return {};
}
Value eval_assert_async(EvalCall& call) {
  if (call.tensor("self").item_as_double() == 0)
    fail(call.schema.index_of("assert_msg") >= 0 ? call.string("assert_msg")
                                                 : "Expected Tensor with single nonzero value, but got zero");
  return {};
}
Value eval_assert_metadata(EvalCall& call) {
  const Tensor& t = call.tensor("a");
  if (auto dtype = call.dtype("dtype"); dtype && *dtype != t.dtype)
    fail(fmt::format("Tensor dtype mismatch! Expected: {}, Got: {}", torch_name(*dtype), torch_name(t.dtype)));
  if (call.has("size") && call.integers("size") != t.sizes) fail("Tensor sizes mismatch!");
  if (call.has("stride") && call.integers("stride") != t.strides) fail("Tensor strides mismatch!");
  return {};
}

/// Do the metas decide an _assert_tensor_metadata(a, size, stride, dtype, device, layout), and does it hold?
bool metadata_holds(const Args& bound) {
  const TensorMeta* t = bound[0].node() ? bound[0].node()->meta.tensor() : nullptr;
  if (!t || !t->strides_known || !t->device_known) return false;
  const auto as_given = [](const Arg& given, const SymList& known) {
    const ArgList* items = given.get<ArgList>();
    return given.is_none() || (items && std::ranges::equal(items->items, known, [](const Arg& item, SymExpr e) {
                                 const Meta* meta = item.node() ? &item.node()->meta : nullptr;
                                 const auto* n = item.get<std::int64_t>();
                                 return n ? e.is(*n) : meta && meta->sym() && *meta->sym() == e;
                               }));
  };
  return as_given(bound[1], t->sizes) && as_given(bound[2], t->strides) &&
         (bound[3].is_none() || bound[3] == Arg(t->dtype)) && (bound[4].is_none() || bound[4] == Arg(t->device)) &&
         (bound[5].is_none() || bound[5] == Arg(Layout::Strided));
}

Value eval_constrain(EvalCall& call) {
  std::int64_t v = as_int(call.number("size"));
  if ((call.has("min") && v < call.integer("min")) || (call.has("max") && v > call.integer("max")))
    fail(fmt::format("Invalid value range for {}", v));
  return {};
}

}  // namespace

void register_symint(OpTable& t) {
  const auto number = [&t](std::string_view name, Meta (*fake)(FakeCall&), Value (*eval)(EvalCall&),
                           Family family = Family::Other, bool reads_strides = false) {
    const bool reads_values = eval == eval_item;
    t.add(name, fake, eval, {},
          {.autograd = {.not_differentiable = true},
           .precision = {.takes_float8 = !reads_values},
           .views = {.reads_strides = reads_strides},
           .family = family});
  };
  number("aten.sym_size.int", fake_size, number_of<fake_size>, Family::View);
  number("aten.size.int", fake_size, number_of<fake_size>, Family::View);
  number("aten.sym_size.default", fake_sizes, number_of<fake_sizes>, Family::View);
  number("aten.size.default", fake_sizes, number_of<fake_sizes>, Family::View);
  number("aten.sym_stride.int", fake_stride, number_of<fake_stride>, Family::Other, true);
  number("aten.stride.int", fake_stride, number_of<fake_stride>, Family::Other, true);
  number("aten.sym_stride.default", fake_strides, number_of<fake_strides>, Family::Other, true);
  number("aten.stride.default", fake_strides, number_of<fake_strides>, Family::Other, true);
  number("aten.sym_numel.default", fake_numel, number_of<fake_numel>);
  number("aten.numel.default", fake_numel, number_of<fake_numel>, Family::View);
  number("aten.sym_storage_offset.default", fake_offset, number_of<fake_offset>);
  number("aten.dim.default", fake_dim, number_of<fake_dim>);
  number("aten.sym_is_contiguous.default", fake_is_contiguous, eval_is_contiguous);
  number("aten.is_contiguous.memory_format", fake_is_contiguous, eval_is_contiguous);
  number("aten._local_scalar_dense.default", fake_item, eval_item);
  number("aten.item.default", fake_item, eval_item);
  const auto check = [&t](std::string_view name, Value (*eval)(EvalCall&), Meta (*fake)(FakeCall&) = fake_nothing) {
    t.add(name, fake, eval, {}, {.autograd = {.not_differentiable = true}, .side_effect = true});
  };
  check("aten._assert_scalar.default", eval_assert_scalar, fake_assert_scalar);
  check("aten._assert_async.default", eval_assert_async);
  check("aten._assert_async.msg", eval_assert_async);
  t.add("aten._assert_tensor_metadata.default", fake_nothing, eval_assert_metadata, {},
        {.autograd = {.not_differentiable = true},
         .side_effect = true,
         .precision = {.takes_float8 = true},
         .views = {.unchanged_if = metadata_holds}});
  check("aten.sym_constrain_range.default", eval_constrain, fake_constrain);
  check("aten.sym_constrain_range_for_size.default", eval_constrain, fake_constrain);
}

}  // namespace partita

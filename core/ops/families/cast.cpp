// Copies: clone, conversions of dtype and layout, writes into a tensor.
#include <fmt/format.h>

#include "core/ops/facts/views.h"
#include "core/ops/families/body.h"
#include "core/ops/families/view_inverse.h"
#include "core/ops/families/view_parts.h"
#include "core/ops/record/gradients.h"
#include "core/ops/record/layout.h"
#include "core/ops/record/lower_call.h"
#include "core/ops/record/record.h"
#include "core/ops/record/values.h"
#include "core/tensor/convert.h"

namespace partita {
namespace {
using namespace loops;

/// Lowers clone, _to_copy and convert_element_type.
void lower_copy(LowerCall& call) {
  give_copy(call, call.schema.args[0].name);
}

/// copy(self, src): src in self's dtype and sizes. Where elements of self share memory, the last write decides; loops
/// promise no order of writes, so that case is refused.
void lower_copy_from(LowerCall& call) {
  const SymList sizes = call.out_sizes(), strides = call.to.plain_strides(call.out().strides);
  SymExpr reach = 1;
  for (std::size_t d = 0; d < sizes.size(); ++d) reach = reach + (sizes[d] - 1) * strides[d];
  if (!sizes_non_negative(reach - product(sizes))) fail_unsupported("a copy whose elements share memory");
  give_copy(call, "src");
}

TensorMeta dense_copy(const FakeCall& call, DType dtype, MemoryFormat format) {
  const TensorMeta& self = call.tensor(call.schema.args[0].name);
  TensorMeta out = TensorMeta::contiguous(dtype, self.sizes, self.device);
  out.strides = strides_like(call, self, self.sizes, format);
  return out;
}

Meta fake_clone(FakeCall& call) {
  return dense_copy(call, call.tensor("self").dtype,
                    call.memory_format("memory_format").value_or(MemoryFormat::Preserve));
}
Meta fake_to_copy(FakeCall& call) {
  TensorMeta out = dense_copy(call, call.dtype("dtype").value_or(call.tensor("self").dtype),
                              call.memory_format("memory_format").value_or(MemoryFormat::Preserve));
  if (auto device = call.device("device")) out.device = *device;
  return out;
}
Meta fake_preserving(FakeCall& call) {
  return dense_copy(call, call.tensor("self").dtype, MemoryFormat::Preserve);
}
Meta fake_convert(FakeCall& call) {
  return dense_copy(call, *call.dtype("dtype"), MemoryFormat::Preserve);
}

/// Copies the first argument into a tensor with the sizes, strides and dtype of the fake.
template <Meta (*fake)(FakeCall&)>
Value copied(EvalCall& call) {
  Tensor out = empty_of(call, fake);
  out.copy_from(call.tensor(call.schema.args[0].name));
  return out;
}

/// copy(self, src): src broadcast to self's sizes, in self's dtype. The strides are self's unless its elements overlap.
Meta fake_copy(FakeCall& call) {
  const TensorMeta& self = call.tensor("self");
  SymList sizes[] = {self.sizes, call.tensor("src").sizes};
  if (broadcast(call, sizes) != self.sizes) fail("copy: src does not broadcast to self's size");
  TensorMeta out = TensorMeta::contiguous(self.dtype, self.sizes, self.device);
  out.strides = cloned_strides(call, self);
  return out;
}

Value eval_copy(EvalCall& call) {
  Tensor out = empty_of(call, fake_copy);
  const Tensor& src = call.tensor("src");
  Sizes strides(out.sizes.size(), 0);
  std::size_t lead = out.sizes.size() - src.sizes.size();
  for (std::size_t d = 0; d < src.sizes.size(); ++d)
    if (src.sizes[d] != 1) strides[lead + d] = src.strides[d];
  out.copy_from(src.view_as(out.sizes, strides, src.offset));
  return out;
}

// Tensor.to and its overloads (CompositeImplicitAutograd) return their argument when nothing changes.

Arg to_copy_if(DecomposeCall& call, std::optional<DType> dtype, std::optional<Device> device) {
  const TensorMeta& self = call.tensor("self");
  auto format = call.schema.index_of("memory_format") >= 0 ? call.memory_format("memory_format") : std::nullopt;
  bool other_type = dtype && *dtype != self.dtype, other_device = device && device->type != self.device.type;
  bool other_format =
      format && *format != MemoryFormat::Preserve && suggest_memory_format(self, call.shapes) != *format;
  bool copy = call.schema.index_of("copy") >= 0 && call.boolean("copy");
  if (!other_type && !other_device && !other_format && !copy) return call.arg("self");
  Kwargs kwargs;
  if (dtype) kwargs.emplace_back("dtype", *dtype);
  if (device) kwargs.emplace_back("device", *device);
  if (format) kwargs.emplace_back("memory_format", *format);
  return call.build.call("aten._to_copy.default", {call.arg("self")}, std::move(kwargs));
}

Arg to_dtype(DecomposeCall& call) {
  return to_copy_if(call, call.dtype("dtype"), std::nullopt);
}
Arg to_device(DecomposeCall& call) {
  return to_copy_if(call, call.dtype("dtype"), call.device("device"));
}
Arg to_other(DecomposeCall& call) {
  const TensorMeta& other = call.tensor("other");
  return to_copy_if(call, other.dtype, other.device);
}
Arg contiguous(DecomposeCall& call) {
  const TensorMeta& self = call.tensor("self");
  MemoryFormat format = call.memory_format("memory_format").value_or(MemoryFormat::Contiguous);
  const bool row_major = format == MemoryFormat::Contiguous || format == MemoryFormat::Preserve;
  const std::size_t rank = format == MemoryFormat::ChannelsLast ? 4 : 5;
  if (row_major ? is_contiguous(call, self.sizes, self.strides)
                : self.dim() == rank && is_channels_last(call, self.sizes, self.strides))
    return call.arg("self");
  if (format == MemoryFormat::Preserve) fail("preserve memory format is unsupported by the contiguous operator");
  return call.build.call("aten.clone.default", {call.arg("self")}, {{"memory_format", format}});
}

/// In PyTorch conj is a view, so its strides are self's even where self has gaps between its elements.
Meta fake_conj(FakeCall& call) {
  TensorMeta meta = call.tensor("self");
  meta.offset = 0;
  meta.requires_grad = false;
  meta.storage_id = -1;
  return meta;
}

/// Partita has no conjugate bit: conj computes a new tensor, and nothing aliases.
template <Meta (*fake)(FakeCall&)>
Value eval_conj(EvalCall& call) {
  const Tensor& self = call.tensor("self");
  Tensor out = empty_of(call, fake);
  out.copy_from(self);
  if (!is_complex(self.dtype)) return out;
  if (self.dtype == DType::Complex32) {
    auto* parts = reinterpret_cast<Half*>(out.storage->data());
    for (std::size_t i = 1; i < out.storage->bytes() / sizeof(Half); i += 2) parts[i].bits ^= 0x8000;
    return out;
  }
  dispatch(out.dtype, [&]<class T>() {
    if constexpr (is_complex_type<T>::value) {
      T* data = reinterpret_cast<T*>(out.storage->data());
      for (std::size_t i = 0; i < out.storage->bytes() / sizeof(T); ++i) data[i] = std::conj(data[i]);
    }
  });
  return out;
}

/// Casts the gradient back with all of self's options, as PyTorch's _to_copy_backward.
std::vector<Node*> grad_to_copy(GradCall& c) {
  const TensorMeta& self = c.tensor("self");
  const DType from = Builder::tensor(c.grads[0]).dtype;
  if (from == self.dtype || (is_complex(from) && !is_complex(self.dtype))) return gradient_of_first(c, c.grads[0]);
  return gradient_of_first(c,
                           c.build.call("aten._to_copy.default", {c.grads[0]},
                                        {{"dtype", self.dtype}, {"layout", Layout::Strided}, {"device", self.device}}));
}

}  // namespace

void register_cast(OpTable& t) {
  t.default_family = Family::View;
  t.add("aten.clone.default", fake_clone, copied<fake_clone>, {{"self", "grad"}},
        {.lower = lower_copy,
         .cost = {.recomputable = true},
         .precision = {.takes_float8 = true},
         .views = {.unchanged_if = any_arguments},
         .family = Family::View});
  t.add("aten._to_copy.default", fake_to_copy, copied<fake_to_copy>, {},
        {.autograd = {.gradient = grad_to_copy},
         .lower = lower_copy,
         .cost = {.recomputable = true},
         .precision = {.takes_float8 = true},
         .views = {.unchanged_if = any_arguments},
         .role = Role::Converts});
  t.add("aten.lift_fresh_copy.default", fake_preserving, copied<fake_preserving>, {{"self", "grad"}},
        {.lower = lower_copy,
         .cost = {.recomputable = true},
         .precision = {.takes_float8 = true},
         .views = {.unchanged_if = any_arguments}});
  t.add("aten.lift.default", fake_preserving, copied<fake_preserving>, {{"self", "grad"}},
        {.precision = {.takes_float8 = true}});
  t.add("prims.convert_element_type.default", fake_convert, copied<fake_convert>, {{"a", "grad"}},
        {.lower = lower_copy,
         .cost = {.recomputable = true},
         .precision = {.takes_float8 = true},
         .views = {.unchanged_if = any_arguments}});
  t.add("aten.copy.default", fake_copy, eval_copy, {{"self", "zeros_like(grad)"}, {"src", "grad"}},
        {.lower = lower_copy_from,
         .precision = {.takes_float8 = true},
         .from_any_device = "src",
         .role = Role::CopiesSecond,
         .family = Family::Index});
  t.add("aten._conj.default", fake_conj, eval_conj<fake_conj>, {{"self", "conj(grad)"}},
        {.views = {.write_through = view_again, .element_change = ElementChange::Conjugate}});
  t.add("aten._conj_physical.default", fake_preserving, eval_conj<fake_preserving>, {{"self", "conj(grad)"}},
        {.views = {.element_change = ElementChange::Conjugate}});
  t.add("aten.conj_physical.default", {.program = "_conj_physical(self) if is_complex(self) else self",
                                       .views = {.element_change = ElementChange::Conjugate}});

  t.add("aten.to.dtype",
        {.decompose = to_dtype, .cost = {.recomputable = true}, .views = {.unchanged_if = any_arguments}});
  t.add("aten.to.dtype_layout",
        {.decompose = to_device, .cost = {.recomputable = true}, .views = {.unchanged_if = any_arguments}});
  t.add("aten.to.device",
        {.decompose = to_device, .cost = {.recomputable = true}, .views = {.unchanged_if = any_arguments}});
  t.add("aten.to.other", {.decompose = to_other, .cost = {.recomputable = true}});
  t.add("aten.type_as.default", {.decompose = to_other, .cost = {.recomputable = true}});
  t.add("aten.contiguous.default", {.decompose = contiguous, .views = {.unchanged_if = any_arguments}});
}

}  // namespace partita

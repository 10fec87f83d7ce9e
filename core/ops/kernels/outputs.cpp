#include "core/ops/kernels/outputs.h"

#include "core/ops/record/layout.h"
#include "core/ops/record/values.h"

namespace partita::kernels {

namespace {

Tensor allocate_like(const Meta& meta) {
  const TensorMeta* t = meta.tensor();
  if (!t) return Tensor{};
  auto sizes = concrete(t->sizes), strides = concrete(t->strides);
  CHECK(sizes && strides, "fake made symbolic sizes out of values");
  if (t->dtype == DType::Complex32) fail_unsupported("arithmetic in complex32");
  return unwrap(Tensor::empty_strided(t->dtype, *sizes, *strides));
}

}  // namespace

std::vector<Tensor> allocate_all(const EvalCall& call, Meta (*fake)(FakeCall&)) {
  CallOfValues metas(call);
  Meta meta = fake(metas.call);
  std::vector<Tensor> outputs;
  if (const MetaTuple* tuple = meta.tuple()) {
    for (const Meta& item : tuple->items) outputs.push_back(allocate_like(item));
  } else {
    outputs.push_back(allocate_like(meta));
  }
  return outputs;
}

Tensor allocate(const EvalCall& call, Meta (*fake)(FakeCall&)) {
  return std::move(allocate_all(call, fake)[0]);
}

Tensor zeros_for(const EvalCall& call, Meta (*fake)(FakeCall&), std::optional<DType> dtype) {
  CallOfValues metas(call);
  const Meta meta = fake(metas.call);
  const TensorMeta& t = *meta.tensor();
  return zeros(dtype.value_or(evaluation_dtype(t.dtype)), *concrete(t.sizes));
}

DType evaluation_dtype(DType t) {
  if (t == DType::Bool || is_integral(t)) return DType::Int64;
  if (t == DType::Float16 || t == DType::BFloat16) return DType::Float32;
  return t;
}

Tensor load(const Tensor& t, DType dtype) {
  if (dtype == DType::Complex32 && t.dtype != dtype) fail_unsupported("arithmetic in complex32");
  return unwrap(t.dtype == dtype ? t.contiguous() : t.to(dtype));
}
Tensor empty(DType dtype, Sizes sizes) {
  return unwrap(Tensor::empty(dtype, std::move(sizes)));
}
Tensor zeros(DType dtype, Sizes sizes) {
  return unwrap(Tensor::zeros(dtype, std::move(sizes)));
}

Tensor number_tensor(const Number& n, DType dtype) {
  auto in_its_own = [&]<class T>(DType own, T value) {
    Tensor t = empty(own, {});
    *t.as<T>() = value;
    return load(t, dtype);
  };
  if (const auto* z = std::get_if<std::complex<double>>(&n)) return in_its_own(DType::Complex128, *z);
  if (std::holds_alternative<std::int64_t>(n)) return in_its_own(DType::Int64, as_int(n));
  return in_its_own(DType::Float64, as_double(n));
}

MetaTuple gradients_by_mask(const FakeCall& call, TensorMeta input, TensorMeta weight, TensorMeta bias) {
  const std::vector<bool> mask = call.booleans("output_mask");
  if (mask.size() != 3) fail("output_mask must have 3 items");
  return MetaTuple{
      {meta_if(mask[0], std::move(input)), meta_if(mask[1], std::move(weight)), meta_if(mask[2], std::move(bias))}};
}

Tensor load_optional(const EvalCall& call, std::string_view name, DType dtype) {
  return call.has(name) ? load(call.tensor(name), dtype) : Tensor{};
}

DimSplit split_at(const Sizes& sizes, std::int64_t dim) {
  DimSplit split;
  if (sizes.empty()) return split;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    auto& part = static_cast<std::int64_t>(i) < dim   ? split.outer
                 : static_cast<std::int64_t>(i) > dim ? split.inner
                                                      : split.length;
    part *= sizes[i];
  }
  return split;
}

}  // namespace partita::kernels

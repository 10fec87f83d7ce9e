// Values of the C interface.
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "codegen/library/runtime/model.h"

namespace partita::codegen {
namespace {

std::string list(std::span<const std::int64_t> v) {
  return fmt::format("[{}]", fmt::join(v, ", "));
}

/// What partita_release() frees: a result, whose sizes and strides the caller's struct points to.
struct Owner {
  Tensor tensor;
};

Result<Tensor> borrowed(const partita_tensor& t, DType dtype, const std::string& name) {
  Tensor out;
  out.dtype = dtype;
  if (t.rank > 0) out.sizes.assign(t.sizes, t.sizes + t.rank);
  out.strides = t.strides ? Sizes(t.strides, t.strides + t.rank) : row_major_strides(out.sizes);
  const auto count = reach(out.sizes, out.strides);
  if (!count)
    return input_error("library.input", fmt::format("{} has impossible sizes {} or strides {}", name, list(out.sizes),
                                                    list(out.strides)));
  if (*count > 0 && !t.data) return input_error("library.input", name + " has no data");
  out.storage =
      Storage::borrow(static_cast<std::byte*>(t.data), static_cast<std::size_t>(*count) * itemsize(dtype), nullptr);
  return out;
}

}  // namespace

Result<Value> value_of(const partita_tensor& t, const LibraryValue& wanted, const std::string& name) {
  if (wanted.kind == LibraryValue::Kind::None) return Value();
  if (t.dtype != static_cast<int>(wanted.dtype) + 1)
    return input_error("library.input", fmt::format("{} is {}, but the model takes {}", name,
                                                    t.dtype < 1 || t.dtype > PARTITA_COMPLEX128
                                                        ? "of no dtype"
                                                        : torch_name(static_cast<DType>(t.dtype - 1)),
                                                    torch_name(wanted.dtype)));
  if (t.rank < 0 || static_cast<std::size_t>(t.rank) != wanted.sizes.size())
    return input_error("library.input",
                       fmt::format("{} has {} dimensions, but the model takes {}", name, t.rank, wanted.sizes.size()));
  if (t.rank > 0 && !t.sizes) return input_error("library.input", name + " has no sizes");
  TRY(Tensor tensor, borrowed(t, wanted.dtype, name));
  if (wanted.kind == LibraryValue::Kind::Tensor) return Value(std::move(tensor));
  if (wanted.dtype == DType::Int64) return Value(*tensor.as<std::int64_t>());
  if (wanted.dtype == DType::Bool) return Value(*tensor.as<StoredBool>());
  return Value(tensor.item_as_double());
}

Status give(const Value& value, const std::string& name, partita_tensor& out) {
  Tensor tensor;
  if (const auto* t = value.get<Tensor>()) {
    tensor = *t;
  } else if (const auto* n = value.get<std::int64_t>()) {
    TRY(tensor, Tensor::empty(DType::Int64, {}));
    *tensor.as<std::int64_t>() = *n;
  } else if (const auto* b = value.get<bool>()) {
    TRY(tensor, Tensor::empty(DType::Bool, {}));
    *tensor.as<StoredBool>() = *b;
  } else if (const auto* d = value.get<double>()) {
    TRY(tensor, Tensor::scalar(DType::Float64, *d));
  } else if (value.is_none()) {
    out = {};
    return {};
  } else {
    return unsupported("library.output", name + " is no tensor, number or None");
  }
  if (out.data) {
    if (out.dtype != static_cast<int>(tensor.dtype) + 1 || static_cast<std::size_t>(out.rank) != tensor.sizes.size() ||
        (out.rank > 0 && (!out.sizes || !std::equal(tensor.sizes.begin(), tensor.sizes.end(), out.sizes))))
      return input_error("library.output", fmt::format("{} is {}{}, which the given memory is not for", name,
                                                       torch_name(tensor.dtype), list(tensor.sizes)));
    TRY(const Tensor target, borrowed(out, tensor.dtype, name));
    target.copy_from(tensor);
    return {};
  }
  auto owner = std::make_unique<Owner>(Owner{std::move(tensor)});
  const Tensor& t = owner->tensor;
  // Also a tensor without elements has an address, since NULL stands for no value.
  static std::byte nothing;
  out = {t.numel() == 0 ? static_cast<void*>(&nothing) : t.data(),
         static_cast<std::int32_t>(t.dtype) + 1,
         static_cast<std::int32_t>(t.sizes.size()),
         t.sizes.data(),
         t.strides.data(),
         owner.get()};
  owner.release();
  return {};
}

}  // namespace partita::codegen

extern "C" __attribute__((visibility("default"))) void partita_release(partita_tensor* results, size_t count) {
  for (size_t i = 0; results && i < count; ++i) {
    delete static_cast<partita::codegen::Owner*>(results[i].owner);
    if (results[i].owner) results[i] = {};
  }
}

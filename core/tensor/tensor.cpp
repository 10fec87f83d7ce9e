// Storages: allocated, borrowed, or of a device and copied here at first use. Checks that sizes and strides neither
// overflow nor leave the storage, and copies between any strides and dtypes.
#include "core/tensor/tensor.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <mutex>

#include <fmt/format.h>

#include "core/base/check.h"
#include "core/base/memory.h"
#include "core/base/progress.h"
#include "core/tensor/convert.h"
#include "core/tensor/float8.h"
#include "core/tensor/storage_extent.h"
#include "core/tensor/word.h"

namespace partita {

Status reachable(Device device) {
  if (device.type == DeviceType::Cpu) return {};
  return unsupported("tensor.device",
                     fmt::format("nothing is copied or computed on {} yet; move the tensors to the CPU", device.str()));
}

Result<std::shared_ptr<Storage>> Storage::allocate(std::size_t bytes, bool zero, Device device) {
  TRY_DO(reachable(device));
  std::size_t padded = (std::max<std::size_t>(bytes, 1) + alignment - 1) / alignment * alignment;
  TRY_DO(check_fits_in_memory(bytes, held_bytes()));
  void* memory = bytes > PTRDIFF_MAX - alignment ? nullptr : std::aligned_alloc(alignment, padded);
  if (!memory)
    return input_error("tensor.out_of_memory", fmt::format("cannot allocate {} bytes; use smaller sizes", bytes));
  if (zero) std::memset(memory, 0, padded);
  auto storage = std::make_shared<Storage>();
  storage->data_ = static_cast<std::byte*>(memory);
  storage->bytes_ = bytes;
  count_held(static_cast<std::ptrdiff_t>(bytes));
  storage->owner_ = std::shared_ptr<const void>(memory, [bytes](const void* p) {
    std::free(const_cast<void*>(p));
    count_held(-static_cast<std::ptrdiff_t>(bytes));
  });
  return storage;
}

std::shared_ptr<Storage> Storage::borrow(std::byte* data, std::size_t bytes, std::shared_ptr<const void> owner,
                                         Device device) {
  auto storage = std::make_shared<Storage>();
  storage->data_ = data;
  storage->bytes_ = bytes;
  storage->owner_ = std::move(owner);
  storage->device_ = device;
  return storage;
}

namespace {

std::mutex taking_over;

}  // namespace

std::shared_ptr<Storage> Storage::remote(std::size_t bytes, std::shared_ptr<RemoteMemory> memory) {
  auto storage = std::make_shared<Storage>();
  storage->bytes_ = bytes;
  storage->owner_ = std::move(memory);
  storage->remote_ = true;
  return storage;
}

std::shared_ptr<RemoteMemory> Storage::remote() const {
  const std::lock_guard lock(taking_over);
  if (!remote_) return nullptr;
  return std::const_pointer_cast<RemoteMemory>(std::static_pointer_cast<const RemoteMemory>(owner_));
}

void Storage::take_over() const {
  const std::shared_ptr<RemoteMemory> memory = remote();
  if (!memory) return;  // another thread was faster
  const auto here = allocate(bytes_);
  CHECK(here, "no room for values of a device: " + here.error().message);
  const Status copied = memory->copy_to((*here)->data_);
  CHECK(copied, "values of a device are lost: " + copied.error().message);
  const std::lock_guard lock(taking_over);
  if (!remote_) return;
  data_ = (*here)->data_;
  owner_ = (*here)->owner_;
  remote_.store(false, std::memory_order_release);
}

Sizes row_major_strides(std::span<const std::int64_t> sizes) {
  Sizes strides(sizes.size());
  std::int64_t step = 1;
  for (std::size_t i = sizes.size(); i-- > 0;) {
    strides[i] = step;
    // Saturates, because sizes may come from a damaged file; reach() then refuses them.
    if (__builtin_mul_overflow(step, std::max<std::int64_t>(sizes[i], 1), &step)) step = INT64_MAX;
  }
  return strides;
}

Result<std::int64_t> reach(std::span<const std::int64_t> sizes, std::span<const std::int64_t> strides) {
  if (sizes.size() != strides.size())
    return input_error("tensor.size", fmt::format("{} sizes but {} strides", sizes.size(), strides.size()));
  std::int64_t last = 0;
  bool empty = false;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] < 0 || strides[i] < 0) return input_error("tensor.size", "negative size or stride");
    if (sizes[i] == 0) empty = true;
  }
  if (empty) return std::int64_t{0};
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    std::int64_t span;
    if (__builtin_mul_overflow(sizes[i] - 1, strides[i], &span) || __builtin_add_overflow(last, span, &last))
      return input_error("tensor.size", "size out of range");
  }
  return last + 1;
}

Result<bool> within_storage(const Tensor& t) {
  TRY(const std::int64_t elements, reach(t.sizes, t.strides));
  std::int64_t last;
  return t.offset >= 0 && !__builtin_add_overflow(t.offset, elements, &last) &&
         (elements == 0 || static_cast<std::uint64_t>(last) <= t.storage->bytes() / itemsize(t.dtype));
}

Result<std::size_t> byte_extent(DType dtype, std::span<const std::int64_t> sizes,
                                std::span<const std::int64_t> strides) {
  TRY(const std::int64_t reached, reach(sizes, strides));
  std::int64_t elements = 1, bytes;
  // Expanded tensors have more elements than memory, and their number is used in arithmetic too.
  for (std::int64_t n : sizes)
    if (__builtin_mul_overflow(elements, reached == 0 ? std::max<std::int64_t>(n, 1) : n, &elements))
      return input_error("tensor.size", "numel: integer multiplication overflow");
  if (__builtin_mul_overflow(reached, static_cast<std::int64_t>(itemsize(dtype)), &bytes))
    return input_error("tensor.size", "size out of range");
  return static_cast<std::size_t>(bytes);
}

Result<Tensor> Tensor::empty_strided(DType dtype, Sizes sizes, Sizes strides) {
  TRY(const std::size_t bytes, byte_extent(dtype, sizes, strides));
  TRY(auto storage, Storage::allocate(bytes));
  return Tensor{std::move(storage), dtype, std::move(sizes), std::move(strides)};
}

Result<Tensor> Tensor::empty(DType dtype, Sizes sizes) {
  Sizes strides = row_major_strides(sizes);
  return empty_strided(dtype, std::move(sizes), std::move(strides));
}

Result<Tensor> Tensor::zeros(DType dtype, Sizes sizes) {
  TRY(Tensor t, empty(dtype, std::move(sizes)));
  std::memset(t.storage->data(), 0, t.storage->bytes());
  return t;
}

std::int64_t Tensor::numel() const {
  return partita::numel(sizes);
}

std::int64_t numel(const Sizes& sizes) {
  std::int64_t n = 1;
  for (std::int64_t s : sizes) n *= s;
  return n;
}

bool Tensor::is_contiguous() const {
  std::int64_t step = 1;
  for (std::size_t i = sizes.size(); i-- > 0;) {
    if (sizes[i] == 0) return true;
    if (sizes[i] != 1 && strides[i] != step) return numel() == 0;
    step *= sizes[i];
  }
  return true;
}

Tensor Tensor::view_as(Sizes new_sizes, Sizes new_strides, std::int64_t new_offset) const {
  Tensor t = *this;
  t.sizes = std::move(new_sizes);
  t.strides = std::move(new_strides);
  t.offset = new_offset;
  return t;
}

namespace {

/// Copies n elements that lie `to` and `from` apart; d and s are the places of the first.
using CopyRow = std::function<void(std::int64_t d, std::int64_t s, std::int64_t n, std::int64_t to, std::int64_t from)>;

/// Calls row for runs along the innermost dimension. No template: it would be compiled for each pair of dtypes.
void for_each_row(const Tensor& dst, const Tensor& src, const CopyRow& row) {
  std::int64_t n = dst.numel();
  if (n == 0) return;
  std::size_t rank = dst.sizes.size();
  if (rank == 0) return row(0, 0, 1, 1, 1);
  std::int64_t inner = dst.sizes[rank - 1];
  Sizes index(rank, 0);
  std::int64_t d = 0, s = 0;
  constexpr std::int64_t most = 1 << 16;  // elements of a run, so that a cancel is soon heard
  const std::int64_t to = dst.strides[rank - 1], from = src.strides[rank - 1];
  for ([[maybe_unused]] std::int64_t line : steps(n / inner, inner)) {
    for (std::int64_t first : steps((inner + most - 1) / most, most))
      row(d + first * most * to, s + first * most * from, std::min(most, inner - first * most), to, from);
    for (std::size_t i = rank - 1; i-- > 0;) {
      if (++index[i] < dst.sizes[i]) {
        d += dst.strides[i];
        s += src.strides[i];
        break;
      }
      // A dimension of one element may have any stride.
      d -= dst.strides[i] * (dst.sizes[i] - 1);
      s -= src.strides[i] * (src.sizes[i] - 1);
      index[i] = 0;
    }
  }
}

/// Calls f(place in dst, place in src) for every element.
void for_each_element(const Tensor& dst, const Tensor& src, auto f) {
  for_each_row(dst, src, [&](auto d, auto s, auto n, auto ds, auto ss) {
    for (std::int64_t i = 0; i < n; ++i) f(d + i * ds, s + i * ss);
  });
}

/// Of one dtype.
void copy_bytes(const Tensor& dst, const Tensor& src) {
  const std::size_t width = itemsize(dst.dtype);
  std::byte* to = dst.data();
  const std::byte* from = src.data();
  if (dst.is_contiguous() && src.is_contiguous()) {
    std::memcpy(to, from, static_cast<std::size_t>(dst.numel()) * width);
    return;
  }
  for_each_row(dst, src, [&](auto d, auto s, auto n, auto ds, auto ss) {
    if (ds == 1 && ss == 1) {
      std::memcpy(to + d * width, from + s * width, n * width);
      return;
    }
    with_word(width, [&]<class Word>(Word) {
      Word* a = reinterpret_cast<Word*>(to) + d;
      const Word* b = reinterpret_cast<const Word*>(from) + s;
      for (std::int64_t i = 0; i < n; ++i) a[i * ds] = b[i * ss];
    });
  });
}

/// Into any dtype, from `load(place)`, which gives numbers of a type that C++ computes with.
void store_each(const Tensor& dst, const Tensor& src, auto load) {
  if (dst.dtype == DType::Complex32)
    return for_each_element(dst, src, [to = dst.as<Half>(), load](std::int64_t d, std::int64_t s) {
      const auto z = convert<std::complex<float>>(load(s));
      to[2 * d] = to_half(z.real());
      to[2 * d + 1] = to_half(z.imag());
    });
  if (is_float8(dst.dtype))
    return for_each_element(dst, src, [&, to = dst.as<std::uint8_t>()](std::int64_t d, std::int64_t s) {
      to[d] = to_float8(convert<float>(load(s)), dst.dtype);
    });
  dispatch(dst.dtype, [&]<class To>() {
    for_each_element(dst, src,
                     [to = dst.as<To>(), load](std::int64_t d, std::int64_t s) { to[d] = convert<To>(load(s)); });
  });
}

}  // namespace

void Tensor::copy_from(const Tensor& src) const {
  CHECK(sizes == src.sizes, "copy_from wants equal sizes");
  CHECK(reachable(device()) && reachable(src.device()),
        "copy_from between " + device().str() + " and " + src.device().str());
  if (numel() == 0) return;  // the storage may be empty
  if (dtype == src.dtype) return copy_bytes(*this, src);
  if (src.dtype == DType::Complex32)
    return store_each(*this, src, [from = src.as<Half>()](std::int64_t s) {
      return std::complex<float>(to_float(from[2 * s]), to_float(from[2 * s + 1]));
    });
  if (is_float8(src.dtype))
    return store_each(
        *this, src, [from = src.as<std::uint8_t>(), t = src.dtype](std::int64_t s) { return from_float8(from[s], t); });
  dispatch(src.dtype,
           [&]<class From>() { store_each(*this, src, [from = src.as<From>()](std::int64_t s) { return from[s]; }); });
}

Result<Tensor> Tensor::contiguous() const {
  if (is_contiguous()) return *this;
  return clone();
}

Result<Tensor> Tensor::clone() const {
  return to(dtype);
}

Result<Tensor> Tensor::to(DType other) const {
  TRY_DO(reachable(device()));
  const auto convertible = [](DType t, DType u) {
    return has_arithmetic(t) || (is_float8(t) && u != DType::Complex32) || (t == DType::Complex32 && !is_float8(u));
  };
  if (other != dtype && !(convertible(other, dtype) && convertible(dtype, other)))
    return unsupported("tensor.dtype", fmt::format("conversion of {} to {}", torch_name(dtype), torch_name(other)));
  TRY(Tensor out, empty(other, sizes));
  out.copy_from(*this);
  return out;
}

Result<Tensor> Tensor::scalar(DType dtype, double value) {
  if (dtype == DType::Complex32) {
    TRY(const Tensor single, scalar(DType::Complex64, value));
    return single.to(dtype);
  }
  if (!has_arithmetic(dtype)) return unsupported("tensor.dtype", fmt::format("numbers in {}", torch_name(dtype)));
  TRY(Tensor out, empty(dtype, {}));
  dispatch(dtype, [&]<class T>() { *out.as<T>() = convert<T>(value); });
  return out;
}

double Tensor::item_as_double(std::int64_t i) const {
  std::int64_t at = 0;
  for (std::size_t d = sizes.size(); d-- > 0;) {
    at += i % sizes[d] * strides[d];
    i /= sizes[d];
  }
  if (dtype == DType::Complex32) return to_float(as<Half>()[2 * at]);
  if (is_float8(dtype)) return from_float8(as<std::uint8_t>()[at], dtype);
  if (is_opaque(dtype)) return itemsize(dtype) == 1 ? as<std::uint8_t>()[at] : as<std::uint16_t>()[at];
  return dispatch(dtype, [&]<class T>() { return convert<double>(as<T>()[at]); });
}

}  // namespace partita

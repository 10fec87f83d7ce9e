#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/base/result.h"
#include "core/tensor/device.h"
#include "core/tensor/dtype.h"

namespace partita {

using Sizes = std::vector<std::int64_t>;
/// The number of elements of a tensor of these sizes.
std::int64_t numel(const Sizes& sizes);

/// Checks that the device is the CPU, in whose memory all copying and computing is done. Error tensor.device for any
/// other.
Status reachable(Device device);

/// The bytes behind a tensor, shared by all its views. 64-byte aligned, so that vector code may use aligned loads.
/// Memory that this process cannot address: a device's.
class RemoteMemory {
 public:
  virtual ~RemoteMemory() = default;
  virtual std::uint64_t address() const = 0;  ///< on the device
  /// Waits for what writes it. Copies all of it.
  virtual Status copy_to(std::byte* to) = 0;
};

class Storage {
 public:
  static constexpr std::size_t alignment = 64;
  /// Zero-filled if `zero`, else uninitialised. Errors: tensor.out_of_memory when the system refuses; those of
  /// reachable().
  static Result<std::shared_ptr<Storage>> allocate(std::size_t bytes, bool zero = false, Device device = {});
  /// Uses bytes that `owner` owns (a mapped file) and keeps `owner` alive.
  static std::shared_ptr<Storage> borrow(std::byte* data, std::size_t bytes, std::shared_ptr<const void> owner,
                                         Device device = {});

  /// Bytes that a device has. The first data() copies them here, and from then on they are an ordinary storage's.
  static std::shared_ptr<Storage> remote(std::size_t bytes, std::shared_ptr<RemoteMemory> memory);

  /// Remote memory that cannot be copied or has no room here ends the process.
  std::byte* data() const {
    if (remote_.load(std::memory_order_acquire)) [[unlikely]]
      take_over();
    return data_;
  }
  /// The device's memory; null once data() was asked for, and of other storages.
  std::shared_ptr<RemoteMemory> remote() const;
  std::size_t bytes() const { return bytes_; }
  Device device() const { return device_; }

 private:
  void take_over() const;

  mutable std::atomic<bool> remote_ = false;
  mutable std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
  mutable std::shared_ptr<const void> owner_;  ///< of a remote storage its RemoteMemory
  Device device_;
};

/// A strided view of a storage, as torch.Tensor. A value type: copying shares the storage.
struct Tensor {
  std::shared_ptr<Storage> storage;
  DType dtype = DType::Float32;
  Sizes sizes;
  Sizes strides;            ///< in elements
  std::int64_t offset = 0;  ///< in elements
  bool requires_grad = false;

  /// Row-major, uninitialised.
  static Result<Tensor> empty(DType dtype, Sizes sizes);
  static Result<Tensor> zeros(DType dtype, Sizes sizes);
  /// Allocates exactly the memory that sizes and strides reach (stride 0 is allowed), uninitialised.
  static Result<Tensor> empty_strided(DType dtype, Sizes sizes, Sizes strides);
  static Result<Tensor> scalar(DType dtype, double value);

  Device device() const { return storage ? storage->device() : Device(); }
  std::int64_t dim() const { return static_cast<std::int64_t>(sizes.size()); }
  std::int64_t numel() const;
  bool is_contiguous() const;  ///< row-major, sizes of 1 ignored
  std::byte* data() const { return storage->data() + offset * static_cast<std::int64_t>(itemsize(dtype)); }
  template <class T>
  T* as() const {
    static_assert(!std::is_same_v<T, bool>, "bools are stored as StoredBool");
    return reinterpret_cast<T*>(data());
  }

  /// The same storage with other sizes, strides and offset.
  Tensor view_as(Sizes new_sizes, Sizes new_strides, std::int64_t new_offset) const;
  /// The tensor itself if it is contiguous, else a row-major copy. Copies have the errors of reachable() and
  /// allocate().
  Result<Tensor> contiguous() const;
  Result<Tensor> clone() const;  ///< row-major copy
  /// Row-major copy in another dtype, as Tensor.to(dtype): floats truncate towards zero, anything non-zero is true.
  Result<Tensor> to(DType other) const;
  /// Overwrites this view's elements by src's, converted to this dtype. Sizes must be equal (no broadcasting), the
  /// memory may not overlap, and both tensors must be reachable().
  void copy_from(const Tensor& src) const;
  /// The element at row-major position i as double (real part of complex).
  double item_as_double(std::int64_t i = 0) const;
};

/// A size of 0 counts as 1, as in PyTorch.
Sizes row_major_strides(std::span<const std::int64_t> sizes);
/// The number of storage elements that sizes and strides reach from offset 0; 0 when the tensor is empty. Error
/// tensor.size on overflow or negative numbers.
Result<std::int64_t> reach(std::span<const std::int64_t> sizes, std::span<const std::int64_t> strides);
/// Does every element lie within the storage? Error as reach().
Result<bool> within_storage(const Tensor& t);

}  // namespace partita

#pragma once
// Walks a tensor line by line, for reductions and scans.
#include <cmath>

#include "core/ops/kernels/accumulate_type.h"
#include "core/ops/record/promote.h"
#include "core/tensor/convert.h"

namespace partita {

/// Half types as float, others as they are.
template <class T>
using Comparable = std::conditional_t<std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>, float, T>;

/// Which of `rank` dimensions the argument `dim` (an int, a list, None) names. None and an empty list mean all; but for
/// any.dims and all.dims an empty list means none.
std::vector<bool> reduced_dims(const auto& call, std::size_t rank) {
  std::vector<bool> reduced(std::max<std::size_t>(rank, 1), false);
  Sizes dims;
  if (call.schema.index_of("dim") >= 0 && call.has("dim")) dims = call.integers("dim");
  const bool nothing = rank > 0 && call.schema.name.ends_with(".dims") && call.has("dim");
  if (dims.empty() && !nothing) reduced.assign(reduced.size(), true);
  for (std::int64_t d : dims) {
    std::size_t w = wrap_dim(d, rank);
    if (reduced[w]) fail("dim " + std::to_string(w) + " appears multiple times in the list of dims");
    reduced[w] = true;
  }
  return reduced;
}

/// The call's `keepdim` argument; false where the schema has none.
bool keeps_dim(const auto& call) {
  return call.schema.index_of("keepdim") >= 0 && call.boolean("keepdim");
}

template <class T>
bool is_nan([[maybe_unused]] T v) {
  if constexpr (std::is_floating_point_v<T>)
    return std::isnan(v);
  else
    return false;
}

/// The dtype whose elements are T.
template <class T>
constexpr DType dtype_of() {
  if constexpr (std::is_same_v<T, StoredBool>)
    return DType::Bool;
  else if constexpr (std::is_same_v<T, float>)
    return DType::Float32;
  else if constexpr (std::is_same_v<T, double>)
    return DType::Float64;
  else if constexpr (std::is_same_v<T, std::complex<float>>)
    return DType::Complex64;
  else if constexpr (std::is_same_v<T, std::complex<double>>)
    return DType::Complex128;
  else if constexpr (std::is_signed_v<T>)
    return sizeof(T) == 1 ? DType::Int8 : sizeof(T) == 2 ? DType::Int16 : sizeof(T) == 4 ? DType::Int32 : DType::Int64;
  else
    return sizeof(T) == 1   ? DType::UInt8
           : sizeof(T) == 2 ? DType::UInt16
           : sizeof(T) == 4 ? DType::UInt32
                            : DType::UInt64;
}

/// The elements that are reduced to one output. each() visits their offsets from data() in row-major order.
class Line {
 public:
  Line(const Sizes& sizes, const Sizes& strides) : sizes_(sizes), strides_(strides) {
    for (std::size_t d = 0; d < sizes_.size(); ++d) {
      length_ *= sizes_[d];
      if (sizes_[d] == 1) strides_[d] = 0;  // it may be any number
    }
  }
  std::int64_t length() const { return length_; }
  void start_at(std::int64_t offset) { start_ = offset; }

  void each(auto f) const {
    if (length_ == 0) return;
    std::size_t rank = sizes_.size();
    if (rank == 0) return f(start_);
    Sizes at(rank, 0);
    std::int64_t offset = start_, inner = sizes_[rank - 1], step = strides_[rank - 1];
    for ([[maybe_unused]] std::int64_t run : steps(length_ / inner, inner)) {
      for (std::int64_t i : steps(inner)) f(offset + i * step);
      for (std::size_t d = rank - 1; d-- > 0;) {
        offset += strides_[d];
        if (++at[d] < sizes_[d]) break;
        offset -= strides_[d] * sizes_[d];
        at[d] = 0;
      }
    }
  }

 private:
  Sizes sizes_, strides_;
  std::int64_t start_ = 0, length_ = 1;
};

/// Calls f(i, line) for every output i, in row-major order of the dimensions that are kept.
void for_each_line(const Tensor& in, const std::vector<bool>& reduced, auto f) {
  Sizes kept, kept_strides, gone, gone_strides;
  for (std::size_t d = 0; d < in.sizes.size(); ++d) {
    (reduced[d] ? gone : kept).push_back(in.sizes[d]);
    (reduced[d] ? gone_strides : kept_strides).push_back(in.strides[d]);
  }
  Line line(gone, gone_strides);
  std::int64_t i = 0;
  Line(kept, kept_strides).each([&](std::int64_t offset) {
    line.start_at(offset);
    f(i++, line);
  });
}

/// The sizes after a reduction.
template <class List>
List reduced_sizes(const List& sizes, const std::vector<bool>& reduced, bool keepdim) {
  List out;
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    if (!reduced[d])
      out.push_back(sizes[d]);
    else if (keepdim)
      out.push_back(1);
  }
  return out;
}

}  // namespace partita

#pragma once
#include <initializer_list>
#include <string>
#include <vector>

#include "core/tensor/value.h"

namespace partita::testing {

/// A row-major tensor of these values.
inline Tensor tensor(DType dtype, Sizes sizes, const std::vector<double>& values) {
  Tensor wide = *Tensor::empty(DType::Float64, std::move(sizes));
  for (std::size_t i = 0; i < values.size(); ++i) wide.as<double>()[i] = values[i];
  return *wide.to(dtype);
}
inline Tensor f32(Sizes sizes, const std::vector<double>& values) {
  return tensor(DType::Float32, std::move(sizes), values);
}
inline Tensor i64(Sizes sizes, const std::vector<double>& values) {
  return tensor(DType::Int64, std::move(sizes), values);
}

/// Elements in row-major order; one for a number; empty for anything else.
inline std::vector<double> elements(const Value& v) {
  std::vector<double> out;
  if (const auto* t = v.get<Tensor>())
    for (std::int64_t i = 0; i < t->numel(); ++i) out.push_back(t->item_as_double(i));
  if (const auto* i = v.get<std::int64_t>()) out.push_back(static_cast<double>(*i));
  if (const auto* d = v.get<double>()) out.push_back(*d);
  return out;
}

}  // namespace partita::testing

#pragma once
// Arithmetic of those PyTorch kernels for half types that compute in the tensor's own type.
#include <cmath>
#include <utility>

#include "core/ops/kernels/outputs.h"

namespace partita::kernels {

/// A number of a half type. Each result is rounded to it, and so are other numbers that it is combined with.
template <DType dtype>
class Narrow {
 public:
  Narrow() = default;
  template <class N>
    requires std::is_arithmetic_v<N>
  Narrow(N v) : value_(rounded(dtype, static_cast<float>(v))) {}
  template <class N>
    requires std::is_arithmetic_v<N>
  explicit operator N() const {
    return static_cast<N>(value_);
  }

  friend Narrow operator+(Narrow a, Narrow b) { return a.value_ + b.value_; }
  friend Narrow operator-(Narrow a, Narrow b) { return a.value_ - b.value_; }
  friend Narrow operator*(Narrow a, Narrow b) { return a.value_ * b.value_; }
  friend Narrow operator/(Narrow a, Narrow b) { return a.value_ / b.value_; }
  friend Narrow operator-(Narrow a) { return -a.value_; }
  Narrow& operator+=(Narrow b) { return *this = *this + b; }
  friend bool operator==(Narrow a, Narrow b) { return a.value_ == b.value_; }
  friend auto operator<=>(Narrow a, Narrow b) { return a.value_ <=> b.value_; }
  friend Narrow floor(Narrow a) { return std::floor(a.value_); }
  friend Narrow trunc(Narrow a) { return std::trunc(a.value_); }
  friend Narrow nearbyint(Narrow a) { return std::nearbyint(a.value_); }
  friend Narrow abs(Narrow a) { return std::abs(a.value_); }
  friend bool isfinite(Narrow a) { return std::isfinite(a.value_); }

 private:
  float value_ = 0;
};

/// Calls f.operator()<T, S>(): T computes as a tensor of dtype `t` does, S is the type of load()'s elements
/// (evaluation_dtype).
decltype(auto) dispatch_narrow(DType t, const char* what, auto&& f) {
  if (t == DType::BFloat16) return f.template operator()<Narrow<DType::BFloat16>, float>();
  if (t == DType::Float16) return f.template operator()<Narrow<DType::Float16>, float>();
  return dispatch_floating(t, what, [&]<class T>() { return f.template operator()<T, T>(); });
}

}  // namespace partita::kernels

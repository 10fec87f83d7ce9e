#pragma once
#include <complex>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "core/tensor/tensor.h"

namespace partita {

struct Value;
using ValueList = std::vector<Value>;

/// The value of a node at run time. Lists and tuples are the same here.
struct Value {
  std::variant<std::monostate, bool, std::int64_t, double, std::complex<double>, std::string, Tensor, DType, Device,
               Layout, MemoryFormat, ValueList>
      v;

  Value() = default;
  // Written once: for a variant they are long code, which every file with values would have again.
  Value(const Value&);
  Value(Value&&) noexcept;
  Value& operator=(const Value&);
  Value& operator=(Value&&) noexcept;
  ~Value();
  template <class T>
    requires(!std::is_same_v<std::decay_t<T>, Value>)
  Value(T&& value) : v(std::forward<T>(value)) {}

  template <class T>
  const T* get() const {
    return std::get_if<T>(&v);
  }
  bool is_none() const { return v.index() == 0; }
};

}  // namespace partita

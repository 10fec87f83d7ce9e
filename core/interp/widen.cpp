#include "core/interp/widen.h"

namespace partita {

DType widened(DType t) {
  return is_complex(t) ? DType::Complex128 : is_floating(t) ? DType::Float64 : t;
}

Result<Value> widened(Value v) {
  if (auto* list = std::get_if<ValueList>(&v.v)) {
    for (Value& item : *list) {
      TRY(item, widened(std::move(item)));
    }
    return v;
  }
  const auto* t = v.get<Tensor>();
  if (!t || widened(t->dtype) == t->dtype) return v;
  // Strides are kept: what a view means depends on them.
  TRY(Tensor wide, Tensor::empty_strided(widened(t->dtype), t->sizes, t->strides));
  TRY(const Tensor values, t->to(wide.dtype));
  wide.copy_from(values);
  return Value(std::move(wide));
}

}  // namespace partita

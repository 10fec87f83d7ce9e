#include "core/ir/extent.h"

#include <fmt/format.h>

#include "core/base/raise.h"
#include "core/tensor/storage_extent.h"

namespace partita {

Status check_extent(const TensorMeta& meta) {
  for (const SymList* list : {&meta.sizes, &meta.strides})
    for (const SymExpr& e : *list)
      if (e.is_float() || e.is_boolean())
        return input_error("tensor.size", fmt::format("'{}' is no integer; sizes and strides are", e.str()));
  TRY_DO(catch_raised<void>([&] {
    byte_size(meta);
    return Status();
  }));
  const auto sizes = concrete(meta.sizes), strides = concrete(meta.strides);
  if (!sizes || !strides) return {};
  const auto bytes = byte_extent(meta.dtype, *sizes, *strides);
  return bytes ? Status() : Status(bytes.error());
}

}  // namespace partita

#pragma once
// Dtypes, devices and layouts in archives (core/base/archive.h).
#include "core/base/archive.h"
#include "core/tensor/device.h"
#include "core/tensor/dtype.h"

namespace partita {

void fields(auto& a, DType& t) {
#define V(...) +1
  constexpr std::size_t dtypes = 0 PARTITA_DTYPES(V);
#undef V
  a.choice(t, dtypes);
}
void fields(auto& a, Device& d) {
  a.choice(d.type, 4);
  a(d.index);
}
void fields(auto& a, Layout& l) {
  a.choice(l, 4);
}
void fields(auto& a, MemoryFormat& f) {
  a.choice(f, 4);
}

}  // namespace partita

#pragma once
// Dtypes, devices and layouts in archives (core/base/archive.h).
#include "core/base/archive.h"
#include "core/tensor/device.h"
#include "core/tensor/dtype.h"

namespace partita {

template <class A>
void fields(A& a, DType& t) {
#define V(...) +1
  constexpr std::size_t dtypes = 0 PARTITA_DTYPES(V);
#undef V
  a.choice(t, dtypes);
}
template <class A>
void fields(A& a, Device& d) {
  a.choice(d.type, 4);
  a(d.index);
}
template <class A>
void fields(A& a, Layout& l) {
  a.choice(l, 4);
}
template <class A>
void fields(A& a, MemoryFormat& f) {
  a.choice(f, 4);
}

}  // namespace partita

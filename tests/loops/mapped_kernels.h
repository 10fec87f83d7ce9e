#pragma once
// Kernels whose threads work together, for the verifier, the executor and the compilers.
#include "core/loops/loop.h"

namespace partita::loops::testing {

inline SymExpr var(const char* name) {
  return SymExpr::symbol(name);
}

/// t[i] = x[i] + x[i]; barrier; out[i] = t[n - 1 - i], over all threads.
inline Kernel reversed(std::int64_t n) {
  Kernel k;
  k.name = "reversed";
  k.buffers = {{"x", DType::Float32, n, Buffer::Role::Input},
               {"t", DType::Float32, n, Buffer::Role::Output},
               {"out", DType::Float32, n, Buffer::Role::Output}};
  ScalarBuilder& s = k.scalars;
  const Scalar x = s.load(0, var("i0"), DType::Float32);
  const Scalar t = s.load(1, SymExpr(n - 1) - var("i1"), DType::Float32);
  k.body = {Loop{"i0", n, Mapping::Thread, true, {}, {Store{1, var("i0"), {}, s.Add(x, x)}}}, Barrier{},
            Loop{"i1", n, Mapping::Thread, true, {}, {Store{2, var("i1"), {}, t}}}};
  return k;
}

/// Each group reverses a row in memory that it shares, two elements at a time, and sums up the row.
inline Kernel reversed_rows(std::int64_t rows, std::int64_t half) {
  const std::int64_t n = 2 * half;
  Kernel k;
  k.name = "reversed_rows";
  k.buffers = {{"x", DType::Float32, rows * n, Buffer::Role::Input},
               {"row", DType::Float32, n, Buffer::Role::Scratch, Buffer::Scope::Block},
               {"out", DType::Float32, rows * n, Buffer::Role::Output},
               {"sum", DType::Float32, rows, Buffer::Role::Output}};
  k.accumulators = {{ScalarOp::Add, DType::Float32, 0}};
  ScalarBuilder& s = k.scalars;
  const SymExpr from = var("i1") * 2 + var("i2"), to = var("i3");
  const Scalar x = s.load(0, var("i0") * n + from, DType::Float32);
  const Scalar turned = s.load(1, SymExpr(n - 1) - to, DType::Float32);
  k.body = {
      Loop{"i0",
           rows,
           Mapping::Block,
           false,
           {},
           {Loop{"i1",
                 half,
                 Mapping::Thread,
                 false,
                 {},
                 {Loop{"i2", 2, Mapping::Unroll, false, {}, {Store{1, from, {}, x}}}}},
            Barrier{},
            Loop{"i3", n, Mapping::Thread, false, {0}, {Store{2, var("i0") * n + to, {}, turned}, Reduce{0, turned}}},
            Store{3, var("i0"), {}, s.input(0, DType::Float32)}}}};
  return k;
}

/// out[at[i]] += 1, atomically.
inline Kernel counts(std::int64_t n, std::int64_t places) {
  Kernel k;
  k.name = "counts";
  k.buffers = {{"at", DType::Int64, n, Buffer::Role::Input}, {"out", DType::Int64, places, Buffer::Role::Output}};
  ScalarBuilder& s = k.scalars;
  const Scalar at = s.load(0, var("i0"), DType::Int64);
  k.body = {Loop{
      "i0", n, Mapping::Thread, false, {}, {Store{1, 0, at, s.constant_int(DType::Int64, 1), Accumulate::Atomic}}}};
  return k;
}

}  // namespace partita::loops::testing

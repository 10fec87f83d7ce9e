#pragma once
// The notation in which records write scalar bodies: body<[](In& x) { return x[0] * Sigmoid(x[0]); }>.
#include "core/ops/record/pointwise.h"
#include "core/ops/record/promote.h"

namespace partita {

/// A scalar together with its builder, so that arithmetic can be written with operators.
struct V {
  loops::ScalarBuilder* b = nullptr;
  loops::Scalar s;

  DType dtype() const { return b->dtype(s); }
  V constant(double value) const { return {b, b->constant(dtype(), value)}; }
  V as(DType t) const { return {b, b->cast(s, t)}; }
};

/// The inputs of a body, and the call that it is made for.
class In {
 public:
  In(loops::ScalarBuilder& b, std::span<const loops::Scalar> inputs, const FakeCall& call)
      : call(call), b_(b), inputs_(inputs) {}

  const FakeCall& call;

  V operator[](std::size_t i) const { return {&b_, inputs_[i]}; }
  /// The value of Pointwise::condition, which comes after the inputs.
  V condition() const { return {&b_, inputs_.back()}; }
  bool has(std::size_t i) const { return inputs_[i].id >= 0; }
  /// A number that takes no part in promotion (alpha, negative_slope), as a constant in the computation dtype.
  V number(std::string_view name) const { return {&b_, partita::constant(b_, call, name, first())}; }
  /// Rounds a value to the half type that the tensors promote to; for wider dtypes the value is unchanged. Is used
  /// where PyTorch's kernel for half types keeps an intermediate value in the half type.
  V kept(V v) const {
    std::vector<Operand> operands;
    for (std::string_view name : {"self", "other"})
      if (call.schema.index_of(name) >= 0 && call.is_tensor(name)) operands.push_back(Operand::of(call.tensor(name)));
    const DType type = result_type(operands);
    return type == DType::BFloat16 || type == DType::Float16 ? v.as(type).as(v.dtype()) : v;
  }
  V constant(double value) const { return {&b_, b_.constant(b_.dtype(first()), value)}; }

 private:
  loops::Scalar first() const {
    for (loops::Scalar s : inputs_)
      if (s.id >= 0) return s;
    CHECK(false, "a body without inputs");
  }
  loops::ScalarBuilder& b_;
  std::span<const loops::Scalar> inputs_;
};

template <auto f>
loops::Scalar body(loops::ScalarBuilder& b, std::span<const loops::Scalar> inputs, const FakeCall& call) {
  In in(b, inputs, call);
  return f(in).s;
}

// A function for each row of scalar_ops.def: Exp(x), Max(x, y). A number takes the dtype of the first argument.
#define SCALAR_OP(name, ...)                                       \
  inline V name(V a) {                                             \
    return {a.b, a.b->make(loops::ScalarOp::name, a.s)};           \
  }                                                                \
  inline V name(V a, V c) {                                        \
    return {a.b, a.b->make(loops::ScalarOp::name, a.s, c.s)};      \
  }                                                                \
  inline V name(V a, double c) {                                   \
    return name(a, a.constant(c));                                 \
  }                                                                \
  inline V name(V a, V c, V d) {                                   \
    return {a.b, a.b->make(loops::ScalarOp::name, a.s, c.s, d.s)}; \
  }
#include "core/loops/scalar_ops.def"
#undef SCALAR_OP

#define PARTITA_OPERATOR(symbol, name)      \
  inline V operator symbol(V a, V c) {      \
    return name(a, c);                      \
  }                                         \
  inline V operator symbol(V a, double c) { \
    return name(a, a.constant(c));          \
  }                                         \
  inline V operator symbol(double a, V c) { \
    return name(c.constant(a), c);          \
  }
PARTITA_OPERATOR(+, Add)
PARTITA_OPERATOR(-, Sub)
PARTITA_OPERATOR(*, Mul)
PARTITA_OPERATOR(/, Div)
PARTITA_OPERATOR(<, Lt)
PARTITA_OPERATOR(<=, Le)
PARTITA_OPERATOR(==, Eq)
PARTITA_OPERATOR(!=, Ne)
PARTITA_OPERATOR(&&, BitAnd)
PARTITA_OPERATOR(||, BitOr)
#undef PARTITA_OPERATOR
inline V operator>(V a, V c) {
  return Lt(c, a);
}
inline V operator>(V a, double c) {
  return Lt(a.constant(c), a);
}
inline V operator>=(V a, V c) {
  return Le(c, a);
}
inline V operator>=(V a, double c) {
  return Le(a.constant(c), a);
}
inline V operator-(V a) {
  return Neg(a);
}
inline V operator!(V a) {
  return BitNot(a);
}
inline V where(V condition, V a, V c) {
  return {a.b, a.b->where(condition.s, a.s, c.s)};
}
inline V where(V condition, V a, double c) {
  return where(condition, a, a.constant(c));
}
inline V where(V condition, double a, V c) {
  return where(condition, c.constant(a), c);
}

}  // namespace partita

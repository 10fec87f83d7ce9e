#include "core/ops/families/lower_index.h"

#include "core/loops/loop.h"

namespace partita::loops {

Reach::Reach(const LowerCall& call, LoweredTensor indices, std::size_t dim, SymExpr size, bool wraps, bool checked)
    : index(std::move(indices)),
      bound{call.to.origin, "index {} is out of bounds for dimension " + std::to_string(dim) + " with size {}", size,
            wraps},
      checked(checked) {
  // Compiled loops would not read indices into size 1. The call stays a call, which reports one that is out of range.
  if (!call.evaluates && (size.is(0) || (checked && size.is(1))))
    fail_unsupported("indices into a dimension of size " + size.str());
  if (size.is(0) && !index.numel().is(0)) fail("index is out of bounds for dimension with size 0");
}

SymExpr Reach::position(Body& body, const Index& at) const {
  ScalarBuilder& b = body.b;
  Scalar i = b.cast(body.read(index, at), DType::Int64);
  Scalar zero = b.constant_int(DType::Int64, 0);
  if (bound.wraps) i = b.where(b.Lt(i, zero), b.Add(i, b.index(bound.size)), i);
  if (checked) return body.indirect(b.within(i, bound), bound.size);
  return body.indirect(b.Max(b.Min(i, b.index(bound.size - 1)), zero), bound.size);
}

LoweredTensor integer_index(LowerCall& call, std::string_view name) {
  LoweredTensor index = call.in(name);
  if (!is_integral(index.dtype)) fail_unsupported("an index of " + std::string(torch_name(index.dtype)));
  return index;
}

LoweredTensor as_vector(LowerCall& call, const LoweredTensor& t) {
  return t.dim() == 0 ? call.to.reshape(t, {1}) : t;
}

ElementFunction number_value(const LowerCall& call, std::string_view name, DType dtype) {
  return [dtype, n = call.evaluates ? call.FakeCall::number(name) : call.number(name)](Body& body, const Index&) {
    ScalarBuilder& b = body.b;
    if (const auto* whole = std::get_if<std::int64_t>(&n)) return b.constant_int(dtype, *whole);
    const Scalar real = b.constant(dtype, as_double(n));
    const auto* z = std::get_if<std::complex<double>>(&n);
    if (!z || !is_complex(dtype)) return real;
    const Scalar i = b.Sqrt(b.constant(dtype, -1));
    return b.Add(real, b.Mul(b.constant(dtype, z->imag()), i));
  };
}

Write whole(const LoweredTensor& t) {
  return {t.sizes, [t](Body& body, const Index& i) { return body.read(t, i); },
          [](Body&, const Index& i) { return i; }};
}

Combination combination(const std::string& name) {
  if (name == "add" || name == "sum") return {ScalarOp::Add};
  if (name == "multiply" || name == "prod") return {ScalarOp::Mul};
  if (name == "mean") return {ScalarOp::Add, true};
  if (name == "amax") return {ScalarOp::Max};
  if (name == "amin") return {ScalarOp::Min};
  fail("reduce argument must be either sum, prod, mean, amax or amin, got " + name + ".");
}

LoweredTensor replaced(LowerCall& call, const LoweredTensor& self, const Put& put) {
  const auto value = [=, dtype = self.dtype](Body& body, const Index& i) {
    return body.b.cast(put.value(body, i), dtype);
  };
  std::vector<Write> writes{whole(self)};
  if (!product(put.sizes).is(0)) writes.push_back({put.sizes, value, put.place, false, true});
  return call.to.writes(self.dtype, self.sizes, std::move(writes));
}

LoweredTensor combined(LowerCall& call, const LoweredTensor& self, const Put& put, Combination how, bool from_self) {
  const DType dtype = opmath_dtype(self.dtype);
  const bool inexact = is_floating(dtype) || is_complex(dtype);
  if (is_complex(dtype) && how.op != ScalarOp::Add && how.op != ScalarOp::Mul)
    fail_unsupported("extremes of complex numbers");
  if (!call.evaluates && how.op != ScalarOp::Add) fail_unsupported("products and extremes at indices");
  if (!call.evaluates && how.mean && (!is_floating(self.dtype) || itemsize(self.dtype) < 4))
    fail_unsupported("means of " + std::string(torch_name(self.dtype)) + " at indices");
  const LoweredTensor base = call.to.cast(self, dtype);
  std::vector<Write> writes{whole(base)};
  if (!from_self && !product(put.sizes).is(0)) {
    const auto start = [=, start = identity(how.op, dtype)](Body& body, const Index&) {
      return inexact ? body.b.constant(dtype, start) : body.b.constant_int(dtype, integer_start(dtype, start));
    };
    writes.push_back({put.sizes, start, put.place, false, true});
  }
  const auto value = [=](Body& body, const Index& i) { return body.b.cast(put.value(body, i), dtype); };
  if (!product(put.sizes).is(0)) writes.push_back({put.sizes, value, put.place, true, true, how.op});
  const LoweredTensor sums = call.to.writes(dtype, base.sizes, std::move(writes));
  if (!how.mean) return sums;
  const DType divided = inexact ? dtype : DType::Int64;
  const auto one = [divided](Body& body, const Index&) { return body.b.constant(divided, 1); };
  const LoweredTensor counts = combined(call, call.to.constant(divided, self.sizes, from_self ? 1 : 0),
                                        {put.sizes, one, put.place}, {ScalarOp::Add});
  return pointwise(call.to, divided, divided, {sums, counts}, [inexact](ScalarBuilder& b, auto v) {
    const Scalar n = b.where(b.Eq(v[1], b.constant(b.dtype(v[1]), 0)), b.constant(b.dtype(v[1]), 1), v[1]);
    return inexact ? b.Div(v[0], n) : b.FloorDiv(v[0], n);
  });
}

}  // namespace partita::loops

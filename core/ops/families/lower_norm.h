#pragma once
// Lowerings of normalisations share this.
#include "core/ops/record/lower_call.h"
#include "core/ops/record/promote.h"

namespace partita::loops {

/// Arithmetic on tensors in one dtype, with broadcasting.
struct Arithmetic {
  Lowering& to;
  DType dtype;

  LoweredTensor operator()(const std::vector<LoweredTensor>& inputs, ScalarFunction f) const {
    return pointwise(to, dtype, dtype, inputs, std::move(f));
  }
  LoweredTensor sum(const LoweredTensor& t, const std::vector<bool>& reduced) const {
    return to.reduce(t, ScalarOp::Add, reduced);
  }
  LoweredTensor mean(const LoweredTensor& t, const std::vector<bool>& reduced) const {
    SymExpr n = 1;
    for (std::size_t d = 0; d < reduced.size(); ++d)
      if (reduced[d]) n = n * t.sizes[d];
    return (*this)({sum(t, reduced)}, [=](ScalarBuilder& b, auto x) { return b.Div(x[0], b.count(b.dtype(x[0]), n)); });
  }
  LoweredTensor mul(const LoweredTensor& a, const LoweredTensor& b) const {
    return (*this)({a, b}, [](ScalarBuilder& s, auto x) { return s.Mul(x[0], x[1]); });
  }
  LoweredTensor sub(const LoweredTensor& a, const LoweredTensor& b) const {
    return (*this)({a, b}, [](ScalarBuilder& s, auto x) { return s.Sub(x[0], x[1]); });
  }
  LoweredTensor square(const LoweredTensor& a) const {
    return (*this)({a}, [](ScalarBuilder& s, auto x) { return s.Mul(x[0], x[0]); });
  }
  LoweredTensor rsqrt(const LoweredTensor& a, double eps) const {
    return (*this)({a}, [=](ScalarBuilder& b, auto x) { return b.Rsqrt(b.Add(x[0], b.constant(b.dtype(x[0]), eps))); });
  }
};

/// In the dtype in which sums of t are made. Refuses whole and complex numbers.
inline Arithmetic arithmetic(LowerCall& call, const LoweredTensor& t) {
  if (!is_floating(t.dtype)) fail_unsupported("normalisation of " + std::string(torch_name(t.dtype)));
  return {call.to, opmath_dtype(t.dtype)};
}

/// The mean of each group of elements, and the sum of squared distances from it.
struct GroupMoments {
  LoweredTensor mean, squares;
};

/// Of the groups that span the `reduced` dimensions. Those of a group follow from those of its elements at each index
/// of `parts`, a part of `reduced` (Chan, Golub and LeVeque, Updating formulae and a pairwise algorithm for computing
/// sample variances, 1979), unless these are few.
inline GroupMoments moments_by_parts(const Arithmetic& make, const LoweredTensor& x, const std::vector<bool>& reduced,
                                     const std::vector<bool>& parts) {
  const auto over = [&](const std::vector<bool>& mask) {
    const LoweredTensor mean = make.mean(x, mask);
    return GroupMoments{mean, make.sum(make.square(make.sub(x, mean)), mask)};
  };
  std::vector<bool> inner = reduced;
  SymExpr elements = 1;
  for (std::size_t d = 0; d < x.dim(); ++d) {
    if (parts[d]) inner[d] = false;
    if (inner[d]) elements = elements * x.sizes[d];
  }
  constexpr std::int64_t few_elements = 64;
  if (inner == reduced || make.to.hint(elements) < few_elements) return over(reduced);
  const GroupMoments part = over(inner);
  const LoweredTensor mean = make.mean(part.mean, parts);
  const LoweredTensor between = make.sum(make.square(make.sub(part.mean, mean)), parts);
  return {mean, make({make.sum(part.squares, parts), between}, [=](ScalarBuilder& b, auto v) {
            return b.Add(v[0], b.Mul(v[1], b.count(b.dtype(v[1]), elements)));
          })};
}

/// centred * rstd * weight + bias; operands that are not valid are left out.
inline LoweredTensor affine(const Arithmetic& make, const LoweredTensor& centred, const LoweredTensor& rstd,
                            const LoweredTensor& weight, const LoweredTensor& bias) {
  LoweredTensor y = rstd.valid() ? make.mul(centred, rstd) : centred;
  if (weight.valid()) y = make.mul(y, weight);
  if (bias.valid()) y = make({y, bias}, [](ScalarBuilder& b, auto x) { return b.Add(x[0], x[1]); });
  return y;
}

/// Gives a result where it is wanted, else none.
void give_if(LowerCall& call, bool wanted, auto make) {
  return wanted ? call.give(make()) : call.give_none();
}

/// An argument that may be None; then not valid.
inline LoweredTensor optional(LowerCall& call, std::string_view name) {
  return call.has(name) ? call.in(name) : LoweredTensor();
}

}  // namespace partita::loops

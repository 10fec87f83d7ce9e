// special_i0e of half types, as PyTorch's CPU kernel computes it: whole vectors in float32; the elements left over at
// the end of a contiguous run by the Chebyshev series of Cephes (i0e.c), with every step rounded to the half type.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/ops/families/bessel.h"
#include "core/ops/families/special.h"
#include "core/ops/kernels/narrow.h"

namespace partita {
namespace {

constexpr std::int64_t lanes = 32;  ///< elements per iteration of PyTorch's loop: two vectors of a half type

/// Coefficients for |x| in [0, 8].
constexpr double near_zero[] = {
    -4.41534164647933937950E-18, 3.33079451882223809783E-17, -2.43127984654795469359E-16, 1.71539128555513303061E-15,
    -1.16853328779934516808E-14, 7.67618549860493561688E-14, -4.85644678311192946090E-13, 2.95505266312963983461E-12,
    -1.72682629144155570723E-11, 9.67580903537323691224E-11, -5.18979560163526290666E-10, 2.65982372468238665035E-9,
    -1.30002500998624804212E-8,  6.04699502254191894932E-8,  -2.67079385394061173391E-7,  1.11738753912010371815E-6,
    -4.41673835845875056359E-6,  1.64484480707288970893E-5,  -5.75419501008210370398E-5,  1.88502885095841655729E-4,
    -5.76375574538582365885E-4,  1.63947561694133579842E-3,  -4.32430999505057594430E-3,  1.05464603945949983183E-2,
    -2.37374148058994688156E-2,  4.93052842396707084878E-2,  -9.49010970480476444210E-2,  1.71620901522208775349E-1,
    -3.04682672343198398683E-1,  6.76795274409476084995E-1};
/// Coefficients of i0e(x) sqrt(x) for |x| > 8.
constexpr double far_out[] = {
    -7.23318048787475395456E-18, -4.83050448594418207126E-18, 4.46562142029675999901E-17,  3.46122286769746109310E-17,
    -2.82762398051658348494E-16, -3.42548561967721913462E-16, 1.77256013305652638360E-15,  3.81168066935262242075E-15,
    -9.55484669882830764870E-15, -4.15056934728722208663E-14, 1.54008621752140982691E-14,  3.85277838274214270114E-13,
    7.18012445138366623367E-13,  -1.79417853150680611778E-12, -1.32158118404477131188E-11, -3.14991652796324136454E-11,
    1.18891471078464383424E-11,  4.94060238822496958910E-10,  3.39623202570838634515E-9,   2.26666899049817806459E-8,
    2.04891858946906374183E-7,   2.89137052083475648297E-6,   6.88975834691682398426E-5,   3.36911647825569408990E-3,
    8.04490411014108831608E-1};

template <class T, std::size_t n>
T series(T x, const double (&coefficients)[n]) {
  T last(coefficients[0]), before(0), earlier(0);
  for (std::size_t i = 1; i < n; ++i) {
    earlier = before;
    before = last;
    last = x * before - earlier + T(coefficients[i]);
  }
  return T(0.5) * (last - earlier);
}

template <DType dtype>
float one_by_one(float value) {
  using T = kernels::Narrow<dtype>;
  const T x = abs(T(value)), eight(8);
  if (x <= eight) return static_cast<float>(series(x / T(2) - T(2), near_zero));
  // PyTorch's code computes the square root and the quotient in float.
  return static_cast<float>(series(T(32) / x - T(2), far_out)) / std::sqrt(static_cast<float>(x));
}

/// The number of elements that are contiguous in both tensors, in the memory order of `dense`.
std::int64_t run_length(const Tensor& dense, const Tensor& other) {
  std::vector<std::size_t> order(dense.sizes.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, {}, [&](std::size_t d) { return dense.strides[d]; });
  std::int64_t run = 1;
  for (std::size_t d : order) {
    if (dense.sizes[d] == 1) continue;
    if (other.strides[d] != run) break;
    run *= dense.sizes[d];
  }
  return run;
}

constexpr auto exactly = []<class T>(T x) -> T { return static_cast<T>(bessel::i0e(static_cast<double>(x))); };

}  // namespace

Value eval_i0e(EvalCall& call) {
  Value value = eval_special<exactly>(call);
  const Tensor& self = call.tensor("self");
  if (self.dtype != DType::BFloat16 && self.dtype != DType::Float16) return value;
  const Tensor out = empty_of(call, fake_special);
  const std::int64_t run = run_length(out, self), whole = run == 1 ? 0 : run / lanes * lanes;
  Tensor x = kernels::load(self, DType::Float32), y = *value.get<Tensor>();
  Sizes index(out.sizes.size(), 0);
  for (std::int64_t i : steps(out.numel())) {
    std::int64_t place = 0;
    for (std::size_t d = 0; d < index.size(); ++d) place += index[d] * out.strides[d];
    if (place % run >= whole) {
      const float v = x.as<float>()[i];
      y.as<float>()[i] = self.dtype == DType::BFloat16 ? one_by_one<DType::BFloat16>(v) : one_by_one<DType::Float16>(v);
    }
    for (std::size_t d = index.size(); d-- > 0;) {
      if (++index[d] < out.sizes[d]) break;
      index[d] = 0;
    }
  }
  return y;
}

}  // namespace partita

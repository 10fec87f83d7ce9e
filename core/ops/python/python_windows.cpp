// Windows of torch.signal.windows that are sums of cosines; the others are programs in python_functions.def.
#include <numbers>

#include "core/ops/schema/resolve_parts.h"

namespace partita {
namespace {

/// The sum of (-1)^i a_i cos(i x) over M steps of x from 0 to 2 pi. M may be symbolic.
Arg sum_of_cosines(Builder& b, NamedArgs& names, const std::vector<double>& a) {
  if (a.empty()) fail("Coefficients cannot be empty");
  names.emplace_back("pi", std::numbers::pi);
  if (Arg& dtype = value_of(names, "dtype"); dtype.is_none()) dtype = DType::Float32;
  if (value_of(names, "M") == Arg(1)) return b.expression("ones([1], dtype=dtype, device=device)", names);
  names.emplace_back("step", b.expression("2 * pi / (M - 1 if sym else M)", names));
  names.emplace_back("x", b.expression("linspace(0, (M - 1) * step, M, dtype=dtype, device=device)", names));
  Arg total;
  for (std::size_t i = 0; i < a.size(); ++i) {
    Node* const angle = b.call("aten.mul.Scalar", {value_of(names, "x"), static_cast<std::int64_t>(i)});
    Node* const term = b.call("aten.mul.Scalar", {b.call("aten.cos.default", {angle}), i % 2 == 0 ? a[i] : -a[i]});
    total = i == 0 ? term : b.call("aten.add.Tensor", {total, term});
  }
  return total;
}

double coefficient(const Arg& arg) {
  const auto number = as_number(arg);
  if (!number) fail_unsupported("a window with a coefficient that is no number");
  return as_double(*number);
}

Arg general_cosine(Builder& b, NamedArgs& names) {
  const ArgList* list = value_of(names, "a").get<ArgList>();
  if (!list) fail("Coefficients must be a list/tuple");
  std::vector<double> a;
  for (const Arg& item : list->items) a.push_back(coefficient(item));
  return sum_of_cosines(b, names, a);
}

Arg general_hamming(Builder& b, NamedArgs& names) {
  const double alpha = coefficient(value_of(names, "alpha"));
  return sum_of_cosines(b, names, {alpha, 1 - alpha});
}

Arg hamming(Builder& b, NamedArgs& names) {
  return sum_of_cosines(b, names, {0.54, 1 - 0.54});
}
Arg hann(Builder& b, NamedArgs& names) {
  return sum_of_cosines(b, names, {0.5, 0.5});
}
Arg blackman(Builder& b, NamedArgs& names) {
  return sum_of_cosines(b, names, {0.42, 0.5, 0.08});
}
Arg nuttall(Builder& b, NamedArgs& names) {
  return sum_of_cosines(b, names, {0.3635819, 0.4891775, 0.1365995, 0.0106411});
}

constexpr PythonSpecial window_rows[] = {
    {"torch.signal.windows.windows.general_cosine", general_cosine},
    {"torch.signal.windows.windows.general_hamming", general_hamming},
    {"torch.signal.windows.windows.hamming", hamming},
    {"torch.signal.windows.windows.hann", hann},
    {"torch.signal.windows.windows.blackman", blackman},
    {"torch.signal.windows.windows.nuttall", nuttall},
};

}  // namespace

std::span<const PythonSpecial> window_specials() {
  return window_rows;
}

}  // namespace partita

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/hash.h"
#include "core/compare/compare.h"

namespace partita {
namespace {

/// As compare_values reads numbers: row-major doubles, complex elements by magnitude.
std::optional<Tensor> magnitudes(const Tensor& t) {
  if (!has_arithmetic(t.dtype)) return std::nullopt;
  if (!is_complex(t.dtype)) {
    auto wide = t.to(DType::Float64);
    return wide ? std::optional(*std::move(wide)) : std::nullopt;
  }
  const auto wide = t.to(DType::Complex128);
  auto out = wide ? Tensor::empty(DType::Float64, t.sizes) : Result<Tensor>(wide.error());
  if (!out) return std::nullopt;
  for (std::int64_t i = 0; i < out->numel(); ++i) out->as<double>()[i] = std::abs(wide->as<std::complex<double>>()[i]);
  return *std::move(out);
}

}  // namespace

std::optional<Statistics> statistics_of(const Value& value) {
  const auto* tensor = value.get<Tensor>();
  const auto dense = tensor ? tensor->contiguous() : Result<Tensor>(Tensor());
  const auto wide = tensor && dense ? magnitudes(*tensor) : std::nullopt;
  if (!wide) return std::nullopt;
  Statistics out;
  out.numel = wide->numel();
  double squares = 0, sum = 0;
  std::int64_t finite = 0;
  for (std::int64_t i = 0; i < out.numel; ++i) {
    const double x = wide->as<double>()[i];
    out.nan += std::isnan(x);
    out.inf += std::isinf(x);
    if (!std::isfinite(x)) {
      ++out.magnitudes.not_finite;
      continue;
    }
    if (x == 0)
      ++out.magnitudes.equal;
    else
      out.magnitudes.add(std::abs(x));
    out.least = finite ? std::min(out.least, x) : x;
    out.greatest = finite ? std::max(out.greatest, x) : x;
    ++finite;
    squares += x * x;
    sum += x;
  }
  out.norm = std::sqrt(squares);
  out.mean = finite ? sum / static_cast<double>(finite) : 0;
  std::string sizes(torch_name(tensor->dtype));
  for (const std::int64_t size : tensor->sizes) sizes += "," + std::to_string(size);
  const std::size_t bytes = static_cast<std::size_t>(out.numel) * itemsize(tensor->dtype);
  const char* elements = bytes ? reinterpret_cast<const char*>(dense->data()) : "";
  out.hash = content_hash(content_hash(sizes) + content_hash({elements, bytes}));
  return out;
}

Difference compare_statistics(std::string name, const Statistics& expected, const Statistics& found,
                              const Tolerance& tolerance) {
  Difference d;
  d.name = std::move(name);
  d.by_statistics = true;
  d.numel = expected.numel;
  d.nan_expected = expected.nan;
  d.nan_found = found.nan;
  d.inf_expected = expected.inf;
  d.inf_found = found.inf;
  d.expected_statistics = expected;
  d.found_statistics = found;
  if (expected.hash == found.hash) return d;
  if (expected.numel != found.numel) {
    d.layout.push_back("elements: " + std::to_string(expected.numel) + " expected, " + std::to_string(found.numel) +
                       " found");
    return d;
  }
  d.values_agree = !d.specials_differ();
  if (!d.values_agree || expected.numel == expected.nan + expected.inf) return d;
  // Elements that are off by at most e move mean, least and greatest by at most e, and the norm by e times the root of
  // their number.
  const double finite = static_cast<double>(expected.numel - expected.nan - expected.inf);
  for (const double moved : {expected.mean - found.mean, expected.least - found.least,
                             expected.greatest - found.greatest, (expected.norm - found.norm) / std::sqrt(finite)})
    d.max_abs = std::max(d.max_abs, std::abs(moved));
  const double size = std::max(std::abs(expected.least), std::abs(expected.greatest));
  d.max_rel = d.max_abs == 0 ? 0 : size > 0 ? d.max_abs / size : std::numeric_limits<double>::infinity();
  d.values_agree = d.max_abs <= tolerance.absolute + tolerance.relative * size;
  return d;
}

}  // namespace partita

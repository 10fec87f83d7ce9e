// What the members of a group get from a collective.
#include <algorithm>
#include <cmath>
#include <complex>

#include <fmt/format.h>

#include "core/ops/record/call.h"
#include "core/ranks/exchange.h"
#include "core/tensor/convert.h"

namespace partita {
namespace {

using Kind = Collective::Kind;

/// In what a reduction of T is computed.
template <class T>
struct Accumulator {
  using type = T;
};
template <>
struct Accumulator<Half> {
  using type = float;
};
template <>
struct Accumulator<BFloat16> {
  using type = float;
};
template <>
struct Accumulator<StoredBool> {
  using type = bool;
};

template <class A>
bool is_nan(const A& a) {
  if constexpr (std::is_floating_point_v<A>) return std::isnan(a);
  return false;
}

/// Signed integers wrap, as their bits do without a sign.
template <class A, class F>
A wrapping(A a, A b, F f) {
  if constexpr (std::is_integral_v<A> && !std::is_same_v<A, bool>) {
    return static_cast<A>(f(static_cast<std::uint64_t>(a), static_cast<std::uint64_t>(b)));
  } else {
    return f(a, b);
  }
}

constexpr auto sum = []<class A>(A a, A b) {
  if constexpr (std::is_same_v<A, bool>)
    return a || b;
  else
    return wrapping(a, b, [](auto x, auto y) { return x + y; });
};
constexpr auto product = []<class A>(A a, A b) {
  if constexpr (std::is_same_v<A, bool>)
    return a && b;
  else
    return wrapping(a, b, [](auto x, auto y) { return x * y; });
};
constexpr auto least = [](auto a, auto b) { return is_nan(a) || a < b ? a : b; };
constexpr auto greatest = [](auto a, auto b) { return is_nan(a) || a > b ? a : b; };

/// The numbers that a reduction takes.
enum class Takes : unsigned char { All, Inexact, Real, Integers };
template <Takes takes, class A>
constexpr bool takes_type =
    takes == Takes::All || (takes == Takes::Inexact && (std::is_floating_point_v<A> || is_complex_type<A>::value)) ||
    (takes == Takes::Real && !is_complex_type<A>::value) || (takes == Takes::Integers && std::is_integral_v<A>);

/// All of one size and row-major.
using Parts = std::vector<Tensor>;

/// `op`: its name.
template <Takes takes, auto combine, bool average = false>
Tensor reduce(const Parts& parts, std::string_view op) {
  Tensor out = unwrap(Tensor::empty(parts.front().dtype, parts.front().sizes));
  dispatch(out.dtype, [&]<class T>() {
    using A = typename Accumulator<T>::type;
    if constexpr (!takes_type<takes, A>) {
      fail_unsupported(fmt::format("the reduction {} of {}", op, torch_name(out.dtype)));
    } else {
      for (const std::int64_t i : steps(out.numel(), static_cast<std::int64_t>(parts.size()))) {
        A all = convert<A>(parts.front().as<T>()[i]);
        for (std::size_t k = 1; k < parts.size(); ++k)
          all = static_cast<A>(combine(all, convert<A>(parts[k].as<T>()[i])));
        if constexpr (average) all /= static_cast<A>(static_cast<float>(parts.size()));
        out.as<T>()[i] = convert<T>(all);
      }
    }
  });
  return out;
}

struct ReductionRow {
  std::string_view name;
  Tensor (*reduce)(const Parts&, std::string_view op);
};
constexpr ReductionRow reductions[] = {
    {"sum", reduce<Takes::All, sum>},
    {"avg", reduce<Takes::Inexact, sum, true>},
    {"product", reduce<Takes::Real, product>},
    {"min", reduce<Takes::Real, least>},
    {"max", reduce<Takes::Real, greatest>},
    {"band", reduce<Takes::Integers, std::bit_and<>{}>},
    {"bor", reduce<Takes::Integers, std::bit_or<>{}>},
    {"bxor", reduce<Takes::Integers, std::bit_xor<>{}>},
};

/// The i-th inputs of all members.
Parts inputs_of(const Exchange& e, std::size_t i) {
  Parts parts;
  for (const auto& part : e.parts) parts.push_back(part->inputs[i]);
  return parts;
}

Tensor reduced(const Exchange& e, std::size_t i) {
  const std::string& op = e.parts.front()->reduce_op;
  const DType dtype = e.parts.front()->inputs[i].dtype;
  if (!has_arithmetic(dtype)) fail_unsupported(fmt::format("the reduction {} of {}", op, torch_name(dtype)));
  for (const ReductionRow& row : reductions)
    if (row.name == op) return row.reduce(inputs_of(e, i), op);
  fail_unsupported(fmt::format("the reduction {} among ranks", op));
}

/// Rows begin .. begin + count of a row-major tensor.
Tensor rows(const Tensor& t, std::int64_t begin, std::int64_t count) {
  Sizes sizes = t.sizes;
  sizes.front() = count;
  const std::int64_t row = t.sizes.front() == 0 ? 0 : t.numel() / t.sizes.front();
  return t.view_as(std::move(sizes), t.strides, t.offset + begin * row);
}

Tensor joined(const Parts& parts) {
  // A tensor without dimensions counts as one row.
  Sizes sizes = parts.front().sizes.empty() ? Sizes{1} : parts.front().sizes;
  sizes.front() = 0;
  Parts taken;
  for (Tensor part : parts) {
    if (part.sizes.empty()) part = part.view_as({1}, {1}, part.offset);
    sizes.front() += part.sizes.front();
    taken.push_back(std::move(part));
  }
  Tensor out = unwrap(Tensor::empty(parts.front().dtype, sizes));
  std::int64_t at = 0;
  for (const Tensor& part : taken) {
    rows(out, at, part.sizes.front()).copy_from(part);
    at += part.sizes.front();
  }
  return out;
}

Tensor exchanged(const Exchange& e, std::size_t to) {
  const std::size_t n = e.members.size();
  Parts parts;
  for (std::size_t from = 0; from < n; ++from) {
    const Collective& c = *e.parts[from];
    const Tensor& t = c.inputs.front();
    const std::int64_t equal = t.sizes.front() / static_cast<std::int64_t>(n);
    std::int64_t begin = 0;
    for (std::size_t k = 0; k < to; ++k) begin += c.input_splits.empty() ? equal : c.input_splits[k];
    parts.push_back(rows(t, begin, c.input_splits.empty() ? equal : c.input_splits[to]));
  }
  return joined(parts);
}

/// What the i-th outputs of all members are to hold.
Parts outputs_of(const Exchange& e, std::size_t i) {
  const std::size_t n = e.members.size();
  const Collective& first = *e.parts.front();
  Parts out;
  switch (first.kind) {
    case Kind::AllReduce:
      return Parts(n, reduced(e, i));
    case Kind::AllGather:
      return Parts(n, joined(inputs_of(e, i)));
    case Kind::ReduceScatter: {
      const Tensor all = reduced(e, i);
      const std::int64_t count = all.sizes.front() / static_cast<std::int64_t>(n);
      for (std::size_t k = 0; k < n; ++k) out.push_back(rows(all, static_cast<std::int64_t>(k) * count, count));
      return out;
    }
    case Kind::AllToAll:
      for (std::size_t to = 0; to < n; ++to) out.push_back(exchanged(e, to));
      return out;
    case Kind::Broadcast: {
      const auto root = std::ranges::find(e.members, first.root) - e.members.begin();
      return Parts(n, e.parts[static_cast<std::size_t>(root)]->inputs[i]);
    }
    case Kind::Send:
    case Kind::Receive:
      return Parts(n, first.inputs[i]);
  }
  return out;
}

}  // namespace

std::vector<std::vector<Tensor>> results(const Exchange& exchange) {
  std::vector<std::vector<Tensor>> out(exchange.members.size());
  for (std::size_t i = 0; i < exchange.parts.front()->inputs.size(); ++i) {
    const Parts of_members = outputs_of(exchange, i);
    for (std::size_t k = 0; k < out.size(); ++k) out[k].push_back(of_members[k]);
  }
  return out;
}

}  // namespace partita

// Body makes scalars of index expressions. Lowering makes definitions, and probes each for what it reads and computes;
// it splits large reductions to few results into two, and fixes symbolic sizes by guards.
#include "core/loops/lower.h"

#include <algorithm>
#include <cmath>

#include "core/base/check.h"
#include "core/base/raise.h"

namespace partita::loops {
namespace {

using std::int64_t;

bool is_indirect(SymExpr e) {
  return e.kind() == SymKind::Computed || std::ranges::any_of(e.args(), is_indirect);
}

/// Records what a value reads and how much it computes.
class Probe final : public Body {
 public:
  Probe(ScalarBuilder& b, IndexMath& math) : Body(b, math) {}
  std::vector<Definition::Read> operands;

  Scalar read(const LoweredTensor& tensor, const Index& index) override {
    CHECK(tensor.valid() && index.size() == tensor.dim(), "a read of the wrong rank");
    auto it = std::ranges::find_if(operands, [&](const auto& o) { return o.id == tensor.id && o.index == index; });
    if (it == operands.end()) it = operands.insert(operands.end(), {tensor.id, index});
    return b.input(static_cast<int>(it - operands.begin()), tensor.dtype);
  }
};

bool computes_complex(const Target& target, ScalarOp op) {
  return std::ranges::find(target.complex_ops, op) != target.complex_ops.end();
}

}  // namespace

SymExpr Body::indirect(Scalar position, SymExpr extent) {
  CHECK(b.dtype(position) == DType::Int64, "a position that is not int64");
  const ScalarNode& node = b[position];
  if (node.op == ScalarOp::Const) return node.integer;
  if (node.op == ScalarOp::Index) return node.index;
  return math.computed(position.id, extent);
}

Scalar Body::scalar(SymExpr e) {
  e = math.simplify(e);
  if (!is_indirect(e)) return b.index(e);
  switch (e.kind()) {
    case SymKind::Computed:
      return {e.computed_id()};
    case SymKind::Add:
    case SymKind::Mul: {
      bool sum = e.kind() == SymKind::Add;
      SymExpr affine = sum ? 0 : 1;
      Scalar computed;
      for (SymExpr a : e.args()) {
        if (!is_indirect(a)) {
          affine = sum ? affine + a : affine * a;
          continue;
        }
        Scalar s = scalar(a);
        computed = computed.id < 0 ? s : sum ? b.Add(computed, s) : b.Mul(computed, s);
      }
      if (affine.is(sum ? 0 : 1)) return computed;
      return sum ? b.Add(computed, b.index(affine)) : b.Mul(computed, b.index(affine));
    }
    case SymKind::Min:
    case SymKind::Max: {
      Scalar extreme;
      for (SymExpr a : e.args()) {
        Scalar s = scalar(a);
        extreme = extreme.id < 0 ? s : e.kind() == SymKind::Min ? b.Min(extreme, s) : b.Max(extreme, s);
      }
      return extreme;
    }
    case SymKind::FloorDiv:
      return b.FloorDiv(scalar(e.args()[0]), scalar(e.args()[1]));
    case SymKind::Mod:
      return b.Remainder(scalar(e.args()[0]), scalar(e.args()[1]));
    default:
      CHECK(false, "an indirect index within " + e.str());
  }
}

Scalar Body::less(SymExpr x, SymExpr y) {
  const SymExpr by = math.simplify(y - x);
  if (math.non_negative(by - 1)) return b.constant_int(DType::Bool, 1);
  if (math.non_negative(-by)) return b.constant_int(DType::Bool, 0);
  return b.Lt(scalar(x), scalar(y));
}

Body::Element Body::element(SymExpr e) {
  e = math.simplify(e);
  if (!is_indirect(e)) return {e, {}};
  if (e.kind() != SymKind::Add) return {0, scalar(e)};
  SymExpr affine = 0, computed = 0;
  for (SymExpr a : e.args()) (is_indirect(a) ? computed : affine) = (is_indirect(a) ? computed : affine) + a;
  return {affine, scalar(computed)};
}

Scalar Body::load(int buffer, SymExpr e, DType dtype) {
  Element at = element(e);
  return at.computed.id < 0 ? b.load(buffer, at.affine, dtype) : b.load_at(buffer, at.computed, dtype, at.affine);
}

int64_t Lowering::hint(SymExpr e) const {
  if (e.is_int()) return e.as_int();
  const auto value = shapes_ ? shapes_->hint(e) : std::nullopt;
  if (!value) throw Raise{unsupported("schedule.symbol", "the size " + e.str() + " is known only at run time")};
  return *value;
}

int64_t Lowering::number(SymExpr e) const {
  const int64_t value = hint(e);
  if (e.is_int()) return value;
  auto fixed = shapes_->evaluate(sym_eq(e, value), "code that is made for this number");
  if (!fixed) throw Raise{std::move(fixed).error()};
  return value;
}

SymList Lowering::plain_strides(SymList strides) const {
  const auto plain = [&](SymExpr f) {
    if (f.is_int() || f.kind() != SymKind::Max || f.args().size() != 2) return f;
    if (!f.args()[0].is(1) && !f.args()[1].is(1)) return f;
    const SymExpr n = f.args()[f.args()[0].is(1) ? 1 : 0];
    if (!shapes_) return n;
    const auto counts = shapes_->evaluate(sym_le(1, n), "strides of a tensor without elements");
    return !counts || *counts ? n : SymExpr(1);
  };
  for (SymExpr& e : strides) {
    if (e.is_int()) continue;
    SymExpr made = 1;
    const bool product = e.kind() == SymKind::Mul;
    for (SymExpr f : product ? e.args() : std::span<const SymExpr>(&e, 1)) {
      const bool power = !f.is_int() && f.kind() == SymKind::Pow;
      made = made * (power ? sym_pow(plain(f.args()[0]), f.args()[1]) : plain(f));
    }
    e = made;
  }
  return strides;
}

SymList Lowering::plain(const SymList& sizes) const {
  SymList out = plain_strides(sizes);
  for (SymExpr& e : out) {
    if (e.is_int()) continue;
    const bool large = hint(e) >= 2;
    if (auto known = shapes_->evaluate(sym_le(2, e), "sizes of 0 and 1 get code of their own"); !known)
      throw Raise{std::move(known).error()};
    if (!large) e = number(e);
  }
  return out;
}

LoweredTensor Lowering::handle(int id) const {
  return {id, (*this)[id].dtype, (*this)[id].sizes};
}

void Lowering::probe(Definition& d) const {
  ScalarBuilder b;
  IndexMath ranges = math;
  Probe body(b, ranges);
  if (d.kind == Definition::Kind::Writes) {
    for (const Definition::Write& w : d.writes) {
      Index at = ranges.variables("v", w.sizes);
      w.value(body, at);
      for (SymExpr e : w.target(body, at)) body.scalar(e);
    }
  } else if (d.value) {
    Scalar result = d.value(body, ranges.variables("v", d.kind == Definition::Kind::Reduce ? d.space : d.sizes));
    CHECK(b.dtype(result) == d.dtype, "a value of the wrong dtype in " + d.origin + ": " +
                                          std::string(short_name(b.dtype(result))) + ", not " +
                                          std::string(short_name(d.dtype)));
    const bool is_map = d.kind == Definition::Kind::Map;
    d.is_copy = is_map && b[result].op == ScalarOp::Input;
    d.is_cast = is_map && b[result].op == ScalarOp::Cast && b[b[result].args[0]].op == ScalarOp::Input;
  }
  for (const ScalarNode& n : b.nodes()) {
    d.weight += loops::weight(n.op);
    const bool complex = is_complex(n.dtype) ||
                         std::ranges::any_of(n.args, [&](Scalar a) { return a.id >= 0 && is_complex(b.dtype(a)); });
    d.has_code = d.has_code && (!complex || n.op >= ScalarOp::Const || computes_complex(target_, n.op));
  }
  if (d.kind == Definition::Kind::Reduce && is_complex(d.dtype))
    d.has_code = d.has_code && computes_complex(target_, d.combine);
  d.operands = std::move(body.operands);
}

LoweredTensor Lowering::add(Definition d) {
  d.origin = origin;
  probe(d);
  definitions_.push_back(std::move(d));
  return handle(size() - 1);
}

LoweredTensor Lowering::memory(DType dtype, SymList sizes) {
  return add({.kind = Definition::Kind::Memory, .dtype = dtype, .sizes = std::move(sizes)});
}

LoweredTensor Lowering::map(DType dtype, SymList sizes, ElementFunction value) {
  return add({.dtype = dtype, .sizes = std::move(sizes), .value = std::move(value)});
}

LoweredTensor Lowering::view(const LoweredTensor& from, SymList sizes, IndexFunction source) {
  auto value = [from, source = std::move(source)](Body& body, const Index& i) {
    return body.read(from, source(body, i));
  };
  return add({.dtype = from.dtype, .sizes = std::move(sizes), .value = std::move(value), .is_view = true});
}

LoweredTensor Lowering::reduce(DType dtype, SymList space, std::vector<bool> reduced, ScalarOp combine,
                               ElementFunction value) {
  CHECK(space.size() == reduced.size());
  // No dimension is reduced, so each element is its own result.
  if (std::ranges::find(reduced, true) == reduced.end()) return map(dtype, std::move(space), std::move(value));
  const auto over = [&](SymList whole, std::vector<bool> folds) {
    Definition d{.kind = Definition::Kind::Reduce, .dtype = dtype, .sizes = whole, .value = std::move(value)};
    for (std::size_t i = 0; i < whole.size(); ++i)
      if (folds[i]) d.sizes[i] = 1;
    d.space = std::move(whole);
    d.reduced = std::move(folds);
    d.combine = combine;
    d.start = identity(combine, dtype);
    return d;
  };
  SymExpr kept = 1, folded = 1;
  for (std::size_t i = 0; i < space.size(); ++i) (reduced[i] ? folded : kept) = (reduced[i] ? folded : kept) * space[i];

  // Few results of many elements are reduced in two steps: threads have work, and rounding errors stay small.
  std::size_t inner = space.size();
  while (inner > 0 && space[inner - 1].is(1)) --inner;
  const bool columns = inner > 0 && !reduced[inner - 1];
  std::size_t outer = 0;
  while (outer < inner && (!reduced[outer] || space[outer].is(1))) ++outer;
  bool channels = false;  // images of channels, which may be what is innermost in memory
  for (std::size_t d = outer; d < inner; ++d) channels = channels || !(reduced[d] || columns);
  const auto few = columns ? target_.few_columns : channels ? target_.few_channels : target_.few_results;
  if (hint(kept) < few && hint(folded) >= (columns || channels ? target_.split_rows : target_.split_elements)) {
    constexpr int64_t least_parts = 16;
    // The dimensions that are reduced first, as one.
    std::size_t end = outer;
    SymExpr leading = 1;
    for (; end < inner && (reduced[end] || space[end].is(1)); ++end) leading = leading * space[end];
    const std::int64_t parts = target_.threads > 1 ? std::min(target_.threads, 4) : 4;
    const bool one = space[outer] == folded;
    if (leading == folded && folded.is_int() && (one || hint(space[outer]) < parts)) {
      // Splits them into two of about the square root.
      int64_t rows = static_cast<int64_t>(std::sqrt(static_cast<double>(folded.as_int())));
      while (folded.as_int() % rows != 0) --rows;
      if (rows >= least_parts) {
        const auto first = static_cast<std::ptrdiff_t>(outer), last = static_cast<std::ptrdiff_t>(end);
        const SymList whole(space.begin() + first, space.begin() + last);
        const std::int64_t columns = folded.as_int() / rows;
        SymList split = space, sizes = space;
        split.erase(split.begin() + first, split.begin() + last);
        split.insert(split.begin() + first, {rows, columns});
        std::vector<bool> mask = reduced;
        mask.erase(mask.begin() + first, mask.begin() + last);
        mask.insert(mask.begin() + first, 2, true);
        auto in_two = [value = std::move(value), whole, outer, columns](Body& body, const Index& i) {
          Index at = i;
          const auto here = at.begin() + static_cast<std::ptrdiff_t>(outer);
          const Index back = body.math.delinearize(i[outer] * columns + i[outer + 1], whole);
          at.insert(at.erase(here, here + 2), back.begin(), back.end());
          return value(body, at);
        };
        for (std::size_t d = 0; d < sizes.size(); ++d)
          if (reduced[d]) sizes[d] = 1;
        return reshape(reduce(dtype, split, mask, combine, in_two), sizes);
      }
    } else if (!one) {
      // Keeps leading dimensions apart, all but the last, until there are enough results.
      std::size_t last = inner - 1;
      while (!reduced[last] || space[last].is(1)) --last;
      std::vector<bool> in_first = reduced, in_second(space.size(), false);
      SymExpr apart = 1;
      for (std::size_t d = outer; d < last; ++d) {
        if (!reduced[d] || space[d].is(1)) continue;
        if (hint(apart) >= parts && hint(kept * apart) >= target_.split_results) break;
        in_first[d] = false;
        in_second[d] = true;
        apart = apart * space[d];
      }
      if (hint(apart) >= parts) {
        LoweredTensor partial = add(over(std::move(space), in_first));
        return reduce(dtype, partial.sizes, in_second, combine,
                      [partial](Body& body, const Index& i) { return body.read(partial, i); });
      }
    }
  }
  return add(over(std::move(space), std::move(reduced)));
}

LoweredTensor Lowering::writes(DType dtype, SymList sizes, std::vector<Definition::Write> writes) {
  return add(
      {.kind = Definition::Kind::Writes, .dtype = dtype, .sizes = std::move(sizes), .writes = std::move(writes)});
}

LoweredTensor Lowering::cast(const LoweredTensor& t, DType dtype) {
  if (t.dtype == dtype) return t;
  return map(dtype, t.sizes, [t, dtype](Body& body, const Index& i) { return body.b.cast(body.read(t, i), dtype); });
}

LoweredTensor Lowering::constant(DType dtype, SymList sizes, double value) {
  return map(dtype, std::move(sizes),
             [dtype, value](Body& body, const Index&) { return body.b.constant(dtype, value); });
}

LoweredTensor Lowering::expand(const LoweredTensor& t, const SymList& sizes) {
  if (t.sizes == sizes) return t;
  CHECK(sizes.size() >= t.dim());
  std::size_t skip = sizes.size() - t.dim();
  return view(t, sizes, [skip, from = t.sizes](Body&, const Index& i) {
    Index at(from.size(), 0);
    for (std::size_t d = 0; d < from.size(); ++d)
      if (from[d] != 1) at[d] = i[d + skip];
    return at;
  });
}

LoweredTensor Lowering::reshape(const LoweredTensor& t, SymList sizes) {
  if (t.sizes == sizes) return t;
  if (product(sizes) != t.numel() && number(product(sizes) - t.numel()) != 0)
    CHECK(false, "reshape to a different number of elements");
  SymList to = sizes;
  return view(t, std::move(sizes), [from = t.sizes, to](Body& body, const Index& i) {
    return body.math.delinearize(body.math.linear(i, to), from);
  });
}

LoweredTensor Lowering::reduce(const LoweredTensor& t, ScalarOp op, const std::vector<bool>& reduced) {
  return reduce(t.dtype, t.sizes, reduced, op, [t](Body& body, const Index& i) { return body.read(t, i); });
}

double identity(ScalarOp combine, DType dtype) {
  bool floating = is_floating(dtype);
  auto extreme = [&](bool highest) -> double {
    if (floating) return highest ? INFINITY : -INFINITY;
    if (dtype == DType::Bool) return highest ? 1 : 0;
    double bits = static_cast<double>(itemsize(dtype) * 8);
    if (!is_signed(dtype)) return highest ? std::exp2(bits) - 1 : 0;
    return highest ? std::exp2(bits - 1) - 1 : -std::exp2(bits - 1);
  };
  switch (combine) {
    case ScalarOp::Add:
    case ScalarOp::BitOr:
      return 0;
    case ScalarOp::Mul:
      return 1;
    case ScalarOp::Min:
      return extreme(true);
    case ScalarOp::Max:
      return extreme(false);
    case ScalarOp::BitAnd:
      return dtype == DType::Bool ? 1 : -1;
    default:
      CHECK(false, "no reduction by " + std::string(name(combine)));
  }
}

SymList Lowering::broadcast(const SymList& a, const SymList& b) const {
  const SymList& longer = a.size() >= b.size() ? a : b;
  const SymList& shorter = a.size() >= b.size() ? b : a;
  SymList out = longer;
  std::size_t skip = longer.size() - shorter.size();
  for (std::size_t i = 0; i < shorter.size(); ++i) {
    SymExpr& size = out[i + skip];
    if (shorter[i].is(1) || shorter[i] == size) continue;
    // A guard makes sure that the two expressions are equal in each run.
    CHECK(size.is(1) || number(size - shorter[i]) == 0, "sizes that do not broadcast");
    size = shorter[i];
  }
  return out;
}

}  // namespace partita::loops

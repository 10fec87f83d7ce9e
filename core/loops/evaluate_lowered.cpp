// A definition becomes one loop nest over its elements. What it reads is in memory, or is computed in the same nest
// where that is cheap.
#include "core/loops/evaluate_lowered.h"

#include <algorithm>

#include "core/base/check.h"
#include "core/base/raise.h"
#include "core/loops/block_loop.h"
#include "core/loops/loop.h"
#include "core/tensor/convert.h"

namespace partita::loops {
namespace {

using std::int64_t;

/// The numbers of a list of sizes.
Sizes numbers(const SymList& sizes) {
  Sizes out;
  for (SymExpr s : sizes) out.push_back(s.as_int());
  return out;
}

/// A body whose index expressions are sums of multiples of the variables; all other arithmetic on them is scalars.
class Progressions {
 public:
  Progressions(const ScalarBuilder& from, const Index& variables) : variables_(variables) {
    for (const ScalarNode& n : from.nodes()) made_.push_back(copy(from, n));
  }

  const ScalarBuilder& body() const { return body_; }
  Scalar operator[](Scalar s) const { return s.id < 0 ? s : made_[static_cast<std::size_t>(s.id)]; }

  /// The expression as a progression; nullopt for another one.
  std::optional<Progression> of(SymExpr e) const {
    Progression p{Sizes(variables_.size(), 0)};
    return add(e, 1, p) ? std::optional(std::move(p)) : std::nullopt;
  }
  Scalar scalar(SymExpr e) {
    if (of(e)) return body_.index(e);
    ScalarOp op = ScalarOp::Add;
    switch (e.kind()) {
      case SymKind::Add:
        break;
      case SymKind::Mul:
        op = ScalarOp::Mul;
        break;
      case SymKind::Min:
        op = ScalarOp::Min;
        break;
      case SymKind::Max:
        op = ScalarOp::Max;
        break;
      case SymKind::FloorDiv:
        op = ScalarOp::FloorDiv;
        break;
      case SymKind::Mod:
        op = ScalarOp::Remainder;
        break;
      default:
        CHECK(false, "an index expression of an unsupported kind: " + e.str());
    }
    Scalar value;
    for (SymExpr a : e.args()) value = value.id < 0 ? scalar(a) : body_.make(op, value, scalar(a));
    return value;
  }
  /// The sum of a computed number, which may be invalid, and an expression.
  Scalar element(Scalar computed, SymExpr e) {
    if (computed.id < 0) return scalar(e);
    return e.is(0) ? computed : body_.Add(computed, scalar(e));
  }

 private:
  bool add(SymExpr e, int64_t times, Progression& p) const {
    if (e.is_int()) return p.first += times * e.as_int(), true;
    const auto variable = std::ranges::find(variables_, e);
    if (variable != variables_.end())
      return p.strides[static_cast<std::size_t>(variable - variables_.begin())] += times, true;
    if (e.kind() == SymKind::Add) return std::ranges::all_of(e.args(), [&](SymExpr a) { return add(a, times, p); });
    if (e.kind() != SymKind::Mul) return false;
    SymExpr rest = 1;
    for (SymExpr a : e.args()) {
      if (a.is_int())
        times *= a.as_int();
      else if (rest.is(1))
        rest = a;
      else
        return false;
    }
    return add(rest, times, p);
  }

  Scalar copy(const ScalarBuilder& from, const ScalarNode& n) {
    const Scalar args[3] = {(*this)[n.args[0]], (*this)[n.args[1]], (*this)[n.args[2]]};
    switch (n.op) {
      case ScalarOp::Const:
        return is_integral(n.dtype) || n.dtype == DType::Bool ? body_.constant_int(n.dtype, n.integer)
                                                              : body_.constant(n.dtype, n.real);
      case ScalarOp::Index:
        return scalar(n.index);
      case ScalarOp::Load: {
        if (args[0].id < 0 && of(n.index)) return body_.load(n.slot, n.index, n.dtype);
        return body_.load_at(n.slot, element(args[0], n.index), n.dtype);
      }
      case ScalarOp::Where:
        return body_.where(args[0], args[1], args[2]);
      case ScalarOp::Cast:
        return body_.cast(args[0], n.dtype);
      case ScalarOp::Bitcast:
        return body_.bitcast(args[0], n.dtype);
      case ScalarOp::Within:
        return body_.within(args[0], from.bounds()[static_cast<std::size_t>(n.slot)]);
      default:
        return body_.make(n.op, args[0], args[1], args[2]);
    }
  }

  const Index& variables_;
  ScalarBuilder body_;
  std::vector<Scalar> made_;  // by node of the other body
};

class Evaluation {
 public:
  Evaluation(const Lowering& lowering, std::map<int, Tensor> memory) : g_(lowering), made_(std::move(memory)) {}

  /// A definition's elements in memory.
  const Tensor& of(int id) {
    const auto known = made_.find(id);
    if (known != made_.end()) return known->second;
    Tensor t = unwrap(Tensor::empty(g_[id].dtype, numbers(g_[id].sizes)));
    compute(id, t);
    return made_.emplace(id, std::move(t)).first->second;
  }

  void compute(int id, const Tensor& out) {
    const Definition& d = g_[id];
    if (made_.contains(id)) return out.copy_from(of(id));
    switch (d.kind) {
      case Definition::Kind::Memory:
        CHECK(false, "memory that is not given");
      case Definition::Kind::Map: {
        Nest nest(*this, d.sizes);
        const Scalar value = d.value(nest, nest.at);
        return nest.run(value, out, nest.at, ScalarOp::Const, false);
      }
      case Definition::Kind::Reduce:
        return reduce(d, out);
      case Definition::Kind::Writes:
        for (const Definition::Write& w : d.writes) {
          Nest nest(*this, w.sizes);
          const Scalar value = w.value(nest, nest.at);
          nest.run(value, out, w.target(nest, nest.at), w.accumulate ? w.combine : ScalarOp::Const,
                   w.accumulate || w.repeats);
        }
    }
  }

 private:
  /// The body of one nest.
  struct Nest final : Body {
    Nest(Evaluation& of, const SymList& sizes)
        : Body(builder, ranges), of(of), sizes(numbers(sizes)), at(ranges.variables("v", sizes)) {}

    Scalar read(const LoweredTensor& t, const Index& index) override {
      const Definition& d = of.g_[t];
      const bool cheap = d.is_view || d.is_copy || d.is_cast || d.weight <= 1;
      if (d.kind == Definition::Kind::Map && cheap && !of.made_.contains(t.id)) return d.value(*this, index);
      return load(t.id, ranges.element(index, strides(of.of(t.id))), t.dtype);
    }

    static SymList strides(const Tensor& t) { return {t.strides.begin(), t.strides.end()}; }

    /// Stores the value at each place, in the element `target` of `out`.
    void run(Scalar value, const Tensor& out, const Index& target, ScalarOp combine, bool in_order) {
      const Element element = this->element(ranges.element(target, strides(out)));
      Progressions plain(builder, at);
      const auto place = element.computed.id < 0 ? plain.of(element.affine) : std::nullopt;
      const Scalar to = place ? Scalar{} : plain.element(plain[element.computed], element.affine);
      BlockLoop loop(plain.body(), sizes);
      for (std::size_t i = 0; i < plain.body().nodes().size(); ++i) {
        const ScalarNode& n = plain.body().nodes()[i];
        if (n.op == ScalarOp::Index) loop.count(static_cast<int>(i), *plain.of(n.index));
        if (n.op != ScalarOp::Load) continue;
        if (n.args[0].id >= 0)
          loop.gather(n.slot, of.of(n.slot));
        else
          loop.load(static_cast<int>(i), of.of(n.slot), *plain.of(n.index));
      }
      if (place)
        loop.store(plain[value], out, *place, combine);
      else
        loop.scatter(plain[value], out, to, combine);
      unwrap(loop.run(in_order));
    }

    ScalarBuilder builder;
    IndexMath ranges;
    Evaluation& of;
    Sizes sizes;
    Index at;
  };

  void reduce(const Definition& d, const Tensor& out) {
    const DType wide = d.dtype == DType::Float32 && d.combine == ScalarOp::Add ? DType::Float64 : d.dtype;
    const Tensor sums = unwrap(Tensor::empty(wide, numbers(d.sizes)));
    dispatch(wide, [&]<class T>() {
      const bool whole = is_integral(wide);
      std::fill_n(sums.as<T>(), sums.numel(), whole ? convert<T>(integer_start(wide, d.start)) : convert<T>(d.start));
    });
    Nest nest(*this, d.space);
    Index kept = nest.at;
    for (std::size_t i = 0; i < kept.size(); ++i)
      if (d.reduced[i]) kept[i] = 0;
    const Scalar value = nest.b.cast(d.value(nest, nest.at), wide);
    nest.run(value, sums, kept, d.combine, true);
    out.copy_from(sums);
  }

  const Lowering& g_;
  std::map<int, Tensor> made_;  // by definition; references stay valid
};

}  // namespace

Status evaluate(const Lowering& lowering, std::map<int, Tensor> memory, std::span<const LoweredTensor> results,
                std::span<const Tensor> outputs) {
  return catch_raised<void>([&]() -> Status {
    Evaluation evaluation(lowering, std::move(memory));
    for (std::size_t i = 0; i < results.size(); ++i)
      if (results[i].valid()) evaluation.compute(results[i].id, outputs[i]);
    return {};
  });
}

}  // namespace partita::loops

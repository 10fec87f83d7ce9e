#include "tests/fuzz/generate.h"

#include "tests/fuzz/generator.h"

namespace partita::fuzz {
namespace {

/// Gives a call tensors of different dtypes.
class MixedDtypes : public Generator {
 public:
  using Generator::Generator;

 protected:
  DType dtype() override {
    DType t = Generator::dtype();
    while (t == last_) t = Generator::dtype();
    return last_ = t;
  }

  double reused() const override { return 0.3; }

 private:
  DType last_ = DType::Bool;
};

/// Has integers of either sign as inputs, and gives calls expressions of them for numbers. Sizes of inputs are symbols.
class Symbolic : public Generator {
 public:
  using Generator::Generator;

 protected:
  void begin() override {
    for (int i = 1 + pick(3); i > 0; --i) {
      const std::int64_t value = any_integer();
      const SymExpr symbol = new_symbol(value, {-INT64_MAX, INT64_MAX});
      integers_.push_back(add_input(symbol, Value(value)));
      index_.push_back(false);
    }
    fresh_.clear();
  }

  void end(std::vector<Arg>& outputs) override {
    for (Node* n : numbers_)
      if (chance(0.1) && outputs.size() < 12) outputs.emplace_back(n);
  }

  /// Extents of the same number are mostly the same symbol.
  Node* placeholder(DType t, const Sizes& s, bool index) override {
    index_.push_back(index);
    if (chance(0.4)) return Generator::placeholder(t, s, index);
    SymList sizes;
    for (std::int64_t n : s) sizes.push_back(n >= 2 && chance(0.8) ? extent(n) : SymExpr(n));
    const TensorMeta meta = TensorMeta::contiguous(t, sizes);
    return add_input(meta, filled(t, s, *hints(meta.strides), index));
  }

  Arg given(const SchemaArg& a, Arg value) override {
    if (a.type != SchemaType::SymInt && a.type != SchemaType::Scalar && a.type != SchemaType::Float) return value;
    return replaced(std::move(value));
  }

  void forget_inputs(std::size_t count) override {
    Generator::forget_inputs(count);
    index_.resize(index_.size() - count);
  }

  std::vector<Value> other_inputs() override {
    ShapeEnv other;
    for (const auto& [symbol, hint] : graph_->shapes->hints())
      other.set_hint(symbol, graph_->shapes->ranges().at(symbol).low < 0 ? any_integer() : 2 + pick(8));
    std::vector<Value> values;
    for (const Node* n : graph_->placeholders()) {
      if (const SymExpr* e = n->meta.sym()) {
        values.emplace_back(*other.hint(*e));
        continue;
      }
      const TensorMeta& t = *n->meta.tensor();
      Sizes sizes, strides;
      for (SymExpr e : t.sizes) sizes.push_back(*other.hint(e));
      for (SymExpr e : t.strides) strides.push_back(*other.hint(e));
      values.emplace_back(filled(t.dtype, sizes, strides, index_[values.size()]));
    }
    return values;
  }

 private:
  std::int64_t any_integer() { return pick(19) - 9; }

  SymExpr new_symbol(std::int64_t hint, SymRange range) {
    const std::string name = "s" + std::to_string(symbols_++);
    graph_->shapes->set_hint(name, hint);
    graph_->shapes->set_range(name, range);
    return SymExpr::symbol(name);
  }

  SymExpr extent(std::int64_t n) {
    for (const auto& [size, symbol] : extents_)
      if (size == n && chance(0.9)) return symbol;
    extents_.emplace_back(n, new_symbol(n, {2, INT64_MAX}));
    return extents_.back().second;
  }

  Node* apply(const char* function, std::vector<Arg> args) {
    Node* n = graph_->create(Op::get(OpKind::Function, function), std::move(args));
    n->meta = *infer(*n);
    numbers_.push_back(n);
    return n;
  }

  /// An expression whose value is v with these inputs, and something else with others.
  Node* number(std::int64_t v) {
    Node* s = one_of(integers_);
    const std::int64_t h = *graph_->shapes->hint(*s->meta.sym());
    const auto moved = [&](std::int64_t by) { return apply("_operator.add", {s, by - h}); };
    const std::int64_t more = pick(5), k = 2 + pick(3);
    switch (pick(8)) {
      case 0:
        return apply("torch.sym_max", {moved(v), v - more});
      case 1:
        return apply("torch.sym_min", {moved(v), v + more});
      case 2:
        return apply("_operator.floordiv",
                     {apply("_operator.add", {apply("_operator.mul", {moved(v), k}), more % k}), k});
      case 3:
        return apply("_operator.mod", {moved(v), v < 0 ? v - 1 - more : v + 1 + more});
      case 4:
        return apply("_operator.neg", {moved(-v)});
      case 5:
        return apply("_operator.sub", {v + h, s});
      case 6:
        return apply("torch.sym_int", {apply("_operator.truediv", {apply("_operator.mul", {moved(v), k}), k})});
      default:
        return moved(v);
    }
  }

  Arg replaced(Arg value) {
    if (ArgList* list = std::get_if<ArgList>(&value.v)) {
      for (Arg& item : list->items) item = replaced(item);
      return value;
    }
    if (chance(0.5)) return value;
    if (const auto* i = value.get<std::int64_t>()) return number(*i);
    if (const auto* d = value.get<double>()) return apply("_operator.mul", {apply("torch.sym_float", {number(1)}), *d});
    return value;
  }

  std::vector<Node*> integers_, numbers_;  ///< inputs; calls on them
  std::vector<bool> index_;                ///< of each input: are its elements places?
  std::vector<std::pair<std::int64_t, SymExpr>> extents_;
  int symbols_ = 0;
};

}  // namespace

Case generate(std::uint64_t seed, std::string_view only, bool symbols, const std::function<void(const Node&)>& trying) {
  if (seed % 3 == 0 && symbols) return Symbolic(seed, only, trying).run();
  if (seed % 3 == 1) return MixedDtypes(seed, only, trying).run();
  return Generator(seed, only, trying).run();
}

std::vector<std::string> candidates(std::string_view only) {
  std::vector<std::string> names;
  for (const OpRecord* r : Candidates(only).all) names.push_back(r->schema->name);
  return names;
}

}  // namespace partita::fuzz

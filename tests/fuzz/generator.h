#pragma once
// How random graphs are drawn: operators, arguments that may fit them, and inputs.
#include <algorithm>
#include <cmath>
#include <optional>
#include <random>

#include "core/interp/interpreter.h"
#include "core/ops/record/record.h"
#include "core/ops/schema/schema.h"
#include "tests/fuzz/generate.h"

namespace partita::fuzz {

inline bool can_be_made(const SchemaArg& a) {
  if (a.has_default || a.is_optional) return true;
  switch (a.type) {
    case SchemaType::Generator:
    case SchemaType::Stream:
    case SchemaType::Dimname:
    case SchemaType::Other:
    case SchemaType::SymBool:
      return false;
    default:
      return true;
  }
}

/// Is the operator pure, deterministic, and are all its values defined?
inline bool is_candidate(const OpRecord& record) {
  const Schema& s = *record.schema;
  if (s.is_mutable || s.nondeterministic_seeded || record.random || record.side_effect || s.returns.empty())
    return false;
  if (record.collective != CollectivePart::None) return false;  // nobody answers
  for (const char* unwritten : {"empty", "resize"})
    if (s.base.find(unwritten) != std::string::npos) return false;
  for (const SchemaArg& r : s.returns)
    if (r.type != SchemaType::Tensor) return false;
  return std::ranges::all_of(s.args, can_be_made);
}

/// FakeTensor gives what is distinct along dimension -1 other sizes than PyTorch's kernel, where sizes are symbols.
/// Ours does so too, for the graphs that have them (core/ops/families/unique.cpp).
inline bool has_sizes_of_the_fake_only(const Node& node) {
  const Schema& schema = *find_schema(node.op());
  const int dim = schema.index_of("dim");
  const auto bound = bind_arguments(schema, node.args(), node.kwargs());
  return schema.base.find("unique") != std::string::npos && dim >= 0 && bound &&
         (*bound)[static_cast<std::size_t>(dim)] == Arg(-1);
}

struct Candidates {
  std::vector<const OpRecord*> all, in_loops;
  explicit Candidates(std::string_view only) {
    for (const OpRecord* r : ops().all()) {
      if (!is_candidate(*r) || r->schema->name.find(only) == std::string::npos) continue;
      all.push_back(r);
      if (r->lower || r->pointwise.body) in_loops.push_back(r);
    }
  }
};

class Generator {
 public:
  Generator(std::uint64_t seed, std::string_view only, const std::function<void(const Node&)>& trying)
      : random_(seed), only_(only), trying_(trying) {}
  virtual ~Generator() = default;

  Case run() {
    const Candidates candidates(only_);
    if (candidates.all.empty()) return {};
    graph_->shapes = std::make_shared<ShapeEnv>();
    base_ = sizes();
    begin();
    const int wanted = 1 + pick(7);
    // Begin with one operator and give it many tries: few random arguments fit a convolution, for example.
    const OpRecord& first = *one_of(candidates.all);
    int made = 0;
    for (int tries = 0; made == 0 && tries < 100; ++tries) made += call(*first.schema);
    for (int tries = 0; made < wanted && tries < 60 * wanted; ++tries)
      made += call(*one_of(chance(0.5) && !candidates.in_loops.empty() ? candidates.in_loops : candidates.all)->schema);
    std::vector<Arg> outputs;
    for (Node* n : values_)
      if (n->op()->is_call() && (n->users().empty() || chance(0.2))) outputs.emplace_back(n);
    outputs.insert(outputs.end(), unsized_.begin(), unsized_.end());
    if (!outputs.empty()) end(outputs);
    graph_->set_output(Arg::tuple(std::move(outputs)));
    graph_->eliminate_dead([](const Node&) { return false; });
    std::vector<Value> other = other_inputs();
    return {std::move(graph_), std::move(inputs_), std::move(other)};
  }

 protected:
  virtual double reused() const { return 0.7; }  ///< how often an argument is a tensor that is there
  virtual void begin() {}                        ///< before the first call
  virtual void end(std::vector<Arg>&) {}         ///< may add results
  virtual std::vector<Value> other_inputs() { return {}; }
  /// What a call gets in place of an argument.
  virtual Arg given(const SchemaArg&, Arg value) { return value; }

  /// The sizes, or where they are symbolic their hints; nullopt if one depends on data.
  std::optional<Sizes> hints(const SymList& sizes) const {
    Sizes out;
    for (SymExpr e : sizes) {
      const std::optional<std::int64_t> n = graph_->shapes->hint(e);
      if (!n) return std::nullopt;
      out.push_back(*n);
    }
    return out;
  }

  int pick(int below) { return static_cast<int>(random_() % static_cast<unsigned>(below)); }
  bool chance(double p) { return static_cast<double>(random_() % 1000) < p * 1000; }
  template <class C>
  auto one_of(const C& choices) -> std::decay_t<decltype(*std::begin(choices))> {
    return *(std::begin(choices) + pick(static_cast<int>(std::size(choices))));
  }

  virtual DType dtype() {
    using enum DType;
    static constexpr DType floats[] = {Float32, Float32, Float64, BFloat16, Float16};
    static constexpr DType others[] = {Int64, Int32, Bool, UInt8, Int8, Int16, Complex64};
    return chance(0.75) ? one_of(floats) : one_of(others);
  }

  Sizes sizes() {
    static constexpr std::int64_t extents[] = {1, 2, 2, 3, 4, 5, 7, 8, 16, 33};
    Sizes s(static_cast<std::size_t>(pick(5)));
    for (auto& n : s) n = chance(0.03) ? 0 : one_of(extents);
    std::int64_t total = 1;
    for (auto& n : s) {
      if (total * n > most_elements_) n = 1;
      total *= std::max<std::int64_t>(n, 1);
    }
    return s;
  }

  /// Sizes that fit existing ones: the same, broadcast against them, or those of the other factor of a product.
  Sizes related() {
    Sizes s = base_;
    if (!values_.empty() && chance(0.5))
      if (const TensorMeta* t = one_of(values_)->meta.tensor()) s = *hints(t->sizes);
    const int how = pick(8);
    if (how == 0) return sizes();
    if (how == 1)
      for (auto& n : s)
        if (chance(0.5)) n = 1;
    if (how == 2 && !s.empty()) s.erase(s.begin());
    if (how == 3 && !s.empty()) return {s.back()};
    if (how == 4 && s.size() > 1) std::swap(s[s.size() - 1], s[s.size() - 2]);
    if (how == 5 && s.size() > 1) return {s[1]};
    return s;
  }

  /// Strides: row-major, another order of dims, gaps between elements, or an expanded dim.
  Sizes strides(const Sizes& s) {
    std::vector<std::size_t> order(s.size());
    for (std::size_t d = 0; d < s.size(); ++d) order[d] = d;
    if (chance(0.25)) std::ranges::shuffle(order, random_);
    const std::int64_t gap = chance(0.15) ? 2 : 1;
    Sizes out(s.size());
    std::int64_t next = gap;
    for (std::size_t k = s.size(); k-- > 0;) {
      out[order[k]] = next;
      next *= std::max<std::int64_t>(s[order[k]], 1);
    }
    if (!s.empty() && chance(0.1)) out[static_cast<std::size_t>(pick(static_cast<int>(s.size())))] = 0;
    return out;
  }

  double element(DType t, bool index) {
    if (index) return pick(2);
    if (t == DType::Bool) return pick(2);
    if (is_integral(t)) return pick(t == DType::UInt8 ? 6 : 11) - (t == DType::UInt8 ? 0 : 5);
    return std::normal_distribution<double>()(random_);
  }

  /// A tensor of random elements; those of an index are 0 and 1.
  Tensor filled(DType t, const Sizes& s, const Sizes& steps, bool index) {
    Tensor wide = *Tensor::empty(is_complex(t) ? DType::Complex128 : DType::Float64, s);
    const std::int64_t parts = wide.numel() * (is_complex(t) ? 2 : 1);
    auto* data = reinterpret_cast<double*>(wide.storage->data());
    for (std::int64_t i = 0; i < parts; ++i) data[i] = element(t, index);
    Tensor value = *Tensor::empty_strided(t, s, steps);
    std::fill_n(value.storage->data(), value.storage->bytes(), std::byte());  // as_strided may show what lies between
    value.copy_from(wide);
    return value;
  }

  Node* add_input(Meta meta, Value value) {
    Node* before = graph_->first();
    while (before && before->is_placeholder()) before = before->next();
    Node* n = graph_->placeholder("x", std::move(meta), before);
    inputs_.push_back(std::move(value));
    fresh_.push_back(n);
    return n;
  }

  virtual Node* placeholder(DType t, const Sizes& s, bool index) {
    TensorMeta meta;
    meta.dtype = t;
    const Sizes steps = strides(s);
    meta.sizes.assign(s.begin(), s.end());
    meta.strides.assign(steps.begin(), steps.end());
    return add_input(meta, filled(t, s, steps, index));
  }

  virtual Node* tensor(const SchemaArg& a) {
    const bool index = a.name == "index" || a.name == "indices" || a.name == "target";
    if (!index && !values_.empty() && chance(reused())) return one_of(values_);
    const DType t = index ? DType::Int64 : a.name == "condition" || a.name == "mask" ? DType::Bool : dtype();
    return placeholder(t, related(), index);
  }

  /// The sizes of the first tensor among the arguments so far.
  Sizes of_self(const Args& args) const {
    for (const Arg& a : args)
      if (const Node* n = a.node())
        if (const TensorMeta* t = n->meta.tensor()) return *hints(t->sizes);
    return base_;
  }

  std::int64_t dim(std::size_t rank) {
    const int r = std::max(static_cast<int>(rank), 1);
    return pick(2 * r) - r;
  }

  std::vector<Arg> integers(const SchemaArg& a, const Args& args) {
    const Sizes self = of_self(args);
    std::vector<Arg> out;
    if (a.name == "dim" || a.name == "dims") {
      for (std::size_t d = 0; d < self.size(); ++d)
        if (a.name == "dims" || chance(0.5)) out.emplace_back(static_cast<std::int64_t>(d));
      std::ranges::shuffle(out, random_);
    } else if (a.name == "size" || a.name == "sizes" || a.name == "shape") {
      Sizes s = chance(0.7) ? self : related();
      if (s.size() > 1 && chance(0.5)) {  // merge two dims
        s[1] *= s[0];
        s.erase(s.begin());
      } else if (chance(0.3)) {
        s.insert(s.begin(), 1);
      }
      if (!s.empty() && chance(0.3)) s[static_cast<std::size_t>(pick(static_cast<int>(s.size())))] = -1;
      for (std::int64_t n : s) out.emplace_back(n);
    } else if (a.name == "stride" && a.list_size == 0 && args.back().get<ArgList>()) {  // of as_strided
      for (std::size_t i = 0; i < args.back().get<ArgList>()->items.size(); ++i)
        out.emplace_back(static_cast<std::int64_t>(1 + pick(4)));
    } else if (a.name == "normalized_shape" && !self.empty()) {
      out.emplace_back(self.back());
    } else {
      const int count = a.list_size > 0 ? a.list_size : 1 + pick(3);
      for (int i = 0; i < count; ++i) out.emplace_back(static_cast<std::int64_t>(pick(3)));
    }
    return out;
  }

  Arg scalar(bool integral) {
    static constexpr double reals[] = {0, 1, -1, 0.5, 2, 3, -0.25, 1e-5};
    if (integral || chance(0.4)) return static_cast<std::int64_t>(pick(7) - 3);
    return one_of(reals);
  }

  Arg text(const SchemaArg& a) {
    static const char* const rounding[] = {"floor", "trunc"};
    static const char* const reduce[] = {"sum", "mean", "amax", "amin", "prod"};
    static const char* const gelu[] = {"none", "tanh"};
    if (a.name == "rounding_mode") return one_of(rounding);
    if (a.name == "reduce") return one_of(reduce);
    return one_of(gelu);
  }

  Arg single(const SchemaArg& a, const Args& args) {
    const std::size_t rank = of_self(args).size();
    switch (a.type) {
      case SchemaType::Tensor:
        return tensor(a);
      case SchemaType::Int:
      case SchemaType::SymInt:
        if (a.name.starts_with("dim") || a.name == "axis") return dim(rank);
        return static_cast<std::int64_t>(a.name == "groups" ? 1 : pick(5) - 1);
      case SchemaType::Float:
        return scalar(false);
      case SchemaType::Scalar:
        return scalar(false);
      case SchemaType::Bool:
        return a.name != "pin_memory" && chance(0.5);
      case SchemaType::Str:
        return text(a);
      case SchemaType::Dtype:
        return dtype();
      case SchemaType::MemoryFormat:
        return chance(0.5) ? MemoryFormat::Contiguous : MemoryFormat::Preserve;
      case SchemaType::Layout:
        return Layout::Strided;
      case SchemaType::Device:
        return Device();
      default:
        return {};
    }
  }

  Arg argument(const SchemaArg& a, const Args& args) {
    if (!a.is_list) return single(a, args);
    if (a.type == SchemaType::Int || a.type == SchemaType::SymInt) return Arg::list(integers(a, args));
    std::vector<Arg> items;
    const int count = a.type == SchemaType::Bool ? 3 : 1 + pick(3);
    for (int i = 0; i < count; ++i) {
      if (a.items_optional && chance(0.3))
        items.emplace_back();
      else
        items.push_back(single(a, args));
    }
    return Arg::list(std::move(items));
  }

  /// Appends a call if PyTorch would accept it, as far as is known here.
  bool call(const Schema& schema) {
    fresh_.clear();
    Args args;
    Kwargs kwargs;
    for (const SchemaArg& a : schema.args) {
      const bool may_miss = a.has_default || a.is_optional;
      if (may_miss && (!can_be_made({.name = a.name, .type = a.type}) || chance(0.6))) {
        if (a.is_optional && !a.has_default && kwargs.empty()) args.emplace_back();
        continue;
      }
      Arg value = given(a, argument(a, args));
      if (may_miss || a.keyword_only)
        kwargs.emplace_back(a.name, std::move(value));
      else
        args.push_back(std::move(value));
    }
    Node* node = graph_->create(Op::torch(schema.name), std::move(args), std::move(kwargs));
    if (accept(*node)) return true;
    graph_->erase(node);
    for (Node* n : fresh_) graph_->erase(n);
    forget_inputs(fresh_.size());
    return false;
  }

  /// The last inputs were of a call that is not kept.
  virtual void forget_inputs(std::size_t count) { inputs_.resize(inputs_.size() - count); }

  virtual bool accept(Node& node) {
    if (trying_) trying_(node);
    const WorkingOn call(node.op()->name);
    Result<Meta> meta = infer(node);
    if (!meta || has_sizes_of_the_fake_only(node)) return false;
    node.meta = *std::move(meta);
    const std::size_t results = node.meta.tuple() ? node.meta.tuple()->items.size() : 1;
    if (results == 0 || results > 8 || !small(node.meta)) return false;
    auto trial = graph_->clone();
    trial->set_output(trial->find(node.name()));
    if (!interpret(*trial, inputs_) || shows_sign_of_nan(node)) return false;
    values_.insert(values_.end(), fresh_.begin(), fresh_.end());
    if (const TensorMeta* t = node.meta.tensor()) (hints(t->sizes) ? values_ : unsized_).push_back(&node);
    if (const MetaTuple* tuple = node.meta.tuple())
      for (std::size_t i = 0; i < results; ++i) {
        if (!tuple->items[i].tensor()) continue;
        Node* item = graph_->create(Op::getitem(), {&node, static_cast<std::int64_t>(i)});
        item->meta = tuple->items[i];
        (hints(item->meta.tensor()->sizes) ? values_ : unsized_).push_back(item);
      }
    return true;
  }

  std::optional<Tensor> value_of(const Node* node) {
    if (!node) return std::nullopt;
    auto trial = graph_->clone();
    trial->set_output(Arg::tuple({trial->find(node->name())}));
    const auto values = interpret(*trial, inputs_);
    const Tensor* t = values ? values->front().get<Tensor>() : nullptr;
    return t ? std::optional(*t) : std::nullopt;
  }

  /// Does the call show the sign of a NaN? That sign is unspecified.
  bool shows_sign_of_nan(const Node& node) {
    const std::string& name = node.op()->name;
    if (name.find("signbit") == std::string::npos && name.find("copysign") == std::string::npos) return false;
    const std::optional<Tensor> t = value_of(node.args().back().node());
    for (std::int64_t i = 0; t && i < t->numel(); ++i)
      if (std::isnan(t->item_as_double(i))) return true;
    return false;
  }

  bool small(const Meta& meta) const {
    if (const TensorMeta* t = meta.tensor()) {
      const std::optional<std::int64_t> elements = graph_->shapes->hint(t->numel());
      return !elements || *elements <= 20000;
    }
    if (const MetaTuple* tuple = meta.tuple())
      return std::ranges::all_of(tuple->items, [&](const Meta& m) { return small(m); });
    return !meta.sym();
  }

  std::mt19937_64 random_;
  std::int64_t most_elements_ = 5000;  ///< of an input
  std::string_view only_;
  const std::function<void(const Node&)>& trying_;
  std::unique_ptr<Graph> graph_ = std::make_unique<Graph>();
  std::vector<Value> inputs_;
  std::vector<Node*> values_;   ///< tensors that calls may read
  std::vector<Node*> unsized_;  ///< tensors whose sizes depend on data: results that no call reads
  std::vector<Node*> fresh_;    ///< placeholders made for the current call
  Sizes base_;
};

}  // namespace partita::fuzz

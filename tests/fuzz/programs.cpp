#include "tests/fuzz/programs.h"

#include <map>
#include <set>

#include "core/base/check.h"
#include "core/compare/per_node.h"
#include "core/ops/facts/control.h"
#include "core/ops/facts/effects.h"
#include "core/ops/schema/functional_variant.h"
#include "core/ops/schema/in_place.h"
#include "tests/fuzz/generator.h"

namespace partita::fuzz {
namespace {

/// Does the overload write its first argument and nothing else, and return it?
bool writes_first(const Schema& s) {
  if (!s.is_mutable || s.args.empty() || !s.args[0].is_write || s.args[0].is_list || s.nondeterministic_seeded)
    return false;
  for (std::size_t i = 1; i < s.args.size(); ++i)
    if (s.args[i].is_write) return false;
  return s.returns.size() == 1 && s.returns[0].alias_set == s.args[0].alias_set && !s.returns[0].is_list &&
         std::ranges::all_of(s.args, can_be_made);
}

/// Does it share memory though PyTorch's compilers may take its result for a new tensor? Writing that is undefined.
bool hides_alias(const Schema& s) {
  return s.base.find("unsafe") != std::string::npos || s.base.find("lift_fresh") != std::string::npos ||
         find_record(Op::torch(s.name))->views.element_change != ElementChange::None;
}

/// Is the call's result its argument itself, as that of flatten of a vector is? What changes the sizes of one then
/// changes the other's.
bool gives_argument(const Node& node) {
  const OpRecord* record = find_record(node.op());
  if (!record || !record->decompose || record->fake || node.args().empty() || !node.args()[0].node()) return false;
  const auto trial = node.graph().clone();
  Node* call = trial->find(node.name());
  const Node* argument = call->args()[0].node();
  const Result<Arg> result = decompose(*call);
  return result && result->node() == argument;
}

/// What programs call, by what it does with memory.
struct Calls {
  std::vector<const OpRecord*> views, plain, elementwise;
  std::vector<const Schema*> writes, reshapes;  ///< in place: of elements; of sizes and strides
  Calls() {
    for (const OpRecord* r : ops().all()) {
      const Schema& s = *r->schema;
      if (writes_first(s) && !r->random && r->collective == CollectivePart::None) add_write(s);
      if (!is_candidate(*r) || hides_alias(s)) continue;
      if (s.is_view) views.push_back(r);
      if (r->lower || r->pointwise.body) plain.push_back(r);
      if (r->pointwise.body) elementwise.push_back(r);
      for (const Schema* in_place : find_overloads(s.base + "_"))
        if (writes_first(*in_place) && !ops().find(Op::torch(in_place->name))) add_write(*in_place);
    }
  }
  void add_write(const Schema& s) {
    std::vector<const Schema*>& list = view_in_place(Op::torch(s.name)) ? reshapes : writes;
    if (std::ranges::find(list, &s) == list.end()) list.push_back(&s);
  }
};

const Calls& calls() {
  static const Calls table;
  return table;
}

class ProgramGenerator final : public Generator {
 public:
  ProgramGenerator(std::uint64_t seed, bool train, const std::function<void(const Node&)>& trying)
      : Generator(seed, {}, trying), train_(train) {
    most_elements_ = 200;
  }

  Program run() {
    graph_->shapes = std::make_shared<ShapeEnv>();
    base_ = sizes();
    const int wanted = 2 + pick(7);
    int made = 0;
    for (int tries = 0; made < wanted && tries < 40 * wanted; ++tries) made += step();
    if (!grad_mode_) set_grad_mode(true);
    if (made == 0 || !finish()) return {};
    Program out;
    give_inputs(out.io);
    if (train_ && !give_tangents(out.io)) return {};
    out.graph = std::move(graph_);
    return out;
  }

 private:
  bool step() {
    const int kind = pick(100);
    if (values_.empty() || kind < 25) return call(*one_of(calls().plain)->schema);
    if (kind < 45) return call(*one_of(calls().views)->schema);
    if (kind < 80) return call(*one_of(calls().writes));
    if (kind < 88) return call(*one_of(calls().reshapes));
    if (kind < 92) return set_grad_mode(!grad_mode_);
    if (kind < 95) return cond();
    if (kind < 98) return while_loop();
    return scan();
  }

  bool set_grad_mode(bool on) {
    graph_->create(set_grad_enabled(), {on});
    grad_mode_ = on;
    return true;
  }

  DType dtype() override {
    using enum DType;
    static constexpr DType floats[] = {Float32, Float32, Float32, Float64};
    static constexpr DType others[] = {Int64, Bool, Complex64};
    return chance(0.9) ? one_of(floats) : one_of(others);
  }

  /// Many inputs are an earlier one, or lie in its memory.
  Node* placeholder(DType t, const Sizes& s, bool index) override {
    same_.resize(inputs_.size() + 1);
    same_.back().reset();
    if (index || inputs_.empty() || !chance(0.4)) return Generator::placeholder(t, s, index);
    const auto i = static_cast<std::size_t>(pick(static_cast<int>(inputs_.size())));
    Tensor value = *inputs_[i].get<Tensor>();
    const Node* first = graph_->placeholders()[i];
    if (value.dtype == DType::Int64) return Generator::placeholder(t, s, index);  // it may hold indices
    if (chance(0.3) && object_.contains(first) && !reshaped_.contains(object_.at(first))) {
      same_.back() = i;
    } else {
      const auto room = static_cast<std::int64_t>(value.storage->bytes() / itemsize(value.dtype));
      value.sizes = numel(s) <= room ? s : Sizes{room};
      if (!value.sizes.empty() && chance(0.5)) {
        std::int64_t& n = value.sizes[static_cast<std::size_t>(pick(static_cast<int>(value.sizes.size())))];
        n = (n + 1) / 2;
      }
      value.strides = row_major_strides(value.sizes);
      value.offset = pick(static_cast<int>(room - value.numel() + 1));
    }
    TensorMeta meta;
    meta.dtype = value.dtype;
    meta.sizes.assign(value.sizes.begin(), value.sizes.end());
    meta.strides.assign(value.strides.begin(), value.strides.end());
    Node* before = graph_->first();
    while (before && before->is_placeholder()) before = before->next();
    Node* n = graph_->placeholder("x", meta, before);
    inputs_.emplace_back(value);
    fresh_.push_back(n);
    return n;
  }

  /// What is written exists already, and mostly is an input or a view.
  Node* tensor(const SchemaArg& a) override {
    if (!a.is_write || values_.empty()) return Generator::tensor(a);
    for (int tries = 0; tries < 4; ++tries) {
      Node* n = one_of(values_);
      const Schema* schema = find_schema(n->op());
      if (n->is_placeholder() || (schema && (schema->is_view || schema->is_mutable))) return n;
    }
    return one_of(values_);
  }

  std::optional<std::vector<Value>> interpreted(const Graph& graph) {
    const auto own = copy_values(inputs_);
    if (!own) return std::nullopt;
    auto values = interpret(graph, *own);
    if (!values) return std::nullopt;
    return *std::move(values);
  }

  static bool writes(const Node& node) {
    const Schema* schema = find_schema(node.op());
    return schema && writes_first(*schema);
  }
  static const TensorMeta& written(const Node& node) { return *node.args()[0].node()->meta.tensor(); }

  /// Is an element of what the call writes in memory twice? PyTorch refuses to write it.
  static bool writes_overlap(const Node& node) {
    if (!writes(node)) return false;
    const TensorMeta& t = written(node);
    for (std::size_t d = 0; d < t.sizes.size(); ++d)
      if (!t.sizes[d].is(1) && t.strides[d].is(0)) return true;
    return false;
  }

  bool accept(Node& node) override {
    if (trying_) trying_(node);
    const WorkingOn working(node.op()->name);
    Result<Meta> meta = infer(node);
    if (!meta || !small(*meta)) return false;
    node.meta = *std::move(meta);
    const std::size_t results = node.meta.tuple() ? node.meta.tuple()->items.size() : 1;
    if (results == 0 || results > 8 || writes_overlap(node)) return false;
    const TensorMeta* result = node.meta.tensor();
    if (result && !concrete(result->sizes)) return false;
    // resize_ to more elements shows memory that nobody wrote.
    if (writes(node) && result->numel().as_int() > written(node).numel().as_int()) return false;
    auto trial = graph_->clone();
    trial->set_output(trial->find(node.name()));
    if (!interpreted(*trial) || (writes(node) && reads_what_it_writes(node))) return false;
    keep(node);
    return true;
  }

  /// Does the call read other elements of the memory that it writes than the one it computes, or write one twice? What
  /// it computes then depends on the order of its loop, and PyTorch refuses where it notices.
  bool reads_what_it_writes(const Node& node) {
    auto trial = graph_->clone();
    std::vector<Arg> read;
    for (const Node* n : node.inputs()) read.emplace_back(trial->find(n->name()));
    trial->set_output(Arg::tuple(std::move(read)));
    trial->erase(trial->find(node.name()));
    const auto values = interpreted(*trial);
    if (!values) return true;
    const auto places = [](const Tensor& t) {
      std::vector<std::int64_t> out;
      std::vector<std::int64_t> index(t.sizes.size(), 0);
      for (std::int64_t n = t.numel(); n > 0; --n) {
        out.push_back(t.offset);
        for (std::size_t d = 0; d < index.size(); ++d) out.back() += index[d] * t.strides[d];
        for (std::size_t d = index.size(); d-- > 0 && ++index[d] == t.sizes[d];) index[d] = 0;
      }
      return out;
    };
    const Tensor& target = *values->front().get<Tensor>();
    const std::vector<std::int64_t> written = places(target);
    const std::set<std::int64_t> once(written.begin(), written.end());
    if (once.size() != written.size()) return true;
    const auto variant = functional_variant(node.op());
    const OpRecord* record = variant ? find_record(variant->op) : nullptr;
    const bool elementwise = record && record->pointwise.body;
    for (std::size_t i = 1; i < values->size(); ++i) {
      const Tensor* t = (*values)[i].get<Tensor>();
      if (!t || t->storage != target.storage) continue;
      if (t->dtype != target.dtype) return true;
      const std::vector<std::int64_t> other = places(*t);
      if ((other != written || !elementwise) &&
          std::ranges::any_of(other, [&](std::int64_t at) { return once.contains(at); }))
        return true;
    }
    return false;
  }

  /// Notes which tensor each new value is: in Python, what x.add_() returns is x.
  void keep(Node& node) {
    for (Node* n : fresh_) {
      const std::vector<Node*> placeholders = graph_->placeholders();
      const auto i = static_cast<std::size_t>(std::ranges::find(placeholders, n) - placeholders.begin());
      if (const auto& same = same_[i]) {
        name(*n, object_.at(placeholders[*same]));
      } else {
        name(*n, names_.size());
      }
    }
    if (writes(node)) {
      const std::size_t object = object_.at(node.args()[0].node());
      const TensorMeta &before = written(node), &after = *node.meta.tensor();
      if (before.sizes != after.sizes || before.strides != after.strides) reshaped_.insert(object);
      name(node, object);
      return;
    }
    if (node.meta.tensor()) name(node, gives_argument(node) ? object_.at(node.args()[0].node()) : names_.size());
    if (const MetaTuple* tuple = node.meta.tuple())
      for (std::size_t i = 0; i < tuple->items.size(); ++i) {
        if (!tuple->items[i].tensor()) continue;
        Node* item = graph_->create(Op::getitem(), {&node, static_cast<std::int64_t>(i)});
        item->meta = tuple->items[i];
        name(*item, names_.size());
      }
  }

  /// The newest name of a tensor is what later calls read, because it has the newest sizes.
  void name(Node& node, std::size_t object) {
    if (object == names_.size()) names_.emplace_back();
    for (Node* older : names_[object]) std::erase(values_, older);
    names_[object].push_back(&node);
    object_[&node] = object;
    values_.push_back(&node);
  }

  // Control flow.

  /// A value of few elements that sub graphs may take.
  Node* operand() {
    for (int tries = 0; tries < 8; ++tries) {
      Node* n = one_of(values_);
      if (is_floating(n->meta.tensor()->dtype)) return n;
    }
    return nullptr;
  }

  static TensorMeta dense(const Node* like) {
    const TensorMeta& t = *like->meta.tensor();
    return TensorMeta::contiguous(t.dtype, t.sizes, t.device);
  }

  Node* append(Graph& graph, std::string_view op, Args args, Kwargs kwargs = {}) {
    Node* n = graph.create(Op::torch(op), std::move(args), std::move(kwargs));
    const Result<Meta> meta = infer(*n);
    CHECK(meta, "a call of the fuzzer's own");
    n->meta = *meta;
    return n;
  }

  /// Appends a few elementwise calls on `values`, of which the first has the meta `wanted` but for its strides. Returns
  /// a new tensor of that meta.
  Node* body(Graph& graph, std::vector<Node*> values, const TensorMeta& wanted) {
    const int length = 1 + pick(3);
    Node* last = values.front();
    for (int made = 0, tries = 0; made < length && tries < 40; ++tries) {
      const OpRecord& record = *one_of(calls().elementwise);
      Args args;
      bool fits = true;
      for (const SchemaArg& a : record.schema->args) {
        if (a.has_default && !a.is_optional) break;
        fits = fits && !a.is_optional && a.type == SchemaType::Tensor && !a.is_list && !a.keyword_only;
        args.emplace_back(args.empty() ? last : one_of(values));
      }
      if (!fits || args.empty()) continue;
      Node* n = graph.create(Op::torch(record.schema->name), std::move(args));
      const Result<Meta> meta = infer(*n);
      const TensorMeta* t = meta ? meta->tensor() : nullptr;
      std::vector<Value> sample;  // kernels refuse what inference takes
      for (const Node* input : n->inputs()) sample.emplace_back(*Tensor::zeros(input->meta.tensor()->dtype, {1}));
      if (!t || t->dtype != wanted.dtype || t->sizes != wanted.sizes || !evaluate(n->op(), std::move(sample), {})) {
        graph.erase(n);
        continue;
      }
      n->meta = *meta;
      values.push_back(last = n);
      ++made;
    }
    return append(graph, "aten.clone.default", {last}, {{"memory_format", MemoryFormat::Contiguous}});
  }

  /// A sub graph with these placeholders. `fill` appends its calls and returns its results.
  Node* sub_graph(std::string_view stem, const std::vector<TensorMeta>& metas,
                  const std::function<Arg(Graph&, const std::vector<Node*>&)>& fill) {
    const std::string target = std::string(stem) + "_" + std::to_string(graph_->children.size());
    auto child = std::make_unique<Graph>(target);
    child->shapes = graph_->shapes;
    std::vector<Node*> placeholders;
    for (const TensorMeta& meta : metas) placeholders.push_back(child->placeholder("y", meta));
    child->set_output(fill(*child, placeholders));
    graph_->children.emplace_back(target, std::move(child));
    Node* node = graph_->create(Op::get_attr(), {}, {}, target);
    node->target = target;
    return node;
  }

  /// Appends the call and readers of its results; takes everything away again if it does not run.
  bool accept_control(std::string_view op, Args args, std::vector<TensorMeta> results, Node* before,
                      std::size_t children) {
    Node* call = graph_->create(Op::torch(op), std::move(args));
    MetaTuple metas;
    metas.items.assign(results.begin(), results.end());
    call->meta = metas;
    std::vector<Node*> items;
    for (std::size_t i = 0; i < results.size(); ++i) {
      items.push_back(graph_->create(Op::getitem(), {call, static_cast<std::int64_t>(i)}));
      items.back()->meta = results[i];
    }
    auto trial = graph_->clone();
    trial->set_output(trial->find(items.front()->name()));
    if (interpreted(*trial)) {
      for (Node* item : items) name(*item, names_.size());
      return true;
    }
    while (graph_->last() != before) graph_->erase(graph_->last());
    graph_->children.resize(children);
    return false;
  }

  bool cond() {
    fresh_.clear();
    Node *a = operand(), *b = operand(), *before = graph_->last();
    if (!a || !b) return false;
    const std::size_t children = graph_->children.size();
    Node* sum = append(*graph_, "aten.sum.default", {a});
    Node* positive = append(*graph_, "aten.gt.Scalar", {sum, 0.0});
    const TensorMeta wanted = dense(a);
    const auto branch = [&](std::string_view stem) {
      return sub_graph(stem, {*a->meta.tensor(), *b->meta.tensor()}, [&](Graph& g, const std::vector<Node*>& inputs) {
        return Arg::tuple({body(g, inputs, wanted)});
      });
    };
    Node *yes = branch("true_graph"), *no = branch("false_graph");
    return accept_control("higher_order.cond", {positive, yes, no, Arg::tuple({a, b})}, {wanted}, before, children);
  }

  bool while_loop() {
    fresh_.clear();
    Node *x = operand(), *before = graph_->last();
    if (!x) return false;
    const std::size_t children = graph_->children.size();
    Node* from = append(*graph_, "aten.clone.default", {x}, {{"memory_format", MemoryFormat::Contiguous}});
    Node* zero = append(*graph_, "aten.full.default", {Arg::list({}), 0},
                        {{"dtype", DType::Int64}, {"device", Device()}, {"pin_memory", false}});
    const TensorMeta count = *zero->meta.tensor(), wanted = dense(from);
    const std::int64_t turns = pick(4);
    Node* more = sub_graph("while_cond_graph", {count, wanted}, [&](Graph& g, const std::vector<Node*>& inputs) -> Arg {
      return append(g, "aten.lt.Scalar", {inputs[0], turns});
    });
    Node* turn = sub_graph("while_body_graph", {count, wanted}, [&](Graph& g, const std::vector<Node*>& inputs) {
      Node* next = append(g, "aten.add.Tensor", {inputs[0], 1});
      return Arg::tuple({next, body(g, {inputs[1]}, wanted)});
    });
    return accept_control("higher_order.while_loop", {more, turn, Arg::tuple({zero, from}), Arg::tuple({})},
                          {count, wanted}, before, children);
  }

  bool scan() {
    fresh_.clear();
    Node *x = operand(), *before = graph_->last();
    if (!x || x->meta.tensor()->sizes.size() > 3) return false;
    const std::size_t children = graph_->children.size();
    Node* from = append(*graph_, "aten.clone.default", {x}, {{"memory_format", MemoryFormat::Contiguous}});
    const std::int64_t length = 1 + pick(3);
    std::vector<Arg> copies(static_cast<std::size_t>(length), Arg(x));
    Node* xs = append(*graph_, "aten.stack.default", {Arg::list(std::move(copies))});
    const TensorMeta wanted = dense(from);
    Node* combine = sub_graph("scan_combine_graph", {wanted, wanted}, [&](Graph& g, const std::vector<Node*>& inputs) {
      Node* carry = body(g, inputs, wanted);
      return Arg::list({carry, body(g, {inputs[1], inputs[0]}, wanted)});
    });
    TensorMeta all = wanted;
    all.sizes.insert(all.sizes.begin(), length);
    all = TensorMeta::contiguous(all.dtype, all.sizes, all.device);
    return accept_control("higher_order.scan", {combine, Arg::list({from}), Arg::list({xs}), Arg::list({})},
                          {wanted, all}, before, children);
  }

  // The end of a program.

  /// Chooses the results, gives values that have several names another one, and erases what nobody needs.
  bool finish() {
    std::vector<Node*> all;
    for (Node* n : values_) all.push_back(n);
    std::ranges::shuffle(all, random_);
    std::vector<Arg> outputs;
    const int count = 1 + pick(4);
    for (Node* n : all)
      if (static_cast<int>(outputs.size()) < count) outputs.emplace_back(n);
    if (chance(0.1) && !outputs.empty()) outputs.push_back(outputs.front());
    graph_->set_output(Arg::tuple(std::move(outputs)));
    std::vector<const Node*> before;
    for (Node* n : *graph_) {
      for (Node* read : n->inputs()) {
        const auto object = object_.find(read);
        if (object == object_.end() || !chance(0.3)) continue;
        // The interpreter, which gives the sizes of tangents, takes inputs that are one tensor for several.
        if (train_ && reshaped_.contains(object->second)) continue;
        Node* other = one_of(names_[object->second]);
        if (other != read && std::ranges::find(before, other) != before.end()) n->replace_input(read, other);
      }
      before.push_back(n);
    }
    graph_->eliminate_dead(has_effect);
    return !graph_->placeholders().empty() && graph_->placeholders().size() == inputs_.size();
  }

  void give_inputs(TensorFile& io) {
    const auto memory = [&](std::size_t i) { return inputs_[i].get<Tensor>()->storage.get(); };
    for (std::size_t first = 0; first < inputs_.size(); ++first) {
      std::vector<std::size_t> group;
      for (std::size_t i = 0; i < inputs_.size(); ++i)
        if (memory(i) == memory(first)) group.push_back(i);
      if (group.front() != first) continue;
      const bool wants = train_ && chance(0.7) && std::ranges::all_of(group, [&](std::size_t i) {
                           const Tensor& t = *inputs_[i].get<Tensor>();
                           return is_floating(t.dtype) && std::ranges::find(t.strides, 0) == t.strides.end();
                         });
      const std::string whole = "storage." + std::to_string(first);
      for (std::size_t i : group) {
        Tensor t = *inputs_[i].get<Tensor>();
        t.requires_grad = wants;
        wants_ = wants_ || wants;
        const std::string key = "input." + std::to_string(i);
        io.tensors[key] = t;
        if (group.size() == 1) continue;
        const auto room = static_cast<std::int64_t>(t.storage->bytes() / itemsize(t.dtype));
        io.tensors[whole] = Tensor{t.storage, t.dtype, {room}, {1}};
        io.storages[key] = {whole, t.offset};
        if (const auto& same = same_[i]) io.storages[key] = {"input." + std::to_string(*same), 0};
      }
    }
  }

  Tensor tangent(DType t, const Sizes& sizes) {
    Tensor out = *Tensor::empty(t, sizes), wide = *Tensor::empty(DType::Float64, sizes);
    for (std::int64_t i = 0; i < wide.numel(); ++i) wide.as<double>()[i] = element(DType::Float64, false);
    out.copy_from(wide);
    return out;
  }

  bool give_tangents(TensorFile& io) {
    if (!wants_) return false;
    const auto results = interpreted(*graph_);
    if (!results) return false;
    for (std::size_t i = 0; i < results->size(); ++i)
      if (const Tensor* t = (*results)[i].get<Tensor>(); t && is_floating(t->dtype))
        io.tensors["tangent." + std::to_string(i)] = tangent(t->dtype, t->sizes);
    const std::vector<Node*> placeholders = graph_->placeholders();
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      const std::string key = "input." + std::to_string(i);
      const Tensor& t = io.tensors[key];
      if (t.requires_grad && !reshaped_.contains(object_.at(placeholders[i])) && chance(0.4))
        io.tensors["tangent." + key] = tangent(t.dtype, t.sizes);
    }
    return true;
  }

  bool train_, grad_mode_ = true, wants_ = false;
  std::vector<std::optional<std::size_t>> same_;  ///< by input: the earlier one that is the very same tensor
  std::map<const Node*, std::size_t> object_;     ///< which tensor a node is
  std::vector<std::vector<Node*>> names_;         ///< by tensor: its nodes, the newest last
  std::set<std::size_t> reshaped_;                ///< tensors whose sizes or strides a call changed
};

}  // namespace

Program generate_program(std::uint64_t seed, bool train, const std::function<void(const Node&)>& trying) {
  return ProgramGenerator(seed, train, trying).run();
}

}  // namespace partita::fuzz

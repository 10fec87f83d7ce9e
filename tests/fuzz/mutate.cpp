#include "tests/fuzz/mutate.h"

#include <functional>
#include <random>

#include <fmt/format.h>

#include "core/interp/random_values.h"
#include "core/ir/print.h"

namespace partita::fuzz {
namespace {

class Mutation {
 public:
  Mutation(Graph& graph, std::vector<Value>& inputs, std::uint64_t seed)
      : graph_(graph), inputs_(inputs), engine_(seed * 0x9e3779b97f4a7c15ULL + 1) {}

  std::string run() {
    const std::vector<Node*> placeholders = graph_.placeholders();
    if (!placeholders.empty() && below(4) == 0) return change_input(below(placeholders.size()));
    std::vector<Node*> calls;
    for (Node* n : graph_)
      if (n->op()->is_call() && !(n->args().empty() && n->kwargs().empty())) calls.push_back(n);
    if (calls.empty()) return {};
    return change_call(*calls[below(calls.size())]);
  }

 private:
  std::size_t below(std::size_t n) { return static_cast<std::size_t>(engine_() % n); }

  std::int64_t other(std::int64_t v) {
    static constexpr std::int64_t extremes[] = {0,
                                                1,
                                                -1,
                                                2,
                                                -2,
                                                3,
                                                7,
                                                -7,
                                                100,
                                                1000003,
                                                std::int64_t{1} << 31,
                                                std::int64_t{1} << 32,
                                                -(std::int64_t{1} << 31) - 1,
                                                std::int64_t{1} << 40,
                                                std::int64_t{1} << 60,
                                                std::int64_t{1} << 62,
                                                INT64_MAX,
                                                INT64_MIN,
                                                INT64_MIN + 1,
                                                100000007};
    switch (below(4)) {
      case 0:
        return v == INT64_MAX ? v - 1 : v + 1;
      case 1:
        return v == INT64_MIN ? v + 1 : v - 1;
      default:
        return extremes[below(std::size(extremes))];
    }
  }

  /// Another value in place of `a`, an argument of `node`.
  void change(Arg& a, Node& node) {
    if (auto* i = std::get_if<std::int64_t>(&a.v)) {
      *i = other(*i);
      // Known only when a node has run.
      if (below(4) == 0 && *i > INT64_MIN) {
        Node* sum = graph_.create(Op::get(OpKind::Function, "_operator.add"), {*i - 1, 1}, {}, {}, &node);
        sum->meta = SymExpr(*i);
        a = sum;
      }
    } else if (auto* b = std::get_if<bool>(&a.v)) {
      *b = !*b;
    } else if (auto* d = std::get_if<double>(&a.v)) {
      static constexpr double values[] = {0.0, -1.0, 1e300, -1e300, 1e-300, HUGE_VAL, -HUGE_VAL, NAN, 0.5, 1e18};
      *d = values[below(std::size(values))];
    } else if (std::get_if<DType>(&a.v)) {
      static constexpr DType values[] = {DType::Bool,    DType::UInt8,     DType::Int64,        DType::Float16,
                                         DType::Float64, DType::Complex64, DType::Float8E4M3FN, DType::Complex32};
      a = values[below(std::size(values))];
    } else if (a.node()) {
      std::vector<Node*> before;
      for (Node* n = graph_.first(); n != &node; n = n->next()) before.push_back(n);
      a = below(4) == 0 ? Arg() : Arg(before[below(before.size())]);
    } else if (auto* list = std::get_if<ArgList>(&a.v)) {
      if (list->items.empty() || below(3) == 0)
        list->items.emplace_back(list->items.empty() ? Arg(std::int64_t{1}) : list->items.front());
      else
        list->items.erase(list->items.begin() + static_cast<std::ptrdiff_t>(below(list->items.size())));
    } else if (a.is_none()) {
      a = below(2) == 0 ? Arg(other(0)) : Arg(true);
    } else {
      a = Arg();
    }
  }

  static void each(Arg& a, const std::function<void(Arg&)>& f) {
    f(a);
    if (auto* list = std::get_if<ArgList>(&a.v))
      for (Arg& item : list->items) each(item, f);
  }

  std::string change_call(Node& node) {
    const std::string before = print(node, {.annotations = false, .origins = false, .deletions = false});
    Args args = node.args();
    Kwargs kwargs = node.kwargs();
    std::vector<Arg*> places;
    const auto note = [&](Arg& a) { places.push_back(&a); };
    for (Arg& a : args) each(a, note);
    for (auto& [key, a] : kwargs) each(a, note);
    change(*places[below(places.size())], node);
    node.set_args(std::move(args), std::move(kwargs));
    forget();
    return before + "  ->  " + print(node, {.annotations = false, .origins = false, .deletions = false});
  }

  /// The annotations belong to the graph before the change. Sometimes they stay, as they may in a file.
  void forget() {
    if (below(4) == 0) return;
    for (Node* n : graph_)
      if (n->op()->is_call() && !n->meta.sym()) n->meta = Meta();
  }

  std::string change_input(std::size_t i) {
    Node& node = *graph_.placeholders()[i];
    TensorMeta* t = node.meta.tensor();
    if (!t || i >= inputs_.size()) return {};
    const std::string before = annotation(node.meta);
    if (Tensor* held = std::get_if<Tensor>(&inputs_[i].v);
        held && held->dtype == DType::Int64 && held->numel() > 0 && below(2) == 0) {
      Result<Tensor> copy = held->clone();  // the case's other changes have the old values
      if (!copy) return {};
      const std::int64_t value = other(0),
                         at = static_cast<std::int64_t>(below(static_cast<std::size_t>(copy->numel())));
      copy->as<std::int64_t>()[at] = value;
      *held = *std::move(copy);
      return fmt::format("{}: element {} in memory  ->  {}", node.name(), at, value);
    }
    TensorMeta changed = *t;
    if (changed.sizes.empty() || below(8) == 0) {
      if (below(2) == 0)
        changed = TensorMeta::contiguous(t->dtype, {static_cast<std::int64_t>(below(5))}, t->device);
      else
        changed = TensorMeta::contiguous(t->dtype, {}, t->device);
    } else if (below(2) == 0) {
      changed.strides[below(changed.strides.size())] = static_cast<std::int64_t>(below(9));
    } else {
      changed.sizes[below(changed.sizes.size())] = static_cast<std::int64_t>(below(6));
      changed = TensorMeta::contiguous(t->dtype, changed.sizes, t->device);
    }
    Result<Value> value = random_value(Meta(changed), *graph_.shapes, engine_());
    if (!value) return {};
    inputs_[i] = *std::move(value);
    *t = std::move(changed);
    forget();
    return fmt::format("{} {}  ->  {}", node.name(), before, annotation(node.meta));
  }

  Graph& graph_;
  std::vector<Value>& inputs_;
  std::mt19937_64 engine_;
};

}  // namespace

std::string mutate(Graph& graph, std::vector<Value>& inputs, std::uint64_t seed) {
  return Mutation(graph, inputs, seed).run();
}

}  // namespace partita::fuzz

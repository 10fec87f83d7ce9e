#include "core/schedule/specialise.h"

#include <algorithm>
#include <unordered_map>

#include <fmt/format.h>

#include "core/base/raise.h"
#include "core/ir/place.h"
#include "core/ops/python/python_ops.h"
#include "core/ops/record/record.h"
#include "core/sym/float_symbol.h"

namespace partita::schedule {
namespace {

class Specialiser {
 public:
  /// `all`: no symbol may stay.
  Specialiser(Graph& graph, const std::map<std::string, std::int64_t>& sizes, bool all)
      : graph_(graph), sizes_(sizes), all_(all) {
    if (graph.shapes) hints_ = graph.shapes->hints();
  }

  Status run() {
    for (Node* node : graph_) {
      bool symbolic = node->meta.sym() != nullptr;
      const bool truth = symbolic && gives_bool(*node);
      TRY_DO(meta(node->meta, *node));
      for (Node* input : node->inputs())
        if (const auto it = numbers_.find(input); it != numbers_.end()) node->replace_input(input, it->second);
      if (const SymExpr* e = symbolic ? node->meta.sym() : nullptr; e && (e->is_int() || e->kind() == SymKind::Float))
        numbers_[node] = truth ? Arg(!e->is(0)) : number(*e);
    }
    return {};
  }

 private:
  static Arg number(SymExpr e) {
    if (e.is_int()) return e.as_int();
    return e.as_float();
  }

  Status value(SymExpr& e, const Node& node) {
    if (e.is_int()) return {};
    if (!all_) {
      e = e.substitute([&](const std::string& symbol) -> std::optional<SymExpr> {
        const auto it = sizes_.find(symbol);
        return it == sizes_.end() ? std::nullopt : std::optional(symbol_value(symbol, it->second));
      });
      return {};
    }
    const auto number_of = [&](const std::string& symbol) -> std::optional<std::int64_t> {
      if (auto it = sizes_.find(symbol); it != sizes_.end()) return it->second;
      if (auto it = hints_.find(symbol); it != hints_.end()) return it->second;
      return std::nullopt;
    };
    const auto v = e.evaluate(number_of);
    if (!v)
      return unsupported("schedule.symbol", "the size " + e.str() + " is known only at run time; use --backend interp",
                         place_of(node));
    const std::optional<std::int64_t> number = e.evaluate_integer(number_of);
    if (!e.is_float() && !number)
      return input_error("schedule.symbol", "the size " + e.str() + " is beyond 64 bits with these inputs",
                         place_of(node));
    e = e.is_float() ? SymExpr::real(*v) : SymExpr(*number);
    return {};
  }

  Status meta(Meta& m, const Node& node) {
    if (TensorMeta* t = m.tensor()) {
      for (SymExpr& e : t->sizes) TRY_DO(value(e, node));
      for (SymExpr& e : t->strides) TRY_DO(value(e, node));
      return value(t->offset, node);
    }
    if (auto* e = std::get_if<SymExpr>(&m.v)) return value(*e, node);
    if (auto* tuple = std::get_if<MetaTuple>(&m.v))
      for (Meta& item : tuple->items) TRY_DO(meta(item, node));
    return {};
  }

  Graph& graph_;
  const std::map<std::string, std::int64_t>& sizes_;
  const bool all_;
  std::map<std::string, std::int64_t> hints_;
  std::unordered_map<const Node*, Arg> numbers_;
};

/// Compares dtypes and sizes. A size that depends on data is inferred as a symbol, which agrees with any number.
bool same_tensors(const Meta& inferred, const Meta& annotated) {
  const auto agree = [](SymExpr a, SymExpr b) { return a == b || !a.symbols().empty(); };
  if (const TensorMeta *x = inferred.tensor(), *y = annotated.tensor(); x && y)
    return x->dtype == y->dtype && std::ranges::equal(x->sizes, y->sizes, agree);
  const MetaTuple *x = inferred.tuple(), *y = annotated.tuple();
  for (std::size_t i = 0; x && y && i < x->items.size() && i < y->items.size(); ++i)
    if (!same_tensors(x->items[i], y->items[i])) return false;
  return true;
}

/// Checks calls against their inference again, now that every number is known: numbers computed by nodes or written in
/// annotations, and symbols that stand for sizes that must be equal (text has no guards). Compiled code checks nothing
/// at run time.
Status check_calls(Graph& graph) {
  for (Node* node : graph) {
    if (!node->op()->is_call() || !node->meta.known()) continue;
    TRY_DO(check_evaluable(*node));
    const Result<Meta> inferred = infer(*node);
    if (!inferred && inferred.error().fault == Fault::Unsupported) continue;
    if (!inferred) return inferred.error();
    if (!same_tensors(*inferred, node->meta))
      return input_error(
          "schedule.sizes",
          fmt::format("with these inputs {} is {} where the graph says {}; do their sizes and dtypes fit "
                      "together?",
                      node->name(), annotation(*inferred), annotation(node->meta)),
          place_of(*node));
    // unbind of a size that was a symbol: the graph says as many results as it had when it was made.
    if (const MetaTuple *now = inferred->tuple(), *annotated = node->meta.tuple();
        now && annotated && now->items.size() != annotated->items.size())
      node->meta = *inferred;
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<Graph>> specialise(const Graph& graph, const std::map<std::string, std::int64_t>& sizes) {
  std::unique_ptr<Graph> copy = graph.clone();
  if (!copy->shapes) copy->shapes = std::make_shared<ShapeEnv>();
  TRY_DO(Specialiser(*copy, sizes, true).run());
  TRY_DO(check_calls(*copy));
  return copy;
}

Result<std::unique_ptr<Graph>> fix_symbols(const Graph& graph, const std::map<std::string, std::int64_t>& sizes) {
  return catch_raised<std::unique_ptr<Graph>>([&]() -> Result<std::unique_ptr<Graph>> {
    std::unique_ptr<Graph> copy = graph.clone();
    TRY_DO(Specialiser(*copy, sizes, false).run());
    return copy;
  });
}

}  // namespace partita::schedule

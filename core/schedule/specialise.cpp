#include "core/schedule/specialise.h"

#include <unordered_map>

namespace partita::schedule {
namespace {

class Specialiser {
 public:
  Specialiser(Graph& graph, const std::map<std::string, std::int64_t>& sizes) : graph_(graph), sizes_(sizes) {
    if (graph.shapes) hints_ = graph.shapes->hints();
  }

  Status run() {
    for (Node* node : graph_) {
      bool symbolic = node->meta.sym() != nullptr;
      TRY_DO(meta(node->meta, *node));
      auto replace = [&](Node* n) -> Arg {
        auto it = numbers_.find(n);
        return it == numbers_.end() ? Arg(n) : it->second;
      };
      Args args;
      for (const Arg& a : node->args()) args.push_back(map_nodes(a, replace));
      Kwargs kwargs;
      for (const auto& [key, a] : node->kwargs()) kwargs.emplace_back(key, map_nodes(a, replace));
      node->set_args(std::move(args), std::move(kwargs));
      if (symbolic) numbers_[node] = number(*node->meta.sym());
    }
    return {};
  }

 private:
  static Arg number(SymExpr e) {
    if (e.is_int()) return e.as_int();
    return e.as_float();
  }

  Status value(SymExpr& e, const Node& node) const {
    if (e.is_int()) return {};
    auto v = e.evaluate([&](const std::string& symbol) -> std::optional<std::int64_t> {
      if (auto it = sizes_.find(symbol); it != sizes_.end()) return it->second;
      if (auto it = hints_.find(symbol); it != hints_.end()) return it->second;
      return std::nullopt;
    });
    if (!v)
      return unsupported("schedule.symbol", "the size " + e.str() + " is known only at run time; use --backend interp",
                         {.graph = graph_.name, .node = node.name()});
    e = e.is_float() ? SymExpr::real(*v) : SymExpr(static_cast<std::int64_t>(*v));
    return {};
  }

  Status meta(Meta& m, const Node& node) const {
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
  std::map<std::string, std::int64_t> hints_;
  std::unordered_map<const Node*, Arg> numbers_;
};

}  // namespace

Result<std::unique_ptr<Graph>> specialise(const Graph& graph, const std::map<std::string, std::int64_t>& sizes) {
  std::unique_ptr<Graph> copy = graph.clone();
  if (!copy->shapes) copy->shapes = std::make_shared<ShapeEnv>();
  TRY_DO(Specialiser(*copy, sizes).run());
  return copy;
}

}  // namespace partita::schedule

// Grows regions of channels-last layout from library convolutions through the calls whose inferred strides follow. A
// region whose transpositions at its borders cost more than it saves is undone.
#include "core/schedule/channels_last.h"

#include <algorithm>
#include <ranges>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "core/ops/record/layout.h"
#include "core/ops/record/record.h"
#include "core/ops/schema/schema.h"
#include "core/passes/value_memory.h"
#include "core/tensor/significant_strides.h"

namespace partita::schedule {
namespace {

/// The number of leading arguments of a convolution or its gradient that are images, which a library reads channel by
/// channel.
std::size_t image_arguments(const Node& node) {
  const OpRecord* record = find_record(node.op());
  return record ? record->images : 0;
}

/// Does a library compute this convolution, or transposed one? It must be of images and of one of its dtypes.
bool is_library_convolution(const Node& node, const std::vector<DType>& dtypes, bool wants_transposed = false) {
  const OpRecord* record = find_record(node.op());
  if (!record || record->library != LibraryRoutine::Convolution) return false;
  const TensorMeta* out = node.meta.tensor();
  const auto transposed = static_cast<std::size_t>(record->schema->index_of("transposed"));
  const bool* flag = node.args().size() > transposed ? node.args()[transposed].get<bool>() : nullptr;
  return out && out->dim() >= 3 && out->dim() <= 5 && flag && *flag == wants_transposed &&
         std::ranges::find(dtypes, out->dtype) != dtypes.end();
}

/// Does the operator's result depend on its argument's strides, not only on its elements?
bool reads_strides(const Node& node) {
  if (!node.op()->is_call() || node.is(Op::getitem())) return false;
  const Schema* schema = find_schema(node.op());
  if (!schema) return true;
  const bool addresses = schema->index_of("size") >= 0 && schema->index_of("stride") >= 0;  // as_strided and similar
  const OpRecord* record = find_record(node.op());
  return addresses || (record && record->views.reads_strides);
}

/// Are the metas equal except for strides?
bool same_but_strides(const Meta& a, const Meta& b) {
  const TensorMeta *s = a.tensor(), *t = b.tensor();
  if (s && t) return s->dtype == t->dtype && s->sizes == t->sizes;
  const MetaTuple *v = a.tuple(), *w = b.tuple();
  return v && w ? std::ranges::equal(v->items, w->items, same_but_strides) : a.known() == b.known();
}

/// Do significant strides differ? Precondition: same_but_strides.
bool other_strides(const Meta& a, const Meta& b) {
  const TensorMeta *s = a.tensor(), *t = b.tensor();
  if (s && t) return !same_significant_strides(s->sizes, s->strides, t->strides);
  const MetaTuple *v = a.tuple(), *w = b.tuple();
  for (std::size_t i = 0; v && w && i < v->items.size(); ++i)
    if (other_strides(v->items[i], w->items[i])) return true;
  return false;
}

class Chooser {
 public:
  Chooser(Graph& graph, const std::vector<DType>& dtypes) : graph_(graph), dtypes_(dtypes), aliases_(graph) {
    for (const Node* node : graph)
      if (reads_strides(*node))
        for (const Node* in : node->inputs()) pinned_.push_back(in);
  }

  void run() {
    for (Node* node : graph_) visit(*node);
    for (const auto& [node, region] : region_) {
      const Region& r = regions_[find(region)];
      if (!r.allowed || r.gain <= r.loss) node->meta = before_.at(node);
    }
  }

 private:
  /// Nodes whose layouts depend on one another. `gain` and `loss` count elements read across its borders that then need
  /// one transposition fewer or one more.
  struct Region {
    std::size_t parent = 0;
    std::int64_t gain = 0, loss = 0;
    bool allowed = true;
  };

  std::size_t find(std::size_t i) const {
    while (regions_[i].parent != i) i = regions_[i].parent;
    return i;
  }

  void join(std::size_t a, std::size_t b) {
    a = find(a), b = find(b);
    if (a == b) return;
    regions_[b].parent = a;
    regions_[a].gain += regions_[b].gain;
    regions_[a].loss += regions_[b].loss;
    regions_[a].allowed = regions_[a].allowed && regions_[b].allowed;
  }

  /// Of symbolic sizes the number for their hints, which decides only what is worth it.
  std::int64_t numel(const Meta& m) const {
    const TensorMeta* t = m.tensor();
    const SymExpr n = t ? t->numel() : SymExpr(0);
    return n.is_int() ? n.as_int() : graph_.shapes->hint(n).value_or(0);
  }

  bool may_change(const Node& node) const {
    if (aliases_.visible(node) || aliases_.mutated(node)) return false;
    return std::ranges::none_of(pinned_, [&](const Node* p) { return aliases_.share(node, *p); });
  }

  /// Results of a call that may not change keep their layouts.
  void keep_fixed_results(const Node& node, Meta& meta) const {
    auto* now = std::get_if<MetaTuple>(&meta.v);
    if (!now) return;
    const MetaTuple& before = *node.meta.tuple();
    for (const Node* user : node.users()) {
      const auto* index = user->is(Op::getitem()) ? user->args()[1].get<std::int64_t>() : nullptr;
      const auto i = index && *index >= 0 ? static_cast<std::size_t>(*index) : now->items.size();
      if (i < now->items.size() && !may_change(*user)) now->items[i] = before.items[i];
    }
  }

  void change(Node& node, Meta meta, std::size_t region) {
    before_.emplace(&node, std::move(node.meta));
    node.meta = std::move(meta);
    region_.emplace(&node, region);
  }

  /// Of an image, or of several results of which the first is one.
  static Meta channels_last(Meta meta) {
    if (auto* several = std::get_if<MetaTuple>(&meta.v)) {
      several->items[0] = channels_last(std::move(several->items[0]));
      return meta;
    }
    TensorMeta& t = std::get<TensorMeta>(meta.v);
    const SymExpr channels = t.sizes[1];
    if (t.dim() == 3)
      t.strides = {channels * t.sizes[2], 1, channels};
    else
      t.strides = strides_for(t.dim() == 5 ? MemoryFormat::ChannelsLast3d : MemoryFormat::ChannelsLast, t.sizes);
    return meta;
  }

  /// Is the node's result, or its first one, computed by loops, which write any layout, and an image of a library's
  /// convolution, be it after elementwise work?
  bool makes_image(const Node& node) const {
    const OpRecord* record = find_record(node.op());
    if (!record || !record->lower || record->library != LibraryRoutine::None) return false;
    if (std::ranges::any_of(node.inputs(), [&](const Node* in) { return aliases_.share(node, *in); })) return false;
    return is_image(node, 4);
  }
  /// Looks `far` calls ahead.
  bool is_image(const Node& node, int far) const {
    return std::ranges::any_of(node.users(), [&](const Node* user) {
      if (node.meta.tuple()) {
        const auto* index = user->is(Op::getitem()) ? user->args()[1].get<std::int64_t>() : nullptr;
        return index && *index == 0 && is_image(*user, far);
      }
      if (is_library_convolution(*user, dtypes_)) return user->args()[0].node() == &node;
      const OpRecord* record = find_record(user->op());
      return far > 0 && record && record->pointwise.body && same_but_strides(user->meta, node.meta) &&
             is_image(*user, far - 1);
    });
  }

  void visit(Node& node) {
    std::vector<std::size_t> regions;
    for (Node* in : node.inputs())
      if (auto it = region_.find(in); it != region_.end()) regions.push_back(it->second);
    if (is_library_convolution(node, dtypes_)) {
      borders(node);
      if (!may_change(node)) return;
      Meta meta = channels_last(node.meta);
      if (!other_strides(meta, node.meta)) return;
      regions_.push_back({regions_.size(), numel(meta), 0, true});
      change(node, std::move(meta), regions_.size() - 1);
      return;
    }
    if (regions.empty() || !node.op()->is_call()) return;
    auto meta = inferred(node);
    if (!meta || !same_but_strides(*meta, node.meta)) {
      for (std::size_t r : regions) regions_[find(r)].allowed = false;
      return;
    }
    if (makes_image(node) || is_library_convolution(node, dtypes_, true)) meta = channels_last(*meta);
    keep_fixed_results(node, *meta);
    if (!other_strides(*meta, node.meta) || !may_change(node)) return borders(node);
    for (std::size_t r : regions) join(regions.front(), r);
    change(node, std::move(*meta), regions.front());
  }

  static std::optional<Meta> inferred(const Node& node) {
    if (node.is(Op::getitem())) {
      const MetaTuple* tuple = node.inputs().front()->meta.tuple();
      const auto* index = node.args().at(1).get<std::int64_t>();
      if (!tuple || !index || *index < 0 || static_cast<std::size_t>(*index) >= tuple->items.size())
        return std::nullopt;
      return tuple->items[static_cast<std::size_t>(*index)];
    }
    auto meta = infer(node);
    return meta ? std::optional(std::move(*meta)) : std::nullopt;
  }

  /// Adds to gain and loss what this node, whose layout does not change, reads from regions.
  void borders(const Node& node) {
    const std::size_t images = image_arguments(node);
    std::unordered_set<const Node*> seen;
    for (Node* in : node.inputs()) {
      auto it = region_.find(in);
      if (it == region_.end() || !seen.insert(in).second) continue;
      Region& r = regions_[find(it->second)];
      const std::int64_t n = numel(in->meta);
      const bool image = std::ranges::any_of(std::views::iota(std::size_t{0}, images),
                                             [&](std::size_t i) { return node.args()[i].node() == in; });
      if (image || (same_but_strides(in->meta, node.meta) && !other_strides(in->meta, node.meta)))
        r.gain += n;
      else if (numel(node.meta) == n)
        r.loss += n;
    }
  }

  Graph& graph_;
  const std::vector<DType>& dtypes_;
  Aliases aliases_;
  std::vector<const Node*> pinned_;
  std::vector<Region> regions_;
  std::unordered_map<Node*, Meta> before_;
  std::unordered_map<Node*, std::size_t> region_;
};

}  // namespace

void prefer_channels_last(Graph& graph, const std::vector<DType>& dtypes) {
  Chooser(graph, dtypes).run();
}

std::vector<DType> channels_last_dtypes() {
#ifdef __x86_64__
  if (__builtin_cpu_supports("x86-64-v3")) return {DType::Float32, DType::BFloat16, DType::Float16};
#endif
  return {};
}

}  // namespace partita::schedule

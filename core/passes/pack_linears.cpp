// Computes linear layers of one input by one product, with their weights one above the other: queries, keys and values,
// or the gate of a gated layer and what it gates. A product of few rows leaves most of a GPU idle, so one that is three
// times as wide takes little longer. It is done before autograd, whose products are then packed, too. Of inference the
// packed weight is a constant; training makes it in each step, which takes less time than what it saves.
#include <algorithm>
#include <span>
#include <unordered_map>

#include "core/ir/place.h"
#include "core/ops/facts/control.h"
#include "core/ops/record/call.h"
#include "core/ops/record/layout.h"
#include "core/ops/record/record.h"
#include "core/passes/pass.h"
#include "core/passes/value_memory.h"

namespace partita {
namespace {

constexpr std::int64_t least_rows = 32;         ///< with fewer, reading the weights takes most of the time
constexpr std::int64_t most_results = 1 << 22;  ///< with more, a product has work for the whole device by itself

class Packer {
 public:
  Packer(Graph& graph, PassContext& context) : graph_(graph), context_(context), aliases_(graph) {}

  Result<bool> run() {
    std::vector<std::vector<Node*>> groups;
    std::unordered_map<std::string, std::size_t> open;  // by what they have in common
    for (Node* node : graph_) {
      order_.emplace(node, order_.size());
      // Calls of two regions are differentiated, or cast, in two ways.
      if (node->is(set_grad_enabled()) || is_autocast(node->op())) open.clear();
      if (!may_be_packed(*node)) continue;
      const auto [at, is_new] = open.emplace(common(*node), groups.size());
      if (is_new) groups.emplace_back();
      std::vector<Node*>& group = groups[at->second];
      if (is_new || are_there_before(*node, *group.front())) group.push_back(node);
    }
    bool changed = false;
    for (const std::vector<Node*>& group : groups) {
      if (group.size() < 2 || !context_.may_rewrite("packed", *group[0])) continue;
      if (Status done = pack(group); !done) return std::move(done).error();
      changed = true;
    }
    return changed;
  }

 private:
  /// A parameter, an input or an attribute, which nothing writes.
  bool is_given(const Arg& arg) const {
    const Node* node = arg.node();
    return node && (node->is_placeholder() || node->is(Op::get_attr())) && node->meta.tensor() &&
           !aliases_.mutated(*node);
  }

  bool may_be_packed(const Node& node) const {
    const OpRecord* record = node.op()->is_call() ? find_record(node.op()) : nullptr;
    if (!record || record->role != Role::Linear) return false;
    const Args args = bound_arguments(node);
    const TensorMeta *out = node.meta.tensor(), *x = args.empty() ? nullptr : tensor_of(args[0]);
    if (!out || !x || args.size() != 3 || aliases_.mutated(*args[0].node()) || !is_given(args[1])) return false;
    if (!args[2].is_none() && !is_given(args[2])) return false;
    const auto sizes = concrete(out->sizes), weight = concrete(tensor_of(args[1])->sizes);
    if (!sizes || !weight || weight->size() != 2 || is_complex(out->dtype) || !is_row_major(*out)) return false;
    std::int64_t results = 1;
    for (const std::int64_t n : *sizes) results *= n;
    return results > 0 && results <= most_results && results / (*weight)[0] >= least_rows &&
           tensor_of(args[1])->dtype == out->dtype && x->dtype == out->dtype;
  }

  /// Weights that are attributes may be read late.
  bool are_there_before(const Node& node, const Node& first) const {
    const Args args = bound_arguments(node);
    return std::ranges::all_of(std::span(args).subspan(1), [&](const Arg& arg) {
      return !arg.node() || order_.at(arg.node()) < order_.at(&first);
    });
  }

  static const TensorMeta* tensor_of(const Arg& arg) { return arg.node() ? arg.node()->meta.tensor() : nullptr; }

  static std::string common(const Node& node) {
    const Args args = bound_arguments(node);
    return args[0].node()->name() + (args[2].is_none() ? "" : " with bias");
  }

  Status pack(const std::vector<Node*>& group) {
    Node& first = *group.front();
    std::vector<Arg> weights, biases, widths;
    for (Node* node : group) {
      const Args args = bound_arguments(*node);
      weights.push_back(args[1]);
      biases.push_back(args[2]);
      widths.emplace_back(concrete(node->meta.tensor()->sizes)->back());
    }
    return catch_raised_at<void>(first, [&]() -> Status {
      Builder build(graph_, &first, first.origin);
      const Args args = bound_arguments(first);
      Node* weight = build.call("aten.cat.default", {Arg::list(weights), 0});
      const Arg bias = args[2].is_none() ? Arg() : Arg(build.call("aten.cat.default", {Arg::list(biases), 0}));
      Node* product = build.call(first.op()->name, {args[0], weight, bias});
      Node* parts = build.call("aten.split_with_sizes.default", {product, Arg::list(widths), -1});
      for (std::size_t i = 0; i < group.size(); ++i) {
        build.origin = group[i]->origin;
        Node* part = build.getitem(parts, static_cast<std::int64_t>(i));
        // With the strides that its readers count on. They read the product itself where they can.
        Node* own = build.call("aten.clone.default", {part}, {{"memory_format", MemoryFormat::Contiguous}});
        group[i]->replace_all_uses_with(own);
      }
      for (Node* node : group) graph_.erase(node);
      return {};
    });
  }

  Graph& graph_;
  PassContext& context_;
  Aliases aliases_;
  std::unordered_map<const Node*, std::size_t> order_;
};

}  // namespace

Result<bool> pack_linears(Graph& graph, PassContext& context) {
  if (!context.pack_linears) return false;
  return Packer(graph, context).run();
}

}  // namespace partita

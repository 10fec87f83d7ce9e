#include "core/ranks/ladder.h"

#include <algorithm>
#include <map>
#include <optional>
#include <queue>
#include <unordered_map>

#include <fmt/format.h>

#include "core/base/assign.h"
#include "core/base/raise.h"
#include "core/interp/aten_calls.h"
#include "core/interp/random_values.h"
#include "core/ir/print.h"
#include "core/ops/facts/effects.h"
#include "core/ops/record/record.h"
#include "core/ranks/exchange.h"

namespace partita {
namespace {

/// Keeps what a call starts.
class Recorder final : public Communicator {
 public:
  void start(Collective collective) override { started.push_back(std::move(collective)); }
  void wait(const Tensor&) override {}

  std::vector<Collective> started;
};

Result<Value> value_of(const Arg& arg, const Graph& graph);

Result<Value> value_of_node(const Node& node, const Graph& graph) {
  if (const SymExpr* e = node.meta.sym()) {
    const auto hint = graph.shapes->hint(*e);
    if (!hint) return input_error("interp.random", fmt::format("{} has no example value", e->str()));
    return Value(*hint);
  }
  return filled_value(node.meta, *graph.shapes, 0);
}

Result<Value> value_of(const Arg& arg, const Graph& graph) {
  if (const Node* node = arg.node()) return value_of_node(*node, graph);
  if (const auto* list = arg.get<ArgList>()) {
    ValueList values;
    for (const Arg& item : list->items) TRY_DO(assign(values.emplace_back(), value_of(item, graph)));
    return Value(std::move(values));
  }
  if (const auto* text = arg.get<std::string>()) return Value(*text);
  if (const auto* number = arg.get<std::int64_t>()) return Value(*number);
  if (const auto* truth = arg.get<bool>()) return Value(*truth);
  if (arg.is_none()) return Value();
  return unsupported("ranks.argument", fmt::format("a collective has the argument {}", print(arg)));
}

/// What the call starts, asked of its evaluation on tensors of zeros.
Result<std::vector<Collective>> started_by(const Node& node, const Graph& graph) {
  Recorder recorder;
  std::vector<Value> args;
  std::vector<std::pair<std::string, Value>> kwargs;
  for (const Arg& a : node.args()) TRY_DO(assign(args.emplace_back(), value_of(a, graph)));
  for (const auto& [key, a] : node.kwargs()) {
    TRY(Value v, value_of(a, graph));
    kwargs.emplace_back(key, std::move(v));
  }
  EvalContext context;
  context.communicator = &recorder;
  context.node = node.name();
  TRY(const Value result, evaluate(node.op(), std::move(args), std::move(kwargs), context, &node));
  for (Collective& c : recorder.started)
    for (auto* tensors : {&c.inputs, &c.outputs})
      for (Tensor& t : *tensors) t.storage = nullptr;
  return std::move(recorder.started);
}

bool waits(const Node& node) {
  return is_collective(node.op()) && !starts_collective(node.op());
}

const Node* wait_for(const Node& started) {
  for (const Node* user : started.users()) {
    if (waits(*user)) return user;
    if (user->is(Op::getitem()))
      if (const Node* wait = wait_for(*user)) return wait;
  }
  return nullptr;
}

std::vector<const Node*> calls_between(const Graph& graph, const Node& start, const Node* wait) {
  std::vector<const Node*> out;
  if (!wait) return out;
  bool inside = false;
  for (const Node* node : graph) {
    if (node == wait) break;
    if (inside && node->op()->is_call() && !node->is(Op::getitem()) && !is_collective(node->op())) out.push_back(node);
    inside |= node == &start;
  }
  return out;
}

/// Rungs as ranks add to them.
class Matching {
 public:
  explicit Matching(const Job& job) : job_(job) {}

  Status add(int rank, int index, const Collective& call) {
    TRY(std::vector<int> members, members_of(job_, rank, call));
    const std::string channel = channel_of(call, members);
    const std::int64_t number = ++started_[{rank, channel}];
    const auto [at, fresh] = known_.emplace(std::pair(channel, number), rungs_.size());
    if (fresh) {
      const std::size_t n = members.size();
      rungs_.push_back({{.group = call.group,
                         .number = number,
                         .text = text(call),
                         .members = members,
                         .starts = std::vector<int>(n, -1)},
                        {.members = std::move(members), .parts = std::vector<std::optional<Collective>>(n)}});
    }
    auto& [rung, exchange] = rungs_[at->second];
    const auto place = std::ranges::find(rung.members, rank) - rung.members.begin();
    if (place == std::ssize(rung.members))
      return input_error("ranks.group", fmt::format("rank {} is not in group '{}'", rank, call.group));
    rung.starts[static_cast<std::size_t>(place)] = index;
    exchange.parts[static_cast<std::size_t>(place)] = call;
    of_rank_[rank].push_back(at->second);
    return {};
  }

  /// In an order that each rank keeps: a rung is next when it is the next of all ranks that start it.
  std::vector<Rung> in_order() {
    std::vector<Rung> out;
    Heads heads(of_rank_, rungs_.size());
    for (std::size_t next = 0; out.size() < rungs_.size();) {
      std::optional<std::size_t> pick = heads.ready();
      if (!pick) {  // ranks start groups in different orders
        while (heads.taken(next)) ++next;
        pick = next;
      }
      heads.take(*pick);
      auto& [rung, exchange] = rungs_[*pick];
      rung.wrong = what_is_wrong(rung, exchange);
      out.push_back(std::move(rung));
    }
    return out;
  }

 private:
  /// Which rung each rank comes to next.
  class Heads {
   public:
    using Order = std::map<int, std::vector<std::size_t>>;
    Heads(const Order& of_rank, std::size_t rungs) : of_rank_(of_rank), starters_(rungs), at_(rungs), taken_(rungs) {
      for (const auto& [rank, order] : of_rank)
        for (const std::size_t r : order) ++starters_[r];
      for (const auto& [rank, order] : of_rank) arrive(rank);
    }
    bool taken(std::size_t rung) const { return taken_[rung]; }
    std::optional<std::size_t> ready() {
      while (!ready_.empty() && taken_[ready_.front()]) ready_.pop();
      return ready_.empty() ? std::nullopt : std::optional(ready_.front());
    }
    void take(std::size_t rung) {
      taken_[rung] = true;
      for (const auto& [rank, order] : of_rank_)
        if (std::size_t& head = heads_[rank]; head < order.size() && order[head] == rung) {
          ++head;
          arrive(rank);
        }
    }

   private:
    void arrive(int rank) {
      const std::vector<std::size_t>& order = of_rank_.at(rank);
      std::size_t& head = heads_[rank];
      while (head < order.size() && taken_[order[head]]) ++head;
      if (head < order.size() && ++at_[order[head]] == starters_[order[head]]) ready_.push(order[head]);
    }

    const Order& of_rank_;
    std::map<int, std::size_t> heads_;
    std::vector<int> starters_, at_;  ///< of each rung: ranks that start it, and those that have come to it
    std::vector<bool> taken_;
    std::queue<std::size_t> ready_;
  };

  static std::string what_is_wrong(const Rung& rung, const Exchange& exchange) {
    if (std::string why = mismatch(exchange); !why.empty()) return why;
    std::vector<int> missing;
    for (std::size_t m = 0; m < rung.members.size(); ++m)
      if (rung.starts[m] < 0) missing.push_back(rung.members[m]);
    std::ranges::sort(missing);
    if (missing.empty()) return {};
    return fmt::format("{} never start{} it", ranks_text(missing), missing.size() == 1 ? "s" : "");
  }

  const Job& job_;
  Heads::Order of_rank_;  ///< the rungs of each rank, in its order
  std::vector<std::pair<Rung, Exchange>> rungs_;
  std::map<std::pair<std::string, std::int64_t>, std::size_t> known_;
  std::map<std::pair<int, std::string>, std::int64_t> started_;
};

}  // namespace

Result<GraphCollectives> collectives_of(const Graph& given) {
  struct Found {
    std::unique_ptr<Graph> aten;  ///< null: the nodes are the graph's own
    std::vector<GraphCollective> calls;
  };
  const auto found = std::make_shared<Found>();
  if (has_torch_calls(given)) TRY_DO(assign(found->aten, with_aten_calls(given)));
  const Graph& graph = found->aten ? *found->aten : given;
  for (const Node* node : graph) {
    if (!node->op()->is_call() || !starts_collective(node->op())) continue;
    TRY(const std::vector<Collective> started, started_by(*node, graph));
    const Node* wait = wait_for(*node);
    for (const Collective& call : started)
      found->calls.push_back({node, wait, calls_between(graph, *node, wait), call});
  }
  return GraphCollectives(found, &found->calls);
}

Result<Ladder> make_ladder(const Job& job, std::span<const Graph* const> graphs) {
  TRY_DO(check(job));
  Ladder out;
  std::unordered_map<const Graph*, GraphCollectives> known;
  Matching matching(job);
  for (std::size_t rank = 0; rank < graphs.size(); ++rank) {
    GraphCollectives& calls = known[graphs[rank]];
    if (!calls) TRY_DO(assign(calls, collectives_of(*graphs[rank])));
    for (std::size_t i = 0; i < calls->size(); ++i)
      TRY_DO(matching.add(static_cast<int>(rank), static_cast<int>(i), (*calls)[i].call));
    out.ranks.push_back(calls);
  }
  out.rungs = matching.in_order();
  return out;
}

}  // namespace partita

#include "core/schedule/instantiate.h"

#include <algorithm>
#include <climits>
#include <cstddef>
#include <numeric>
#include <vector>

#include "core/base/config.h"
#include "core/base/memory.h"
#include "core/schedule/verify_plan.h"

namespace partita::schedule {
namespace {

/// Memory that is needed from step `first` to step `last`, both included.
struct Lifetime {
  std::size_t bytes = 0;
  int first = 0;
  int last = 0;
};

struct Arena {
  std::vector<std::size_t> offsets;  ///< 64-byte aligned, in the order of the lifetimes
  std::size_t bytes = 0;
};

/// Places memory so that blocks with overlapping lifetimes do not overlap: the largest block first, each into the
/// smallest gap that holds it.
Arena place(const std::vector<Lifetime>& lifetimes) {
  constexpr std::size_t alignment = 64;
  auto padded = [](std::size_t bytes) { return (bytes + alignment - 1) / alignment * alignment; };
  Arena arena;
  arena.offsets.assign(lifetimes.size(), 0);
  std::vector<std::size_t> order(lifetimes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::greater(), [&](std::size_t i) { return lifetimes[i].bytes; });
  std::vector<std::size_t> placed;  // by offset
  for (std::size_t i : order) {
    const Lifetime& l = lifetimes[i];
    std::size_t size = padded(l.bytes), end = 0, best = SIZE_MAX, best_gap = SIZE_MAX;
    for (std::size_t p : placed) {
      const Lifetime& other = lifetimes[p];
      if (other.last < l.first || other.first > l.last) continue;
      std::size_t at = arena.offsets[p];
      if (at >= end && at - end >= size && at - end < best_gap) {
        best = end;
        best_gap = at - end;
      }
      end = std::max(end, at + padded(other.bytes));
    }
    arena.offsets[i] = best == SIZE_MAX ? end : best;
    arena.bytes = std::max(arena.bytes, arena.offsets[i] + size);
    placed.insert(
        std::ranges::lower_bound(placed, arena.offsets[i], {}, [&](std::size_t p) { return arena.offsets[p]; }), i);
  }
  return arena;
}

auto values_of(const std::map<std::string, std::int64_t>& sizes) {
  return [&](const std::string& symbol) -> std::optional<std::int64_t> {
    const auto it = sizes.find(symbol);
    return it == sizes.end() ? std::nullopt : std::optional(it->second);
  };
}

/// Puts the values of symbols into the parts of a plan.
class Instance {
 public:
  explicit Instance(const std::map<std::string, std::int64_t>& sizes) : sizes_(sizes) {}

  Status apply(Plan& plan) const {
    for (PlanBuffer& b : plan.buffers) TRY_DO(value(b.elements));
    for (auto& step : plan.steps)
      if (auto* call = std::get_if<ExternCall>(&step)) TRY_DO(apply(*call));
    for (auto& output : plan.outputs) {
      if (auto* v = std::get_if<PlanView>(&output)) TRY_DO(apply(*v));
      if (const auto* e = std::get_if<SymExpr>(&output)) TRY_DO(number(*e, output));
    }
    for (Meta& m : plan.promised)
      if (auto* t = m.tensor()) TRY_DO(apply(*t));
    for (TensorMeta& t : plan.inputs) TRY_DO(apply(t));
    return {};
  }

 private:
  Status value(SymExpr& e) const {
    if (e.is_int()) return {};
    const auto v = e.evaluate(values_of(sizes_));
    if (!v) return unsupported("schedule.symbol", "the size " + e.str() + " is known only at run time");
    if (e.is_float()) {
      e = SymExpr::real(*v);
      return {};
    }
    const auto number = e.evaluate_integer(values_of(sizes_));
    if (!number) return input_error("schedule.symbol", "the size " + e.str() + " is beyond 64 bits with these inputs");
    e = *number;
    return {};
  }

  /// A number that is returned: an integer stays an expression, a bool or float is a literal.
  Status number(SymExpr e, PlanOutput& out) const {
    const bool truth = e.is_boolean();
    TRY_DO(value(e));
    if (truth)
      out = Arg(!e.is(0));
    else if (e.kind() == SymKind::Float)
      out = Arg(e.as_float());
    else
      out = e;
    return {};
  }

  Status values(SymList& list) const {
    for (SymExpr& e : list) TRY_DO(value(e));
    return {};
  }

  Status apply(PlanView& v) const {
    TRY_DO(values(v.sizes));
    TRY_DO(values(v.strides));
    return value(v.offset);
  }

  Status apply(TensorMeta& t) const {
    TRY_DO(values(t.sizes));
    TRY_DO(values(t.strides));
    return value(t.offset);
  }

  Status apply(ExternCall& call) const {
    for (auto& argument : call.args) {
      for (PlanView& v : views_in(argument)) TRY_DO(apply(v));
      if (auto* literal = std::get_if<Arg>(&argument)) {
        Status done;
        *literal = map_nodes(*literal, [&](Node* n) -> Arg {
          SymExpr e = n->meta.sym() ? *n->meta.sym() : SymExpr(0);
          const bool truth = e.is_boolean();
          if (Status each = value(e); !each) done = std::move(each);
          if (truth && e.is_int()) return !e.is(0);
          return e.is_int() ? Arg(e.as_int()) : e.kind() == SymKind::Float ? Arg(e.as_float()) : Arg();
        });
        TRY_DO(std::move(done));
      }
    }
    for (PlanView& v : call.results) TRY_DO(apply(v));
    for (PlanView& v : call.epilogue_inputs) TRY_DO(apply(v));
    return {};
  }

  const std::map<std::string, std::int64_t>& sizes_;
};

}  // namespace

Status place_memory(Plan& plan) {
  // Too much memory is refused before its bytes are added up.
  for (const PlanBuffer& b : plan.buffers) {
    std::int64_t size;
    if (__builtin_mul_overflow(b.elements.as_int(), static_cast<std::int64_t>(itemsize(b.dtype)), &size))
      return input_error("tensor.size", "size out of range");
    TRY_DO(check_fits_in_memory(static_cast<std::size_t>(size)));
  }
  std::vector<Lifetime> lives(plan.buffers.size(), Lifetime{0, INT_MAX, -1});
  for (std::size_t s = 0; s < plan.steps.size(); ++s)
    for (const int b : used_by(plan.steps[s])) {
      Lifetime& l = lives[static_cast<std::size_t>(b)];
      l.first = std::min(l.first, static_cast<int>(s));
      l.last = std::max(l.last, static_cast<int>(s));
    }
  std::vector<std::size_t> temporaries;
  std::vector<Lifetime> kept;
  for (std::size_t b = 0; b < plan.buffers.size(); ++b) {
    if (plan.buffers[b].kind != PlanBuffer::Kind::Temporary) continue;
    lives[b].bytes = static_cast<std::size_t>(plan.buffers[b].elements.as_int()) * itemsize(plan.buffers[b].dtype);
    temporaries.push_back(b);
    kept.push_back(lives[b]);
  }
  Arena placed = place(kept);
  for (std::size_t i = 0; i < temporaries.size(); ++i) plan.buffers[temporaries[i]].offset = placed.offsets[i];
  plan.arena_bytes = placed.bytes;
  return {};
}

Result<Plan> at_sizes(const Plan& symbolic, const std::map<std::string, std::int64_t>& sizes) {
  Plan plan = symbolic;
  TRY_DO(Instance(sizes).apply(plan));
  plan.symbols = sizes;
  TRY_DO(place_memory(plan));
  return plan;
}

Result<Plan> instantiate(const Plan& symbolic, const std::map<std::string, std::int64_t>& sizes) {
  TRY(Plan plan, at_sizes(symbolic, sizes));
  if (config().verify)
    if (const std::vector<std::string> broken = verify(plan); !broken.empty())
      return Diagnostic{Fault::Internal, "schedule.verify", broken.front()};
  return plan;
}

std::optional<std::int64_t> instance_value(SymExpr e, const std::map<std::string, std::int64_t>& sizes) {
  return e.evaluate_integer(values_of(sizes));
}

std::vector<Guard> broken_guards(const std::vector<Guard>& guards, const std::map<std::string, std::int64_t>& sizes) {
  std::vector<Guard> broken;
  for (const Guard& g : guards)
    if (instance_value(g.condition, sizes).value_or(0) == 0) broken.push_back(g);
  return broken;
}

}  // namespace partita::schedule

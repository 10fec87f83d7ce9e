#include "core/partition/cost.h"

#include <algorithm>
#include <limits>
#include <string_view>
#include <unordered_map>

#include "core/ops/facts/effects.h"
#include "core/ops/facts/operations.h"
#include "core/ops/record/record.h"
#include "core/ops/schema/schema.h"

namespace partita {
namespace {

constexpr std::int64_t unknown_size = 4096;
/// The most that counts; sums of a million such costs do not overflow.
constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max() >> 20;

/// At most `most`: hints may be any numbers, and costs are only compared.
std::int64_t product(std::int64_t a, std::int64_t b) {
  std::int64_t result;
  return __builtin_mul_overflow(a, b, &result) ? most : std::min(result, most);
}

std::int64_t elements(const Node& node, const TensorMeta& t) {
  std::int64_t n = 1;
  for (SymExpr s : t.sizes) n = product(n, std::max<std::int64_t>(estimate(node.graph(), s), 0));
  return n;
}

auto sum_tensors(const Meta& meta, auto f) {
  if (auto* t = meta.tensor()) return f(*t);
  decltype(f(TensorMeta())) total = 0;
  if (auto* tuple = meta.tuple())
    for (const Meta& item : tuple->items) total = total + sum_tensors(item, f);
  return total;
}

/// The results of a tuple node as far as its getitems' annotations tell.
auto sum_results(const Node& node, auto f) {
  if (node.meta.known() || node.is_placeholder()) return sum_tensors(node.meta, f);
  decltype(f(TensorMeta())) total = 0;
  for (const Node* user : node.users())
    if (user->is(Op::getitem())) total = total + sum_tensors(user->meta, f);
  return total;
}

/// The call, or that of its arguments which has more elements: what operators without a count of their own go through.
const Node& largest_of(const Node& call) {
  const Node* largest = &call;
  std::int64_t most_elements = elements_of(call);
  for (const Node* input : call.inputs())
    if (const std::int64_t n = elements_of(*input); n > most_elements) {
      largest = input;
      most_elements = n;
    }
  return *largest;
}

bool any_pointwise_overload(std::string_view base) {
  const auto& overloads = find_overloads(base);
  return std::any_of(overloads.begin(), overloads.end(), [](const Schema* s) { return s->pointwise; });
}

struct OpClass {
  CostClass cost;
  bool free = false;  ///< no arithmetic
};

OpClass classify(const Op& op) {
  OpClass c;
  if (op.kind != OpKind::Torch) {
    // Arithmetic on sizes, getitem.
    c.cost.fusible = c.cost.recomputable = c.free = true;
    return c;
  }
  const OpRecord* record = find_record(&op);
  if (const Schema* schema = find_schema(&op)) {
    c.cost.view = schema->is_view || (record && record->views.may_alias && record->cost.recomputable);
    c.cost.recomputable = c.cost.view || any_pointwise_overload(schema->base);
  }
  if (record) {
    c.cost.recomputable |= record->cost.recomputable;
    c.cost.expensive = record->cost.expensive;
    c.cost.concatenates = record->role == Role::Concatenates;
  }
  c.cost.random = draws(&op);
  if (c.cost.random || c.cost.expensive) c.cost.recomputable = false;
  c.cost.fusible = c.cost.recomputable || c.cost.random;
  c.free = c.cost.view;
  return c;
}

const OpClass& class_of(const Op* op) {
  static thread_local std::unordered_map<const Op*, OpClass> known;
  auto it = known.find(op);
  if (it == known.end()) it = known.emplace(op, classify(*op)).first;
  return it->second;
}

/// What a call's arithmetic is estimated by.
struct Work {
  std::optional<SymExpr> counted;  ///< operations, where the operator has a count of its own
  const Node* through = nullptr;   ///< otherwise: one operation for each of its elements
};
Work work_of(const Node& call) {
  if (!call.op()->is_call() || call.meta.sym() || class_of(call.op()).free || call.is(Op::getitem())) return {0, {}};
  if (const auto operations = counted_operations(call)) return {*operations, {}};
  return {{}, &largest_of(call)};
}

}  // namespace

std::int64_t estimate(const Graph& graph, SymExpr e) {
  if (e.is_int()) return e.as_int();
  if (auto value = graph.shapes->hint(e)) return *value;
  // Each symbol without a hint counts alone, so that 2*u0 is still twice u0.
  auto value = e.evaluate([&](const std::string& symbol) -> std::optional<std::int64_t> {
    auto known = graph.shapes->hint(SymExpr::symbol(symbol));
    return known ? known : unknown_size;
  });
  return value ? static_cast<std::int64_t>(*value) : unknown_size;
}

std::map<std::string, std::int64_t> assumed_sizes(const Graph& graph) {
  std::map<std::string, std::int64_t> assumed;
  for (const Node* node : graph) {
    const SymExpr elements = sum_results(*node, [](const TensorMeta& t) { return t.numel(); });
    for (const std::string& symbol : elements.symbols())
      if (!graph.shapes->hint(SymExpr::symbol(symbol))) assumed.emplace(symbol, unknown_size);
  }
  return assumed;
}

std::int64_t elements_of(const Node& node) {
  return sum_results(node, [&](const TensorMeta& t) { return elements(node, t); });
}

std::int64_t bytes_of(const Node& node) {
  if (node.meta.sym()) return 8;
  return sum_results(node, [&](const TensorMeta& t) {
    return product(elements(node, t), static_cast<std::int64_t>(itemsize(t.dtype)));
  });
}

std::int64_t operations_of(const Node& node) {
  const Work work = work_of(node);
  if (work.counted) return std::clamp<std::int64_t>(estimate(node.graph(), *work.counted), 0, most);
  return elements_of(*work.through);
}

SymExpr symbolic_operations_of(const Node& node) {
  const Work work = work_of(node);
  const SymExpr operations =
      work.counted ? *work.counted : sum_results(*work.through, [](const TensorMeta& t) { return t.numel(); });
  const auto known = node.graph().shapes->hint(operations);
  return known ? SymExpr(std::min(*known, most)) : operations;
}

CostClass cost_class(const Node& node) {
  if (!node.op()->is_call()) return {};
  if (node.is(Op::getitem())) {
    CostClass c;
    c.fusible = c.recomputable = true;
    const Node* tuple = node.args().empty() ? nullptr : node.args()[0].node();
    c.view = tuple && class_of(tuple->op()).cost.view;
    return c;
  }
  CostClass c = class_of(node.op()).cost;
  if (node.op()->kind == OpKind::Torch && has_effect(node)) {
    c.side_effect = true;
    c.recomputable = false;
    c.fusible = c.random;
  }
  return c;
}

bool tagged_recompute(const Node& node) {
  if (node.recompute != Recompute::MustRecompute && node.recompute != Recompute::PreferRecompute) return false;
  const CostClass c = cost_class(node.is(Op::getitem()) ? *node.args()[0].node() : node);
  return !c.random && !c.side_effect;
}

}  // namespace partita

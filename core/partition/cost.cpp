#include "core/partition/cost.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <unordered_map>

#include "core/ops/record.h"
#include "core/ops/schema.h"

namespace partita {
namespace {

constexpr std::int64_t unknown_size = 4096;

std::int64_t hint(const Node& node, SymExpr e) {
  if (e.is_int()) return e.as_int();
  if (auto value = node.graph().shapes->hint(e)) return *value;
  // Each symbol without a hint counts alone, so that 2*u0 is still twice u0.
  auto value = e.evaluate([&](const std::string& symbol) -> std::optional<std::int64_t> {
    auto known = node.graph().shapes->hint(SymExpr::symbol(symbol));
    return known ? known : unknown_size;
  });
  return value ? static_cast<std::int64_t>(*value) : unknown_size;
}

std::int64_t elements(const Node& node, const TensorMeta& t) {
  std::int64_t n = 1;
  for (SymExpr s : t.sizes) n *= std::max<std::int64_t>(hint(node, s), 0);
  return n;
}

template <class F>
std::int64_t sum_tensors(const Node& node, const Meta& meta, F f) {
  if (auto* t = meta.tensor()) return f(*t);
  std::int64_t total = 0;
  if (auto* tuple = meta.tuple())
    for (const Meta& item : tuple->items) total += sum_tensors(node, item, f);
  return total;
}

/// The results of a tuple node as far as its getitems' annotations tell.
template <class F>
std::int64_t sum_results(const Node& node, F f) {
  if (node.meta.known() || node.is_placeholder()) return sum_tensors(node, node.meta, f);
  std::int64_t total = 0;
  for (const Node* user : node.users())
    if (user->is(Op::getitem())) total += sum_tensors(*user, user->meta, f);
  return total;
}

// Cheap though no pointwise operator: torch._functorch.partitioners' list without what the schema table tells by tag.
// Reductions are here because a compiler fuses them; the partitioner bans them by their sizes.
constexpr std::array recomputable_names = {
    "aten.sum",
    "aten.mean",
    "aten.amax",
    "aten.max",
    "aten.min",
    "aten.any",
    "aten.argmax",
    "aten.var",
    "aten.std",
    "aten.var_mean",
    "aten.sum_to_size",
    "aten._grad_sum_to_size",
    "prims.var",
    "prims.sum",
    "prims.prepare_softmax_online",
    "aten.clone",
    "aten._to_copy",
    "aten.to",
    "aten.type_as",
    "aten.lift_fresh_copy",
    "prims.convert_element_type",
    "prims.div",
    "aten.full",
    "aten.full_like",
    "aten.zeros",
    "aten.zeros_like",
    "aten.ones",
    "aten.new_zeros",
    "aten.empty",
    "aten.empty_like",
    "aten.scalar_tensor",
    "aten.arange",
    "prims.iota",
    "aten.triu",
    "aten.index",
    "aten.gather",
    "aten._unsafe_view",
    "aten.reshape",
    "aten.broadcast_tensors",
    "aten.lerp",
    "aten.where",
    "aten.pow",
    "prims.broadcast_in_dim",
    "prims._low_memory_max_pool_offsets_to_indices",
};

std::string_view base_name(const Op& op) {
  std::string_view name = op.name;
  std::size_t dot = name.rfind('.');
  return name.find('.') == dot ? name : name.substr(0, dot);
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
  std::string_view base = base_name(op);
  if (const Schema* schema = find_schema(&op)) {
    c.cost.view = schema->is_view || base == "aten._unsafe_view";
    c.cost.random = schema->nondeterministic_seeded;
    c.cost.side_effect = schema->is_mutable;
    c.cost.recomputable = c.cost.view || any_pointwise_overload(base);
  }
  if (std::find(recomputable_names.begin(), recomputable_names.end(), base) != recomputable_names.end())
    c.cost.recomputable = true;
  if (const OpRecord* record = find_record(&op)) {
    c.cost.expensive = record->expensive;
    c.cost.random |= record->random;
    c.cost.side_effect |= record->side_effect;
  }
  if (c.cost.random || c.cost.expensive || c.cost.side_effect) c.cost.recomputable = false;
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

/// k of an (m x k)(k x n) product, for the operators that are one: the last size of their left factor.
struct Product {
  std::string_view base;
  std::size_t factor;   ///< argument that holds k
  std::size_t k_first;  ///< sizes from this one on are summed over, counted from the end
};
constexpr std::array products = {
    Product{"aten.mm", 0, 1},      Product{"aten.bmm", 0, 1}, Product{"aten.addmm", 1, 1}, Product{"aten.mv", 0, 1},
    Product{"aten.baddbmm", 1, 1}, Product{"aten.dot", 0, 1}, Product{"aten.addmv", 1, 1},
};

const TensorMeta* argument_tensor(const Node& node, std::size_t i) {
  if (i >= node.args().size()) return nullptr;
  Node* n = node.args()[i].node();
  return n ? n->meta.tensor() : nullptr;
}

}  // namespace

std::int64_t elements_of(const Node& node) {
  return sum_results(node, [&](const TensorMeta& t) { return elements(node, t); });
}

std::int64_t bytes_of(const Node& node) {
  if (node.meta.sym()) return 8;
  return sum_results(
      node, [&](const TensorMeta& t) { return elements(node, t) * static_cast<std::int64_t>(itemsize(t.dtype)); });
}

std::int64_t operations_of(const Node& node) {
  if (!node.op()->is_call() || node.meta.sym() || class_of(node.op()).free || node.is(Op::getitem())) return 0;
  std::string_view base = base_name(*node.op());
  std::int64_t out = elements_of(node);
  for (const Product& p : products)
    if (base == p.base)
      if (auto* t = argument_tensor(node, p.factor); t && t->dim() >= p.k_first)
        return 2 * out * hint(node, t->sizes[t->dim() - p.k_first]);
  if (base == "aten.convolution" || base == "aten.convolution_backward") {
    bool backward = base != "aten.convolution";
    auto* weight = argument_tensor(node, backward ? 2 : 1);
    auto* result = backward ? argument_tensor(node, 0) : node.meta.tensor();
    if (weight && result && weight->dim() > 1) {
      std::int64_t per_output = 2;
      for (std::size_t i = 1; i < weight->dim(); ++i) per_output *= hint(node, weight->sizes[i]);
      return elements(node, *result) * per_output * (backward ? 2 : 1);
    }
  }
  std::int64_t in = 0;
  for (const Node* input : node.inputs()) in = std::max(in, elements_of(*input));
  return std::max(in, out);
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
  return class_of(node.op()).cost;
}

}  // namespace partita

#include "core/schedule/memory_layout.h"

#include <algorithm>

#include "core/ops/record/call.h"
#include "core/tensor/significant_strides.h"

namespace partita::schedule {
namespace {

using loops::Body;
using loops::Definition;
using loops::Index;
using loops::LoweredTensor;
using loops::Scalar;

/// Records the one read of a view.
class ViewSource final : public Body {
 public:
  using Body::Body;
  struct Read {
    int id;
    Index index;
  };
  std::vector<Read> reads;  // by slot

  Scalar read(const LoweredTensor& tensor, const Index& at) override {
    reads.push_back({tensor.id, at});
    return b.input(static_cast<int>(reads.size()) - 1, tensor.dtype);
  }
};

}  // namespace

bool is_without_overlap(const loops::Lowering& lowering, const SymList& sizes, const SymList& strides) {
  std::vector<std::size_t> order;
  for (std::size_t d = 0; d < sizes.size(); ++d)
    if (!sizes[d].is(1)) order.push_back(d);
  std::ranges::sort(order, {}, [&](std::size_t d) { return lowering.hint(strides[d]); });
  SymExpr step = 1;
  for (std::size_t d : order) {
    std::int64_t next;
    if (!loops::sizes_non_negative(strides[d] - step) ||
        __builtin_mul_overflow(lowering.hint(strides[d]), lowering.hint(sizes[d]), &next))
      return false;
    step = strides[d] * sizes[d];
  }
  return true;
}

namespace {

/// Does it have a position that is read from memory? One row of an embedding has no others.
bool is_indirect(SymExpr e) {
  return e.kind() == SymKind::Computed || std::ranges::any_of(e.args(), is_indirect);
}

/// The number of storage elements that the strides reach.
SymExpr reached(const SymList& sizes, const SymList& strides) {
  if (const auto n = concrete(sizes), s = concrete(strides); n && s) return unwrap(reach(*n, *s));
  SymExpr last = 0;
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d].is(0)) return 0;
    last = last + (sizes[d] - 1) * strides[d];
  }
  return last + 1;
}

}  // namespace

std::optional<StridedView> strided(const loops::IndexMath& math, SymExpr element, const Index& variables,
                                   const SymList& sizes) {
  StridedView view;
  SymExpr rest = element;
  SymExpr step = 1;
  view.strides.resize(sizes.size());
  for (std::size_t d = sizes.size(); d-- > 0;) {
    if (sizes[d].is(1)) {
      view.strides[d] = step;
      continue;
    }
    auto factor = math.factor(element, variables[d]);
    if (!factor || !loops::sizes_non_negative(*factor)) return std::nullopt;
    view.strides[d] = *factor;
    step = *factor * sizes[d];
    rest = rest - variables[d] * *factor;
  }
  for (SymExpr v : variables)
    if (!v.is_int() && loops::contains(rest, v)) return std::nullopt;
  if (is_indirect(rest)) return std::nullopt;
  view.offset = math.simplify(rest);
  return view;
}

MemoryLayout layout_of(const LoweredGraph& g, int definition) {
  const Definition& d = g.lowering[definition];
  if (auto it = g.destination.find(definition); it != g.destination.end()) return layout_of(g, it->second);
  MemoryLayout layout;
  auto promised = g.promised.find(definition);
  if (promised != g.promised.end() && promised->second.strides_known &&
      promised->second.sizes.size() == d.sizes.size()) {
    const SymList strides = g.lowering.plain_strides(promised->second.strides);
    if (d.kind == Definition::Kind::Memory || is_without_overlap(g.lowering, d.sizes, strides))
      layout.strides = strides;
  }
  if (layout.strides.size() != d.sizes.size()) layout.strides = contiguous_strides(d.sizes);
  layout.elements = reached(d.sizes, layout.strides);
  return layout;
}

StridedView resolve_view(const LoweredGraph& g, int definition, Through through) {
  bool cast = false;
  const auto is_seen_through = [&](const Definition& d) {
    return d.is_view || (through >= Through::Copies && d.is_copy) || (through >= Through::Cast && d.is_cast && !cast);
  };
  StridedView best{definition, layout_of(g, definition).strides, 0};
  const SymList& sizes = g.lowering[definition].sizes;
  loops::IndexMath math = g.lowering.math;
  const Index variables = math.variables("v", sizes);
  Index index = variables;
  int at = definition;
  while (true) {
    const Definition& d = g.lowering[at];
    if (d.kind != Definition::Kind::Map || g.destination.contains(at) || !is_seen_through(d)) return best;
    loops::ScalarBuilder b;
    ViewSource source(b, math);
    // What is shown may not be all that is read: where(c, x, x).
    loops::Scalar shown = d.value(source, index);
    if (d.is_cast) shown = b[shown].args[0], cast = true;
    if (b[shown].op != loops::ScalarOp::Input) return best;
    const ViewSource::Read& read = source.reads[static_cast<std::size_t>(b[shown].slot)];
    at = read.id;
    index = read.index;
    auto view = strided(math, math.element(index, layout_of(g, at).strides), variables, sizes);
    // A view in the middle of a chain may have no strides while the memory at its end gives it some, so go on.
    if (!view) continue;
    const Definition& base = g.lowering[at];
    if (base.kind == Definition::Kind::Map && is_seen_through(base)) continue;
    view->base = at;
    return *view;
  }
}

StridedView output_view(const LoweredGraph& g, int definition) {
  StridedView view = resolve_view(g, definition, Through::Views);
  auto promised = g.promised.find(definition);
  if (view.base == definition || promised == g.promised.end() || !promised->second.strides_known) return view;
  if (same_significant_strides(g.lowering[definition].sizes, promised->second.strides, view.strides)) return view;
  return {definition, layout_of(g, definition).strides, 0};
}

bool is_matrix(const SymList& sizes, const SymList& strides) {
  const std::size_t rank = sizes.size();
  const auto at_least = [](SymExpr a, SymExpr b) { return loops::sizes_non_negative(a - b); };
  return rank >= 2 && ((strides[rank - 1].is(1) && at_least(strides[rank - 2], sizes[rank - 1])) ||
                       (strides[rank - 2].is(1) && at_least(strides[rank - 1], sizes[rank - 2])));
}

StridedView argument_view(const LoweredGraph& g, const ExternNode& call, int definition) {
  if (call.narrow >= 0 && definition == g.value(call.args[static_cast<std::size_t>(call.narrow)].node()))
    return resolve_view(g, definition, Through::Cast);
  StridedView shared = resolve_view(g, definition, Through::Views);
  if (!call.any_strides) return shared;
  StridedView read = resolve_view(g, definition, Through::Copies);
  const SymList& sizes = g.lowering[definition].sizes;
  // A copy of which no view can be read is needed itself; who else reads it shares it.
  if (read.base == shared.base || read.base == definition || sizes.size() < 2) return shared;
  // Matrix libraries accept any batch stride.
  return is_matrix(sizes, read.strides) ? read : shared;
}

}  // namespace partita::schedule

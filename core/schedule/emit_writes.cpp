#include <numeric>

#include "core/schedule/emit_parts.h"

namespace partita::schedule {
namespace {

/// The columns of which a thread takes one block after another, each through all rows.
SymExpr column_share(const loops::Target& target, SymExpr width) {
  constexpr std::int64_t line = 16;  // elements, so that threads do not share one
  if (!width.is_int()) return target.block_columns;
  const std::int64_t each = (width.as_int() + target.threads - 1) / target.threads;
  return std::min(width.as_int(), (each + line - 1) / line * line);
}

}  // namespace

Emitted emit(const LoweredGraph& g, const Stages& stages, int definition, std::size_t write) {
  const Definition& d = g.lowering[definition];
  const Definition::Write& w = d.writes[write];
  const SymList strides = layout_of(g, definition).strides;

  if (std::ranges::find(w.sizes, SymExpr(0)) != w.sizes.end()) return {};  // the loops around no elements may be long

  // A trial walk over separate dims finds which of them can be merged into one loop.
  Emitted dry;
  loops::IndexMath dry_math;
  Emitter probe(dry, dry_math, g, stages, nullptr);
  probe.at = dry_math.variables("d", w.sizes);
  std::vector<std::size_t> order(w.sizes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  w.value(probe, probe.at);
  const Index targets = w.target(probe, probe.at);
  const SymExpr target = probe.element(dry_math.element(targets, strides)).affine;
  probe.elements.push_back(target);
  for (const loops::ScalarNode& n : dry.kernel.scalars.nodes())
    if (n.op == ScalarOp::Index) probe.elements.push_back(n.index);
  // The order of writes to one element matters: for the rounding of sums, and otherwise for the value that stays. Where
  // each element is written once, the loops go through memory as it lies.
  const bool atomic = w.accumulate && g.target().atomic_sums;
  bool repeats = !atomic && (w.accumulate || w.repeats);
  const auto stride = [&](std::size_t d) {
    const auto step = w.sizes[d].is(1) ? std::nullopt : dry_math.factor(target, probe.at[d]);
    return step ? g.lowering.hint(*step) : 0;
  };
  if (!repeats && !atomic) std::ranges::stable_sort(order, std::greater(), stride);
  std::vector<Merged> merged = merge_dims(dry_math, probe.elements, probe.at, w.sizes, order);

  Emitted out;
  loops::IndexMath math;
  Emitter e(out, math, g, stages, nullptr);
  e.note_origin(definition);
  e.b.source = definition;
  const auto statements = [&](bool loads) {
    Scalar v = w.value(e, e.at);
    Body::Element at = e.element(math.element(w.target(e, e.at), strides));
    const int buffer = e.buffer(definition, Buffer::Role::Output);
    Accumulate accumulate = atomic ? Accumulate::Atomic : w.accumulate ? Accumulate::Plain : Accumulate::None;
    if (loads && w.accumulate) {
      const DType wide = opmath_dtype(d.dtype);
      const Scalar old = e.b.load_at(buffer, at.computed, d.dtype, at.affine);
      v = e.b.cast(e.b.Add(e.b.cast(old, wide), e.b.cast(v, wide)), d.dtype);
      accumulate = Accumulate::None;
    }
    return std::vector<Stmt>{Store{buffer, at.affine, at.computed, v, accumulate}};
  };
  // Iterations that differ in the index of some dim write different elements: threads share those, and each keeps the
  // order of the others.
  std::vector<std::size_t> apart, in_order;
  for (const std::size_t dim : order) {
    if (w.sizes[dim].is(1)) continue;
    const bool own = std::ranges::any_of(targets, [&](SymExpr t) { return (t - probe.at[dim]).is_int(); });
    (own ? apart : in_order).push_back(dim);
  }
  if (repeats && (is_gpu(g) || !apart.empty())) {
    e.at.assign(w.sizes.size(), 0);
    std::vector<Loop> loops;
    const auto over = [&](const auto& dims) { return merge_dims(dry_math, probe.elements, probe.at, w.sizes, dims); };
    std::vector<Merged> shared = over(apart);
    Merged columns;
    if (!is_gpu(g) && stride(shared.back().back()) == 1) {
      columns = shared.back();
      shared.pop_back();
    }
    const Mapping threads = outermost(g, product(w.sizes));
    add_loops(e, w.sizes, outer_loops(w.sizes, shared), threads, loops);
    SymExpr first = 0, width = extent(w.sizes, columns), block = width;
    if (!columns.empty() && shared.empty()) {
      block = column_share(g.target(), width);
      const SymExpr blocks = sym_floordiv(width + block - 1, block);
      loops.push_back(e.loop(blocks, blocks));
      loops.back().mapping = threads;
      first = SymExpr::symbol(loops.back().var) * block;
    }
    add_loops(e, w.sizes, over(in_order), Mapping::Serial, loops);
    if (!columns.empty()) {
      loops.push_back(e.loop(sym_mod(width, block).is(0) ? block : sym_min(block, width - first), block));
      loops.back().vector = true;
      place(math, w.sizes, columns, first + SymExpr::symbol(loops.back().var), e.at);
    }
    out.kernel.body = wrap(std::move(loops), statements(true));
  } else {
    out.kernel.body = pointwise_nest(e, w.sizes, merged, repeats ? Mapping::Serial : outermost(g, product(w.sizes)),
                                     !repeats, is_gpu(g), [&] { return statements(false); });
  }
  e.finish();
  return out;
}

std::vector<Merged> merge_dims(const loops::IndexMath& math, const std::vector<SymExpr>& elements,
                               const Position& position, const SymList& space, const std::vector<std::size_t>& order) {
  std::vector<Merged> merged;
  for (std::size_t d : order) {
    if (space[d].is(1)) continue;
    bool joins = !merged.empty();
    for (std::size_t e = 0; joins && e < elements.size(); ++e) {
      auto outer = math.factor(elements[e], position[merged.back().back()]),
           inner = math.factor(elements[e], position[d]);
      joins = outer && inner && *outer == *inner * space[d];
    }
    if (joins)
      merged.back().push_back(d);
    else
      merged.push_back({d});
  }
  return merged;
}

SymExpr extent(const SymList& space, const Merged& dims) {
  SymExpr n = 1;
  for (std::size_t d : dims) n = n * space[d];
  return n;
}

void place(const loops::IndexMath& math, const SymList& space, const Merged& dims, SymExpr variable, Position& at) {
  SymList sizes;
  for (std::size_t d : dims) sizes.push_back(space[d]);
  loops::Index digits = math.delinearize(variable, sizes);
  for (std::size_t i = 0; i < dims.size(); ++i) at[dims[i]] = digits[i];
}

}  // namespace partita::schedule

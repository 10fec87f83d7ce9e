#include "core/schedule/emit.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <unordered_map>
#include <utility>

#include "core/base/check.h"
#include "core/schedule/nest.h"

namespace partita::schedule {
namespace {

using loops::Accumulate;
using loops::Body;
using loops::Buffer;
using loops::Definition;
using loops::Index;
using loops::Loop;
using loops::LoweredTensor;
using loops::Mapping;
using loops::Reduce;
using loops::Scalar;
using loops::ScalarOp;
using loops::Stmt;
using loops::Store;

/// A GPU has a thread for each iteration, and a group of threads for each row that is reduced.
bool is_gpu(const LoweredGraph& g) {
  return g.target().device == DeviceType::Cuda;
}

/// The mapping of an outermost loop over independent iterations, in a nest of that many elements.
Mapping outermost(const LoweredGraph& g, SymExpr elements) {
  // With symbols, each run decides by its sizes.
  if (g.lowering.symbolic()) return Mapping::Thread;
  return g.lowering.hint(elements) >= g.target().parallel_elements ? Mapping::Thread : Mapping::Serial;
}

/// The kernel under construction, and how its values are read.
class Emitter final : public Body {
 public:
  Emitter(Emitted& to, loops::IndexMath& math, const LoweredGraph& g, const Stages& stages, const Group* group)
      : Body(to.kernel.scalars, math), to_(to), g_(g), stages_(stages), group_(group) {
    if (group)
      for (std::size_t m = 0; m < group->members.size(); ++m) member_.emplace(group->members[m].definition, m);
  }

  // The position of the statement being emitted.
  Position at;
  int pass = 0;
  SymExpr column;  ///< by columns: index of the running values in their scratch

  std::vector<SymExpr> elements;         ///< elements loaded so far
  std::unordered_map<int, int> results;  ///< Reduce definition -> accumulator; by columns: scratch buffer
  std::unordered_map<int, std::pair<int, SymExpr>> rows;  ///< scratch Full definition -> buffer and element

  Scalar read(const LoweredTensor& tensor, const Index& index) override {
    const Definition& d = g_.lowering[tensor.id];
    note_origin(tensor.id);
    if (auto it = member_.find(tensor.id); it != member_.end())
      return read_member(tensor, group_->members[it->second], index);
    if (d.kind == Definition::Kind::Memory || stages_.unit_of[static_cast<std::size_t>(tensor.id)] >= 0)
      return load_from(tensor.id, index);
    return inlined(tensor.id, index);
  }

  Scalar value(const Member& m) {
    const Definition& d = g_.lowering[m.definition];
    note_origin(m.definition);
    auto index = index_at(math, group_->domain, d, m.coverage, at);
    CHECK(index, "a member without an index");
    return m.coverage == Coverage::Reduce ? computed(m.definition, *index) : inlined(m.definition, *index);
  }

  /// Makes the store of a member's value at the current position.
  Store store(const Member& m) {
    const Definition& d = g_.lowering[m.definition];
    auto index = index_at(math, group_->domain, d, m.coverage, at);
    Scalar v;
    if (m.coverage == Coverage::Reduce) {
      for (std::size_t i = 0; i < index->size(); ++i)
        if (d.reduced[i]) (*index)[i] = 0;
      v = read_member(g_.lowering.handle(m.definition), m, *index);
    } else {
      v = value(m);
    }
    return {
        buffer(m.definition, Buffer::Role::Output), math.element(*index, layout_of(g_, m.definition).strides), {}, v};
  }

  int buffer(int definition, Buffer::Role role) {
    auto target = g_.destination.find(definition);
    int holder = target == g_.destination.end() ? definition : target->second;
    auto [it, fresh] = buffers_.try_emplace(holder, static_cast<int>(to_.kernel.buffers.size()));
    if (fresh) {
      const Definition& d = g_.lowering[holder];
      to_.kernel.buffers.push_back({"b" + std::to_string(it->second) + "_" + d.origin, d.dtype,
                                    layout_of(g_, holder).elements, Buffer::Role::Input});
    }
    if (role == Buffer::Role::Output) to_.kernel.buffers[static_cast<std::size_t>(it->second)].role = role;
    return it->second;
  }

  int scratch(const std::string& name, DType dtype, SymExpr size) {
    to_.kernel.buffers.push_back(
        {"s" + std::to_string(to_.kernel.buffers.size()) + "_" + name, dtype, size, Buffer::Role::Scratch});
    return static_cast<int>(to_.kernel.buffers.size()) - 1;
  }

  Loop loop(SymExpr extent, SymExpr most) {
    Loop l;
    l.var = "i" + std::to_string(variables_++);
    l.extent = extent;
    math.variable(l.var, most);
    return l;
  }

  void note_origin(int definition) {
    const Definition& d = g_.lowering[definition];
    if (d.kind == Definition::Kind::Memory || d.origin.empty()) return;
    const auto [first, fresh] = origins_.try_emplace(d.origin, definition);
    first->second = std::min(first->second, definition);
    if (fresh) to_.kernel.origins.push_back(d.origin);
  }

  void finish() {
    to_.memory.clear();
    std::vector<std::pair<int, int>> order;
    for (auto [holder, slot] : buffers_) order.emplace_back(slot, holder);
    std::ranges::sort(order);
    for (auto [slot, holder] : order) to_.memory.push_back(holder);
    // Sort into graph order; reads may come in another order.
    std::vector<std::string>& origins = to_.kernel.origins;
    std::ranges::sort(origins, {}, [&](const std::string& origin) { return origins_.at(origin); });
    std::unordered_map<std::string_view, int> place;
    for (std::size_t i = 0; i < origins.size(); ++i) place.emplace(origins[i], static_cast<int>(i));
    to_.kernel.scalars.map_sources([&](int definition) {
      const auto at = place.find(g_.lowering[definition].origin);
      return at == place.end() ? -1 : at->second;
    });
  }

 private:
  Scalar load_from(int definition, const Index& index) {
    SymExpr e = math.element(index, layout_of(g_, definition).strides);
    elements.push_back(e);
    return load(buffer(definition, Buffer::Role::Input), e, g_.lowering[definition].dtype);
  }

  Scalar computed(int id, const Index& index) {
    const int around = std::exchange(b.source, id);
    const Scalar v = g_.lowering[id].value(*this, index);
    b.source = around;
    return v;
  }

  Scalar inlined(int id, const Index& index) {
    ElementKey key{id, pass, index};
    auto it = known_.find(key);
    if (it != known_.end()) return it->second;
    Scalar v = computed(id, index);
    known_.emplace(std::move(key), v);
    return v;
  }

  Scalar read_member(const LoweredTensor& tensor, const Member& m, const Index& index) {
    if (m.coverage == Coverage::Reduce) {
      int place = results.at(tensor.id);
      return group_->domain.by_columns ? b.load(place, column, tensor.dtype) : b.input(place, tensor.dtype);
    }
    if (m.coverage == Coverage::Full && pass > m.level) {
      if (m.stored) return load_from(tensor.id, index);
      if (auto row = rows.find(tensor.id); row != rows.end())
        return b.load(row->second.first, row->second.second, tensor.dtype);
    }
    return inlined(tensor.id, index);
  }

  Emitted& to_;
  const LoweredGraph& g_;
  const Stages& stages_;
  const Group* group_;
  std::unordered_map<int, std::size_t> member_;
  std::unordered_map<int, int> buffers_;
  std::unordered_map<std::string, int> origins_;  ///< the first definition of each node that takes part
  std::unordered_map<ElementKey, Scalar, ElementKeyHash> known_;
  int variables_ = 0;
};

/// The start of a running value.
Scalar start_value(loops::ScalarBuilder& b, const Definition& d) {
  if (is_floating(d.dtype)) return b.constant(d.dtype, d.start);
  return b.constant_int(d.dtype, loops::integer_start(d.dtype, d.start));
}

/// Nests `loops`, the outermost first, around `body`.
std::vector<Stmt> wrap(std::vector<Loop> loops, std::vector<Stmt> body) {
  for (std::size_t i = loops.size(); i-- > 0;) {
    loops[i].body = std::move(body);
    body.clear();
    body.push_back(std::move(loops[i]));
  }
  return body;
}

void append(std::vector<Stmt>& to, std::vector<Stmt> from) {
  std::ranges::move(from, std::back_inserter(to));
}

std::vector<std::size_t> dims_where(const Domain& domain, bool reduced) {
  std::vector<std::size_t> dims;
  for (std::size_t d = 0; d < domain.space.size(); ++d)
    if (domain.reduced[d] == reduced && !domain.space[d].is(1)) dims.push_back(d);
  return dims;
}

/// The dims of the outer loops, of which there is one, since a division by a number costs little. Divisions by symbols
/// are avoided by a loop for each of `merged`.
std::vector<Merged> outer_loops(const SymList& space, std::vector<Merged> merged) {
  const bool numbers = std::ranges::all_of(space, &SymExpr::is_int);
  Merged all;
  for (const Merged& dims : merged) all.insert(all.end(), dims.begin(), dims.end());
  if (all.empty()) return {};
  return numbers ? std::vector<Merged>{all} : merged;
}

/// Appends a loop for each of `nest`, at whose index the position then is.
void add_loops(Emitter& e, const SymList& space, const std::vector<Merged>& nest, Mapping mapping,
               std::vector<Loop>& loops) {
  for (const Merged& dims : nest) {
    const SymExpr n = extent(space, dims);
    loops.push_back(e.loop(n, n));
    loops.back().mapping = mapping;
    place(e.math, space, dims, SymExpr::symbol(loops.back().var), e.at);
  }
}

/// Makes loops over all outer dims, and one over the innermost dims. `statements` gives the body. `flat`: the innermost
/// dims are mapped as the others, and are of one loop with them if sizes are numbers.
template <class F>
std::vector<Stmt> pointwise_nest(Emitter& e, const SymList& space, const std::vector<Merged>& merged, Mapping mapping,
                                 bool vector, bool flat, F statements) {
  e.at.assign(space.size(), 0);
  std::vector<Merged> nest;
  if (flat) {
    nest = outer_loops(space, merged);
  } else if (!merged.empty()) {
    nest = outer_loops(space, {merged.begin(), std::prev(merged.end())});
    nest.push_back(merged.back());
  }
  std::vector<Loop> loops;
  add_loops(e, space, nest, mapping, loops);
  if (!flat && loops.size() > 1) loops.back().mapping = Mapping::Serial;
  if (!loops.empty()) loops.back().vector = vector;
  return wrap(std::move(loops), statements());
}

class GroupEmitter {
 public:
  GroupEmitter(const LoweredGraph& g, const Stages& stages, const Group& group)
      : g_(g), group_(group), domain_(group.domain), analysed_(group), e_(out_, math_, g, stages, &analysed_) {
    // Neighbouring threads of a GPU take neighbouring columns, each of which is a row that one thread reduces.
    groups_ = is_gpu(g) && !domain_.by_columns && g.lowering.hint(product(domain_.part(true))) >= g.target().group_row;
    if (is_gpu(g)) analysed_.domain.by_columns = false;
    found_ = analyse(g, stages, analysed_);
    read_again();
    for (const Member& m : analysed_.members)
      passes_ = std::max(passes_, m.level + (m.coverage == Coverage::Kept ? 0 : 1));
  }

  Emitted run() {
    if (gives_nothing())
      ;  // an empty kernel: the loops around no elements may be long
    else if (!domain_.reduces())
      out_.kernel.body = pointwise();
    else if (analysed_.domain.by_columns)
      out_.kernel.body = columns();
    else
      out_.kernel.body = rows();
    e_.finish();
    return std::move(out_);
  }

 private:
  bool gives_nothing() const {
    for (std::size_t d = 0; d < domain_.space.size(); ++d)
      if (domain_.space[d].is(0) && !(domain_.reduces() && domain_.reduced[d])) return true;
    return false;
  }

  const std::vector<Member>& members() const { return analysed_.members; }

  std::vector<Merged> merged(const std::vector<std::size_t>& order) const {
    return merge_dims(found_.math, found_.elements, found_.position, domain_.space, order);
  }

  std::vector<Stmt> pointwise() {
    std::vector<std::size_t> order = dims_where(domain_, false);
    for (const Member& m : members()) {
      if (!m.stored || g_.lowering[m.definition].sizes != domain_.space) continue;
      const SymList strides = layout_of(g_, m.definition).strides;
      std::ranges::stable_sort(order, std::greater(), [&](std::size_t d) { return g_.lowering.hint(strides[d]); });
      break;
    }
    return pointwise_nest(e_, domain_.space, merged(order), outermost(g_, domain_.numel()), true, is_gpu(g_), [&] {
      std::vector<Stmt> body;
      for (const Member& m : members())
        if (m.stored) body.push_back(e_.store(m));
      return body;
    });
  }

  bool in_pass(const Member& m, int pass) const {
    return m.level == pass &&
           (m.coverage == Coverage::Reduce || (m.coverage == Coverage::Full && (m.stored || m.scratch)));
  }
  bool has_pass(int pass) const {
    return std::ranges::any_of(members(), [&](const Member& m) { return in_pass(m, pass); });
  }
  /// Can the member be stored once the passes before `pass` are done?
  bool ready(const Member& m, int pass) const {
    return m.stored && ((m.coverage == Coverage::Reduce && m.level + 1 == pass) ||
                        (m.coverage == Coverage::Kept && m.level == pass));
  }

  std::vector<Stmt> rows() {
    e_.at.assign(domain_.space.size(), 0);
    std::vector<Merged> reduced = merged(dims_where(domain_, true)), kept = merged(dims_where(domain_, false));
    if (groups_) {
      reduced = {joined(reduced)};
      kept = {joined(kept)};
    } else {
      kept = outer_loops(domain_.space, kept);
    }
    std::vector<Loop> outer;
    add_loops(e_, domain_.space, kept, groups_ ? Mapping::Block : outermost(g_, domain_.numel()), outer);
    const SymExpr row = product(domain_.part(true));
    for (const Member& m : members())
      if (m.scratch) {
        const int slot = e_.scratch(g_.lowering[m.definition].origin, g_.lowering[m.definition].dtype, row);
        if (groups_) out_.kernel.buffers[static_cast<std::size_t>(slot)].scope = Buffer::Scope::Block;
        scratch_[m.definition] = slot;
      }
    const bool overwrites = std::ranges::any_of(
        members(), [&](const Member& m) { return m.stored && g_.destination.contains(m.definition); });
    std::vector<Stmt> body;
    const auto barrier = [&] {
      if (groups_ && !body.empty()) body.emplace_back(loops::Barrier{});
    };
    for (int pass = 0; pass <= passes_; ++pass) {
      e_.pass = pass;
      if (overwrites && std::ranges::any_of(members(), [&](const Member& m) { return ready(m, pass); })) barrier();
      for (const Member& m : members())
        if (ready(m, pass)) body.push_back(e_.store(m));
      if (!has_pass(pass)) continue;
      if (overwrites || std::ranges::any_of(members(), [&](const Member& m) { return kept_for(m, pass); })) barrier();
      append(body, row_pass(pass, reduced));
    }
    return wrap(std::move(outer), std::move(body));
  }

  static Merged joined(const std::vector<Merged>& merged) {
    Merged all;
    for (const Merged& dims : merged) all.insert(all.end(), dims.begin(), dims.end());
    return all;
  }

  /// What a row's value without memory reads is read in each pass that computes it again.
  void read_again() {
    for (std::size_t i = members().size(); i-- > 0;)
      for (const std::size_t reader : found_.readers[i]) {
        const Member& by = members()[reader];
        if (by.coverage == Coverage::Full && !by.stored && !by.scratch)
          found_.passes[members()[i].definition].merge(std::set<int>(found_.passes[by.definition]));
      }
  }

  /// Did an earlier pass store the member's row for this pass or a later one?
  bool kept_for(const Member& m, int pass) const {
    const auto readers = found_.passes.find(m.definition);
    return m.coverage == Coverage::Full && (m.stored || m.scratch) && m.level < pass &&
           readers != found_.passes.end() && *readers->second.rbegin() >= pass;
  }

  std::vector<Stmt> row_pass(int pass, const std::vector<Merged>& reduced) {
    std::vector<Loop> loops;
    Position outside = e_.at;
    add_loops(e_, domain_.space, reduced, groups_ ? Mapping::Thread : Mapping::Serial, loops);
    SymExpr in_row = 0;
    for (const Loop& l : loops) in_row = in_row * l.extent + SymExpr::symbol(l.var);
    // A reduction over a single element needs a loop too, because accumulators start at it.
    if (loops.empty()) loops.push_back(e_.loop(1, 1));
    loops.back().vector = true;
    for (const auto& [definition, slot] : scratch_) e_.rows[definition] = {slot, in_row};
    std::vector<Stmt> body;
    for (const Member& m : members()) {
      if (!in_pass(m, pass)) continue;
      const Definition& d = g_.lowering[m.definition];
      if (m.coverage == Coverage::Reduce) {
        int accumulator = static_cast<int>(out_.kernel.accumulators.size());
        Scalar v = e_.value(m);
        out_.kernel.accumulators.push_back({d.combine, d.dtype, d.start});
        loops.front().accumulators.push_back(accumulator);
        body.push_back(Reduce{accumulator, v});
        e_.results[m.definition] = accumulator;
      } else if (m.stored) {
        body.push_back(e_.store(m));
      } else {
        body.push_back(Store{scratch_.at(m.definition), in_row, {}, e_.value(m)});
      }
    }
    e_.at = outside;
    return wrap(std::move(loops), std::move(body));
  }

  std::vector<Stmt> columns() {
    std::vector<Merged> kept = merged(dims_where(domain_, false)), reduced = merged(dims_where(domain_, true));
    CHECK(!kept.empty(), "columns of nothing");
    inner_ = kept.back();
    Merged outer;
    for (std::size_t k = 0; k + 1 < kept.size(); ++k) outer.insert(outer.end(), kept[k].begin(), kept[k].end());
    width_ = extent(domain_.space, inner_);
    const std::int64_t block_columns = g_.target().block_columns;
    block_ = block_columns;
    if (width_.is_int()) {
      const std::int64_t width = width_.as_int();
      if (width <= 2 * block_columns) block_ = width;
      while (block_ > block_columns / 2 && width % block_ != 0) --block_;
      if (width % block_ != 0 && width > 2 * block_columns) block_ = block_columns;
    }
    const SymExpr blocks = sym_floordiv(width_ + (block_ - 1), block_), count = extent(domain_.space, outer) * blocks;
    e_.at.assign(domain_.space.size(), 0);
    std::vector<Loop> nest;
    first_ = 0;
    if (!count.is(1)) {
      nest.push_back(e_.loop(count, count));
      nest[0].mapping = outermost(g_, domain_.numel());
      SymExpr variable = SymExpr::symbol(nest[0].var);
      first_ = e_.math.mod(variable, blocks) * block_;
      place(e_.math, domain_.space, outer, e_.math.floordiv(variable, blocks), e_.at);
    }
    std::vector<Stmt> body;
    for (const Member& m : members())
      if (m.coverage == Coverage::Reduce)
        e_.results[m.definition] =
            e_.scratch(g_.lowering[m.definition].origin, g_.lowering[m.definition].dtype, block_);
    for (int pass = 0; pass <= passes_; ++pass) {
      e_.pass = pass;
      if (std::ranges::any_of(members(), [&](const Member& m) { return ready(m, pass); }))
        body.push_back(over_columns([&](std::vector<Stmt>& to) {
          for (const Member& m : members())
            if (ready(m, pass)) to.push_back(e_.store(m));
        }));
      if (has_pass(pass)) append(body, column_pass(pass, reduced));
    }
    return wrap(std::move(nest), std::move(body));
  }

  /// Makes a vector loop over the columns of a block.
  template <class F>
  Loop over_columns(F statements) {
    Loop l = e_.loop(sym_mod(width_, block_).is(0) ? SymExpr(block_) : sym_min(block_, width_ - first_), block_);
    l.vector = true;
    e_.column = SymExpr::symbol(l.var);
    place(e_.math, domain_.space, inner_, first_ + e_.column, e_.at);
    statements(l.body);
    return l;
  }

  std::vector<Stmt> column_pass(int pass, const std::vector<Merged>& reduced) {
    std::vector<Stmt> out;
    out.push_back(over_columns([&](std::vector<Stmt>& to) {
      for (const Member& m : members())
        if (m.coverage == Coverage::Reduce && m.level == pass) {
          const Definition& d = g_.lowering[m.definition];
          to.push_back(Store{e_.results.at(m.definition), e_.column, {}, start_value(e_.b, d)});
        }
    }));
    if (std::get<Loop>(out.back()).body.empty()) out.pop_back();
    std::vector<Loop> loops;
    Position outside = e_.at;
    add_loops(e_, domain_.space, reduced, Mapping::Serial, loops);
    std::vector<Stmt> body;
    body.push_back(over_columns([&](std::vector<Stmt>& to) {
      for (const Member& m : members()) {
        if (!in_pass(m, pass)) continue;
        if (m.coverage == Coverage::Full) {
          to.push_back(e_.store(m));
          continue;
        }
        const Definition& d = g_.lowering[m.definition];
        int place = e_.results.at(m.definition);
        const Scalar value = e_.value(m);
        e_.b.source = m.definition;
        Scalar sum = e_.b.make(d.combine, e_.b.load(place, e_.column, d.dtype), value);
        e_.b.source = -1;
        to.push_back(Store{place, e_.column, {}, sum});
      }
    }));
    append(out, wrap(std::move(loops), std::move(body)));
    e_.at = outside;
    return out;
  }

  const LoweredGraph& g_;
  const Group& group_;
  const Domain& domain_;
  Group analysed_;
  Analysis found_;
  Emitted out_;
  loops::IndexMath math_;
  Emitter e_;
  bool groups_ = false;  ///< the threads of a group share a row
  int passes_ = 0;
  std::unordered_map<int, int> scratch_;
  Merged inner_;
  SymExpr width_ = 1;
  std::int64_t block_ = 1;
  SymExpr first_ = 0;
};

}  // namespace

Emitted emit(const LoweredGraph& g, const Stages& stages, const Group& group) {
  return GroupEmitter(g, stages, group).run();
}

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
  const Mapping mapping = repeats ? Mapping::Serial : outermost(g, product(w.sizes));
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
  if (repeats && is_gpu(g)) {
    // Iterations that differ in the index of some dim write different elements: each has a thread, which keeps the
    // order of the others.
    std::vector<std::size_t> apart, in_order;
    for (const std::size_t dim : order) {
      const bool own = std::ranges::any_of(targets, [&](SymExpr t) { return (t - probe.at[dim]).is_int(); });
      (own ? apart : in_order).push_back(dim);
    }
    e.at.assign(w.sizes.size(), 0);
    std::vector<Loop> loops;
    const auto over = [&](const auto& dims) { return merge_dims(dry_math, probe.elements, probe.at, w.sizes, dims); };
    add_loops(e, w.sizes, outer_loops(w.sizes, over(apart)), outermost(g, product(w.sizes)), loops);
    add_loops(e, w.sizes, over(in_order), Mapping::Serial, loops);
    out.kernel.body = wrap(std::move(loops), statements(true));
  } else {
    out.kernel.body =
        pointwise_nest(e, w.sizes, merged, mapping, !repeats, is_gpu(g), [&] { return statements(false); });
  }
  e.finish();
  return out;
}

}  // namespace partita::schedule

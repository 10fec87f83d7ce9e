// Emits a group as a loop nest: pointwise; by rows, with a loop over the row for each pass; or by columns, with a block
// of running values. Long sums of floats are made of partial sums.
#include <algorithm>

#include "core/schedule/emit_parts.h"

namespace partita::schedule {
namespace {

/// The start of a running value.
Scalar start_value(loops::ScalarBuilder& b, const Definition& d, DType dtype) {
  if (is_floating(dtype)) return b.constant(dtype, d.start);
  return b.constant_int(d.dtype, loops::integer_start(d.dtype, d.start));
}

std::vector<std::size_t> dims_where(const Domain& domain, bool reduced) {
  std::vector<std::size_t> dims;
  for (std::size_t d = 0; d < domain.space.size(); ++d)
    if (domain.reduced[d] == reduced && !domain.space[d].is(1)) dims.push_back(d);
  return dims;
}

class GroupEmitter {
 public:
  GroupEmitter(const LoweredGraph& g, const Stages& stages, const Group& group)
      : g_(g), domain_(group.domain), analysed_(group), e_(out_, math_, g, stages, &analysed_) {
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

  /// A row's value that has no memory is computed again in each pass, which then reads all that it is made of.
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

  /// How many elements a pass adds to one running value, if they are so many that the rounding errors of partial sums
  /// are less. Threads of a group have few each.
  std::optional<std::int64_t> partial_sums(int pass) const {
    constexpr std::int64_t most = 64;
    const bool sums = std::ranges::any_of(members(), [&](const Member& m) {
      const Definition& d = g_.lowering[m.definition];
      return m.level == pass && m.coverage == Coverage::Reduce && d.combine == loops::ScalarOp::Add &&
             is_floating(d.dtype);
    });
    return sums && !is_gpu(g_) ? std::optional(most) : std::nullopt;
  }

  std::vector<Stmt> row_pass(int pass, const std::vector<Merged>& reduced) {
    Position outside = e_.at;
    const std::int64_t lanes = std::max(g_.target().vector_bytes / 4, 1);
    ReductionLoops nest = reduction_loops(e_, domain_.space, reduced, groups_ ? Mapping::Thread : Mapping::Serial,
                                          partial_sums(pass), lanes);
    std::vector<Loop>& loops = nest.loops;
    // A reduction over a single element needs a loop too, because accumulators start at it.
    if (loops.empty()) loops.push_back(e_.loop(1, 1));
    loops.back().vector = true;
    for (const auto& [definition, slot] : scratch_) e_.rows[definition] = {slot, nest.element};
    const auto accumulator = [&](const Definition& d, DType dtype, Loop& from) {
      const int made = static_cast<int>(out_.kernel.accumulators.size());
      out_.kernel.accumulators.push_back({d.combine, dtype, d.start});
      from.accumulators.push_back(made);
      return made;
    };
    std::vector<Stmt> body, whole;
    for (const Member& m : members()) {
      if (!in_pass(m, pass)) continue;
      const Definition& d = g_.lowering[m.definition];
      if (m.coverage == Coverage::Reduce) {
        Scalar v = e_.value(m);
        const DType wide = nest.inner > 0 ? of_totals(d) : d.dtype;
        const int total = accumulator(d, wide, loops.front());
        const int part = nest.inner > 0 ? accumulator(d, d.dtype, loops[nest.inner]) : total;
        body.push_back(Reduce{part, v});
        if (part != total) whole.push_back(Reduce{total, e_.b.cast(e_.b.input(part, d.dtype), wide)});
        e_.results[m.definition] = total;
      } else if (m.stored) {
        body.push_back(e_.store(m));
      } else {
        body.push_back(Store{scratch_.at(m.definition), nest.element, {}, e_.value(m)});
      }
    }
    e_.at = outside;
    return wrap_parts(std::move(nest), {}, std::move(body), std::move(whole));
  }

  /// What partial results of a definition are combined in. These are few, so that double costs nothing.
  static DType of_totals(const Definition& d) {
    return d.combine == loops::ScalarOp::Add && d.dtype == DType::Float32 ? DType::Float64 : d.dtype;
  }

  /// Nests the loops of partial results around `body`, with `before` and `after` around them, and the others around
  /// all.
  static std::vector<Stmt> wrap_parts(ReductionLoops nest, std::vector<Stmt> before, std::vector<Stmt> body,
                                      std::vector<Stmt> after) {
    const auto inner = nest.loops.begin() + static_cast<std::ptrdiff_t>(nest.inner);
    append(before, wrap({std::move_iterator(inner), std::move_iterator(nest.loops.end())}, std::move(body)));
    append(before, std::move(after));
    nest.loops.erase(inner, nest.loops.end());
    return wrap(std::move(nest.loops), std::move(before));
  }

  /// The kept dims; the last of them is the one along which most loads run. In the results it may be another: sums of
  /// rows of images are stored by channel and row, also where channels are innermost in memory.
  std::vector<std::size_t> kept_for_columns() const {
    std::vector<std::size_t> order = dims_where(domain_, false);
    const auto loads_along = [&](std::size_t d) {
      return domain_.space[d].is(1) ? 0 : std::ranges::count_if(found_.elements, [&](const SymExpr& e) {
        return found_.math.factor(e, found_.position[d]) == 1;
      });
    };
    const auto best = std::ranges::max_element(order, {}, loads_along);
    if (best != order.end() && loads_along(*best) > loads_along(order.back())) std::rotate(best, best + 1, order.end());
    return order;
  }

  std::vector<Stmt> columns() {
    std::vector<Merged> kept = merged(kept_for_columns()), reduced = merged(dims_where(domain_, true));
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
  Loop over_columns(auto statements) {
    Loop l = e_.loop(sym_mod(width_, block_).is(0) ? SymExpr(block_) : sym_min(block_, width_ - first_), block_);
    l.vector = true;
    e_.column = SymExpr::symbol(l.var);
    place(e_.math, domain_.space, inner_, first_ + e_.column, e_.at);
    statements(l.body);
    return l;
  }

  std::vector<Stmt> column_pass(int pass, const std::vector<Merged>& reduced) {
    Position outside = e_.at;
    ReductionLoops nest = reduction_loops(e_, domain_.space, reduced, Mapping::Serial, partial_sums(pass), /*lanes=*/1);
    std::unordered_map<int, int> parts = e_.results, totals;  // of definitions, the columns' running values
    const auto for_each_sum = [&](std::vector<Stmt>& to, const auto& statement) {
      to.push_back(over_columns([&](std::vector<Stmt>& sums) {
        for (const Member& m : members())
          if (m.coverage == Coverage::Reduce && m.level == pass)
            sums.push_back(statement(m.definition, g_.lowering[m.definition]));
      }));
      if (std::get<Loop>(to.back()).body.empty()) to.pop_back();
    };
    const auto start = [&](const std::unordered_map<int, int>& places, bool wide) {
      return [&places, wide, this](int definition, const Definition& d) {
        return Store{places.at(definition), e_.column, {}, start_value(e_.b, d, wide ? of_totals(d) : d.dtype)};
      };
    };
    const auto combined = [&](int place, const Definition& d, Scalar value) {
      const Scalar sum = e_.b.make(d.combine, e_.b.load(place, e_.column, e_.b.dtype(value)), value);
      return Store{place, e_.column, {}, sum};
    };
    std::vector<Stmt> out, before, body, after;
    if (nest.inner == 0) {
      for_each_sum(out, start(parts, false));
    } else {
      for (const Member& m : members()) {
        if (m.coverage != Coverage::Reduce || m.level != pass) continue;
        const Definition& d = g_.lowering[m.definition];
        totals[m.definition] = e_.scratch(d.origin, of_totals(d), block_);
      }
      for_each_sum(out, start(totals, true));
      for_each_sum(before, start(parts, false));
      for_each_sum(after, [&](int definition, const Definition& d) {
        return combined(totals.at(definition), d,
                        e_.b.cast(e_.b.load(parts.at(definition), e_.column, d.dtype), of_totals(d)));
      });
    }
    body.push_back(over_columns([&](std::vector<Stmt>& to) {
      for (const Member& m : members()) {
        if (!in_pass(m, pass)) continue;
        if (m.coverage == Coverage::Full) {
          to.push_back(e_.store(m));
          continue;
        }
        const Scalar value = e_.value(m);
        e_.b.source = m.definition;
        to.push_back(combined(parts.at(m.definition), g_.lowering[m.definition], value));
        e_.b.source = -1;
      }
    }));
    append(out, wrap_parts(std::move(nest), std::move(before), std::move(body), std::move(after)));
    if (!totals.empty())
      for_each_sum(out, [&](int definition, const Definition& d) {
        const Scalar total = e_.b.load(totals.at(definition), e_.column, of_totals(d));
        return Store{parts.at(definition), e_.column, {}, e_.b.cast(total, d.dtype)};
      });
    e_.at = outside;
    return out;
  }

  const LoweredGraph& g_;
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

}  // namespace partita::schedule

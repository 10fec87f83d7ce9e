#include "core/schedule/emit_parts.h"

namespace partita::schedule {
namespace {

/// The start of a running value.
Scalar start_value(loops::ScalarBuilder& b, const Definition& d) {
  if (is_floating(d.dtype)) return b.constant(d.dtype, d.start);
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

// Index spaces of loop nests, and the analysis of a group: a walk over its members' values, whose reads give the passes
// that they belong to, the loads, and whether the group can be computed at all.
#include "core/schedule/group.h"

#include <algorithm>
#include <unordered_map>

#include "core/base/check.h"
#include "core/base/hash.h"

namespace partita::schedule {

using loops::Body;
using loops::Definition;
using loops::Index;
using loops::LoweredTensor;
using loops::Scalar;

namespace {

SymList without_ones(const SymList& sizes) {
  SymList out;
  for (SymExpr s : sizes)
    if (!s.is(1)) out.push_back(s);
  return out;
}

/// Converts an index: the result has the same row-major position in `to` as `at` has in `from`.
Index carried(const loops::IndexMath& math, const Index& at, const SymList& from, const SymList& to) {
  if (without_ones(from) != without_ones(to)) return math.delinearize(math.linear(at, from), to);
  Index index;
  std::size_t d = 0;
  for (SymExpr s : to) {
    while (!s.is(1) && from[d].is(1)) ++d;
    index.push_back(s.is(1) ? SymExpr(0) : at[d++]);
  }
  return index;
}

/// Those of an index, or of sizes, whose dims have this mark.
std::vector<SymExpr> part_of(const std::vector<SymExpr>& of, const std::vector<bool>& mask, bool which) {
  std::vector<SymExpr> out;
  for (std::size_t d = 0; d < of.size(); ++d)
    if (mask[d] == which) out.push_back(of[d]);
  return out;
}

/// Walks over the values of a group. Their reads decide the members' levels and whether the group is legal.
class Walk final : public Body {
 public:
  Walk(loops::ScalarBuilder& b, const LoweredGraph& g, const Stages& stages, Group& group, Analysis& found)
      : Body(b, found.math), g_(g), stages_(stages), group_(group), found_(found) {}

  void run(std::size_t first) {
    for (walked_ = first; walked_ < group_.members.size(); ++walked_) {
      Member& m = group_.members[walked_];
      const Definition& d = g_.lowering[m.definition];
      auto index = index_at(math, group_.domain, d, m.coverage, found_.position);
      if (!index) {
        found_.legal = false;
        return;
      }
      level_ = 0;
      reads_.clear();
      current_ = m.coverage;
      known_.clear();
      d.value(*this, *index);
      m.level = level_;
      for (int full : reads_) found_.passes[full].insert(level_);
      for (auto& [memory, element] : fresh_) found_.loads[memory].push_back({element, level_, walked_});
      fresh_.clear();
      if (m.stored && m.coverage != Coverage::Reduce)
        found_.elements.push_back(math.element(*index, layout_of(g_, m.definition).strides));
      if (!found_.legal) return;
    }
  }

  Scalar read(const LoweredTensor& tensor, const Index& index) override {
    const Definition& d = g_.lowering[tensor.id];
    if (const auto m = member(tensor.id)) return read_member(tensor, *m, index);
    bool memory = d.kind == Definition::Kind::Memory;
    if (memory || stages_.unit_of[static_cast<std::size_t>(tensor.id)] >= 0) {
      SymExpr e = math.element(index, layout_of(g_, tensor.id).strides);
      found_.elements.push_back(e);
      if (memory) fresh_.emplace_back(tensor.id, e);
      if (g_.lowering.hint(tensor.numel()) >= g_.lowering.hint(group_.domain.numel())) found_.streams.insert(tensor.id);
      return b.load(tensor.id, element(e).affine, tensor.dtype);
    }
    ElementKey key{tensor.id, 0, index};
    if (auto it = known_.find(key); it != known_.end()) return it->second;
    Scalar value = d.value(*this, index);
    known_.emplace(std::move(key), value);
    return value;
  }

 private:
  /// Members are in the order of units.
  std::optional<std::size_t> member(int definition) const {
    const auto unit = [&](int id) { return stages_.unit_of[static_cast<std::size_t>(id)]; };
    if (unit(definition) < 0) return std::nullopt;
    const auto at = std::ranges::lower_bound(group_.members, unit(definition), {},
                                             [&](const Member& m) { return unit(m.definition); });
    if (at == group_.members.end() || at->definition != definition) return std::nullopt;
    return static_cast<std::size_t>(at - group_.members.begin());
  }

  Scalar read_member(const LoweredTensor& tensor, std::size_t m, const Index& index) {
    const Member& member = group_.members[m];
    found_.readers[m].insert(walked_);
    const Definition& d = g_.lowering[tensor.id];
    auto own = index_at(math, group_.domain, d, member.coverage, found_.position);
    bool same = own && (current_ != Coverage::Kept || member.coverage != Coverage::Full);
    for (std::size_t i = 0; same && i < index.size(); ++i) {
      bool folded = member.coverage == Coverage::Reduce && d.reduced[i];
      same = d.sizes[i].is(1) || folded || math.simplify(index[i]) == (*own)[i];
    }
    if (!same) found_.legal = false;
    level_ = std::max(level_, member.coverage == Coverage::Reduce ? member.level + 1 : member.level);
    if (member.coverage == Coverage::Full) reads_.insert(tensor.id);
    return b.input(tensor.id, tensor.dtype);
  }

  const LoweredGraph& g_;
  const Stages& stages_;
  Group& group_;
  Analysis& found_;
  std::unordered_map<ElementKey, Scalar, ElementKeyHash> known_;
  std::vector<std::pair<int, SymExpr>> fresh_;
  std::set<int> reads_;
  Coverage current_ = Coverage::Full;
  std::size_t walked_ = 0;  ///< the member whose value is walked over
  int level_ = 0;
};

}  // namespace

std::size_t ElementKeyHash::operator()(const ElementKey& p) const {
  std::uint64_t h = hash_combine(0x51ed270b, static_cast<std::uint64_t>(p.definition));
  h = hash_combine(h, static_cast<std::uint64_t>(p.pass));
  for (SymExpr e : p.index) h = hash_combine(h, e.hash());
  return h;
}

SymList Domain::part(bool of_reduced) const {
  return part_of(space, reduced, of_reduced);
}

std::optional<Coverage> coverage_in(const Domain& domain, const Definition& d) {
  if (d.kind == Definition::Kind::Reduce) {
    if (product(d.space) == domain.numel() && product(part_of(d.space, d.reduced, false)) == domain.kept_numel())
      return Coverage::Reduce;
    return std::nullopt;
  }
  const SymExpr n = product(d.sizes);
  if (n == domain.numel()) return Coverage::Full;
  if (domain.reduces() && n == domain.kept_numel()) return Coverage::Kept;
  return std::nullopt;
}

std::optional<Index> index_at(const loops::IndexMath& math, const Domain& domain, const Definition& d,
                              Coverage coverage, const Position& at) {
  if (coverage == Coverage::Full) return carried(math, at, domain.space, d.sizes);
  Index kept = part_of(at, domain.reduced, false);
  const SymList kept_sizes = domain.part(false);
  if (coverage == Coverage::Kept) return carried(math, kept, kept_sizes, d.sizes);
  if (d.space == domain.space && d.reduced == domain.reduced) return at;
  Index own_kept = carried(math, kept, kept_sizes, part_of(d.space, d.reduced, false));
  Index own_reduced =
      carried(math, part_of(at, domain.reduced, true), domain.part(true), part_of(d.space, d.reduced, true));
  Index index;
  std::size_t k = 0, r = 0;
  for (bool reduced : d.reduced) index.push_back(reduced ? own_reduced[r++] : own_kept[k++]);
  return index;
}

Domain domain_of(const LoweredGraph& g, int definition) {
  const Definition& d = g.lowering[definition];
  Domain domain;
  if (d.kind != Definition::Kind::Reduce) {
    domain.space = d.sizes;
    domain.reduced.assign(d.sizes.size(), false);
    return domain;
  }
  domain.space = d.space;
  domain.reduced = d.reduced;
  return domain;
}

Analysis analyse(const LoweredGraph& g, const Stages& stages, Group& group, std::size_t first) {
  Analysis found;
  found.position = found.math.variables("d", group.domain.space);
  loops::ScalarBuilder b;
  Walk(b, g, stages, group, found).run(first);
  for (const loops::ScalarNode& n : b.nodes())
    if (n.op == loops::ScalarOp::Index) found.elements.push_back(n.index);
  return found;
}

}  // namespace partita::schedule

// Greedy fusion: a stage joins the latest group that makes or also reads its operands, if the result is legal, worth it
// and free of cycles. Refusals keep their reason. Then decides what needs memory or a scratch row.
#include "core/schedule/fuse.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "core/base/check.h"

namespace partita::schedule {
namespace {

using loops::Definition;

// The number of groups tried for one stage.
constexpr std::size_t most_candidates = 12;
// The members of a group nest where one reads another: analysis, emission and code generation recurse so deep.
constexpr int deepest_group = 1024;

/// Does the expression divide by or take a remainder of something with the variable?
bool divides(SymExpr e, SymExpr variable) {
  if (e.is_int() || e.kind() == SymKind::Symbol) return false;
  if (e.kind() == SymKind::FloorDiv || e.kind() == SymKind::Mod) return loops::contains(e, variable);
  return std::ranges::any_of(e.args(), [&](SymExpr a) { return divides(a, variable); });
}

class Fuser {
 public:
  Fuser(const LoweredGraph& g, const Stages& stages) : g_(g), s_(stages), group_of_(stages.units.size(), -1) {}

  Fusion run(bool fuse) {
    for (std::size_t u = 0; u < s_.units.size(); ++u) {
      int unit = static_cast<int>(u);
      bool joined = false;
      if (fuse && s_.units[u].kind == SchedulerNode::Kind::Stage)
        for (std::size_t tried = 0; const int candidate : candidates(unit)) {
          const std::optional<Apart> why = tried++ < most_candidates ? join(unit, candidate) : Apart::Many;
          if ((joined = !why)) break;
          refused_.push_back({unit, candidate, *why});
        }
      if (!joined) alone(unit);
    }
    return ordered();
  }

 private:
  const SchedulerNode& unit(int u) const { return s_.units[static_cast<std::size_t>(u)]; }

  std::vector<int> waits_for(int u) const {
    std::vector<int> list(unit(u).needs.begin(), unit(u).needs.end());
    list.insert(list.end(), unit(u).after.begin(), unit(u).after.end());
    return list;
  }

  /// The groups that make what the unit reads, and the latest that also read it, latest first.
  std::vector<int> candidates(int u) const {
    std::set<int> found;
    const auto siblings = [&](const std::map<int, std::set<int>>& readers, int of) {
      const auto it = readers.find(of);
      if (it == readers.end()) return;
      std::size_t left = 2 * most_candidates;  // a value that many groups read must not make each look at all others
      for (auto group = it->second.rbegin(); group != it->second.rend() && left-- > 0; ++group) found.insert(*group);
    };
    for (int need : unit(u).needs) {
      found.insert(group_of_[static_cast<std::size_t>(need)]);
      siblings(readers_, need);
    }
    for (int memory : unit(u).reads) siblings(input_readers_, memory);
    std::vector<int> list(found.rbegin(), found.rend());
    std::erase_if(list, [&](int c) { return groups_[static_cast<std::size_t>(c)].members.empty(); });
    return list;
  }

  /// Must one of the groups run after `to`? `open` are those to look at, and is used up.
  bool depends(std::vector<int>& open, int to) {
    seen_.resize(groups_.size());
    ++search_;
    while (!open.empty()) {
      const int from = open.back();
      open.pop_back();
      if (from == to) return true;
      if (height_[static_cast<std::size_t>(from)] <= height_[static_cast<std::size_t>(to)]) continue;
      if (std::exchange(seen_[static_cast<std::size_t>(from)], search_) == search_) continue;
      for (int u : groups_[static_cast<std::size_t>(from)].units)
        for (const std::set<int>* before : {&unit(u).needs, &unit(u).after})
          for (int b : *before)
            if (const int next = group_of_[static_cast<std::size_t>(b)]; next != from) open.push_back(next);
    }
    return false;
  }

  /// Notes that the unit is part of the group now.
  void note_unit(int u, int group) {
    group_of_[static_cast<std::size_t>(u)] = group;
    height_.resize(groups_.size());
    waiting_.resize(groups_.size());
    for (const int before : waits_for(u)) {
      const int of = group_of_[static_cast<std::size_t>(before)];
      if (of == group) continue;
      std::vector<int>& waiting = waiting_[static_cast<std::size_t>(of)];
      if (waiting.empty() || waiting.back() != group) waiting.push_back(group);
      raise(group, height_[static_cast<std::size_t>(of)] + 1);
    }
    for (int need : unit(u).needs) readers_[need].insert(group);
    for (int memory : unit(u).reads) input_readers_[memory].insert(group);
  }

  /// Raises the group to a height, and the groups that must run after it above that. The lowest are raised first, so
  /// each is raised once.
  void raise(int group, int height) {
    std::map<std::pair<int, int>, int> open;  // height and group -> the height that it needs
    const auto need = [&](int which, int least) {
      const int now = height_[static_cast<std::size_t>(which)];
      if (now >= least) return;
      int& most = open[{now, which}];
      most = std::max(most, least);
    };
    need(group, height);
    while (!open.empty()) {
      const auto [at, least] = *open.begin();
      open.erase(open.begin());
      height_[static_cast<std::size_t>(at.second)] = least;
      for (const int later : waiting_[static_cast<std::size_t>(at.second)]) need(later, least + 1);
    }
  }

  void alone(int u) {
    Group group;
    group.units.insert(u);
    if (unit(u).kind == SchedulerNode::Kind::Stage) {
      group.domain = domain_of(g_, unit(u).id);
      group.members.push_back(
          {unit(u).id, *coverage_in(group.domain, g_.lowering[unit(u).id]), 0, stored(unit(u).id), false});
      if (group.domain.reduces()) settle(group);
    }
    groups_.push_back(std::move(group));
    streams_.emplace_back();
    note_unit(u, static_cast<int>(groups_.size()) - 1);
  }

  bool stored(int definition) const { return s_.stored[static_cast<std::size_t>(definition)]; }

  /// Analyses the group, and chooses between a row-wise and a column-wise nest by the dims along which most loads run.
  Analysis settle(Group& group) const {
    Analysis found = analyse(g_, s_, group);
    int along_kept = 0, along_reduced = 0;
    for (SymExpr e : found.elements)
      for (std::size_t d = 0; d < found.position.size(); ++d)
        if (!group.domain.space[d].is(1) && found.math.factor(e, found.position[d]) == 1)
          ++(group.domain.reduced[d] ? along_reduced : along_kept);
    group.domain.by_columns = along_kept > along_reduced && !group.domain.kept_numel().is(0);
    return found;
  }

  /// Nullopt when the unit is now part of the group.
  std::optional<Apart> join(int u, int candidate) {
    Group& group = groups_[static_cast<std::size_t>(candidate)];
    const int id = unit(u).id;
    const Definition& d = g_.lowering[id];
    bool linked = false;
    std::vector<int> others;
    for (int before : waits_for(u)) {
      const int of = group_of_[static_cast<std::size_t>(before)];
      linked |= of == candidate;
      if (of != candidate) others.push_back(of);
    }
    if (depends(others, candidate)) return Apart::Order;
    const bool anew = d.kind == Definition::Kind::Reduce && !group.domain.reduces();
    const Domain domain = anew ? domain_of(g_, id) : group.domain;
    const auto coverage = coverage_in(domain, d);
    if (!coverage) return Apart::Space;
    int depth = s_.depth[static_cast<std::size_t>(id)];
    for (const Member& m : group.members) {
      if (anew && !coverage_in(domain, g_.lowering[m.definition])) return Apart::Space;
      depth += s_.depth[static_cast<std::size_t>(m.definition)];
    }
    if (depth > deepest_group) return Apart::Deep;

    Group old = anew ? group : Group();
    // In a domain that stays, only the new member is looked at: members do not depend on later ones.
    const std::size_t first = anew || group.members.size() == 1 ? 0 : group.members.size();
    group.domain = domain;
    if (anew)
      for (Member& m : group.members) m.coverage = *coverage_in(domain, g_.lowering[m.definition]);
    group.units.insert(u);
    group.members.push_back({id, *coverage, 0, stored(id), false});
    Analysis found = anew ? settle(group) : analyse(g_, s_, group, first);
    if (first > 0)
      found.streams.insert(streams_[static_cast<std::size_t>(candidate)].begin(),
                           streams_[static_cast<std::size_t>(candidate)].end());
    const auto overwrites = [&](const Member& m) { return g_.destination.contains(m.definition); };
    std::optional<Apart> why = found.legal ? unworthy(group, found, first, linked) : Apart::Incomplete;
    if (!why && std::ranges::any_of(group.members, overwrites) &&
        !overwrites_safely(group, first > 0 ? analyse(g_, s_, group) : found))
      why = Apart::Overwrite;
    if (!why) {
      streams_[static_cast<std::size_t>(candidate)] = std::move(found.streams);
      note_unit(u, candidate);
    } else if (anew) {
      group = std::move(old);
    } else {
      group.units.erase(u);
      group.members.pop_back();
    }
    return why;
  }

  /// Why the group is not worth it, if it is not. The members before `first` have been found worth it.
  std::optional<Apart> unworthy(const Group& group, const Analysis& found, std::size_t first, bool linked) const {
    const Domain& domain = group.domain;
    if (!linked && found.streams.empty()) return Apart::Unrelated;
    std::set<int> memory = found.streams;
    for (const Member& m : group.members)
      if (m.stored) memory.insert(m.definition);
    if (memory.size() > g_.target().kernel_streams) return Apart::Streams;
    // Loads along the innermost dim must stay strided. An index with a division would make them gathers.
    std::size_t inner = found.position.size();
    while (inner > 0 && domain.space[inner - 1].is(1)) --inner;
    if (inner > 0 && group.members.size() > 1 &&
        std::ranges::any_of(found.elements, [&](SymExpr e) { return divides(e, found.position[inner - 1]); }))
      return Apart::Gather;
    for (std::size_t i = first; i < group.members.size(); ++i) {
      if (group.members[i].coverage != Coverage::Full || group.members[i].level == 0) continue;
      const bool little = g_.lowering.hint(domain.numel()) <= g_.target().little_work;
      if (domain.by_columns && little) return std::nullopt;
      if (domain.by_columns) return Apart::Columns;
      if (g_.lowering.hint(domain.kept_numel()) < g_.target().few_rows && !little) return Apart::Rows;
    }
    return std::nullopt;
  }

  /// Where a member is computed: itself, and again by members that read it, unless they read its result from memory.
  struct Computed {
    std::size_t statement = 0;  ///< the last member whose statement computes it
    int pass = 0;               ///< the last pass that does
    int row_pass = -1;          ///< the last pass over a row that does; -1: none
  };
  static std::vector<Computed> computed(const Group& group, const Analysis& found) {
    int last_pass = 0;
    for (const auto& [definition, levels] : found.passes) last_pass = std::max(last_pass, *levels.rbegin());
    std::vector<Computed> out(group.members.size());
    for (std::size_t i = group.members.size(); i-- > 0;) {
      const Member& m = group.members[i];
      out[i] = {i, m.level, m.coverage == Coverage::Kept ? -1 : m.level};
      if (m.coverage == Coverage::Reduce) continue;  // its readers take the result
      if (m.coverage == Coverage::Full) out[i].pass = out[i].row_pass = std::max(m.level, last_pass);
      const auto readers = found.readers.find(i);
      if (readers == found.readers.end()) continue;
      for (std::size_t reader : readers->second) {
        out[i].statement = std::max(out[i].statement, out[reader].statement);
        out[i].pass = std::max(out[i].pass, out[reader].pass);
        out[i].row_pass = std::max(out[i].row_pass, out[reader].row_pass);
      }
    }
    return out;
  }

  /// If a member overwrites an input, may the group read that input? Only the element being written, and not in a later
  /// pass or by a later statement. What there is one of for each row is stored before the pass over the row begins.
  bool overwrites_safely(const Group& group, const Analysis& found) const {
    const std::vector<Computed> at = computed(group, found);
    for (std::size_t i = 0; i < group.members.size(); ++i) {
      const Member& m = group.members[i];
      auto target = g_.destination.find(m.definition);
      if (target == g_.destination.end()) continue;
      auto loads = found.loads.find(target->second);
      if (loads == found.loads.end()) continue;
      auto index = index_at(found.math, group.domain, g_.lowering[m.definition], m.coverage, found.position);
      SymExpr written = found.math.element(*index, layout_of(g_, m.definition).strides);
      for (const InputLoad& load : loads->second) {
        const Computed& c = at[load.member];
        const bool before_row = m.coverage == Coverage::Kept && c.row_pass >= m.level;
        if (load.element != written || c.statement > i || c.pass > m.level || before_row) return false;
      }
    }
    return true;
  }

  Fusion ordered() {
    Fusion out;
    std::vector<std::size_t> place(groups_.size());
    std::vector<int> state(groups_.size(), 0);
    std::function<void(int)> visit = [&](int i) {
      if (state[static_cast<std::size_t>(i)] == 2) return;
      CHECK(state[static_cast<std::size_t>(i)] == 0, "groups depend on each other");
      state[static_cast<std::size_t>(i)] = 1;
      for (int u : groups_[static_cast<std::size_t>(i)].units)
        for (int before : waits_for(u))
          if (int of = group_of_[static_cast<std::size_t>(before)]; of != i) visit(of);
      state[static_cast<std::size_t>(i)] = 2;
      place[static_cast<std::size_t>(i)] = out.groups.size();
      out.groups.push_back(std::move(groups_[static_cast<std::size_t>(i)]));
    };
    for (std::size_t i = 0; i < groups_.size(); ++i) visit(static_cast<int>(i));
    for (const Refused& r : refused_) {
      const std::size_t a = place[static_cast<std::size_t>(group_of_[static_cast<std::size_t>(r.unit)])];
      const std::size_t b = place[static_cast<std::size_t>(r.group)];
      if (a != b) out.apart.try_emplace(std::minmax(a, b), r.why);
    }
    return out;
  }

  /// A unit that could not join a group.
  struct Refused {
    int unit, group;
    Apart why;
  };

  const LoweredGraph& g_;
  const Stages& s_;
  std::vector<Group> groups_;
  std::vector<Refused> refused_;
  std::vector<int> group_of_;
  std::vector<std::set<int>> streams_;     ///< by group: Analysis::streams of its members
  std::vector<int> height_;                ///< by group: above those of all groups that must run before
  std::vector<std::vector<int>> waiting_;  ///< by group: those that must run after, as far as they read what it makes
  std::map<int, std::set<int>> readers_, input_readers_;
  std::vector<int> seen_;  ///< by group: the last search that met it
  int search_ = 0;
};

/// A member that only its own group reads needs no memory. If later passes read it again, it may be worth a scratch
/// row.
void choose_storage(const LoweredGraph& g, const Stages& stages, std::vector<Group>& groups) {
  std::vector<std::vector<int>> readers(stages.units.size());
  for (std::size_t u = 0; u < stages.units.size(); ++u)
    for (int need : stages.units[u].needs) readers[static_cast<std::size_t>(need)].push_back(static_cast<int>(u));
  for (Group& group : groups) {
    for (Member& m : group.members) {
      auto u = static_cast<std::size_t>(stages.unit_of[static_cast<std::size_t>(m.definition)]);
      m.stored = stages.stored[static_cast<std::size_t>(m.definition)] ||
                 std::ranges::any_of(readers[u], [&](int reader) { return !group.units.contains(reader); });
    }
    if (group.members.empty()) continue;
    Analysis found = analyse(g, stages, group);
    CHECK(found.legal, "a group that cannot be computed");
    const loops::Target& t = g.target();
    const std::int64_t row = g.lowering.hint(product(group.domain.part(true)));
    for (Member& m : group.members) {
      auto passes = found.passes.find(m.definition);
      if (m.coverage != Coverage::Full || passes == found.passes.end() || group.domain.by_columns ||
          row > t.scratch_elements)
        continue;
      bool later = *passes->second.rbegin() > m.level;
      auto d = static_cast<std::size_t>(m.definition);
      m.scratch = later && !m.stored && (stages.weight[d] >= t.row_weight || stages.reads[d] >= t.row_reads);
    }
  }
}

}  // namespace

Fusion fuse(const LoweredGraph& g, const Stages& stages, bool fuse) {
  Fusion out = Fuser(g, stages).run(fuse);
  choose_storage(g, stages, out.groups);
  return out;
}

}  // namespace partita::schedule

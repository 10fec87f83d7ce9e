// Goes over the definitions in order: one becomes a stage if it reduces, must be in memory, nests too deep, or costs
// too much to be computed again by its readers. Then lists units with what each waits for.
#include "core/schedule/stages.h"

#include <algorithm>
#include <map>

#include "core/ops/facts/effects.h"
#include "core/ops/record/record.h"

namespace partita::schedule {
namespace {

using loops::Definition;
using Kind = Definition::Kind;

// Definitions that are computed in place nest, here and in everything that reads them, so longer chains are stored in
// between.
constexpr int deepest = 256;

class Finder {
 public:
  explicit Finder(const LoweredGraph& g) : g_(g), l_(g.lowering), readers_(static_cast<std::size_t>(l_.size())) {
    auto n = static_cast<std::size_t>(l_.size());
    s_.live.assign(n, false);
    s_.stage.assign(n, false);
    s_.stored.assign(n, false);
    s_.unit_of.assign(n, -1);
    s_.weight.assign(n, 0);
    s_.reads.assign(n, 0);
    s_.depth.assign(n, 0);
    leaves_.resize(n);
  }

  Stages run() {
    roots();
    find_live();
    for (int id = 0; id < l_.size(); ++id)
      if (live(id)) decide(id);
    make_units();
    return std::move(s_);
  }

 private:
  bool live(int id) const { return s_.live[static_cast<std::size_t>(id)]; }
  bool is_stage(int id) const { return s_.stage[static_cast<std::size_t>(id)]; }

  void store(int id) {
    s_.live[static_cast<std::size_t>(id)] = true;
    s_.stored[static_cast<std::size_t>(id)] = true;
  }

  void roots() {
    for (const Arg& out : g_.graph->outputs())
      if (const Node* n = out.node(); n && g_.values.contains(n)) store(output_view(g_, g_.value(n)).base);
    for (const ExternNode& e : g_.externs)
      for_each_tensor(g_, e, [&](Node* n) { store(argument_view(g_, e, g_.value(n)).base); });
    for (const auto& [id, target] : g_.destination) {
      store(id);
      // The value gets a unit of its own, so that all readers of the input can run between it and the overwriting.
      // Fusion joins the two where that is safe.
      int value = l_[id].operands.front().id;
      while (l_[value].kind == Kind::Map && l_[value].is_view) value = l_[value].operands.front().id;
      s_.stage[static_cast<std::size_t>(value)] = l_[value].kind == Kind::Map || l_[value].kind == Kind::Reduce;
    }
  }

  void find_live() {
    for (int id = l_.size() - 1; id >= 0; --id) {
      const Definition& d = l_[id];
      if (d.kind == Kind::Writes && live(id)) s_.stored[static_cast<std::size_t>(id)] = true;
      if (!live(id)) continue;
      std::set<int> operands;
      for (const auto& o : d.operands) operands.insert(o.id);
      for (int o : operands) {
        s_.live[static_cast<std::size_t>(o)] = true;
        // A view's readers read the viewed tensor.
        if (d.kind == Kind::Map && d.is_view && !s_.stored[static_cast<std::size_t>(id)])
          readers_[static_cast<std::size_t>(o)].insert(readers_[static_cast<std::size_t>(id)].begin(),
                                                       readers_[static_cast<std::size_t>(id)].end());
        else
          readers_[static_cast<std::size_t>(o)].insert(id);
      }
    }
  }

  /// Of the largest of several writes: what one of them reads, others mostly do not.
  std::int64_t iterations(int id) const {
    const Definition& d = l_[id];
    if (d.kind != Kind::Writes) return l_.hint(product(d.kind == Kind::Reduce ? d.space : d.sizes));
    std::int64_t most = 0;
    for (const auto& w : d.writes) most = std::max(most, l_.hint(product(w.sizes)));
    return most;
  }

  /// Computes the work and the reads of one element when it is computed in place.
  void measure(int id) {
    const Definition& d = l_[id];
    auto& leaves = leaves_[static_cast<std::size_t>(id)];
    int weight = d.weight, below = 0;
    for (const auto& o : d.operands) {
      if (is_stage(o.id) || l_[o.id].kind == Kind::Memory || l_[o.id].kind == Kind::Writes) {
        leaves.insert(o.id);
      } else {
        weight += s_.weight[static_cast<std::size_t>(o.id)];
        below = std::max(below, s_.depth[static_cast<std::size_t>(o.id)]);
        leaves.insert(leaves_[static_cast<std::size_t>(o.id)].begin(), leaves_[static_cast<std::size_t>(o.id)].end());
      }
    }
    s_.weight[static_cast<std::size_t>(id)] = std::min(weight, 1 << 20);
    s_.depth[static_cast<std::size_t>(id)] = below + 1;
    s_.reads[static_cast<std::size_t>(id)] = static_cast<int>(leaves.size());
  }

  void decide(int id) {
    const Definition& d = l_[id];
    auto i = static_cast<std::size_t>(id);
    if (d.kind == Kind::Memory || d.kind == Kind::Writes) return;
    measure(id);
    if (s_.stage[i] || s_.stored[i] || d.kind == Kind::Reduce || s_.depth[i] >= deepest) {
      s_.stage[i] = true;
      return;
    }
    if (d.is_view) return;
    const std::set<int>& readers = readers_[i];
    bool repeats = false;
    for (int r : readers) repeats = repeats || iterations(r) > iterations(id);
    int weight = s_.weight[i];
    std::size_t reads = leaves_[i].size();
    // Only inputs as large as the value count: reading each costs as much as reading the kept value would. A row's
    // statistics cost next to nothing.
    const auto streams = static_cast<std::size_t>(std::ranges::count_if(
        leaves_[i], [&](int leaf) { return l_.hint(product(l_[leaf].sizes)) >= iterations(id); }));
    const loops::Target& t = g_.target();
    bool keep = (readers.size() > 1 && (weight > t.repeated_weight || streams > t.repeated_reads)) ||
                (repeats && weight > t.broadcast_weight) || reads > t.value_streams;
    if (keep && weight + static_cast<int>(reads) > 0) s_.stage[i] = true;
  }

  /// Collects the units and input memory that computing `id` in place reads.
  void collect(int id, SchedulerNode& unit, std::set<int>& seen) const {
    if (!seen.insert(id).second) return;
    for (const auto& o : l_[id].operands) reach(o.id, unit, seen);
  }
  void reach(int id, SchedulerNode& unit, std::set<int>& seen) const {
    const Definition& d = l_[id];
    if (d.kind == Kind::Memory) {
      const Source& source = g_.sources.at(id);
      if (source.kind == PlanBuffer::Kind::Temporary)
        unit.needs.insert(extern_unit_[static_cast<std::size_t>(source.index)]);
      else
        unit.reads.insert(id);
    } else if (int u = s_.unit_of[static_cast<std::size_t>(id)]; u >= 0) {
      unit.needs.insert(u);
    } else {
      collect(id, unit, seen);
    }
  }

  void add(SchedulerNode unit) {
    if (unit.kind != SchedulerNode::Kind::Extern)
      s_.unit_of[static_cast<std::size_t>(unit.id)] = static_cast<int>(s_.units.size());
    s_.units.push_back(std::move(unit));
  }

  /// Puts the unit that is added next after the last one of its sort.
  void put_after(int& last, SchedulerNode& unit) const {
    if (last >= 0) unit.after.insert(last);
    last = static_cast<int>(s_.units.size());
  }

  void make_units() {
    extern_unit_.assign(g_.externs.size(), -1);
    std::size_t next = 0;
    auto externs_before = [&](int id) {
      // A call's results are defined directly after what it reads.
      while (next < g_.externs.size()) {
        const ExternNode& e = g_.externs[next];
        int first = l_.size();
        for (int r : e.results)
          if (r >= 0) first = std::min(first, r);
        if (first == l_.size() && id < l_.size()) {
          // A call without results comes after its arguments.
          int last = -1;
          for_each_tensor(g_, e, [&](Node* n) { last = std::max(last, g_.value(n)); });
          if (last >= id) return;
        } else if (first > id) {
          return;
        }
        SchedulerNode unit{SchedulerNode::Kind::Extern, static_cast<int>(next), {}, {}, {}};
        std::set<int> seen;
        for_each_tensor(g_, e, [&](Node* n) { reach(argument_view(g_, e, g_.value(n)).base, unit, seen); });
        extern_unit_[next++] = static_cast<int>(s_.units.size());
        const OpRecord* record = find_record(e.node->op());
        // All draws use one generator, so they keep the graph's order.
        if (e.graph || (record && record->random)) put_after(last_draw_, unit);
        // All ranks of a job start collectives in one order.
        if (e.graph || is_collective(e.node->op())) put_after(last_collective_, unit);
        add(std::move(unit));
      }
    };
    for (int id = 0; id < l_.size(); ++id) {
      externs_before(id);
      if (!live(id)) continue;
      bool writes = l_[id].kind == Kind::Writes;
      if (!writes && !is_stage(id)) continue;
      SchedulerNode unit{writes ? SchedulerNode::Kind::Writes : SchedulerNode::Kind::Stage, id, {}, {}, {}};
      std::set<int> seen;
      collect(id, unit, seen);
      add(std::move(unit));
    }
    externs_before(l_.size());
    // Overwrite an input only after all its readers.
    std::multimap<int, int> writers;  // by input
    for (const auto& [id, target] : g_.destination) writers.emplace(target, s_.unit_of[static_cast<std::size_t>(id)]);
    for (int u = 0; u < static_cast<int>(s_.units.size()) && !writers.empty(); ++u)
      for (const int input : s_.units[static_cast<std::size_t>(u)].reads)
        for (auto [at, end] = writers.equal_range(input); at != end; ++at)
          if (at->second != u) s_.units[static_cast<std::size_t>(at->second)].after.insert(u);
  }

  const LoweredGraph& g_;
  const loops::Lowering& l_;
  Stages s_;
  std::vector<std::set<int>> readers_;
  std::vector<std::set<int>> leaves_;
  std::vector<int> extern_unit_;
  int last_draw_ = -1;        // the last unit that draws random numbers
  int last_collective_ = -1;  // the last one that starts a collective or waits for one
};

}  // namespace

Stages find_stages(const LoweredGraph& g) {
  return Finder(g).run();
}

}  // namespace partita::schedule

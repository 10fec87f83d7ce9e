#pragma once
// What the kernels of groups (emit.cpp) and of writes (emit_writes.cpp) are made with.
#include <algorithm>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/schedule/group.h"

namespace partita::schedule {

/// A kernel, and for each of its buffers (without scratch) the definition whose memory it is.
struct Emitted {
  loops::Kernel kernel;
  std::vector<int> memory;
};

/// Emits the loops of a group of stages.
Emitted emit(const LoweredGraph& g, const Stages& stages, const Group& group);
/// Emits the loops of one write of a Writes definition.
Emitted emit(const LoweredGraph& g, const Stages& stages, int definition, std::size_t write);

/// Some dims of a space, outermost first, that one loop iterates over. Their indices are the digits of its variable.
using Merged = std::vector<std::size_t>;

/// Merges neighbouring dims in `order` that every element expression walks through as one dim: 4 * d0 + d1 with d1 < 4.
std::vector<Merged> merge_dims(const loops::IndexMath& math, const std::vector<SymExpr>& elements,
                               const Position& position, const SymList& space, const std::vector<std::size_t>& order);

/// The product of the sizes of merged dims.
SymExpr extent(const SymList& space, const Merged& dims);
/// Sets these dims of `at` to the digits of a variable.
void place(const loops::IndexMath& math, const SymList& space, const Merged& dims, SymExpr variable, Position& at);

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
inline bool is_gpu(const LoweredGraph& g) {
  return g.target().device == DeviceType::Cuda;
}

/// The mapping of an outermost loop over independent iterations, in a nest of that many elements.
inline Mapping outermost(const LoweredGraph& g, SymExpr elements) {
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

  std::int64_t hint(SymExpr n) const { return g_.lowering.hint(n); }

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
      if (group_->domain.by_columns) return b.load(place, column, tensor.dtype);
      return b.cast(b.input(place, to_.kernel.accumulators[static_cast<std::size_t>(place)].dtype), tensor.dtype);
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

/// Nests `loops`, the outermost first, around `body`.
inline std::vector<Stmt> wrap(std::vector<Loop> loops, std::vector<Stmt> body) {
  for (std::size_t i = loops.size(); i-- > 0;) {
    loops[i].body = std::move(body);
    body.clear();
    body.push_back(std::move(loops[i]));
  }
  return body;
}

inline void append(std::vector<Stmt>& to, std::vector<Stmt> from) {
  std::ranges::move(from, std::back_inserter(to));
}

/// The dims of the outer loops, of which there is one, since a division by a number costs little. Divisions by symbols
/// are avoided by a loop for each of `merged`.
inline std::vector<Merged> outer_loops(const SymList& space, std::vector<Merged> merged) {
  const bool numbers = std::ranges::all_of(space, &SymExpr::is_int);
  Merged all;
  for (const Merged& dims : merged) all.insert(all.end(), dims.begin(), dims.end());
  if (all.empty()) return {};
  return numbers ? std::vector<Merged>{all} : merged;
}

/// Appends a loop for each of `nest`, at whose index the position then is.
inline void add_loops(Emitter& e, const SymList& space, const std::vector<Merged>& nest, Mapping mapping,
                      std::vector<Loop>& loops) {
  for (const Merged& dims : nest) {
    const SymExpr n = extent(space, dims);
    loops.push_back(e.loop(n, n));
    loops.back().mapping = mapping;
    place(e.math, space, dims, SymExpr::symbol(loops.back().var), e.at);
  }
}

/// Loops over what is reduced. Those from `inner` on make partial results, which those before it combine: the rounding
/// error of a running sum grows with its length.
struct ReductionLoops {
  std::vector<Loop> loops;
  std::size_t inner = 0;  ///< 0: there are no partial results
  SymExpr element = 0;    ///< the position among all elements, in the order of the loops
};

/// Makes a loop for each of `nest`, at whose index the position then is. `partial`: for running values that more than
/// so many elements are added to, one of the loops is cut into blocks, or they are divided between two loops. `lanes`:
/// running values among which the elements of the innermost loop are shared out.
inline ReductionLoops reduction_loops(Emitter& e, const SymList& space, const std::vector<Merged>& nest,
                                      Mapping mapping, std::optional<std::int64_t> partial, std::int64_t lanes) {
  std::size_t cut = nest.size();  // the loop of whose iterations `block` make a partial result; 0: each makes one
  std::int64_t block = 0, below = 1;
  for (std::size_t j = nest.size(); partial && j-- > 0 && cut == nest.size();) {
    const std::int64_t shared = j + 1 == nest.size() ? lanes : 1, n = e.hint(extent(space, nest[j]));
    const std::int64_t additions = below * ((n + shared - 1) / shared);
    if (additions > 2 * *partial) {
      cut = j;
      block = below >= *partial ? 0 : (*partial + below - 1) / below * shared;
      const SymExpr whole = extent(space, nest[j]);
      // A block that divides the loop has one length.
      for (std::int64_t b = block; whole.is_int() && b > block / 2; --b)
        if (n % b == 0) {
          block = b;
          break;
        }
    }
    below = additions;
  }
  ReductionLoops out;
  const auto add = [&](SymExpr n, SymExpr most) {
    out.loops.push_back(e.loop(n, most));
    out.loops.back().mapping = mapping;
    return SymExpr::symbol(out.loops.back().var);
  };
  for (std::size_t j = 0; j < nest.size(); ++j) {
    const SymExpr n = extent(space, nest[j]);
    SymExpr at = 0;
    if (j == cut && block > 0) {
      const SymExpr blocks = sym_floordiv(n + (block - 1), block);
      at = add(blocks, blocks) * block;
      out.inner = out.loops.size();
      at = at + add(sym_mod(n, block).is(0) ? SymExpr(block) : sym_min(block, n - at), block);
    } else {
      at = add(n, n);
      if (j == cut) out.inner = out.loops.size();
    }
    place(e.math, space, nest[j], at, e.at);
    out.element = out.element * n + at;
  }
  return out;
}

/// Makes loops over all outer dims, and one over the innermost dims. `statements` gives the body. `flat`: the innermost
/// dims are mapped as the others, and are of one loop with them if sizes are numbers.
std::vector<Stmt> pointwise_nest(Emitter& e, const SymList& space, const std::vector<Merged>& merged, Mapping mapping,
                                 bool vector, bool flat, auto statements) {
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

}  // namespace partita::schedule

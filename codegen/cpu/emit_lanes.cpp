// Decides for each vector loop how long its vectors are, and which rows it asks the memory for ahead of their turn.
#include <algorithm>
#include <ranges>

#include "codegen/cpu/emit_phase.h"
#include "codegen/cpu/kernel_shape.h"

namespace partita::codegen {

using loops::Kernel;
using loops::Loop;
using loops::Reduce;
using loops::ScalarNode;
using loops::ScalarOp;
using loops::Stmt;
using loops::Store;

namespace {

/// What an iteration of a loop computes in lanes.
struct LaneWork {
  int operations = 0;  ///< an elementary function counts as 12
  int functions = 0;   ///< elementary ones
  std::size_t item = 4;
};

void add_value(const Kernel& kernel, const Dependences& deps, unsigned loop, loops::Scalar s, std::set<int>& seen,
               LaneWork& work) {
  if (s.id < 0 || !deps.nodes[static_cast<std::size_t>(s.id)].loops.test(loop) || !seen.insert(s.id).second) return;
  const ScalarNode& n = kernel.scalars[s];
  for (loops::Scalar a : n.args) add_value(kernel, deps, loop, a, seen, work);
  if (n.op == ScalarOp::Index) return;
  if (n.dtype != DType::Int64) work.item = std::max(work.item, itemsize(n.dtype));
  const bool elementary = loops::is_elementary(n.op);
  work.functions += elementary;
  work.operations += elementary ? 12 : 1;
}

void add_work(const Kernel& kernel, const Dependences& deps, unsigned loop, const std::vector<Stmt>& body,
              std::set<int>& seen, LaneWork& work) {
  for (const Stmt& s : body) {
    if (auto* store = std::get_if<Store>(&s)) {
      add_value(kernel, deps, loop, store->value, seen, work);
      add_value(kernel, deps, loop, store->index, seen, work);
    } else if (auto* reduce = std::get_if<Reduce>(&s)) {
      add_value(kernel, deps, loop, reduce->value, seen, work);
      ++work.operations;
    } else if (auto* inner = std::get_if<Loop>(&s)) {
      add_work(kernel, deps, loop, inner->body, seen, work);
    }
  }
}

void add_loads(const Kernel& kernel, loops::Scalar s, std::set<int>& seen, std::set<int>& buffers) {
  if (s.id < 0 || !seen.insert(s.id).second) return;
  const ScalarNode& n = kernel.scalars[s];
  if (n.op == ScalarOp::Load && kernel.buffers[static_cast<std::size_t>(n.slot)].role != loops::Buffer::Role::Scratch)
    buffers.insert(n.slot);
  for (loops::Scalar a : n.args) add_loads(kernel, a, seen, buffers);
}

/// The buffers that the statements of a loop load from, without those of loops in it.
std::set<int> loads(const Kernel& kernel, const Loop& l) {
  std::set<int> seen, buffers;
  for (const Stmt& s : l.body) {
    if (auto* store = std::get_if<Store>(&s)) add_loads(kernel, store->value, seen, buffers);
    if (auto* reduce = std::get_if<Reduce>(&s)) add_loads(kernel, reduce->value, seen, buffers);
  }
  return buffers;
}

}  // namespace

/// Vectors of several registers give independent chains of work. Long bodies use one register, or values would spill;
/// but an elementary function is a chain so long that spilling costs less than waiting.
int PhaseEmitter::choose_lanes(const Loop& l, const loops::Target& target) const {
  LaneWork work;
  std::set<int> seen;
  add_work(kernel_, deps_, static_cast<unsigned>(deps_.loop_number.at(&l)), l.body, seen, work);
  const int base = target.vector_bytes / 4;
  int lanes = base * (work.operations <= 10 || work.functions >= 1 ? 4 : work.operations <= 30 ? 2 : 1);
  if (work.item == 8) lanes = std::max(lanes / 2, base);
  lanes = std::min(lanes, static_cast<int>(max_lanes));
  if (l.extent.is_int()) {
    const std::int64_t n = l.extent.as_int();
    while (lanes > base && n % lanes != 0 && n < 8 * lanes) lanes /= 2;
  }
  return lanes;
}

void PhaseEmitter::choose_lanes(const loops::Target& target) {
  for (const Loop* l : vector_) lanes_of_[l] = choose_lanes(*l, target);
  // Loops that share a running value have it in vectors of one length.
  for (bool changed = true; changed;) {
    changed = false;
    for (int a = 0; a < static_cast<int>(kernel_.accumulators.size()); ++a) {
      int least = max_lanes;
      for (auto& [l, lanes] : lanes_of_)
        if (reduces(*l, a)) least = std::min(least, lanes);
      for (auto& [l, lanes] : lanes_of_) {
        if (!reduces(*l, a) || lanes == least) continue;
        lanes = least;
        changed = true;
      }
    }
  }
}

/// While the processor reads a row from memory for the first of several loops over it, it has little to compute. So the
/// last loop that reads a row asks for the next one. Kernels whose data the caches hold do not wait and need not ask.
void PhaseEmitter::find_next_rows(const std::vector<Stmt>& body, const Loop* rows) {
  if (std::ranges::none_of(kernel_.buffers, [](const loops::Buffer& b) { return b.streamed; })) return;
  std::vector<const Loop*> in_row;
  for (const Stmt& s : body) {
    auto* l = std::get_if<Loop>(&s);
    if (!l) continue;
    if (vector_.contains(l))
      in_row.push_back(l);
    else
      find_next_rows(l->body, l);
  }
  if (!rows || in_row.size() < 2) return;
  std::set<int> asked;
  for (const Loop* l : in_row | std::views::reverse)
    for (int buffer : loads(kernel_, *l)) {
      if (!asked.insert(buffer).second) continue;
      next_row_[l].rows = rows->var;
      next_row_[l].buffers.insert(buffer);
    }
}

}  // namespace partita::codegen

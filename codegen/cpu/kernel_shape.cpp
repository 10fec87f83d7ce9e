#include "codegen/cpu/kernel_shape.h"

#include <algorithm>

#include "codegen/program/index_steps.h"

namespace partita::codegen {

using loops::Kernel;
using loops::Loop;
using loops::ScalarNode;
using loops::ScalarOp;
using loops::Stmt;

namespace {

bool has_atomic_sums(const std::vector<Stmt>& body) {
  return std::ranges::any_of(body, [](const Stmt& s) {
    if (auto* loop = std::get_if<Loop>(&s)) return has_atomic_sums(loop->body);
    auto* store = std::get_if<loops::Store>(&s);
    return store && store->accumulate == loops::Accumulate::Atomic;
  });
}

/// Collects the loads that a value needs, each once.
void collect_loads(const Kernel& kernel, loops::Scalar s, std::set<int>& seen, std::vector<const ScalarNode*>& loads) {
  if (s.id < 0 || !seen.insert(s.id).second) return;
  const ScalarNode& n = kernel.scalars[s];
  if (n.op == ScalarOp::Load) loads.push_back(&n);
  for (loops::Scalar a : n.args) collect_loads(kernel, a, seen, loads);
}

/// The numbers of accesses under a loop whose step along var is 0 or 1 (near) or another (far).
struct Steps {
  int near = 0, far = 0;
};
Steps count_steps(const Kernel& kernel, const Loop& loop, const std::string& var) {
  std::set<int> seen;
  std::vector<const ScalarNode*> loads;
  Steps steps;
  auto count = [&](const SymExpr& e) {
    auto step = lane_step(e, var, 16);
    (step && (step->is(0) || step->is(1)) ? steps.near : steps.far)++;
  };
  const auto walk = [&](const auto& self, const std::vector<Stmt>& body) -> void {
    for (const Stmt& s : body) {
      if (auto* store = std::get_if<loops::Store>(&s)) {
        collect_loads(kernel, store->value, seen, loads);
        collect_loads(kernel, store->index, seen, loads);
        if (store->index.id >= 0)
          ++steps.far;
        else
          count(store->element);
      } else if (auto* reduce = std::get_if<loops::Reduce>(&s)) {
        collect_loads(kernel, reduce->value, seen, loads);
      } else if (auto* inner = std::get_if<Loop>(&s)) {
        self(self, inner->body);
      }
    }
  };
  walk(walk, loop.body);
  for (const ScalarNode* n : loads) {
    if (n->args[0].id >= 0)
      ++steps.far;
    else
      count(n->index);
  }
  return steps;
}

void choose_vector_loops(const Kernel& kernel, const Loop& loop, bool may_turn, std::set<const Loop*>& chosen) {
  if (loop.vector) {
    chosen.insert(&loop);
    return;
  }
  bool interchange = false;
  if (may_turn && loop.mapping == loops::Mapping::Thread && loop.accumulators.empty() &&
      (!loop.extent.is_int() || loop.extent.as_int() >= 8)) {
    for (const Stmt& s : loop.body) {
      auto* inner = std::get_if<Loop>(&s);
      if (!inner || !inner->vector) continue;
      interchange = interchange || (count_steps(kernel, *inner, inner->var).far > 0);
    }
    interchange = interchange && count_steps(kernel, loop, loop.var).far == 0;
  }
  if (interchange) {
    chosen.insert(&loop);
    return;
  }
  for (const Stmt& s : loop.body)
    if (auto* inner = std::get_if<Loop>(&s)) choose_vector_loops(kernel, *inner, may_turn, chosen);
}

PhaseShape parallel_phase(const Stmt& s, const std::set<const Loop*>& vector) {
  PhaseShape phase;
  phase.body = {&s};
  // A vector loop is not flattened with others, because its lanes must be neighbours. A group's loop is not either.
  const Stmt* stmt = &s;
  for (const Loop* loop = std::get_if<Loop>(stmt); loop && loop->parallel(); loop = std::get_if<Loop>(stmt)) {
    if (vector.contains(loop) && !phase.parallel.empty()) break;
    phase.parallel.push_back(loop);
    if (vector.contains(loop) || loop->mapping == loops::Mapping::Block || loop->body.size() != 1) break;
    stmt = &loop->body[0];
  }
  phase.serial = has_atomic_sums(std::get<Loop>(s).body);
  return phase;
}

}  // namespace

std::vector<PhaseShape> phase_shapes(const Kernel& kernel) {
  const std::set<const Loop*> vector = vector_loops(kernel);
  std::vector<PhaseShape> phases;
  auto begin = kernel.body.begin();
  while (begin != kernel.body.end()) {
    const auto end =
        std::find_if(begin, kernel.body.end(), [](const Stmt& s) { return std::holds_alternative<loops::Barrier>(s); });
    const bool split = std::all_of(begin, end, [](const Stmt& s) {
      auto* loop = std::get_if<Loop>(&s);
      return loop && loop->parallel();
    });
    PhaseShape whole;
    for (auto s = begin; s != end; ++s) {
      if (split)
        phases.push_back(parallel_phase(*s, vector));
      else
        whole.body.push_back(&*s);
    }
    if (!whole.body.empty()) phases.push_back(std::move(whole));
    begin = end == kernel.body.end() ? end : end + 1;
  }
  return phases;
}

std::set<const Loop*> vector_loops(const Kernel& kernel) {
  std::set<const Loop*> chosen;
  bool has_scratch = std::any_of(kernel.buffers.begin(), kernel.buffers.end(),
                                 [](const loops::Buffer& b) { return b.role == loops::Buffer::Role::Scratch; });
  for (const Stmt& s : kernel.body)
    if (auto* loop = std::get_if<Loop>(&s)) choose_vector_loops(kernel, *loop, !has_scratch, chosen);
  return chosen;
}

KernelEntry kernel_entry(const Kernel& kernel, const std::string& symbol) {
  KernelEntry entry;
  std::set<const Loop*> vector = vector_loops(kernel);
  int number = 0;
  for (const PhaseShape& shape : phase_shapes(kernel)) {
    Phase phase;
    phase.symbol = symbol + "_" + std::to_string(number++);
    phase.parallel = !shape.parallel.empty();
    for (const Loop* loop : shape.parallel) phase.iterations = phase.iterations * loop->extent;
    if (phase.parallel && vector.contains(shape.parallel[0])) phase.alignment = max_lanes;
    if (shape.serial) phase.parallel = false;
    entry.phases.push_back(std::move(phase));
  }
  for (const loops::Buffer& b : kernel.buffers) {
    if (b.role != loops::Buffer::Role::Scratch) continue;
    entry.scratch.push_back(b.elements);
    entry.scratch_item.push_back(itemsize(b.dtype));
  }
  return entry;
}

}  // namespace partita::codegen

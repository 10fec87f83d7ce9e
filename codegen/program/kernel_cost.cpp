#include "codegen/program/kernel_cost.h"

#include <bit>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace partita::codegen {
namespace {

using loops::Kernel;
using loops::Loop;
using loops::Scalar;
using loops::ScalarNode;
using loops::ScalarOp;
using loops::Stmt;

double node_cost(const ScalarNode& n) {
  if (n.op == ScalarOp::Const || n.op == ScalarOp::Index || n.op == ScalarOp::Input) return 0;
  return loops::is_elementary(n.op) ? 12 : 1;
}

double value_cost(const Kernel& kernel, Scalar s, std::set<int>& seen) {
  if (s.id < 0 || !seen.insert(s.id).second) return 0;
  const ScalarNode& n = kernel.scalars[s];
  double cost = node_cost(n);
  for (Scalar a : n.args) cost += value_cost(kernel, a, seen);
  return cost;
}

void add_work(const Kernel& kernel, const std::vector<Stmt>& body, const SymList& around,
              std::vector<ProgramKernel::Work>& work) {
  double cost = 0;
  std::set<int> seen;
  for (const Stmt& s : body) {
    if (auto* store = std::get_if<loops::Store>(&s)) {
      cost += 1 + value_cost(kernel, store->value, seen) + value_cost(kernel, store->index, seen);
    } else if (auto* reduce = std::get_if<loops::Reduce>(&s)) {
      cost += 1 + value_cost(kernel, reduce->value, seen);
    } else if (auto* loop = std::get_if<Loop>(&s)) {
      SymList extents = around;
      extents.push_back(loop->extent);
      add_work(kernel, loop->body, extents, work);
    }
  }
  if (cost > 0) work.push_back({cost, around});
}

void write_body(const std::vector<Stmt>& body, std::string& text) {
  for (const Stmt& s : body) {
    if (auto* store = std::get_if<loops::Store>(&s)) {
      text += fmt::format("s{} {} {} {} {}\n", store->buffer, store->element.str(), store->index.id, store->value.id,
                          int(store->accumulate));
    } else if (auto* reduce = std::get_if<loops::Reduce>(&s)) {
      text += fmt::format("r{} {}\n", reduce->accumulator, reduce->value.id);
    } else if (std::holds_alternative<loops::Barrier>(s)) {
      text += "|\n";
    } else {
      const Loop& l = std::get<Loop>(s);
      text += fmt::format("l{} {} {} {} {}\n{{\n", l.var, l.extent.str(), int(l.mapping), l.vector,
                          fmt::join(l.accumulators, " "));
      write_body(l.body, text);
      text += "}\n";
    }
  }
}

}  // namespace

std::vector<ProgramKernel::Work> kernel_work(const Kernel& kernel) {
  std::vector<ProgramKernel::Work> work;
  add_work(kernel, kernel.body, {}, work);
  return work;
}

std::string kernel_text(const Kernel& kernel) {
  std::string text;
  for (const loops::Buffer& b : kernel.buffers)
    text += fmt::format("b{} {} {} {} {}\n", int(b.dtype), int(b.role), int(b.scope), b.elements.str(), b.streamed);
  for (const loops::Accumulator& a : kernel.accumulators)
    text += fmt::format("a{} {} {}\n", int(a.combine), int(a.dtype), a.start);
  for (const ScalarNode& n : kernel.scalars.nodes())
    text += fmt::format("{} {} {} {} {} {} {:x} {} {}\n", int(n.op), int(n.dtype), n.args[0].id, n.args[1].id,
                        n.args[2].id, n.slot, std::bit_cast<std::uint64_t>(n.real), n.integer, n.index.str());
  for (const loops::Bound& b : kernel.scalars.bounds()) text += fmt::format("w{}\n", b.size.str());
  write_body(kernel.body, text);
  return text;
}

}  // namespace partita::codegen

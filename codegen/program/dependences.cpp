#include "codegen/program/dependences.h"

namespace partita::codegen {

using llvm::SmallBitVector;
using loops::Kernel;
using loops::Loop;
using loops::Scalar;
using loops::ScalarNode;
using loops::ScalarOp;
using loops::Stmt;
using loops::Store;

Dependences::Dependences(const Kernel& kernel) {
  accumulator_loops.resize(kernel.accumulators.size());
  std::vector<int> around;
  number(kernel.body, around, kernel);
  auto loops = static_cast<unsigned>(loop_stores.size());
  auto buffers = static_cast<unsigned>(kernel.buffers.size());
  auto accumulators = static_cast<unsigned>(kernel.accumulators.size());
  SmallBitVector written(buffers);
  for (const SmallBitVector& s : loop_stores) written |= s;
  for (const ScalarNode& n : kernel.scalars.nodes()) {
    Node d{SmallBitVector(loops), SmallBitVector(buffers), SmallBitVector(accumulators)};
    for (const std::string& name : n.index.symbols())
      if (auto it = loop_of_var.find(name); it != loop_of_var.end()) d.loops.set(static_cast<unsigned>(it->second));
    if (n.op == ScalarOp::Load && written.test(static_cast<unsigned>(n.slot)))
      d.buffers.set(static_cast<unsigned>(n.slot));
    if (n.op == ScalarOp::Input) {
      d.accumulators.set(static_cast<unsigned>(n.slot));
      SmallBitVector home = accumulator_loops[static_cast<std::size_t>(n.slot)];
      home.resize(loops);
      d.loops |= home;
    }
    for (Scalar a : n.args) {
      if (a.id < 0) continue;
      const Node& arg = nodes[static_cast<std::size_t>(a.id)];
      d.loops |= arg.loops;
      d.buffers |= arg.buffers;
      d.accumulators |= arg.accumulators;
    }
    nodes.push_back(std::move(d));
  }
}

void Dependences::number(const std::vector<Stmt>& body, std::vector<int>& around, const Kernel& kernel) {
  for (const Stmt& s : body) {
    if (auto* store = std::get_if<Store>(&s)) {
      for (int l : around) loop_stores[static_cast<std::size_t>(l)].set(static_cast<unsigned>(store->buffer));
    } else if (auto* loop = std::get_if<Loop>(&s)) {
      int id = static_cast<int>(loop_stores.size());
      loop_of_var[loop->var] = id;
      loop_number[loop] = id;
      loop_stores.emplace_back(static_cast<unsigned>(kernel.buffers.size()));
      for (int a : loop->accumulators) {
        SmallBitVector& home = accumulator_loops[static_cast<std::size_t>(a)];
        home.resize(static_cast<unsigned>(id) + 1);
        for (int l : around) home.set(static_cast<unsigned>(l));
      }
      around.push_back(id);
      number(loop->body, around, kernel);
      around.pop_back();
    }
  }
}

}  // namespace partita::codegen

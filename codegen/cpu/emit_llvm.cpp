// Emits a phase of a kernel as an LLVM function: arguments, scratch, and loops that are unrolled, scalar, or vectors
// with a masked tail. Each loop opens a scope; values are computed before the loops that they do not depend on.
#include "codegen/cpu/emit_llvm.h"

#include <algorithm>

#include "codegen/cpu/emit_phase.h"
#include "core/base/check.h"
#include "core/base/mapped.h"

namespace partita::codegen {

using llvm::BasicBlock;
using llvm::SmallBitVector;
using llvm::Value;
using loops::Kernel;
using loops::Loop;
using loops::Reduce;
using loops::Stmt;
using loops::Store;

void PhaseEmitter::emit(const PhaseShape& shape, const std::string& symbol) {
  llvm::Type* ptr = b_.getPtrTy();
  llvm::Type* i64 = b_.getInt64Ty();
  auto* type = llvm::FunctionType::get(b_.getVoidTy(), {ptr, ptr, ptr, i64, i64}, false);
  function_ = llvm::Function::Create(type, llvm::Function::ExternalLinkage, symbol, module_);
  function_->setDoesNotThrow();
  if (lines_) begin_lines();
  BasicBlock* entry = block("entry");
  BasicBlock* start = block("start");
  b_.SetInsertPoint(entry);
  entry_end_ = b_.CreateBr(start);
  b_.SetInsertPoint(entry_end_);

  for (std::size_t i = 0; i < symbols_.size(); ++i)
    variables_[symbols_[i]] = b_.CreateLoad(i64, b_.CreateConstGEP1_64(i64, function_->getArg(1), i), symbols_[i]);
  pointers_.clear();
  arguments_ = 0;
  Value* scratch = function_->getArg(2);
  for (const loops::Buffer& buffer : kernel_.buffers) {
    if (buffer.role != loops::Buffer::Role::Scratch) {
      pointers_.push_back(
          b_.CreateLoad(ptr, b_.CreateConstGEP1_64(ptr, function_->getArg(0), arguments_++), buffer.name));
      continue;
    }
    pointers_.push_back(scratch);
    Value* bytes = b_.CreateMul(sym(buffer.elements), b_.getInt64(itemsize(buffer.dtype)));
    bytes = b_.CreateAnd(b_.CreateAdd(bytes, b_.getInt64(63)), b_.getInt64(~std::uint64_t{63}));
    scratch = b_.CreateGEP(b_.getInt8Ty(), scratch, bytes);
  }

  b_.SetInsertPoint(start);
  running_.assign(kernel_.accumulators.size(), {});
  scopes_.clear();
  scopes_.push_back({nullptr, SmallBitVector(static_cast<unsigned>(deps_.loop_stores.size())), {}});
  if (shape.parallel.empty()) {
    for (const Stmt* s : shape.body) statement(*s);
  } else {
    range(shape.parallel, function_->getArg(3), function_->getArg(4));
  }
  report_faults();
  // Other threads may see stores that bypass the caches in any order; the fence orders them.
  if (streams_) b_.CreateFence(llvm::AtomicOrdering::SequentiallyConsistent);
  b_.CreateRetVoid();
}

void PhaseEmitter::begin_lines() {
  llvm::DIFile* file = lines_->createFile("graph", "");
  llvm::DISubroutineType* type = lines_->createSubroutineType(lines_->getOrCreateTypeArray({}));
  marked_function_ = lines_->createFunction(file, function_->getName(), "", file, 1, type, 1, llvm::DINode::FlagZero,
                                            llvm::DISubprogram::SPFlagDefinition);
  function_->setSubprogram(marked_function_);
}

PhaseEmitter::Marked::Marked(PhaseEmitter& emitter, loops::Scalar s)
    : b_(emitter.b_), around_(b_.getCurrentDebugLocation()) {
  if (!emitter.marked_function_) return;
  const int source = emitter.kernel_.scalars.sources()[static_cast<std::size_t>(s.id)];
  llvm::DILocation* at = nullptr;
  if (source >= 0)
    at = llvm::DILocation::get(b_.getContext(), static_cast<unsigned>(source) + 1, 0, emitter.marked_function_);
  b_.SetCurrentDebugLocation(at);
}

void PhaseEmitter::statements(const std::vector<Stmt>& body) {
  for (const Stmt& s : body) statement(s);
}

void PhaseEmitter::statement(const Stmt& stmt) {
  if (auto* s = std::get_if<Store>(&stmt)) {
    const Marked marked(*this, s->value);
    return store(*s);
  }
  if (auto* r = std::get_if<Reduce>(&stmt)) {
    const Marked marked(*this, r->value);
    return reduce(*r);
  }
  // Barriers of the kernel end phases. A group is one thread here, so barriers of a group do nothing.
  if (std::holds_alternative<loops::Barrier>(stmt)) return;
  loop(std::get<Loop>(stmt));
}

void PhaseEmitter::loop(const Loop& l) {
  start(l);
  range({&l}, b_.getInt64(0), sym(l.extent));
  complete(l);
}

void PhaseEmitter::range(const std::vector<const Loop*>& nest, Value* begin, Value* end) {
  // Values are computed before the loops that they do not depend on. What a loop of extent 0 reads may have no memory.
  if (std::ranges::any_of(nest, [](const Loop* l) { return l->extent.is(0); })) return;
  for (const Loop* l : nest) {
    auto extent = range_of(l->extent);
    if (extent) extents_[l->var] = extent->high;
  }
  if (vector_.contains(nest[0]))
    vector_range(*nest[0], begin, end);
  else if (nest[0]->mapping == loops::Mapping::Unroll)
    unrolled(*nest[0]);
  else
    scalar_range(nest, begin, end);
}

void PhaseEmitter::push_scope(llvm::Instruction* before, const std::vector<const Loop*>& nest) {
  Scope scope{before, SmallBitVector(static_cast<unsigned>(deps_.loop_stores.size())), {}};
  for (const Loop* l : nest) scope.loops.set(static_cast<unsigned>(deps_.loop_number.at(l)));
  scopes_.push_back(std::move(scope));
}

std::size_t PhaseEmitter::depth(const Dependences::Node& d) const {
  for (std::size_t i = scopes_.size(); i-- > 1;) {
    if (scopes_[i].loops.anyCommon(d.loops)) return i;
    if (d.buffers.none()) continue;
    for (int l : scopes_[i].loops.set_bits())
      if (deps_.loop_stores[static_cast<std::size_t>(l)].anyCommon(d.buffers)) return i;
  }
  return 0;
}

void PhaseEmitter::unrolled(const Loop& l) {
  for (std::int64_t i = 0; i < l.extent.as_int(); ++i) {
    BasicBlock* turn = block("turn");
    llvm::Instruction* jump = b_.CreateBr(turn);
    b_.SetInsertPoint(turn);
    variables_[l.var] = b_.getInt64(static_cast<std::uint64_t>(i));
    push_scope(jump, {&l});
    statements(l.body);
    scopes_.pop_back();
  }
}

void PhaseEmitter::scalar_range(const std::vector<const Loop*>& nest, Value* begin, Value* end) {
  BasicBlock* before = b_.GetInsertBlock();
  BasicBlock* head = block("loop");
  BasicBlock* body = block("body");
  BasicBlock* after = block("after");
  const auto sizes = mapped(nest, [&](const Loop* l) { return sym(l->extent); });
  llvm::Instruction* jump = b_.CreateBr(head);
  b_.SetInsertPoint(head);
  auto* i = b_.CreatePHI(b_.getInt64Ty(), 2, nest.back()->var);
  i->addIncoming(begin, before);
  // Sizes that are no numbers would cost divisions in each turn: the variables of all loops are counted up.
  const bool counted = std::ranges::any_of(sizes, [](Value* size) { return !llvm::isa<llvm::ConstantInt>(size); });
  std::vector<llvm::PHINode*> counters;
  if (counted) {
    for (std::size_t k = 0; k < nest.size(); ++k) counters.push_back(b_.CreatePHI(b_.getInt64Ty(), 2, nest[k]->var));
    b_.SetInsertPoint(jump);
    Value* rest = begin;
    for (std::size_t k = nest.size(); k-- > 0;) {
      counters[k]->addIncoming(k == 0 ? rest : b_.CreateURem(rest, sizes[k]), before);
      if (k > 0) rest = b_.CreateUDiv(rest, sizes[k]);
    }
    b_.SetInsertPoint(head);
  }
  b_.CreateCondBr(b_.CreateICmpSLT(i, end), body, after);
  b_.SetInsertPoint(body);
  Value* rest = i;
  for (std::size_t k = nest.size(); k-- > 0;) {
    variables_[nest[k]->var] = counted ? counters[k] : k == 0 ? rest : b_.CreateURem(rest, sizes[k]);
    if (k > 0 && !counted) rest = b_.CreateUDiv(rest, sizes[k]);
  }
  push_scope(jump, nest);
  statements(nest.back()->body);
  scopes_.pop_back();
  i->addIncoming(b_.CreateAdd(i, b_.getInt64(1)), b_.GetInsertBlock());
  Value* carry = b_.getInt64(1);
  for (std::size_t k = counters.size(); k-- > 0;) {
    Value* next = b_.CreateAdd(counters[k], carry);
    Value* wraps = k > 0 ? b_.CreateICmpEQ(next, sizes[k]) : b_.getFalse();
    counters[k]->addIncoming(b_.CreateSelect(wraps, b_.getInt64(0), next), b_.GetInsertBlock());
    carry = b_.CreateZExt(wraps, b_.getInt64Ty());
  }
  b_.CreateBr(head);
  b_.SetInsertPoint(after);
}

void PhaseEmitter::vector_range(const Loop& l, Value* begin, Value* end) {
  CHECK(!active_, "a vector loop within a vector loop");
  lanes_ = lanes_of_.at(&l);
  const auto next = next_row_.find(&l);
  ahead_ = next == next_row_.end() ? nullptr : &next->second;
  bool whole = l.extent.is_int() && l.extent.as_int() % lanes_ == 0;
  bool short_loop = l.extent.is_int() && l.extent.as_int() < lanes_;
  Value* reached = begin;
  if (!short_loop) {
    BasicBlock* before = b_.GetInsertBlock();
    BasicBlock* head = block("vector");
    BasicBlock* body = block("lanes");
    BasicBlock* after = block("rest");
    Value* last = b_.CreateSub(end, b_.getInt64(width()));
    llvm::Instruction* jump = b_.CreateBr(head);
    b_.SetInsertPoint(head);
    auto* v = b_.CreatePHI(b_.getInt64Ty(), 2, l.var);
    v->addIncoming(begin, before);
    b_.CreateCondBr(b_.CreateICmpSLE(v, last), body, after);
    b_.SetInsertPoint(body);
    variables_[l.var] = v;
    active_ = Lanes{l.var, nullptr, b_.getInt64(width())};
    push_scope(jump, {&l});
    statements(l.body);
    scopes_.pop_back();
    active_.reset();
    v->addIncoming(b_.CreateAdd(v, b_.getInt64(width())), b_.GetInsertBlock());
    b_.CreateBr(head);
    b_.SetInsertPoint(after);
    reached = v;
  }
  if (whole) return;
  BasicBlock* test = block("tail_test");
  BasicBlock* body = block("tail");
  BasicBlock* after = block("after");
  llvm::Instruction* jump = b_.CreateBr(test);
  b_.SetInsertPoint(test);
  b_.CreateCondBr(b_.CreateICmpSLT(reached, end), body, after);
  b_.SetInsertPoint(body);
  variables_[l.var] = reached;
  Value* live = b_.CreateSub(end, reached);
  Value* live32 = b_.CreateTrunc(live, b_.getInt32Ty());
  Value* mask = b_.CreateICmpULT(iota(b_.getInt32Ty(), 1), b_.CreateVectorSplat(width(), live32));
  active_ = Lanes{l.var, mask, live};
  push_scope(jump, {&l});
  statements(l.body);
  scopes_.pop_back();
  active_.reset();
  b_.CreateBr(after);
  b_.SetInsertPoint(after);
}

llvm::AllocaInst* PhaseEmitter::slot(llvm::Type* type) {
  llvm::IRBuilderBase::InsertPointGuard guard(b_);
  BasicBlock& entry = function_->getEntryBlock();
  b_.SetInsertPoint(&entry, entry.begin());
  return b_.CreateAlloca(type);
}

void emit_kernel(llvm::Module& module, const Kernel& kernel, const std::string& symbol,
                 const std::vector<std::string>& symbols, const loops::Target& target, llvm::DIBuilder* lines) {
  WorkingOn work("kernel " + kernel.name);
  Dependences deps(kernel);
  int number = 0;
  for (const PhaseShape& shape : phase_shapes(kernel)) {
    PhaseEmitter emitter(module, kernel, symbols, target, deps, lines);
    emitter.emit(shape, symbol + "_" + std::to_string(number++));
  }
}

}  // namespace partita::codegen

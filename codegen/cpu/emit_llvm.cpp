#include "codegen/cpu/emit_llvm.h"

#include <algorithm>
#include <limits>
#include <map>
#include <unordered_map>

#include <llvm/ADT/SmallBitVector.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include "codegen/cpu/emit_ops.h"
#include "codegen/cpu/index.h"
#include "codegen/cpu/runtime.h"
#include "core/base/check.h"

namespace partita::codegen {
namespace {

using llvm::BasicBlock;
using llvm::SmallBitVector;
using llvm::Value;
using loops::Kernel;
using loops::Loop;
using loops::Reduce;
using loops::Scalar;
using loops::ScalarNode;
using loops::ScalarOp;
using loops::Stmt;
using loops::Store;

/// What the values of a kernel depend on: decides in which loop each is computed. Bits are loop numbers in order of
/// appearance, buffer numbers, accumulator numbers.
struct Dependences {
  std::map<std::string, int> loop_of_var;
  std::map<const Loop*, int> loop_number;
  std::vector<SmallBitVector> loop_stores;        ///< per loop: buffers stored to within
  std::vector<SmallBitVector> accumulator_loops;  ///< per accumulator: the loops around the one that starts it
  struct Node {
    SmallBitVector loops, buffers, accumulators;  ///< buffers: loaded, and written by this kernel
  };
  std::vector<Node> nodes;

  explicit Dependences(const Kernel& kernel);

 private:
  void number(const std::vector<Stmt>& body, std::vector<int>& around, const Kernel& kernel);
};

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

/// One function. Values are cached per scope; a value is put into the outermost scope whose loops it depends on, at the
/// end of the code in front of the loop that is open there.
class PhaseEmitter {
 public:
  PhaseEmitter(llvm::Module& module, const Kernel& kernel, const std::vector<std::string>& symbols,
               const EmitTarget& target, const Dependences& deps)
      : kernel_(kernel),
        deps_(deps),
        b_(module.getContext()),
        ops_(b_, module, target.vector_bytes == 64),
        module_(module),
        symbols_(symbols),
        vector_(vector_loops(kernel)) {
    // No contraction of products and sums: each operator rounds, as PyTorch's kernels do, and its generated C++, which
    // is built with -ffp-contract=off. asin's gradient near 1 shows the difference.
    lanes_ = choose_lanes(target);
  }

  void emit(const PhaseShape& shape, const std::string& symbol);

 private:
  struct Val {
    Value* v = nullptr;
    bool lanes = false;  ///< one value a lane, or one for all
  };
  struct Scope {
    llvm::Instruction* before = nullptr;  ///< ends the code in front of this scope, in the one around it
    SmallBitVector loops;
    std::unordered_map<int, Val> values;
  };
  struct Lanes {
    std::string var;
    Value* mask = nullptr;   ///< null: all lanes are live
    Value* count = nullptr;  ///< live lanes, i64
  };
  struct Running {
    llvm::AllocaInst* slot = nullptr;
    bool lanes = false;
    Val complete;
  };

  int choose_lanes(const EmitTarget& target) const;
  void statements(const std::vector<Stmt>& body);
  void statement(const Stmt& stmt);
  void loop(const Loop& l);
  void range(const std::vector<const Loop*>& nest, Value* begin, Value* end);
  void scalar_range(const std::vector<const Loop*>& nest, Value* begin, Value* end);
  void vector_range(const Loop& l, Value* begin, Value* end);
  void vector_body(const Loop& l, Value* v, Value* live, BasicBlock* hoist_block);
  void start(const Loop& l);
  void complete(const Loop& l);
  bool reduced_in_lanes(int accumulator, const std::vector<Stmt>& body, bool within) const;
  void store(const Store& s);
  void store_lanes(const Store& s, Val value, DType dtype);
  void add_each_lane(Value* index, Value* value, DType dtype, int buffer);
  void reduce(const Reduce& r);
  Value* horizontal(ScalarOp combine, DType dtype, Value* v);

  void fault(std::int64_t which, Val seen, Value* bad);
  void report_faults();
  void report(std::int64_t which, Value* seen, Value* bad);

  Val value(Scalar s);
  Val compute(const ScalarNode& n);
  bool may_divide_by_zero(const ScalarNode& n) const;
  Val load(const ScalarNode& n);
  Value* load_scalar(int buffer, Value* element);
  Value* load_contiguous(int buffer, Value* element);
  Value* load_gather(int buffer, Value* elements);
  Value* spread(Val v) { return v.lanes ? v.v : b_.CreateVectorSplat(width(), v.v); }

  Value* sym(const SymExpr& e);        ///< at lane 0, i64
  Value* sym_lanes(const SymExpr& e);  ///< i32 or i64 vector
  Value* sym_lanes(const SymExpr& e, llvm::Type* element);
  Value* sym_op(SymKind kind, const std::vector<Value*>& args, bool non_negative);
  std::optional<IndexRange> range_of(const SymExpr& e) const;
  bool non_negative(const SymExpr& e) const;
  Value* iota(llvm::Type* element, std::int64_t step);
  std::optional<SymExpr> step(const SymExpr& e) const;
  std::optional<SymExpr> step(Scalar s) const;
  Value* first_lane(Scalar s);
  /// An element of a buffer: an index expression plus, when valid, a computed int64.
  struct Place {
    const SymExpr& element;
    Scalar computed;
  };
  std::optional<SymExpr> step(const Place& p) const;
  Value* place(const Place& p);   ///< at lane 0; precondition in lanes: step() knows it
  Value* places(const Place& p);  ///< one a lane
  bool in_lanes(Scalar s) const;

  Value* pointer(int buffer, Value* element);
  DType buffer_dtype(int buffer) const { return kernel_.buffers[static_cast<std::size_t>(buffer)].dtype; }
  const Dependences::Node& dependence(Scalar s) const { return deps_.nodes[static_cast<std::size_t>(s.id)]; }
  std::size_t depth(const Dependences::Node& d) const;
  template <class F>
  void forget(const F& stale);
  void push_scope(llvm::Instruction* before, const std::vector<const Loop*>& nest);
  llvm::AllocaInst* slot(llvm::Type* type);
  unsigned width() const { return static_cast<unsigned>(lanes_); }
  llvm::FixedVectorType* vector_of(llvm::Type* element) { return llvm::FixedVectorType::get(element, width()); }
  BasicBlock* block(const char* name) { return BasicBlock::Create(b_.getContext(), name, function_); }

  const Kernel& kernel_;
  const Dependences& deps_;
  llvm::IRBuilder<> b_;
  OpEmitter ops_;
  llvm::Module& module_;
  const std::vector<std::string>& symbols_;
  std::set<const Loop*> vector_;
  int lanes_ = 16;

  llvm::Function* function_ = nullptr;
  llvm::Instruction* entry_end_ = nullptr;
  std::vector<Value*> pointers_;
  unsigned arguments_ = 0;                   ///< buffers handed over
  std::map<std::string, Value*> variables_;  ///< loop variables (of a vector loop: at lane 0) and sizes
  std::map<std::string, std::int64_t> extents_;
  std::vector<Scope> scopes_;
  std::optional<Lanes> active_;
  std::vector<Running> running_;
  std::map<std::pair<std::int64_t, bool>, llvm::AllocaInst*> faults_;  ///< by what, and whether of lanes
};

/// Vectors of a few registers give independent chains to work on; long bodies take one register, or they spill.
int PhaseEmitter::choose_lanes(const EmitTarget& target) const {
  int cost = 0;
  std::size_t item = 4;
  for (const ScalarNode& n : kernel_.scalars.nodes()) {
    if (n.op == ScalarOp::Const || n.op == ScalarOp::Index) continue;
    if (n.dtype != DType::Int64) item = std::max(item, itemsize(n.dtype));
    cost += loops::is_elementary(n.op) ? 12 : 1;
  }
  int base = target.vector_bytes / 4;
  int lanes = base * (cost <= 10 ? 4 : cost <= 30 ? 2 : 1);
  if (item == 8) lanes = std::max(lanes / 2, base);
  lanes = std::min(lanes, static_cast<int>(max_lanes));
  for (const Loop* l : vector_) {
    if (!l->extent.is_int()) continue;
    std::int64_t n = l->extent.as_int();
    while (lanes > base && n % lanes != 0 && n < 8 * lanes) lanes /= 2;
  }
  return lanes;
}

void PhaseEmitter::emit(const PhaseShape& shape, const std::string& symbol) {
  llvm::Type* ptr = b_.getPtrTy();
  llvm::Type* i64 = b_.getInt64Ty();
  auto* type = llvm::FunctionType::get(b_.getVoidTy(), {ptr, ptr, ptr, i64, i64}, false);
  function_ = llvm::Function::Create(type, llvm::Function::ExternalLinkage, symbol, module_);
  function_->setDoesNotThrow();
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
  b_.CreateRetVoid();
}

void PhaseEmitter::statements(const std::vector<Stmt>& body) {
  for (const Stmt& s : body) statement(s);
}

void PhaseEmitter::statement(const Stmt& stmt) {
  if (auto* s = std::get_if<Store>(&stmt)) return store(*s);
  if (auto* r = std::get_if<Reduce>(&stmt)) return reduce(*r);
  loop(std::get<Loop>(stmt));
}

void PhaseEmitter::loop(const Loop& l) {
  start(l);
  range({&l}, b_.getInt64(0), sym(l.extent));
  complete(l);
}

void PhaseEmitter::range(const std::vector<const Loop*>& nest, Value* begin, Value* end) {
  for (const Loop* l : nest) {
    auto extent = range_of(l->extent);
    if (extent) extents_[l->var] = extent->high;
  }
  if (vector_.contains(nest[0]))
    vector_range(*nest[0], begin, end);
  else
    scalar_range(nest, begin, end);
}

void PhaseEmitter::push_scope(llvm::Instruction* before, const std::vector<const Loop*>& nest) {
  Scope scope{before, SmallBitVector(static_cast<unsigned>(deps_.loop_stores.size())), {}};
  for (const Loop* l : nest) scope.loops.set(static_cast<unsigned>(deps_.loop_number.at(l)));
  scopes_.push_back(std::move(scope));
}

void PhaseEmitter::scalar_range(const std::vector<const Loop*>& nest, Value* begin, Value* end) {
  BasicBlock* before = b_.GetInsertBlock();
  BasicBlock* head = block("loop");
  BasicBlock* body = block("body");
  BasicBlock* after = block("after");
  std::vector<Value*> sizes;
  for (const Loop* l : nest) sizes.push_back(sym(l->extent));
  llvm::Instruction* jump = b_.CreateBr(head);
  b_.SetInsertPoint(head);
  auto* i = b_.CreatePHI(b_.getInt64Ty(), 2, nest.back()->var);
  i->addIncoming(begin, before);
  b_.CreateCondBr(b_.CreateICmpSLT(i, end), body, after);
  b_.SetInsertPoint(body);
  Value* rest = i;
  for (std::size_t k = nest.size(); k-- > 0;) {
    variables_[nest[k]->var] = k == 0 ? rest : b_.CreateURem(rest, sizes[k]);
    if (k > 0) rest = b_.CreateUDiv(rest, sizes[k]);
  }
  push_scope(jump, nest);
  statements(nest.back()->body);
  scopes_.pop_back();
  i->addIncoming(b_.CreateAdd(i, b_.getInt64(1)), b_.GetInsertBlock());
  b_.CreateBr(head);
  b_.SetInsertPoint(after);
}

void PhaseEmitter::vector_range(const Loop& l, Value* begin, Value* end) {
  CHECK(!active_, "a vector loop within a vector loop");
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

bool PhaseEmitter::reduced_in_lanes(int accumulator, const std::vector<Stmt>& body, bool within) const {
  return std::any_of(body.begin(), body.end(), [&](const Stmt& s) {
    if (auto* r = std::get_if<Reduce>(&s)) return within && r->accumulator == accumulator;
    auto* l = std::get_if<Loop>(&s);
    return l && reduced_in_lanes(accumulator, l->body, within || vector_.contains(l));
  });
}

void PhaseEmitter::start(const Loop& l) {
  for (int a : l.accumulators) {
    const loops::Accumulator& acc = kernel_.accumulators[static_cast<std::size_t>(a)];
    Running& running = running_[static_cast<std::size_t>(a)];
    running.lanes = reduced_in_lanes(a, l.body, active_.has_value() || vector_.contains(&l));
    std::int64_t integer = 0;
    if (!is_floating(acc.dtype)) {
      // The extreme values of 64-bit integers are not doubles.
      constexpr double limit = 9223372036854775808.0;
      integer = acc.start >= limit    ? std::numeric_limits<std::int64_t>::max()
                : acc.start <= -limit ? std::numeric_limits<std::int64_t>::min()
                                      : static_cast<std::int64_t>(acc.start);
    }
    Value* initial = ops_.constant(acc.dtype, acc.start, integer);
    llvm::Type* type = initial->getType();
    if (running.lanes) {
      type = vector_of(type);
      initial = b_.CreateVectorSplat(width(), initial);
    }
    running.slot = slot(type);
    b_.CreateStore(initial, running.slot);
    forget([&](const Dependences::Node& d) { return d.accumulators.test(static_cast<unsigned>(a)); });
  }
}

void PhaseEmitter::complete(const Loop& l) {
  for (int a : l.accumulators) {
    const loops::Accumulator& acc = kernel_.accumulators[static_cast<std::size_t>(a)];
    Running& running = running_[static_cast<std::size_t>(a)];
    Value* v = b_.CreateLoad(running.slot->getAllocatedType(), running.slot);
    bool across = running.lanes && !active_;
    running.complete = {across ? horizontal(acc.combine, acc.dtype, v) : v, running.lanes && !across};
  }
}

Value* PhaseEmitter::horizontal(ScalarOp combine, DType dtype, Value* v) {
  for (unsigned n = width(); n > 1; n /= 2) {
    std::vector<int> low(n / 2), high(n / 2);
    for (unsigned i = 0; i < n / 2; ++i) {
      low[i] = static_cast<int>(i);
      high[i] = static_cast<int>(i + n / 2);
    }
    v = ops_.apply(combine, dtype, {b_.CreateShuffleVector(v, low), b_.CreateShuffleVector(v, high)});
  }
  return b_.CreateExtractElement(v, std::uint64_t{0});
}

void PhaseEmitter::reduce(const Reduce& r) {
  const loops::Accumulator& acc = kernel_.accumulators[static_cast<std::size_t>(r.accumulator)];
  Running& running = running_[static_cast<std::size_t>(r.accumulator)];
  Val v = value(r.value);
  v.v = ops_.cast(v.v, kernel_.scalars.dtype(r.value), acc.dtype);
  Value* old = b_.CreateLoad(running.slot->getAllocatedType(), running.slot);
  if (running.lanes && !active_) {
    // Outside of the vector loop one lane takes it.
    Value* lane = ops_.apply(acc.combine, acc.dtype, {b_.CreateExtractElement(old, std::uint64_t{0}), v.v});
    b_.CreateStore(b_.CreateInsertElement(old, lane, std::uint64_t{0}), running.slot);
    return;
  }
  Value* combined = ops_.apply(acc.combine, acc.dtype, {old, running.lanes ? spread(v) : v.v});
  if (running.lanes && active_->mask) combined = b_.CreateSelect(active_->mask, combined, old);
  b_.CreateStore(combined, running.slot);
}

Value* PhaseEmitter::pointer(int buffer, Value* element) {
  return b_.CreateGEP(ops_.memory_type(buffer_dtype(buffer)), pointers_[static_cast<std::size_t>(buffer)], element);
}

void PhaseEmitter::store(const Store& s) {
  DType dtype = buffer_dtype(s.buffer);
  Val v = value(s.value);
  v.v = ops_.cast(v.v, kernel_.scalars.dtype(s.value), dtype);
  if (active_) {
    store_lanes(s, v, dtype);
  } else {
    Value* element = place({s.element, s.index});
    if (s.accumulate) {
      DType sum = itemsize(dtype) == 2 && is_floating(dtype) ? DType::Float32 : dtype;
      Value* old = ops_.cast(load_scalar(s.buffer, element), dtype, sum);
      v.v = ops_.cast(ops_.apply(ScalarOp::Add, sum, {old, ops_.cast(v.v, dtype, sum)}), sum, dtype);
    }
    Value* stored = ops_.to_memory(v.v, dtype);
    b_.CreateAlignedStore(stored, pointer(s.buffer, element), llvm::Align(itemsize(dtype)));
  }
  forget([&](const Dependences::Node& d) { return d.buffers.test(static_cast<unsigned>(s.buffer)); });
}

void PhaseEmitter::store_lanes(const Store& s, Val v, DType dtype) {
  Place p{s.element, s.index};
  auto move = step(p);
  auto first = [&] { return place(p); };
  auto elements = [&] { return places(p); };
  llvm::Align align(itemsize(dtype));
  DType sum = itemsize(dtype) == 2 && is_floating(dtype) ? DType::Float32 : dtype;
  auto add = [&](Value* old, Value* more) {
    return ops_.cast(ops_.apply(ScalarOp::Add, sum, {ops_.cast(old, dtype, sum), ops_.cast(more, dtype, sum)}), sum,
                     dtype);
  };
  if (move && move->is(1)) {
    Value* element = first();
    Value* all = spread(v);
    if (s.accumulate) all = add(load_contiguous(s.buffer, element), all);
    Value* stored = ops_.to_memory(all, dtype);
    if (active_->mask)
      b_.CreateMaskedStore(stored, pointer(s.buffer, element), align, active_->mask);
    else
      b_.CreateAlignedStore(stored, pointer(s.buffer, element), align);
    return;
  }
  bool distinct = move && move->is_int() && !move->is(0);
  if (s.accumulate && !distinct) {
    Value* index = elements();
    return add_each_lane(b_.CreateSExt(index, vector_of(b_.getInt64Ty())), spread(v), dtype, s.buffer);
  }
  if (move && move->is(0)) {
    // Every lane stores to one element: the last iteration stays.
    Value* last = v.lanes ? b_.CreateExtractElement(v.v, b_.CreateSub(active_->count, b_.getInt64(1))) : v.v;
    b_.CreateAlignedStore(ops_.to_memory(last, dtype), pointer(s.buffer, first()), align);
    return;
  }
  Value* index = elements();
  Value* all = spread(v);
  if (s.accumulate) all = add(load_gather(s.buffer, index), all);
  b_.CreateMaskedScatter(ops_.to_memory(all, dtype), pointer(s.buffer, index), align, active_->mask);
}

/// Lane after lane, so that lanes with equal indices add up.
void PhaseEmitter::add_each_lane(Value* index, Value* v, DType dtype, int buffer) {
  llvm::Type* i64 = b_.getInt64Ty();
  Value* stored = ops_.to_memory(v, dtype);
  llvm::Type* element = ops_.memory_type(dtype);
  Value* indices = slot(index->getType());
  Value* values = slot(stored->getType());
  b_.CreateStore(index, indices);
  b_.CreateStore(stored, values);
  BasicBlock* before = b_.GetInsertBlock();
  BasicBlock* body = block("each_lane");
  BasicBlock* after = block("after_lanes");
  b_.CreateBr(body);
  b_.SetInsertPoint(body);
  auto* i = b_.CreatePHI(i64, 2);
  i->addIncoming(b_.getInt64(0), before);
  Value* where = pointer(buffer, b_.CreateLoad(i64, b_.CreateGEP(i64, indices, i)));
  Value* old = ops_.from_memory(b_.CreateLoad(element, where), dtype);
  Value* more = ops_.from_memory(b_.CreateLoad(element, b_.CreateGEP(element, values, i)), dtype);
  DType sum = itemsize(dtype) == 2 && is_floating(dtype) ? DType::Float32 : dtype;
  Value* total = ops_.apply(ScalarOp::Add, sum, {ops_.cast(old, dtype, sum), ops_.cast(more, dtype, sum)});
  b_.CreateStore(ops_.to_memory(ops_.cast(total, sum, dtype), dtype), where);
  Value* next = b_.CreateAdd(i, b_.getInt64(1));
  i->addIncoming(next, body);
  b_.CreateCondBr(b_.CreateICmpSLT(next, active_->count), body, after);
  b_.SetInsertPoint(after);
}

template <class F>
void PhaseEmitter::forget(const F& stale) {
  for (Scope& scope : scopes_)
    std::erase_if(scope.values,
                  [&](const auto& entry) { return stale(deps_.nodes[static_cast<std::size_t>(entry.first)]); });
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

PhaseEmitter::Val PhaseEmitter::value(Scalar s) {
  const ScalarNode& n = kernel_.scalars[s];
  if (n.op == ScalarOp::Const) return {ops_.constant(n.dtype, n.real, n.integer), false};
  if (n.op == ScalarOp::Input) return running_[static_cast<std::size_t>(n.slot)].complete;
  std::size_t at = depth(dependence(s));
  if (auto it = scopes_[at].values.find(s.id); it != scopes_[at].values.end()) return it->second;
  Val v;
  if (at + 1 == scopes_.size()) {
    v = compute(n);
  } else {
    llvm::IRBuilderBase::InsertPointGuard guard(b_);
    b_.SetInsertPoint(scopes_[at + 1].before);
    v = compute(n);
  }
  scopes_[at].values[s.id] = v;
  return v;
}

/// An integer division by what is not known.
bool PhaseEmitter::may_divide_by_zero(const ScalarNode& n) const {
  if (n.op != ScalarOp::Div && n.op != ScalarOp::FloorDiv && n.op != ScalarOp::Fmod && n.op != ScalarOp::Remainder)
    return false;
  const ScalarNode& divisor = kernel_.scalars[n.args[1]];
  return !is_floating(n.dtype) && (divisor.op != ScalarOp::Const || divisor.integer == 0);
}

PhaseEmitter::Val PhaseEmitter::compute(const ScalarNode& n) {
  if (n.op == ScalarOp::Load) return load(n);
  if (n.op == ScalarOp::Index) {
    if (!active_) return {sym(n.index), false};
    auto move = step(n.index);
    if (move && move->is(0)) return {sym(n.index), false};
    return {b_.CreateSExt(sym_lanes(n.index), vector_of(b_.getInt64Ty())), true};
  }
  if (n.op == ScalarOp::Pow) {
    const ScalarNode& exponent = kernel_.scalars[n.args[1]];
    if (exponent.op == ScalarOp::Const && is_floating(n.dtype)) {
      Val base = value(n.args[0]);
      if (Value* v = ops_.constant_power(base.v, exponent.real)) return {v, base.lanes};
    }
  }
  std::vector<Val> vals;
  bool lanes = false;
  for (Scalar a : n.args) {
    if (a.id < 0) continue;
    vals.push_back(value(a));
    lanes |= vals.back().lanes;
  }
  std::vector<Value*> args;
  for (Val v : vals) args.push_back(lanes ? spread(v) : v.v);
  switch (n.op) {
    case ScalarOp::Where:
      return {b_.CreateSelect(args[0], args[1], args[2]), lanes};
    case ScalarOp::Cast:
      return {ops_.cast(args[0], kernel_.scalars.dtype(n.args[0]), n.dtype), lanes};
    case ScalarOp::Bitcast:
      return {ops_.bitcast(args[0], n.dtype), lanes};
    case ScalarOp::Within: {
      Value* bad = b_.CreateICmpUGE(args[0], llvm::ConstantInt::getSigned(args[0]->getType(), n.integer));
      fault(n.slot, {args[0], lanes}, bad);
      return {b_.CreateSelect(bad, llvm::Constant::getNullValue(args[0]->getType()), args[0]), lanes};
    }
    default:
      if (may_divide_by_zero(n)) {
        Value* bad = b_.CreateICmpEQ(args[1], llvm::Constant::getNullValue(args[1]->getType()));
        fault(KernelFault::zero_division, {bad, lanes}, bad);
      }
      return {ops_.apply(n.op, kernel_.scalars.dtype(n.args[0]), args), lanes};
  }
}

/// Keeps `seen` where it is bad, for the report at the end of the function: no branch in the loops. A slot holds a
/// value that is not bad, 0, until then.
void PhaseEmitter::fault(std::int64_t which, Val seen, Value* bad) {
  if (seen.lanes && active_->mask) bad = b_.CreateAnd(bad, active_->mask);
  llvm::AllocaInst*& kept = faults_[{which, seen.lanes}];
  if (!kept) {
    kept = slot(seen.v->getType());
    llvm::IRBuilderBase::InsertPointGuard guard(b_);
    b_.SetInsertPoint(entry_end_);
    b_.CreateStore(llvm::Constant::getNullValue(seen.v->getType()), kept);
  }
  b_.CreateStore(b_.CreateSelect(bad, seen.v, b_.CreateLoad(kept->getAllocatedType(), kept)), kept);
}

void PhaseEmitter::report_faults() {
  for (const auto& [key, kept] : faults_) {
    Value* seen = b_.CreateLoad(kept->getAllocatedType(), kept);
    Value* bad = seen;
    if (key.first != KernelFault::zero_division) {
      const std::int64_t size = kernel_.scalars.bounds()[static_cast<std::size_t>(key.first)].size;
      bad = b_.CreateICmpUGE(seen, llvm::ConstantInt::getSigned(seen->getType(), size));
    }
    report(key.first, seen, bad);
  }
}

/// Calls the runtime when a lane is bad, with what the first such lane saw.
void PhaseEmitter::report(std::int64_t which, Value* seen, Value* bad) {
  const bool lanes = bad->getType()->isVectorTy();
  BasicBlock* met = block("fault");
  BasicBlock* after = block("no_fault");
  b_.CreateCondBr(lanes ? b_.CreateOrReduce(bad) : bad, met, after);
  b_.SetInsertPoint(met);
  if (lanes) {
    Value* bits = b_.CreateBitCast(bad, b_.getIntNTy(width()));
    Value* first = b_.CreateBinaryIntrinsic(llvm::Intrinsic::cttz, bits, b_.getTrue());
    seen = b_.CreateExtractElement(seen, b_.CreateZExtOrTrunc(first, b_.getInt64Ty()));
  }
  llvm::Type* i64 = b_.getInt64Ty();
  llvm::Type* ptr = b_.getPtrTy();
  auto function = module_.getOrInsertFunction(report_fault_symbol, b_.getVoidTy(), ptr, i64, i64);
  Value* fault = b_.CreateLoad(ptr, b_.CreateConstGEP1_64(ptr, function_->getArg(0), arguments_));
  b_.CreateCall(function, {fault, b_.getInt64(static_cast<std::uint64_t>(which)), b_.CreateZExtOrTrunc(seen, i64)});
  b_.CreateBr(after);
  b_.SetInsertPoint(after);
}

Value* PhaseEmitter::load_scalar(int buffer, Value* element) {
  DType dtype = buffer_dtype(buffer);
  auto* v = b_.CreateAlignedLoad(ops_.memory_type(dtype), pointer(buffer, element), llvm::Align(itemsize(dtype)));
  return ops_.from_memory(v, dtype);
}

Value* PhaseEmitter::load_contiguous(int buffer, Value* element) {
  DType dtype = buffer_dtype(buffer);
  llvm::Align align(itemsize(dtype));
  llvm::Type* type = vector_of(ops_.memory_type(dtype));
  Value* p = pointer(buffer, element);
  Value* v = active_->mask ? b_.CreateMaskedLoad(type, p, align, active_->mask, llvm::Constant::getNullValue(type))
                           : static_cast<Value*>(b_.CreateAlignedLoad(type, p, align));
  return ops_.from_memory(v, dtype);
}

Value* PhaseEmitter::load_gather(int buffer, Value* elements) {
  DType dtype = buffer_dtype(buffer);
  llvm::Type* type = vector_of(ops_.memory_type(dtype));
  Value* mask = active_->mask ? active_->mask : llvm::ConstantInt::getTrue(vector_of(b_.getInt1Ty()));
  Value* v = b_.CreateMaskedGather(type, pointer(buffer, elements), llvm::Align(itemsize(dtype)), mask,
                                   llvm::Constant::getNullValue(type));
  return ops_.from_memory(v, dtype);
}

PhaseEmitter::Val PhaseEmitter::load(const ScalarNode& n) {
  Place p{n.index, n.args[0]};
  if (!active_) return {load_scalar(n.slot, place(p)), false};
  auto move = step(p);
  if (move && move->is(0)) return {load_scalar(n.slot, place(p)), false};
  if (move && move->is(1)) return {load_contiguous(n.slot, place(p)), true};
  return {load_gather(n.slot, places(p)), true};
}

bool PhaseEmitter::in_lanes(Scalar s) const {
  const SmallBitVector& loops = dependence(s).loops;
  return active_ && loops.test(static_cast<unsigned>(deps_.loop_of_var.at(active_->var)));
}

std::optional<SymExpr> PhaseEmitter::step(const SymExpr& e) const {
  return lane_step(e, active_->var, lanes_);
}

std::optional<SymExpr> PhaseEmitter::step(Scalar s) const {
  if (!in_lanes(s)) return SymExpr(0);
  const ScalarNode& n = kernel_.scalars[s];
  switch (n.op) {
    case ScalarOp::Index:
      return step(n.index);
    case ScalarOp::Add:
    case ScalarOp::Sub: {
      auto x = step(n.args[0]), y = step(n.args[1]);
      if (!x || !y) return std::nullopt;
      return n.op == ScalarOp::Add ? *x + *y : *x - *y;
    }
    case ScalarOp::Mul: {
      auto factor = [&](Scalar constant, Scalar other) -> std::optional<SymExpr> {
        auto move = step(other);
        if (kernel_.scalars[constant].op != ScalarOp::Const || !move) return std::nullopt;
        return *move * SymExpr(kernel_.scalars[constant].integer);
      };
      if (auto move = factor(n.args[0], n.args[1])) return move;
      return factor(n.args[1], n.args[0]);
    }
    default:
      return std::nullopt;
  }
}

std::optional<SymExpr> PhaseEmitter::step(const Place& p) const {
  auto affine = step(p.element);
  if (p.computed.id < 0 || !affine) return affine;
  auto computed = step(p.computed);
  return computed ? std::optional(*affine + *computed) : std::nullopt;
}

Value* PhaseEmitter::place(const Place& p) {
  if (p.computed.id < 0) return sym(p.element);
  Value* computed = active_ ? first_lane(p.computed) : value(p.computed).v;
  return p.element.is(0) ? computed : b_.CreateAdd(sym(p.element), computed);
}

Value* PhaseEmitter::places(const Place& p) {
  if (p.computed.id < 0) return sym_lanes(p.element);
  Value* computed = spread(value(p.computed));
  if (p.element.is(0)) return computed;
  return b_.CreateAdd(b_.CreateSExt(sym_lanes(p.element), computed->getType()), computed);
}

/// The value at lane 0 of a computed index that step() knows.
Value* PhaseEmitter::first_lane(Scalar s) {
  if (!in_lanes(s)) return value(s).v;
  const ScalarNode& n = kernel_.scalars[s];
  switch (n.op) {
    case ScalarOp::Index:
      return sym(n.index);
    case ScalarOp::Add:
      return b_.CreateAdd(first_lane(n.args[0]), first_lane(n.args[1]));
    case ScalarOp::Sub:
      return b_.CreateSub(first_lane(n.args[0]), first_lane(n.args[1]));
    case ScalarOp::Mul:
      return b_.CreateMul(first_lane(n.args[0]), first_lane(n.args[1]));
    default:
      break;
  }
  CHECK(false, "no lane step");
}

Value* PhaseEmitter::iota(llvm::Type* element, std::int64_t step) {
  std::vector<llvm::Constant*> c;
  for (int i = 0; i < lanes_; ++i) c.push_back(llvm::ConstantInt::getSigned(element, i * step));
  return llvm::ConstantVector::get(c);
}

std::optional<IndexRange> PhaseEmitter::range_of(const SymExpr& e) const {
  return index_range(e, [&](const std::string& name) -> std::optional<std::int64_t> {
    auto it = extents_.find(name);
    return it == extents_.end() ? std::nullopt : std::optional(it->second);
  });
}

bool PhaseEmitter::non_negative(const SymExpr& e) const {
  auto range = range_of(e);
  return range && range->low >= 0;
}

Value* PhaseEmitter::sym_op(SymKind kind, const std::vector<Value*>& args, bool unsigned_ok) {
  Value* r = args[0];
  auto whole = [&](std::int64_t v) { return llvm::ConstantInt::getSigned(r->getType(), v); };
  auto boolean = [&](Value* v) { return b_.CreateZExt(v, r->getType()); };
  if (kind == SymKind::Not) return boolean(b_.CreateICmpEQ(r, whole(0)));
  for (std::size_t i = 1; i < args.size(); ++i) {
    Value* a = args[i];
    switch (kind) {
      case SymKind::Add:
        r = b_.CreateAdd(r, a);
        break;
      case SymKind::Mul:
        r = b_.CreateMul(r, a);
        break;
      case SymKind::FloorDiv:
        if (unsigned_ok) {
          r = b_.CreateUDiv(r, a);
        } else {
          Value* q = b_.CreateSDiv(r, a);
          Value* rest = b_.CreateSub(r, b_.CreateMul(q, a));
          Value* down = b_.CreateAnd(b_.CreateICmpNE(rest, whole(0)), b_.CreateICmpSLT(b_.CreateXor(r, a), whole(0)));
          r = b_.CreateSelect(down, b_.CreateSub(q, whole(1)), q);
        }
        break;
      case SymKind::Mod:
        if (unsigned_ok) {
          r = b_.CreateURem(r, a);
        } else {
          Value* rest = b_.CreateSRem(r, a);
          Value* wrong =
              b_.CreateAnd(b_.CreateICmpNE(rest, whole(0)), b_.CreateICmpSLT(b_.CreateXor(rest, a), whole(0)));
          r = b_.CreateSelect(wrong, b_.CreateAdd(rest, a), rest);
        }
        break;
      case SymKind::Min:
        r = b_.CreateSelect(b_.CreateICmpSLT(r, a), r, a);
        break;
      case SymKind::Max:
        r = b_.CreateSelect(b_.CreateICmpSGT(r, a), r, a);
        break;
      case SymKind::Eq:
        r = boolean(b_.CreateICmpEQ(r, a));
        break;
      case SymKind::Ne:
        r = boolean(b_.CreateICmpNE(r, a));
        break;
      case SymKind::Lt:
        r = boolean(b_.CreateICmpSLT(r, a));
        break;
      case SymKind::Le:
        r = boolean(b_.CreateICmpSLE(r, a));
        break;
      case SymKind::And:
        r = b_.CreateAnd(r, a);
        break;
      case SymKind::Or:
        r = b_.CreateOr(r, a);
        break;
      case SymKind::Int:
      case SymKind::Float:
      case SymKind::Symbol:
      case SymKind::Pow:
      case SymKind::TrueDiv:
      case SymKind::Not:
      case SymKind::Call:
        CHECK(false, "index expression");
    }
  }
  return r;
}

Value* PhaseEmitter::sym(const SymExpr& e) {
  if (e.is_int()) return b_.getInt64(static_cast<std::uint64_t>(e.as_int()));
  if (e.kind() == SymKind::Symbol) {
    auto it = variables_.find(e.name());
    CHECK(it != variables_.end(), "unbound index symbol " + e.name() + " in " + kernel_.name);
    return it->second;
  }
  if (e.kind() == SymKind::Pow) {
    Value* base = sym(e.args()[0]);
    return sym_op(SymKind::Mul, std::vector<Value*>(static_cast<std::size_t>(e.args()[1].as_int()), base), false);
  }
  std::vector<Value*> args;
  for (const SymExpr& a : e.args()) args.push_back(sym(a));
  bool divides = e.kind() == SymKind::FloorDiv || e.kind() == SymKind::Mod;
  return sym_op(e.kind(), args,
                divides && non_negative(e.args()[0]) && e.args()[1].is_int() && e.args()[1].as_int() > 0);
}

Value* PhaseEmitter::sym_lanes(const SymExpr& e) {
  auto range = range_of(e);
  // Lanes beyond the extent are masked off but computed: leave room for them.
  bool narrow = range && range->low > -(std::int64_t{1} << 28) && range->high < (std::int64_t{1} << 28);
  return sym_lanes(e, narrow ? b_.getInt32Ty() : b_.getInt64Ty());
}

Value* PhaseEmitter::sym_lanes(const SymExpr& e, llvm::Type* element) {
  auto scalar = [&] { return b_.CreateVectorSplat(width(), b_.CreateTrunc(sym(e), element)); };
  auto move = step(e);
  if (move && move->is(0)) return scalar();
  if (move && move->is_int()) return b_.CreateAdd(scalar(), iota(element, move->as_int()));
  if (move) {
    Value* by = b_.CreateVectorSplat(width(), b_.CreateTrunc(sym(*move), element));
    return b_.CreateAdd(scalar(), b_.CreateMul(by, iota(element, 1)));
  }
  if (e.kind() == SymKind::Pow) {
    Value* base = sym_lanes(e.args()[0], element);
    return sym_op(SymKind::Mul, std::vector<Value*>(static_cast<std::size_t>(e.args()[1].as_int()), base), false);
  }
  std::vector<Value*> args;
  for (const SymExpr& a : e.args()) args.push_back(sym_lanes(a, element));
  bool divides = e.kind() == SymKind::FloorDiv || e.kind() == SymKind::Mod;
  return sym_op(e.kind(), args,
                divides && non_negative(e.args()[0]) && e.args()[1].is_int() && e.args()[1].as_int() > 0);
}

}  // namespace

void emit_kernel(llvm::Module& module, const Kernel& kernel, const std::string& symbol,
                 const std::vector<std::string>& symbols, const EmitTarget& target) {
  WorkingOn work("kernel " + kernel.name);
  Dependences deps(kernel);
  int number = 0;
  for (const PhaseShape& shape : phase_shapes(kernel)) {
    PhaseEmitter emitter(module, kernel, symbols, target, deps);
    emitter.emit(shape, symbol + "_" + std::to_string(number++));
  }
}

}  // namespace partita::codegen

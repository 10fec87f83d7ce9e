#pragma once
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <llvm/IR/DIBuilder.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include "codegen/cpu/emit_llvm.h"
#include "codegen/cpu/emit_ops.h"
#include "codegen/program/dependences.h"
#include "codegen/program/index_steps.h"

namespace partita::codegen {

/// Emits one function. Values are cached per scope. A value is computed in the outermost scope whose loops it depends
/// on, at the end of the code before the loop that is open there.
/// Products and sums are not contracted: each operator rounds on its own, as in PyTorch's kernels and in its generated
/// C++, which is built with -ffp-contract=off. asin's gradient near 1 shows the difference.
class PhaseEmitter {
 public:
  PhaseEmitter(llvm::Module& module, const loops::Kernel& kernel, const std::vector<std::string>& symbols,
               const loops::Target& target, const Dependences& deps, llvm::DIBuilder* lines)
      : kernel_(kernel),
        deps_(deps),
        b_(module.getContext()),
        ops_(b_, module, target.vector_bytes == 64),
        module_(module),
        symbols_(symbols),
        lines_(lines),
        vector_(vector_loops(kernel)) {
    choose_lanes(target);
    find_next_rows(kernel_.body, nullptr);
  }

  void emit(const PhaseShape& shape, const std::string& symbol);

 private:
  struct Val {
    llvm::Value* v = nullptr;
    bool lanes = false;  ///< true: one value per lane; false: one value for all
  };
  struct Scope {
    llvm::Instruction* before = nullptr;  ///< the last instruction before this scope, in the scope around it
    llvm::SmallBitVector loops;
    std::unordered_map<int, Val> values;
  };
  struct Lanes {
    std::string var;
    llvm::Value* mask = nullptr;   ///< null: all lanes are live
    llvm::Value* count = nullptr;  ///< live lanes, i64
  };
  struct NextRow {
    std::string rows;  ///< the variable of the loop over rows
    std::set<int> buffers;
  };
  struct Running {
    llvm::AllocaInst* slot = nullptr;
    bool lanes = false;
    Val complete;
  };

  /// While it lives, instructions are marked with the source of a scalar.
  class Marked {
   public:
    Marked(PhaseEmitter& emitter, loops::Scalar s);
    ~Marked() { b_.SetCurrentDebugLocation(around_); }

   private:
    llvm::IRBuilder<>& b_;
    llvm::DebugLoc around_;
  };

  void begin_lines();
  void choose_lanes(const loops::Target& target);
  int choose_lanes(const loops::Loop& l, const loops::Target& target) const;
  void find_next_rows(const std::vector<loops::Stmt>& body, const loops::Loop* rows);
  void statements(const std::vector<loops::Stmt>& body);
  void statement(const loops::Stmt& stmt);
  void loop(const loops::Loop& l);
  void range(const std::vector<const loops::Loop*>& nest, llvm::Value* begin, llvm::Value* end);
  void unrolled(const loops::Loop& l);
  void scalar_range(const std::vector<const loops::Loop*>& nest, llvm::Value* begin, llvm::Value* end);
  void vector_range(const loops::Loop& l, llvm::Value* begin, llvm::Value* end);
  void start(const loops::Loop& l);
  void complete(const loops::Loop& l);
  static bool reduces(const loops::Loop& l, int accumulator);
  const loops::Loop* lanes_that_reduce(int accumulator, const loops::Loop& l) const;
  void store(const loops::Store& s);
  llvm::Value* sum(llvm::Value* x, llvm::Value* y, DType dtype);
  void store_lanes(const loops::Store& s, Val value, DType dtype);
  void store_vector(const loops::Store& s, llvm::Value* stored, llvm::Value* element);
  void add_each_lane(llvm::Value* index, llvm::Value* value, DType dtype, int buffer);
  void reduce(const loops::Reduce& r);
  llvm::Value* horizontal(loops::ScalarOp combine, DType dtype, llvm::Value* v);

  void fault(std::int64_t which, Val seen, llvm::Value* bad);
  void report_faults();
  void report(std::int64_t which, llvm::Value* seen, llvm::Value* bad);

  Val value(loops::Scalar s);
  std::optional<Val> narrowed(loops::Scalar s);
  Val compute(const loops::ScalarNode& n);
  bool may_divide_by_zero(const loops::ScalarNode& n) const;
  Val load(const loops::ScalarNode& n);
  void ask_for_next_row(const loops::ScalarNode& n, llvm::Value* first);
  llvm::Value* load_scalar(int buffer, llvm::Value* element);
  llvm::Value* load_contiguous(int buffer, llvm::Value* element);
  llvm::Value* load_gather(int buffer, llvm::Value* elements);
  llvm::Value* spread(Val v) { return v.lanes ? v.v : b_.CreateVectorSplat(width(), v.v); }

  llvm::Value* sym(const SymExpr& e);        ///< value at lane 0, as i64
  llvm::Value* sym_lanes(const SymExpr& e);  ///< values of all lanes, as an i32 or i64 vector
  llvm::Value* sym_lanes(const SymExpr& e, llvm::Type* element);
  /// `emit` gives the values of the operands.
  llvm::Value* sym_op(const SymExpr& e, const std::function<llvm::Value*(const SymExpr&)>& emit);
  /// What a size is rounded from, in double precision as SymExpr::evaluate() has it.
  llvm::Value* sym_real(const SymExpr& e, const std::function<llvm::Value*(const SymExpr&)>& emit);
  llvm::Value* sym_op(SymKind kind, const std::vector<llvm::Value*>& args, bool non_negative);
  std::optional<IndexRange> range_of(const SymExpr& e) const;
  bool non_negative(const SymExpr& e) const;
  bool is_small(const SymExpr& e) const;
  llvm::Value* iota(llvm::Type* element, std::int64_t step);
  std::optional<SymExpr> step(const SymExpr& e) const;
  std::optional<SymExpr> step(loops::Scalar s) const;
  llvm::Value* first_lane(loops::Scalar s);
  /// An element of a buffer: an index expression plus, if valid, a computed int64.
  struct ElementIndex {
    const SymExpr& element;
    loops::Scalar computed;
  };
  std::optional<SymExpr> step(const ElementIndex& p) const;
  llvm::Value* first_element(const ElementIndex& p);         ///< value at lane 0; within lanes, step() must know it
  llvm::Value* element_of_each_lane(const ElementIndex& p);  ///< one value per lane
  bool in_lanes(loops::Scalar s) const;

  llvm::Value* pointer(int buffer, llvm::Value* element);
  DType buffer_dtype(int buffer) const { return kernel_.buffers[static_cast<std::size_t>(buffer)].dtype; }
  const Dependences::Node& dependence(loops::Scalar s) const { return deps_.nodes[static_cast<std::size_t>(s.id)]; }
  std::size_t depth(const Dependences::Node& d) const;
  void forget(const auto& stale) {
    for (Scope& scope : scopes_)
      std::erase_if(scope.values,
                    [&](const auto& entry) { return stale(deps_.nodes[static_cast<std::size_t>(entry.first)]); });
  }
  void push_scope(llvm::Instruction* before, const std::vector<const loops::Loop*>& nest);
  llvm::AllocaInst* slot(llvm::Type* type);
  unsigned width() const { return static_cast<unsigned>(lanes_); }
  llvm::FixedVectorType* vector_of(llvm::Type* element) { return llvm::FixedVectorType::get(element, width()); }
  llvm::BasicBlock* block(const char* name) { return llvm::BasicBlock::Create(b_.getContext(), name, function_); }

  const loops::Kernel& kernel_;
  const Dependences& deps_;
  llvm::IRBuilder<> b_;
  OpEmitter ops_;
  llvm::Module& module_;
  const std::vector<std::string>& symbols_;
  llvm::DIBuilder* lines_;                         ///< null: nothing is marked
  llvm::DISubprogram* marked_function_ = nullptr;  ///< set with lines_
  std::set<const loops::Loop*> vector_;
  std::map<const loops::Loop*, int> lanes_of_;  ///< of vector loops
  int lanes_ = 0;                               ///< of the vector loop whose code is emitted

  llvm::Function* function_ = nullptr;
  llvm::Instruction* entry_end_ = nullptr;
  std::vector<llvm::Value*> pointers_;
  unsigned arguments_ = 0;                         ///< number of buffers passed by the caller
  bool streams_ = false;                           ///< some stores bypass the caches
  std::map<std::string, llvm::Value*> variables_;  ///< sizes and loop variables; of a vector loop, the value at lane 0
  std::map<std::string, std::int64_t> extents_;
  std::vector<Scope> scopes_;
  std::map<const loops::Loop*, NextRow> next_row_;  ///< what vector loops ask for ahead
  const NextRow* ahead_ = nullptr;                  ///< of the vector loop whose code is emitted; null: nothing
  std::optional<Lanes> active_;
  std::vector<Running> running_;
  std::map<std::pair<std::int64_t, unsigned>, llvm::AllocaInst*> faults_;  ///< by kind of fault and lanes, 0: no lanes
};

}  // namespace partita::codegen

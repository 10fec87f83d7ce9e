#pragma once
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "codegen/cuda/cuda_kernel.h"
#include "codegen/program/dependences.h"
#include "codegen/program/index_steps.h"

namespace partita::codegen {

constexpr int warp = 32;  ///< threads that run in step

/// C++ text of a value, and the level of its outermost operator.
struct Expression {
  /// Levels of operators, from what binds most tightly.
  enum Level : std::uint8_t {
    Primary,
    Unary,
    Product,
    Sum,
    Shift,
    Relation,
    Equality,
    BitAnd,
    BitXor,
    BitOr,
    And,
    Or,
    Conditional
  };
  std::string text;
  Level level = Primary;

  /// The text as an operand, which may have operators up to that level.
  std::string as(Level most) const { return level > most ? "(" + text + ")" : text; }
};

std::string identifier(std::string_view text);  ///< with _ for what no name in C++ has
std::string_view cuda_type(DType dtype);        ///< of a value
std::string_view cuda_memory_type(
    DType dtype);  ///< of an element in memory: a bool is a byte, of which any but 0 is true
Expression cuda_constant(DType dtype, double real, std::int64_t integer);
Expression cuda_cast(const Expression& v, DType from, DType to);
/// A row of scalar_ops.def as its CUDA column has it. `dtype`: of the operands.
Expression cuda_operation(loops::ScalarOp op, DType dtype, const std::vector<Expression>& operands);

/// Writes the functions of a kernel: one for each part between two barriers and each parallel loop in it. A value
/// stands in the innermost loop that it depends on; it has a name if it is used more than once, or outside of its loop.
class CudaEmitter {
 public:
  CudaEmitter(const loops::Kernel& kernel, const std::string& symbol, const std::vector<std::string>& symbols);
  Result<CudaKernel> run();

 private:
  struct Line {
    std::string text;
    std::vector<int> sources;  ///< indices into Kernel::origins
  };
  struct Scope {
    llvm::SmallBitVector loops;  ///< those whose body this is
    bool once = false;           ///< one thread of a group is here: it alone reads what is written
    std::vector<Line> lines;
    std::unordered_map<int, std::string> names;  ///< of values
  };
  /// The copies of a scratch buffer.
  struct Home {
    const loops::Loop* group = nullptr;   ///< the Block loop around it
    const loops::Loop* thread = nullptr;  ///< the innermost Thread loop around it; null for memory that a group shares
    int workspace = -1;                   ///< index into CudaKernel::workspace; -1: an array
    std::string memory;                   ///< the argument that points to all copies in the workspace
  };

  /// Memory that each thread of a group reads and writes at the elements of a row that are its own, kept in registers.
  struct Held {
    int buffer = 0;
    SymExpr element;  ///< with `row_variable` for the loop's variable
    std::string name;
    bool filled = false;
  };
  /// How the iterations of a loop are distributed over lanes: each thread takes `count` neighbours at a time.
  struct Lanes {
    const loops::Loop* loop = nullptr;
    int count = 1;
    int iterations = 0;     ///< of a row that is held, each written out; 0: any number
    std::string first;      ///< the variable of the first lane
    std::string left;       ///< elements from there on; empty: they are always enough
    std::string lane;       ///< the number of a lane
    std::size_t scope = 0;  ///< where packs are loaded, before the loop over lanes
    std::vector<std::pair<std::pair<int, SymExpr>, std::string>> packs;  ///< loaded, by buffer and element
    std::vector<std::string> stores;                                     ///< lines after the loop over lanes
  };
  /// An access of a loop without loops within.
  struct Access {
    int buffer = 0;
    SymExpr element;
    bool computed = false, stores = false, adds = false;
    bool operator==(const Access&) const = default;
  };

  // emit_cuda.cpp: functions, their arguments and memory
  void count_uses();
  void count_uses(const std::vector<loops::Stmt>& body);
  void name_arguments();
  void find_homes(const std::vector<loops::Stmt>& body, const loops::Loop* group, const loops::Loop* thread);
  void choose_index_type();
  bool fits_32_bits(const std::vector<loops::Stmt>& body);
  bool fits_32_bits(SymExpr e) const;
  void part(const std::vector<const loops::Stmt*>& statements);
  void begin(const CudaFunction& f, const std::vector<const loops::Stmt*>& body);
  void finish(CudaFunction f, const std::string& launch);
  void threads(const loops::Stmt& stmt);
  void group(const loops::Stmt& stmt);
  void refuse(const std::string& what);

  // emit_lanes.cpp: neighbouring iterations in one thread, and rows in registers
  std::vector<Access> accesses(const std::vector<loops::Stmt>& body) const;
  int choose_lanes(const std::vector<const loops::Loop*>& loops) const;
  bool in_pack(const Access& a, const loops::Loop& l, int lanes) const;
  const char* where_aligned(SymExpr element) const;
  void choose_rows(const loops::Loop& group);
  void hold_rows(const loops::Loop& group, std::int64_t extent);
  Held* held(int buffer, SymExpr element, bool computed);
  void lane_loop(const loops::Loop& l, int count, const std::string& left, const std::string& first);
  std::optional<std::string> lane_load(int buffer, SymExpr element, bool computed);
  bool lane_store(const loops::Store& s, const std::string& value);
  std::string address(int buffer, SymExpr element);
  std::string of_lane(const std::string& name, bool is_held) const;
  int flat_lanes(const std::vector<const loops::Loop*>& nest) const;

  // emit_loops.cpp
  void statements(const std::vector<loops::Stmt>& body);
  void statement(const loops::Stmt& stmt);
  void loop(const loops::Loop& l);
  void group_loop(const loops::Loop& l);
  void start(const loops::Loop& l);
  void complete(const loops::Loop& l);
  void store(const loops::Store& s);
  void reduce(const loops::Reduce& r);

  // emit_scalars.cpp
  Expression value(loops::Scalar s);
  Expression compute(const loops::ScalarNode& n);
  bool has_fault(const loops::ScalarNode& n) const;
  std::string name_for(loops::Scalar s, const loops::ScalarNode& n);
  std::string element(int buffer, SymExpr e, loops::Scalar computed);

  // emit_indices.cpp
  Expression index(SymExpr e);
  Expression index_sum(SymExpr e);
  Expression quotient(SymExpr e);
  bool non_negative(SymExpr e) const;
  std::optional<IndexRange> range_of(SymExpr e) const;

  std::string fresh(std::string base);
  std::string graph_name(int buffer) const;
  const char* index_type() const { return narrow_ ? "int" : "long long"; }
  void line(std::string text);
  void open(const std::vector<const loops::Loop*>& loops, bool once = false);
  void close(const std::string& head);
  std::size_t depth(loops::Scalar s) const;
  void forget(const auto& stale) {
    for (Scope& scope : scopes_)
      std::erase_if(scope.names,
                    [&](const auto& entry) { return stale(deps_.nodes[static_cast<std::size_t>(entry.first)]); });
  }
  const loops::Buffer& buffer(int b) const { return kernel_.buffers[static_cast<std::size_t>(b)]; }
  const loops::Accumulator& accumulator(int a) const { return kernel_.accumulators[static_cast<std::size_t>(a)]; }
  const Dependences::Node& dependence(loops::Scalar s) const { return deps_.nodes[static_cast<std::size_t>(s.id)]; }

  const loops::Kernel& kernel_;
  const std::string& symbol_;
  const std::vector<std::string>& symbols_;
  const Dependences deps_;
  CudaKernel out_;
  std::optional<Diagnostic> refused_;

  std::vector<int> uses_;                        ///< by value: in other values and in statements
  std::map<int, Home> homes_;                    ///< of scratch
  bool narrow_ = false;                          ///< indices are int; else long long
  std::map<std::string, std::int64_t> extents_;  ///< of loop variables, where known
  std::vector<std::string> arguments_;           ///< "const float* __restrict__ in_x"
  std::set<std::string> argument_names_;
  std::map<std::string, std::string> symbol_names_;  ///< in the text
  std::vector<std::string> buffer_names_;            ///< in the text, by buffer

  // Of the function being written.
  std::vector<Scope> scopes_;
  std::size_t current_ = 0;  ///< the scope being written
  std::set<std::string> taken_;
  std::vector<std::string> accumulator_names_;
  const loops::Loop* group_ = nullptr;
  bool in_thread_ = false;
  bool cooperates_ = false;
  std::set<int> met_;                            ///< sources of what the next line says
  std::map<std::string, std::string> variable_;  ///< names of loop variables that have another in the text
  int group_threads_ = 0;
  bool group_is_warp_ = false;  ///< each warp of a block is a group
  bool barriers_ = true;        ///< threads of the group read what others wrote
  int row_lanes_ = 1;           ///< of the loops over rows
  int row_iterations_ = 0;      ///< of the loops over rows that are held; 0: they are not
  std::set<const loops::Loop*> row_loops_;
  std::vector<Held> held_;
  std::optional<Lanes> lanes_;
  bool from_pack_ = false;  ///< the value computed last is an element of a pack, or held: it needs no name
};

}  // namespace partita::codegen

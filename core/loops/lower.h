#pragma once
#include <deque>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "core/loops/index.h"
#include "core/loops/scalar.h"
#include "core/loops/target.h"

namespace partita::loops {

/// A tensor on the way to loops: a handle into a Lowering. Sizes are concrete.
struct LoweredTensor {
  int id = -1;
  DType dtype = DType::Float32;
  Sizes sizes;

  bool valid() const { return id >= 0; }
  std::size_t dim() const { return sizes.size(); }
  std::int64_t numel() const;
};

/// Where definitions put the scalars of one element. What a read gives (a load, an inlined definition, an accumulator)
/// is the scheduler's choice.
class Body {
 public:
  Body(ScalarBuilder& b, IndexMath& math) : b(b), math(math) {}
  virtual ~Body() = default;

  ScalarBuilder& b;
  IndexMath& math;

  virtual Scalar read(const LoweredTensor& tensor, const Index& index) = 0;

  /// A computed int64 within 0 .. extent-1, as a term of index expressions.
  SymExpr indirect(Scalar position, std::int64_t extent);
  /// An index expression, indirect terms included, as int64.
  Scalar scalar(SymExpr e);
  /// e < bound and so on, of an index expression; folds by range.
  Scalar less(SymExpr a, SymExpr b);
  /// A load or the target of a store: the affine part, and the computed part (invalid when there is none).
  struct Element {
    SymExpr affine;
    Scalar computed;
  };
  Element element(SymExpr e);
  Scalar load(int buffer, SymExpr e, DType dtype);
};

using ElementFunction = std::function<Scalar(Body&, const Index&)>;
using IndexFunction = std::function<Index(Body&, const Index&)>;

/// What a lowered tensor is. Definitions know nothing of memory but what is given to them.
struct Definition {
  enum class Kind : std::uint8_t {
    Memory,  ///< an input, a constant, a result of an extern call
    Map,     ///< value(index): may be computed where it is read
    Reduce,  ///< value(index of space) combined over the `reduced` dims; sizes are space with those dims 1
    Writes,  ///< memory that several loops fill, one after the other
  };
  /// One loop that fills part of a tensor: element target(i) becomes (or grows by) value(i), i over sizes.
  struct Write {
    Sizes sizes;
    ElementFunction value;
    IndexFunction target;
    bool accumulate = false;  ///< adds; targets may repeat
    bool repeats = false;     ///< targets may repeat: the last one, in row-major order, stays
  };

  Kind kind = Kind::Map;
  DType dtype = DType::Float32;
  Sizes sizes;
  std::string origin;  ///< name of the graph node
  ElementFunction value;
  bool is_view = false;  ///< a Map that shares its operand's memory in the graph: value is one read of it
  Sizes space;
  std::vector<bool> reduced;
  ScalarOp combine = ScalarOp::Add;
  double start = 0;
  std::vector<Write> writes;

  // What one probe of the value found; filled by Lowering.
  struct Operand {
    int id;
    Index index;  ///< in the variables v0, v1, ... of sizes (Reduce: of space)
  };
  std::vector<Operand> operands;  ///< direct reads, without repeats
  int weight = 0;                 ///< arithmetic for one element, an addition is 1
  bool is_copy = false;           ///< the value is one read, unchanged
};

/// The definitions of one graph. They are made in order: operands before users.
class Lowering {
 public:
  explicit Lowering(Target target = {}) : target_(std::move(target)) {}

  IndexMath math;
  std::string origin;  ///< given to the definitions made from now on

  const Definition& operator[](int id) const { return definitions_[static_cast<std::size_t>(id)]; }
  const Definition& operator[](const LoweredTensor& t) const { return (*this)[t.id]; }
  int size() const { return static_cast<int>(definitions_.size()); }
  const Target& target() const { return target_; }
  LoweredTensor handle(int id) const;

  LoweredTensor memory(DType dtype, Sizes sizes);
  LoweredTensor map(DType dtype, Sizes sizes, ElementFunction value);
  /// Element i of the result is element source(i) of `from`, sharing its memory in the graph.
  LoweredTensor view(const LoweredTensor& from, Sizes sizes, IndexFunction source);
  /// Over `dims` of space; the result keeps them with size 1. Large reductions to few results are made in two steps.
  LoweredTensor reduce(DType dtype, Sizes space, std::vector<bool> reduced, ScalarOp combine, ElementFunction value);
  LoweredTensor writes(DType dtype, Sizes sizes, std::vector<Definition::Write> writes);

  LoweredTensor cast(const LoweredTensor& t, DType dtype);
  LoweredTensor constant(DType dtype, Sizes sizes, double value);
  /// Broadcasts t to `sizes` (trailing dims match); itself when equal.
  LoweredTensor expand(const LoweredTensor& t, const Sizes& sizes);
  LoweredTensor reshape(const LoweredTensor& t, Sizes sizes);
  /// `op` over dims of t, of the same dtype; keeps reduced dims as 1.
  LoweredTensor reduce(const LoweredTensor& t, ScalarOp op, const std::vector<bool>& reduced);

 private:
  LoweredTensor add(Definition d);
  void probe(Definition& d) const;
  std::deque<Definition> definitions_;
  Target target_;
};

/// Value that leaves `combine` unchanged: 0, 1, +inf or -inf, for integers the extreme value.
double identity(ScalarOp combine, DType dtype);
/// The dtype arithmetic is done in: float32 for half types, else itself.
DType arithmetic_dtype(DType t);
Sizes broadcast_sizes(const Sizes& a, const Sizes& b);

}  // namespace partita::loops

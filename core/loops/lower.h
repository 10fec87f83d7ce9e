#pragma once
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/loops/index.h"
#include "core/loops/scalar.h"
#include "core/loops/target.h"
#include "core/sym/shape_env.h"

namespace partita::loops {

/// A tensor that is being lowered: a handle into a Lowering. Each size is a number, or an expression that is at
/// least 2.
struct LoweredTensor {
  int id = -1;
  DType dtype = DType::Float32;
  SymList sizes;

  bool valid() const { return id >= 0; }
  std::size_t dim() const { return sizes.size(); }
  SymExpr numel() const { return product(sizes); }
};

/// Receives the scalars that a definition computes for one element. The scheduler chooses what a read gives: a load, an
/// inlined definition, or an accumulator.
class Body {
 public:
  Body(ScalarBuilder& b, IndexMath& math) : b(b), math(math) {}
  virtual ~Body() = default;

  ScalarBuilder& b;
  IndexMath& math;

  /// One element of a tensor.
  virtual Scalar read(const LoweredTensor& tensor, const Index& index) = 0;

  /// Makes a computed int64 within 0 .. extent-1 a term of index expressions.
  SymExpr indirect(Scalar position, SymExpr extent);
  /// The int64 value of an index expression, indirect terms included.
  Scalar scalar(SymExpr e);
  /// a < b for index expressions; folds to a constant when ranges decide it.
  Scalar less(SymExpr a, SymExpr b);
  /// Where a load reads or a store writes: the affine part and the computed part (invalid when there is none).
  struct Element {
    SymExpr affine;
    Scalar computed;
  };
  /// The parts of an index expression, and a load by them.
  Element element(SymExpr e);
  Scalar load(int buffer, SymExpr e, DType dtype);
};

using ElementFunction = std::function<Scalar(Body&, const Index&)>;
using IndexFunction = std::function<Index(Body&, const Index&)>;

/// How the elements of a lowered tensor are computed. A definition knows only the memory that it is given.
struct Definition {
  enum class Kind : std::uint8_t {
    Memory,  ///< an input, a constant, a result of an extern call
    Map,     ///< value(index): may be computed where it is read
    Reduce,  ///< value(index of space) combined over the `reduced` dims; `sizes` is `space` with those dims 1
    Writes,  ///< memory that several loops fill one after another
  };
  /// One loop that fills part of a tensor: for every i in sizes, value(i) is stored (or added) at target(i).
  struct Write {
    SymList sizes;
    ElementFunction value;
    IndexFunction target;
    bool accumulate = false;           ///< adds to the element; targets may repeat
    bool repeats = false;              ///< targets may repeat; the last one in row-major order wins
    ScalarOp combine = ScalarOp::Add;  ///< how it accumulates; loops that are compiled only add
  };

  Kind kind = Kind::Map;
  DType dtype = DType::Float32;
  SymList sizes;
  std::string origin;  ///< name of the graph node
  ElementFunction value;
  bool is_view = false;  ///< a Map that shares its operand's memory in the graph: its value is one read of the operand
  SymList space;
  std::vector<bool> reduced;
  ScalarOp combine = ScalarOp::Add;
  double start = 0;
  std::vector<Write> writes;

  // The results of probing the value once. Lowering fills them in.
  struct Read {
    int id;
    Index index;  ///< in the variables v0, v1, ... of `sizes` (Reduce: of `space`)
  };
  std::vector<Read> operands;  ///< tensors read directly, without repeats
  int weight = 0;              ///< arithmetic per element; an addition counts 1
  bool is_copy = false;        ///< the value is one read, unchanged
  bool is_cast = false;        ///< the value is one read in another dtype
  bool has_code = true;        ///< false: it does with complex numbers what the target has no code for
};

/// The definitions of one graph, made in order: operands before users.
class Lowering {
 public:
  /// `shapes` knows the values of symbols that what is lowered is made for, and takes a guard for each decision that
  /// depends on them. It is null when all sizes are numbers.
  explicit Lowering(Target target = {}, std::shared_ptr<ShapeEnv> shapes = nullptr)
      : target_(std::move(target)), shapes_(std::move(shapes)) {}

  /// The value that an expression of sizes has now, for decisions that are right for every value.
  std::int64_t hint(SymExpr e) const;
  /// The value of an expression of sizes, fixed by a guard. Raises what cannot be known.
  std::int64_t number(SymExpr e) const;
  /// Are there sizes that are no numbers?
  bool symbolic() const { return shapes_ != nullptr; }
  /// Sizes of which none that is symbolic may be 0 or 1, which is guarded.
  SymList plain(const SymList& sizes) const;
  /// Strides without Max(1, n), which is n for such sizes.
  SymList plain_strides(SymList strides) const;

  IndexMath math;
  std::string origin;  ///< the origin of the definitions made from now on

  const Definition& operator[](int id) const { return definitions_[static_cast<std::size_t>(id)]; }
  const Definition& operator[](const LoweredTensor& t) const { return (*this)[t.id]; }
  int size() const { return static_cast<int>(definitions_.size()); }
  const Target& target() const { return target_; }
  /// The tensor that a definition makes.
  LoweredTensor handle(int id) const;

  /// Memory that the plan gives (inputs, results of calls), and a tensor whose elements `value` computes.
  LoweredTensor memory(DType dtype, SymList sizes);
  LoweredTensor map(DType dtype, SymList sizes, ElementFunction value);
  /// Element i of the result is element source(i) of `from`, sharing its memory in the graph.
  LoweredTensor view(const LoweredTensor& from, SymList sizes, IndexFunction source);
  /// Reduces over the `reduced` dims of `space`, which the result keeps with size 1. Large reductions to few results
  /// are done in two steps.
  LoweredTensor reduce(DType dtype, SymList space, std::vector<bool> reduced, ScalarOp combine, ElementFunction value);
  LoweredTensor writes(DType dtype, SymList sizes, std::vector<Definition::Write> writes);

  /// t itself if it has the dtype; and a tensor of equal elements.
  LoweredTensor cast(const LoweredTensor& t, DType dtype);
  LoweredTensor constant(DType dtype, SymList sizes, double value);
  /// Broadcasts t to `sizes` (trailing dims match); returns t itself if the sizes are equal.
  LoweredTensor expand(const LoweredTensor& t, const SymList& sizes);
  LoweredTensor reshape(const LoweredTensor& t, SymList sizes);
  /// Reduces t by `op` over the `reduced` dims, which stay with size 1. The dtype stays.
  LoweredTensor reduce(const LoweredTensor& t, ScalarOp op, const std::vector<bool>& reduced);
  SymList broadcast(const SymList& a, const SymList& b) const;

 private:
  LoweredTensor add(Definition d);
  void probe(Definition& d) const;
  std::deque<Definition> definitions_;
  Target target_;
  std::shared_ptr<ShapeEnv> shapes_;
};

/// The identity of `combine`: 0, 1, +inf or -inf; for integers the extreme value.
double identity(ScalarOp combine, DType dtype);

}  // namespace partita::loops

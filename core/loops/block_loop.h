#pragma once
#include <memory>
#include <vector>

#include "core/loops/scalar.h"
#include "core/tensor/tensor.h"

namespace partita::loops {

/// Where an element lies, or what a number is, at each place of a loop nest: `first` + the sum of index[d] *
/// strides[d].
struct Progression {
  Sizes strides;
  std::int64_t first = 0;
};

/// A loop nest that computes the scalars of a body for blocks of elements, node by node. Every Input, Load without a
/// computed index, and Index expression of variables has to be declared. Nodes that no value needs are not computed.
class BlockLoop {
 public:
  BlockLoop(const ScalarBuilder& body, Sizes sizes) : body_(body), sizes_(std::move(sizes)) {}

  /// The node is the element of `from` there; CHECKs that the nest stays within from's memory.
  void load(int node, const Tensor& from, Progression at);
  /// The node is that number.
  void count(int node, Progression number);
  /// Loads with a computed index from this slot read `from`; element 0 is its first.
  void gather(int slot, const Tensor& from) { gathered_.emplace_back(slot, from); }
  /// Stores the value, or combines it with the element by `combine` (Const: stores). `to` may be loaded where each
  /// place loads just what it stores.
  void store(Scalar value, const Tensor& to, Progression at, ScalarOp combine = ScalarOp::Const);
  /// The same at the element with a computed number.
  void scatter(Scalar value, const Tensor& to, Scalar element, ScalarOp combine = ScalarOp::Const);

  /// Runs it in row-major order; or, where no place depends on another, in the order of the first store's memory.
  /// Errors as evaluate() in scalar_eval.h.
  Status run(bool in_order);

 private:
  struct Leaf {
    int node;
    Tensor from;  ///< without storage: a number
    Progression at;
  };
  struct Result {
    Scalar value;
    Tensor to;
    Progression at;
    Scalar element;  ///< invalid: at `at`
    ScalarOp combine;
  };
  struct Step;
  struct Nest;
  class Cursor;

  std::vector<bool> needed() const;
  const Tensor& gathered(int slot) const;
  void take(const Leaf& leaf, std::size_t operand, const Nest& nest, const Cursor& cursor, std::int64_t at,
            std::int64_t n);
  void give(const Result& result, std::size_t operand, const Cursor& cursor, std::int64_t n);
  void compute(const Step& step, std::int64_t n);

  const ScalarBuilder& body_;
  Sizes sizes_;
  std::vector<Leaf> leaves_;
  std::vector<Result> results_;
  std::vector<std::pair<int, Tensor>> gathered_;
  std::vector<std::unique_ptr<std::byte[]>> memory_;  // by node
  std::vector<const void*> values_;
};

/// Combines n values with elements that lie `stride` apart (0: with one element), one after the other.
using CombineKernel = void (*)(ScalarOp op, void* to, std::int64_t stride, const void* values, std::int64_t n);
/// For Add, Mul, Min, Max, BitAnd and BitOr. Half types are combined in float32 and rounded each time.
CombineKernel combine_kernel(DType dtype);

}  // namespace partita::loops

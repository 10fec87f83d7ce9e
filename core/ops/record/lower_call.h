#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "core/loops/lower.h"
#include "core/ops/record/call.h"

namespace partita {
struct OpRecord;
}

namespace partita::loops {

/// A call to be lowered to loops. Record functions find bound arguments by schema name and give
/// one lowered tensor for each result. For a case that they do not cover they call fail_unsupported, and the call stays
/// a call.
class LowerCall : public FakeCall {
 public:
  LowerCall(const Schema& schema, Args bound, const Node& node, Lowering& to,
            std::function<LoweredTensor(const Node*)> value)
      : FakeCall(schema, std::move(bound), *node.graph().shapes), node(node), to(to), value_(std::move(value)) {}

  const Node& node;
  Lowering& to;
  bool evaluates = false;              ///< loops that are evaluated read every index, and combine elements in any way
  std::vector<LoweredTensor> results;  ///< in order; an invalid one for a result that is None

  /// A tensor argument by its name.
  LoweredTensor in(std::string_view name) const;
  std::vector<LoweredTensor> ins(std::string_view name) const;  ///< invalid for items that are None
  /// The meta that the node promises for result i.
  const TensorMeta& out(std::size_t i = 0) const;
  SymList out_sizes(std::size_t i = 0) const;
  /// Appends the next result, cast to the promised dtype and reshaped to the promised sizes.
  void give(LoweredTensor t);
  void give_none() { results.emplace_back(); }

  /// A Scalar or float; takes a guard when it is a symbolic integer. A symbolic float is for the call to evaluate.
  Number number(std::string_view name) const;
  /// A dimension argument in [0, rank).
  std::size_t dim(std::string_view name, std::size_t rank) const;
  /// A mask of the dimensions listed; all when the argument is None or empty (none for an empty list of any.dims and
  /// all.dims).
  std::vector<bool> dims(std::string_view name, std::size_t rank) const;

 private:
  std::function<LoweredTensor(const Node*)> value_;
};

using LowerFunction = void (*)(LowerCall&);

/// A pointwise body over broadcast inputs, each cast to `compute`; the result has dtype `compute` or b8, as f gives.
using ScalarFunction = std::function<Scalar(ScalarBuilder& b, std::span<const Scalar> x)>;
LoweredTensor pointwise(Lowering& to, DType compute, DType result, const std::vector<LoweredTensor>& inputs,
                        ScalarFunction f);

/// Gives the elements of an argument, broadcast to the result's sizes, in memory of their own.
void give_copy(LowerCall& call, std::string_view argument);

/// A pointwise record's value as a definition, which keeps the call.
void lower_pointwise(const OpRecord& record, std::shared_ptr<LowerCall> call);

}  // namespace partita::loops

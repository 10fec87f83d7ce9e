#pragma once
// What record functions (fake, eval, decompose, derivative) are given. They report errors with fail(). The entry
// functions in ops/record.h turn these into a Result, so record functions return plain values.
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/base/raise.h"
#include "core/ir/graph.h"
#include "core/ops/schema/schema.h"
#include "core/tensor/generator.h"
#include "core/tensor/value.h"

namespace partita {

class Communicator;

/// Reports bad arguments, with PyTorch's message where it has one: "mat1 and mat2 shapes cannot be multiplied (2x3 and
/// 4x5)".
[[noreturn]] void fail(std::string message);
/// Reports a case that the record does not cover (layout, dtype, mode); exit code 3. `message` names the case and is
/// preceded by "not supported: ".
[[noreturn]] void fail_unsupported(std::string message);

/// A Python number together with its kind, which type promotion needs.
using Number = std::variant<bool, std::int64_t, double, std::complex<double>>;
double as_double(const Number& n);
std::int64_t as_int(const Number& n);
std::optional<Number> as_number(const Arg& arg);  ///< nullopt unless the argument is a literal number
DType number_dtype(const Number& n);              ///< bool, int64, float32 (the default dtype), complex64

/// The arguments of a call, as nodes and literals (Arg) or as values (Value). They are found by schema name. Asking for
/// one that is None fails; has() tells.
template <class Item>
class BoundArguments {
 public:
  BoundArguments(const Schema& schema, std::vector<Item> bound) : schema(schema), args(std::move(bound)) {}

  const Schema& schema;
  const std::vector<Item> args;  ///< in schema order

  /// By name; fail when the schema has no such argument, or it is of another kind.
  const Item& arg(std::string_view name) const;
  bool has(std::string_view name) const { return !arg(name).is_none(); }
  /// The argument as what its name says; fails when it is something else.
  bool boolean(std::string_view name) const;
  std::vector<bool> booleans(std::string_view name) const;  ///< a bool[n] argument such as output_mask
  std::string string(std::string_view name) const { return required<std::string>(name, "a string"); }
  std::optional<DType> dtype(std::string_view name) const { return optional<DType>(name, "a dtype"); }
  std::optional<Device> device(std::string_view name) const { return optional<Device>(name, "a device"); }
  std::optional<MemoryFormat> memory_format(std::string_view name) const {
    return optional<MemoryFormat>(name, "a memory format");
  }

 protected:
  [[noreturn]] void wrong(std::string_view name, const char* wanted) const;

 private:
  template <class T>
  T required(std::string_view name, const char* wanted) const {
    if (auto* t = arg(name).template get<T>()) return *t;
    wrong(name, wanted);
  }
  template <class T>
  std::optional<T> optional(std::string_view name, const char* wanted) const {
    return has(name) ? std::optional(required<T>(name, wanted)) : std::nullopt;
  }
};
extern template class BoundArguments<Arg>;
extern template class BoundArguments<Value>;

/// A call as a fake sees it.
class FakeCall : public BoundArguments<Arg> {
 public:
  FakeCall(const Schema& schema, Args bound, ShapeEnv& shapes)
      : BoundArguments(schema, std::move(bound)), shapes(shapes) {}

  ShapeEnv& shapes;

  /// An argument by its name, as what the function says; fails when it is something else.
  bool is_tensor(std::string_view name) const;
  const TensorMeta& tensor(std::string_view name) const;
  std::vector<const TensorMeta*> tensors(std::string_view name) const;  ///< null for items that are None
  SymExpr sym(std::string_view name) const;                             ///< int or SymInt
  SymList syms(std::string_view name) const;                            ///< a single int for int[n] is repeated n times
  std::int64_t integer(std::string_view name) const;                    ///< takes a guard when it is symbolic
  Sizes integers(std::string_view name) const;                          ///< takes guards when they are symbolic
  /// A Scalar or float. Takes a guard when it is a symbolic integer; one that is known only at run time is refused as
  /// unsupported.
  Number number(std::string_view name) const;
  std::optional<Number> known_number(std::string_view name) const;  ///< nullopt for a symbol
  DType dtype_of_number(std::string_view name) const;               ///< number_dtype(), which a symbol tells, too
  /// The truth of a condition. Takes a guard when it is symbolic.
  bool test(SymExpr condition, const char* reason) const;
};

/// What an evaluation needs from the run that it is part of.
struct EvalContext {
  int threads = 1;
  Generator* generator = nullptr;        ///< null: evaluate() makes one with the default seed
  const Progress* progress = nullptr;    ///< stops long loops of an evaluation; null: nobody does
  Communicator* communicator = nullptr;  ///< the other ranks; null: collectives are refused
  std::string node = {};                 ///< the name of the call's node, for messages; may be empty
};

/// A call as an evaluation sees it: its arguments are values.
class EvalCall : public BoundArguments<Value> {
 public:
  /// Precondition: context.generator is not null.
  EvalCall(const Schema& schema, std::vector<Value> bound, const EvalContext& context)
      : BoundArguments(schema, std::move(bound)), context(context) {}

  const EvalContext context;

  /// An argument by its name, as what the function says; fails when it is something else.
  bool is_tensor(std::string_view name) const;
  const Tensor& tensor(std::string_view name) const;
  std::vector<const Tensor*> tensors(std::string_view name) const;
  std::int64_t integer(std::string_view name) const;
  Sizes integers(std::string_view name) const;
  Number number(std::string_view name) const;
  Generator& generator() const { return *context.generator; }
};

/// Appends calls to a graph and propagates metas through each call, so that later ones can ask for them.
class Builder {
 public:
  /// New nodes are inserted before `before` (at the end when it is null) and have `origin`.
  Builder(Graph& graph, Node* before, std::shared_ptr<const Origin> origin = nullptr)
      : graph(graph), before(before), origin(std::move(origin)) {}

  Graph& graph;
  Node* before;
  std::shared_ptr<const Origin> origin;

  /// Calls an overload by name ("aten.add.Tensor"), or a base name ("aten.add") resolved by the arguments.
  Node* call(std::string_view op, Args args, Kwargs kwargs = {});
  Node* call(const Op* op, Args args, Kwargs kwargs = {});  ///< an overload, with its meaning
  Node* getitem(Node* tuple, std::int64_t index);
  /// A symbolic size as an argument: an int, or the node that holds the symbol. Makes the node from sizes of tensors
  /// where there is none.
  Arg size(SymExpr e);
  Arg sizes(const SymList& list);
  /// Builds an expression over bound names in the IR's syntax: "grad * (1 - result * result)", "mm(grad, t(mat2))",
  /// "x[0]", "sum(grad, [0], keepdim=True)". Functions without a dot in their name are aten functions; + - * / and
  /// unary - are aten.add/sub/mul/div/neg. "a if upper else b" makes the nodes of one side only; conditions are over
  /// arguments that are known: bools, "x is None", "reduce == 'sum'", with not, and, or.
  Arg expression(std::string_view text, const std::vector<std::pair<std::string, Arg>>& names);

  static const TensorMeta& tensor(const Arg& node);  ///< the meta of a tensor node; fails when it is not known
};

/// A call to be replaced by simpler ones.
class DecomposeCall : public FakeCall {
 public:
  DecomposeCall(const Schema& schema, Args bound, Builder& build)
      : FakeCall(schema, std::move(bound), *build.graph.shapes), build(build) {}
  Builder& build;
};

/// A call to be differentiated. The gradient function builds the gradients' nodes.
class GradCall : public FakeCall {
 public:
  GradCall(const Schema& schema, Args bound, Builder& build, Node* node, std::vector<Node*> results,
           std::vector<Node*> grads, std::vector<bool> wants)
      : FakeCall(schema, std::move(bound), *build.graph.shapes),
        build(build),
        node(node),
        results(std::move(results)),
        grads(std::move(grads)),
        wants(std::move(wants)) {}
  Builder& build;
  Node* node;                  ///< the forward node
  std::vector<Node*> results;  ///< its outputs as nodes: itself, or its getitems (made where missing)
  std::vector<Node*> grads;    ///< gradient of each output; null where there is none
  std::vector<bool> wants;     ///< for each schema argument: whether its gradient is asked for

  /// Gradients of the items of Tensor[] arguments, by argument position. The gradient functions of cat, stack and
  /// others fill it.
  std::map<int, std::vector<Node*>> list_grads = {};

  /// Is the gradient of that argument asked for?
  bool want(std::string_view name) const;
};

}  // namespace partita

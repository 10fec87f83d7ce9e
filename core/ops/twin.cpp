#include "core/ops/twin.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace partita {
namespace {

/// Pairs the arguments of the functional variant with those of `mutating`, except its out arguments. False when they do
/// not match.
bool pair_arguments(const Schema& mutating, const Schema& twin, FunctionalTwin& out) {
  out.from.clear();
  for (const SchemaArg& a : twin.args) {
    int i = mutating.index_of(a.name);
    if (i < 0) return false;
    const SchemaArg& own = mutating.args[static_cast<std::size_t>(i)];
    if (own.type != a.type || own.is_list != a.is_list) return false;
    out.from.push_back(i);
  }
  bool in_place = !mutating.args.empty() && mutating.args[0].is_write;
  std::size_t outs = in_place ? 0 : out.written.size();
  return twin.args.size() + outs == mutating.args.size();
}

/// Copies a result into the argument that it belongs to, item by item for lists. A result of another size is refused.
/// (PyTorch resizes out arguments and addbmm_'s self, and reports an error for most others.)
Status write(const Value& target, const Value& result, const Schema& schema) {
  auto *targets = target.get<ValueList>(), *results = result.get<ValueList>();
  if (targets && results && targets->size() == results->size()) {
    for (std::size_t i = 0; i < targets->size(); ++i) TRY_DO(write((*targets)[i], (*results)[i], schema));
    return {};
  }
  auto *to = target.get<Tensor>(), *from = result.get<Tensor>();
  if (!to || !from)
    return input_error("ops.arguments", fmt::format("{}: the argument written must be a tensor", schema.name));
  if (to->sizes != from->sizes)
    return unsupported("ops.resize",
                       fmt::format("{} on an argument of size [{}], which the result of size [{}] does not fit",
                                   schema.name, fmt::join(to->sizes, ", "), fmt::join(from->sizes, ", ")));
  to->copy_from(*from);
  return {};
}

}  // namespace

std::optional<FunctionalTwin> functional_twin(const Op* op) {
  const Schema* schema = find_schema(op);
  if (!schema || !schema->is_mutable) return std::nullopt;
  FunctionalTwin twin;
  for (std::size_t i = 0; i < schema->args.size(); ++i)
    if (schema->args[i].is_write) twin.written.push_back(static_cast<int>(i));
  if (twin.written.empty()) return std::nullopt;
  std::string base = schema->base;
  if (base.ends_with("_") && !base.ends_with("__")) base.pop_back();
  for (const std::string& name : {base, base + "_functional"})  // normal_ has the functional variant normal_functional
    for (const Schema* candidate : find_overloads(name)) {
      if (candidate->is_mutable || candidate->returns.size() != twin.written.size()) continue;
      if (!pair_arguments(*schema, *candidate, twin)) continue;
      twin.op = Op::torch(candidate->name);
      twin.schema = candidate;
      return twin;
    }
  return std::nullopt;
}

Result<Meta> infer_twin(const FunctionalTwin& twin, const Schema& schema, const Args& bound, ShapeEnv& shapes,
                        const Node* node) {
  Args args;
  Kwargs kwargs;
  for (std::size_t i = 0; i < twin.from.size(); ++i) {
    const Arg& value = bound[static_cast<std::size_t>(twin.from[i])];
    if (twin.schema->args[i].keyword_only)
      kwargs.emplace_back(twin.schema->args[i].name, value);
    else
      args.push_back(value);
  }
  TRY(Meta functional, infer(twin.op, args, kwargs, shapes, node));
  // t_, squeeze_: the argument itself becomes the view.
  if (twin.schema->is_view) return functional;
  if (schema.returns.empty()) return Meta();  // _foreach_add_ writes the lists and returns nothing
  if (!schema.args[static_cast<std::size_t>(twin.written[0])].keyword_only) {
    // An in-place call returns its argument, with the argument's dtype and strides.
    if (Node* self = bound[static_cast<std::size_t>(twin.written[0])].node()) return self->meta;
  }
  return functional;
}

Result<Value> evaluate_twin(const FunctionalTwin& twin, const Schema& schema, std::vector<Value> bound,
                            const EvalContext& context, const Node* node) {
  std::vector<Value> args;
  std::vector<std::pair<std::string, Value>> kwargs;
  for (std::size_t i = 0; i < twin.from.size(); ++i) {
    const Value& value = bound[static_cast<std::size_t>(twin.from[i])];
    if (twin.schema->args[i].keyword_only)
      kwargs.emplace_back(twin.schema->args[i].name, value);
    else
      args.push_back(value);
  }
  TRY(Value result, evaluate(twin.op, std::move(args), std::move(kwargs), context, node));
  if (twin.schema->is_view) return result;
  bool several = twin.written.size() != 1;
  auto* results = several ? result.get<ValueList>() : nullptr;
  if (several && (!results || results->size() != twin.written.size()))
    return input_error(
        "ops.arguments",
        fmt::format("{}: the functional variant must return one result for each argument written", schema.name));
  ValueList written;
  for (std::size_t i = 0; i < twin.written.size(); ++i) {
    const Value& target = bound[static_cast<std::size_t>(twin.written[i])];
    TRY_DO(write(target, results ? (*results)[i] : result, schema));
    written.push_back(target);
  }
  if (schema.returns.empty()) return Value();
  if (written.size() == 1) return written[0];
  return Value(std::move(written));
}

}  // namespace partita

#include "core/ops/schema/functional_variant.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/tensor/repeated_elements.h"

namespace partita {
namespace {

/// Pairs the arguments of the functional variant with those of `mutating`, except its out arguments. False when they do
/// not match.
bool pair_arguments(const Schema& mutating, const Schema& variant, FunctionalVariant& out) {
  out.from.clear();
  for (const SchemaArg& a : variant.args) {
    int i = mutating.index_of(a.name);
    if (i < 0) return false;
    const SchemaArg& own = mutating.args[static_cast<std::size_t>(i)];
    if (own.type != a.type || own.is_list != a.is_list) return false;
    out.from.push_back(i);
  }
  bool in_place = !mutating.args.empty() && mutating.args[0].is_write;
  std::size_t outs = in_place ? 0 : out.written.size();
  return variant.args.size() + outs == mutating.args.size();
}

/// Does the operator write through a TensorIterator that refuses elements that are one place in memory?
bool refuses_repeated(const Op* functional) {
  const OpRecord* record = find_record(functional);
  return record &&
         (record->role == Role::CopiesSecond || (record->pointwise.body && record->pointwise.condition.empty()));
}

/// Copies a result into the argument that it belongs to, item by item for lists.
Status write(const Value& target, const Value& result, const FunctionalVariant& variant, const Schema& schema) {
  auto *targets = target.get<ValueList>(), *results = result.get<ValueList>();
  if (targets && results && targets->size() == results->size()) {
    for (std::size_t i = 0; i < targets->size(); ++i) TRY_DO(write((*targets)[i], (*results)[i], variant, schema));
    return {};
  }
  auto *to = target.get<Tensor>(), *from = result.get<Tensor>();
  if (!to || !from)
    return input_error("ops.arguments", fmt::format("{}: the argument written must be a tensor", schema.name));
  TRY_DO(check_fits(schema, to->dtype, {to->sizes.begin(), to->sizes.end()}, from->dtype,
                    {from->sizes.begin(), from->sizes.end()}));
  if (repeats_elements(*to) && refuses_repeated(variant.op)) return input_error("ops.arguments", repeated_elements);
  to->copy_from(*from);
  return {};
}

/// c10::canCast: not from complex to real numbers, from floats to integers, or from numbers to bool.
bool can_cast(DType from, DType to) {
  if (is_complex(from) && !is_complex(to)) return false;
  if (is_floating(from) && !is_floating(to) && !is_complex(to)) return false;
  return from == DType::Bool || to != DType::Bool;
}

/// _foreach_add_([a, b], [b, a]) writes a before it reads it for b. The functional variant would read the old a.
Status refuse_reads_between_writes(const Schema& schema, const std::vector<Value>& bound) {
  for (std::size_t w = 0; w < bound.size(); ++w) {
    const auto* written = schema.args[w].is_write ? bound[w].get<ValueList>() : nullptr;
    for (std::size_t r = 0; written && r < bound.size(); ++r) {
      const auto* read = r == w ? nullptr : bound[r].get<ValueList>();
      for (std::size_t i = 0; read && i < written->size(); ++i)
        for (std::size_t j = i + 1; j < read->size(); ++j) {
          const auto *a = (*written)[i].get<Tensor>(), *b = (*read)[j].get<Tensor>();
          if (a && b && a->storage == b->storage)
            return unsupported("ops.foreach", schema.name + " reads a tensor of its list after it has written it");
        }
    }
  }
  return {};
}

}  // namespace

Status check_fits(const Schema& mutating, DType to, const SymList& to_sizes, DType from, const SymList& from_sizes) {
  if (!can_cast(from, to))
    return input_error("ops.arguments", fmt::format("{}: result type {} can't be cast to the desired output type {}",
                                                    mutating.name, torch_name(from), torch_name(to)));
  // Sizes that are written differently may be equal when the graph runs.
  const auto agree = [](SymExpr a, SymExpr b) { return a == b || !a.is_int() || !b.is_int(); };
  if (std::ranges::equal(to_sizes, from_sizes, agree)) return {};
  return unsupported("ops.resize",
                     fmt::format("{} on an argument of size [{}], which the result of size [{}] does not fit",
                                 mutating.name, join(to_sizes), join(from_sizes)));
}

std::optional<FunctionalVariant> functional_variant(const Op* op) {
  const Schema* schema = find_schema(op);
  if (!schema || !schema->is_mutable) return std::nullopt;
  FunctionalVariant variant;
  for (std::size_t i = 0; i < schema->args.size(); ++i)
    if (schema->args[i].is_write) variant.written.push_back(static_cast<int>(i));
  if (variant.written.empty()) return std::nullopt;
  std::string base = schema->base;
  if (base.ends_with("_") && !base.ends_with("__")) base.pop_back();
  // Collectives have their out forms under a name of their own, where others have an overload.
  constexpr std::string_view out_form = "_out";
  if (base.ends_with(out_form)) base.resize(base.size() - out_form.size());
  for (const std::string& name : {base, base + "_functional"})  // normal_ has the functional variant normal_functional
    for (const Schema* candidate : find_overloads(name)) {
      if (candidate->is_mutable || candidate->returns.size() != variant.written.size()) continue;
      if (!pair_arguments(*schema, *candidate, variant)) continue;
      variant.op = Op::torch(candidate->name);
      variant.schema = candidate;
      return variant;
    }
  return std::nullopt;
}

Node* call_in_order(Builder& build, const Schema& schema, const Args& bound) {
  Args args;
  Kwargs kwargs;
  for (std::size_t i = 0; i < bound.size(); ++i) {
    if (schema.args[i].keyword_only)
      kwargs.emplace_back(schema.args[i].name, bound[i]);
    else
      args.push_back(bound[i]);
  }
  return build.call(schema.name, std::move(args), std::move(kwargs));
}

Node* call_functional(Builder& build, const FunctionalVariant& variant, const Node& call) {
  const Args bound = unwrap(bind_arguments(*find_schema(call.op()), call.args(), call.kwargs()));
  Args args;
  for (const int from : variant.from) args.push_back(bound[static_cast<std::size_t>(from)]);
  return call_in_order(build, *variant.schema, args);
}

Result<Meta> infer_variant(const FunctionalVariant& variant, const Schema& schema, const Args& bound, ShapeEnv& shapes,
                           const Node* node) {
  Args args;
  Kwargs kwargs;
  for (std::size_t i = 0; i < variant.from.size(); ++i) {
    const Arg& value = bound[static_cast<std::size_t>(variant.from[i])];
    if (variant.schema->args[i].keyword_only)
      kwargs.emplace_back(variant.schema->args[i].name, value);
    else
      args.push_back(value);
  }
  TRY(Meta functional, infer(variant.op, args, kwargs, shapes, node));
  // t_, squeeze_: the argument itself becomes the view.
  if (variant.schema->is_view) return functional;
  // _foreach_add_ returns nothing in eager mode, but graphs after Inductor's passes read the lists that it wrote.
  if (schema.returns.empty() && variant.written.size() != 1) return Meta();
  if (!schema.args[static_cast<std::size_t>(variant.written[0])].keyword_only) {
    // An in-place call returns its argument, with the argument's dtype and strides.
    if (Node* self = bound[static_cast<std::size_t>(variant.written[0])].node()) return self->meta;
  }
  return functional;
}

Result<Value> evaluate_variant(const FunctionalVariant& variant, const Schema& schema, std::vector<Value> bound,
                               const EvalContext& context, const Node* node) {
  TRY_DO(refuse_reads_between_writes(schema, bound));
  std::vector<Value> args;
  std::vector<std::pair<std::string, Value>> kwargs;
  for (std::size_t i = 0; i < variant.from.size(); ++i) {
    const Value& value = bound[static_cast<std::size_t>(variant.from[i])];
    if (variant.schema->args[i].keyword_only)
      kwargs.emplace_back(variant.schema->args[i].name, value);
    else
      args.push_back(value);
  }
  TRY(Value result, evaluate(variant.op, std::move(args), std::move(kwargs), context, node));
  if (variant.schema->is_view) return result;
  bool several = variant.written.size() != 1;
  auto* results = several ? result.get<ValueList>() : nullptr;
  if (several && (!results || results->size() != variant.written.size()))
    return input_error(
        "ops.arguments",
        fmt::format("{}: the functional variant must return one result for each argument written", schema.name));
  ValueList written;
  for (std::size_t i = 0; i < variant.written.size(); ++i) {
    const Value& target = bound[static_cast<std::size_t>(variant.written[i])];
    TRY_DO(write(target, results ? (*results)[i] : result, variant, schema));
    written.push_back(target);
  }
  if (written.size() == 1) return written[0];
  if (schema.returns.empty()) return Value();
  return Value(std::move(written));
}

}  // namespace partita

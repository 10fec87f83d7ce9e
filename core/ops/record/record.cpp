// The operator table, and infer, evaluate, decompose and differentiate. Each binds the arguments, takes the record's
// function or derives one (pointwise, functional variant, decomposition), and checks dtypes and devices.
#include "core/ops/record/record.h"

#include <algorithm>
#include <functional>
#include <map>

#include <fmt/format.h>

#include "core/base/check.h"
#include "core/base/memory.h"
#include "core/base/raise.h"
#include "core/ir/extent.h"
#include "core/ir/place.h"
#include "core/ops/facts/control.h"
#include "core/ops/python/python_ops.h"
#include "core/ops/record/communicator.h"
#include "core/ops/record/complex_half.h"
#include "core/ops/record/evaluate.h"
#include "core/ops/record/families.h"
#include "core/ops/record/formula.h"
#include "core/ops/record/loop_budget.h"
#include "core/ops/record/operator_program.h"
#include "core/ops/record/pointwise.h"
#include "core/ops/record/user_operator.h"
#include "core/ops/record/values.h"
#include "core/ops/schema/functional_variant.h"
#include "core/tensor/float8.h"

namespace partita {
namespace {

/// Is it of a library of PyTorch's own?
bool is_pytorchs(const Op* op) {
  constexpr std::string_view libraries[] = {"aten", "prims", "partita", "higher_order", "inductor"};
  return std::ranges::any_of(libraries, [&](std::string_view library) { return op->of_library(library); });
}

Diagnostic unknown(const Op* op, const char* aspect, const Node* node) {
  constexpr std::string_view list = "`partita ops` lists the known operators";
  const std::string what =
      find_record(op)   ? fmt::format("operator {} has no {}; {}", op->name, aspect, list)
      : is_pytorchs(op) ? fmt::format("no record for operator {}; {}", op->name, list)
                        : fmt::format(
                              "no record for operator {}; its code is not in the file: --operators FOLDER gives it a "
                              "meaning as text, --python-import MODULE, the module that registers it, gives it one on "
                              "interp and torch: backends; `partita ops --missing` lists what a file needs",
                              op->name);
  return unsupported("ops.unknown", what, place_of(node));
}

/// Runs a record function. An error that it raises is returned, with the node's name added.
template <class T, class F>
Result<T> guarded(const Node* node, F f) {
  return node ? catch_raised_at<T>(*node, f) : catch_raised<T>(f);
}

void check_extents(const Meta& meta) {
  if (const MetaTuple* tuple = meta.tuple())
    for (const Meta& item : tuple->items) check_extents(item);
  if (const TensorMeta* t = meta.tensor()) unwrap(check_extent(*t));
}

/// Refuses tensors on several devices, as FakeTensor does, in the words of eager mode. A number on the CPU may be
/// combined with tensors on any device. Lists go by position where the results are a list or none, as in _foreach_add.
void check_devices(const OpRecord& record, const Args& bound) {
  struct Common {
    Device device;
    bool is_number = false;
  };
  std::map<std::size_t, Common> common;
  const auto same = [](Device a, Device b) {
    return a.type == b.type && (a.index == b.index || a.index < 0 || b.index < 0);
  };
  const auto meet = [&](const Arg& arg, std::string_view name, std::size_t place) {
    const TensorMeta* t = arg.node() ? arg.node()->meta.tensor() : nullptr;
    if (!t || !t->device_known) return;
    const bool is_number = t->device.type == DeviceType::Cpu && t->sizes.empty();
    const auto [first, fresh] = common.try_emplace(place, t->device, is_number);
    Common& c = first->second;
    if (fresh || (c.is_number && !is_number)) {
      c = {t->device, is_number};
      return;
    }
    if (!is_number && !same(c.device, t->device))
      fail(fmt::format(
          "Expected all tensors to be on the same device, but got {} is on {}, different from other tensors "
          "on {} (when checking argument in method {})",
          name, t->device.str(), c.device.str(), record.schema->name));
  };
  const Schema& schema = *record.schema;
  const bool by_position = std::ranges::all_of(schema.returns, &SchemaArg::is_list);
  for (std::size_t i = 0; i < bound.size() && i < schema.args.size(); ++i) {
    const std::string& name = schema.args[i].name;
    if (name == record.from_any_device) continue;
    const ArgList* list = bound[i].get<ArgList>();
    if (!list) meet(bound[i], name, 0);
    for (std::size_t k = 0; list && k < list->items.size(); ++k) meet(list->items[k], name, by_position ? k + 1 : 0);
  }
}

Result<Meta> infer_record(const OpRecord& record, Args bound, ShapeEnv& shapes, const Node* node) {
  FakeCall call(*record.schema, std::move(bound), shapes);
  return guarded<Meta>(node, [&]() -> Meta {
    check_devices(record, call.args);
    Meta meta = record.fake ? record.fake(call) : fake_pointwise(record, call);
    check_extents(meta);
    return meta;
  });
}

/// Infers metas by decomposing the call into a graph that is thrown away.
Result<Meta> infer_by_decomposition(const OpRecord& record, const Args& bound, ShapeEnv& shapes, const Node* node) {
  Graph scratch("decomposition");
  scratch.shapes = std::shared_ptr<ShapeEnv>(&shapes, [](ShapeEnv*) {});
  std::unordered_map<Node*, Node*> inputs;
  auto import = [&](Node* n) -> Arg {
    Node*& scratch_input = inputs[n];
    if (!scratch_input) scratch_input = scratch.placeholder(n->name(), n->meta);
    return scratch_input;
  };
  Builder build(scratch, nullptr);
  DecomposeCall call(*record.schema, map_nodes(bound, import), build);
  return guarded<Meta>(node, [&]() -> Meta {
    Arg result = record.decompose(call);
    if (Node* n = result.node()) return n->meta;
    auto* list = result.get<ArgList>();
    if (!list) return {};
    MetaTuple tuple;
    for (const Arg& item : list->items) tuple.items.push_back(item.node() ? item.node()->meta : Meta());
    return tuple;
  });
}

}  // namespace

void OpTable::add(std::string_view name, OpRecord record) {
  record.schema = find_schema(name);
  CHECK(record.schema, "no schema for " + std::string(name));
  const Op* op = Op::torch(name);
  CHECK(!by_op_.contains(op), "registered twice: " + std::string(name));
  if (!record.program.empty())
    record.decompose = [](DecomposeCall& call) {
      return build_program(call, ops().find(Op::torch(call.schema.name))->program);
    };
  if (!record.eval && !record.pointwise.body && !record.decompose) {
    if (record.lower)
      record.eval = eval_by_loops;
    else if (record.compile_decompose)
      record.eval = eval_by_compile_decomposition;
  }
  if (record.family == Family::Other) record.family = derived_family(record);
  if (record.family == Family::Other) record.family = default_family;
  if (record.family == Family::Other && record.cost.expensive) record.family = Family::Matmul;
  records_.push_back(std::make_unique<OpRecord>(std::move(record)));
  by_op_[op] = records_.back().get();
}

void OpTable::add(std::string_view name, Meta (*fake)(FakeCall&), Value (*eval)(EvalCall&),
                  std::vector<Derivative> derivative, OpRecord more) {
  more.fake = fake;
  more.eval = eval;
  more.autograd.derivative = std::move(derivative);
  add(name, std::move(more));
}

void OpTable::add_formula_functions(std::initializer_list<std::pair<std::string_view, FormulaFunction>> functions) {
  for (const auto& [name, function] : functions)
    CHECK(formula_functions_.emplace(name, function).second, "registered twice: " + std::string(name));
}

void OpTable::add_without_record(std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) without_record_.emplace(name, default_family);
}

std::optional<Family> OpTable::family_without_record(std::string_view base) const {
  const auto it = without_record_.find(base);
  return it == without_record_.end() ? std::nullopt : std::optional(it->second);
}

FormulaFunction OpTable::find_formula_function(std::string_view name) const {
  auto it = formula_functions_.find(name);
  return it == formula_functions_.end() ? nullptr : it->second;
}

const OpRecord* OpTable::find(const Op* op) const {
  if (const UserOperator* meaning = meaning_of(op)) return &meaning->record;
  auto it = by_op_.find(op);
  return it == by_op_.end() ? nullptr : it->second;
}

std::vector<const OpRecord*> OpTable::all() const {
  std::vector<const OpRecord*> out;
  for (const auto& r : records_) out.push_back(r.get());
  std::sort(out.begin(), out.end(), [](auto* a, auto* b) { return a->schema->name < b->schema->name; });
  return out;
}

const TensorMeta* tensor_argument(const Node& call, std::size_t i) {
  const Node* n = i < call.args().size() ? call.args()[i].node() : nullptr;
  return n ? n->meta.tensor() : nullptr;
}

const OpTable& ops() {
  static const OpTable table = [] {
    OpTable t;
    register_families(t);
    return t;
  }();
  return table;
}

const OpRecord* find_record(const Op* op) {
  if (const OpRecord* record = ops().find(op)) return record;
  std::optional<FunctionalVariant> variant = functional_variant(op);
  return variant ? ops().find(variant->op) : nullptr;
}

Result<Meta> infer(const Op* op, const Args& args, const Kwargs& kwargs, ShapeEnv& shapes, const Node* node) {
  if (op->is_call() && op->kind != OpKind::Torch)
    return guarded<Meta>(node, [&] { return infer_python(op, args, kwargs, shapes, node); });
  if (is_kernel(op)) return Meta();  // nothing, or a dict, whose items infer_python() knows
  const Schema* schema = find_schema(op);
  if (!schema) return unknown(op, "schema", node);
  TRY(Args bound, bind_arguments(*schema, args, kwargs));
  const OpRecord* record = ops().find(op);
  if (!record) {
    if (auto variant = functional_variant(op)) return infer_variant(*variant, *schema, bound, shapes, node);
    return unknown(op, "fake", node);
  }
  if (record->fake || record->pointwise.body) return infer_record(*record, std::move(bound), shapes, node);
  if (record->decompose) return infer_by_decomposition(*record, bound, shapes, node);
  return unknown(op, "fake", node);
}

Result<Meta> infer(const Node& node) {
  return infer(node.op(), node.args(), node.kwargs(), *node.graph().shapes, &node);
}

namespace {

/// Values of float8 and opaque dtypes may be stored and viewed, those of float8 converted and of opaque dtypes copied,
/// but there is no arithmetic on them. Of complex32 there is what PyTorch has.
Status check_computable(DType t, const Op* op, const Node* node) {
  if (has_arithmetic(t)) return {};
  const OpRecord* record = ops().find(op);
  if (record && record->precision.takes_float8) return {};
  if (t == DType::Complex32) return takes_complex_half(op) ? Status() : complex_half_error(*op, node);
  return unsupported("ops.dtype", fmt::format("{} of {}", op->name, torch_name(t)), place_of(node));
}

/// A copy has the dtype of what is copied, if either is opaque: bits that have no value cannot be converted.
Status check_copy(DType from, DType to, const Op* op, const Node* node) {
  if (from == to || (!is_opaque(from) && !is_opaque(to))) return {};
  return unsupported("ops.dtype", fmt::format("{} of {} to {}", op->name, torch_name(from), torch_name(to)),
                     place_of(node));
}

Status check_elements(std::int64_t n, const Op* op, const Node* node) {
  if (n < 0 || static_cast<std::uint64_t>(n) <= memory_limit()) return {};
  return input_error(
      "ops.elements",
      fmt::format("{} of {} elements: they are more than the limit on memory has bytes ({}); use smaller "
                  "sizes, or raise it with --memory-limit",
                  op->name, n, memory_limit()),
      place_of(node));
}

Status check_computable(const Value& v, const Op* op, const Node* node) {
  if (auto* list = v.get<ValueList>())
    for (const Value& item : *list) TRY_DO(check_computable(item, op, node));
  if (auto* t = v.get<Tensor>()) {
    TRY_DO(reachable(t->device()));
    TRY_DO(check_elements(t->numel(), op, node));
    return check_computable(t->dtype, op, node);
  }
  if (auto* dtype = v.get<DType>()) return check_computable(*dtype, op, node);
  return {};
}

/// Checks results too: a complex number combined with a half type gives complex32.
Status check_computable(const Meta& m, const Op* op, const Node* node) {
  if (auto* tuple = m.tuple())
    for (const Meta& item : tuple->items) TRY_DO(check_computable(item, op, node));
  if (auto* t = m.tensor()) return check_computable(t->dtype, op, node);
  return {};
}

/// Evaluates by the text. Results have memory of their own, as those of a call that stays one.
Result<Value> evaluate_user_operator(const OpRecord& record, std::vector<Value> bound, const EvalContext& context,
                                     const Node* node) {
  const std::vector<Value> given = bound;
  TRY(Value result, evaluate_by_decomposition(*record.schema, record.decompose, std::move(bound), context, node));
  const std::function<bool(const Tensor&, const Value&)> lies_in = [&](const Tensor& t, const Value& v) {
    if (const auto* list = v.get<ValueList>())
      return std::ranges::any_of(*list, [&](const Value& item) { return lies_in(t, item); });
    const auto* argument = v.get<Tensor>();
    return argument && argument->storage == t.storage;
  };
  const auto shares = [&](const Tensor& t) {
    return std::ranges::any_of(given, [&](const Value& v) { return lies_in(t, v); });
  };
  const auto own = [&](Value& v, std::size_t k) {
    auto* t = std::get_if<Tensor>(&v.v);
    if (!t || !shares(*t) || !record.schema->returns[k].alias_set.empty()) return;
    Tensor copy = empty_of(meta_of(*t));
    copy.copy_from(*t);
    *t = std::move(copy);
  };
  if (auto* list = std::get_if<ValueList>(&result.v)) {
    for (std::size_t k = 0; k < list->size(); ++k) own((*list)[k], k);
  } else if (!record.schema->returns.empty()) {
    own(result, 0);
  }
  return result;
}

}  // namespace

Status check_evaluable(const Node& call) {
  const Schema* schema = find_schema(call.op());
  if (!schema || schema->is_view) return {};
  for (const Arg& a : call.args())
    if (auto* dtype = a.get<DType>()) TRY_DO(check_computable(*dtype, call.op(), &call));
  for (const auto& [key, a] : call.kwargs())
    if (auto* dtype = a.get<DType>()) TRY_DO(check_computable(*dtype, call.op(), &call));
  for (const Node* in : call.inputs()) {
    TRY_DO(check_computable(in->meta, call.op(), &call));
    const TensorMeta* t = in->meta.tensor();
    if (const TensorMeta* to = call.meta.tensor(); t && to) TRY_DO(check_copy(t->dtype, to->dtype, call.op(), &call));
    if (const SymExpr n = t ? t->numel() : SymExpr(0); n.is_int()) TRY_DO(check_elements(n.as_int(), call.op(), &call));
  }
  return check_computable(call.meta, call.op(), &call);
}

Result<Value> evaluate(const Op* op, std::vector<Value> args, std::vector<std::pair<std::string, Value>> kwargs,
                       const EvalContext& context, const Node* node) {
  if (op->is_call() && op->kind != OpKind::Torch)
    return guarded<Value>(node, [&] { return evaluate_python(op, std::move(args), std::move(kwargs), node); });
  const Schema* schema = find_schema(op);
  if (!schema) return unknown(op, "schema", node);
  if (!context.generator) {
    Generator own;
    EvalContext with_own = context;
    with_own.generator = &own;
    return evaluate(op, std::move(args), std::move(kwargs), with_own, node);
  }
  Result<std::vector<Value>> bound = bind_values(*schema, std::move(args), std::move(kwargs));
  if (!bound) return std::move(bound).error();
  const OpRecord* record = ops().find(op);
  if (!record) {
    if (auto variant = functional_variant(op))
      return evaluate_variant(*variant, *schema, *std::move(bound), context, node);
    return unknown(op, "eval", node);
  }
  if (!record->eval && !record->pointwise.body) {
    if (!record->decompose) return unknown(op, "eval", node);
    if (meaning_of(op)) return evaluate_user_operator(*record, *std::move(bound), context, node);
    if (!record->fake) return evaluate_by_decomposition(*schema, record->decompose, *std::move(bound), context, node);
  }
  EvalContext own = context;
  if (node && record->collective != CollectivePart::None) own.node = node->name();
  EvalCall call(*schema, *std::move(bound), own);
  if (!schema->is_view) {
    for (const Value& v : call.args) TRY_DO(check_computable(v, op, node));
    // A call that reads what a collective fills must find all of it, also where the program forgot to wait.
    if (context.communicator && record->collective != CollectivePart::Waits)
      for (const Value& v : call.args) TRY_DO(finish(v, *context.communicator));
  }
  return guarded<Value>(node, [&]() -> Value {
    const StopsLoops listening(context.progress);
    const LoopBudget budget;
    if (std::optional<Value> value = eval_complex_half(*record, call, node)) return *std::move(value);
    if (!record->eval && record->pointwise.body) return eval_pointwise(*record, call);
    Meta results;
    // The fake checks the arguments before the kernel runs: kernels rely on sizes that fit together.
    if (record->fake || record->pointwise.body) {
      CallOfValues metas(call);
      results = record->fake ? record->fake(metas.call) : Meta(fake_pointwise(*record, metas.call));
      check_extents(results);
      if (!schema->is_view) {
        unwrap(check_computable(results, op, node));
        for (const Value& v : call.args)
          if (const auto* t = v.get<Tensor>(); t && results.tensor())
            unwrap(check_copy(t->dtype, results.tensor()->dtype, op, node));
      }
    }
    Value value = record->eval
                      ? record->eval(call)
                      : unwrap(evaluate_by_decomposition(*schema, record->decompose, call.args, context, node));
    return schema->is_view ? value : as_promised(std::move(value), results);
  });
}

Result<Arg> decompose(Node& node, bool for_compiler) {
  const OpRecord* record = ops().find(node.op());
  auto function =
      record ? (for_compiler && record->compile_decompose ? record->compile_decompose : record->decompose) : nullptr;
  if (!function) return unknown(node.op(), "decomposition", &node);
  TRY(Args bound, bind_arguments(*record->schema, node.args(), node.kwargs()));
  Builder build(node.graph(), &node, node.origin);
  DecomposeCall call(*record->schema, std::move(bound), build);
  return guarded<Arg>(&node, [&]() -> Arg { return function(call); });
}

namespace {

/// Was a gradient made for argument `i`: `direct`, or one for each item of a list?
bool gives_gradient(const GradCall& call, std::size_t i, const Node* direct) {
  const auto* list = call.args[i].get<ArgList>();
  if (!list) return direct;
  const auto items = call.list_grads.find(static_cast<int>(i));
  return items != call.list_grads.end() && items->second.size() == list->items.size() &&
         std::ranges::all_of(items->second, [](const Node* n) { return n != nullptr; });
}

}  // namespace

Result<std::vector<Node*>> differentiate(Builder& build, Node& node, std::vector<Node*> grads, std::vector<bool> wants,
                                         std::map<int, std::vector<Node*>>* lists) {
  const OpRecord* record = find_record(node.op());
  if (!record) return unknown(node.op(), "derivative", &node);
  if (!record->autograd.gradient && record->autograd.derivative.empty()) return unknown(node.op(), "derivative", &node);
  TRY(Args bound, bind_arguments(*record->schema, node.args(), node.kwargs()));
  return guarded<std::vector<Node*>>(&node, [&]() -> std::vector<Node*> {
    GradCall call(*record->schema, std::move(bound), build, &node, result_nodes(node), std::move(grads),
                  std::move(wants));
    std::vector<Node*> out =
        record->autograd.gradient ? record->autograd.gradient(call) : apply_formulas(record->autograd.derivative, call);
    for (std::size_t i = 0; i < out.size(); ++i) {
      // A formula and a user's text may say that there is none, a function must give zeros.
      if (record->autograd.gradient && !record->schema->meaning && call.wants[i] && !gives_gradient(call, i, out[i]))
        fail_unsupported(fmt::format("the derivative for '{}' of {}, which its gradient function does not give",
                                     record->schema->args[i].name, record->schema->name));
      if (!out[i]) continue;
      out[i] =
          fit_gradient(build, out[i], Builder::tensor(call.args[i]),
                       fmt::format("{}: the gradient of '{}'", record->schema->name, record->schema->args[i].name));
    }
    for (auto& [i, grads] : call.list_grads) {
      const std::string& name = record->schema->args[static_cast<std::size_t>(i)].name;
      const std::vector<Arg>& items = call.args[static_cast<std::size_t>(i)].get<ArgList>()->items;
      for (std::size_t k = 0; k < grads.size(); ++k)
        if (grads[k])
          grads[k] = fit_gradient(build, grads[k], Builder::tensor(items[k]),
                                  fmt::format("{}: the gradient of '{}'[{}]", record->schema->name, name, k));
    }
    if (lists) *lists = std::move(call.list_grads);
    return out;
  });
}

}  // namespace partita

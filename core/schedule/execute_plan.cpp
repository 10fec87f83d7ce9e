#include "core/schedule/execute_plan.h"

#include "core/base/assign.h"
#include "core/interp/interpreter.h"
#include "core/loops/execute.h"
#include "core/loops/scalar_eval.h"
#include "core/ops/record/record.h"
#include "core/ops/record/values.h"
#include "core/ops/schema/schema.h"

namespace partita::schedule {
namespace {

class PlanRun {
 public:
  PlanRun(const Plan& plan, const std::map<std::string, Tensor>& constants) : plan_(plan), constants_(constants) {}

  Result<std::vector<Value>> operator()(const std::vector<Value>& inputs) {
    TRY(arena_, Storage::allocate(plan_.arena_bytes, true));
    for (const PlanBuffer& b : plan_.buffers) TRY_DO(allocate(b, inputs));
    for (const auto& step : plan_.steps) {
      auto* call = std::get_if<KernelCall>(&step);
      TRY_DO(call ? kernel(*call) : external(std::get<ExternCall>(step)));
    }
    std::vector<Value> outputs;
    for (const auto& o : plan_.outputs) {
      if (auto* view = std::get_if<PlanView>(&o))
        outputs.emplace_back(tensor(*view));
      else if (auto* e = std::get_if<SymExpr>(&o))
        outputs.emplace_back(e->as_int());
      else if (auto* given = std::get_if<HandedOn>(&o))
        outputs.push_back(inputs.at(static_cast<std::size_t>(given->input)));
      else
        outputs.emplace_back(literal(std::get<Arg>(o)));
    }
    return outputs;
  }

 private:
  Status allocate(const PlanBuffer& b, const std::vector<Value>& inputs) {
    TRY_DO(reachable(b.device));
    auto bytes = static_cast<std::size_t>(b.elements.as_int()) * itemsize(b.dtype);
    using Kind = PlanBuffer::Kind;
    if (b.kind == Kind::Input || b.kind == Kind::Constant) {
      const Tensor& t = b.kind == Kind::Input ? *inputs.at(static_cast<std::size_t>(b.index)).get<Tensor>()
                                              : constants_.at(b.attribute);
      TRY_DO(reachable(t.device()));
      storages_.push_back(Storage::borrow(t.data(), bytes, t.storage));
    } else if (b.kind == Kind::Temporary) {
      CHECK(b.offset % 64 == 0 && b.offset + bytes <= plan_.arena_bytes);
      storages_.push_back(Storage::borrow(arena_->data() + b.offset, bytes, arena_));
    } else {
      TRY(storages_.emplace_back(), Storage::allocate(bytes));
    }
    return {};
  }

  Tensor tensor(const PlanView& v) const {
    return {storages_[static_cast<std::size_t>(v.buffer)], v.dtype, *concrete(v.sizes), *concrete(v.strides),
            v.offset.as_int()};
  }

  static Value literal(const Arg& a) {
    if (auto* list = a.get<ArgList>()) {
      ValueList items;
      for (const Arg& item : list->items) items.push_back(literal(item));
      return items;
    }
    return std::visit(
        [](const auto& v) -> Value {
          using T = std::decay_t<decltype(v)>;
          if constexpr (std::is_constructible_v<decltype(Value::v), const T&> && !std::is_same_v<T, Node*>)
            return Value(v);
          else
            return Value();
        },
        a.v);
  }

  Status kernel(const KernelCall& call) {
    std::vector<void*> buffers;
    for (int b : call.buffers) buffers.push_back(storages_[static_cast<std::size_t>(b)]->data());
    return loops::execute(plan_.kernels[static_cast<std::size_t>(call.kernel)], buffers);
  }

  Status external(const ExternCall& call) {
    std::vector<Value> args;
    for (const auto& a : call.args) {
      if (auto* view = std::get_if<PlanView>(&a)) {
        args.emplace_back(tensor(*view));
      } else if (auto* list = std::get_if<std::vector<PlanView>>(&a)) {
        ValueList items;
        for (const auto& v : *list) items.push_back(v.buffer < 0 ? Value() : Value(tensor(v)));
        args.emplace_back(std::move(items));
      } else {
        args.push_back(literal(std::get<Arg>(a)));
      }
    }
    if (!call.around.empty()) TRY_DO(assign(args[0], with_zeros(*args[0].get<Tensor>(), call.around)));
    if (call.narrow >= 0) TRY_DO(widen_narrow(call.narrow, call.results[0].dtype, args));
    TRY(const ValueList results, evaluated(call, std::move(args)));
    for (std::size_t i = 0; i < call.results.size(); ++i) {
      if (call.results[i].buffer < 0) continue;
      Tensor out = tensor(call.results[i]);
      out.copy_from(*results.at(i).get<Tensor>());
      if (call.epilogue) {
        TRY(Tensor before, out.clone());
        std::vector<Tensor> inputs{before};
        for (const auto& v : call.epilogue_inputs) inputs.push_back(tensor(v));
        TRY_DO(loops::evaluate(*call.epilogue, {{call.epilogue_value}}, inputs, {{out}}));
      }
    }
    return {};
  }

  Result<ValueList> evaluated(const ExternCall& call, std::vector<Value> args) {
    if (call.graph) return interpret(*call.graph, std::move(args));
    const Schema* schema = find_schema(call.op);
    std::vector<std::pair<std::string, Value>> keywords;
    for (std::size_t i = schema->args.size(); i-- > 0;)
      if (schema->args[i].keyword_only) {
        keywords.emplace_back(schema->args[i].name, args[i]);
        args.erase(args.begin() + static_cast<std::ptrdiff_t>(i));
      }
    TRY(Value result, evaluate(call.op, std::move(args), std::move(keywords), {.generator = &generator_}));
    if (const auto* list = result.get<ValueList>()) return *list;
    return ValueList{result};
  }

  const Plan& plan_;
  const std::map<std::string, Tensor>& constants_;
  Generator generator_;
  std::shared_ptr<Storage> arena_;
  std::vector<std::shared_ptr<Storage>> storages_;
};

}  // namespace

Result<std::vector<Value>> execute(const Plan& plan, const std::map<std::string, Tensor>& constants,
                                   const std::vector<Value>& inputs) {
  return PlanRun(plan, constants)(inputs);
}

}  // namespace partita::schedule

#include <unordered_map>

#include "codegen/program/extern.h"
#include "core/base/assign.h"
#include "core/base/check.h"
#include "core/interp/aten_calls.h"
#include "core/interp/interpreter.h"
#include "core/ops/facts/effects.h"
#include "core/ops/record/communicator.h"
#include "core/ops/record/evaluate.h"
#include "core/ops/record/record.h"
#include "core/ops/schema/schema.h"

namespace partita::codegen {
namespace {

/// A view, and the size of its buffer in bytes.
struct Window {
  ConcreteView view;
  std::size_t bytes = 0;

  Tensor over(std::byte* const* buffers) const {
    return {Storage::borrow(buffers[view.buffer], bytes, nullptr), view.dtype, view.sizes, view.strides, view.offset};
  }
};

class Evaluation final : public ExternStep {
 public:
  using Windows = std::vector<std::optional<Window>>;  ///< nullopt: None, or a result that is not read
  using Argument = std::variant<Value, Window, Windows>;
  const Op* op = nullptr;
  std::shared_ptr<const Graph> graph;                     ///< runs instead of op, if there is one
  std::unordered_map<const Graph*, CompiledFn> compiled;  ///< its sub graphs, all or none
  std::vector<Argument> args;
  std::vector<std::pair<std::string, Argument>> kwargs;
  Windows results;
  std::vector<std::int64_t> around;  ///< zeros around the first argument, see ExternCall
  int narrow = -1;                   ///< see ExternCall
  std::string origin;
  EvalContext context;
  PendingResults* pending = nullptr;  ///< of a call that starts a collective; else null
  bool starts = false;                ///< it does

  /// Of its results, which are copied; what else an evaluation takes is not known before.
  std::size_t scratch_bytes() const override {
    std::size_t bytes = 0;
    for (const auto& result : results)
      if (result) bytes += static_cast<std::size_t>(numel(result->view.sizes)) * itemsize(result->view.dtype);
    return bytes;
  }

  Status run(std::byte* const* buffers) override {
    auto value = [&](const Argument& a) -> Value {
      if (auto* v = std::get_if<Value>(&a)) return *v;
      if (auto* v = std::get_if<Window>(&a)) return v->over(buffers);
      ValueList list;
      for (const auto& v : std::get<Windows>(a)) list.push_back(v ? Value(v->over(buffers)) : Value());
      return list;
    };
    std::vector<Value> positional;
    for (const Argument& a : args) positional.push_back(value(a));
    if (!around.empty()) TRY_DO(assign(positional[0], schedule::with_zeros(*positional[0].get<Tensor>(), around)));
    if (narrow >= 0) TRY_DO(schedule::widen_narrow(narrow, results[0]->view.dtype, positional));
    std::vector<std::pair<std::string, Value>> named;
    for (const auto& [name, a] : kwargs) named.emplace_back(name, value(a));
    auto result =
        graph ? interpreted(std::move(positional)) : evaluate(op, std::move(positional), std::move(named), context);
    if (!result) {
      if (result.error().where.node.empty()) result.error().where.node = origin;
      return std::move(result).error();
    }
    std::vector<Value> values;
    if (auto* list = result->get<ValueList>())
      values = *list;
    else
      values.push_back(*result);
    if (starts && !pending) TRY_DO(finish(*result, *context.communicator));
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (!results[i]) continue;
      auto* t = i < values.size() ? values[i].get<Tensor>() : nullptr;
      if (!t || t->sizes != results[i]->view.sizes)
        return unsupported("codegen.extern", op->name + " gave a result whose size differs from the plan's",
                           {.node = origin});
      if (pending)
        pending->add(results[i]->view.buffer, *t, results[i]->over(buffers));
      else
        results[i]->over(buffers).copy_from(*t);
    }
    return {};
  }

 private:
  Result<Value> interpreted(std::vector<Value> values) const {
    InterpOptions options;
    options.threads = context.threads;
    options.progress = context.progress;
    options.communicator = context.communicator;
    if (context.generator) options.generator = std::shared_ptr<Generator>(context.generator, [](Generator*) {});
    if (!compiled.empty())
      options.run_sub_graph = [this](const Graph& child, ValueList operands) {
        return compiled.at(&child)(std::move(operands));
      };
    TRY(ValueList returned, interpret(*graph, std::move(values), options));
    return Value(std::move(returned));
  }
};

}  // namespace

Result<Prepared> prepare_evaluation(const ExternContext& context, std::string& why_not) {
  const schedule::ExternCall& call = context.call;
  const Schema* schema = find_schema(call.op);
  if (!schema && !call.graph)
    return unsupported("ops.unknown", call.op->name + " has no schema", {.node = call.origin});
  auto step = std::make_unique<Evaluation>();
  step->op = call.op;
  step->graph = call.graph;
  step->origin = call.origin;
  step->around = call.around;
  step->narrow = call.narrow;
  step->context = {context.threads, context.generator, nullptr, context.communicator};
  step->starts = !call.graph && starts_collective(call.op);
  if (step->starts) {
    step->context.node = call.origin;
    step->pending = context.pending;
  }
  auto window = [&](const schedule::PlanView& v) -> Result<Window> {
    std::optional<ConcreteView> view = concrete_view(v);
    if (!view)
      return unsupported("codegen.dynamic", call.op->name + ": sizes that change from run to run",
                         {.node = call.origin});
    const auto count = reach(view->sizes, view->strides);
    CHECK(count, "strides of a plan's view");
    const std::int64_t elements = std::max(*count + view->offset, context.elements(v.buffer).value_or(0));
    return Window{*std::move(view), static_cast<std::size_t>(elements) * itemsize(v.dtype)};
  };
  auto windows = [&](const std::vector<schedule::PlanView>& views) -> Result<Evaluation::Windows> {
    Evaluation::Windows list(views.size());
    for (std::size_t i = 0; i < views.size(); ++i)
      if (views[i].buffer >= 0) TRY_DO(assign(list[i], window(views[i])));
    return list;
  };
  for (std::size_t i = 0; i < call.args.size(); ++i) {
    Evaluation::Argument argument;
    if (auto* literal = std::get_if<Arg>(&call.args[i])) {
      argument = to_value(*literal);
    } else if (auto* v = std::get_if<schedule::PlanView>(&call.args[i])) {
      TRY(argument, window(*v));
    } else {
      TRY(argument, windows(std::get<std::vector<schedule::PlanView>>(call.args[i])));
    }
    if (schema && schema->args[i].keyword_only)
      step->kwargs.emplace_back(schema->args[i].name, std::move(argument));
    else
      step->args.push_back(std::move(argument));
  }
  TRY(step->results, windows(call.results));
  Prepared p;
  p.library = "interpreter";
  if (call.graph && context.compile_sub_graph && !has_torch_calls(*call.graph)) {
    for (const auto& [target, child] : call.graph->children) {
      auto compiled = context.compile_sub_graph(*child);
      if (!compiled && compiled.error().fault != Fault::Unsupported) return std::move(compiled).error();
      if (!compiled) {
        why_not = "sub graph " + target + " is interpreted: " + compiled.error().line();
        step->compiled.clear();
        break;
      }
      step->compiled.emplace(child.get(), *std::move(compiled));
    }
    if (why_not.empty()) p.library = "compiled sub graphs";
  }
  p.step = std::move(step);
  return p;
}

}  // namespace partita::codegen

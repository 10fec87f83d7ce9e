// The reference interpreter: resolves torch-level calls, evaluates nodes in order by their operators' records, and
// drops values after their last use. A run in double widens what goes in and comes out.
#include "core/interp/interpreter.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "core/interp/aten_calls.h"
#include "core/interp/run_control.h"
#include "core/interp/symbols.h"
#include "core/interp/widen.h"
#include "core/ir/place.h"
#include "core/ir/print.h"
#include "core/ops/facts/alias.h"
#include "core/ops/facts/control.h"
#include "core/ops/facts/effects.h"
#include "core/ops/facts/requires_grad.h"
#include "core/ops/record/communicator.h"
#include "core/ops/record/record.h"
#include "core/ops/record/user_operator.h"
#include "core/ops/schema/in_place.h"
#include "core/ops/schema/schema.h"

namespace partita {
namespace {

/// An operator of a library that the program does not have.
bool is_unknown(const Op* op) {
  return op->kind == OpKind::Torch && !find_record(op) && !find_schema(op);
}

/// For each node (by id), the nodes whose values can be freed after it.
std::vector<std::vector<const Node*>> last_readers(const Graph& graph) {
  std::vector<const Node*> last(graph.id_limit(), nullptr);
  for (const Node* node : graph) {
    last[node->id()] = node;  // an unused value is freed at once
    for (const Node* in : node->inputs()) last[in->id()] = node;
  }
  std::vector<std::vector<const Node*>> free_after(graph.id_limit());
  for (const Node* node : graph) free_after[last[node->id()]->id()].push_back(node);
  return free_after;
}

class Run {
 public:
  Run(const Graph& graph, const InterpOptions& options) : graph_(graph), options_(options), values_(graph.id_limit()) {}

  Result<std::vector<Value>> operator()(std::vector<Value> inputs) {
    const auto free_after = last_readers(graph_);
    std::size_t next_input = 0, done = 0;
    for (const Node* node : graph_) {
      TRY_DO(step(options_.progress, static_cast<double>(done++) / static_cast<double>(graph_.size()), node->name()));
      if (node->is_output()) return outputs();
      if (node->is_placeholder()) {
        values_[node->id()] = std::move(inputs[next_input++]);
      } else {
        auto value = compute(*node);
        if (!value) return at_node(std::move(value).error(), *node);
        values_[node->id()] = *std::move(value);
      }
      // What a collective fills is there when it is waited for.
      if (options_.observer && !(options_.communicator && starts_collective(node->op())))
        if (auto seen = options_.observer(*node, values_[node->id()]); !seen)
          return at_node(std::move(seen).error(), *node);
      for (const Node* dead : free_after[node->id()])
        if (!dead->is_output()) values_[dead->id()] = Value();
    }
    return input_error("interp.output", "the graph returns nothing; its text ends before a return statement",
                       Where{.graph = graph_.name});
  }

 private:
  Result<std::vector<Value>> outputs() {
    std::vector<Value> out;
    for (const Arg& arg : graph_.outputs()) {
      TRY(Value v, value_of(arg));
      out.push_back(std::move(v));
    }
    return out;
  }

  Result<Value> value_of(const Arg& arg) {
    return std::visit(
        [&](const auto& a) -> Result<Value> {
          using T = std::decay_t<decltype(a)>;
          if constexpr (std::is_same_v<T, std::monostate>) {
            return Value();
          } else if constexpr (std::is_same_v<T, Node*>) {
            return values_[a->id()];
          } else if constexpr (std::is_same_v<T, ArgList>) {
            ValueList list;
            list.reserve(a.items.size());
            for (const Arg& item : a.items) {
              TRY(Value v, value_of(item));
              list.push_back(std::move(v));
            }
            return Value(std::move(list));
          } else if constexpr (std::is_same_v<T, DType>) {
            return Value(options_.float64 && !as_written_ ? widened(a) : a);
          } else if constexpr (std::is_same_v<T, ArgSlice> || std::is_same_v<T, ArgDict> ||
                               std::is_same_v<T, ArgName>) {
            return unsupported("interp.argument", fmt::format("cannot run with the argument {}", print(arg)));
          } else {
            return Value(a);
          }
        },
        arg.v);
  }

  /// Sets requires_grad from the node's meta, because composites may decompose differently for it.
  Result<Value> argument(const Arg& arg) {
    TRY(Value v, value_of(arg));
    if (auto* t = std::get_if<Tensor>(&v.v); t && arg.node()) t->requires_grad = requires_grad(arg.node());
    return v;
  }

  /// A call of a kernel of the user's own. Its arguments are in dictionaries, which are no values.
  Result<Value> call_kernel(const Node& node) {
    std::vector<Value> values;
    for (const Node* in : node.inputs()) values.push_back(values_[in->id()]);
    return options_.call_unknown(node, values, {});
  }

  /// What a kernel gives for the parameter that getitem names.
  Result<Value> item_of_kernel(const Node& kernel, const std::string& parameter) {
    const std::vector<std::pair<std::string, Node*>> written = written_by_kernel(kernel);
    const auto it = std::ranges::find(written, parameter, &std::pair<std::string, Node*>::first);
    const ValueList* given = values_[kernel.id()].get<ValueList>();
    if (it == written.end() || !given)
      return input_error("interp.kernel", fmt::format("{} gives no {}", kernel.name(), parameter));
    return given->at(static_cast<std::size_t>(it - written.begin()));
  }

  Result<Value> compute(const Node& node) {
    if (node.is(Op::get_attr())) return attribute(node);
    if (options_.call_unknown && is_kernel(node.op())) return call_kernel(node);
    if (const Node* of = node.is(Op::getitem()) ? node.args().at(0).node() : nullptr; of && is_kernel(of->op()))
      if (const auto* parameter = node.args().at(1).get<std::string>()) return item_of_kernel(*of, *parameter);
    const EvalContext context{options_.threads, options_.generator.get(), options_.progress, options_.communicator};
    if (find_control(node.op()))
      return run_control(
          {node, context, [&](const Arg& a) { return value_of(a); },
           [&](const Graph& child, std::vector<Value> operands) { return run_child(child, std::move(operands)); }});
    as_written_ = options_.float64 && is_run_as_written(node.op());
    std::vector<Value> args;
    args.reserve(node.args().size());
    for (const Arg& a : node.args()) {
      if (a.get<ArgName>())
        return unsupported("interp.argument",
                           fmt::format("{} cannot run with the argument {}", node.op()->name, print(a)));
      TRY(Value v, argument(a));
      args.push_back(std::move(v));
    }
    ValueKwargs kwargs;
    for (const auto& [key, a] : node.kwargs()) {
      TRY(Value v, argument(a));
      kwargs.emplace_back(key, std::move(v));
    }
    if (options_.call_unknown && is_unknown(node.op())) return options_.call_unknown(node, args, kwargs);
    if (as_written_) return run_as_written(node, std::move(args), std::move(kwargs), context);
    if (options_.float64) clear_half_to_float(node, args, kwargs);
    const Op* op = view_in_place(node.op());
    TRY(Value result, options_.evaluate
                          ? options_.evaluate(node, std::move(args), std::move(kwargs), context)
                          : evaluate(op ? op : node.op(), std::move(args), std::move(kwargs), context, &node));
    if (options_.float64) {
      TRY(result, widened(std::move(result)));
    }
    return result;
  }

  Result<Value> attribute(const Node& node) {
    if (graph_.child(node.target)) return Value();  // the control operator reads the graph itself
    const auto it = graph_.attributes.find(node.target);
    if (it == graph_.attributes.end())
      return input_error("interp.attribute",
                         fmt::format("the value of self.{} is not in the file; give it in --inputs as "
                                     "param.{} or use --random-weights SEED",
                                     node.target, node.target));
    if (options_.float64) return widened(Value(it->second));
    return Value(it->second);
  }

  Result<std::vector<Value>> run_child(const Graph& child, std::vector<Value> operands) {
    if (operands.size() != child.placeholders().size())
      return input_error("interp.control", fmt::format("sub graph {} takes {} values and gets {}", child.name,
                                                       child.placeholders().size(), operands.size()));
    if (options_.run_sub_graph) return options_.run_sub_graph(child, std::move(operands));
    return Run(child, options_)(std::move(operands));
  }

  const Graph& graph_;
  const InterpOptions& options_;
  std::vector<Value> values_;  // by node id
  bool as_written_ = false;    // in a double-precision run: this call keeps the graph's dtypes
};

/// Do the bytes from the first element of one to its last meet those of the other?
bool share_bytes(const Tensor& a, const Tensor& b) {
  const auto end = [](const Tensor& t) {
    std::int64_t last = t.offset;
    for (std::size_t d = 0; d < t.sizes.size(); ++d) last += (t.sizes[d] - 1) * t.strides[d];
    return (last + 1) * static_cast<std::int64_t>(itemsize(t.dtype));
  };
  const auto begin = [](const Tensor& t) { return t.offset * static_cast<std::int64_t>(itemsize(t.dtype)); };
  return a.storage == b.storage && a.numel() > 0 && b.numel() > 0 && begin(a) < end(b) && begin(b) < end(a);
}

/// The inputs that the graph writes to, and what it writes to in their place. Error interp.shared for an input whose
/// memory another one shows, too: their copies are apart.
Result<std::vector<std::pair<Tensor, Tensor>>> written_copies(const Graph& graph, const std::vector<Value>& inputs,
                                                              const std::vector<Value>& copies) {
  std::set<const Node*> owners;
  for (const Node* node : graph)
    for (const Node* target : written_by(*node)) owners.insert(memory_owner(target));
  std::vector<std::pair<Tensor, Tensor>> written;
  const std::vector<Node*> placeholders = graph.placeholders();
  for (std::size_t i = 0; i < placeholders.size(); ++i)
    if (const Tensor *input = inputs[i].get<Tensor>(), *copy = copies[i].get<Tensor>();
        input && copy && input->storage != copy->storage && owners.contains(placeholders[i])) {
      for (std::size_t j = 0; j < inputs.size(); ++j)
        if (const Tensor* other = inputs[j].get<Tensor>(); other && j != i && share_bytes(*input, *other))
          return unsupported("interp.shared", fmt::format("a run in double of a graph that writes {}, whose memory {} "
                                                          "shows, too",
                                                          placeholders[i]->name(), placeholders[j]->name()));
      written.emplace_back(*input, *copy);
    }
  return written;
}

}  // namespace

Result<std::vector<Value>> interpret(const Graph& graph, std::vector<Value> inputs, const InterpOptions& options) {
  std::unique_ptr<Graph> resolved;
  if (has_torch_calls(graph) || changes_geometry(graph)) {
    TRY(resolved, with_aten_calls(graph));
  }
  // In double a text's conversions are to double, too.
  if (options.float64 && std::ranges::any_of(graph, [](const Node* n) { return n->op()->meaning != nullptr; })) {
    if (!resolved) resolved = graph.clone();
    TRY_DO(place_meanings(*resolved));
  }
  const Graph& running = resolved ? *resolved : graph;
  if (options.check_inputs) TRY_DO(check_inputs(running, inputs, options.float64));
  if (inputs.size() != running.placeholders().size())
    return input_error("interp.inputs", fmt::format("the graph takes {} inputs and got {}",
                                                    running.placeholders().size(), inputs.size()));
  std::vector<std::pair<Tensor, Tensor>> written;
  if (options.float64) {
    const std::vector<Value> given = inputs;
    const std::vector<Node*> placeholders = running.placeholders();
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      TRY(inputs[i], widened(std::move(inputs[i])));
      if (options.input) inputs[i] = options.input(*placeholders[i], std::move(inputs[i]));
    }
    if (options.writes_back) {
      TRY(written, written_copies(running, given, inputs));
    }
  }
  InterpOptions how = options;
  if (!how.generator) how.generator = std::make_shared<Generator>();
  TRY(std::vector<Value> outputs, Run(running, how)(std::move(inputs)));
  if (options.communicator)
    for (const Value& v : outputs) TRY_DO(finish(v, *options.communicator));
  for (const auto& [input, copy] : written) input.copy_from(copy);
  return outputs;
}

}  // namespace partita

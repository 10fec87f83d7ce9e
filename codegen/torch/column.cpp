#include "codegen/torch/column.h"

#include <algorithm>
#include <sstream>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include "codegen/torch/graph_json.h"
#include "codegen/torch/torch_worker.h"
#include "codegen/torch/values_json.h"
#include "core/aot/graph_io.h"
#include "core/base/assign.h"
#include "core/base/mapped.h"
#include "core/base/python_text.h"
#include "core/interp/aten_calls.h"
#include "core/ir/place.h"
#include "core/load/records.h"
#include "core/ops/facts/control.h"
#include "core/ops/facts/effects.h"
#include "core/ops/record/communicator.h"
#include "core/ops/record/user_operator.h"

namespace partita::torch {

using nlohmann::json;

namespace {

constexpr std::string_view prefix = "torch:";

Diagnostic unknown(std::string_view whole, std::string_view why) {
  return input_error("backend.unknown", fmt::format("no backend {}: {}", whole, why));
}

/// The end of what a try printed, which may say more than its exception does.
std::vector<std::string> last_lines(const std::string& log) {
  constexpr std::size_t most = 5;
  std::vector<std::string> lines;
  std::istringstream in(log);
  for (std::string line; std::getline(in, line);)
    if (line.find_first_not_of(" \t\r") != line.npos) lines.push_back("PyTorch's process printed: " + one_line(line));
  if (lines.size() > most) lines.erase(lines.begin(), lines.end() - most);
  return lines;
}

/// A request to the Python process and its answer, which share storages.
class Exchange {
 public:
  Exchange(std::string who, const ColumnOptions& options) : who_(std::move(who)), options_(options) {}

  json describe(const Value& value) { return value_json(value, storages_); }
  json describe(const std::vector<Value>& values) {
    return mapped(values, [&](const Value& value) { return describe(value); });
  }

  /// The values that a request gives, "values" of the answer, which is kept for answer(). `graph`: whose node an
  /// exception names; may be null. `writes`: inputs may be written to.
  Result<std::vector<Value>> ask(json request, const Graph* graph, bool warm, bool writes) {
    TRY(const std::shared_ptr<Worker> worker, Worker::shared(options_.config, options_.progress));
    TRY_DO(complete(request));
    TRY(const Descriptor memory, copy_storages(storages_));
    if (options_.progress) options_.progress->at(-1, who_);
    TRY(Answer answer,
        worker->ask(who_, request, memory,
                    {.warm = warm, .seconds = options_.config.python_seconds, .progress = options_.progress}));
    answer_ = std::move(answer.content);
    if (text_field(answer_, "status") == "exception") return exception(graph);
    if (text_field(answer_, "status") != "ok") return unreadable("an answer that says neither result nor error");
    add_times();
    if (writes) TRY_DO(take_back({.text = {}, .memory = Descriptor(::dup(memory.get()))}, storages_));
    return values(answer.memory.get());
  }

  const json& answer() const { return answer_; }

  Diagnostic unreadable(std::string_view what) const {
    return {Fault::Internal, "process.message", fmt::format("{}: PyTorch's process sent {}", who_, what)};
  }

 private:
  /// Adds what all requests have.
  Status complete(json& request) {
    request["random_state"] = nullptr;
    if (options_.generator) {
      const auto bytes = options_.generator->state();
      TRY(const Tensor state, Tensor::empty(DType::UInt8, {static_cast<std::int64_t>(bytes.size())}));
      std::ranges::copy(bytes, state.data());
      request["random_state"] = describe(Value(state));
    }
    request["threads"] = options_.config.threads;
    request["memory_bytes"] = options_.config.python_memory;
    json& sizes = request["storages"] = json::array();
    for (const auto& storage : storages_) sizes.push_back(storage->bytes());
    return {};
  }

  /// An error of the graph, with the place in the user's program that PyTorch's node has in it.
  Diagnostic exception(const Graph* graph) const {
    const std::string type = text_field(answer_, "type");
    Diagnostic error(Fault::Differs, "torch.exception" + (type.empty() ? "" : "." + type),
                     fmt::format("{}: {}: {}", who_, type, text_field(answer_, "message")));
    error.where.node = text_field(answer_, "node");
    error.notes = last_lines(text_field(answer_, "log"));
    if (const Node* node = graph && !error.where.node.empty() ? graph->find(error.where.node) : nullptr)
      error.where.origin = origin_text(*node);
    return error;
  }

  Result<std::vector<Value>> values(int memory) {
    const json &described = answer_["values"], &sizes = answer_["storages"];
    if (!described.is_array() || !sizes.is_array() ||
        !std::ranges::all_of(sizes, [](const json& n) { return n.is_number_unsigned(); }))
      return unreadable("no results that can be read");
    TRY(const Storages added, map_storages(memory, sizes.get<std::vector<std::size_t>>()));
    storages_.insert(storages_.end(), added.begin(), added.end());
    std::vector<Value> found;
    for (const json& value : described) TRY_DO(assign(found.emplace_back(), value_from(value, storages_)));
    if (options_.generator) TRY_DO(take_random_state());
    return found;
  }

  void add_times() const {
    const auto times = answer_.find("times");
    if (!options_.times || times == answer_.end() || !times->is_object()) return;
    constexpr double milliseconds = 1e3;
    for (const auto& [name, seconds] : times->items())
      if (seconds.is_number()) options_.times->add("torch " + name, seconds.get<double>() * milliseconds);
  }

  Status take_random_state() {
    TRY(const Value value, value_from(answer_["random_state"], storages_));
    const Tensor* state = value.get<Tensor>();
    if (!state || !state->is_contiguous() || state->dtype != DType::UInt8 ||
        !options_.generator->set_state({state->data(), static_cast<std::size_t>(state->numel())}))
      return unreadable("no state of a random generator");
    return {};
  }

  std::string who_;
  const ColumnOptions& options_;
  Storages storages_;
  json answer_;
};

/// A request about a graph and its inputs.
json graph_request(Exchange& exchange, const ColumnName& column, const Graph& graph, const std::vector<Value>& inputs,
                   bool inference) {
  return {{"column", column.name},
          {"device", column.device},
          {"options", column.options},
          {"is_inference", inference},
          {"inputs", exchange.describe(inputs)},
          {"graph", graph_json(graph, [&](const Tensor& t) { return exchange.describe(Value(t)); })}};
}

/// The rank's place in its job. A graph that asks nothing of the other ranks has one, too, since these wait for all to
/// take theirs; null where there is none to be had, and none is needed.
Result<json> job_of(const Graph& graph, const ColumnOptions& options) {
  if (!options.communicator) return json();
  Result<RankPlace> had = options.communicator->next_place();
  const auto asks = [](const Node* n) { return is_collective(n->op()); };
  if (!had && !has_torch_calls(graph) && std::ranges::none_of(graph, asks)) return json();
  TRY(const RankPlace place, std::move(had));
  return json{{"rank", place.rank},
              {"ranks", place.ranks},
              {"groups", place.groups},
              {"meeting_point", place.meeting_point},
              {"seconds", options.config.python_seconds}};
}

/// The graph as the Python process can run it: without modules that register operators of the user's own, by the
/// texts of their meaning.
Result<std::unique_ptr<Graph>> with_known_calls(const Graph& graph, const ColumnOptions& options) {
  std::unique_ptr<Graph> copy = graph.clone();
  if (options.config.python_import.empty()) TRY_DO(place_meanings(*copy));
  return copy;
}

Result<std::vector<Value>> run(const std::string& who, const ColumnName& column, const Graph& given,
                               const std::vector<Value>& inputs, const ColumnOptions& options) {
  TRY(const std::unique_ptr<Graph> known, with_known_calls(given, options));
  const Graph& graph = *known;
  Exchange exchange(who, options);
  json request = graph_request(exchange, column, graph, inputs, options.inference);
  request["verb"] = "run";
  TRY(request["job"], job_of(graph, options));
  TRY(std::vector<Value> found,
      exchange.ask(std::move(request), &graph, column.name == "inductor", mutates_inputs(graph)));
  if (found.size() != graph.outputs().size())
    return exchange.unreadable(fmt::format("{} results in place of {}", found.size(), graph.outputs().size()));
  return found;
}

/// The column that locate() looks into.
Result<ColumnName> looked_into(std::string_view name) {
  TRY(ColumnName column, parse_column(name));
  if (column.name != "inductor" || !column.device.empty())
    return input_error("backend.unknown",
                       fmt::format("{} has no kernels that can be looked into; torch:inductor on a CPU has", name));
  return column;
}

/// Runs a graph of one call of a kernel, whose arguments no value can be, on the values of its inputs.
Result<Value> call_kernel(const Node& call, const std::vector<Value>& inputs, const ColumnOptions& options) {
  Graph graph;
  graph.shapes = call.graph().shapes;
  std::map<const Node*, Arg> placeholders;
  for (const Node* in : call.inputs()) placeholders.emplace(in, graph.placeholder(in->name(), in->meta));
  Node* const kernel = graph.copy_node(call, [&](Node* in) { return placeholders.at(in); });
  const bool writes = functional_kernel(call.op());
  std::vector<Arg> results;
  if (!writes)
    for (const auto& [parameter, tensor] : written_by_kernel(*kernel))
      results.emplace_back(graph.create(Op::getitem(), {kernel, Arg(parameter)}));
  graph.set_output(Arg::tuple(std::move(results)));
  TRY(const CompiledFn run, column("torch:eager", options)(graph));
  TRY(std::vector<Value> given, run(inputs));
  return writes ? Value() : Value(std::move(given));
}

}  // namespace

Result<ColumnName> parse_column(std::string_view whole) {
  std::string_view rest = whole.substr(prefix.size());
  ColumnName column;
  const std::size_t options = std::min(rest.find('+'), rest.size());
  const std::string_view named = rest.substr(0, options);
  const std::size_t at = std::min(named.rfind('@'), named.size());
  column.name = named.substr(0, at);
  if (at < named.size()) column.device = named.substr(at + 1);
  if (column.name.empty() || (at < named.size() && column.device.empty()))
    return unknown(whole, "a name is torch:NAME[@DEVICE][+KEY=VALUE...]");
  for (rest.remove_prefix(options); !rest.empty();) {
    rest.remove_prefix(1);
    const std::string_view option = rest.substr(0, rest.find('+'));
    const std::size_t equal = option.find('=');
    if (equal == option.npos || equal == 0)
      return unknown(whole, fmt::format("{} is no KEY=VALUE of inductor's configuration", option));
    column.options.emplace(option.substr(0, equal), option.substr(equal + 1));
    rest.remove_prefix(option.size());
  }
  return column;
}

bool is_column(std::string_view name) {
  return name.starts_with(prefix);
}

Status check_column(std::string_view name) {
  TRY_DO(parse_column(name));
  return {};
}

Status start(const Config& config, const Progress* progress) {
  TRY_DO(Worker::shared(config, progress));
  return {};
}

Result<Descriptor> share_process(const Config& config, const Progress* progress) {
  TRY(const std::shared_ptr<Worker> worker, Worker::shared(config, progress));
  return worker->handle();
}

Status use_process(const Config& config, int descriptor) {
  return Worker::inherit(config, descriptor);
}

CompileFn column(std::string_view name, const ColumnOptions& options) {
  return [who = std::string(name), options](const Graph& graph) -> Result<CompiledFn> {
    TRY(ColumnName column, parse_column(who));
    return CompiledFn([who, column = std::move(column), &graph, options](const std::vector<Value>& inputs) {
      return run(who, column, graph, inputs, options);
    });
  };
}

Result<json> locate(std::string_view name, const Graph& graph, const std::vector<Value>& inputs,
                    const ColumnOptions& options, bool switches) {
  TRY(const ColumnName column, looked_into(name));
  Exchange exchange(std::string(name), options);
  json request = graph_request(exchange, column, graph, inputs, options.inference);
  request["verb"] = "locate";
  request["switches"] = switches;
  TRY_DO(exchange.ask(std::move(request), &graph, true, false));
  const json& report = exchange.answer()["report"];
  if (!report.is_object() || text_field(report, "verdict").empty()) return exchange.unreadable("no report");
  return report;
}

Result<std::vector<json>> locate_program(std::string_view name, const ProgramQuestion& question,
                                         const ColumnOptions& options, bool switches) {
  TRY(const ColumnName column, looked_into(name));
  Exchange exchange(question.name.empty() ? std::string(name) : fmt::format("{} of {}", name, question.name), options);
  json request = graph_request(exchange, column, *question.graph, question.inputs, options.inference);
  const auto described = [&](const Graph& graph) {
    return graph_json(graph, [&](const Tensor& t) { return exchange.describe(Value(t)); });
  };
  request["verb"] = "locate_program";
  request["switches"] = switches;
  request["kind"] = question.kind;
  request["requires_grad"] = question.requires_grad;
  request["tangents"] = exchange.describe(question.tangents);
  json& log = request["log"] = json::array();
  for (const auto& one : question.log) {
    log.push_back({{"role", one.role}, {"id", one.id}, {"graph", described(*one.graph)}, {"backward", nullptr}});
    if (one.backward) log.back()["backward"] = {{"id", one.backward_id}, {"graph", described(*one.backward)}};
  }
  TRY_DO(exchange.ask(std::move(request), question.graph, true, false));
  const json& reports = exchange.answer()["report"];
  if (!reports.is_array() || reports.empty() ||
      !std::ranges::all_of(reports, [](const json& r) { return r.is_object() && !text_field(r, "verdict").empty(); }))
    return exchange.unreadable("no reports");
  return reports.get<std::vector<json>>();
}

Result<Value> call_operator(const Node& call, const std::vector<Value>& args,
                            const std::vector<std::pair<std::string, Value>>& kwargs, const ColumnOptions& options) {
  if (is_kernel(call.op())) return call_kernel(call, args, options);
  Exchange exchange(call.op()->name, options);
  json named = json::object();
  for (const auto& [key, value] : kwargs) named[key] = exchange.describe(value);
  const json request = {
      {"verb", "call"}, {"target", call.op()->name}, {"args", exchange.describe(args)}, {"kwargs", named}};
  auto found = exchange.ask(request, nullptr, false, true);
  if (!found) {
    Diagnostic error = std::move(found).error();
    error.where.node = call.name();
    error.where.origin = origin_text(call);
    return error;
  }
  if (found->size() != 1) return exchange.unreadable(fmt::format("{} results in place of one", found->size()));
  return std::move(found->front());
}

}  // namespace partita::torch

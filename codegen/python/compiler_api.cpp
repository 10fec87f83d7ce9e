// The functions of partita_compiler.h.
#include <cstdlib>
#include <cstring>
#include <exception>
#include <mutex>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "codegen/backends.h"
#include "codegen/compiled_graph.h"
#include "codegen/compiler.h"
#include "codegen/python/partita_compiler.h"
#include "codegen/python/read_graph.h"
#include "core/base/check.h"
#include "core/base/raise.h"
#include "core/compare/compare.h"
#include "core/ops/facts/effects.h"
#include "core/ops/record/record.h"
#include "core/store/code_store.h"
#include "core/tensor/generator.h"

using namespace partita;

static_assert(PARTITA_RANDOM_STATE == Generator::state_size);

struct partita_graph {
  std::unique_ptr<Graph> graph;
  std::shared_ptr<CompiledGraph> compiled;
  std::shared_ptr<Generator> generator;  ///< of a graph that draws random numbers; else null
  std::mutex drawing;
  std::mutex reports_mutex;
  std::vector<SizeCompilation> reports;  ///< of a graph with symbols
};

/// Values as they are each time, but for the addresses.
struct partita_call {
  partita_graph* graph;
  std::mutex mutex;  ///< runs of a graph wait for one another anyway
  std::vector<Value> inputs;
  std::vector<std::size_t> tensors;  ///< which inputs get an address
  std::vector<Tensor> into;          ///< by result
  std::vector<std::size_t> wanted;   ///< which results get an address
};

namespace {

/// A failure, and the texts that partita_error points to.
struct LastError {
  Diagnostic diagnostic;
  std::string line;
  partita_error told{};
};
thread_local LastError last_error;

int failed(int status, Diagnostic d, const std::string& graph) {
  if (d.where.graph.empty()) d.where.graph = graph;
  LastError& e = last_error;
  e.line = d.line();
  e.diagnostic = std::move(d);
  const Where& at = e.diagnostic.where;
  e.told = {status,           e.diagnostic.code.c_str(), e.diagnostic.message.c_str(),
            at.graph.c_str(), at.node.c_str(),           at.origin.c_str(),
            e.line.c_str()};
  return status;
}

struct BrokenInvariant {
  std::string line;
};

/// Runs f, whose error becomes the thread's last error. A broken invariant is raised, so that the process lives on.
template <class F>
int guarded(const std::string& graph, F f) noexcept {
  static const bool handled = [] {
    set_check_handler([](const std::string& line) { throw BrokenInvariant{line}; });
    return true;
  }();
  static_cast<void>(handled);
  try {
    const auto internal = [&](std::string what) {
      return failed(PARTITA_COMPILER_INTERNAL, {Fault::Internal, "python.internal", std::move(what)}, graph);
    };
    try {
      const WorkingOn place("graph " + graph);
      const Status done = catch_raised<void>(f);
      if (done) return PARTITA_COMPILER_OK;
      const Fault fault = done.error().fault;
      const bool users = fault == Fault::Input || fault == Fault::Unsupported;
      return failed(users ? done.error().exit_code() : PARTITA_COMPILER_INTERNAL, done.error(), graph);
    } catch (const BrokenInvariant& broken) {
      return internal(broken.line);
    } catch (const std::exception& e) {
      return internal(e.what());
    }
  } catch (...) {  // no memory to say what; the text of an earlier failure must not stand for this one
    constexpr const char* what = "the memory does not suffice to say what failed";
    last_error.told = {PARTITA_COMPILER_INTERNAL, "python.internal", what, "", "", "", what};
    return PARTITA_COMPILER_INTERNAL;
  }
}

Status given(const void* pointer, const char* what) {
  return pointer ? Status() : input_error("python.null", fmt::format("{} is NULL", what));
}

Result<Tensor> tensor_of(const partita_value& v, const std::string& what) {
  if (v.dtype < 1 || v.dtype > static_cast<int>(DType::Complex128) + 1)
    return input_error("python.value", fmt::format("{} has no dtype", what));
  if (v.rank < 0 || v.rank > 64 || (v.rank > 0 && !v.sizes))
    return input_error("python.value", fmt::format("{} has no sizes", what));
  Tensor t;
  t.dtype = static_cast<DType>(v.dtype - 1);
  t.sizes.assign(v.sizes, v.sizes + v.rank);
  t.strides = v.strides ? Sizes(v.strides, v.strides + v.rank) : row_major_strides(t.sizes);
  TRY(const std::int64_t count, reach(t.sizes, t.strides));
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(static_cast<std::size_t>(count), itemsize(t.dtype), &bytes))
    return input_error("python.value", fmt::format("{} has impossible sizes", what));
  if (count > 0 && !v.data) return input_error("python.value", fmt::format("{} has no data", what));
  t.storage = Storage::borrow(static_cast<std::byte*>(v.data), bytes, nullptr);
  return t;
}

Result<std::vector<Value>> values_of(const Graph& graph, const partita_value* inputs, std::size_t count) {
  const std::vector<Node*> wanted = graph.placeholders();
  if (count != wanted.size())
    return input_error("python.inputs",
                       fmt::format("{} inputs are given, but the graph takes {}", count, wanted.size()));
  if (count > 0) TRY_DO(given(inputs, "inputs"));
  std::vector<Value> values;
  values.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    if (inputs[i].dtype == 0) {
      values.emplace_back();
      continue;
    }
    TRY(Tensor t, tensor_of(inputs[i], "input " + wanted[i]->name()));
    if (!inputs[i].is_number) {
      values.emplace_back(std::move(t));
    } else if (t.dtype == DType::Int64) {
      values.emplace_back(*t.as<std::int64_t>());
    } else if (t.dtype == DType::Bool) {
      values.emplace_back(static_cast<bool>(*t.as<StoredBool>()));
    } else {
      values.emplace_back(t.item_as_double());
    }
  }
  return values;
}

Result<std::vector<Tensor>> attributes_of(const partita_value* attributes, std::size_t count) {
  if (count > 0) TRY_DO(given(attributes, "attributes"));
  std::vector<Tensor> tensors;
  for (std::size_t i = 0; i < count; ++i) {
    TRY(Tensor t, tensor_of(attributes[i], fmt::format("attribute {}", i)));
    tensors.push_back(std::move(t));
  }
  return tensors;
}

/// Results whose addresses the caller gave.
Result<std::vector<Tensor>> memory_of(const partita_value* outputs, std::size_t count) {
  std::vector<Tensor> into(count);
  for (std::size_t i = 0; i < count; ++i) {
    if (!outputs[i].data || outputs[i].is_number) continue;
    TRY(into[i], tensor_of(outputs[i], fmt::format("result {}", i)));
  }
  return into;
}

/// Puts a result where the caller wants it, unless it was made there.
Status settle(const Value& result, const Tensor& target, std::size_t index) {
  const Tensor* t = result.get<Tensor>();
  const auto text = [](const Tensor& of) {
    return fmt::format("{}[{}]", torch_name(of.dtype), fmt::join(of.sizes, ", "));
  };
  if (!t || t->dtype != target.dtype || t->sizes != target.sizes)
    return Diagnostic{Fault::Internal, "python.result",
                      fmt::format("result {} is {}, but the caller has memory for {}", index,
                                  t ? text(*t) : "no tensor", text(target))};
  if (t->storage != target.storage || t->offset != target.offset || t->strides != target.strides) target.copy_from(*t);
  return {};
}

/// Frees what an allocated result holds.
struct Owner {
  Tensor tensor;
};

/// The input in whose memory the tensor lies; -1: none.
int input_of(const Tensor& t, const std::vector<Value>& inputs) {
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (const Tensor* in = inputs[i].get<Tensor>(); in && in->storage == t.storage) return static_cast<int>(i);
  return -1;
}

Status hand_over(const Value& result, const std::vector<Value>& inputs, partita_value& out) {
  out = {};
  out.input = -1;
  Tensor t;
  if (result.is_none()) return {};
  if (const auto* tensor = result.get<Tensor>()) {
    t = *tensor;
    out.input = input_of(t, inputs);
  } else {
    out.is_number = 1;
    TRY(const std::optional<Tensor> number, tensor_or_number(result));
    if (!number) return unsupported("python.result", "a result is no tensor and no number");
    t = *number;
  }
  auto owner = std::make_unique<Owner>(Owner{std::move(t)});
  const Tensor& kept = owner->tensor;
  static std::byte nothing;  // NULL stands for no value
  out.data = kept.numel() == 0 ? static_cast<void*>(&nothing) : kept.data();
  out.dtype = static_cast<std::int32_t>(kept.dtype) + 1;
  out.rank = static_cast<std::int32_t>(kept.sizes.size());
  out.sizes = kept.sizes.data();
  out.strides = kept.strides.data();
  out.owner = owner.release();
  return {};
}

void release(partita_value& out) {
  delete static_cast<Owner*>(out.owner);
  if (out.owner) out = {};
}

/// Runs a graph with the random state of the caller, which becomes that after the run.
Result<std::vector<Value>> run(partita_graph& graph, const std::vector<Value>& inputs, std::span<const Tensor> into,
                               void* random_state) {
  if (!graph.generator) return graph.compiled->run(inputs, into);
  TRY_DO(given(random_state, "the random state of a graph that draws random numbers"));
  const std::lock_guard lock(graph.drawing);
  const std::span<std::byte> state(static_cast<std::byte*>(random_state), Generator::state_size);
  if (!graph.generator->set_state(state))
    return input_error("python.generator", "the random state is none of PyTorch's generator of the CPU");
  TRY(std::vector<Value> results, graph.compiled->run(inputs, into));
  std::ranges::copy(graph.generator->state(), state.begin());
  return results;
}

char* text_of(const std::string& text) {
  char* out = static_cast<char*>(std::malloc(text.size() + 1));
  if (!out) throw std::bad_alloc();
  std::memcpy(out, text.c_str(), text.size() + 1);
  return out;
}

/// The name that the JSON gives the graph, for errors before it is read.
std::string name_in(const char* json, std::size_t size) {
  const auto described = nlohmann::json::parse(std::string_view(json ? json : "", json ? size : 0), nullptr, false);
  const auto name = described.is_object() ? described.find("name") : described.end();
  return name != described.end() && name->is_string() ? name->get<std::string>() : std::string();
}

Result<BackendOptions> options_of(std::string_view text) {
  BackendOptions options;
  const auto described = nlohmann::json::parse(text, nullptr, false);
  const auto given = described.is_object() && described.contains("config") ? described["config"] : nlohmann::json();
  for (const auto& [name, value] : given.items())
    TRY_DO(set_value(options.config, name, value.is_string() ? value.get<std::string>() : value.dump()));
  if (!options.config.save_args.empty() || !options.config.trace.empty())
    return input_error("python.config", "save_args and trace are options of the program partita");
  // One for the process: a graph's code is found in it by its text.
  static const auto store = std::make_shared<CodeStore>();
  if (!options.config.force_disable_caches) options.store = store;
  return options;
}

}  // namespace

#define PARTITA_API extern "C" __attribute__((visibility("default")))

PARTITA_API int partita_compiler_abi(void) {
  return PARTITA_COMPILER_ABI;
}
PARTITA_API const char* partita_compiler_version(void) {
  return PARTITA_VERSION;
}
PARTITA_API const partita_error* partita_compiler_last_error(void) {
  if (!last_error.told.code)
    last_error.told = {PARTITA_COMPILER_INTERNAL, "python.internal", "there is no memory", "", "", "",
                       "there is no memory"};
  return &last_error.told;
}

PARTITA_API int partita_compiler_knows(const char* op) {
  int known = 0;
  guarded("", [&]() -> Status {
    TRY_DO(given(op, "op"));
    const Op* found = Op::torch(op);
    known = find_record(found) && !is_collective(found);
    return {};
  });
  return known;
}

PARTITA_API int partita_compiler_check(const char* json, size_t size, const partita_value* attributes,
                                       size_t attribute_count, char** refused) {
  return guarded("", [&]() -> Status {
    TRY_DO(given(json, "json"));
    TRY_DO(given(refused, "refused"));
    TRY(const std::vector<Tensor> tensors, attributes_of(attributes, attribute_count));
    auto graph = python::read_graph({json, size}, tensors);
    if (!graph) {
      Diagnostic error = std::move(graph).error();
      error.where.graph = name_in(json, size);
      return error;
    }
    auto out = nlohmann::json::array();
    for (const python::Refused& r : python::find_refused(**graph))
      out.push_back({{"node", r.node}, {"op", r.op}, {"why", r.why}});
    *refused = text_of(out.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
    return {};
  });
}
PARTITA_API void partita_compiler_free_text(char* text) {
  std::free(text);
}

PARTITA_API int partita_graph_compile(const char* json, size_t size, const partita_value* attributes,
                                      size_t attribute_count, partita_graph** graph) {
  std::string name;
  const int named = guarded("", [&]() -> Status {
    TRY_DO(given(json, "json"));
    TRY_DO(given(graph, "graph"));
    *graph = nullptr;
    name = name_in(json, size);
    return {};
  });
  if (named != PARTITA_COMPILER_OK) return named;
  return guarded(name, [&]() -> Status {
    TRY(const std::vector<Tensor> tensors, attributes_of(attributes, attribute_count));
    auto made = std::make_unique<partita_graph>();
    TRY(made->graph, python::read_graph({json, size}, tensors));
    TRY(BackendOptions options, options_of({json, size}));
    options.on_sizes = [own = made.get()](const SizeCompilation& c) {
      const std::lock_guard lock(own->reports_mutex);
      own->reports.push_back(c);
    };
    if (python::draws_numbers(*made->graph)) options.generator = made->generator = std::make_shared<Generator>();
    TRY(made->compiled, compile_graph(default_compiler(), *made->graph, options));
    *graph = made.release();
    return {};
  });
}
PARTITA_API void partita_graph_free(partita_graph* graph) {
  delete graph;
}
PARTITA_API int partita_graph_draws(const partita_graph* graph) {
  return graph && graph->generator;
}
PARTITA_API char* partita_graph_report(partita_graph* graph) {
  char* out = nullptr;
  guarded(graph ? graph->graph->name : "", [&]() -> Status {
    TRY_DO(given(graph, "graph"));
    const std::lock_guard lock(graph->reports_mutex);
    auto list = nlohmann::json::array();
    for (const SizeCompilation& c : graph->reports) list.push_back(nlohmann::json::parse(json(c)));
    out = text_of(nlohmann::json{{"compilations", std::move(list)}}.dump());
    return {};
  });
  return out;
}

PARTITA_API int partita_graph_run(partita_graph* graph, const partita_value* inputs, size_t input_count,
                                  partita_value* outputs, size_t output_count, void* random_state) {
  return guarded(graph ? graph->graph->name : "", [&]() -> Status {
    TRY_DO(given(graph, "graph"));
    if (output_count > 0) TRY_DO(given(outputs, "outputs"));
    TRY(const std::vector<Value> values, values_of(*graph->graph, inputs, input_count));
    TRY(const std::vector<Tensor> into, memory_of(outputs, output_count));
    TRY(const std::vector<Value> results, run(*graph, values, into, random_state));
    if (results.size() != output_count)
      return input_error("python.outputs",
                         fmt::format("the graph has {} results, not {}", results.size(), output_count));
    for (std::size_t i = 0; i < output_count; ++i)
      if (into[i].storage) TRY_DO(settle(results[i], into[i], i));
    for (std::size_t i = 0; i < output_count; ++i) {
      if (into[i].storage) continue;
      if (const Status done = hand_over(results[i], values, outputs[i]); !done) {
        for (std::size_t k = 0; k < i; ++k)
          if (!into[k].storage) release(outputs[k]);
        return done;
      }
    }
    return {};
  });
}
PARTITA_API void partita_graph_release(partita_value* outputs, size_t output_count) {
  for (std::size_t i = 0; outputs && i < output_count; ++i) release(outputs[i]);
}

PARTITA_API int partita_call_prepare(partita_graph* graph, const partita_value* inputs, size_t input_count,
                                     const partita_value* outputs, size_t output_count, partita_call** call) {
  return guarded(graph ? graph->graph->name : "", [&]() -> Status {
    TRY_DO(given(graph, "graph"));
    TRY_DO(given(call, "call"));
    if (output_count > 0) TRY_DO(given(outputs, "outputs"));
    auto made = std::make_unique<partita_call>();
    made->graph = graph;
    TRY(made->inputs, values_of(*graph->graph, inputs, input_count));
    for (std::size_t i = 0; i < input_count; ++i)
      if (made->inputs[i].get<Tensor>()) made->tensors.push_back(i);
    TRY(made->into, memory_of(outputs, output_count));
    for (std::size_t i = 0; i < output_count; ++i)
      if (made->into[i].storage) made->wanted.push_back(i);
    *call = made.release();
    return {};
  });
}
PARTITA_API void partita_call_free(partita_call* call) {
  delete call;
}
PARTITA_API int partita_call_run(partita_call* call, const uint64_t* inputs, const uint64_t* outputs,
                                 void* random_state) {
  return guarded(call ? call->graph->graph->name : "", [&]() -> Status {
    TRY_DO(given(call, "call"));
    const std::lock_guard lock(call->mutex);
    const auto move_to = [](Tensor& t, std::uint64_t address) {
      t.storage = Storage::borrow(reinterpret_cast<std::byte*>(address), t.storage->bytes(), nullptr);
    };
    for (std::size_t i = 0; i < call->tensors.size(); ++i)
      move_to(*std::get_if<Tensor>(&call->inputs[call->tensors[i]].v), inputs[i]);
    for (std::size_t i = 0; i < call->wanted.size(); ++i) move_to(call->into[call->wanted[i]], outputs[i]);
    TRY(const std::vector<Value> results, run(*call->graph, call->inputs, call->into, random_state));
    if (results.size() != call->into.size())
      return Diagnostic{Fault::Internal, "python.outputs", "the graph has another number of results than before"};
    for (const std::size_t i : call->wanted) TRY_DO(settle(results[i], call->into[i], i));
    return {};
  });
}

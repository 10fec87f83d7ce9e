// Writes each record as PyTorch's TorchLogsFormatter does: a line of JSON, then its payload. A frame per thread holds
// the compile id for its records, and collects times and failure for compilation_metrics.
#include "core/load/trace_writer.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <map>
#include <mutex>

#include <fcntl.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <pthread.h>
#include <unistd.h>

#include "core/base/config.h"
#include "core/base/descriptor.h"
#include "core/base/md5.h"
#include "core/ir/print.h"

namespace partita::trace {
namespace {

using Json = nlohmann::ordered_json;

/// A compilation that runs.
struct Frame {
  CompileId id;
  bool metrics = true;   ///< write them at the end
  double begin = 0;      ///< microseconds since 1970
  Json input = nullptr;  ///< of compilation_metrics: what is known of the graph; null: none was given yet
  StageTimes stages = {};
  std::size_t guards = 0;
  Json failure = nullptr;
};
thread_local Frame* frame = nullptr;

/// The log of this process. Lines are written whole, and a child that is forked gets a file of its own.
struct Log {
  std::mutex mutex;
  std::atomic<bool> off = false;
  std::atomic<bool> failed = false;  ///< it was asked for, and could not be written
  std::atomic<int> fd = -1;
  pid_t pid = 0;  ///< whose file it is
  std::string path;
  std::map<std::string, std::size_t> strings;         ///< interned in this file
  std::int64_t frames = 0;                            ///< begun so far
  std::map<std::int64_t, std::int64_t> compilations;  ///< of each frame, beside its first
};
Log& the_log() {
  static Log& log = *[] {
    // A fork while another thread writes would leave the child a lock that nobody opens.
    ::pthread_atfork([] { the_log().mutex.lock(); }, [] { the_log().mutex.unlock(); },
                     [] { the_log().mutex.unlock(); });
    return new Log;
  }();
  return log;
}

std::string folder() {
  if (!config().trace.empty()) return config().trace;
  const char* given = std::getenv("TORCH_TRACE");
  return given ? given : "";
}

double now() {
  return std::chrono::duration<double, std::micro>(std::chrono::system_clock::now().time_since_epoch()).count();
}

void give_up(Log& log, const std::string& path) {
  std::fprintf(stderr, "partita: %s: no trace is written: %s\n", path.c_str(), std::strerror(errno));
  log.off = log.failed = true;
}

/// Makes the file. False when there is none.
bool open_file(Log& log) {
  if (log.off) return false;
  if (log.fd >= 0 && log.pid == ::getpid()) return true;
  if (log.fd >= 0) ::close(log.fd);
  log.strings.clear();
  log.pid = ::getpid();
  const std::filesystem::path in(folder());
  std::error_code ignored;  // mkostemps says why it cannot
  std::filesystem::create_directories(in, ignored);
  log.path = (in / (std::string(file_prefix) + "XXXXXX.log")).string();
  log.fd = ::mkostemps(log.path.data(), 4, O_APPEND | O_CLOEXEC);
  if (log.fd < 0) give_up(log, in.string());
  return log.fd >= 0;
}

/// As json.dumps writes it in one line.
std::string one_line(const Json& json) {
  const std::string lines = json.dump(0, ' ', true, Json::error_handler_t::replace);
  std::string out;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (lines[i] != '\n')
      out += lines[i];
    else if (lines[i - 1] == ',')
      out += ' ';
  }
  return out;
}

/// As PyTorch writes payloads that are no text: broken into lines, of a list its elements.
std::string payload_of(const Json& json) {
  if (!json.is_array()) return json.dump(0, ' ', true, Json::error_handler_t::replace);
  std::vector<std::string> rows;
  for (const Json& row : json) rows.push_back(one_line(row));
  return fmt::format("[\n{}\n]", fmt::join(rows, ",\n"));
}

/// Relative to the folder that this file's name is relative to.
std::string_view source_file(const Source& from) {
  static const std::size_t root = std::string_view(Source::current().file_name()).rfind("core/load/");
  const std::string_view name = from.file_name();
  return name.substr(std::min(root, name.size()));
}

/// The line as TorchLogsFormatter writes it, with its payload.
std::string line_of(const Json& metadata, const std::optional<std::string>& payload, const Source& from) {
  const double at = now();
  const auto seconds = static_cast<std::time_t>(at / 1e6);
  std::tm local = {};
  ::localtime_r(&seconds, &local);
  char date[32];
  std::strftime(date, sizeof date, "%m%d %H:%M:%S", &local);
  std::string line = fmt::format("V{}.{:06} {} {}:{}] {}\n", date, static_cast<std::int64_t>(at) % 1'000'000,
                                 ::getpid(), source_file(from), from.line(), one_line(metadata));
  if (!payload) return line;
  line += '\t';
  for (const char c : *payload) {
    line += c;
    if (c == '\n') line += '\t';
  }
  return line + '\n';
}

void write(Log& log, const std::string& line) {
  if (open_file(log) && !write_all(log.fd, line.data(), line.size())) give_up(log, log.path);
}

/// PyTorch's trace_structured.
void record(const char* name, const Json& metadata, const std::optional<std::string>& payload, const Source& from) {
  Json all = {{name, metadata}};
  if (frame && frame->id.frame) {
    all[id_keys[1]] = *frame->id.frame;
    all[id_keys[2]] = frame->id.compile;
    all[id_keys[3]] = frame->id.attempt;
  }
  if (payload) {
    Md5 sum;
    sum.update(*payload);
    all[payload_key] = sum.hex();
  }
  Log& log = the_log();
  const std::lock_guard lock(log.mutex);
  write(log, line_of(all, payload, from));
}

void write_artifact(const char* name, const char* encoding, const std::string& payload, const Source& from) {
  record(artifact_key, {{"name", name}, {"encoding", encoding}}, payload, from);
}

/// A number for a text, which is written once.
std::size_t intern(const std::string& text, const Source& from) {
  Log& log = the_log();
  const std::lock_guard lock(log.mutex);
  if (!open_file(log)) return 0;
  const auto [found, added] = log.strings.emplace(text, log.strings.size());
  if (added) write(log, line_of({{"str", {text, found->second}}}, {}, from));
  return found->second;
}

void event(const std::string& name, const char* phase, double at, const Source& from) {
  const Json payload = {{"name", name},
                        {"ts", at},
                        {"args", {{"compile_id", text_of(current())}}},
                        {"ph", phase},
                        {"cat", "dynamo_timed"},
                        {"tid", 0},
                        {"pid", 0}};
  record("chromium_event", Json::object(), payload_of(payload), from);
}

Json numbers(const SymList& list) {
  Json out = Json::array();
  for (SymExpr e : list) out.push_back(e.is_int() ? Json(e.as_int()) : Json(e.str()));
  return out;
}

/// What PyTorch records of the inputs that it makes fake tensors of: each with its storage and its source. Symbols are
/// left out (create_symbol), because tlparse knows no such record.
void describe_inputs(const Graph& graph, Source from) {
  std::map<int, std::size_t> storages;
  std::size_t id = 0;
  const auto at_first = [&](SymExpr e) -> SymExpr {
    const auto hint = graph.shapes ? graph.shapes->hint(e) : std::nullopt;
    return hint ? SymExpr(*hint) : e;
  };
  for (const Node* node : graph.placeholders()) {
    const TensorMeta* t = node->meta.tensor();
    if (!t) continue;
    SymList sizes, strides;
    Json dynamic = Json::array();
    for (std::size_t d = 0; d < t->dim(); ++d) {
      sizes.push_back(at_first(t->sizes[d]));
      if (!t->sizes[d].is_int()) dynamic.push_back(d);
    }
    for (SymExpr e : t->strides) strides.push_back(at_first(e));
    Json tensor = {{"id", id},
                   {"ndim", t->dim()},
                   {"dtype", fmt::format("torch.{}", torch_name(t->dtype))},
                   {"device", fmt::format("device(type='{}')", t->device.str())},
                   {"size", numbers(sizes)},
                   {"dynamo_dynamic_indices", dynamic},
                   {"is_leaf", true},
                   {"requires_grad", t->requires_grad},
                   {"stride", numbers(strides)},
                   {"describer_id", 0}};
    // A size in bytes is a number to tlparse.
    std::size_t bytes = itemsize(t->dtype);
    const bool known = std::ranges::all_of(sizes, [&](SymExpr e) {
      return e.is_int() && !__builtin_mul_overflow(bytes, static_cast<std::size_t>(e.as_int()), &bytes);
    });
    if (known) {
      const int shared = t->storage_id < 0 ? -1 - static_cast<int>(id) : t->storage_id;
      const auto [storage, is_new] = storages.try_emplace(shared, storages.size());
      if (is_new) record("describe_storage", {{"id", storage->second}, {"describer_id", 0}, {"size", bytes}}, {}, from);
      tensor["storage"] = storage->second;
    }
    record("describe_tensor", tensor, {}, from);
    const std::string source = fmt::format("L['{}']", node->name());
    record("describe_source", {{"describer_id", 0}, {"id", id++}, {"source", source}}, {}, from);
  }
}

/// The first line of the user's program that the graph is made of.
const StackFrame* first_frame(const Graph& graph) {
  for (const Node* node : graph)
    if (node->origin && !node->origin->of_user().file.empty()) return &node->origin->of_user();
  return nullptr;
}

/// In microseconds, by stage.
Json times_of(const Frame& f) {
  Json out = Json::object();
  for (const auto& [name, time] : f.stages.all()) out[name] = static_cast<std::int64_t>(time * 1e3);
  return out;
}

Json metrics_of(const Frame& f, double end) {
  const auto stages = f.stages.all();
  const auto seconds = [&](std::string_view stage) {
    const auto found = std::ranges::find(stages, stage, &std::pair<std::string, double>::first);
    return found == stages.end() ? 0.0 : found->second / 1e3;
  };
  Json out = {{"compile_id", text_of(f.id)},
              {"frame_key", std::to_string(*f.id.frame + 1)},
              {"co_name", nullptr},
              {"co_filename", nullptr},
              {"co_firstlineno", nullptr},
              {"cache_size", f.id.compile},
              {"accumulated_cache_size", f.id.compile},
              {"guard_count", f.guards},
              {"shape_env_guard_count", f.guards},
              {"graph_op_count", 0},
              {"graph_node_count", 0},
              {"graph_input_count", 0},
              {"start_time", f.begin / 1e6},
              {"entire_frame_compile_time_s", (end - f.begin) / 1e6},
              {"backend_compile_time_s", (end - f.begin) / 1e6},
              {"inductor_compile_time_s", seconds("inductor_compile")},
              {"code_gen_time_s", seconds("code_gen")},
              {"fail_type", nullptr},
              {"fail_reason", nullptr},
              {"fail_user_frame_filename", nullptr},
              {"fail_user_frame_lineno", nullptr},
              {"non_compliant_ops", Json::array()},
              {"compliant_custom_ops", Json::array()},
              {"restart_reasons", Json::array()},
              {"dynamo_time_before_restart_s", 0.0},
              {"has_guarded_code", f.failure.is_null()}};
  if (!f.input.is_null()) out.update(f.input);
  if (!f.failure.is_null()) out.update(f.failure);
  if (!stages.empty()) out["stage_times_us"] = times_of(f);
  return out;
}

}  // namespace

bool on() {
  Log& log = the_log();
  return !log.off && (log.fd >= 0 || !folder().empty());
}

bool failed() {
  return the_log().failed;
}

std::string file() {
  if (!on()) return {};
  Log& log = the_log();
  const std::lock_guard lock(log.mutex);
  return open_file(log) ? log.path : std::string();
}

void append_to(const std::string& file) {
  Log& log = the_log();
  const std::lock_guard lock(log.mutex);
  log.off = file.empty();
  if (log.off) return;
  log.pid = ::getpid();
  log.path = file;
  log.fd = ::open(file.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  if (log.fd < 0) give_up(log, file);
}

void entry(const char* name, const Graph& graph, Source from) {
  if (on()) record(name, Json::object(), print(graph), from);
}

void artifact(const char* name, const Graph& graph, Source from) {
  if (on()) write_artifact(name, "string", print(graph), from);
}
void artifact(const char* name, const std::string& text, Source from) {
  if (on()) write_artifact(name, "string", text, from);
}
void artifact(const char* name, const Json& json, Source from) {
  if (on()) write_artifact(name, "json", payload_of(json), from);
}

void output_code(const std::string& graph, const std::string& text, Source from) {
  if (on()) record("inductor_output_code", {{"filename", graph + ".txt"}}, text, from);
}

void guards(const Graph& graph, const std::vector<Guard>& guards, Source from) {
  if (!on()) return;
  Json rows = Json::array();
  for (const Node* p : graph.placeholders()) {
    const TensorMeta* t = p->meta.tensor();
    if (!t) continue;
    std::vector<std::string> sizes;
    for (SymExpr e : t->sizes) sizes.push_back(e.str());
    rows.push_back({{"code", fmt::format("check_tensor({}, torch.{}, device={}, size=[{}])", p->name(),
                                         torch_name(t->dtype), t->device.str(), fmt::join(sizes, ", "))},
                    {"stack", nullptr},
                    {"user_stack", nullptr}});
  }
  for (const Guard& g : guards) {
    rows.push_back({{"code", g.condition.str() + "  # " + g.reason}, {"stack", nullptr}, {"user_stack", nullptr}});
    record("guard_added_fast", {{"expr", g.condition.str()}, {"user_stack", Json::array()}, {"stack", Json::array()}},
           {}, from);
  }
  record("dynamo_guards", Json::object(), payload_of(rows), from);
  if (frame) frame->guards += guards.size();
}

Compilation::Compilation() {
  if (frame || !on()) return;
  Log& log = the_log();
  std::unique_lock lock(log.mutex);
  const CompileId next = {.frame = log.frames++};
  lock.unlock();
  begin(next);
}

Compilation::Compilation(const CompileId& earlier, bool again) {
  if (frame || !on() || !earlier.frame) return;
  CompileId id = earlier;
  if (again) {
    Log& log = the_log();
    const std::lock_guard lock(log.mutex);
    id.compile = ++log.compilations[*earlier.frame];
  }
  begin(id);
  frame->metrics = again;
}

void Compilation::begin(const CompileId& id) {
  outermost_ = true;
  frame = new Frame{.id = id, .begin = now()};
  event("entire_frame_compile", "B", frame->begin, Source::current());
}

Compilation::~Compilation() {
  if (!outermost_) return;
  const double end = now();
  event("entire_frame_compile", "E", end, Source::current());
  if (std::uncaught_exceptions() > raised_)
    frame->failure = {{"fail_type", "raised"}, {"fail_reason", "an error was raised"}};
  if (frame->metrics)
    record("compilation_metrics", metrics_of(*frame, end), {}, Source::current());
  else
    artifact("stage_times", times_of(*frame));
  delete std::exchange(frame, nullptr);
}

void Compilation::failed(const Diagnostic& why) {
  if (outermost_) frame->failure = {{"fail_type", why.code}, {"fail_reason", why.line()}};
}

CompileId current() {
  return frame ? frame->id : CompileId();
}

void input(const Graph& graph, const char* name, Source from) {
  if (!frame || !frame->metrics || !frame->input.is_null() || !on()) return;
  std::size_t calls = 0;
  for (const Node* node : graph) calls += node->op()->is_call();
  frame->input = {{"graph_op_count", calls},
                  {"graph_node_count", graph.size()},
                  {"graph_input_count", graph.placeholders().size()}};
  Json stack = Json::array();
  if (const StackFrame* first = first_frame(graph)) {
    frame->input.update({{"co_name", first->function}, {"co_filename", first->file}, {"co_firstlineno", first->line}});
    stack.push_back({{"line", first->line},
                     {"name", first->function},
                     {"filename", intern(first->file, from)},
                     {"loc", first->code}});
  }
  record("dynamo_start", {{"stack", stack}}, {}, from);
  describe_inputs(graph, from);
  write_artifact("partita.config", "string", config_text(config(), ConfigPart::Differs), from);
  if (!name) return;
  Json sizes = Json::object();
  for (const Node* node : graph)
    if (const TensorMeta* t = node->meta.tensor()) sizes[node->name()] = numbers(t->sizes);
  record(name, {{"sizes", sizes}}, print(graph), from);
}

Stage::Stage(std::string_view name, StageTimes* times, Source from)
    : name_(name), times_(times), from_(from), traced_(frame && on()) {
  if (traced_) event(name_, "B", now(), from_);
}

Stage::~Stage() {
  add_time(name_, std::chrono::duration<double, std::milli>(Clock::now() - start_).count(), times_);
  if (traced_ && frame) event(name_, "E", now(), from_);
}

void add_time(std::string_view stage, double milliseconds, StageTimes* times) {
  if (times) times->add(stage, milliseconds);
  if (frame) frame->stages.add(stage, milliseconds);
}

}  // namespace partita::trace

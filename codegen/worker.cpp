// Compiled code in another process, both sides: requests go through a socket, tensors through shared memory, and a
// shared page says what the worker is doing. A worker that hangs is ended, and its death told with that place.
#include "codegen/worker.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <mutex>
#include <thread>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/aot/graph_io.h"
#include "core/base/assign.h"
#include "core/base/raise.h"
#include "core/base/whereabouts.h"
#include "core/ir/archive_meta.h"
#include "core/ir/place.h"
#include "core/ir/print.h"
#include "core/load/fx_text.h"
#include "core/load/operators.h"
#include "core/load/trace_writer.h"
#include "core/ops/record/fake_ranks.h"
#include "core/process/message.h"
#include "core/process/process.h"
#include "core/store/code_store.h"
#include "core/tensor/shared_values.h"

namespace partita {

void fields(auto& a, Diagnostic& d) {
  a.choice(d.fault, 5);
  a(d.code, d.message, d.where.file, d.where.line, d.where.graph, d.where.node, d.where.origin, d.notes);
}
namespace trace {
void fields(auto& a, CompileId& id) {
  a(id.compiled_autograd, id.frame, id.compile, id.attempt);
}
}  // namespace trace

namespace {

using Clock = std::chrono::steady_clock;

/// What is said to a worker when it starts.
struct WorkerSetup {
  std::string backend, plant, config;
  bool fixed_parameters = false, generator = false, store = false;
  std::int64_t fake_ranks = -1;  ///< how many ranks the stand-in for the others has; -1: there is none
  std::string trace;             ///< the log to write to
};
struct CompileRequest {
  std::vector<std::size_t> released;  ///< graphs that nobody runs any more
  std::string name, text;
  std::map<std::string, std::int64_t> hints;  ///< of the symbols, which the text leaves out; sub graphs have them too
  std::map<std::string, SymRange> ranges;
  trace::CompileId compilation;
  std::vector<std::string> attributes;
  std::string tensors;  ///< the attributes' SharedValues
};
struct RunRequest {
  std::size_t graph = 0;
  std::string generator, inputs;
};
struct RunAnswer {
  std::string generator;
  std::vector<SizeCompilation> compilations;           ///< for new sizes
  std::vector<std::pair<std::string, double>> stages;  ///< of compilations, and their milliseconds
  std::string outputs;
};
void fields(auto& a, WorkerSetup& s) {
  a(s.backend, s.plant, s.config, s.fixed_parameters, s.generator, s.store, s.fake_ranks, s.trace);
}
void fields(auto& a, CompileRequest& r) {
  a(r.released, r.name, r.text, r.hints, r.ranges, r.compilation, r.attributes, r.tensors);
}
void fields(auto& a, RunRequest& r) {
  a(r.graph, r.generator, r.inputs);
}
void fields(auto& a, RunAnswer& r) {
  a(r.generator, r.compilations, r.stages, r.outputs);
}
// The headings of messages.
constexpr std::string_view to_compile = "C", to_run = "R", done_heading = "+", error_heading = "-";

/// The generator's state as text; empty without one.
std::string state_of(const std::shared_ptr<Generator>& generator) {
  if (!generator) return {};
  const auto state = generator->state();
  return {reinterpret_cast<const char*>(state.data()), state.size()};
}
void set_state(const std::shared_ptr<Generator>& generator, const std::string& state) {
  if (generator) CHECK(generator->set_state(std::as_bytes(std::span(state))), "the state of a generator");
}

Diagnostic not_started(const char* what) {
  return input_error("worker.start",
                     fmt::format("no process can be started for compiled code: {}: {}", what, std::strerror(errno)));
}

/// The tensors of a graph and of its sub graphs, in an order that the worker finds too.
void collect_attributes(const Graph& graph, std::vector<std::string>& names, std::vector<Value>& values) {
  for (const auto& [name, tensor] : graph.attributes) {
    names.push_back(name);
    values.emplace_back(tensor);
  }
  names.emplace_back();  // ends this graph's
  for (const auto& [target, child] : graph.children) collect_attributes(*child, names, values);
}

bool set_attributes(Graph& graph, std::span<const std::string>& names, std::span<const Value>& values) {
  for (; !names.empty() && !names[0].empty(); names = names.subspan(1), values = values.subspan(1)) {
    const Tensor* t = values.empty() ? nullptr : values[0].get<Tensor>();
    if (!t) return false;
    graph.attributes[names[0]] = *t;
  }
  if (names.empty()) return false;
  names = names.subspan(1);
  return std::ranges::all_of(graph.children,
                             [&](const auto& child) { return set_attributes(*child.second, names, values); });
}

/// The page that a worker writes and its starter reads.
Result<std::shared_ptr<Whereabouts>> map_page(int fd) {
  void* page = ::mmap(nullptr, sizeof(Whereabouts), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (page == MAP_FAILED) return not_started("mmap");
  return std::shared_ptr<Whereabouts>(static_cast<Whereabouts*>(page),
                                      [](Whereabouts* mapped) { ::munmap(mapped, sizeof *mapped); });
}

/// One worker, seen from the process that started it.
class Worker {
 public:
  static Result<std::shared_ptr<Worker>> start(const std::string& backend, const BackendOptions& options);
  ~Worker();
  Worker() = default;
  Worker(const Worker&) = delete;

  /// The body of the answer, and what came with it.
  Result<Message> ask(std::string_view text, const Descriptor& fd);

  const BackendOptions& options() const { return options_; }
  bool ended() const { return end_.has_value(); }

  /// Held by who calls the functions below and ask().
  std::unique_lock<std::mutex> lock() { return std::unique_lock(one_at_a_time_); }
  /// The number of a graph that was compiled.
  std::size_t add_graph() { return graphs_++; }
  /// Nobody runs the graph any more.
  void release(std::size_t graph) { released_.push_back(graph); }
  /// Those released, of which the worker does not know yet.
  std::vector<std::size_t> take_released() { return std::exchange(released_, {}); }

 private:
  bool wait();
  Diagnostic worker_death();

  std::string backend_;
  BackendOptions options_;
  std::mutex one_at_a_time_;
  std::size_t graphs_ = 0;  ///< compiled so far
  std::vector<std::size_t> released_;
  std::optional<Process> process_;
  Descriptor socket_;
  std::shared_ptr<Whereabouts> page_;
  std::uint64_t notes_ = 0;  ///< of the page, when it last changed
  Clock::time_point changed_;
  std::string how_;  ///< why this process ended the worker; empty: it did not
  std::optional<Diagnostic> end_;
};

Result<std::shared_ptr<Worker>> Worker::start(const std::string& backend, const BackendOptions& options) {
  auto worker = std::make_shared<Worker>();
  worker->backend_ = backend;
  worker->options_ = options;
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return not_started("socketpair");
  worker->socket_ = Descriptor(ends[0]);
  const Descriptor theirs(ends[1]), page(::memfd_create("partita-at", MFD_CLOEXEC));
  if (page.get() < 0 || ::ftruncate(page.get(), sizeof(Whereabouts)) != 0) return not_started("memfd_create");
  TRY(worker->page_, map_page(page.get()));
  ProcessStart start;
  start.words = {options.worker->program, "worker"};
  start.outlives_thread = true;
  start.descriptors = {{theirs.get(), worker_socket}};
  TRY(worker->process_, Process::start(start));
  const auto* fake = dynamic_cast<const FakeRanks*>(options.communicator.get());
  if (options.communicator && !fake)
    return unsupported("worker.ranks",
                       "ranks that run together run in one process, and not in another one for each graph");
  WorkerSetup setup{backend,
                    options.worker->plant,
                    config_text(options.config, ConfigPart::All),
                    options.fixed_parameters,
                    options.generator != nullptr,
                    options.store != nullptr,
                    fake ? fake->size() : -1,
                    trace::file()};
  TRY(const std::string message, to_bytes("", std::move(setup)));
  TRY_DO(worker->ask(message, page));
  return worker;
}

Worker::~Worker() {
  if (!process_ || !process_->running()) return;
  process_->kill();
  std::fputs(process_->errors().c_str(), stderr);  // warnings; of a death the last line was quoted
}

/// Waits for bytes of the worker. False when it was ended: on request, or because it hangs.
bool Worker::wait() {
  constexpr int milliseconds = 10;  // until a cancellation is noticed
  while (true) {
    pollfd socket{socket_.get(), POLLIN, 0};
    if (::poll(&socket, 1, milliseconds) > 0) return true;
    const auto now = Clock::now();
    if (const std::uint64_t notes = page_->notes.load(); notes != notes_) {
      notes_ = notes;
      changed_ = now;
      if (options_.progress) options_.progress->at(-1, text_of(*page_));
    }
    const double limit = options_.config.step_seconds;
    if (options_.progress && options_.progress->cancelled())
      end_ = stopped_on_request();
    else if (std::chrono::duration<double>(now - changed_).count() > limit)
      how_ = fmt::format("still running after {:g} s", limit);
    else
      continue;
    process_->kill();
    return false;
  }
}

/// Says how the worker ended.
Diagnostic Worker::worker_death() {
  const ProcessEnd end = process_->wait();
  if (end_) return *end_;
  if (how_.empty()) how_ = end.text();
  if (end.how == ProcessEnd::NotFound)
    end_ = input_error("worker.start",
                       fmt::format("{} cannot be started for compiled code: {}", options_.worker->program, how_));
  else
    end_ = death(backend_, how_, *page_);
  return *end_;
}

Result<Message> Worker::ask(std::string_view text, const Descriptor& fd) {
  if (end_) return *end_;
  changed_ = Clock::now();
  if (!send_message(socket_.get(), text, fd.get())) return worker_death();
  auto answer = receive_message(socket_.get(), [this] { return wait(); });
  if (!answer) return worker_death();
  if (auto error = from_bytes<Diagnostic>(error_heading, answer->text)) return *std::move(error);
  CHECK(answer->text.starts_with(done_heading), "an answer of a worker cannot be read");
  answer->text.erase(0, done_heading.size());
  return *std::move(answer);
}

/// An error of the worker, with the place in the user's program, which the text of a graph does not carry.
Diagnostic with_place(Diagnostic error, const Graph& graph) {
  const Node* node = error.where.node.empty() ? nullptr : graph.find(error.where.node);
  if (node) error.where.origin = origin_text(*node);
  return error;
}

std::string plain_text(const Graph& graph) {
  const std::unique_ptr<Graph> plain = graph.clone();
  plain->name = "GraphModule";
  plain->form = GraphForm::Flat;
  return print(*plain, {.annotations = true, .origins = false, .deletions = false});
}

/// A graph that the worker holds as long as this lives.
struct Held {
  std::shared_ptr<Worker> worker;
  std::size_t index;
  ~Held() {
    const auto lock = worker->lock();
    worker->release(index);
  }
};

Result<std::vector<Value>> run_in(const Held& held, const Graph& graph, bool writes, const std::vector<Value>& inputs) {
  Worker& worker = *held.worker;
  const auto lock = worker.lock();
  Storages known;
  TRY(const SharedValues shared, share_values(inputs, known));
  const BackendOptions& options = worker.options();
  TRY(const std::string request, to_bytes(to_run, RunRequest{held.index, state_of(options.generator), shared.text}));
  auto message = worker.ask(request, shared.memory);
  if (!message) return with_place(std::move(message).error(), graph);
  if (writes) TRY_DO(take_back(shared, known));
  TRY(RunAnswer answer, read_message<RunAnswer>("", message->text));
  set_state(options.generator, answer.generator);
  if (options.on_sizes) std::ranges::for_each(answer.compilations, options.on_sizes);
  if (options.times)
    for (const auto& [stage, milliseconds] : answer.stages) options.times->add(stage, milliseconds);
  return shared_values({std::move(answer.outputs), std::move(message->fd)}, known);
}

/// The worker's own side.
class Server {
 public:
  /// `compilations`: for new sizes. `times`: of the stages of compilations.
  Server(CompileFn compile, std::shared_ptr<Generator> generator,
         std::shared_ptr<std::vector<SizeCompilation>> compilations, std::shared_ptr<StageTimes> times)
      : compile_(std::move(compile)),
        generator_(std::move(generator)),
        compilations_(std::move(compilations)),
        times_(std::move(times)) {}

  /// The text and the memory of the answer.
  Result<SharedValues> answer(const Message& message) {
    if (const auto request = from_bytes<CompileRequest>(to_compile, message.text)) return compile(*request, message);
    TRY(const RunRequest request, read_message<RunRequest>(to_run, message.text));
    return run(request, message);
  }

 private:
  Result<SharedValues> compile(const CompileRequest& request, const Message& message) {
    for (const std::size_t done : request.released) {
      CHECK(done < compiled_.size(), "a graph is released that was not compiled");
      compiled_[done] = nullptr;
      graphs_[done].reset();
    }
    now_at("reading the graph");
    TRY(std::shared_ptr<Graph> graph, parse_fx_text(request.text));
    TRY_DO(give_meanings(*graph));
    graph->name = request.name;
    for (const auto& [symbol, hint] : request.hints) graph->shapes->set_hint(symbol, hint);
    for (const auto& [symbol, range] : request.ranges) graph->shapes->set_range(symbol, range);
    const trace::Compilation part(request.compilation);
    Storages known;
    TRY(const std::vector<Value> values, shared_values({request.tensors, Descriptor(::dup(message.fd.get()))}, known));
    std::span<const std::string> all_names(request.attributes);
    std::span<const Value> all_values(values);
    CHECK(set_attributes(*graph, all_names, all_values), "the tensors of a graph do not fit its text");
    now_at("compiling");
    TRY(CompiledFn run, compile_(*graph));
    graphs_.push_back(std::move(graph));
    compiled_.push_back(std::move(run));
    return SharedValues();
  }

  Result<SharedValues> run(const RunRequest& request, const Message& message) {
    CHECK(request.graph < compiled_.size(), "a request for a graph that was not compiled");
    set_state(generator_, request.generator);
    Storages known;
    TRY(std::vector<Value> inputs, shared_values({request.inputs, Descriptor(::dup(message.fd.get()))}, known));
    now_at("running");
    TRY(const std::vector<Value> outputs, compiled_[request.graph](std::move(inputs)));
    TRY(SharedValues shared, share_values(outputs, known));
    TRY(shared.text, to_bytes("", RunAnswer{state_of(generator_), std::exchange(*compilations_, {}), times_->take(),
                                            std::move(shared.text)}));
    return shared;
  }

  CompileFn compile_;
  std::shared_ptr<Generator> generator_;
  std::shared_ptr<std::vector<SizeCompilation>> compilations_;
  std::shared_ptr<StageTimes> times_;
  std::vector<std::shared_ptr<Graph>> graphs_;  ///< at stable addresses, because compiled functions refer to them
  std::vector<CompiledFn> compiled_;
};

bool reply(int socket, const Result<SharedValues>& answer) {
  if (answer) return send_message(socket, std::string(done_heading) + answer->text, answer->memory.get());
  return send_message(socket, *to_bytes(error_heading, answer.error()));
}

}  // namespace

CompileFn compile_in_worker(const std::string& backend, const BackendOptions& options) {
  CHECK(options.worker, "no worker is asked for");
  auto shared = std::make_shared<std::shared_ptr<Worker>>();
  const auto compile = [backend, options, shared](const Graph& graph) -> Result<CompiledFn> {
    if (options.worker->on_graph) options.worker->on_graph(graph);
    if (!*shared || (*shared)->ended()) TRY_DO(assign(*shared, Worker::start(backend, options)));
    const trace::Stage timed("inductor_compile");
    const std::shared_ptr<Worker> worker = *shared;
    const auto lock = worker->lock();
    CompileRequest request{.name = graph.name,
                           .text = plain_text(graph),
                           .hints = graph.shapes->hints(),
                           .ranges = graph.shapes->ranges(),
                           .compilation = trace::current()};
    std::vector<Value> attributes;
    collect_attributes(graph, request.attributes, attributes);
    Storages known;
    TRY(const SharedValues tensors, share_values(attributes, known));
    request.tensors = tensors.text;
    request.released = worker->take_released();
    TRY(const std::string message, to_bytes(to_compile, std::move(request)));
    if (auto done = worker->ask(message, tensors.memory); !done) return with_place(std::move(done).error(), graph);
    const auto held = std::shared_ptr<Held>(new Held{worker, worker->add_graph()});
    return CompiledFn([held, &graph, writes = mutates_inputs(graph)](const std::vector<Value>& inputs) {
      return run_in(*held, graph, writes, inputs);
    });
  };
  return [compile](const Graph& graph) {
    return trace::compiled([&] {
      trace::input(graph, "aot_inference_graph");
      return compile(graph);
    });
  };
}

Status serve_as_worker(int socket,
                       const std::function<Result<CompileFn>(const std::string& backend, const std::string& plant,
                                                             const BackendOptions& options)>& make) {
  const auto blocking = [] { return true; };
  auto first = receive_message(socket, blocking);
  if (!first || first->fd.get() < 0)
    return input_error("worker.socket", "only partita itself starts a worker; use compare or run --compiler");
  TRY(const auto page, map_page(first->fd.get()));
  // Compiled code that hangs does not read the socket, so a thread waits for the end of the other process.
  std::thread([socket] {
    pollfd other{socket, POLLRDHUP, 0};
    while (::poll(&other, 1, -1) < 0 && errno == EINTR) {
    }
    ::_exit(0);
  }).detach();
  // A handler of a crash reporter would hide the signal.
  for (const int crash : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT}) ::signal(crash, SIG_DFL);
  const rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  TRY(const WorkerSetup setup, read_message<WorkerSetup>("", first->text));
  Config own;
  TRY_DO(read_config_text(own, setup.config, "the configuration of the other process"));
  set_config(own);
  BackendOptions options;
  options.config = own;
  options.fixed_parameters = setup.fixed_parameters;
  if (setup.generator) options.generator = std::make_shared<Generator>();
  if (setup.fake_ranks >= 0) options.communicator = std::make_shared<FakeRanks>(setup.fake_ranks);
  if (setup.store) options.store = std::make_shared<CodeStore>();
  trace::append_to(setup.trace);
  const auto compilations = std::make_shared<std::vector<SizeCompilation>>();
  options.times = std::make_shared<StageTimes>();
  options.on_sizes = [compilations](const SizeCompilation& c) { compilations->push_back(c); };
  auto compile = make(setup.backend, setup.plant, options);
  if (!compile) {
    reply(socket, compile.error());
    return {};
  }
  Server server(*std::move(compile), options.generator, compilations, options.times);
  write_whereabouts_to(page.get());
  if (!reply(socket, SharedValues())) return {};
  while (const auto message = receive_message(socket, blocking)) {
    const auto answer = catch_raised<SharedValues>([&] { return server.answer(*message); });
    if (!reply(socket, answer)) break;
  }
  write_whereabouts_to(nullptr);
  return {};
}

}  // namespace partita

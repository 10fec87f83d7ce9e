// Starts the Python process, whose files this program carries, and gives it tries: each has a socket of its own, so
// that closing it ends the try.
#include "codegen/torch/torch_worker.h"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <mutex>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "codegen/torch/python_files.h"
#include "codegen/torch/python_seen.h"
#include "core/base/output.h"
#include "core/base/whereabouts.h"
#include "core/load/records.h"
#include "core/process/message.h"

namespace partita::torch {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int control_in_child = 3, milliseconds = 10;  // until a cancellation is noticed

Diagnostic not_started(const std::string& what) {
  return input_error("torch.start", what + "; --config python=PATH names a Python that has PyTorch");
}

Result<std::pair<Descriptor, Descriptor>> socket_pair(int type) {
  int ends[2];
  if (::socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends) != 0)
    return not_started(fmt::format("no socket for PyTorch's process: {}", std::strerror(errno)));
  return std::pair(Descriptor(ends[0]), Descriptor(ends[1]));
}

bool readable(int socket) {
  pollfd ready{socket, POLLIN, 0};
  return ::poll(&ready, 1, milliseconds) > 0;
}

/// One try, seen from the process that asked for it.
class Asked {
 public:
  Asked(const std::string& who, Descriptor socket, const Worker::Try& options)
      : who_(who), socket_(std::move(socket)), options_(options), begin_(Clock::now()) {}

  /// nullopt when the other side is gone without a word.
  Result<std::optional<Answer>> exchange(const std::string& request, int memory) {
    if (!send_message(socket_.get(), request, memory)) return std::optional<Answer>();
    while (true) {
      auto message = receive_message(socket_.get(), [this] { return wait(); });
      TRY_DO(check_cancelled(options_.progress));
      if (late_) return death_by(ProcessEnd::TimedOut, SIGKILL);
      if (!message) return std::optional<Answer>();
      nlohmann::json content = nlohmann::json::parse(message->text, nullptr, false);
      const std::string status = text_field(content, "status");
      if (status.empty())
        return Diagnostic{Fault::Internal, "process.message",
                          who_ + ": PyTorch's process sent no answer that can be read"};
      if (status == "progress") {
        note(text_field(content, "at"), text_field(content, "node"));
        continue;
      }
      if (status == "refused")
        return unsupported("torch.refused", fmt::format("{}: {}", who_, text_field(content, "message")));
      if (status == "memory") return death_by(ProcessEnd::OutOfMemory, 0);
      if (status != "died") return std::optional(Answer{std::move(content), std::move(message->fd)});
      errors_ = text_field(content, "log");
      const auto signal = static_cast<int>(int_field(content, "signal"));
      return death_by(signal ? ProcessEnd::Signalled : ProcessEnd::Exited,
                      signal ? signal : static_cast<int>(int_field(content, "code")));
    }
  }

 private:
  bool wait() {
    while (!readable(socket_.get())) {
      if (options_.progress && options_.progress->cancelled()) return false;
      late_ = options_.seconds > 0 && seconds() > options_.seconds;
      if (late_) return false;
    }
    return true;
  }

  double seconds() const { return std::chrono::duration<double>(Clock::now() - begin_).count(); }

  /// What the try is at now.
  void note(const std::string& at, const std::string& node) {
    write(&last_, at, std::span(&node, node.empty() ? 0 : 1));
    if (options_.progress) options_.progress->at(-1, text_of(last_));
  }

  Diagnostic death_by(ProcessEnd::How how, int code) const {
    ProcessEnd end;
    end.how = how;
    end.code = code;
    end.errors = errors_;
    end.seconds = seconds();
    return death(who_, end.text(), last_);
  }

  std::string who_;
  Descriptor socket_;
  Worker::Try options_;
  Clock::time_point begin_;
  Whereabouts last_{};
  std::string errors_;
  bool late_ = false;
};

/// The processes of this process, by Python and modules.
struct Running {
  std::mutex one_at_a_time;
  std::map<std::string, std::shared_ptr<Worker>> workers;

  std::shared_ptr<Worker>& of(const Config& config) {
    std::string key = python_program(config);
    for (const std::string& module : config.python_import) key += '\n' + module;
    return workers[key];
  }
};

Running& running() {
  static Running all;
  return all;
}

}  // namespace

std::string python_program(const Config& config) {
  if (!config.python.empty()) return config.python;
  for (const char* variable : {"PARTITA_PYTHON", "VIRTUAL_ENV", "CONDA_PREFIX"})
    if (const char* value = std::getenv(variable); value && *value)
      return std::string_view(variable) == "PARTITA_PYTHON" ? value : std::string(value) + "/bin/python";
  return "python3";
}

Result<std::shared_ptr<Worker>> Worker::shared(const Config& config, const Progress* progress) {
  const std::lock_guard lock(running().one_at_a_time);
  std::shared_ptr<Worker>& worker = running().of(config);
  if (worker && worker->alive()) return worker;
  if (worker && worker->starter_ != ::getpid()) return worker->ended();
  TRY(worker, start(config, progress));
  return worker;
}

Result<Descriptor> Worker::handle() const {
  Descriptor copy(::fcntl(control_.get(), F_DUPFD_CLOEXEC, 0));
  if (copy.get() < 0) return not_started(fmt::format("no descriptor for PyTorch's process: {}", std::strerror(errno)));
  return copy;
}

Status Worker::inherit(const Config& config, int handle) {
  int type = 0;
  socklen_t size = sizeof type;
  if (::getsockopt(handle, SOL_SOCKET, SO_TYPE, &type, &size) != 0 || type != SOCK_SEQPACKET)
    return not_started(fmt::format("descriptor {} is that of no process that runs PyTorch", handle));
  ::fcntl(handle, F_SETFD, FD_CLOEXEC);
  const std::shared_ptr<Worker> worker(new Worker());
  worker->control_ = Descriptor(handle);
  const std::lock_guard lock(running().one_at_a_time);
  running().of(config) = worker;
  return {};
}

Result<std::shared_ptr<Worker>> Worker::start(const Config& config, const Progress* progress) {
  const std::string python = python_program(config);
  if (progress) progress->at(-1, fmt::format("starting PyTorch in {}", python));
  TRY(ScratchFolder folder, ScratchFolder::make("torch"));
  for (const auto& [name, text] : python_files()) {
    const std::filesystem::path path = std::filesystem::path(folder.path()) / name;
    TRY_DO(make_folder(path.parent_path().string()));
    TRY_DO(write_file(path.string(), text));
  }
  const std::shared_ptr<Worker> worker(new Worker());
  worker->folder_.emplace(std::move(folder));
  worker->starter_ = ::getpid();
  TRY(auto ends, socket_pair(SOCK_SEQPACKET));
  worker->control_ = std::move(ends.first);
  ProcessStart start;
  start.words = {python, worker->folder_->path() + "/worker.py", std::to_string(control_in_child)};
  start.outlives_thread = true;
  start.descriptors = {{ends.second.get(), control_in_child}};
  TRY(worker->process_, Process::start(start));
  ends.second = Descriptor();
  TRY_DO(make_folder(cache_folder()));
  const nlohmann::json setup = {{"cache", cache_folder()}, {"imports", config.python_import}};
  const int control = worker->control_.get();
  const auto wait = [&] {
    while (!readable(control))
      if (progress && progress->cancelled()) return false;
    return true;
  };
  std::optional<Message> hello;
  if (send_message(control, setup.dump())) hello = receive_message(control, wait);
  if (progress && progress->cancelled()) return stopped_on_request();
  if (!hello) {
    const ProcessEnd end = worker->process_->wait();
    return not_started(fmt::format("{} cannot run PyTorch: {}", python, end.text()));
  }
  worker->hello_ = nlohmann::json::parse(hello->text, nullptr, false);
  if (text_field(worker->hello_, "status") != "ok") {
    const std::string why = text_field(worker->hello_, "message");
    return not_started(why.empty() ? python + " does not say what it is" : why);
  }
  remember_python(python, worker->hello_);
  return worker;
}

Worker::~Worker() {
  control_ = Descriptor();
  if (process_ && process_->running()) process_->kill();
}

bool Worker::alive(int milliseconds) const {
  pollfd ended{control_.get(), POLLRDHUP, 0};
  return ::poll(&ended, 1, milliseconds) == 0;
}

Diagnostic Worker::ended() const {
  const std::string why = process_ ? last_line(process_->errors()) : std::string();
  return not_started("the process that runs PyTorch has ended" + (why.empty() ? "" : ": " + why));
}

Result<Answer> Worker::ask(const std::string& who, const nlohmann::json& request, const Descriptor& memory,
                           const Try& options) const {
  TRY(auto ends, socket_pair(SOCK_STREAM));
  if (!send_packet(control_.get(), options.warm ? "warm" : "eager", ends.second.get())) return ended();
  ends.second = Descriptor();
  // Text of a file need not be UTF-8.
  const std::string text = request.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  TRY(std::optional<Answer> answer, Asked(who, std::move(ends.first), options).exchange(text, memory.get()));
  if (answer) return *std::move(answer);
  constexpr int to_end = 300;  // a process that ends closes its sockets one after another
  if (!alive(to_end)) return ended();
  return Diagnostic{Fault::Internal, "process.message", who + ": PyTorch's process gave no answer"};
}

}  // namespace partita::torch

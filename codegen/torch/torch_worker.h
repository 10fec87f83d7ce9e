#pragma once
// The user's Python with PyTorch, as a process that runs graphs for this one.
#include <memory>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "core/base/config.h"
#include "core/base/descriptor.h"
#include "core/base/progress.h"
#include "core/base/result.h"
#include "core/base/scratch.h"
#include "core/process/process.h"

namespace partita::torch {

/// The Python that runs PyTorch: the configuration's `python`, else that of the environment in which this process runs
/// (VIRTUAL_ENV, CONDA_PREFIX), else python3.
std::string python_program(const Config& config);

/// What a try answered, {"status": "ok" or "exception", ...}, and the memory of its values.
struct Answer {
  nlohmann::json content;
  Descriptor memory;
};

/// One Python process, which forks a child for each try. It ends when the last owner of a Worker does. Thread-safe, and
/// forks of this process may use it too.
class Worker {
 public:
  /// The process for the configuration's Python and modules, which is started if none runs and lives as long as this
  /// process. Errors: torch.start for a Python that cannot be started or has no PyTorch; torch.refused is its own word.
  static Result<std::shared_ptr<Worker>> shared(const Config& config, const Progress* progress);

  /// A descriptor by which a program that this process starts may use the Python process, too.
  Result<Descriptor> handle() const;
  /// From here on shared() gives, for this configuration, the process that this handle was made of. Error torch.start
  /// when the number is that of no handle.
  static Status inherit(const Config& config, int handle);

  Worker(const Worker&) = delete;
  ~Worker();

  /// What Python and PyTorch it has: {"python": "3.11.2", "torch": "2.13.0+cpu", ...}; null where it is inherited.
  const nlohmann::json& hello() const { return hello_; }

  struct Try {
    bool warm = false;                   ///< it asks for inductor
    double seconds = 0;                  ///< then the try is ended; 0: never
    const Progress* progress = nullptr;  ///< when it is cancelled, the try is ended
  };
  /// The answer to a request, whose values lie in `memory`. Errors: Fault::Cancelled; process.died when a child was
  /// ended by a signal, a lack of memory or the time that it took, where `who` names the column and the message says
  /// what it was at; torch.refused and torch.start, when the whole process has ended; process.message.
  Result<Answer> ask(const std::string& who, const nlohmann::json& request, const Descriptor& memory,
                     const Try& options) const;

 private:
  Worker() = default;
  static Result<std::shared_ptr<Worker>> start(const Config& config, const Progress* progress);
  /// False when the process has ended, or does so within this time.
  bool alive(int milliseconds = 0) const;
  Diagnostic ended() const;

  std::optional<ScratchFolder> folder_;  ///< unset, as `process_`: another process started it
  Descriptor control_;
  std::optional<Process> process_;
  pid_t starter_ = 0;  ///< only this process starts another one when it has ended
  nlohmann::json hello_;
};

}  // namespace partita::torch

#pragma once
#include <string>

namespace partita {

/// Names what the thread is working on, for the message of a failed CHECK: "graph joint, pass fold_constants".
class WorkingOn {
 public:
  explicit WorkingOn(std::string what);
  ~WorkingOn();
  WorkingOn(const WorkingOn&) = delete;
  WorkingOn& operator=(const WorkingOn&) = delete;
};

/// Is given the broken invariant with the WorkingOn stack, in one line. An embedding program may throw from it, to give
/// up the call into us and live on: what that call worked on must not be used again. Called on the thread that failed.
using CheckHandler = void (*)(const std::string& line);
/// Returns the handler that was set before; null stands for the default, which prints the line to stderr. Where a
/// handler returns, the process ends with exit code 4 and runs no destructors: what they rely on may be what broke.
CheckHandler set_check_handler(CheckHandler handler);

/// Calls the handler.
[[noreturn]] void check_failed(const char* condition, const char* file, int line, const std::string& message);

/// CHECK(condition) or CHECK(condition, message) states an invariant of this program. User input must never break it.
#define CHECK(condition, ...)                                                            \
  do {                                                                                   \
    if (!(condition)) [[unlikely]]                                                       \
      ::partita::check_failed(#condition, __FILE__, __LINE__, std::string(__VA_ARGS__)); \
  } while (false)

}  // namespace partita

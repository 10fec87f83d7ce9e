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

/// Receives the broken invariant and the WorkingOn stack as one line, on the thread that failed. An embedding program
/// may throw from it to abandon the call into Partita and continue; it must not use again what that call worked on.
using CheckHandler = void (*)(const std::string& line);
/// Sets the handler and returns the one set before. Null is the default, which prints the line to stderr. If a handler
/// returns, the process ends with exit code 4 without running destructors, because they may rely on what broke.
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

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

/// Prints the broken invariant and the WorkingOn stack to stderr in one line, and ends the process with exit code 4. No
/// destructors run, because they may rely on what broke.
[[noreturn]] void check_failed(const char* condition, const char* file, int line, const std::string& message);

/// CHECK(condition) or CHECK(condition, message) states an invariant of this program. User input must never break it.
#define CHECK(condition, ...)                                                            \
  do {                                                                                   \
    if (!(condition)) [[unlikely]]                                                       \
      ::partita::check_failed(#condition, __FILE__, __LINE__, std::string(__VA_ARGS__)); \
  } while (false)

}  // namespace partita

#pragma once
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace partita {

enum class Severity { Error, Warning, Note };

/// Who is at fault. It decides the exit code of the command line.
enum class Fault {
  Differs,      ///< a comparison, check or minification says "differs / fails": exit 1
  Input,        ///< bad input or usage: exit 2
  Unsupported,  ///< an operator, feature or device we do not have: exit 3
  Internal,     ///< our bug: exit 4
  Cancelled,    ///< nobody: the work was stopped on request: exit 5
};

/// Where a diagnostic points. Empty fields are not printed.
struct Where {
  std::string file;
  int line = 0;  ///< 1-based; 0 when unknown
  std::string graph;
  std::string node;
  std::string origin;  ///< "FILE:LINE in FUNCTION" of the user's program
};

/// A failure the user can act on: what, where, what to do.
struct Diagnostic {
  Fault fault = Fault::Input;
  std::string code;     ///< stable and dotted, e.g. "load.fx_text.syntax"
  std::string message;  ///< "what; what to do", one line
  Where where = {};
  std::vector<std::string> notes = {};
  Severity severity = Severity::Error;

  Diagnostic(Fault fault, std::string code, std::string message, Where where = {}, std::vector<std::string> notes = {},
             Severity severity = Severity::Error);
  // Written once: every function that may fail has them, and they are long code.
  Diagnostic();
  Diagnostic(const Diagnostic&);
  Diagnostic(Diagnostic&&) noexcept;
  Diagnostic& operator=(const Diagnostic&);
  Diagnostic& operator=(Diagnostic&&) noexcept;
  ~Diagnostic();

  /// "FILE:LINE: what; what to do" on one line, control characters escaped.
  std::string line() const;
  int exit_code() const { return static_cast<int>(fault) + 1; }
};

/// Bad input, and what Partita cannot do: Fault::Input and Fault::Unsupported.
Diagnostic input_error(std::string code, std::string message, Where where = {});
Diagnostic unsupported(std::string code, std::string message, Where where = {});
/// What work returns that was asked to stop: Fault::Cancelled, code "cancelled".
Diagnostic stopped_on_request();

/// A value, or the diagnostic that says why there is none.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Diagnostic error) : state_(std::in_place_index<1>, std::move(error)) {}

  explicit operator bool() const { return state_.index() == 0; }
  T& operator*() & { return std::get<0>(state_); }
  const T& operator*() const& { return std::get<0>(state_); }
  T&& operator*() && { return std::get<0>(std::move(state_)); }
  T* operator->() { return &std::get<0>(state_); }
  const T* operator->() const { return &std::get<0>(state_); }
  Diagnostic& error() & { return std::get<1>(state_); }
  const Diagnostic& error() const& { return std::get<1>(state_); }
  Diagnostic&& error() && { return std::get<1>(std::move(state_)); }

 private:
  std::variant<T, Diagnostic> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Diagnostic error) : error_(std::move(error)) {}

  explicit operator bool() const { return !error_; }
  Diagnostic& error() & { return *error_; }
  const Diagnostic& error() const& { return *error_; }
  Diagnostic&& error() && { return *std::move(error_); }

 private:
  std::optional<Diagnostic> error_;
};

using Status = Result<void>;

#define PARTITA_JOIN2(a, b) a##b
#define PARTITA_JOIN(a, b) PARTITA_JOIN2(a, b)
/// TRY(auto x, f()): declares x from the value of a Result, or returns its error from the enclosing function.
#define TRY(declaration, ...) TRY_AS(PARTITA_JOIN(try_result_, __COUNTER__), declaration, __VA_ARGS__)
#define TRY_AS(temporary, declaration, ...)            \
  auto temporary = (__VA_ARGS__);                      \
  if (!temporary) return std::move(temporary).error(); \
  declaration = *std::move(temporary)
/// TRY_DO(f()): returns the error of a Status from the enclosing function.
#define TRY_DO(...) \
  if (auto try_status = (__VA_ARGS__); !try_status) return std::move(try_status).error()

}  // namespace partita

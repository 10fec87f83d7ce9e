#pragma once
// Writes the structured log that PyTorch writes with TORCH_TRACE, about what is compiled here: `partita list` and
// tlparse read it. It goes to a new file in the folder of the configuration's `trace`, else of $TORCH_TRACE. Without a
// folder, and after a folder that cannot be written (which is told once), all of this does nothing.
#include <chrono>
#include <exception>
#include <source_location>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "core/base/stage_times.h"
#include "core/ir/graph.h"
#include "core/load/trace_record.h"
#include "core/sym/shape_env.h"

namespace partita::trace {

/// Is a log written? If not, what the functions below take need not be made.
bool on();
/// Could a log that was asked for not be written, or not to its end? What failed is said at once, on stderr.
bool failed();
/// The log of this process, which is made if there is none; empty when none is written.
std::string file();
/// From here on this process writes to the log of the process that started it; empty: to none.
void append_to(const std::string& file);

using Source = std::source_location;  ///< where in Partita a record comes from

/// An entry of PyTorch's whose payload is a graph's text: "aot_joint_graph".
void entry(const char* name, const Graph& graph, Source from = Source::current());
/// A named artifact: a graph's text, another text, or JSON.
void artifact(const char* name, const Graph& graph, Source from = Source::current());
void artifact(const char* name, const std::string& text, Source from = Source::current());
void artifact(const char* name, const nlohmann::ordered_json& json, Source from = Source::current());
/// What was generated for a graph, as text that people read.
void output_code(const std::string& graph, const std::string& text, Source from = Source::current());
/// What code was made under the condition of: of each placeholder what a call must give for it, then the guards.
void guards(const Graph& graph, const std::vector<Guard>& guards, Source from = Source::current());

/// The compilation of a graph on this thread, whose records carry its id. Within another one on the same thread it is a
/// part of that. At its end its times and its failure are written (compilation_metrics).
class Compilation {
 public:
  /// Of the next graph.
  Compilation();
  /// Of code that an earlier compilation left for later; at its end its times alone are written (stage_times). `again`:
  /// it had code, and gets more for other sizes, which is its next compilation.
  explicit Compilation(const CompileId& earlier, bool again = false);
  ~Compilation();
  Compilation(const Compilation&) = delete;
  Compilation& operator=(const Compilation&) = delete;

  void failed(const Diagnostic& why);

 private:
  void begin(const CompileId& id);
  bool outermost_ = false;
  int raised_ = std::uncaught_exceptions();
};
/// That of this thread; without a frame outside any.
CompileId current();

/// The graph that the compilation begins with; a second one is not. `name` is the entry to write it as, null: none.
void input(const Graph& graph, const char* name, Source from = Source::current());

/// Runs work that returns a Result, as a Compilation.
auto compiled(auto work) {
  Compilation compilation;
  auto result = work();
  if (!result) compilation.failed(result.error());
  return result;
}

/// A stage of a compilation, from here to the end of its scope: its time is added to `times`, if there are any, and in
/// the log to the times of the compilation of this thread, with two chromium events.
class Stage {
 public:
  explicit Stage(std::string_view name, StageTimes* times = nullptr, Source from = Source::current());
  ~Stage();
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

 private:
  using Clock = std::chrono::steady_clock;
  std::string name_;
  StageTimes* times_;
  Source from_;
  bool traced_;
  Clock::time_point start_ = Clock::now();
};
/// Adds time that a part of a stage took, measured elsewhere.
void add_time(std::string_view stage, double milliseconds, StageTimes* times);

}  // namespace partita::trace

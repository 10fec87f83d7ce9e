#pragma once
#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "codegen/backends.h"
#include "core/aot/run_compiled.h"

namespace partita {

/// How a rule is wrong: the value is one percent off, compiling crashes, compiling hangs.
enum class Plant : unsigned char { Wrong, Crash, Hang };
/// "aten.tanh.default:wrong". Error cli.usage, also for an operator that does not exist.
Result<std::pair<const Op*, Plant>> parse_plant(const std::string& text);
/// What the window calls the default compiler with a fault, and what parse_side() takes for it.
inline constexpr const char* kPlanted = "planted";
std::string planted_side(const std::string& plant);
/// A compiler that has a wrong rule for one operator: to see that a check, or the minifier, finds it.
CompileFn planted(CompileFn compile, const Op* op, Plant plant);

/// Sees whether a fault gets into what workers compile.
class PlantWatch {
 public:
  explicit PlantWatch(std::string plant) : plant_(std::move(plant)) {}
  void see(const Graph& graph);  ///< thread-safe
  /// Error cli.plant when no graph that was compiled calls the operator. Ask when all is compiled.
  Status met() const;

 private:
  std::string plant_;
  std::atomic<bool> met_ = false;
};

/// Makes the worker compile with this fault, and watches it.
std::shared_ptr<PlantWatch> plant_in(WorkerOptions& worker, const std::string& plant);

}  // namespace partita

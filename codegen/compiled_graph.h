#pragma once
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/backends.h"
#include "codegen/program/executor.h"
#include "codegen/program/machine.h"
#include "codegen/stored_graph.h"
#include "core/aot/autograd_cache.h"
#include "core/interp/symbols.h"
#include "core/load/trace_writer.h"
#include "core/schedule/plan.h"
#include "core/schedule/split.h"

namespace partita {

using SizeSet = std::map<std::string, std::int64_t>;

/// Runs the first `stop_after` post-grad passes, -1: all.
Status run_passes_until(Graph& graph, const BackendOptions& options, int stop_after);
/// A plan for the options' machine.
Result<schedule::Plan> make_plan(const Graph& graph, const SizeSet& sizes, const BackendOptions& options,
                                 bool symbolic = false);
bool has_symbols(const Meta& meta);
/// The placeholders whose values the options promise not to change, and allow to pack.
std::set<int> fixed_inputs(const Graph& graph, const BackendOptions& options);

/// What decides code besides the graph and the configuration: this machine, and the options.
std::string compiler_text(const BackendOptions& options);
/// The key of a graph in the cache of compiled graphs.
KeyParts cache_key(const Graph& graph, const BackendOptions& options);

/// A graph that a compiler runs: code for sets of sizes, and what runs for the sizes of each call.
class CompiledGraph {
 public:
  /// `source` makes the graph, when it is needed; `given`: its attributes.
  CompiledGraph(std::string name, GraphSource source, std::map<std::string, Tensor> given,
                const BackendOptions& options)
      : name_(std::move(name)), source_(std::move(source)), given_(std::move(given)), options_(options) {}
  /// Of a graph after the passes.
  CompiledGraph(std::unique_ptr<Graph> graph, const BackendOptions& options)
      : name_(graph->name), constants_(graph->attributes), graph_(std::move(graph)), options_(options) {}

  const std::string& name() const { return name_; }

  /// Runs the first `stop_after` passes, -1: all, and compiles unless sizes are symbols. `key`: of the graph in the
  /// cache, in which it is looked for first; empty: it is not.
  Status prepare(int stop_after, KeyParts key);

  /// Prepares what the cache has; false when it cannot be used.
  bool prepare_stored(GraphEntry entry);

  /// Do the inputs give all symbols of the graph, and are they sizes?
  bool knows_sizes() const;

  /// `into`: as Executable::run() has it.
  Result<std::vector<Value>> run(const std::vector<Value>& inputs, std::span<const Tensor> into = {});

 private:
  static constexpr std::size_t most_instances = 16;
  static constexpr const char* small = "0 and 1 get code of their own";

  /// Code, and the sizes that it is for.
  struct Entry {
    int number = 1;
    bool symbolic = false;
    SizeSet fixed;  ///< sizes that it has as numbers; others are at least 2
    std::vector<Guard> guards;
    codegen::CompiledProgram compiled;
    std::optional<schedule::Plan> plan;  ///< of symbolic code with verification: the whole plan
    bool reported = true;                ///< false: it comes from the cache, and on_sizes was not called for it
  };
  /// What runs for one set of sizes.
  struct Instance {
    std::vector<std::int64_t> sizes;  ///< as the binder has them
    const Entry* entry = nullptr;     ///< null: it is interpreted
    std::unique_ptr<codegen::Executable> executable;
    CompiledGraph* other = nullptr;                        ///< what runs for sizes that the passes did not reckon with
    std::shared_ptr<const Graph> before_passes = nullptr;  ///< for such sizes, too: this graph is interpreted
  };
  /// A graph with sizes that only its own values decide: a part before the call that makes one, and a part after it,
  /// which has symbols for them.
  struct Parts {
    schedule::SplitGraph split;
    std::unique_ptr<CompiledGraph> before, after;
  };

  /// Makes the graph and runs the passes on it, unless that was done.
  Status need_graph();

  /// A symbol of the graph that its inputs do not give.
  std::optional<std::string> unknown_symbol() const;

  /// Keeps the guards that the graph has after the passes: it is right for sizes that keep them.
  void keep_guards();

  /// Adds what runs for sizes that break these guards as the last instance: the graph before the passes, with these
  /// sizes as numbers, is compiled for itself.
  Status instantiate_other(const std::vector<std::int64_t>& values, const SizeSet& sizes,
                           const std::vector<Guard>& broken);

  /// Finds out what has to be known of the inputs, from the placeholders of a graph that outlives this.
  void sign(const Graph& graph);

  /// Takes a stored entry. False, after a warning, for what cannot be used.
  bool take(std::string_view payload);

  /// Takes the parts of a graph that was cut. False when one of them is not there or cannot be used.
  bool take_parts(StoredGraph::Split stored);

  /// Loads the machine code of a stored entry; false when the store has it no more, or it cannot be used.
  bool link(Entry& entry);

  /// Keeps all code in the cache. What cannot be kept is a bypass.
  Status save();

  Status not_kept(const std::string& why);

  Result<std::string> stored() const;

  Status prepare_passed();

  Status prepare_parts(schedule::SplitGraph split);

  Result<std::vector<Value>> run_parts(const std::vector<Value>& inputs, std::span<const Tensor> into);

  std::shared_ptr<Generator> generator() const { return options_.generator ? options_.generator : own_generator_; }

  Result<std::vector<Value>> interpreted(const Graph& graph, std::vector<Value> inputs) const;

  Result<std::vector<Value>> run(const Instance& instance, const std::vector<Value>& inputs,
                                 std::span<const Tensor> into);

  /// Adds what runs for these sizes as the last instance.
  Status instantiate(std::span<const std::int64_t> values);

  void report_interpreted(SizeCompilation report);

  /// The code for these sizes, made if there is none; null when there may be no more code.
  Result<const Entry*> entry_for(const SizeSet& sizes);

  /// Tells, at its first use, what code is for that comes from the cache.
  void report_stored(Entry& entry, SizeCompilation report);

  /// All that these sizes break of what code is for.
  static std::vector<Guard> broken_guards(const Entry& entry, const SizeSet& sizes);

  static Guard equal(const std::string& symbol, std::int64_t value, std::string reason);

  Result<const Entry*> compile(const SizeSet& sizes, SizeCompilation report);

  /// The symbol that can have no other value where the guard holds: the guard is linear in it alone.
  static std::optional<std::string> fixed_by(const Guard& guard, const SizeSet& sizes);

  /// A plan for all sizes of the symbols in `rest`, of which these decide. `fixed`: those that are numbers.
  Result<schedule::Plan> symbolic_plan(const SizeSet& fixed, const SizeSet& rest) const;

  Result<const Entry*> add_entry(const schedule::Plan& given, const SizeCompilation& report);

  /// Makes a plan's code. The trace says what was made, for what and why.
  Result<codegen::CompiledProgram> generate(const schedule::Plan& plan, const SizeCompilation& report);

  codegen::CompileOptions compile_options() const;

  /// Adds an instance as the last.
  Status load(const Entry& entry, const SizeSet& sizes, std::vector<std::int64_t> values);

  /// Instances of one program share its sub graphs.
  Result<CompiledFn> compile_sub_graph(const Graph& graph, std::shared_ptr<Generator> generator);

  std::mutex mutex_;
  std::string name_;
  GraphSource source_;
  std::map<std::string, Tensor> given_;      ///< attributes before the passes
  std::map<std::string, Tensor> constants_;  ///< and after them
  KeyParts key_;                             ///< in the cache; empty: it is not kept there
  std::unique_ptr<Graph> graph_;             ///< after the passes; null until it is needed
  std::unique_ptr<Graph> signature_;         ///< the placeholders of a stored graph
  BackendOptions options_;
  int stop_after_ = -1;
  bool passed_ = false;                       ///< `source_` gives a graph after the passes
  bool knew_sizes_ = true;                    ///< what knows_sizes() said of a stored graph
  std::shared_ptr<Generator> own_generator_;  ///< for several executables that draw; null: there is one of its own
  std::optional<SymbolBinder> binder_;        ///< of a graph with symbols
  bool keeps_symbols_ = true;                 ///< false once a plan could not
  std::string why_no_symbols_;
  bool interprets_ = false;  ///< what is not supported
  bool reported_interpreted_ = false;
  std::set<int> fixed_;
  const std::shared_ptr<codegen::SharedWeights> packed_ = options_.machine->shared_weights();
  std::vector<SizeSet> fitting_;                              ///< sizes that inference takes
  std::vector<Guard> guards_;                                 ///< under which the passes made the graph
  std::map<SizeSet, std::unique_ptr<CompiledGraph>> others_;  ///< for sizes that break them
  std::list<Entry> entries_;
  std::list<Instance> instances_;  ///< in the order of their last use
  std::map<const Graph*, CompiledFn> sub_graphs_;
  std::unique_ptr<Parts> parts_;
  trace::CompileId traced_ = trace::current();
};

}  // namespace partita

#pragma once
// The graphs that are tried: subsets of a base graph's calls, with inputs in place of what was cut off.
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/base/hash.h"
#include "core/base/result.h"
#include "core/interp/interpreter.h"
#include "core/ir/graph.h"
#include "core/ir/structural_hash.h"
#include "core/tensor/value.h"

namespace partita::minify {

/// Evaluates calls of operators that only another process knows.
using CallUnknown = decltype(InterpOptions::call_unknown);

/// A graph with values for its placeholders and, on request, for its nodes. Not thread-safe.
class Base {
 public:
  /// `salt` distinguishes bases with the same graph but other inputs. It goes into the hash of every candidate.
  /// `call_unknown`: as the interpreter takes it.
  Base(std::shared_ptr<const Graph> graph, std::vector<Value> inputs, std::uint64_t salt, int threads,
       CallUnknown call_unknown = {});

  const Graph& graph() const { return *graph_; }
  const std::vector<Value>& inputs() const { return inputs_; }
  std::uint64_t salt() const { return salt_; }

  /// What is kept or removed as a whole: a call with the getitems of its tuple, or an attribute. In execution order.
  struct Removable {
    const Node* node = nullptr;
    std::vector<const Node*> parts;  ///< getitems, also of tuples within the tuple
    std::vector<const Node*> reads;  ///< nodes that the call reads, repeats included
  };
  const std::vector<Removable>& removables() const { return removables_; }
  static constexpr std::size_t not_removable = static_cast<std::size_t>(-1);
  /// Index of the removable a node belongs to; not_removable for placeholders, outputs and sub graphs.
  std::size_t removable_of(const Node& node) const { return removable_[node.id()]; }
  /// The position of a node in the graph.
  std::size_t position_of(const Node& node) const { return position_[node.id()]; }

  /// The values of the named nodes. The interpreter computes them once, and only what they need. If it cannot, they are
  /// zeros of the node's meta, and their names are added to `made_up`.
  Result<std::vector<Value>> values(const std::vector<std::string>& names);
  const std::set<std::string>& made_up() const { return made_up_; }

 private:
  Status compute(const std::vector<const Node*>& wanted);

  std::shared_ptr<const Graph> graph_;
  std::vector<Value> inputs_;
  std::uint64_t salt_;
  int threads_;
  CallUnknown call_unknown_;
  bool mutates_;
  std::vector<Removable> removables_;
  std::vector<std::size_t> removable_, position_;  // by node id
  std::map<std::string, Value> values_;
  std::set<std::string> made_up_;
};

/// A graph to try. Its inputs are computed when asked for.
struct Candidate {
  std::shared_ptr<const Graph> graph;
  std::shared_ptr<Base> base;  ///< the placeholders have the names of its nodes
  std::vector<Value> given;    ///< inputs that are not values of the base; then one for each placeholder
  std::uint64_t salt = 0;      ///< distinguishes `given` inputs in the hash
  std::size_t calls = 0;       ///< number of call nodes, without getitems

  /// The values of its placeholders, from `base` where there is one.
  Result<std::vector<Value>> inputs() const;
  /// The same candidate of the same start has the same hash in every process.
  std::uint64_t hash() const { return hash_combine(structural_hash(*graph), base ? base->salt() : salt); }
};

/// The removables that are kept: indices into Base::removables(), ascending.
using Kept = std::vector<std::size_t>;

/// Builds a graph of the kept removables. Nodes that they read and that are not kept become inputs. It returns the
/// base's own results that are kept (if `results`), and every kept value that no kept removable reads. nullopt when a
/// kept node reads something that cannot be an input, or when nothing would be returned.
std::optional<Candidate> keep(const std::shared_ptr<Base>& base, const Kept& kept, bool results);

/// Makes a candidate of a graph with new inputs. `salt` says how it was made.
Candidate with_inputs(std::shared_ptr<const Graph> graph, std::vector<Value> inputs, std::uint64_t salt);

/// The number of call nodes other than getitem.
std::size_t count_calls(const Graph& graph);

}  // namespace partita::minify

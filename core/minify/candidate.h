#pragma once
// What is tried: sub sets of a base graph's calls, with inputs in the place of what was cut off.
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/ir/graph.h"
#include "core/tensor/value.h"

namespace partita::minify {

/// A graph with values for its placeholders, and on request those of its nodes. Not for several threads at once.
class Base {
 public:
  /// `salt` tells apart bases that look alike but have other inputs; it goes into the hash of every candidate.
  Base(std::shared_ptr<const Graph> graph, std::vector<Value> inputs, std::uint64_t salt, int threads);

  const Graph& graph() const { return *graph_; }
  const std::vector<Value>& inputs() const { return inputs_; }
  std::uint64_t salt() const { return salt_; }

  /// What stays or goes as a whole: a call with the getitems of its tuple, or an attribute. In execution order.
  struct Unit {
    const Node* node = nullptr;
    std::vector<const Node*> parts;  ///< getitems, of tuples in the tuple too
    std::vector<const Node*> reads;  ///< what the call reads, repeats included
  };
  const std::vector<Unit>& units() const { return units_; }
  static constexpr std::size_t no_unit = static_cast<std::size_t>(-1);
  /// Index of the unit a node belongs to; no_unit for placeholders, outputs and sub graphs.
  std::size_t unit_of(const Node& node) const { return unit_[node.id()]; }
  /// Where a node stands in the graph.
  std::size_t position_of(const Node& node) const { return position_[node.id()]; }

  /// The values of the named nodes. Computed with the interpreter, once, and only what they need; zeros of the node's
  /// meta where the interpreter cannot (their names are added to `made_up`).
  Result<std::vector<Value>> values(const std::vector<std::string>& names);
  const std::set<std::string>& made_up() const { return made_up_; }

 private:
  Status compute(const std::vector<const Node*>& wanted);

  std::shared_ptr<const Graph> graph_;
  std::vector<Value> inputs_;
  std::uint64_t salt_;
  int threads_;
  bool mutates_;
  std::vector<Unit> units_;
  std::vector<std::size_t> unit_, position_;  // by node id
  std::map<std::string, Value> values_;
  std::set<std::string> made_up_;
};

/// A graph to try. Its inputs are found when asked for.
struct Candidate {
  std::shared_ptr<const Graph> graph;
  std::shared_ptr<Base> base;  ///< whose nodes the placeholders are named after
  std::vector<Value> given;    ///< inputs that are no values of the base; then there is one for each placeholder
  std::uint64_t salt = 0;      ///< what the hash of `given` needs to know of where they come from
  std::size_t calls = 0;       ///< call nodes, getitems not counted

  Result<std::vector<Value>> inputs() const;
  /// The same in every process for the same candidate of the same start.
  std::uint64_t hash() const;
};

/// Units that stay: indices into Base::units(), ascending.
using Kept = std::vector<std::size_t>;

/// The kept units of the base. What they read and is not kept becomes an input. Returned are the base's own results
/// that are kept (if `results`) and every kept value nobody kept reads. Nothing when a kept node reads what can be no
/// input, or when nothing would be returned.
std::optional<Candidate> keep(const std::shared_ptr<Base>& base, const Kept& kept, bool results);

/// A graph with new inputs as the candidate. `salt` says how it was made.
Candidate with_inputs(std::shared_ptr<const Graph> graph, std::vector<Value> inputs, std::uint64_t salt);

/// Call nodes other than getitem.
std::size_t count_calls(const Graph& graph);

/// Zeros of the meta; symbols take their hints.
Result<Value> zero_value(const Meta& meta, const ShapeEnv& shapes);
/// What a value's meta is; unknown for what is neither tensor nor integer.
Meta meta_of(const Value& value);

}  // namespace partita::minify

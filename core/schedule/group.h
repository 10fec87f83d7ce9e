#pragma once
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "core/schedule/stages.h"

namespace partita::schedule {

/// The index space of a loop nest, in which some dims are reduced. A row-wise nest has the reduced dims innermost
/// (softmax, layer norm), a column-wise nest the kept dims (gradient of a bias). Without reduced dims it is a pointwise
/// nest.
struct Domain {
  SymList space;
  std::vector<bool> reduced;
  bool by_columns = false;

  /// Has it reduced dims? How many elements are kept, and all.
  bool reduces() const { return std::ranges::find(reduced, true) != reduced.end(); }
  SymExpr kept_numel() const { return product(part(false)); }
  SymExpr numel() const { return product(space); }
  SymList part(bool of_reduced) const;  ///< sizes of the reduced or of the kept dims
};

enum class Coverage : std::uint8_t {
  Full,    ///< a value for each element of the space
  Kept,    ///< a value for each element of the kept dims
  Reduce,  ///< a value combined over the reduced dims
};

/// A stage within a group.
struct Member {
  int definition = 0;
  Coverage coverage = Coverage::Full;
  int level = 0;         ///< number of the pass over the reduced dims that computes it; Kept: first pass that may read
                         ///< it
  bool stored = false;   ///< stored in memory, for other groups or for the caller
  bool scratch = false;  ///< Full, costly, and read by later passes: kept in a scratch row
};

/// Units that one kernel computes.
struct Group {
  std::set<int> units;
  Domain domain;
  std::vector<Member> members;  ///< in unit order
};

/// One expression for each dim of the space, in the variables of some loops.
using Position = loops::Index;

/// The index of a definition's element at a position (Reduce: index into its space).
std::optional<loops::Index> index_at(const loops::IndexMath& math, const Domain& domain, const loops::Definition& d,
                                     Coverage coverage, const Position& at);
/// The coverage of a definition in a domain; nullopt when it does not fit.
std::optional<Coverage> coverage_in(const Domain& domain, const loops::Definition& d);

/// The natural domain of one stage.
Domain domain_of(const LoweredGraph& g, int definition);

/// A load of an input's memory: by which member, in which pass.
struct InputLoad {
  SymExpr element;
  int level = 0;
  std::size_t member = 0;
};

/// The results of walking over a group's values.
struct Analysis {
  bool legal = true;
  std::vector<SymExpr> elements;  ///< of all loads, stores and other uses of the index, in terms of `position`
  Position position;
  loops::IndexMath math;
  std::map<int, std::set<int>> passes;                   ///< definition -> levels of its readers; Full members only
  std::map<int, std::vector<InputLoad>> loads;           ///< by input memory
  std::map<std::size_t, std::set<std::size_t>> readers;  ///< by member: the members that read it
  std::set<int> streams;  ///< definitions read from memory that have at least as many elements as the space
};

/// One element of a definition: the key of a memoised value.
struct ElementKey {
  int definition;
  int pass;
  loops::Index index;
  bool operator==(const ElementKey&) const = default;
};
struct ElementKeyHash {
  std::size_t operator()(const ElementKey& p) const;
};

/// Sets the members' levels, and says whether every value can be computed where it is needed. `stored` members are
/// assumed to be written as their layout says. `first`: the members before it have their levels already, and the
/// results are those of the others only.
Analysis analyse(const LoweredGraph& g, const Stages& stages, Group& group, std::size_t first = 0);

}  // namespace partita::schedule

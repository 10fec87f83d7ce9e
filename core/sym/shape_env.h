#pragma once
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "core/sym/sym_expr.h"

namespace partita {

struct SymRange {
  std::int64_t low = 0;  ///< backed sizes that are not specialised start at 2, unbacked ones at 0, integers anywhere
  std::int64_t high = INT64_MAX;
};

/// A condition on symbols that a result depends on.
struct Guard {
  SymExpr condition;
  std::string reason;
};

/// The symbols of a graph: their example values (hints), their ranges, and the guards taken while shapes were computed.
/// It behaves like torch.fx.experimental.symbolic_shapes.ShapeEnv, but never replaces one symbol by another. Threads
/// may query it at the same time.
class ShapeEnv {
 public:
  /// What is known of a symbol: its example value, its range, and what holds between symbols.
  void set_hint(const std::string& symbol, std::int64_t value);
  void set_range(const std::string& symbol, SymRange range);
  std::map<std::string, std::int64_t> hints() const;
  std::map<std::string, SymRange> ranges() const;
  std::vector<Guard> guards() const;

  /// A new unbacked symbol u0, u1, ... of range [low, high].
  SymExpr new_unbacked(std::int64_t low = 0, std::int64_t high = INT64_MAX);
  /// A new unbacked symbol zuf0, zuf1, ... for a float.
  SymExpr new_unbacked_float();

  /// The condition, which the program asserts, holds from now on. Of use are comparisons of integers that an unbacked
  /// symbol is in, and conjunctions of them; others are passed over.
  void assume(SymExpr condition);

  /// True or false when ranges or what is assumed decide it; nullopt otherwise. Records nothing.
  std::optional<bool> statically(SymExpr condition) const;
  /// The expression, each Max and Min in it without the arguments that ranges or what is assumed say it never takes.
  SymExpr simplified(SymExpr e) const;
  /// The truth value of a condition: from ranges when they decide it, else from hints, which records a guard. Error
  /// sym.data_dependent when the condition depends on an unbacked symbol.
  Result<bool> evaluate(SymExpr condition, std::string reason);
  /// The hint value of an expression; nullopt when a symbol has none.
  std::optional<std::int64_t> hint(SymExpr e) const;

 private:
  SymExpr without_covered(SymExpr e) const;
  SymRange bounds(SymExpr e) const;
  void assume_not_positive(SymExpr e);
  bool is_at_most(SymExpr e, std::int64_t limit) const;

  mutable std::mutex mutex_;
  std::map<std::string, std::int64_t> hints_;
  std::map<std::string, SymRange> ranges_;
  std::vector<Guard> guards_;
  std::vector<SymExpr> not_positive_;  ///< assumed to be at most 0
  int next_unbacked_ = 0, next_unbacked_float_ = 0;
};

}  // namespace partita

#pragma once
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/result.h"
#include "core/ir/graph.h"
#include "core/passes/pass.h"

namespace partita {

/// What the names of a pattern match at one place of a graph.
struct Match {
  const Node* root = nullptr;
  std::vector<std::pair<std::string, Arg>> names;
  std::vector<Node*> inner;  ///< matched calls below the root

  const Arg& operator[](std::string_view name) const;
  const TensorMeta* tensor(std::string_view name) const;  ///< null when it is not a tensor
};

/// An expression that calls of a graph may match; rewrites.def says how it is written.
class Pattern {
 public:
  explicit Pattern(std::string_view text);  ///< CHECKs that it is a call
  ~Pattern();
  Pattern(Pattern&&) noexcept;
  Pattern& operator=(Pattern&&) noexcept;

  /// The nodes that it fits, from the last one; nullopt when it does not fit.
  std::optional<Match> of(Node& root) const;

 private:
  struct Term;
  static std::unique_ptr<Term> parse(std::string_view text, std::size_t& at);
  static bool match(const Term& term, const Arg& arg, Match& out);
  static bool match_call(const Term& term, Node& node, Match& out);

  std::unique_ptr<Term> call_;
};

using RewriteGuard = bool (*)(const Match&);

/// One row of rewrites.def.
struct Rewrite {
  std::string_view name;
  unsigned stages = 0;  ///< bits 1 << Stage
  std::string_view pattern, replacement;
  RewriteGuard guard = nullptr;
};

/// Rows prepared for matching.
class RewriteSet {
 public:
  /// CHECKs that patterns parse. An operator in a pattern is a base name ("add" matches any overload) or an overload.
  explicit RewriteSet(std::span<const Rewrite> rows);

  /// Walks over the graph once and applies the first row that matches at each node. Returns whether any did.
  Result<bool> apply(Graph& graph, PassContext& context) const;

 private:
  struct Row {
    Rewrite rewrite;
    Pattern pattern;
  };
  static Result<bool> try_row(const Row& row, Graph& graph, Node* node, class Aliases& aliases, PassContext& context);

  std::vector<Row> rows_;
};

/// The pass of that name, for callers that run a graph as eager does.
Result<bool> rewrite_pre_grad(Graph& graph, PassContext& context);

}  // namespace partita

// Parses the patterns of rewrites.def, matches them on calls and builds the replacements. One that has other dtypes,
// sizes or strides, or newly shares memory with an argument, is taken back.
#include "core/passes/rewrite.h"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "core/base/check.h"
#include "core/ir/place.h"
#include "core/ops/record/record.h"
#include "core/passes/value_memory.h"

namespace partita {

/// A parsed pattern: a call, a list, a name, or a literal.
struct Pattern::Term {
  enum class Kind : unsigned char { Call, List, Name, Literal } kind = Kind::Literal;
  std::string text;  ///< Call: "aten.add" or "aten.squeeze.dim"; Name: itself
  Arg literal;
  std::vector<std::unique_ptr<Term>> items;
};

const Arg& Match::operator[](std::string_view name) const {
  for (const auto& [key, arg] : names)
    if (key == name) return arg;
  CHECK(false, fmt::format("the pattern has no name {}", name));
}

const TensorMeta* Match::tensor(std::string_view name) const {
  const Node* n = (*this)[name].node();
  return n ? n->meta.tensor() : nullptr;
}

namespace {

void skip(std::string_view text, std::size_t& at) {
  while (at < text.size() && text[at] == ' ') ++at;
}
bool eat(std::string_view text, std::size_t& at, char c) {
  skip(text, at);
  if (at >= text.size() || text[at] != c) return false;
  ++at;
  return true;
}

std::string operator_name(std::string_view text) {
  return text.starts_with("aten.") || text.starts_with("prims.") ? std::string(text) : fmt::format("aten.{}", text);
}

bool keeps_promise(const Node& node, const Node& result) {
  const TensorMeta &promised = *node.meta.tensor(), *made = result.meta.tensor();
  return made && made->dtype == promised.dtype && made->sizes == promised.sizes && promised.strides_known &&
         made->strides_known && made->strides == promised.strides;
}

/// Refuses a result that newly shares memory with an argument, as itself or as a view.
bool shares_as_before(const Match& m, const Node& node, const Node& result, const Aliases& aliases) {
  for (const auto& [name, arg] : m.names)
    if (const Node* n = arg.node(); n && aliases.share(result, *n) && !aliases.may_replace(node, *n)) return false;
  return true;
}

bool same_literal(const Arg& pattern, const Arg& arg) {
  if (pattern == arg) return true;
  const auto* i = pattern.get<std::int64_t>();
  const auto* x = arg.get<double>();
  return i && x && static_cast<double>(*i) == *x;
}

}  // namespace

std::unique_ptr<Pattern::Term> Pattern::parse(std::string_view text, std::size_t& at) {
  auto term = std::make_unique<Term>();
  const auto items = [&](char close) {
    while (!eat(text, at, close)) {
      if (!term->items.empty()) CHECK(eat(text, at, ','), fmt::format("pattern {}: ',' expected at {}", text, at));
      term->items.push_back(parse(text, at));
    }
  };
  skip(text, at);
  CHECK(at < text.size(), fmt::format("pattern {} ends early", text));
  if (eat(text, at, '[')) {
    term->kind = Term::Kind::List;
    items(']');
    return term;
  }
  const std::size_t start = at;
  while (at < text.size() &&
         (std::isalnum(static_cast<unsigned char>(text[at])) || text[at] == '_' || text[at] == '.' || text[at] == '-'))
    ++at;
  const std::string word(text.substr(start, at - start));
  CHECK(!word.empty(), fmt::format("pattern {}: unexpected character at {}", text, at));
  if (eat(text, at, '(')) {
    term->kind = Term::Kind::Call;
    term->text = operator_name(word);
    items(')');
  } else if (word == "True" || word == "False") {
    term->literal = word == "True";
  } else if (word == "None") {
    term->literal = Arg();
  } else if (std::isdigit(static_cast<unsigned char>(word[0])) || word[0] == '-') {
    term->literal = std::int64_t{std::atoll(word.c_str())};
  } else {
    term->kind = Term::Kind::Name;
    term->text = word;
  }
  return term;
}

Pattern::Pattern(std::string_view text) {
  std::size_t at = 0;
  call_ = parse(text, at);
  CHECK(at == text.size() && call_->kind == Term::Kind::Call, fmt::format("pattern {} is no call", text));
}
Pattern::~Pattern() = default;
Pattern::Pattern(Pattern&&) noexcept = default;
Pattern& Pattern::operator=(Pattern&&) noexcept = default;

std::optional<Match> Pattern::of(Node& root) const {
  Match m;
  m.root = &root;
  return match_call(*call_, root, m) ? std::optional(std::move(m)) : std::nullopt;
}

bool Pattern::match(const Term& term, const Arg& arg, Match& out) {
  switch (term.kind) {
    case Term::Kind::Literal:
      return same_literal(term.literal, arg);
    case Term::Kind::Name:
      for (const auto& [name, bound] : out.names)
        if (name == term.text) return bound == arg;
      out.names.emplace_back(term.text, arg);
      return true;
    case Term::Kind::List: {
      const auto* list = arg.get<ArgList>();
      return list && std::ranges::equal(term.items, list->items,
                                        [&](const auto& item, const Arg& given) { return match(*item, given, out); });
    }
    case Term::Kind::Call: {
      Node* n = arg.node();
      if (!n || n->users().size() != 1 || !match_call(term, *n, out)) return false;
      out.inner.push_back(n);
      return true;
    }
  }
  return false;
}

bool Pattern::match_call(const Term& term, Node& node, Match& out) {
  if (node.op()->kind != OpKind::Torch) return false;
  const std::string& name = node.op()->name;
  const bool same = name == term.text || (name.starts_with(term.text) && name[term.text.size()] == '.');
  const Schema* schema = same ? find_schema(node.op()) : nullptr;
  if (!schema || schema->is_mutable) return false;
  const Args args = bound_arguments(node);
  if (args.size() < term.items.size()) return false;
  for (std::size_t i = 0; i < args.size(); ++i) {
    if (i < term.items.size() ? !match(*term.items[i], args[i], out) : !(args[i] == schema->args[i].default_value))
      return false;
  }
  return true;
}

RewriteSet::RewriteSet(std::span<const Rewrite> rows) {
  for (const Rewrite& r : rows) rows_.push_back({r, Pattern(r.pattern)});
}

Result<bool> RewriteSet::try_row(const Row& row, Graph& graph, Node* node, Aliases& aliases, PassContext& context) {
  const std::optional<Match> matched = row.pattern.of(*node);
  if (!matched || !node->meta.tensor() || !row.rewrite.guard(*matched)) return false;
  const Match& m = *matched;
  if (aliases.mutated(*node)) return false;
  for (const auto& [name, arg] : m.names)
    if (const Node* n = arg.node(); n && aliases.mutated(*n)) return false;
  const std::size_t first_new = graph.id_limit();
  Builder build(graph, node, node->origin);
  auto built = catch_raised_at<Node*>(*node, [&] { return build.expression(row.rewrite.replacement, m.names).node(); });
  if (!built) {
    built.error().notes.push_back(fmt::format("in rewrite {}", row.rewrite.name));
    return std::move(built).error();
  }
  Node* result = *built;
  std::vector<Node*> made;
  for (Node* n = node->previous(); n && n->id() >= first_new; n = n->previous()) made.push_back(n);
  for (auto it = made.rbegin(); it != made.rend(); ++it) aliases.add(**it);
  for (Node* n : made) n->recompute = node->recompute;
  if (!result || !keeps_promise(*node, *result) || !shares_as_before(m, *node, *result, aliases) ||
      !context.may_rewrite(row.rewrite.name, *node)) {
    for (Node* n : made)
      if (n->users().empty()) graph.erase(n);
    return false;
  }
  aliases.replace_uses(*node, *result);
  graph.erase(node);
  for (auto it = m.inner.rbegin(); it != m.inner.rend(); ++it)
    if ((*it)->users().empty()) graph.erase(*it);
  return true;
}

Result<bool> RewriteSet::apply(Graph& graph, PassContext& context) const {
  bool changed = false;
  Aliases aliases(graph);
  for (Node* node = graph.first(); node;) {
    Node* next = node->next();
    for (const Row& row : rows_) {
      TRY(const bool done, try_row(row, graph, node, aliases, context));
      if (!done) continue;
      changed = true;
      break;
    }
    node = next;
  }
  return changed;
}

}  // namespace partita

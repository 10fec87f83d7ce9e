#include "core/load/fx_nodes.h"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "core/base/config.h"
#include "core/base/memory.h"
#include "core/base/python_text.h"
#include "core/load/fx_expression.h"

namespace partita::fx {
namespace {

/// Null: not a kind of call.
const Op* called(std::string_view op, std::string_view target) {
  constexpr std::string_view ops = "torch.ops.", built_in = "builtins.", operators = "operator.";
  if (op == "call_method") return Op::get(OpKind::Method, target);
  if (op == "call_module") return Op::get(OpKind::Function, fmt::format("self.{}", target));
  if (op != "call_function") return nullptr;
  if (target.starts_with(ops)) return Op::torch(target.substr(ops.size()));
  if (target.starts_with(built_in)) return Op::get(OpKind::Function, target.substr(built_in.size()));
  if (target.starts_with(operators)) return Op::get(OpKind::Function, fmt::format("_{}", target));
  return Op::get(OpKind::Function, target);
}

/// Is it a path in the module tree: layers.0.weight?
bool is_path(std::string_view text) {
  const auto fits = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.'; };
  return !text.empty() && std::ranges::all_of(text, fits) && text.find("..") == text.npos && text.front() != '.' &&
         text.back() != '.';
}

/// What else a target is could not be read again when it is printed as code.
bool can_be_target(std::string_view op, std::string_view target) {
  if (op == "call_function") return is_dotted_name(target);
  if (op == "call_method") return is_identifier(target);
  if (op == "placeholder") return is_identifier(target.substr(std::min(target.find_first_not_of('*'), target.size())));
  return is_path(target);
}

}  // namespace

std::optional<std::string_view> take_between(std::string_view& text, std::string_view before, std::string_view after) {
  if (!text.starts_with(before)) return std::nullopt;
  const std::size_t end = text.find(after, before.size());
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view found = text.substr(before.size(), end - before.size());
  text.remove_prefix(end + after.size());
  return found;
}

Node* NodeReader::find(std::string_view name) const {
  const auto it = nodes_.find(name);
  return it == nodes_.end() ? nullptr : it->second;
}

Result<Arg> NodeReader::expression(std::string_view text, bool over_nodes) {
  Graph scratch;
  Graph& graph = over_nodes ? *graph_ : scratch;
  Lexer lexer = Lexer::of_expression(text);
  ExpressionReader reader(lexer, graph);
  const std::size_t before = graph.id_limit();
  if (over_nodes) reader.names.swap(nodes_);  // lent, since a copy for each expression is quadratic
  auto value = reader.argument();
  if (over_nodes) reader.names.swap(nodes_);
  if (!value) return bad(std::move(value).error().message);
  if (lexer.peek().kind != TokenKind::End || graph.id_limit() != before)
    return bad(fmt::format("'{}' is no argument", text.substr(0, 60)));
  return value;
}

Status NodeReader::add(std::string_view op, std::string_view name, std::string_view target, Args args, Kwargs kwargs) {
  if (graph_->size() > config().graph_limit) return bad(too_many_nodes());
  if (graph_->output()) return bad("a node behind the output");
  if (op == "output") {
    if (args.size() != 1) return bad("an output without a value");
    graph_->set_output(std::move(args[0]));
    return {};
  }
  if (!is_identifier(name)) return bad(fmt::format("'{}' is no name of a node", name.substr(0, 60)));
  if (find(name)) return bad(fmt::format("the node '{}' occurs twice", name.substr(0, 60)));
  if (!can_be_target(op, target))
    return bad(fmt::format("'{}' cannot be the target of a {}", target.substr(0, 60), op.substr(0, 60)));
  for (const auto& [key, value] : kwargs)
    if (!is_identifier(key)) return bad(fmt::format("'{}' is no name of an argument", key.substr(0, 60)));
  Node* node = nullptr;
  if (op == "placeholder") {
    node = graph_->placeholder(name);
    node->set_args(std::move(args), {});
  } else if (op == "get_attr") {
    node = graph_->create(Op::get_attr(), {}, {}, name);
  } else if (const Op* call = called(op, target)) {
    node = graph_->create(call, std::move(args), std::move(kwargs), name);
  } else {
    return bad(fmt::format("'{}' is no kind of node", op.substr(0, 60)));
  }
  if (!node->op()->is_call()) node->target = target;
  nodes_[name] = last_ = node;
  return {};
}

Status NodeReader::annotate(std::string_view annotation) {
  auto meta = parse_annotation(annotation);
  if (!meta) return bad(meta.error().message);
  last_->meta = *std::move(meta);
  return {};
}

Result<std::unique_ptr<Graph>> NodeReader::finish() {
  if (!graph_->output()) return bad("'return' expected, found the end of the graph");
  return std::move(graph_);
}

}  // namespace partita::fx

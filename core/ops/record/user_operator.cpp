#include "core/ops/record/user_operator.h"

#include <algorithm>
#include <deque>
#include <mutex>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/ir/place.h"
#include "core/ir/print.h"
#include "core/ir/replace_uses.h"
#include "core/ops/facts/control.h"
#include "core/ops/record/user_calls.h"
#include "core/ops/schema/in_place.h"
#include "core/ops/schema/resolve.h"

namespace partita {
namespace {

Diagnostic wrong(const std::string& file, const std::string& what) {
  return input_error("ops.meaning", what, Where{.file = file});
}

/// What a text must not have, whatever it is called with.
Status check_text(const Graph& text, const std::string& file) {
  if (!text.children.empty()) return wrong(file, "it has sub graphs; write the meaning without regions");
  for (const Node* node : text) {
    if (node->is(Op::get_attr()))
      return wrong(file, fmt::format("it reads self.{}, of which there is no value; make it an argument or a call",
                                     node->target));
    if (node->op()->is_call() && is_control(node->op()))
      return wrong(file, fmt::format("it calls {}; a meaning is calls of operators and functions of tensors only",
                                     node->op()->name));
    if (node->is_placeholder() && node->target.starts_with('*'))
      return wrong(file, fmt::format("its parameter {} stands for any number; name each argument", node->target));
  }
  if (!text.output()) return wrong(file, "it returns nothing; end it with a return statement");
  return {};
}

/// The arguments and results that a text has.
Schema schema_of(const std::string& name, const Graph& text) {
  Schema out;
  out.name = name;
  out.base = name.substr(0, name.rfind('.'));
  for (const Node* p : text.placeholders()) {
    SchemaArg argument;
    argument.name = p->target;
    if (p->meta.tensor()) argument.type = SchemaType::Tensor;
    if (p->meta.sym()) argument.type = SchemaType::SymInt;
    argument.has_default = !p->args().empty();
    if (argument.has_default) argument.default_value = p->args()[0];
    out.args.push_back(std::move(argument));
  }
  for (const Node* node : text)
    if (const Node* target = written_argument(*node)) {
      SchemaArg& argument = out.args[static_cast<std::size_t>(out.index_of(target->target))];
      argument.type = SchemaType::Tensor;
      argument.is_write = out.is_mutable = true;
      argument.alias_set = "a" + argument.name;
    }
  for (const Arg& result : text.outputs()) {
    SchemaArg returned;
    returned.type = SchemaType::Tensor;
    if (const Node* n = result.node(); n && n->is_placeholder()) {
      const SchemaArg& argument = out.args[static_cast<std::size_t>(out.index_of(n->target))];
      returned.is_write = argument.is_write;
      returned.alias_set = argument.alias_set;
    }
    out.returns.push_back(std::move(returned));
  }
  return out;
}

/// PyTorch's own schema must have the text's arguments.
Status check_schema(const Schema& known, const Schema& text, const std::string& file) {
  const auto names = [](const Schema& schema) {
    std::vector<std::string> out;
    for (const SchemaArg& a : schema.args) out.push_back(a.name + (a.is_write ? " (written)" : ""));
    return fmt::format("{}", fmt::join(out, ", "));
  };
  if (names(known) == names(text) && known.returns.size() == text.returns.size()) return {};
  return wrong(file, fmt::format("it takes {} and returns {} values, but {} takes {} and returns {}", names(text),
                                 text.returns.size(), known.name, names(known), known.returns.size()));
}

Status check_results(const UserTexts& texts, const Schema& schema) {
  for (const Arg& result : texts.forward->outputs()) {
    const Node* n = result.node();
    if (!n) return wrong(texts.file, fmt::format("it returns {}; an operator returns tensors", print(result)));
    if (n->is_placeholder() && !schema.args[static_cast<std::size_t>(schema.index_of(n->target))].is_write)
      return wrong(texts.file, fmt::format("it returns its argument {}, which an operator of one's own must not; "
                                           "return a clone",
                                           n->target));
  }
  return {};
}

Status check_backward(const UserTexts& texts, const Schema& schema) {
  const std::string& file = texts.backward_file;
  TRY_DO(check_text(*texts.backward, file));
  if (schema.is_mutable)
    return wrong(file, fmt::format("{} writes an argument, and the gradient of such an operator goes through its "
                                   "text; remove this file",
                                   texts.name));
  const std::vector<Node*> parameters = texts.backward->placeholders();
  const std::size_t results = schema.returns.size();
  std::vector<std::string> names;
  for (const SchemaArg& a : schema.args) names.push_back(a.name);
  for (std::size_t k = 0; k < results; ++k) names.push_back(result_name(k, results));
  if (parameters.size() < results)
    return wrong(file, fmt::format("it takes {} values, but the gradients of the {} results come first",
                                   parameters.size(), results));
  for (std::size_t i = results; i < parameters.size(); ++i)
    if (std::ranges::find(names, parameters[i]->target) == names.end())
      return wrong(file,
                   fmt::format("{} is neither an argument nor a result of {}; after {} come any of: {}",
                               parameters[i]->target, texts.name,
                               results == 1 ? "the gradient" : "the gradients of its results", fmt::join(names, ", ")));
  for (const Node* node : *texts.backward)
    if (written_argument(*node)) return wrong(file, "a backward must not write to what it gets");
  const std::size_t returned = texts.backward->outputs().size();
  if (returned != schema.args.size())
    return wrong(file,
                 fmt::format("it returns {} values, and there are {} arguments; return a gradient or None for "
                             "each of: {}",
                             returned, schema.args.size(),
                             fmt::join(std::vector(names.begin(), names.end() - std::ssize(schema.returns)), ", ")));
  return {};
}

}  // namespace

Result<const Op*> user_operator(UserTexts texts) {
  TRY_DO(check_text(*texts.forward, texts.file));
  follow_in_place(*texts.forward);
  auto made = std::make_unique<UserOperator>();
  made->schema = schema_of(texts.name, *texts.forward);
  if (const Schema* known = find_schema(texts.name)) {
    TRY_DO(check_schema(*known, made->schema, texts.file));
    made->schema = *known;
  }
  Schema& schema = made->schema;
  TRY_DO(check_results(texts, schema));
  if (texts.backward) TRY_DO(check_backward(texts, schema));
  // What is written is known to functionalisation from the calls of the text.
  schema.composite_implicit = schema.is_mutable;
  schema.meaning = made.get();
  made->record.schema = &schema;
  made->record.decompose = decompose_by_text;
  made->record.family = Family::Other;
  made->record.random =
      std::ranges::any_of(*texts.forward, [](const Node* n) { return n->op()->is_call() && draws_by_name(n->op()); });
  if (texts.backward) {
    made->record.autograd.gradient = gradient_by_text;
    made->record.autograd.all_results_differentiable = true;
  }
  made->forward = std::move(texts.forward);
  made->backward = std::move(texts.backward);
  made->file = std::move(texts.file);
  made->backward_file = std::move(texts.backward_file);
  made->text = std::move(texts.text);
  made->backward_text = std::move(texts.backward_text);
  static std::mutex mutex;
  static std::deque<std::unique_ptr<const UserOperator>> kept;
  const std::lock_guard lock(mutex);
  const Op* op = Op::torch(texts.name, texts.hash, made.get());
  if (op->meaning == made.get()) kept.push_back(std::move(made));
  return op;
}

std::map<std::string, std::string> meaning_files(const Graph& graph) {
  std::map<std::string, std::string> files;
  for (const Node* node : graph) {
    const UserOperator* op = node->op()->meaning;
    if (!op || !files.emplace(op->schema.name + ".py", op->text).second) continue;
    files.merge(meaning_files(*op->forward));
    if (!op->backward) continue;
    files.emplace(op->schema.name + ".backward.py", op->backward_text);
    files.merge(meaning_files(*op->backward));
  }
  for (const auto& [name, child] : graph.children) files.merge(meaning_files(*child));
  return files;
}

Result<bool> place_meanings(Graph& graph) {
  bool any = false;
  for (Node *node = graph.first(), *next = nullptr; node; node = next) {
    next = node->next();
    if (!node->op()->meaning) continue;
    any = true;
    Node* const previous = node->previous();
    TRY(const Arg value, meaning_of(node->op()) ? decompose(*node) : resolve(*node));
    TRY_DO(replace_uses(*node, value));
    const std::string name = node->name();
    graph.erase(node);
    next = previous ? previous->next() : graph.first();  // a text may call operators that have one
    if (Node* result = value.node(); result && !result->is_placeholder()) graph.rename(result, name);
  }
  for (auto& [name, child] : graph.children) {
    TRY(const bool inside, place_meanings(*child));
    any |= inside;
  }
  return any;
}

}  // namespace partita

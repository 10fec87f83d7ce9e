#include "core/compare/same_calls.h"

#include <map>
#include <set>

#include <fmt/format.h>

#include "core/ir/print.h"
#include "core/ops/schema/schema.h"

namespace partita {
namespace {

/// Gives equal numbers to nodes of both graphs that compute the same.
class Numbering {
 public:
  std::map<const Node*, std::size_t> number(const Graph& graph) {
    std::map<const Node*, std::size_t> numbers;
    std::size_t inputs = 0;
    for (const Node* n : graph) {
      if (n->is_output()) continue;
      const std::string key = n->is_placeholder() ? fmt::format("input {}", inputs++) : call(*n, numbers);
      numbers[n] = numbers_.emplace(key, numbers_.size()).first->second;
    }
    return numbers;
  }

 private:
  static std::string call(const Node& n, const std::map<const Node*, std::size_t>& numbers) {
    const auto numbered = [&](const Arg& a) {
      return print(map_nodes(a, [&](const Node* read) { return Arg(ArgName{fmt::format("%{}", numbers.at(read))}); }));
    };
    std::string text = n.op()->name + " " + n.target + "(";
    const Schema* schema = n.op()->kind == OpKind::Torch ? find_schema(n.op()) : nullptr;
    const Result<Args> bound =
        schema ? bind_arguments(*schema, n.args(), n.kwargs()) : Result<Args>(input_error("", ""));
    for (const Arg& a : bound ? *bound : n.args()) text += numbered(a) + ", ";
    if (!bound)
      for (const auto& [name, a] : n.kwargs()) text += name + "=" + numbered(a) + ", ";
    return text + ")";
  }

  std::map<std::string, std::size_t> numbers_;
};

std::map<std::string, int> operators(const Graph& graph) {
  std::map<std::string, int> out;
  for (const Node* n : graph)
    if (n->op()->is_call()) ++out[n->op()->name];
  return out;
}

std::string annotation_of(const Arg& a) {
  return a.node() ? annotation(a.node()->meta) : print(a);
}

}  // namespace

std::vector<std::string> call_differences(const Graph& expected, const Graph& found) {
  std::vector<std::string> out;
  const std::vector<Node*> inputs = expected.placeholders(), found_inputs = found.placeholders();
  if (inputs.size() != found_inputs.size())
    return {fmt::format("{} inputs, {} expected", found_inputs.size(), inputs.size())};
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (annotation(inputs[i]->meta) != annotation(found_inputs[i]->meta))
      out.push_back(fmt::format("input {} is {}, {} expected", i, annotation(found_inputs[i]->meta),
                                annotation(inputs[i]->meta)));

  std::map<std::string, int> wanted = operators(expected), made = operators(found);
  for (const auto& [name, count] : wanted)
    if (made[name] != count) out.push_back(fmt::format("{} {} times, {} expected", name, made[name], count));
  for (const auto& [name, count] : made)
    if (!wanted.contains(name) && count > 0) out.push_back(fmt::format("{} {} times, none expected", name, count));

  Numbering numbering;
  const auto numbers = numbering.number(expected), found_numbers = numbering.number(found);
  if (out.empty()) {
    std::multiset<std::size_t> calls;
    for (const auto& [node, number] : found_numbers) calls.insert(number);
    for (const Node* n : expected) {
      if (!n->op()->is_call()) continue;
      if (const auto it = calls.find(numbers.at(n)); it != calls.end()) {
        calls.erase(it);
        continue;
      }
      out.push_back("no call is " + print(*n, {.annotations = false, .origins = false, .deletions = false}));
      break;
    }
  }

  const std::vector<Arg> outputs = expected.outputs(), found_outputs = found.outputs();
  if (outputs.size() != found_outputs.size()) {
    out.push_back(fmt::format("{} outputs, {} expected", found_outputs.size(), outputs.size()));
    return out;
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const Node *a = outputs[i].node(), *b = found_outputs[i].node();
    if (annotation_of(outputs[i]) != annotation_of(found_outputs[i]))
      out.push_back(
          fmt::format("output {} is {}, {} expected", i, annotation_of(found_outputs[i]), annotation_of(outputs[i])));
    else if (a && b && numbers.at(a) != found_numbers.at(b))
      out.push_back(fmt::format("output {} is {}, which is not what PyTorch's {} is", i, b->name(), a->name()));
  }
  return out;
}

}  // namespace partita

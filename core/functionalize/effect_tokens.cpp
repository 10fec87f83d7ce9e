#include "core/functionalize/effect_tokens.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/ir/place.h"
#include "core/ops/facts/control.h"
#include "core/ops/record/record.h"
#include "core/ops/schema/schema.h"

namespace partita {
namespace {

constexpr std::string_view prefix = "torch.ops.";

const Op* with_effects() {
  static const Op* const op = Op::torch("higher_order.with_effects");
  return op;
}

bool is_ordered(const Node& node) {
  const Op* op = node.op();
  if (!op->is_call() || op->kind != OpKind::Torch || find_control(op)) return false;
  if (op->name == "aten._print.default") return true;
  return !find_schema(op) && !find_record(op) && node.users().empty();
}

/// The name with its overload: corpus.emit is corpus.emit.default.
std::string overload_name(const std::string& name) {
  return std::ranges::count(name, '.') > 1 || name.starts_with("higher_order.") ? name : name + ".default";
}

/// primals_1 becomes primals_2, arg0_1 arg1_1, and so on.
void number_anew(Graph& graph, bool joint) {
  const std::vector<Node*> inputs = graph.placeholders();
  for (std::size_t i = inputs.size(); i-- > 0;) {
    const std::string before = joint ? fmt::format("primals_{}", i + 1) : fmt::format("arg{}_1", i);
    if (inputs[i]->name() != before) continue;
    const bool same_target = inputs[i]->target == before;
    graph.rename(inputs[i], joint ? fmt::format("primals_{}", i + 2) : fmt::format("arg{}_1", i + 1));
    if (same_target) inputs[i]->target = inputs[i]->name();
  }
}

}  // namespace

bool is_effect_token(const Node& node) {
  return node.is_placeholder() && !node.users().empty() && std::ranges::all_of(node.users(), [&](const Node* user) {
           return user->is(with_effects()) && user->args()[0].node() == &node;
         });
}

std::size_t thread_effects(Graph& graph) {
  std::vector<Node*> calls;
  for (Node* n : graph)
    if (is_ordered(*n)) calls.push_back(n);
  if (calls.empty()) return 0;
  const bool joint = graph.form == GraphForm::Joint;
  number_anew(graph, joint);
  const TensorMeta empty = TensorMeta::contiguous(DType::Float32, {0}, Device{});
  Node* token = graph.placeholder(joint ? "primals_1" : "arg0_1", empty, graph.first());
  token->target = token->name();
  for (Node* call : calls) {
    Args args = {token, ArgName{std::string(prefix) + overload_name(call->op()->name)}};
    args.insert(args.end(), call->args().begin(), call->args().end());
    Node* made = graph.create(with_effects(), std::move(args), call->kwargs(), {}, call);
    made->meta = MetaTuple{{empty}};
    Node* next = graph.create(Op::getitem(), {made, 0}, {}, {}, call);
    next->meta = empty;
    made->origin = next->origin = call->origin;
    graph.erase(call);
    token = next;
  }
  std::vector<Arg> outputs = graph.outputs();
  outputs.insert(outputs.begin(), token);
  graph.set_output(joint ? Arg::list(std::move(outputs)) : Arg::tuple(std::move(outputs)));
  return 1;
}

Status inline_effects(Graph& graph) {
  std::vector<Node*> found;
  for (Node* node : graph)
    if (node->is(with_effects())) found.push_back(node);
  for (Node* node : found) {
    const ArgName* name = node->args().size() > 1 ? node->args()[1].get<ArgName>() : nullptr;
    if (!name || !name->text.starts_with(prefix))
      return input_error("ops.region", node->op()->name + " takes a token and an operator", place_of(*node));
    const Op* op = Op::torch(std::string_view(name->text).substr(prefix.size()));
    Node* call = graph.create(op, Args(node->args().begin() + 2, node->args().end()), node->kwargs(), {}, node);
    call->origin = node->origin;
    const MetaTuple* known = node->meta.tuple();
    const Schema* schema = find_schema(op);
    const bool several = schema && schema->returns.size() > 1;
    if (known && known->items.size() > 1)
      call->meta = several ? Meta(MetaTuple{{known->items.begin() + 1, known->items.end()}}) : known->items[1];
    for (Node* part : std::vector<Node*>(node->users())) {
      const auto* index = part->is(Op::getitem()) ? part->args()[1].get<std::int64_t>() : nullptr;
      if (!index) return input_error("ops.region", node->name() + " is read other than by getitem", place_of(*node));
      Node* value = *index == 0 ? node->args()[0].node() : call;
      if (*index > 0 && several) {
        value = graph.create(Op::getitem(), {call, *index - 1}, {}, part->name(), part);
        value->meta = part->meta;
      } else if (*index > 0 && !call->meta.known()) {
        call->meta = part->meta;
      }
      if (!value) return input_error("ops.region", node->name() + " has no token", place_of(*node));
      part->replace_all_uses_with(value);
      graph.erase(part);
    }
    graph.erase(node);
  }
  return {};
}

}  // namespace partita

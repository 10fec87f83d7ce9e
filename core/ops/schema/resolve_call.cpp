// Calls matched with schemas. Does what Python's bindings do before the dispatcher sees the arguments.
#include <algorithm>

#include <fmt/format.h>

#include "core/ops/record/gradients.h"
#include "core/ops/record/promote.h"
#include "core/ops/schema/functional_variant.h"
#include "core/ops/schema/resolve.h"
#include "core/ops/schema/resolve_parts.h"

namespace partita {

namespace {

/// Keyword names of NumPy and Python (`input`), and the names that the schemas have instead.
struct Alias {
  std::string_view python, schema;
};
constexpr Alias aliases[] = {{"input", "self"}, {"axis", "dim"},   {"axes", "dims"}, {"keepdims", "keepdim"},
                             {"x", "self"},     {"a", "self"},     {"x1", "self"},   {"x2", "other"},
                             {"axis", "dims"},  {"axis0", "dim0"}, {"axis1", "dim1"}};

bool any_has(std::string_view base, std::string_view argument) {
  const auto& overloads = find_overloads(base);
  return std::any_of(overloads.begin(), overloads.end(), [&](const Schema* s) { return s->index_of(argument) >= 0; });
}

void rename_keywords(std::string_view base, Kwargs& kwargs) {
  for (auto& [key, value] : kwargs) {
    if (any_has(base, key)) continue;
    for (const Alias& alias : aliases)
      if (alias.python == key && any_has(base, alias.schema)) {
        key = alias.schema;
        break;
      }
  }
}

/// x.view(2, 3) means x.view([2, 3]) when the only other required positional argument of the schema is a list of ints.
bool pack_sizes(std::string_view base, Args& args) {
  std::size_t lead = !args.empty() && is_tensor(args[0]) ? 1 : 0;
  if (args.size() <= lead || !std::all_of(args.begin() + static_cast<std::ptrdiff_t>(lead), args.end(), is_int_like))
    return false;
  for (const Schema* s : find_overloads(base)) {
    if (s->args.size() <= lead || (lead == 1) != (s->args[0].type == SchemaType::Tensor && !s->args[0].is_list))
      continue;
    const SchemaArg& sizes = s->args[lead];
    bool last = s->args.size() == lead + 1 || s->args[lead + 1].keyword_only || s->args[lead + 1].has_default;
    bool ints = sizes.type == SchemaType::Int || sizes.type == SchemaType::SymInt;
    if (!sizes.is_list || !ints || !last) continue;
    std::vector<Arg> items(args.begin() + static_cast<std::ptrdiff_t>(lead), args.end());
    args.resize(lead);
    args.push_back(Arg::list(std::move(items)));
    return true;
  }
  return false;
}

void drop(Kwargs& kwargs, std::string_view key) {
  std::erase_if(kwargs, [&](const auto& item) { return item.first == key; });
}

bool given(const Kwargs& kwargs, std::string_view key) {
  return std::any_of(kwargs.begin(), kwargs.end(),
                     [&](const auto& item) { return item.first == key && !item.second.is_none(); });
}

/// PyTorch's tracer writes pin_memory for factory functions, and the device unless they have a tensor argument.
void complete_factory(const Schema& schema, Kwargs& kwargs) {
  if (schema.index_of("pin_memory") < 0 || schema.index_of("dtype") < 0 || schema.base == "aten._to_copy") return;
  drop(kwargs, "out");
  for (std::string_view key : {"dtype", "layout", "device", "pin_memory"})
    if (!given(kwargs, key)) drop(kwargs, key);
  bool from_tensor = !schema.args.empty() && schema.args[0].type == SchemaType::Tensor && !schema.args[0].is_list;
  if (!from_tensor && !given(kwargs, "device")) kwargs.emplace_back("device", Device{});
  if (!given(kwargs, "pin_memory")) kwargs.emplace_back("pin_memory", false);
}

/// Turns tuples into lists where the schema asks for them.
void convert_lists(const Schema& schema, Args& args, Kwargs& kwargs) {
  auto convert = [](const SchemaArg& to, Arg& value) {
    if (auto* list = value.get<ArgList>(); list && list->is_tuple) value = Arg::list(list->items);
    // Several results are a tuple. For a list of tensors its items are taken.
    Node* node = value.node();
    if (node && node->meta.tuple() && to.is_list) {
      Builder build(node->graph(), node->next(), node->origin);
      const std::vector<Node*> items = results_of(build, node);
      value = Arg::list(std::vector<Arg>(items.begin(), items.end()));
    }
  };
  for (std::size_t i = 0; i < args.size() && i < schema.args.size(); ++i) convert(schema.args[i], args[i]);
  for (auto& [key, value] : kwargs)
    if (int i = schema.index_of(key); i >= 0) convert(schema.args[static_cast<std::size_t>(i)], value);
}

/// Python's out=(values, indices) names several arguments of the schema, such as max and max_values.
void spread_out(std::string_view base, Kwargs& kwargs) {
  const auto out = std::ranges::find(kwargs, "out", &Kwargs::value_type::first);
  const auto* list = out == kwargs.end() ? nullptr : out->second.get<ArgList>();
  if (!list) return;
  for (const Schema* s : find_overloads(base)) {
    std::vector<std::string> names;
    for (const SchemaArg& a : s->args)
      if (a.is_write && a.keyword_only) names.push_back(a.name);
    if (names.size() != list->items.size()) continue;
    const std::vector<Arg> items = list->items;
    kwargs.erase(out);
    for (std::size_t i = 0; i < items.size(); ++i) kwargs.emplace_back(names[i], items[i]);
    return;
  }
}

bool is_number(const Arg& arg) {
  return as_number(arg) || (arg.node() && arg.node()->meta.sym());
}

Operand operand_of(Builder& build, const Arg& arg) {
  if (is_tensor(arg)) return Operand::of(build.tensor(arg));
  return arg.node() ? Operand::of_number(*arg.node()) : Operand::of(*as_number(arg));
}

/// No overload takes a number as its first argument. torch.div(7, 2) makes it a tensor, which promotes types as a
/// number does.
void wrap_first_number(Builder& build, std::string_view base, Args& args) {
  if (args.size() < 2 || !numbers_are_tensors(base) || !is_number(args[0])) return;
  if (!is_number(args[1]) && !is_tensor(args[1])) return;
  const Operand first = operand_of(build, args[0]), operands[] = {first, operand_of(build, args[1])};
  args[0] = number_as_tensor(build, args[0], is_tensor(args[1]) ? result_type(operands) : first.dtype);
}

}  // namespace

Arg call_by_schema(Builder& build, std::string_view base, Args args, Kwargs kwargs, bool of_torch_ops) {
  rename_keywords(base, kwargs);
  wrap_first_number(build, base, args);
  spread_out(base, kwargs);
  if (!any_has(base, "requires_grad")) drop(kwargs, "requires_grad");
  if (!any_has(base, "size") && given(kwargs, "size")) fail(fmt::format("{} takes no size", base));
  Result<ResolvedCall> call = resolve_overload(base, args, kwargs);
  if (!call && pack_sizes(base, args)) call = resolve_overload(base, args, kwargs);
  const bool runs = call && (find_record(call->op) || functional_variant(call->op));
  if (!runs && of_torch_ops)
    if (auto numbered = resolve_overload(base, args, kwargs, true)) call = std::move(numbered);
  ResolvedCall resolved = unwrap(std::move(call));
  const Schema& schema = *find_schema(resolved.op);
  convert_lists(schema, resolved.args, resolved.kwargs);
  complete_factory(schema, resolved.kwargs);
  return build.call(resolved.op->name, std::move(resolved.args), std::move(resolved.kwargs));
}

}  // namespace partita

// Operators on lists of tensors. Each calls an operator on tensors item by item, usually the one with the same name.
#include <algorithm>

#include "core/ops/record/promote.h"
#include "core/ops/record/record.h"

namespace partita {
namespace {

/// The base name of a list operator after "_foreach_", and the operator called for each item when it has another name.
struct ListForm {
  std::string_view name;
  std::string_view item = {};
  /// The keyword under which the item's operator takes an argument that is positional in the list's: "value" of
  /// addcmul.
  std::string_view factor = {};
  /// The operator that the Scalar overloads call when the one named above has no Scalar overload.
  std::string_view item_of_number = {};
};
constexpr ListForm forms[] = {
    {"abs"},
    {"acos"},
    {"add"},
    {"addcdiv", {}, "value"},
    {"addcmul", {}, "value"},
    {"asin"},
    {"atan"},
    {"ceil"},
    {"clamp_max"},
    {"clamp_min"},
    {"clone"},
    {"copy"},
    {"cos"},
    {"cosh"},
    {"div"},
    {"erf"},
    {"erfc"},
    {"exp"},
    {"expm1"},
    {"floor"},
    {"frac"},
    {"lerp", {}, {}, "lerp.Scalar"},
    {"lgamma"},
    {"log"},
    {"log10"},
    {"log1p"},
    {"log2"},
    {"max"},
    {"maximum"},
    {"minimum"},
    {"mm"},
    {"mul"},
    {"neg"},
    {"norm", "linalg_vector_norm"},
    {"pow"},
    {"reciprocal"},
    {"round"},
    {"rsqrt"},
    {"sigmoid"},
    {"sign"},
    {"sin"},
    {"sinh"},
    {"sqrt"},
    {"sub"},
    {"tan"},
    {"tanh"},
    {"trunc"},
    {"zero"},
};

constexpr std::string_view prefix = "aten._foreach_";

const ListForm& form_of(const Schema& schema) {
  std::string_view name = std::string_view(schema.base).substr(prefix.size());
  return *std::find_if(std::begin(forms), std::end(forms), [&](const ListForm& f) { return f.name == name; });
}

bool takes_number(const Schema& schema) {
  return std::any_of(schema.args.begin(), schema.args.end(),
                     [](const SchemaArg& a) { return !a.keyword_only && a.type == SchemaType::Scalar; });
}

/// The number of items; fails when the lists have different lengths.
std::size_t length(const DecomposeCall& call) {
  const ArgList* first = nullptr;
  for (std::size_t i = 0; i < call.args.size(); ++i) {
    if (!call.schema.args[i].is_list) continue;
    auto* list = call.args[i].get<ArgList>();
    if (!list) fail(call.schema.name + ": argument '" + call.schema.args[i].name + "' must be a list");
    if (first && first->items.size() != list->items.size())
      fail("Tensor lists must have the same number of tensors, got " + std::to_string(first->items.size()) + " and " +
           std::to_string(list->items.size()));
    first = list;
  }
  if (!first) fail(call.schema.name + ": no list among its arguments");
  if (first->items.empty()) fail("Tensor list must have at least one tensor.");
  return first->items.size();
}

/// maximum and minimum have no Scalar overload: the number becomes a 0-dim tensor in the dtype of the item's result.
Node* number_as_tensor(DecomposeCall& call, const Arg& item, const Arg& number) {
  const TensorMeta& self = Builder::tensor(item);
  const auto value = as_number(number);
  if (!value) fail_unsupported(call.schema.name + " with a number that the graph computes");
  const Operand operands[] = {Operand::of(self), Operand::of(*value)};
  return call.build.call("aten.full.default", {Arg::list({}), number},
                         {{"dtype", result_type(operands)}, {"device", self.device}});
}

Arg item_by_item(DecomposeCall& call) {
  const ListForm& form = form_of(call.schema);
  std::string_view item = form.item.empty() ? form.name : form.item;
  if (!form.item_of_number.empty() && takes_number(call.schema)) item = form.item_of_number;
  const std::string op = "aten." + std::string(item);
  const bool of_tensors =
      form.item_of_number.empty() &&
      std::ranges::none_of(find_overloads(op), [](const Schema* schema) { return takes_number(*schema); });
  std::vector<Arg> results;
  for (std::size_t i = 0, n = length(call); i < n; ++i) {
    Args args;
    Kwargs kwargs;
    for (std::size_t a = 0; a < call.args.size(); ++a) {
      const SchemaArg& formal = call.schema.args[a];
      const Arg& value = formal.is_list ? call.args[a].get<ArgList>()->items[i] : call.args[a];
      bool number = formal.type == SchemaType::Scalar;
      if (!form.factor.empty() && (number || formal.name == "scalars")) {
        if (!number) fail_unsupported(call.schema.name + " with the factors in a tensor");
        kwargs.emplace_back(form.factor, value);
      } else if (formal.keyword_only || formal.type == SchemaType::Dtype) {
        if (!value.is_none()) kwargs.emplace_back(formal.name, value);
      } else {
        args.push_back(number && of_tensors ? number_as_tensor(call, args.front(), value) : value);
      }
    }
    results.push_back(call.build.call(op, std::move(args), std::move(kwargs)));
  }
  return Arg::list(std::move(results));
}

}  // namespace

void register_foreach(OpTable& t) {
  t.default_family = Family::Pointwise;
  for (const ListForm& form : forms)
    for (const Schema* schema : find_overloads(std::string(prefix) + std::string(form.name)))
      if (!schema->is_mutable) t.add(schema->name, {.decompose = item_by_item});
}

}  // namespace partita

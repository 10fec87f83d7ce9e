// Interprets python_functions.def: binds a call to the parameters, changes some parameters, builds the program.
#include <algorithm>
#include <ranges>

#include <fmt/format.h>

#include "core/base/check.h"
#include "core/base/text.h"
#include "core/ops/record/formula_functions.h"
#include "core/ops/record/operator_program.h"
#include "core/ops/record/promote.h"
#include "core/ops/schema/resolve_parts.h"

namespace partita {

Arg* lookup(NamedArgs& names, std::string_view key) {
  for (auto& [name, value] : names)
    if (name == key) return &value;
  return nullptr;
}

Arg& value_of(NamedArgs& names, std::string_view key) {
  Arg* value = lookup(names, key);
  CHECK(value, std::string(key));
  return *value;
}

void refuse_unless_none(NamedArgs& names, std::string_view function, std::initializer_list<std::string_view> keys) {
  for (std::string_view key : keys)
    if (Arg* value = lookup(names, key); value && !value->is_none())
      fail_unsupported(fmt::format("{} with {}", function, key));
}

Node* node_of(NamedArgs& names, std::string_view key) {
  Node* n = value_of(names, key).node();
  if (!n) fail(fmt::format("'{}' must be a tensor", key));
  return n;
}

Arg repeated(const Arg& arg, std::size_t rank) {
  if (arg.is_none()) return arg;
  if (const auto* list = arg.get<ArgList>()) return Arg::list(list->items);
  return Arg::list(std::vector<Arg>(rank, arg));
}

namespace {

using Names = NamedArgs;

struct Function {
  std::string_view name, parameters, expression, in_place;
};

constexpr Function functions[] = {
#define PYTHON_FUNCTION(name, parameters, expression, in_place) {name, parameters, expression, in_place},
#include "core/ops/python/python_functions.def"
#undef PYTHON_FUNCTION
};

/// torch.meshgrid is torch.functional.meshgrid under a second name.
const Function* find_function(std::string_view name) {
  constexpr std::string_view module = "torch.functional.", outer = "torch.";
  const auto is_named = [&](const Function& f) {
    return f.name == name || (f.name.starts_with(module) && name.starts_with(outer) &&
                              f.name.substr(module.size()) == name.substr(outer.size()));
  };
  auto it = std::find_if(std::begin(functions), std::end(functions), is_named);
  return it == std::end(functions) ? nullptr : it;
}

struct Parameter {
  std::string_view name, default_text;  ///< default_text is empty when the parameter is required
  bool variadic = false, takes_list = false;
};

std::vector<Parameter> parameters_of(const Function& f) {
  std::vector<Parameter> out;
  std::string_view rest = f.parameters;
  while (!rest.empty()) {
    std::size_t comma = rest.find(',');
    std::string_view text = trimmed(rest.substr(0, comma));
    rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
    Parameter p;
    p.variadic = text.starts_with("*");
    if (p.variadic) text.remove_prefix(1);
    p.takes_list = p.variadic && text.starts_with("[");
    if (p.takes_list) text = text.substr(1, text.size() - 2);
    std::size_t equals = text.find('=');
    p.name = text.substr(0, equals);
    if (equals != std::string_view::npos) p.default_text = text.substr(equals + 1);
    out.push_back(p);
  }
  return out;
}

Names bind_parameters(Builder& b, const Function& f, const Args& args, const Kwargs& kwargs) {
  Names names;
  std::vector<Parameter> parameters = parameters_of(f);
  std::size_t next = 0;
  for (const Parameter& p : parameters) {
    if (p.variadic) {
      std::vector<Arg> items(args.begin() + static_cast<std::ptrdiff_t>(std::min(next, args.size())), args.end());
      const ArgList* only = items.size() == 1 ? items[0].get<ArgList>() : nullptr;
      names.emplace_back(p.name, p.takes_list && only ? Arg::list(only->items) : Arg::list(std::move(items)));
      next = args.size();
      continue;
    }
    if (next < args.size()) {
      names.emplace_back(p.name, args[next++]);
      continue;
    }
    auto given = std::find_if(kwargs.begin(), kwargs.end(), [&](const auto& item) { return item.first == p.name; });
    if (given != kwargs.end())
      names.emplace_back(p.name, given->second);
    else if (!p.default_text.empty())
      names.emplace_back(p.name, b.expression(p.default_text, {}));
    else
      fail(fmt::format("{}: argument '{}' is missing", f.name, p.name));
  }
  if (next < args.size()) fail(fmt::format("{} takes at most {} arguments", f.name, parameters.size()));
  for (const auto& [key, value] : kwargs)
    if (std::none_of(parameters.begin(), parameters.end(), [&](const Parameter& p) { return p.name == key; }))
      fail(fmt::format("{} has no argument named '{}'", f.name, key));
  return names;
}

/// Replaces reduction='mean' by ATen's number. Returns true for the 'batchmean' of kl_div, which is a sum that is
/// divided later.
bool read_reduction(Names& names) {
  Arg* reduction = lookup(names, "reduction");
  const std::string* text = reduction ? reduction->get<std::string>() : nullptr;
  if (!text) return false;
  bool batch_mean = *text == "batchmean";
  if (*text == "none")
    *reduction = 0;
  else if (*text == "mean" || *text == "elementwise_mean")
    *reduction = 1;
  else if (*text == "sum" || batch_mean)
    *reduction = 2;
  else
    fail(fmt::format("{} is not a valid value for reduction", *text));
  return batch_mean;
}

/// Sets the dimension that softmax uses when none is given.
void default_softmax_dim(Builder& b, Names& names) {
  Arg& dim = value_of(names, "dim");
  if (!dim.is_none()) return;
  std::size_t rank = b.tensor(node_of(names, "input")).dim();
  dim = rank == 0 || rank == 1 || rank == 3 ? 0 : 1;
}

/// Writes to the weight, unseen by autograd (_no_grad_embedding_renorm_ of torch/nn/functional.py).
void bound_rows(Builder& b, Names& names) {
  const Arg& most = value_of(names, "max_norm");
  if (most.is_none()) return;
  Node* const weight = b.call("aten.detach.default", {value_of(names, "weight")});
  b.call("aten.embedding_renorm_.default", {weight, value_of(names, "input"), most, value_of(names, "norm_type")});
}

void prepare_embedding(Builder& b, Names& names) {
  bound_rows(b, names);
  Arg& padding = value_of(names, "padding_idx");
  const auto* i = padding.get<std::int64_t>();
  if (padding.is_none())
    padding = -1;
  else if (i && *i < 0)
    padding = b.size(b.tensor(node_of(names, "weight")).sizes.at(0) + *i);
}

void prepare_embedding_bag(Builder& b, Names& names) {
  bound_rows(b, names);
  const auto* mode = value_of(names, "mode").get<std::string>();
  constexpr std::string_view modes[] = {"sum", "mean", "max"};
  auto it = mode ? std::find(std::begin(modes), std::end(modes), *mode) : std::end(modes);
  if (it == std::end(modes)) fail("mode has to be one of sum, mean or max");
  value_of(names, "mode") = static_cast<std::int64_t>(it - std::begin(modes));
  // Bags of equal length may be given as the rows of a matrix.
  Node* input = node_of(names, "input");
  const TensorMeta& meta = b.tensor(input);
  if (meta.dim() == 2) {
    SymExpr bags = meta.sizes[0], length = meta.sizes[1];
    value_of(names, "offsets") = b.call("aten.arange.start_step", {0, b.size(bags * length), b.size(length)},
                                        {{"dtype", meta.dtype}, {"device", meta.device}, {"pin_memory", false}});
    value_of(names, "input") = b.call("aten.reshape.default", {input, Arg::list({-1})});
    if (Arg& weights = value_of(names, "per_sample_weights"); weights.node())
      weights = b.call("aten.reshape.default", {weights, Arg::list({-1})});
  } else if (value_of(names, "offsets").is_none()) {
    fail("offsets has to be a 1D Tensor but got None");
  }
}

Arg split(Builder& b, Names& names) {
  Arg sections = value_of(names, "split_size_or_sections");
  bool list = sections.get<ArgList>() != nullptr;
  return call_by_schema(b, list ? "aten.split_with_sizes" : "aten.split",
                        {value_of(names, "tensor"), list ? repeated(sections, 0) : sections, value_of(names, "dim")},
                        {});
}

/// ATen's operators always return three tensors; Python's functions only those that are asked for.
Arg unique(Builder& b, Names& names) {
  const Arg &input = value_of(names, "input"), &dim = value_of(names, "dim"), *sorted = lookup(names, "sorted");
  const Arg &inverse = value_of(names, "return_inverse"), &counts = value_of(names, "return_counts");
  Node* all = !sorted         ? b.call("aten.unique_consecutive.default", {input, inverse, counts, dim})
              : dim.is_none() ? b.call("aten._unique2.default", {input, *sorted, inverse, counts})
                              : b.call("aten.unique_dim.default", {input, dim, *sorted, inverse, counts});
  std::vector<Arg> results{b.getitem(all, 0)};
  if (inverse == Arg(true)) results.emplace_back(b.getitem(all, 1));
  if (counts == Arg(true)) results.emplace_back(b.getitem(all, 2));
  return results.size() == 1 ? results[0] : Arg::tuple(std::move(results));
}

Arg unravel_index(Builder& b, Names& names) {
  DType dtype = b.tensor(node_of(names, "indices")).dtype;
  if (!is_integral(dtype)) fail("expected 'indices' to be integer dtype");
  Node* rest = b.call("aten.to.dtype", {value_of(names, "indices"), DType::Int64});
  const Arg shape = repeated(value_of(names, "shape"), 1);
  if (shape.get<ArgList>()->items.empty()) return Arg::tuple({});
  std::vector<Arg> parts;
  std::int64_t step = 1;
  for (const Arg& item : std::views::reverse(shape.get<ArgList>()->items)) {
    const auto* size = item.get<std::int64_t>();
    if (!size) fail_unsupported("unravel_index with a symbolic shape");
    if (*size < 0) fail("'shape' cannot have negative values");
    Node* quotient = b.call("aten.floor_divide.Scalar", {rest, step});
    parts.insert(parts.begin(), b.call("aten.remainder.Scalar", {quotient, *size}));
    if (__builtin_mul_overflow(step, *size, &step)) fail("unravel_index: the shape has too many elements");
  }
  return b.call("aten.unbind.int", {b.call("aten.stack.default", {Arg::list(std::move(parts)), -1}), -1});
}

Arg tensordot(Builder& b, Names& names) {
  Arg dims = value_of(names, "dims"), left, right;
  if (const auto* count = dims.get<std::int64_t>()) {
    std::size_t most = std::min(b.tensor(node_of(names, "a")).dim(), b.tensor(node_of(names, "b")).dim());
    if (*count < 0 || static_cast<std::size_t>(*count) > most)
      fail(fmt::format("tensordot: dims is {}, the smaller tensor has {} dimensions", *count, most));
    std::vector<Arg> last, first;
    for (std::int64_t i = 0; i < *count; ++i) {
      last.emplace_back(i - *count);
      first.emplace_back(i);
    }
    left = Arg::list(std::move(last)), right = Arg::list(std::move(first));
  } else if (const auto* pair = dims.get<ArgList>(); pair && pair->items.size() == 2) {
    left = repeated(pair->items[0], 1), right = repeated(pair->items[1], 1);
  } else {
    fail_unsupported("tensordot with dims that are neither a number nor two lists");
  }
  return b.call("aten.tensordot.default", {value_of(names, "a"), value_of(names, "b"), left, right});
}

/// A label of a list of subscripts as a letter of the equation.
std::string subscript(const Arg& label) {
  if (is_ellipsis(label)) return "...";
  const auto* n = label.get<std::int64_t>();
  if (!n || *n < 0 || *n >= 52) fail("einsum(): subscript in subscript list is not within the valid range [0, 52)");
  return {static_cast<char>(*n < 26 ? 'A' + *n : 'a' + *n - 26)};
}

std::string subscripts(const Arg& labels) {
  const ArgList* list = labels.get<ArgList>();
  if (!list) fail("einsum(): a list of subscripts is expected after each operand");
  std::string out;
  for (const Arg& label : list->items) out += subscript(label);
  return out;
}

/// einsum('ij,jk', a, b), or with lists of subscripts: einsum(a, [0, 1], b, [1, 2], [0, 2]).
Arg einsum(Builder& b, Names& names) {
  const Arg &first = value_of(names, "equation"), &rest = value_of(names, "operands");
  if (!first.node()) return b.call("aten.einsum.default", {first, rest});
  std::vector<Arg> given = rest.get<ArgList>()->items;
  // One list after the operand has been taken for the operands.
  if (given.empty() || !given[0].get<ArgList>()) given = {rest};
  given.insert(given.begin(), first);
  std::string equation;
  std::vector<Arg> operands;
  for (std::size_t i = 0; i + 1 < given.size(); i += 2) {
    operands.push_back(given[i]);
    equation += (i == 0 ? "" : ",") + subscripts(given[i + 1]);
  }
  if (given.size() % 2 == 1) equation += "->" + subscripts(given.back());
  return b.call("aten.einsum.default", {equation, Arg::list(std::move(operands))});
}

/// torch.as_tensor and torch.asarray, which copies if asked to.
Arg as_tensor(Builder& b, Names& names) {
  Arg* const copy = lookup(names, "copy");
  Node* const n = value_of(names, "data").node();
  if (!n || !n->meta.tensor()) {
    if (!lookup(names, "requires_grad")) names.emplace_back("requires_grad", false);
    return torch_tensor(b, names);
  }
  Args args{n};
  for (std::string_view key : {"device", "dtype"})
    if (const Arg& given = value_of(names, key); !given.is_none()) args.push_back(given);
  Kwargs kwargs;
  if (copy && *copy == Arg(true)) kwargs.emplace_back("copy", true);
  return args.size() == 1 && kwargs.empty() ? n : *call_method(b, "to", args, kwargs);
}

/// Raises when the graph runs, without the message, which Python makes.
Arg check(Builder& b, Names& names) {
  return b.call("aten._assert_scalar.default", {value_of(names, "cond"), "Expected cond to be True, but got False."});
}

/// torch._check_is_size(i, message, max): 0 <= i, and i <= max where there is one.
Arg check_is_size(Builder& b, Names& names) {
  const Arg &i = value_of(names, "i"), &most = value_of(names, "max");
  const auto require = [&](const char* comparison, const Arg& bound) {
    b.call("aten._assert_scalar.default", {b.call(comparison, {i, bound}), "Expected cond to be True, but got False."});
  };
  require("_operator.ge", 0);
  if (!most.is_none()) require("_operator.le", most);
  return Arg();
}

/// torch.broadcast_shapes(*shapes), each a list of sizes or one size.
Arg broadcast_shapes(Builder& b, Names& names) {
  std::vector<SymList> shapes;
  const FakeCall guards = FormulaCall{b, {}}.guards();
  for (const Arg& shape : value_of(names, "shapes").get<ArgList>()->items)
    shapes.push_back(FormulaCall{b, {repeated(shape, 1)}}.sizes(0));
  return Arg::tuple(b.sizes(broadcast(guards, shapes)).get<ArgList>()->items);
}

constexpr PythonSpecial function_rows[] = {
    {"torch._check", check},
    {"torch._check_is_size", check_is_size},
    {"torch.functional.broadcast_shapes", broadcast_shapes},
    {"torch.functional.einsum", einsum},
    {"torch.functional.split", split},
    {"torch.tensor", torch_tensor},
    {"torch._refs.tensor", torch_tensor},
    {"torch.as_tensor", as_tensor},
    {"torch.asarray", as_tensor},
    {"torch.functional.unique", unique},
    {"torch.functional.unique_consecutive", unique},
    {"torch.functional.tensordot", tensordot},
    {"torch.functional.unravel_index", unravel_index},
};

/// A function that changes the parameters before the expression is built.
struct Preparation {
  std::string_view name;
  void (*prepare)(Builder&, Names&);
};
constexpr Preparation preparations[] = {
    {"torch.nn.functional.softmax", default_softmax_dim},
    {"torch.nn.functional.log_softmax", default_softmax_dim},
    {"torch.nn.functional.softmin", default_softmax_dim},
    {"torch.nn.functional.embedding", prepare_embedding},
    {"torch.nn.functional.embedding_bag", prepare_embedding_bag},
};

/// A None in output_size stands for the size of the input.
void fill_output_size(Builder& b, Names& names) {
  Arg* output = lookup(names, "output_size");
  Arg* input = lookup(names, "input");
  const ArgList* list = output ? output->get<ArgList>() : nullptr;
  if (!list || !input || !is_tensor(*input)) return;
  std::vector<Arg> items = list->items;
  const SymList& sizes = b.tensor(*input).sizes;
  for (std::size_t i = 0; i < items.size() && items.size() <= sizes.size(); ++i)
    if (items[i].is_none()) items[i] = b.size(sizes[sizes.size() - items.size() + i]);
  *output = Arg::list(std::move(items));
}

Arg divided_by_batch(Builder& b, Arg loss, Names& names) {
  return b.call("aten.div.Tensor", {loss, b.size(b.tensor(node_of(names, "input")).sizes.at(0))});
}

}  // namespace

std::optional<Arg> call_python_function(Builder& b, std::string_view name, const Args& args, const Kwargs& kwargs) {
  // F.max_pool2d_with_indices is F.max_pool2d with return_indices=True, which it also takes.
  constexpr std::string_view suffix = "_with_indices";
  const bool with_indices = name.ends_with(suffix);
  if (with_indices) name.remove_suffix(suffix.size());
  const Function* f = find_function(name);
  if (!f) return std::nullopt;
  Names names = bind_parameters(b, *f, args, kwargs);
  if (with_indices) {
    Arg* const indices = lookup(names, "return_indices");
    if (!indices) return std::nullopt;
    *indices = true;
  }
  refuse_unless_none(names, f->name, {"size_average", "out"});
  if (lookup(names, "size_average")) refuse_unless_none(names, f->name, {"reduce"});
  if (f->name.ends_with("_loss")) {
    if (name == "torch.nn.functional.mse_loss" || name == "torch.nn.functional.l1_loss" ||
        name == "torch.nn.functional.huber_loss")
      refuse_unless_none(names, f->name, {"weight"});
  }
  if (Arg* stride = lookup(names, "stride"); stride && stride->is_none()) *stride = Arg::list({});
  fill_output_size(b, names);
  if (Arg* indices = lookup(names, "return_indices"); indices && *indices == Arg(true) && !f->expression.empty()) {
    // With return_indices=True another operator is called, which also returns the indices.
    std::string base(name.substr(name.rfind('.') + 1));
    Args positional;
    for (auto& [key, value] : names)
      if (key != "return_indices") positional.push_back(value);
    if (!base.starts_with("adaptive")) base += suffix;
    return b.call("aten." + base, positional);
  }
  bool batch_mean = read_reduction(names);
  for (const Preparation& p : preparations)
    if (p.name == f->name) p.prepare(b, names);
  for (std::span<const PythonSpecial> table : {std::span<const PythonSpecial>(function_rows), nn_specials(),
                                               linalg_specials(), masked_specials(), window_specials()})
    for (const PythonSpecial& s : table)
      if (s.name == f->name) return s.build(b, names);
  std::string_view expression = f->expression;
  if (Arg* in_place = lookup(names, "inplace"); in_place && *in_place == Arg(true)) expression = f->in_place;
  for (auto& [key, value] : names)
    if (const auto* list = value.get<ArgList>(); list && list->is_tuple) value = Arg::list(list->items);
  Arg result = build_program(b, expression, names);
  return batch_mean ? divided_by_batch(b, result, names) : result;
}

}  // namespace partita

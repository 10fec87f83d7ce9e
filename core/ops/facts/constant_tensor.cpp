// torch.tensor(data), legacy constructors and numbers in the place of tensors: constants of the graph, lifted.
#include <algorithm>

#include <fmt/format.h>

#include "core/ops/kernels/outputs.h"
#include "core/ops/record/promote.h"
#include "core/ops/schema/resolve_parts.h"

namespace partita {
namespace {

/// What a number that the graph computes is; null for anything else.
const SymExpr* symbolic_number(const Arg& data) {
  return data.node() ? data.node()->meta.sym() : nullptr;
}

DType dtype_of(const Arg& number) {
  return symbolic_number(number) ? Operand::of_number(*number.node()).dtype : number_dtype(*as_number(number));
}

/// Adds the numbers of nested lists in row-major order. `sizes` are those of the first item at each depth, which all
/// items must have.
void flatten(const Arg& data, std::size_t depth, Sizes& sizes, std::vector<Arg>& numbers) {
  const auto* list = data.get<ArgList>();
  const bool known = depth < sizes.size() || !numbers.empty();
  if (!list) {
    if (!as_number(data) && !symbolic_number(data))
      fail_unsupported("torch.tensor of a list that holds anything but numbers");
    if (depth != sizes.size()) fail("expected sequences of equal length");
    numbers.push_back(data);
    return;
  }
  const auto size = static_cast<std::int64_t>(list->items.size());
  if (!known) sizes.push_back(size);
  if (depth >= sizes.size() || sizes[depth] != size)
    fail(fmt::format("expected sequence of length {} at dim {} (got {})", depth < sizes.size() ? sizes[depth] : 0,
                     depth, size));
  for (const Arg& item : list->items) flatten(item, depth + 1, sizes, numbers);
}

}  // namespace

Node* constant_tensor(Builder& build, Tensor value) {
  std::string name;
  for (int i = 0; name.empty() || build.graph.attributes.contains(name); ++i)
    name = fmt::format("_tensor_constant{}", i);
  Node* node = build.graph.create(Op::get_attr(), {}, {}, name, build.before);
  node->target = name;
  node->origin = build.origin;
  node->meta = TensorMeta::contiguous(value.dtype, {value.sizes.begin(), value.sizes.end()});
  build.graph.attributes[name] = std::move(value);
  return build.call("aten.lift_fresh_copy.default", {node});
}

Node* number_as_tensor(Builder& build, const Arg& number, DType dtype) {
  if (const auto literal = as_number(number)) return constant_tensor(build, kernels::number_tensor(*literal, dtype));
  return build.call("aten.scalar_tensor.default", {number}, {{"dtype", dtype}});
}

Arg torch_tensor(Builder& build, NamedArgs& names) {
  const Arg &data = value_of(names, "data"), &requires_grad = value_of(names, "requires_grad");
  if (requires_grad == Arg(true)) fail_unsupported("torch.tensor with requires_grad");
  const Arg& device = value_of(names, "device");
  if (!device.is_none() && device != Arg(Device{}) && device != Arg("cpu"))
    fail_unsupported("torch.tensor on another device than the CPU");
  const auto* wanted = value_of(names, "dtype").get<DType>();
  if (const Node* n = data.node()) {
    if (!n->meta.sym()) fail_unsupported("torch.tensor of a tensor");
    return number_as_tensor(build, data, wanted ? *wanted : dtype_of(data));
  }
  Sizes sizes;
  std::vector<Arg> numbers;
  flatten(data, 0, sizes, numbers);
  DType dtype = numbers.empty() ? DType::Float32 : dtype_of(numbers.front());
  for (const Arg& n : numbers) dtype = promote(dtype, dtype_of(n));
  if (wanted) dtype = *wanted;
  if (std::ranges::any_of(numbers, symbolic_number)) {
    for (Arg& n : numbers) n = number_as_tensor(build, n, dtype);
    Node* const flat = build.call("aten.stack.default", {Arg::list(std::move(numbers))});
    return build.call("aten.view.default", {flat, build.sizes({sizes.begin(), sizes.end()})});
  }
  Tensor value = unwrap(Tensor::empty(dtype, sizes));
  for (std::size_t i = 0; i < numbers.size(); ++i)
    value.view_as({}, {}, static_cast<std::int64_t>(i))
        .copy_from(kernels::number_tensor(*as_number(numbers[i]), dtype));
  return constant_tensor(build, std::move(value));
}

std::optional<DType> legacy_dtype(std::string_view name) {
  constexpr std::pair<std::string_view, DType> rows[] = {
      {"torch.Tensor", DType::Float32},          {"torch.FloatTensor", DType::Float32},
      {"torch.DoubleTensor", DType::Float64},    {"torch.HalfTensor", DType::Float16},
      {"torch.BFloat16Tensor", DType::BFloat16}, {"torch.ByteTensor", DType::UInt8},
      {"torch.CharTensor", DType::Int8},         {"torch.ShortTensor", DType::Int16},
      {"torch.IntTensor", DType::Int32},         {"torch.LongTensor", DType::Int64},
      {"torch.BoolTensor", DType::Bool},
  };
  const auto it = std::ranges::find(rows, name, &std::pair<std::string_view, DType>::first);
  return it == std::end(rows) ? std::nullopt : std::optional(it->second);
}

Arg legacy_tensor(Builder& build, DType dtype, const Args& args, const Kwargs& kwargs) {
  Arg device = Device{};
  for (const auto& [key, value] : kwargs) {
    if (key != "device") fail_unsupported(fmt::format("a legacy constructor with {}", key));
    device = value;
  }
  if (args.size() == 1 && args[0].get<ArgList>()) {
    NamedArgs names{{"data", args[0]}, {"dtype", dtype}, {"device", device}, {"requires_grad", false}};
    return torch_tensor(build, names);
  }
  if (args.size() == 1 && is_tensor(args[0])) {
    if (build.tensor(args[0]).dtype != dtype)
      fail(fmt::format("expected a tensor of {} (got {})", torch_name(dtype), torch_name(build.tensor(args[0]).dtype)));
    return build.call("aten.alias.default", {args[0]});
  }
  std::vector<Arg> sizes(args.begin(), args.end());
  if (sizes.empty()) sizes.emplace_back(0);
  if (!std::ranges::all_of(sizes, is_int_like)) fail("a legacy constructor takes a list, a tensor or sizes");
  return build.call("aten.empty.memory_format", {Arg::list(std::move(sizes))},
                    {{"dtype", dtype}, {"device", device}, {"pin_memory", false}});
}

}  // namespace partita

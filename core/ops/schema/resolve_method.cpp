// Methods and attributes of tensors that are not ATen operators of the same name.
#include <algorithm>

#include <fmt/format.h>

#include "core/ops/record/layout.h"
#include "core/ops/schema/resolve_parts.h"

namespace partita {

namespace {

struct CastRow {
  std::string_view method;
  DType dtype;
};
constexpr CastRow casts[] = {
    {"float", DType::Float32},     {"double", DType::Float64},   {"half", DType::Float16},
    {"bfloat16", DType::BFloat16}, {"long", DType::Int64},       {"int", DType::Int32},
    {"short", DType::Int16},       {"char", DType::Int8},        {"byte", DType::UInt8},
    {"bool", DType::Bool},         {"cfloat", DType::Complex64}, {"cdouble", DType::Complex128},
    {"chalf", DType::Complex32},
};

const Arg* keyword(const Kwargs& kwargs, std::string_view key) {
  for (const auto& [name, value] : kwargs)
    if (name == key) return &value;
  return nullptr;
}

std::optional<Device> as_device(const Arg& arg) {
  if (auto* device = arg.get<Device>()) return *device;
  if (auto* text = arg.get<std::string>()) return Device::parse(*text);
  return std::nullopt;
}

/// x.to(dtype | device | device, dtype | tensor, non_blocking, copy, memory_format=)
Arg call_to(Builder& b, const Args& args, const Kwargs& kwargs) {
  std::optional<Device> device;
  std::optional<DType> dtype;
  Arg other, non_blocking = false, copy = false, memory_format;
  std::size_t next = 1;
  if (args.size() > 1 && is_tensor(args[1])) other = args[next++];
  for (; next < args.size() && other.is_none(); ++next) {
    if (auto* t = args[next].get<DType>())
      dtype = *t;
    else if (auto d = as_device(args[next]))
      device = d;
    else if (!args[next].is_none())
      break;
  }
  if (next < args.size()) non_blocking = args[next++];
  if (next < args.size()) copy = args[next++];
  if (next < args.size()) fail("to() takes memory_format as a keyword only");
  if (auto* a = keyword(kwargs, "dtype"); a && a->get<DType>()) dtype = *a->get<DType>();
  if (auto* a = keyword(kwargs, "device"); a && !a->is_none()) device = as_device(*a);
  if (auto* a = keyword(kwargs, "non_blocking")) non_blocking = *a;
  if (auto* a = keyword(kwargs, "copy")) copy = *a;
  if (auto* a = keyword(kwargs, "memory_format")) memory_format = *a;
  for (std::string_view name : {"other", "tensor"})
    if (auto* a = keyword(kwargs, name)) other = *a;
  if (!other.is_none()) return b.call("aten.to.other", {args[0], other, non_blocking, copy, memory_format});
  const TensorMeta& self = b.tensor(args[0]);
  bool copies = copy == Arg(true);
  if (device && *device == self.device) device.reset();
  if (!device && !dtype && !copies && memory_format.is_none()) return args[0];
  if (device)
    return b.call("aten.to.device", {args[0], *device, dtype.value_or(self.dtype), non_blocking, copy, memory_format});
  return b.call("aten.to.dtype", {args[0], dtype.value_or(self.dtype), non_blocking, copy, memory_format});
}

/// x.float(memory_format=) is x.to(torch.float32, memory_format=), x.cpu(memory_format=) x.to('cpu', memory_format=).
Arg call_to_fixed(Builder& b, std::string_view method, const Arg& target, const Args& args, const Kwargs& kwargs) {
  if (args.size() > 1 || std::ranges::any_of(kwargs, [](const auto& k) { return k.first != "memory_format"; }))
    fail(fmt::format("{}() takes no argument but the keyword memory_format", method));
  return call_to(b, {args[0], target}, kwargs);
}

Arg sizes_of(Builder& b, const Args& args, const Kwargs& kwargs, const SymList& list) {
  const Arg* dim = args.size() > 1 ? &args[1] : keyword(kwargs, "dim");
  if (!dim || dim->is_none()) {
    Arg all = b.sizes(list);
    return Arg::tuple(all.get<ArgList>()->items);
  }
  const auto* i = dim->get<std::int64_t>();
  if (!i && is_int_like(*dim)) fail_unsupported("a dimension that is known only at run time");
  auto rank = static_cast<std::int64_t>(list.size());
  if (!i || *i < -rank || *i >= rank) fail("Dimension out of range");
  return b.size(list[static_cast<std::size_t>(*i < 0 ? *i + rank : *i)]);
}

/// x.type(dtype or its name, non_blocking, memory_format=)
Arg call_type(Builder& b, const Args& args, const Kwargs& kwargs) {
  const Arg* type = args.size() > 1 ? &args[1] : keyword(kwargs, "dtype");
  if (!type) fail_unsupported("the method type without a dtype");
  auto dtype = type->get<DType>()         ? std::optional(*type->get<DType>())
               : type->get<std::string>() ? legacy_dtype(*type->get<std::string>())
                                          : std::nullopt;
  if (!dtype) fail_unsupported("the method type with this argument");
  Args rest = {args[0], *dtype};
  rest.insert(rest.end(), args.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(2, args.size())),
              args.end());
  Kwargs named = kwargs;
  std::erase_if(named, [](const auto& k) { return k.first == "dtype"; });
  return call_to(b, rest, named);
}

/// The memory format that the method is_contiguous asks for.
bool is_contiguous(const TensorMeta& self, const Args& args, const Kwargs& kwargs, const ShapeEnv& shapes) {
  const Arg* wanted = args.size() > 1 ? &args[1] : keyword(kwargs, "memory_format");
  const auto* format = wanted ? wanted->get<MemoryFormat>() : nullptr;
  if (!format || *format == MemoryFormat::Contiguous) return self.strides == contiguous_strides(self.sizes);
  return suggest_memory_format(self, shapes) == *format;
}

/// Methods of Python's int and float, which graphs call on symbolic numbers.
std::optional<Arg> call_number_method(Builder& b, std::string_view name, const Args& args) {
  struct Row {
    std::string_view method, function;
  };
  constexpr Row rows[] = {{"__round__", "round"},          {"__floor__", "math.floor"}, {"__ceil__", "math.ceil"},
                          {"__trunc__", "math.trunc"},     {"__abs__", "abs"},          {"__int__", "torch.sym_int"},
                          {"__float__", "torch.sym_float"}};
  for (const Row& row : rows)
    if (row.method == name) return b.call(row.function, args);
  if (args.size() != 1) return std::nullopt;
  if (name == "is_integer") return b.call("_operator.eq", {args[0], b.call("math.floor", args)});
  if (name == "conjugate") return args[0];
  return std::nullopt;
}

}  // namespace

std::optional<Arg> call_method(Builder& b, std::string_view name, const Args& args, const Kwargs& kwargs) {
  if (args.empty()) fail(fmt::format("the method {} has no object", name));
  if (!is_tensor(args[0])) {
    // Indexing is the only method of lists and tuples that occurs in a graph.
    if (name == "__getitem__") return b.call("_operator.getitem", args);
    const bool symbolic = args[0].node() && args[0].node()->meta.sym();
    if (symbolic || args[0].get<double>() || args[0].get<std::int64_t>()) return call_number_method(b, name, args);
    return std::nullopt;
  }
  for (const CastRow& row : casts)
    if (row.method == name) return call_to_fixed(b, name, row.dtype, args, kwargs);
  const TensorMeta& self = b.tensor(args[0]);
  if (name == "to") return call_to(b, args, kwargs);
  if (name == "cpu") return call_to_fixed(b, name, Device{}, args, kwargs);
  if (name == "cuda") fail_unsupported("the method cuda: tensors of this graph are on the CPU");
  if (name == "type") return call_type(b, args, kwargs);
  if (name == "size") return sizes_of(b, args, kwargs, self.sizes);
  if (name == "stride") return sizes_of(b, args, kwargs, self.strides);
  if (name == "dim" || name == "ndimension") return static_cast<std::int64_t>(self.dim());
  if (name == "numel" || name == "nelement" || name == "__len__")
    return b.size(name == "__len__" ? (self.sizes.empty() ? SymExpr(0) : self.sizes[0]) : self.numel());
  if (name == "is_floating_point") return is_floating(self.dtype);
  if (name == "is_complex") return is_complex(self.dtype);
  if (name == "is_contiguous") return is_contiguous(self, args, kwargs, *b.graph.shapes);
  if (name == "requires_grad_") return args[0];
  if (name == "split" || name == "split_with_sizes") {
    Kwargs named = kwargs;
    for (auto& [key, value] : named)
      if (key == "split_size_or_sections") key = "split_size";
    bool list = (args.size() > 1 && args[1].get<ArgList>()) ||
                (keyword(named, "split_size") && keyword(named, "split_size")->get<ArgList>());
    if (!list) return call_by_schema(b, "aten.split", args, named);
    for (auto& [key, value] : named)
      if (key == "split_size") key = "split_sizes";
    return call_by_schema(b, "aten.split_with_sizes", args, named);
  }
  if (name == "__getitem__" && args.size() == 2) return get_item(b, args[0].node(), args[1]);
  if (name == "__setitem__" && args.size() == 3) return set_item(b, args[0].node(), args[1], args[2]);
  if (name == "copy_" && args.size() > 1 && (as_number(args[1]) || is_int_like(args[1]))) {
    Args with_tensor = args;
    with_tensor[1] = number_as_tensor(b, args[1], self.dtype);
    return call_by_schema(b, "aten.copy_", with_tensor, kwargs);
  }
  if (name == "new") return legacy_tensor(b, self.dtype, Args(args.begin() + 1, args.end()), kwargs);
  if (name == "norm" || name == "unique" || name == "unique_consecutive" || name == "lu")
    return call_python_function(b, fmt::format("torch.functional.{}", name), args, kwargs);
  if (name == "nonzero") return call_python_function(b, "torch.nonzero", args, kwargs);
  if (name == "polygamma" && args.size() == 2) return call_by_schema(b, "aten.polygamma", {args[1], args[0]}, kwargs);
  if (name == "numpy" || name == "tolist") fail_unsupported(fmt::format("the method {}", name));
  return std::nullopt;
}

Arg get_attribute(Builder& b, const Arg& object, std::string_view name) {
  if (!is_tensor(object)) fail_unsupported(fmt::format("the attribute {} of something that is not a tensor", name));
  const TensorMeta& self = b.tensor(object);
  if (name == "shape") return Arg::tuple(b.sizes(self.sizes).get<ArgList>()->items);
  if (name == "dtype") return self.dtype;
  if (name == "device") return self.device;
  if (name == "ndim") return static_cast<std::int64_t>(self.dim());
  if (name == "is_cuda") return self.device.type == DeviceType::Cuda;
  if (name == "requires_grad") return self.requires_grad;
  if (name == "layout") return Layout::Strided;
  // What no tensor of a graph is.
  for (std::string_view other : {"is_meta", "is_sparse", "is_quantized", "is_mkldnn", "is_nested"})
    if (name == other) return false;
  if (name == "nbytes") return b.size(self.numel() * static_cast<std::int64_t>(itemsize(self.dtype)));
  if (name == "itemsize") return static_cast<std::int64_t>(itemsize(self.dtype));
  // Gradients would be those of the values before a write through it, eager PyTorch's those of the values after it.
  if (name == "data") fail_unsupported("the attribute data, through which values change that autograd has saved");
  if (name == "T") return b.call("aten.numpy_T.default", {object});
  if (name == "mT") return b.call("aten.transpose.int", {object, -2, -1});
  if (name == "H") return b.call("aten.matrix_H.default", {object});
  if (name == "mH") return b.call("aten.mH.default", {object});
  if (name == "real" || name == "imag") return b.call(fmt::format("aten.{}.default", name), {object});
  throw Raise{unsupported("ops.unknown", fmt::format("the attribute {} of a tensor is not known", name))};
}

}  // namespace partita

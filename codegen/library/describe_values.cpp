#include "codegen/library/describe_values.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/base/mapped.h"

namespace partita::codegen {

using Kind = LibraryValue::Kind;

LibraryValue value_of_meta(std::string name, const Meta& meta) {
  LibraryValue v{.name = std::move(name)};
  if (const TensorMeta* t = meta.tensor()) {
    v.dtype = t->dtype;
    v.sizes = mapped(t->sizes, &SymExpr::str);
    v.strides = mapped(t->strides, &SymExpr::str);
  } else if (const SymExpr* e = meta.sym()) {
    v.kind = Kind::Number;
    v.dtype = e->is_float() ? DType::Float64 : e->is_boolean() ? DType::Bool : DType::Int64;
    if (!e->is_int()) v.number = e->str();
  } else {
    v.kind = Kind::None;
  }
  return v;
}

LibraryValue value_of_result(std::string name, const Meta& meta, const Arg& result) {
  LibraryValue v = value_of_meta(std::move(name), meta);
  const auto number = [&](DType dtype) {
    v.kind = Kind::Number;
    v.dtype = dtype;
  };
  if (result.get<bool>()) number(DType::Bool);
  if (result.get<std::int64_t>()) number(DType::Int64);
  if (result.get<double>()) number(DType::Float64);
  return v;
}

std::string shown(const LibraryValue& v) {
  if (v.kind == Kind::None) return v.name + ": None";
  return fmt::format("{}: {}[{}]", v.name, torch_name(v.dtype), fmt::join(v.sizes, ", "));
}

}  // namespace partita::codegen

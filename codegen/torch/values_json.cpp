#include "codegen/torch/values_json.h"

#include <algorithm>
#include <limits>

#include "codegen/torch/graph_json.h"
#include "core/base/mapped.h"

namespace partita::torch {

using nlohmann::json;

namespace {

Diagnostic unreadable(const json& described) {
  return {Fault::Internal, "process.message",
          "PyTorch's process sent a value that cannot be read: " + described.dump().substr(0, 200)};
}

json tensor_json(const Tensor& t, Storages& storages) {
  const auto found = std::ranges::find(storages, t.storage);
  const auto place = found - storages.begin();
  if (found == storages.end()) storages.push_back(t.storage);
  return {{"storage", place},
          {"dtype", torch_name(t.dtype)},
          {"sizes", t.sizes},
          {"strides", t.strides},
          {"offset", t.offset}};
}

bool is_integer(const json& j) {
  return j.is_number_integer();
}

/// A finite number, or what JSON lacks.
std::optional<double> number_from(const json& j) {
  if (j.is_number()) return j.get<double>();
  if (!j.is_object() || !j.contains("float")) return std::nullopt;
  const json& text = j["float"];
  constexpr double inf = std::numeric_limits<double>::infinity();
  return text == "inf" ? inf : text == "-inf" ? -inf : std::numeric_limits<double>::quiet_NaN();
}

Result<Value> tensor_from(const json& j, std::span<const std::shared_ptr<Storage>> storages) {
  const auto integers = [&](const char* key) {
    return j.contains(key) && j[key].is_array() && std::ranges::all_of(j[key], is_integer);
  };
  if (!j.is_object() || !j.contains("storage") || !is_integer(j["storage"]) || !integers("sizes") ||
      !integers("strides") || !j.contains("offset") || !is_integer(j["offset"]) || !j.contains("dtype") ||
      !j["dtype"].is_string())
    return unreadable(j);
  Tensor t;
  const auto dtype = dtype_from_torch(j["dtype"].get<std::string>());
  const auto place = j["storage"].get<std::size_t>();
  t.sizes = j["sizes"].get<std::vector<std::int64_t>>();
  t.strides = j["strides"].get<std::vector<std::int64_t>>();
  t.offset = j["offset"].get<std::int64_t>();
  if (!dtype || place >= storages.size() || t.sizes.size() != t.strides.size()) return unreadable(j);
  t.dtype = *dtype;
  t.storage = storages[place];
  const Result<bool> within = within_storage(t);
  if (!within || !*within) return unreadable(j);
  return Value(std::move(t));
}

}  // namespace

json value_json(const Value& value, Storages& storages) {
  if (auto constant = constant_json(value)) return *std::move(constant);
  if (const auto* t = value.get<Tensor>()) return {{"tensor", tensor_json(*t, storages)}};
  const auto item_json = [&](const Value& item) { return value_json(item, storages); };
  return {{"list", mapped(*value.get<ValueList>(), item_json)}};
}

Result<Value> value_from(const json& j, std::span<const std::shared_ptr<Storage>> storages) {
  if (j.is_null()) return Value();
  if (j.is_boolean()) return Value(j.get<bool>());
  if (is_integer(j)) return Value(j.get<std::int64_t>());
  if (j.is_string()) return Value(j.get<std::string>());
  if (const auto x = number_from(j)) return Value(*x);
  if (!j.is_object() || j.size() != 1) return unreadable(j);
  const std::string kind = j.begin().key();
  const json& content = j.begin().value();
  if (kind == "tensor") return tensor_from(content, storages);
  if (kind == "complex" && content.is_array() && content.size() == 2)
    if (const auto re = number_from(content[0]), im = number_from(content[1]); re && im)
      return Value(std::complex<double>(*re, *im));
  if (kind == "dtype" && content.is_string())
    if (const auto dtype = dtype_from_torch(content.get<std::string>())) return Value(*dtype);
  if (kind != "list" || !content.is_array()) return unreadable(j);
  ValueList list;
  for (const json& item : content) {
    TRY(Value value, value_from(item, storages));
    list.push_back(std::move(value));
  }
  return Value(std::move(list));
}

}  // namespace partita::torch

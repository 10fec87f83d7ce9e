#pragma once
// Reads JSON of a torch.export archive; errors name the place. Internal to core/load.
#include <fmt/format.h>
#include <simdjson.h>

#include "core/base/result.h"

namespace partita::pt2 {

using Json = simdjson::dom::element;

/// Error load.pt2, with what is wrong.
inline Diagnostic bad(std::string what) {
  return input_error("load.pt2", "not a readable torch.export archive: " + std::move(what));
}

/// The field's value; nullopt when it is missing or null.
inline std::optional<Json> field(Json object, std::string_view key) {
  Json value;
  if (object[key].get(value) != simdjson::SUCCESS || value.is_null()) return std::nullopt;
  return value;
}
/// The field's value; an error when it is missing or null.
inline Result<Json> need(Json object, std::string_view key) {
  if (auto value = field(object, key)) return *value;
  return bad(fmt::format("'{}' is missing", key));
}
/// The text; `what` names the value in the error.
inline Result<std::string_view> string_of(Json value, std::string_view what) {
  std::string_view out;
  if (value.get(out) != simdjson::SUCCESS) return bad(fmt::format("{} is not a string", what));
  return out;
}
/// The text of a field that must be there.
inline Result<std::string_view> string_in(Json object, std::string_view key) {
  TRY(Json value, need(object, key));
  return string_of(value, key);
}
/// The whole number; `what` names the value in the error.
inline Result<std::int64_t> integer_of(Json value, std::string_view what) {
  std::int64_t out;
  if (value.get(out) != simdjson::SUCCESS) return bad(fmt::format("{} is not an integer", what));
  return out;
}
/// The list; `what` names the value in the error.
inline Result<simdjson::dom::array> array_of(Json value, std::string_view what) {
  simdjson::dom::array out;
  if (value.get(out) != simdjson::SUCCESS) return bad(fmt::format("{} is not a list", what));
  return out;
}
/// The list of a field that must be there.
inline Result<simdjson::dom::array> array_in(Json object, std::string_view key) {
  TRY(Json value, need(object, key));
  return array_of(value, key);
}
/// The object; `what` names the value in the error.
inline Result<simdjson::dom::object> object_of(Json value, std::string_view what) {
  simdjson::dom::object out;
  if (value.get(out) != simdjson::SUCCESS) return bad(fmt::format("{} is not an object", what));
  return out;
}
/// The boolean; `otherwise` when it is missing, null or something else.
inline bool flag_in(Json object, std::string_view key, bool otherwise = false) {
  bool out = otherwise;
  return object[key].get(out) == simdjson::SUCCESS ? out : otherwise;
}
/// A union in torch's schema: an object with one key.
struct Union {
  std::string_view kind;
  Json value;
};
/// The first key whose value is not null.
inline Result<Union> union_of(Json value, std::string_view what) {
  TRY(auto object, object_of(value, what));
  for (auto entry : object)
    if (!entry.value.is_null()) return Union{entry.key, entry.value};
  return bad(fmt::format("{} is an empty union", what));
}

}  // namespace partita::pt2

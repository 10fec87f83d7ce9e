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
using Array = simdjson::dom::array;
/// The value, if it has this type; `what` names it in the error.
template <class T>
Result<T> as(Json value, std::string_view what) {
  T out;
  if (value.get(out) == simdjson::SUCCESS) return out;
  constexpr const char* kind = std::is_same_v<T, std::string_view> ? "a string"
                               : std::is_same_v<T, std::int64_t>   ? "an integer"
                               : std::is_same_v<T, Array>          ? "a list"
                                                                   : "an object";
  return bad(fmt::format("{} is not {}", what, kind));
}
/// The same of a field that must be there.
template <class T>
Result<T> field_as(Json object, std::string_view key) {
  TRY(Json value, need(object, key));
  return as<T>(value, key);
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
  TRY(auto object, as<simdjson::dom::object>(value, what));
  for (auto entry : object)
    if (!entry.value.is_null()) return Union{entry.key, entry.value};
  return bad(fmt::format("{} is an empty union", what));
}

}  // namespace partita::pt2

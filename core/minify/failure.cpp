#include "core/minify/failure.h"

#include <nlohmann/json.hpp>

namespace partita::minify {

using Json = nlohmann::ordered_json;

std::string Failure::text() const {
  return op.empty() ? what : what + " at " + op;
}

std::string to_json(const Failure& f) {
  const Json json = {{"what", f.what}, {"op", f.op}, {"node", f.node}, {"message", f.message}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<Failure> failure_from_json(const std::string& text) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return input_error("minify.answer", "a remembered answer is not readable: " + text);
  return Failure{json.value("what", ""), json.value("op", ""), json.value("node", ""), json.value("message", "")};
}

}  // namespace partita::minify

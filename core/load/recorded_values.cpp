// What the value files of a recording have beside plain safetensors: values that are written once, in another file of
// the folder or under another key, and what is left of those that were beyond a limit.
#include <cstring>
#include <filesystem>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/base/assign.h"
#include "core/load/safetensors.h"

namespace partita {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

Diagnostic bad_note(const std::string& path, const std::string& what) {
  return input_error("load.safetensors", "not a value file of a recording: " + what, {.file = path});
}

/// Takes a note out of the metadata; an empty object when there is none.
Result<Json> take_note(TensorFile& file, const char* name, const std::string& path) {
  const auto it = file.metadata.find(name);
  if (it == file.metadata.end()) return Json::object();
  Json note = Json::parse(it->second, nullptr, false);
  if (!note.is_object()) return bad_note(path, fmt::format("metadata '{}' is no JSON object", name));
  file.metadata.erase(it);
  return note;
}

/// In memory of its own: what writes to one value must not write to another.
Result<Tensor> copy_of(const Tensor& t) {
  TRY(Tensor out, Tensor::empty_strided(t.dtype, t.sizes, t.strides));
  std::memset(out.storage->data(), 0, out.storage->bytes());
  out.copy_from(t);
  return out;
}

/// "beyond the limit of one graph; f32, 262144 values"
std::string words_of(const Json& left) {
  const auto text = [&](const char* key) {
    return left.is_object() && left.contains(key) && left[key].is_string() ? left[key].get<std::string>()
                                                                           : std::string("?");
  };
  std::string out = text("why").substr(0, 100) + "; " + text("dtype").substr(0, 30);
  if (left.is_object() && left.contains("sizes") && left["sizes"].is_array())
    out += left["sizes"].dump().substr(0, 100);
  return out;
}

}  // namespace

Result<TensorFile> read_recorded_values(const std::string& path) {
  TRY(TensorFile file, read_safetensors(path));
  TRY(const Json left_out, take_note(file, "left_out", path));
  for (const auto& [key, left] : left_out.items()) file.left_out[key] = words_of(left);
  TRY(const Json elsewhere, take_note(file, "elsewhere", path));
  struct There {
    std::string key;
    bool requires_grad;
  };
  std::map<std::string, std::map<std::string, There>> keys;  // by file and own key
  for (const auto& [key, place] : elsewhere.items()) {
    const bool good =
        place.is_array() && place.size() == 3 && place[0].is_string() && place[1].is_string() && place[2].is_boolean();
    const std::string name = good ? place[0].get<std::string>() : "";
    if (name.empty() || name.starts_with(".") || name.find_first_of(std::string_view("/\0", 2)) != name.npos)
      return bad_note(path, fmt::format("'elsewhere' does not say where '{}' is", key));
    keys[name][key] = {place[1].get<std::string>(), place[2].get<bool>()};
  }
  const TensorFile written = file;
  for (const auto& [name, own] : keys) {
    const fs::path beside = fs::path(path).parent_path() / name;
    std::error_code error;
    if (fs::symlink_status(beside, error).type() != fs::file_type::regular)
      return input_error("load.recording", fmt::format("{} has values of it and is not there", name), {.file = path});
    TensorFile other;
    if (beside.filename() != fs::path(path).filename()) TRY_DO(assign(other, read_safetensors(beside.string())));
    const TensorFile& file_there = other.tensors.empty() ? written : other;
    for (const auto& [key, there] : own) {
      const Tensor* t = file_there.find(there.key);
      if (!t) return bad_note(path, fmt::format("'{}' is to be '{}' of {}, which is not there", key, there.key, name));
      TRY(file.tensors[key], copy_of(*t));
      file.tensors[key].requires_grad = there.requires_grad;
    }
  }
  return file;
}

}  // namespace partita

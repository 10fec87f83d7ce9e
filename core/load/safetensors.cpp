// Reads and writes safetensors files. The reader checks the header, copies each tensor into memory of its own, and
// applies the conventions of __metadata__: strides, complex, opaque dtypes, shared storages.
#include "core/load/safetensors.h"

#include <algorithm>
#include <cstring>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/base/assign.h"
#include "core/base/output.h"
#include "core/load/file.h"

namespace partita {
namespace {

using Json = nlohmann::json;
using Metadata = std::map<std::string, std::string>;

constexpr std::uint64_t max_header = 100'000'000;  // the format's own limit
constexpr std::size_t max_tensor_rank = 64;
constexpr std::string_view two_in_a_byte = "F4";  // a shape counts numbers, a tensor bytes

Diagnostic bad_header(std::string message) {
  return input_error("load.safetensors", "not a valid safetensors file: " + message);
}

struct TensorEntry {
  std::string name, dtype_name;
  std::optional<DType> dtype;  ///< null: unknown here
  Sizes sizes;
  std::uint64_t begin, end;
};

Result<Sizes> integers(const Json& list, const std::string& name) {
  if (!list.is_array() || list.size() > max_tensor_rank)
    return bad_header(fmt::format("'{}': a list of at most {} integers expected", name, max_tensor_rank));
  Sizes out;
  for (const Json& item : list) {
    if (!item.is_number_integer() || (item.is_number_unsigned() && item.get<std::uint64_t>() > INT64_MAX))
      return bad_header(fmt::format("'{}': a list of integers expected", name));
    out.push_back(item.get<std::int64_t>());
  }
  return out;
}

Result<TensorEntry> read_entry(const std::string& name, const Json& json, std::uint64_t data_bytes) {
  if (!json.is_object() || !json.contains("dtype") || !json.contains("shape") || !json.contains("data_offsets") ||
      !json["dtype"].is_string())
    return bad_header(fmt::format("'{}' lacks dtype, shape or data_offsets", name));
  const std::string dtype_name = json["dtype"].get<std::string>();
  auto dtype = dtype_from_safetensors(dtype_name);
  TRY(Sizes sizes, integers(json["shape"], name));
  if (dtype_name == two_in_a_byte && !sizes.empty() && sizes.back() % 2 == 0) {
    dtype = DType::Float4E2M1FNx2;
    sizes.back() /= 2;
  }
  TRY(Sizes offsets, integers(json["data_offsets"], name));
  if (offsets.size() != 2 || offsets[0] < 0 || offsets[1] < offsets[0] ||
      static_cast<std::uint64_t>(offsets[1]) > data_bytes)
    return bad_header(fmt::format("data of '{}' lies outside the file; is it truncated?", name));
  TensorEntry entry{name,
                    dtype_name,
                    dtype,
                    std::move(sizes),
                    static_cast<std::uint64_t>(offsets[0]),
                    static_cast<std::uint64_t>(offsets[1])};
  if (!dtype) return entry;
  TRY(std::int64_t count, reach(entry.sizes, row_major_strides(entry.sizes)));
  std::uint64_t bytes;
  if (__builtin_mul_overflow(static_cast<std::uint64_t>(count), itemsize(*dtype), &bytes) ||
      bytes != static_cast<std::uint64_t>(offsets[1] - offsets[0]))
    return bad_header(
        fmt::format("'{}' has {} bytes of data, its shape and dtype need {}", name, offsets[1] - offsets[0], bytes));
  return entry;
}

/// The dtype whose elements hold the bits of an opaque one.
DType stored_as(DType t) {
  if (!is_opaque(t)) return t;
  return itemsize(t) == 1 ? DType::UInt8 : DType::UInt16;
}

/// Reads a metadata entry of Partita's: a string that holds JSON. Null when absent.
Result<Json> convention(Metadata& metadata, const char* key) {
  auto it = metadata.find(key);
  if (it == metadata.end()) return Json();
  Json json = Json::parse(it->second, nullptr, false);
  if (json.is_discarded()) return bad_header(fmt::format("metadata '{}' is not JSON", key));
  metadata.erase(it);
  return json;
}

Result<std::set<std::string>> key_set(Metadata& metadata, const char* key) {
  TRY(Json json, convention(metadata, key));
  std::set<std::string> out;
  if (json.is_null()) return out;
  if (!json.is_array()) return bad_header(fmt::format("metadata '{}' is not a list of keys", key));
  for (const Json& item : json) {
    if (!item.is_string()) return bad_header(fmt::format("metadata '{}' is not a list of keys", key));
    out.insert(item.get<std::string>());
  }
  return out;
}

Result<std::map<std::string, SharedMemory>> shared_memory(Metadata& metadata, const char* key) {
  TRY(Json json, convention(metadata, key));
  std::map<std::string, SharedMemory> out;
  if (json.is_null()) return out;
  bool good = json.is_object();
  if (good)
    for (auto& [name, pair] : json.items()) {
      good = good && pair.is_array() && pair.size() == 2 && pair[0].is_string() && pair[1].is_number_integer();
      if (good) out[name] = {pair[0].get<std::string>(), pair[1].get<std::int64_t>()};
    }
  if (!good) return bad_header(fmt::format("metadata '{}' is not a map of key to [key, offset]", key));
  return out;
}

/// `budget`: bytes that strides with gaps may still take.
Result<Tensor> copy_in(const TensorEntry& entry, const char* data, bool is_complex, const Sizes* strides,
                       std::uint64_t& budget) {
  Tensor flat;
  TRY(flat.storage, Storage::allocate(entry.end - entry.begin));
  if (entry.end > entry.begin) std::memcpy(flat.storage->data(), data + entry.begin, entry.end - entry.begin);
  flat.dtype = *entry.dtype;
  flat.sizes = entry.sizes;
  flat.strides = row_major_strides(flat.sizes);
  if (is_complex) TRY_DO(assign(flat, view_as_complex(flat)));
  if (!strides) return flat;
  if (strides->size() != flat.sizes.size())
    return bad_header(
        fmt::format("'{}' has {} dimensions but {} strides", entry.name, flat.sizes.size(), strides->size()));
  TRY(std::int64_t elements, reach(flat.sizes, *strides));
  if (static_cast<std::uint64_t>(elements) > budget / itemsize(flat.dtype))
    return bad_header(
        fmt::format("strides of '{}' span {} elements for {} values, and all tensors together may take 64 times "
                    "the file",
                    entry.name, elements, flat.numel()));
  budget -= static_cast<std::uint64_t>(elements) * itemsize(flat.dtype);
  TRY(Tensor strided, Tensor::empty_strided(flat.dtype, flat.sizes, *strides));
  std::memset(strided.storage->data(), 0, strided.storage->bytes());
  strided.copy_from(flat);
  return strided;
}

/// The dtype that the metadata `dtypes` names for a tensor stored as bits; `stored` when it names none.
Result<DType> dtype_of_bits(const Json& dtypes, const std::string& name, DType stored) {
  if (!dtypes.is_object() || !dtypes.contains(name)) return stored;
  const Json& named = dtypes[name];
  const auto dtype = named.is_string() ? dtype_from_torch(named.get<std::string>()) : std::nullopt;
  if (!dtype || !is_opaque(*dtype) || stored != stored_as(*dtype))
    return bad_header(fmt::format("metadata 'dtypes' names no dtype that '{}' can have", name));
  return *dtype;
}

Status share_storage(TensorFile& file, const std::string& name, const SharedMemory& memory) {
  auto view = file.tensors.find(name);
  auto whole = file.tensors.find(memory.key);
  if (view == file.tensors.end() || whole == file.tensors.end())
    return bad_header(
        fmt::format("metadata 'storages' names '{}' in '{}', but one of them is missing", name, memory.key));
  Tensor& t = view->second;
  const auto before = static_cast<std::int64_t>(itemsize(whole->second.dtype)) * whole->second.offset /
                      static_cast<std::int64_t>(itemsize(t.dtype));
  t.storage = whole->second.storage;
  if (__builtin_add_overflow(memory.offset, before, &t.offset))
    return bad_header(fmt::format("'{}' reaches beyond its storage '{}'", name, memory.key));
  TRY(const bool within, within_storage(t));
  if (!within) return bad_header(fmt::format("'{}' reaches beyond its storage '{}'", name, memory.key));
  return {};
}

/// First what lies in a whole storage, then what lies in such a tensor.
Status share_storages(TensorFile& file) {
  for (const bool nested : {false, true})
    for (auto& [name, memory] : file.storages)
      if (file.storages.contains(memory.key) == nested) TRY_DO(share_storage(file, name, memory));
  return {};
}

Result<TensorFile> parse(std::string_view bytes) {
  std::uint64_t header_size = 0;
  if (bytes.size() < 8) return bad_header("shorter than its 8-byte header length");
  std::memcpy(&header_size, bytes.data(), 8);
  if (header_size > max_header || header_size > bytes.size() - 8)
    return bad_header(fmt::format("header of {} bytes in a file of {}", header_size, bytes.size()));
  std::string_view header = bytes.substr(8, header_size), data = bytes.substr(8 + header_size);
  Json json = Json::parse(header.begin(), header.end(), nullptr, false);
  // What safetensors writes for no tensors beside metadata: {},"__metadata__":{...}}
  if (constexpr std::string_view none = "{},"; json.is_discarded() && header.starts_with(none)) {
    const std::string mended = "{" + std::string(header.substr(none.size()));
    json = Json::parse(mended, nullptr, false);
  }
  if (!json.is_object()) return bad_header("the header is not a JSON object");

  TensorFile file;
  std::vector<TensorEntry> entries;
  for (auto& [name, value] : json.items()) {
    if (name == "__metadata__") {
      if (!value.is_object()) return bad_header("__metadata__ is not an object");
      for (auto& [key, text] : value.items()) {
        if (!text.is_string()) return bad_header(fmt::format("metadata '{}' is not a string", key));
        file.metadata[key] = text.get<std::string>();
      }
      continue;
    }
    TRY(entries.emplace_back(), read_entry(name, value, data.size()));
  }
  std::sort(entries.begin(), entries.end(), [](const TensorEntry& a, const TensorEntry& b) {
    return std::tie(a.begin, a.end) < std::tie(b.begin, b.end);
  });
  for (std::size_t i = 1; i < entries.size(); ++i)
    if (entries[i].begin < entries[i - 1].end)
      return bad_header(fmt::format("data of '{}' and '{}' overlap", entries[i - 1].name, entries[i].name));

  TRY(auto complex_keys, key_set(file.metadata, "complex"));
  TRY(auto requires_grad, key_set(file.metadata, "requires_grad"));
  TRY(file.storages, shared_memory(file.metadata, "storages"));
  TRY(file.aliases, shared_memory(file.metadata, "alias"));
  TRY(Json strides, convention(file.metadata, "strides"));
  TRY(const Json dtypes, convention(file.metadata, "dtypes"));
  if (!strides.is_null() && !strides.is_object())
    return bad_header("metadata 'strides' is not a map of key to integers");
  std::uint64_t budget = most_bytes_in_memory(bytes.size());
  for (const TensorEntry& entry : entries) {
    if (!entry.dtype) {
      file.unread[entry.name] = entry.dtype_name;
      continue;
    }
    Sizes layout;
    bool has_layout = strides.is_object() && strides.contains(entry.name);
    if (has_layout) TRY_DO(assign(layout, integers(strides[entry.name], entry.name)));
    TRY(Tensor tensor,
        copy_in(entry, data.data(), complex_keys.count(entry.name) > 0, has_layout ? &layout : nullptr, budget));
    tensor.requires_grad = requires_grad.count(entry.name) > 0;
    TRY(tensor.dtype, dtype_of_bits(dtypes, entry.name, tensor.dtype));
    file.tensors.emplace(entry.name, std::move(tensor));
  }
  TRY_DO(share_storages(file));
  return file;
}

Json to_json(const std::map<std::string, SharedMemory>& map) {
  Json out = Json::object();
  for (auto& [name, memory] : map) out[name] = Json::array({memory.key, memory.offset});
  return out;
}

Tensor view_as_real(const Tensor& t) {
  Tensor out = t;
  out.dtype = real_of(t.dtype);
  out.sizes.push_back(2);
  out.strides = row_major_strides(out.sizes);
  out.offset = 2 * t.offset;
  return out;
}

}  // namespace

Result<Tensor> view_as_complex(const Tensor& real) {
  Tensor out = real;
  out.dtype = complex_of(real.dtype);
  if (out.dtype == real.dtype || real.sizes.empty() || real.sizes.back() != 2 || !real.is_contiguous() ||
      real.offset % 2 != 0)
    return bad_header("complex values must be stored as real ones with a last dimension of 2");
  out.sizes.pop_back();
  out.strides = row_major_strides(out.sizes);
  out.offset = real.offset / 2;
  return out;
}

Result<TensorFile> read_safetensors(const std::string& path) {
  TRY(auto bytes, FileBytes::open(path));
  auto file = parse(bytes->text());
  if (!file) file.error().where.file = path;
  return file;
}

Status write_safetensors(const std::string& path, const TensorFile& file) {
  Json header = Json::object(), strides = Json::object(), dtypes = Json::object(), complex_keys = Json::array(),
       requires_grad = Json::array();
  std::vector<std::pair<std::string, Tensor>> order;
  for (auto& [name, tensor] : file.tensors) {
    TRY(Tensor dense, tensor.contiguous());
    if (tensor.strides != row_major_strides(tensor.sizes)) strides[name] = tensor.strides;
    if (tensor.requires_grad) requires_grad.push_back(name);
    if (is_complex(dense.dtype)) {
      complex_keys.push_back(name);
      dense = view_as_real(dense);
    }
    if (is_opaque(dense.dtype)) {
      dtypes[name] = torch_name(dense.dtype);
      dense.dtype = stored_as(dense.dtype);
    }
    order.emplace_back(name, std::move(dense));
  }
  // Sort by element size, largest first, so that all data is aligned without padding.
  std::stable_sort(order.begin(), order.end(),
                   [](auto& a, auto& b) { return itemsize(a.second.dtype) > itemsize(b.second.dtype); });
  std::uint64_t at = 0;
  for (auto& [name, tensor] : order) {
    std::uint64_t bytes = static_cast<std::uint64_t>(tensor.numel()) * itemsize(tensor.dtype);
    header[name] = {
        {"dtype", safetensors_name(tensor.dtype)}, {"shape", tensor.sizes}, {"data_offsets", {at, at + bytes}}};
    at += bytes;
  }
  Json metadata = Json::object();
  for (auto& [key, text] : file.metadata) metadata[key] = text;
  if (!strides.empty()) metadata["strides"] = strides.dump();
  if (!dtypes.empty()) metadata["dtypes"] = dtypes.dump();
  if (!complex_keys.empty()) metadata["complex"] = complex_keys.dump();
  if (!requires_grad.empty()) metadata["requires_grad"] = requires_grad.dump();
  if (!file.storages.empty()) metadata["storages"] = to_json(file.storages).dump();
  if (!file.aliases.empty()) metadata["alias"] = to_json(file.aliases).dump();
  if (!metadata.empty()) header["__metadata__"] = metadata;

  std::string text = header.dump(-1, ' ', false, Json::error_handler_t::replace);
  text.append((8 - text.size() % 8) % 8, ' ');
  std::uint64_t header_size = text.size();
  std::vector<std::string_view> parts{{reinterpret_cast<const char*>(&header_size), 8}, text};
  for (auto& [name, tensor] : order)
    if (std::size_t n = static_cast<std::size_t>(tensor.numel()) * itemsize(tensor.dtype); n > 0)
      parts.emplace_back(reinterpret_cast<const char*>(tensor.data()), n);
  return write_file(path, parts);
}

}  // namespace partita

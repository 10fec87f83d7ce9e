// Files of PyTorch that hold no graph: what they hold, and why.
#include <algorithm>
#include <cstring>
#include <filesystem>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <zlib.h>

#include "core/base/number_text.h"
#include "core/base/python_text.h"
#include "core/load/records.h"
#include "core/load/sources.h"

namespace partita {
namespace {

namespace fs = std::filesystem;

void add_text(Artefact a, std::string id, const std::string& path, std::string title, Loading& loading) {
  a.id = std::move(id);
  a.where.file = path;
  a.group = fs::path(path).parent_path().string();
  a.title = std::move(title);
  loading.add(std::move(a));
}

/// The bytes of torch.utils._appending_byte_serializer: CRC-32, then numbers of 8 bytes, the highest first, and pieces
/// behind their lengths.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : bytes_(bytes) {}

  bool at_end() const { return at_ == bytes_.size(); }
  void skip(std::size_t n) { at_ = std::min(at_ + n, bytes_.size()); }
  Result<std::uint64_t> number() {
    TRY(const std::string_view raw, take(8));
    std::uint64_t n = 0;
    for (const char c : raw) n = n << 8 | static_cast<unsigned char>(c);
    return n;
  }
  Result<std::string_view> piece() {
    TRY(const std::uint64_t n, number());
    return take(n);
  }
  /// A string, which is written as base64.
  Result<std::string> text() {
    TRY(const std::string_view encoded, piece());
    constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string out;
    std::uint32_t bits = 0;
    int count = 0;
    for (const char c : encoded) {
      if (c == '=') break;
      const std::size_t digit = digits.find(c);
      if (digit == digits.npos) return bad("a name that is no base64");
      bits = bits << 6 | static_cast<std::uint32_t>(digit);
      count += 6;
      if (count >= 8) out += static_cast<char>(bits >> (count -= 8) & 0xff);
    }
    return out;
  }
  static Diagnostic bad(std::string_view what) {
    return input_error("load.cache_artifacts", fmt::format("not readable as saved cache artifacts: {}", what));
  }

 private:
  Result<std::string_view> take(std::uint64_t n) {
    if (n > bytes_.size() - at_) return bad("an item reaches beyond the end; is it truncated?");
    const std::string_view out = bytes_.substr(at_, n);
    at_ += n;
    return out;
  }

  std::string_view bytes_;
  std::size_t at_ = 0;
};

constexpr std::size_t checksum_bytes = 4;
constexpr std::uint64_t artifacts_version = 1;

/// The code of inductor in a pickle, which has it as one string; empty if there is none. Nothing else of it is read.
std::string_view code_in(std::string_view pickle) {
  const std::size_t at = pickle.find("# AOT ID: [");
  if (at == pickle.npos) return {};
  for (const auto& [opcode, length] : {std::pair{'X', 4U}, {'\x8c', 1U}, {'\x8d', 8U}}) {
    if (at < length + 1 || pickle[at - length - 1] != opcode) continue;
    std::uint64_t size = 0;
    std::memcpy(&size, pickle.data() + at - length, length);
    if (size <= pickle.size() - at) return pickle.substr(at, size);
  }
  return {};
}

struct CacheContents {
  std::string list;
  std::size_t artifacts = 0, caches = 0;
  std::vector<std::pair<std::string, std::string_view>> codes;  ///< by key
};

Result<CacheContents> read_cache(ByteReader& reader) {
  CacheContents out;
  while (!reader.at_end()) {
    TRY(const std::string type, reader.text());
    TRY(const std::uint64_t count, reader.number());
    ++out.caches;
    for (std::uint64_t i = 0; i < count; ++i) {
      TRY(const std::string key, reader.text());
      TRY(const std::string_view content, reader.piece());
      ++out.artifacts;
      out.list += fmt::format("{}  {}  {} bytes\n", one_line(type), one_line(key), content.size());
      if (const std::string_view code = code_in(content); !code.empty()) out.codes.emplace_back(key, code);
    }
  }
  return out;
}

Status placed(Diagnostic error, const std::string& path) {
  error.where.file = path;
  return error;
}

}  // namespace

void tell_what(const std::string& path, std::string what, Loading& loading) {
  Diagnostic note = input_error(std::string(what_code), std::move(what), {.file = path});
  note.severity = Severity::Note;
  loading.out.warnings.push_back(std::move(note));
}

Result<bool> load_aoti(const ZipArchive& zip, const std::string& root, const std::string& path,
                       const std::string& prefix, Loading& loading) {
  const std::string folder = root + "data/aotinductor/";
  std::size_t wrappers = 0, kernels = 0, machine = 0, models = 0;
  std::string model, device;
  for (const std::string& name : zip.names()) {
    if (!name.starts_with(folder) || name.ends_with('/')) continue;
    const std::string within = name.substr(folder.size());
    if (const std::string of = within.substr(0, within.find('/')); of != model) model = of, ++models;
    // Names are HASH.wrapper.cpp; the hash says nothing.
    const std::string file = within.substr(within.rfind('/') + 1);
    const std::size_t dot = file.find('.');
    const std::string ending = dot == file.npos ? file : file.substr(dot + 1);
    const bool code =
        ending.ends_with("cpp") || ending.ends_with("cu") || ending.ends_with("py") || ending.ends_with("h");
    if (!code && !ending.ends_with("json")) {
      ++machine;
      continue;
    }
    TRY(std::string text, zip.read(name));
    wrappers += ending.ends_with("wrapper.cpp");
    kernels += code && ending.starts_with("kernel");
    if (ending.ends_with("metadata.json") && device.empty())
      if (const auto json = nlohmann::json::parse(text, nullptr, false); json.is_object())
        for (const char* key : {"AOTI_DEVICE_KEY", "AOTI_MACHINE", "AOTI_CPU_ISA", "AOTI_COMPUTE_CAPABILITY"})
          if (const auto it = json.find(key); it != json.end() && it->is_string() && !it->get<std::string>().empty())
            device += (device.empty() ? "" : ", ") + it->get<std::string>();
    add_text(Artefact::of_string(std::move(text)), join_id(prefix, fmt::format("{}/{}", model, ending)), path,
             fmt::format("{} of {}", ending, model), loading);
  }
  if (models == 0) return false;
  tell_what(path,
            fmt::format("an AOTInductor package of {} for {}: {} of machine code, {} and {} as code; PyTorch writes no "
                        "graph into it",
                        count_text(models, "model"), device.empty() ? "an unknown device" : one_line(device),
                        count_text(machine, "file"), count_text(wrappers, "wrapper"), count_text(kernels, "kernel")),
            loading);
  return true;
}

bool is_cache_artifacts(std::string_view bytes, std::string_view) {
  if (bytes.size() < checksum_bytes + 24) return false;
  ByteReader reader(bytes);
  reader.skip(checksum_bytes);
  const auto version = reader.number();
  const auto type = version && *version == artifacts_version ? reader.text() : ByteReader::bad("");
  return type && is_identifier(*type);
}

Status load_cache_artifacts(std::shared_ptr<const FileBytes> bytes, const std::string& prefix, Loading& loading) {
  const std::string_view all = bytes->text(), body = all.substr(checksum_bytes);
  ByteReader reader(all);
  reader.skip(checksum_bytes + 8);
  auto contents = read_cache(reader);
  if (!contents) return placed(std::move(contents).error(), bytes->path());
  std::uint32_t said = 0;
  for (const char c : all.substr(0, checksum_bytes)) said = said << 8 | static_cast<unsigned char>(c);
  if (crc32_z(0, reinterpret_cast<const Bytef*>(body.data()), body.size()) != said)
    return placed(ByteReader::bad("its checksum is another; it was changed after PyTorch wrote it"), bytes->path());
  const std::string stem = fs::path(bytes->path()).stem().string();
  add_text(Artefact::of_string(contents->list), prefix.empty() ? stem : prefix, bytes->path(), stem, loading);
  for (const auto& [key, code] : contents->codes)
    add_text(Artefact::of_string(std::string(code)), join_id(prefix, key + "/output_code"), bytes->path(),
             fmt::format("code of {}", key), loading);
  tell_what(bytes->path(),
            fmt::format("caches saved by torch.compiler.save_cache_artifacts: {} of {}, {} with code; graphs are not "
                        "in it",
                        count_text(contents->artifacts, "artifact"), count_text(contents->caches, "cache"),
                        contents->codes.size()),
            loading);
  return {};
}

bool is_debug_mode(std::string_view text, std::string_view) {
  return text.starts_with('{') && text.substr(0, 300).find("torch.utils._debug_mode.DebugMode.logs") != text.npos;
}

Status load_debug_mode(std::shared_ptr<const FileBytes> bytes, const std::string& prefix, Loading& loading) {
  const auto document = nlohmann::json::parse(bytes->text(), nullptr, false);
  const auto logs = document.find("logs");
  if (logs == document.end() || !logs->is_array())
    return input_error("load.debug_mode", "a log of DebugMode that is no JSON with 'logs'; is it truncated?",
                       {.file = bytes->path()});
  std::string text;
  for (const auto& call : *logs) {
    if (!call.is_object()) continue;
    const auto part = [&](const char* key) { return one_line(text_field(call, key)); };
    text.append(static_cast<std::size_t>(2 * std::clamp<std::int64_t>(int_field(call, "call_depth"), 0, 100)), ' ');
    const std::string name = part("op_name");
    text += name.empty() ? fmt::format("{}\n", part("type"))
                         : fmt::format("{}({}{}){}\n", name, part("args_str"), part("kwargs_str"), part("output_str"));
  }
  add_text(Artefact::of_string(std::move(text)), join_id(prefix, "calls"), bytes->path(),
           fs::path(bytes->path()).filename().string(), loading);
  tell_what(bytes->path(),
            fmt::format("a log of DebugMode: {} in the order of the run; it does not say which result another call "
                        "takes, so it is no graph",
                        count_text(logs->size(), "call")),
            loading);
  return {};
}

namespace {

/// A text of PyTorch's that holds no graph, by how it begins or what is in it.
struct TextKind {
  bool (*is)(std::string_view text);
  bool code;  ///< kernels and their calls
  std::string_view what;
};
constexpr TextKind text_kinds[] = {
    {[](std::string_view text) { return text.starts_with("# Generated by torch.compiler.precompile"); }, true,
     "a program of torch.compiler.precompile: kernels and their calls as Python; the graph that they were made of is "
     "not in it"},
    {[](std::string_view text) {
       return text.starts_with("# AOT ID: [") || text.find("\nasync_compile = AsyncCompile()\n") != text.npos;
     },
     true,
     "code that inductor wrote: kernels and their calls; the graph that they were made of is in the log or debug "
     "folder "
     "beside it"},
    {[](std::string_view text) {
       return text.substr(0, text.find('\n')).substr(0, 200).find("SchedulerNode(") != text.npos;
     },
     false,
     "what inductor made of a graph, before or after it chose kernels (ir_pre_fusion, ir_post_fusion); the graph is in "
     "fx_graph_transformed.py beside it"},
    {[](std::string_view text) { return text.starts_with("{\"preToPost\""); }, false,
     "which nodes and kernels of inductor belong together; the graphs are in the log or debug folder beside it"},
};

const TextKind* text_kind_of(std::string_view text) {
  for (const TextKind& kind : text_kinds)
    if (kind.is(text)) return &kind;
  return nullptr;
}

}  // namespace

bool is_text_without_graph(std::string_view text, std::string_view) {
  return text_kind_of(text);
}

Status load_text_without_graph(std::shared_ptr<const FileBytes> bytes, const std::string& prefix, Loading& loading) {
  const std::string& path = bytes->path();
  const TextKind& kind = *text_kind_of(bytes->text());
  const std::string stem = fs::path(path).stem().string();
  // By this name the kernels of a code are found.
  const std::string name = kind.code ? "output_code" : stem;
  const std::string id = stem == name && !prefix.empty() ? prefix : join_id(prefix, name);
  add_text(Artefact::of_text(bytes), id, path, fs::path(path).filename().string(), loading);
  if (prefix.empty()) tell_what(path, std::string(kind.what), loading);
  return {};
}

}  // namespace partita

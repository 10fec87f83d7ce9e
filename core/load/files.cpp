// Files and folders: finds out what a path is, and calls the reader for it.
#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "core/base/natural_order.h"
#include "core/load/fx_text.h"
#include "core/load/profile/event_stream.h"
#include "core/load/runnable.h"
#include "core/load/sources.h"
#include "core/load/user_kernels.h"
#include "core/sym/term_budget.h"

namespace partita {
namespace {

namespace fs = std::filesystem;

constexpr int max_folder_depth = 12;
constexpr std::size_t max_files = 20'000;

/// Text has no NUL and hardly any control characters in its first bytes.
bool is_text(std::string_view head) {
  std::size_t odd = 0;
  for (unsigned char c : head) {
    if (c == 0) return false;
    if (c < 0x20 && c != '\n' && c != '\t' && c != '\r' && c != 0x1b) ++odd;
  }
  return odd * 100 <= head.size();
}

bool is_archive(std::string_view bytes, std::string_view path) {
  return bytes.starts_with("PK\x03\x04") || path.ends_with(".pt2");
}

bool is_safetensors(std::string_view bytes, std::string_view path) {
  return path.ends_with(".safetensors") ||
         (bytes.size() > 9 && bytes[8] == '{' && bytes[6] == '\0' && bytes[7] == '\0');
}

bool is_pickle(std::string_view bytes, std::string_view path) {
  return path.ends_with(".input") || (bytes.size() > 2 && bytes[0] == '\x80' && bytes[1] >= 2 && bytes[1] <= 5);
}

bool is_fx_text(std::string_view text, std::string_view) {
  return !find_fx_graphs(text).empty();
}

/// A kind of file: how its content or name is known, and what reads it.
struct FileKind {
  bool is_text;
  bool (*recognise)(std::string_view bytes, std::string_view path);
  Status (*read)(std::shared_ptr<const FileBytes> bytes, const std::string& prefix, Loading& loading);
};
/// The first that recognises a file reads it.
constexpr FileKind file_kinds[] = {
    {false, is_archive, load_archive},      {false, is_cache_artifacts, load_cache_artifacts},
    {false, is_safetensors, load_tensors},  {false, is_pickle, load_pickle},
    {true, is_trace_log, load_trace_log},   {true, is_text_log, load_text_log},
    {true, is_debug_mode, load_debug_mode}, {true, is_text_without_graph, load_text_without_graph},
    {true, is_fx_text, load_fx_text_file},
};

/// Texts are recognised by their whole content, the others by its beginning.
const FileKind* kind_of(std::string_view content, std::string_view path, bool is_text) {
  for (const FileKind& kind : file_kinds)
    if (kind.is_text == is_text && kind.recognise(content, path)) return &kind;
  return nullptr;
}

/// What the ids of a file's artefacts begin with, in a folder that is opened.
std::string prefix_of(const std::string& file, const std::string& folder) {
  return fs::path(file).lexically_relative(folder).replace_extension().generic_string();
}

}  // namespace

ArtefactKind kind_of_name(std::string_view name) {
  struct Row {
    std::string_view word;
    ArtefactKind kind;
  };
  // The first row whose word occurs wins: inductor's "before_joint_graph" is a joint graph, "aot_forward" a forward.
  static constexpr Row rows[] = {{"pre_grad", ArtefactKind::PreGrad},     {"post_grad", ArtefactKind::PostGrad},
                                 {"transformed", ArtefactKind::PostGrad}, {"joint", ArtefactKind::Joint},
                                 {"forward", ArtefactKind::Forward},      {"backward", ArtefactKind::Backward},
                                 {"inference", ArtefactKind::Inference},  {"dynamo", ArtefactKind::Dynamo},
                                 {"exported", ArtefactKind::Exported},    {"core", ArtefactKind::Core}};
  for (const Row& row : rows)
    if (name.find(row.word) != std::string_view::npos) return row.kind;
  return ArtefactKind::Graph;
}

std::string join_id(const std::string& prefix, const std::string& id) {
  if (prefix.empty() || id.empty()) return prefix + id;
  return prefix + "/" + id;
}

void Loading::add(Artefact artefact) {
  std::string id = artefact.id;
  for (int n; (n = copies[artefact.id]++) > 0;) artefact.id = fmt::format("{}_{}", id, n);
  out.artefacts.push_back(std::move(artefact));
}

Status load_fx_text_file(std::shared_ptr<const FileBytes> bytes, const std::string& prefix, Loading& loading) {
  std::vector<FxSection> modules = find_fx_graphs(bytes->text());
  fs::path path(bytes->path());
  std::string stem = path.stem().string(), folder = path.parent_path().filename().string();
  std::shared_ptr<const Companion> companion;
  if (path.filename() == "module.py")
    companion = read_companion(path.string());
  else
    companion = read_repro(path.string(), bytes->text(), loading.out.warnings);
  for (const FxSection& section : modules) {
    // A single module keeps the Python code around it: load_args of fx_graph_runnable.py describes the inputs.
    bool alone = modules.size() == 1;
    Artefact a = alone ? Artefact::of_text(bytes)
                       : Artefact::of_text(bytes, {{section.begin, section.end - section.begin, false}});
    a.companion = companion;
    a.kind = kind_of_name(stem);
    // For module.py and fx_graph_readable.py the folder's name tells the kind.
    if (a.kind == ArtefactKind::Graph) a.kind = kind_of_name(folder);
    if (section.name == "inner_f" && a.kind == ArtefactKind::Graph) a.kind = ArtefactKind::Joint;
    if (a.kind == ArtefactKind::Graph && bytes->text().starts_with("ExportedProgram:")) a.kind = ArtefactKind::Exported;
    a.where.line = alone ? 1 : section.line;
    std::string id = alone ? "" : std::string(section.name);
    a.id = join_id(prefix, id.empty() && prefix.empty() ? stem : id);
    a.group = path.parent_path().string();
    a.title = fmt::format("{} ({})", stem, section.name);
    loading.add(std::move(a));
  }
  for (const UserKernel& kernel : find_user_kernels(bytes->text())) {
    Artefact a = Artefact::of_text(bytes, {{kernel.begin, kernel.end - kernel.begin, false}});
    a.where.line = kernel.line;
    a.id = join_id(prefix, fmt::format("kernel_{}", kernel.index));
    a.group = path.parent_path().string();
    a.title = fmt::format("kernel {} (kernel_idx {})", kernel.name, kernel.index);
    loading.add(std::move(a));
  }
  return {};
}

Status load_file(const std::string& path, const std::string& prefix, bool alone, Loading& loading) {
  TRY(const std::string head, read_head(path));
  auto refuse = [&](std::string what) { return input_error("load.unknown", std::move(what), {.file = path}); };
  if (head.empty()) {
    if (alone) return refuse("is empty; give FX text, a .pt2 archive or a TORCH_TRACE log");
    return {};
  }
  if (alone && (is_chrome_trace(head) || is_gzip(head)))
    return refuse(
        is_gzip(head)
            ? "is compressed by gzip; a profile is opened with its log: partita open LOG --profile FILE, and "
              "other files after gunzip"
            : "is a chrome trace, which has times and no graph; open it with the log of its run: partita open "
              "LOG --profile FILE");
  const FileKind* kind = kind_of(head, path, false);
  if (!kind && !is_text(head)) {
    if (alone)
      return refuse(
          "is binary, of a kind that Partita does not read; give FX text, a .pt2 archive or a TORCH_TRACE log");
    return {};
  }
  TRY(auto bytes, FileBytes::open(path));
  const TermBudget budget(bytes->text().size());
  if (!kind) kind = kind_of(bytes->text(), path, true);
  if (kind) return kind->read(std::move(bytes), prefix, loading);
  if (alone)
    return refuse(
        "holds no graph: no 'class NAME(torch.nn.Module)' or 'def forward(self, ...)', no print of a graph; give FX "
        "text, a .pt2 archive or a TORCH_TRACE log");
  if (fs::path(path).filename() == "__init__.py") return {};
  Artefact a = Artefact::of_text(bytes);
  a.title = fs::path(path).filename().string();
  a.group = fs::path(path).parent_path().string();
  a.id = prefix;
  loading.add(std::move(a));
  return {};
}

Status list_files(const std::string& folder, std::vector<std::string>& files, Loading& loading, int depth) {
  if (depth > max_folder_depth) {
    loading.out.warnings.push_back(
        input_error("load.folder", "folders nested too deeply are left out", {.file = folder}));
    return {};
  }
  std::error_code error;
  std::vector<fs::directory_entry> entries;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) entries.push_back(*it);
  if (error) return input_error("file.read", "cannot read the folder: " + error.message(), {.file = folder});
  std::ranges::sort(entries, naturally_before, [](const auto& entry) { return entry.path().filename().string(); });
  for (const fs::directory_entry& entry : entries) {
    std::string name = entry.path().filename().string();
    if (name.starts_with(".") || name == "__pycache__" || entry.is_symlink(error)) continue;
    if (entry.is_directory(error)) {
      if (Status inner = list_files(entry.path().string(), files, loading, depth + 1); !inner)
        loading.out.warnings.push_back(inner.error());
    } else if (entry.is_regular_file(error)) {
      if (files.size() >= max_files)
        return input_error("load.folder", fmt::format("more than {} files; open a folder further down", max_files),
                           {.file = folder});
      files.push_back(entry.path().string());
    }
  }
  return {};
}

Result<std::vector<FilePart>> read_files(
    const std::vector<std::string>& files, const std::string& folder, Loading& loading,
    const std::function<Status(const std::string& file, const std::string& prefix)>& read) {
  std::vector<FilePart> parts;
  for (const std::string& file : files) {
    TRY_DO(step(&loading.progress, static_cast<double>(parts.size()) / static_cast<double>(files.size()),
                fs::path(file).filename().string()));
    const std::size_t begin = loading.out.artefacts.size();
    std::string prefix = prefix_of(file, folder);
    Status done = read(file, prefix);
    parts.push_back({std::move(prefix), begin, loading.out.artefacts.size()});
    if (done) continue;
    if (done.error().fault == Fault::Cancelled) return std::move(done).error();
    loading.out.warnings.push_back(std::move(done).error());
  }
  return parts;
}

void shorten_ids(std::vector<FilePart>& files, std::vector<Artefact>& artefacts) {
  std::vector<std::string> full;
  std::unordered_map<std::string_view, int> endings;
  for (const Artefact& a : artefacts) full.push_back(a.id);
  for (const std::string_view id : full)
    for (std::size_t at = 0, slash; at <= id.size(); at = slash == id.npos ? id.size() + 1 : slash + 1) {
      slash = id.find('/', at);
      ++endings[id.substr(at)];
    }
  for (FilePart& file : files) {
    if (file.begin == file.end) continue;
    const auto fits = [&](std::size_t dropped) {
      for (std::size_t i = file.begin; i < file.end; ++i)
        if (dropped >= full[i].size() || endings[std::string_view(full[i]).substr(dropped)] != 1 ||
            (dropped > 0 && full[i][dropped - 1] != '/'))
          return false;
      return true;
    };
    std::size_t& dropped = file.dropped = file.prefix.size() + 1;
    while (dropped > 0 && !fits(dropped)) dropped = dropped < 2 ? 0 : file.prefix.rfind('/', dropped - 2) + 1;
    for (std::size_t i = file.begin; i < file.end; ++i) artefacts[i].id.erase(0, dropped);
  }
}

Status load_folder(const std::string& path, Loading& loading) {
  if (is_recording(path)) return load_recording(path, loading);
  std::vector<std::string> files;
  TRY_DO(list_files(path, files, loading));
  TRY(auto parts, read_files(files, path, loading, [&](const std::string& file, const std::string& prefix) {
        return load_file(file, prefix, false, loading);
      }));
  shorten_ids(parts, loading.out.artefacts);
  return {};
}

Status load_path(const std::string& path, Loading& loading) {
  std::error_code error;
  if (fs::is_directory(path, error)) return load_folder(path, loading);
  return load_file(path, "", true, loading);
}

}  // namespace partita

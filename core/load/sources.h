#pragma once
// The readers behind load(), one per kind of file; the table of kinds is in files.cpp. Internal to core/load.
#include <unordered_map>

#include "core/load/session.h"

namespace partita {

/// What a load has found so far.
struct Loading {
  Loaded& out;
  const Progress& progress;
  std::unordered_map<std::string, int> copies = {};  ///< how often an id was asked for

  /// Under its id, or "id_1", "id_2", ... when that is taken.
  void add(Artefact artefact);
};

/// A file or a folder, whatever is in it.
Status load_path(const std::string& path, Loading& loading);
/// A folder: recursively, in order of names, without links and hidden entries, to a bounded depth and count.
Status load_folder(const std::string& path, Loading& loading);
/// One file by its content. Artefacts get ids prefixed with `prefix` (empty for a file opened by itself).
/// `alone`: not found in a folder, where what cannot be read is only a warning and plain text is kept.
Status load_file(const std::string& path, const std::string& prefix, bool alone, Loading& loading);

Status load_trace_log(std::shared_ptr<const FileBytes> bytes, const std::string& prefix, Loading& loading);
bool is_trace_log(std::string_view text, std::string_view path);

/// What TORCH_LOGS=aot_graphs, graph_code... writes: graphs whose lines start with a glog prefix.
Status load_text_log(std::shared_ptr<const FileBytes> bytes, const std::string& prefix, Loading& loading);
bool is_text_log(std::string_view text, std::string_view path);

Status load_fx_text_file(std::shared_ptr<const FileBytes> bytes, const std::string& prefix, Loading& loading);
/// A torch.export archive, a torch.save file, or a bare pickle.
Status load_archive(std::shared_ptr<const FileBytes> bytes, const std::string& prefix, Loading& loading);
Status load_pickle(std::shared_ptr<const FileBytes> bytes, const std::string& prefix, Loading& loading);
Status load_tensors(std::shared_ptr<const FileBytes> bytes, const std::string& prefix, Loading& loading);

/// Kind by the words PyTorch and its users have in file and entry names ("aot_joint_graph", "forward_mincut"); Graph
/// when there is none.
ArtefactKind kind_of_name(std::string_view name);

/// "a/b" + "c"; either may be empty.
std::string join_id(const std::string& prefix, const std::string& id);
/// What lies beside a to_folder module.py: .input, .pt and state_dict.pt. Null when there is nothing readable; an
/// unreadable file is reported where it is listed by itself.
std::shared_ptr<const Companion> read_companion(const std::string& module_path);

}  // namespace partita

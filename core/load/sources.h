#pragma once
// The readers behind load(), one per kind of file; the table of kinds is in files.cpp. Internal to core/load.
#include <unordered_map>

#include "core/load/session.h"

namespace partita {

/// The results of a load so far.
struct Loading {
  Loaded& out;
  const Progress& progress;
  std::unordered_map<std::string, int> copies = {};  ///< how often an id was asked for

  /// Adds an artefact under its id, or under "id_1", "id_2", ... if the id is taken.
  void add(Artefact artefact);
};

/// Loads a file or a folder.
Status load_path(const std::string& path, Loading& loading);
/// Loads a folder recursively, in order of names, without links and hidden entries, up to a limit of depth and count.
Status load_folder(const std::string& path, Loading& loading);
/// The files that load_folder() reads, in its order. Warns of folders that are left out.
Status list_files(const std::string& folder, std::vector<std::string>& files, Loading& loading);
/// What the ids of a file's artefacts begin with, in a folder that is opened.
std::string prefix_of(const std::string& file, const std::string& folder);
/// The artefacts of one file of a folder, and what their ids begin with: its path.
struct FilePart {
  std::string prefix;
  std::size_t begin = 0, end = 0;
  std::size_t dropped = 0;  ///< characters at the beginning of their ids that shorten_ids() left out
};
/// Leaves out the folders and file names that no id needs to be the only one that ends so. The ids of a file keep one
/// form.
void shorten_ids(std::vector<FilePart>& files, std::vector<Artefact>& artefacts);
/// Loads one file, whose content decides the reader. Ids get the prefix `prefix` (empty for a file opened by itself).
/// `alone`: the file was not found in a folder. In folders, what cannot be read is only a warning, and plain text is
/// kept.
Status load_file(const std::string& path, const std::string& prefix, bool alone, Loading& loading);

/// Loads a TORCH_TRACE log: an artefact for each record with a payload.
Status load_trace_log(std::shared_ptr<const FileBytes> bytes, const std::string& prefix, Loading& loading);
bool is_trace_log(std::string_view text, std::string_view path);

/// Loads the output of TORCH_LOGS=aot_graphs, graph_code...: graphs whose lines start with a glog prefix.
Status load_text_log(std::shared_ptr<const FileBytes> bytes, const std::string& prefix, Loading& loading);
bool is_text_log(std::string_view text, std::string_view path);

/// Loads a file with graphs as FX text, or with code.
Status load_fx_text_file(std::shared_ptr<const FileBytes> bytes, const std::string& prefix, Loading& loading);
/// Loads a torch.export archive, a torch.save file, or a bare pickle.
Status load_archive(std::shared_ptr<const FileBytes> bytes, const std::string& prefix, Loading& loading);
Status load_pickle(std::shared_ptr<const FileBytes> bytes, const std::string& prefix, Loading& loading);
Status load_tensors(std::shared_ptr<const FileBytes> bytes, const std::string& prefix, Loading& loading);

/// Error when nothing was read: the first warning, else load.nothing.
Status check_not_empty(const Loaded& loaded);

/// The kind that a file or entry name tells by the words PyTorch and its users put there ("aot_joint_graph",
/// "forward_mincut"); Graph if there is none.
ArtefactKind kind_of_name(std::string_view name);

/// Joins "a/b" and "c"; either may be empty.
std::string join_id(const std::string& prefix, const std::string& id);
/// Reads the files beside a to_folder module.py: .input, .pt and state_dict.pt. Null when none is readable. An
/// unreadable file is reported where it is listed by itself.
std::shared_ptr<const Companion> read_companion(const std::string& module_path);

}  // namespace partita

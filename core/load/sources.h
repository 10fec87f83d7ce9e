#pragma once
// The readers behind load(), one per kind of file; the table of kinds is in files.cpp. Internal to core/load.
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/load/pickle.h"
#include "core/load/session.h"
#include "core/load/zip.h"

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
/// The files that load_folder() reads, in its order. Warns of folders that are left out. `depth`: of the folder in the
/// one that is opened.
Status list_files(const std::string& folder, std::vector<std::string>& files, Loading& loading, int depth = 0);
/// The artefacts of one file of a folder, and what their ids begin with: its path.
struct FilePart {
  std::string prefix;
  std::size_t begin = 0, end = 0;
  std::size_t dropped = 0;  ///< characters at the beginning of their ids that shorten_ids() left out
};
/// Calls `read` for each of the folder's files, with its path and the prefix of its ids. A file that cannot be read is
/// a warning.
Result<std::vector<FilePart>> read_files(
    const std::vector<std::string>& files, const std::string& folder, Loading& loading,
    const std::function<Status(const std::string& file, const std::string& prefix)>& read);
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

/// Has the folder a session.json of a recording?
bool is_recording(const std::string& folder);
/// Loads such a folder: its graphs, each with the call whose values were kept, then the trace, whose graphs get the
/// values that fit them. A session.json that cannot be read is an error; what it names and is not there, a warning.
Status load_recording(const std::string& folder, Loading& loading);

/// Says in one line what the file is; the code of such a note is load.no_graph.
void tell_what(const std::string& path, std::string what, Loading& loading);
inline constexpr std::string_view what_code = "load.no_graph";

/// Adds the C++ and the metadata of an AOTInductor package; false if the archive is none.
Result<bool> load_aoti(const ZipArchive& zip, const std::string& root, const std::string& path,
                       const std::string& prefix, Loading& loading);

/// Text about what torch.cuda.memory._snapshot() saw: segments, the largest blocks with their frames, the events.
/// Nullopt: the pickle is something else.
std::optional<std::string> describe_snapshot(const Pickle& pickle);

/// What torch.compiler.save_cache_artifacts() returned.
bool is_cache_artifacts(std::string_view bytes, std::string_view path);
Status load_cache_artifacts(std::shared_ptr<const FileBytes> bytes, const std::string& prefix, Loading& loading);

/// What DebugMode.save_logs wrote.
bool is_debug_mode(std::string_view text, std::string_view path);
Status load_debug_mode(std::shared_ptr<const FileBytes> bytes, const std::string& prefix, Loading& loading);

/// Python that inductor or torch.compiler.precompile wrote, and the other texts of a debug folder.
bool is_text_without_graph(std::string_view text, std::string_view path);
Status load_text_without_graph(std::shared_ptr<const FileBytes> bytes, const std::string& prefix, Loading& loading);

}  // namespace partita

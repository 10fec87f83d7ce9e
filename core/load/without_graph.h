#pragma once
// Files of PyTorch that hold no graph: what they hold, and why. Internal to core/load.
#include <optional>
#include <string>

#include "core/load/pickle.h"
#include "core/load/sources.h"
#include "core/load/zip.h"

namespace partita {

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

#include "app/tasks/notes.h"

#include <filesystem>

#include "core/store/store.h"

namespace partita {

Result<Notes> notes_of(const std::string& path, const std::string& graph) {
  Notes notes;
  const std::string store_file = StoreFile::default_file();
  std::error_code ignored;
  if (store_file.empty() || !std::filesystem::exists(store_file, ignored)) return notes;
  TRY(StoreFile store, StoreFile::open(store_file));
  TRY(const std::vector<NodeNote> kept, store.notes(stored_path(path), graph));
  for (const NodeNote& note : kept) notes[note.node] = note.text;
  return notes;
}

}  // namespace partita

#include "core/base/build_id.h"

#include <cstring>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <link.h>

namespace partita {
namespace {

/// The build ID among the notes of a loaded program.
std::string id_in(std::string_view notes) {
  const auto aligned = [](std::size_t n) { return (n + 3) / 4 * 4; };
  ElfW(Nhdr) note;
  while (notes.size() >= sizeof note) {
    std::memcpy(&note, notes.data(), sizeof note);
    const std::size_t name = sizeof note, id = name + aligned(note.n_namesz), end = id + aligned(note.n_descsz);
    if (end > notes.size()) break;
    if (note.n_type == NT_GNU_BUILD_ID && notes.substr(name, 4) == std::string_view("GNU\0", 4)) {
      const std::string_view bytes = notes.substr(id, note.n_descsz);
      return fmt::format("{:02x}", fmt::join(reinterpret_cast<const unsigned char*>(bytes.data()),
                                             reinterpret_cast<const unsigned char*>(bytes.data()) + bytes.size(), ""));
    }
    notes.remove_prefix(end);
  }
  return {};
}

/// Called for the program itself first, at which the search ends.
int search(dl_phdr_info* info, std::size_t, void* found) {
  for (int i = 0; i < info->dlpi_phnum && static_cast<std::string*>(found)->empty(); ++i)
    if (const auto& header = info->dlpi_phdr[i]; header.p_type == PT_NOTE)
      *static_cast<std::string*>(found) =
          id_in({reinterpret_cast<const char*>(info->dlpi_addr + header.p_vaddr), header.p_memsz});
  return 1;
}

}  // namespace

const std::string& build_id() {
  static const std::string id = [] {
    std::string found;
    dl_iterate_phdr(search, &found);
    return found;
  }();
  return id;
}

}  // namespace partita

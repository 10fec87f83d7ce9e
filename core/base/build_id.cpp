#include "core/base/build_id.h"

#include <algorithm>
#include <cstring>
#include <span>
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

/// Called for each loaded file. This code is in the program or in libpartita.so: PyTorch's users run it within Python.
int search(dl_phdr_info* info, std::size_t, void* found) {
  const auto here = reinterpret_cast<ElfW(Addr)>(&search);
  const std::span headers(info->dlpi_phdr, info->dlpi_phnum);
  const auto begin = [&](const ElfW(Phdr) & header) { return info->dlpi_addr + header.p_vaddr; };
  const bool ours = std::ranges::any_of(headers, [&](const ElfW(Phdr) & header) {
    return header.p_type == PT_LOAD && here >= begin(header) && here - begin(header) < header.p_memsz;
  });
  if (!ours) return 0;
  for (const ElfW(Phdr) & header : headers)
    if (auto& id = *static_cast<std::string*>(found); header.p_type == PT_NOTE && id.empty())
      id = id_in({reinterpret_cast<const char*>(begin(header)), header.p_memsz});
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

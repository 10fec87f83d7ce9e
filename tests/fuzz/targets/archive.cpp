// .pt2 and torch.save archives. Zip's checksums would refuse nearly every mutation, so most are made within an entry.
#include <cstring>

#include <zip.h>

#include "core/load/zip.h"
#include "tests/fuzz/targets/loaded.h"

using namespace partita;

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::open_all(load_archive, data, size);
  return 0;
}

namespace {

/// The archive with one entry mutated, or an empty string when that is not possible.
std::string with_mutated_entry(std::string_view bytes, unsigned seed) {
  auto archive = ZipArchive::open(bytes, nullptr);
  if (!archive || archive->names().empty()) return {};
  const std::vector<std::string>& names = archive->names();
  const std::string& chosen = names[seed % names.size()];

  zip_source_t* out = zip_source_buffer_create(nullptr, 0, 0, nullptr);
  zip_source_keep(out);
  zip_t* made = zip_open_from_source(out, ZIP_TRUNCATE, nullptr);
  std::vector<std::string> contents;  // must live until zip_close
  contents.reserve(names.size());
  for (const std::string& name : names) {
    auto content = archive->read(name);
    contents.push_back(content ? *content : std::string());
    std::string& text = contents.back();
    if (&name == &chosen) {
      const std::size_t size = text.size(), most = size + 256;
      text.resize(most);
      text.resize(LLVMFuzzerMutate(reinterpret_cast<std::uint8_t*>(text.data()), size, most));
    }
    zip_source_t* source = zip_source_buffer(made, text.data(), text.size(), 0);
    const auto index = zip_file_add(made, name.c_str(), source, ZIP_FL_OVERWRITE | ZIP_FL_ENC_UTF_8);
    if (index < 0)
      zip_source_free(source);
    else
      zip_set_file_compression(made, static_cast<zip_uint64_t>(index), ZIP_CM_STORE, 0);
  }
  std::string result;
  if (zip_close(made) != 0) {
    zip_discard(made);
  } else if (zip_stat_t stat; zip_source_stat(out, &stat) == 0 && zip_source_open(out) == 0) {
    result.resize(stat.size);
    zip_source_read(out, result.data(), result.size());
    zip_source_close(out);
  }
  zip_source_free(out);
  return result;
}

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  if (seed % 16 != 0) {
    const std::string made = with_mutated_entry({reinterpret_cast<const char*>(data), size}, seed / 16);
    if (!made.empty() && made.size() <= max_size) {
      std::memcpy(data, made.data(), made.size());
      return made.size();
    }
  }
  return LLVMFuzzerMutate(data, size, max_size);
}

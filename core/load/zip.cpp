// Zip archives by libzip, with limits on entries and on the bytes read. The central directory is parsed here once more
// for the places of uncompressed entries, which storages borrow instead of copying.
#include "core/load/zip.h"

#include <fmt/format.h>
#include <zip.h>
#include <zlib.h>

#include "core/base/config.h"
#include "core/base/mapped_file.h"
#include "core/load/file.h"

namespace partita {
namespace {

constexpr std::int64_t max_entries = 1'000'000;
constexpr std::uint64_t max_deflate_ratio = 1100;  // deflate compresses at most 1032 to 1

Diagnostic bad_archive(std::string message) {
  return input_error("load.zip", "not a valid archive: " + message);
}

bool escapes(std::string_view name) {
  if (name.empty() || name[0] == '/' || name.find('\\') != std::string_view::npos || name.find(':') == 1) return true;
  for (std::size_t at = 0; at <= name.size();) {
    std::size_t end = std::min(name.find('/', at), name.size());
    if (name.substr(at, end - at) == "..") return true;
    at = end + 1;
  }
  return false;
}

/// The number of `n` bytes at `at`, little-endian; nullopt beyond the end.
std::optional<std::uint64_t> number_at(std::string_view bytes, std::uint64_t at, std::size_t n) {
  if (at > bytes.size() || bytes.size() - at < n) return std::nullopt;
  std::uint64_t value = 0;
  for (std::size_t i = n; i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
  return value;
}

constexpr std::uint64_t in_zip64 = 0xffffffff;  // the number is elsewhere, with 64 bits

/// Where the central directory is.
struct Directory {
  std::uint64_t entries = 0, begin = 0, end = 0;
};

/// Reads the records behind the directory; nullopt for what torch does not write: comments behind them, several disks.
std::optional<Directory> find_directory(std::string_view bytes) {
  constexpr std::uint64_t end_size = 22, locator_size = 20, end64_size = 56;
  constexpr std::uint64_t is_end = 0x06054b50, is_locator = 0x07064b50, is_end64 = 0x06064b50;
  if (bytes.size() < end_size) return std::nullopt;
  const std::uint64_t end = bytes.size() - end_size;
  if (number_at(bytes, end, 4) != is_end) return std::nullopt;
  const Directory small{*number_at(bytes, end + 10, 2), *number_at(bytes, end + 16, 4), end};
  if (end < locator_size || number_at(bytes, end - locator_size, 4) != is_locator) return small;
  const std::uint64_t end64 = *number_at(bytes, end - locator_size + 8, 8);
  if (end64 > end || end - end64 < end64_size || number_at(bytes, end64, 4) != is_end64) return std::nullopt;
  return Directory{*number_at(bytes, end64 + 32, 8), *number_at(bytes, end64 + 48, 8), end64};
}

/// Where the local header of an entry of the directory is. `extra`: its extra fields.
std::optional<std::uint64_t> local_header(std::string_view bytes, std::uint64_t entry, std::string_view extra) {
  constexpr std::uint64_t zip64 = 1;
  const std::uint64_t header = *number_at(bytes, entry + 42, 4);
  if (header != in_zip64) return header;
  for (std::uint64_t at = 0; at < extra.size();) {
    const auto kind = number_at(extra, at, 2), size = number_at(extra, at + 2, 2);
    if (!kind || !size) return std::nullopt;
    // The field has those of the sizes, and then the place, that the entry itself does not.
    const std::uint64_t sizes =
        (number_at(bytes, entry + 20, 4) == in_zip64) + (number_at(bytes, entry + 24, 4) == in_zip64);
    if (*kind == zip64) return *size >= 8 * (sizes + 1) ? number_at(extra, at + 4 + 8 * sizes, 8) : std::nullopt;
    at += 4 + *size;
  }
  return std::nullopt;
}

/// Where the entries' local headers are, in the order of the central directory. libzip does not tell. Empty when the
/// directory is not understood.
std::vector<std::uint64_t> find_local_headers(std::string_view bytes) {
  constexpr std::uint64_t entry_size = 46, is_entry = 0x02014b50;
  const auto directory = find_directory(bytes);
  if (!directory) return {};
  std::vector<std::uint64_t> out;
  std::uint64_t at = directory->begin;
  for (std::uint64_t left = directory->entries; left > 0; --left) {
    if (at > directory->end || directory->end - at < entry_size || number_at(bytes, at, 4) != is_entry) return {};
    const std::uint64_t name = *number_at(bytes, at + 28, 2), extra = *number_at(bytes, at + 30, 2);
    const std::uint64_t behind = at + entry_size + name;
    if (behind > directory->end || directory->end - behind < extra) return {};
    const auto header = local_header(bytes, at, bytes.substr(behind, extra));
    if (!header) return {};
    out.push_back(*header);
    at = behind + extra + *number_at(bytes, at + 32, 2);
  }
  return out;
}

}  // namespace

Result<ZipArchive> ZipArchive::open(std::string_view bytes, std::shared_ptr<const void> owner) {
  zip_error_t error;
  zip_error_init(&error);
  auto text = [&] {
    std::string message = zip_error_strerror(&error);
    zip_error_fini(&error);
    return message;
  };
  zip_source_t* source = zip_source_buffer_create(bytes.data(), bytes.size(), 0, &error);
  if (!source) return bad_archive(text());
  zip_t* archive = zip_open_from_source(source, ZIP_RDONLY, &error);
  if (!archive) {
    zip_source_free(source);
    return bad_archive(text() + "; is it truncated?");
  }
  ZipArchive out;
  out.archive_ = std::shared_ptr<zip>(archive, [](zip* z) { zip_discard(z); });
  out.owner_ = std::move(owner);
  out.bytes_ = bytes;
  out.local_headers_ = find_local_headers(bytes);
  out.budget_ = std::make_shared<std::uint64_t>(most_bytes_in_memory(bytes.size()));
  std::int64_t count = zip_get_num_entries(archive, 0);
  if (count > max_entries) return bad_archive(fmt::format("{} entries", count));
  for (std::int64_t i = 0; i < count; ++i) {
    const char* name = zip_get_name(archive, static_cast<zip_uint64_t>(i), ZIP_FL_ENC_RAW);
    if (!name) return bad_archive("an entry without a name");
    if (escapes(name))
      return bad_archive(fmt::format("entry '{}' leads out of it", std::string_view(name).substr(0, 100)));
    out.names_.emplace_back(name);
    out.index_.emplace(name, static_cast<std::uint64_t>(i));
  }
  return out;
}

std::string ZipArchive::root() const {
  if (names_.empty()) return {};
  std::size_t slash = names_[0].find('/');
  if (slash == std::string::npos) return {};
  std::string folder = names_[0].substr(0, slash + 1);
  for (const std::string& name : names_)
    if (!name.starts_with(folder)) return {};
  return folder.substr(0, slash);
}

Result<std::uint64_t> ZipArchive::checked_size(const std::string& name) const {
  auto it = index_.find(name);
  if (it == index_.end()) return bad_archive(fmt::format("entry '{}' is missing", name.substr(0, 200)));
  zip_stat_t status;
  if (zip_stat_index(archive_.get(), it->second, 0, &status) != 0 || !(status.valid & ZIP_STAT_SIZE) ||
      !(status.valid & ZIP_STAT_COMP_SIZE))
    return bad_archive(fmt::format("entry '{}' has no size", name.substr(0, 200)));
  bool stored = status.comp_method == ZIP_CM_STORE;
  if (status.comp_size > bytes_.size() ||
      (stored ? status.size > bytes_.size() : status.size / max_deflate_ratio > status.comp_size))
    return bad_archive(fmt::format("entry '{}' claims {} bytes", name.substr(0, 200), status.size));
  if (status.size > *budget_)
    return bad_archive(
        fmt::format("with entry '{}' its content takes over 64 times its size; store large entries uncompressed",
                    name.substr(0, 200)));
  *budget_ -= status.size;
  return status.size;
}

Status ZipArchive::fill(const std::string& name, char* to, std::uint64_t size) const {
  std::unique_ptr<zip_file_t, int (*)(zip_file_t*)> file(zip_fopen_index(archive_.get(), index_.at(name), 0),
                                                         zip_fclose);
  auto damaged = [&](const char* why) {
    return bad_archive(fmt::format("entry '{}' is damaged: {}", name.substr(0, 200), why));
  };
  if (!file) return damaged(zip_strerror(archive_.get()));
  for (std::uint64_t done = 0; done < size;) {
    zip_int64_t n = zip_fread(file.get(), to + done, size - done);
    if (n <= 0) return damaged(n < 0 ? zip_file_strerror(file.get()) : "it ends early");
    done += static_cast<std::uint64_t>(n);
  }
  // Reading past the end makes libzip compare the CRC.
  char extra;
  if (zip_fread(file.get(), &extra, 1) != 0) return damaged("its checksum is wrong");
  return {};
}

std::optional<std::string_view> ZipArchive::stored(std::uint64_t index) const {
  constexpr std::uint64_t is_local = 0x04034b50, header_size = 30;
  zip_stat_t status;
  if (index >= local_headers_.size() || zip_stat_index(archive_.get(), index, 0, &status) != 0 ||
      !(status.valid & ZIP_STAT_CRC) || status.comp_method != ZIP_CM_STORE || status.encryption_method != ZIP_EM_NONE)
    return std::nullopt;
  const std::uint64_t header = local_headers_[index];
  if (header > bytes_.size()) return std::nullopt;
  const auto name = number_at(bytes_, header + 26, 2), extra = number_at(bytes_, header + 28, 2);
  if (number_at(bytes_, header, 4) != is_local || !name || !extra) return std::nullopt;
  const std::uint64_t begin = header + header_size + *name + *extra;
  if (begin > bytes_.size() || bytes_.size() - begin < status.size) return std::nullopt;
  const std::string_view found = bytes_.substr(begin, status.size);
  constexpr std::size_t block = 64 << 20;  // as much of it is in memory at a time
  auto checksum = crc32_z(0, nullptr, 0);
  for (std::size_t at = 0; at < found.size(); at += block) {
    const std::string_view part = found.substr(at, block);
    checksum = crc32_z(checksum, reinterpret_cast<const Bytef*>(part.data()), part.size());
    leave_in_file(part.data(), part.size());
  }
  return checksum == status.crc ? std::optional(found) : std::nullopt;
}

Result<std::string> ZipArchive::read(const std::string& name) const {
  TRY(std::uint64_t size, checked_size(name));
  std::string out(size, '\0');
  TRY_DO(fill(name, out.data(), size));
  return out;
}

Result<std::shared_ptr<Storage>> ZipArchive::read_storage(const std::string& name) const {
  TRY(std::uint64_t size, checked_size(name));
  const auto at = [](std::string_view bytes) { return reinterpret_cast<std::uintptr_t>(bytes.data()); };
  // A tensor in the archive's memory keeps all of it: those that may be discarded get their own.
  if (const auto bytes = config().freezing_discard_parameters ? std::nullopt : stored(index_.at(name));
      bytes && at(*bytes) % Storage::alignment == 0)
    return Storage::borrow(reinterpret_cast<std::byte*>(const_cast<char*>(bytes->data())), size, owner_);
  TRY(auto storage, Storage::allocate(size));
  TRY_DO(fill(name, reinterpret_cast<char*>(storage->data()), size));
  return storage;
}

}  // namespace partita

#include "core/store/trust.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include <fcntl.h>
#include <fmt/format.h>
#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/descriptor.h"
#include "core/base/text.h"
#include "core/base/user_folder.h"

namespace partita {
namespace {

namespace fs = std::filesystem;

class File {
 public:
  File(const fs::path& path, int flags, mode_t mode = 0)
      : fd_(::open(path.c_str(), flags | O_CLOEXEC | O_NOFOLLOW, mode)) {}
  ~File() {
    if (fd_ >= 0) ::close(fd_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  explicit operator bool() const { return fd_ >= 0; }
  int fd() const { return fd_; }

 private:
  int fd_;
};

Diagnostic not_made(const fs::path& path) {
  return input_error(
      "store.read_only",
      fmt::format("cannot be created ({}); set PARTITA_STORE to a folder that can be written", std::strerror(errno)),
      Where{.file = path.string()});
}

Diagnostic untrusted(const fs::path& path, std::string_view fault) {
  return input_error("store.untrusted",
                     fmt::format("{}, so compiled code is neither kept nor loaded; make it yours alone (chmod go-w) or "
                                 "set PARTITA_STORE to a folder of your own",
                                 fault),
                     Where{.file = path.string()});
}

/// Makes missing folders one by one, because create_directories would use the umask's mode.
Status make_private_folders(const fs::path& folder) {
  if (folder.empty() || ::access(folder.c_str(), F_OK) == 0) return {};
  if (folder != folder.parent_path()) TRY_DO(make_private_folders(folder.parent_path()));
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) return not_made(folder);
  return {};
}

/// Does the part of check_private that concerns one file or folder.
Status check_owner(const fs::path& path, bool sticky_is_enough) {
  struct stat s = {};
  if (::lstat(path.c_str(), &s) != 0) return untrusted(path, std::strerror(errno));
  if (S_ISLNK(s.st_mode)) return untrusted(path, "it is a symbolic link");
  if (s.st_uid != ::geteuid() && s.st_uid != 0) return untrusted(path, "it belongs to another user");
  const bool open = (s.st_mode & (S_IWGRP | S_IWOTH)) != 0;
  if (open && !(sticky_is_enough && (s.st_mode & S_ISVTX))) return untrusted(path, "other users may write it");
  return {};
}

Status read_key(const fs::path& path, SigningKey& key) {
  const File file(path, O_RDONLY);
  if (!file) return untrusted(path, fmt::format("the key cannot be read ({})", std::strerror(errno)));
  struct stat s = {};
  if (::fstat(file.fd(), &s) != 0 || s.st_uid != ::geteuid() || (s.st_mode & 077) != 0)
    return untrusted(path, "the key can be read by other users");
  if (::read(file.fd(), key.bytes.data(), key.bytes.size()) != static_cast<ssize_t>(key.bytes.size()))
    return untrusted(path, "the key is damaged (delete it to make a new one)");
  return {};
}

}  // namespace

Status make_private_file(const std::string& file) {
  TRY_DO(make_private_folders(fs::path(file).parent_path()));
  const File made(file, O_RDWR | O_CREAT, 0600);
  // A file that cannot be opened here (a link, another user's file) is judged by check_private or refused by SQLite.
  if (!made) return errno == ELOOP || errno == EACCES || errno == EROFS || errno == EISDIR ? Status() : not_made(file);
  struct stat s = {};
  if (::fstat(made.fd(), &s) == 0 && s.st_uid == ::geteuid() && (s.st_mode & 077) != 0) ::fchmod(made.fd(), 0600);
  return {};
}

Status check_private(const std::string& file) {
  TRY_DO(check_owner(file, false));
  std::error_code failed;
  const fs::path folder = fs::canonical(fs::absolute(file).parent_path(), failed);
  if (failed) return untrusted(file, failed.message());
  const char* home = std::getenv("HOME");
  const fs::path last = home ? fs::weakly_canonical(home, failed) : fs::path();
  for (fs::path at = folder;; at = at.parent_path()) {
    TRY_DO(check_owner(at, true));
    if (at == last || at == at.parent_path()) return {};
  }
}

Result<SigningKey> user_key() {
  const std::string config = user_folder("XDG_CONFIG_HOME", ".config");
  if (config.empty()) return untrusted("$HOME", "it is not an absolute path, so there is no place for a key");
  const fs::path path = fs::path(config) / "partita" / "store.key";
  SigningKey key;
  if (::access(path.c_str(), F_OK) != 0) {
    TRY_DO(make_private_folders(path.parent_path()));
    if (sodium_init() < 0) return untrusted(path, "no random numbers for a key are to be had");
    randombytes_buf(key.bytes.data(), key.bytes.size());
    // The key is written under another name and then linked, so that another process sees the whole key or none.
    std::string unfinished = path.string() + ".XXXXXX";
    const int fd = ::mkostemp(unfinished.data(), O_CLOEXEC);  // with mode 0600
    if (fd < 0) return not_made(path);
    const bool written = write_all(fd, key.bytes.data(), key.bytes.size()) && ::fsync(fd) == 0;
    const bool linked = written && (::link(unfinished.c_str(), path.c_str()) == 0 || errno == EEXIST);
    const Diagnostic failed = not_made(path);  // uses errno
    ::close(fd);
    ::unlink(unfinished.c_str());
    if (!linked) return failed;
  }
  TRY_DO(check_private(path.string()));
  TRY_DO(read_key(path, key));
  return key;
}

Result<SigningKey> team_key(const std::string& file) {
  const auto refused = [&](std::string why) { return input_error("team.key", std::move(why), Where{.file = file}); };
  if (file.empty())
    return refused(
        "team_cache is set and team_key is not, so the cache is not used; name the file with the team's key");
  const File in(file, O_RDONLY);
  struct stat s = {};
  if (!in || ::fstat(in.fd(), &s) != 0)
    return refused(fmt::format("the team's key cannot be read: {}", std::strerror(errno)));
  if ((s.st_mode & 077) != 0)
    return refused("the team's key can be read by other users; make it yours alone (chmod 600)");
  if (auto own = check_private(file); !own)
    return refused("somebody else may write the team's key or a folder of it; make them yours alone (chmod go-w)");
  std::string text(4096, '\0');
  const ssize_t n = ::read(in.fd(), text.data(), text.size());
  const std::string_view words =
      trimmed(std::string_view(text).substr(0, static_cast<std::size_t>(std::max<ssize_t>(n, 0))));
  if (words.size() < 32) return refused("the team's key is shorter than 32 bytes; `openssl rand -hex 32` makes one");
  SigningKey key;
  crypto_generichash(key.bytes.data(), key.bytes.size(), reinterpret_cast<const unsigned char*>(words.data()),
                     words.size(), nullptr, 0);
  return key;
}

std::string sign(const SigningKey& key, std::initializer_list<std::string_view> parts) {
  crypto_auth_hmacsha512256_state state;
  crypto_auth_hmacsha512256_init(&state, key.bytes.data(), key.bytes.size());
  const auto add = [&](std::string_view text) {
    crypto_auth_hmacsha512256_update(&state, reinterpret_cast<const unsigned char*>(text.data()), text.size());
  };
  for (std::string_view part : parts) {
    add(fmt::format("{}:", part.size()));
    add(part);
  }
  std::array<unsigned char, crypto_auth_hmacsha512256_BYTES> mac;
  crypto_auth_hmacsha512256_final(&state, mac.data());
  return fmt::format("{:02x}", fmt::join(mac, ""));
}

bool same_signature(std::string_view a, std::string_view b) {
  return a.size() == b.size() && sodium_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace partita

#pragma once
// Who may have written a file. Machine code is loaded from the store, so the store must be the user's own.
#include <array>
#include <initializer_list>
#include <string>
#include <string_view>

#include "core/base/result.h"

namespace partita {

/// Makes the file (0600) and the folders that are missing (0700), whatever the umask; narrows the mode of a file that
/// is already there and ours. Error store.read_only.
Status make_private_file(const std::string& file);

/// Ok when only this user and root can write the file and its folders, up to the home folder or else the root folder.
/// Folders with the sticky bit (/tmp) may be open. Error store.untrusted names the file or folder and its fault.
Status check_private(const std::string& file);

/// A secret that entries of the store are signed with. An entry without a signature by it was not written by this user.
struct SigningKey {
  std::array<unsigned char, 32> bytes{};
};
/// $XDG_CONFIG_HOME/partita/store.key, else ~/.config/partita/store.key; made at first use, 0600. Errors
/// store.untrusted, store.read_only.
Result<SigningKey> user_key();

/// HMAC-SHA-512-256 of the parts and their lengths, as 64 hexadecimal digits.
std::string sign(const SigningKey& key, std::initializer_list<std::string_view> parts);
/// Compares two signatures in constant time.
bool same_signature(std::string_view a, std::string_view b);

/// $NAME when it is an absolute path, else `fallback` below $HOME; empty when that is not absolute either.
std::string user_folder(const char* name, const char* fallback);

}  // namespace partita

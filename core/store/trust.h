#pragma once
// Checks who may have written a file. Machine code is loaded from the store, so the store must be the user's own.
#include <array>
#include <initializer_list>
#include <string>
#include <string_view>

#include "core/base/result.h"

namespace partita {

/// Creates the file (0600) and missing folders (0700), whatever the umask. If the file exists and belongs to the user,
/// narrows its mode. Error store.read_only.
Status make_private_file(const std::string& file);

/// Ok when only this user and root can write the file and its folders, up to the home folder or else the root folder.
/// Folders with the sticky bit (/tmp) may be open. Error store.untrusted names the file or folder and what is wrong
/// with it.
Status check_private(const std::string& file);

/// A secret with which entries of the store are signed. An entry without such a signature was not written by this user.
struct SigningKey {
  std::array<unsigned char, 32> bytes{};
};
/// Reads the key in $XDG_CONFIG_HOME/partita/store.key, else ~/.config/partita/store.key. It is made at first use
/// (0600). Errors store.untrusted, store.read_only.
Result<SigningKey> user_key();

/// The key that a team's machines share: the hash of what is in the file, white space around it left out, of which
/// there must be 32 bytes or more. Error team.key when it is missing, short, or somebody else may read or write it.
Result<SigningKey> team_key(const std::string& file);

/// The HMAC-SHA-512-256 of the parts and their lengths, as 64 hexadecimal digits.
std::string sign(const SigningKey& key, std::initializer_list<std::string_view> parts);
/// Compares two signatures in constant time.
bool same_signature(std::string_view a, std::string_view b);

}  // namespace partita

#pragma once
#include <string>

namespace partita {

/// $NAME if it is an absolute path, else `fallback` in $HOME; empty if that is not absolute either.
std::string user_folder(const char* name, const char* fallback);

}  // namespace partita

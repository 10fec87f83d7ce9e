#include "core/base/verification.h"

#include <cstdlib>
#include <string_view>

#include "core/base/config.h"

namespace partita {

bool verified_by_default() {
  const char* text = std::getenv("PARTITA_VERIFY");
#ifdef NDEBUG
  return text && std::string_view(text) == "1";
#else
  return !text || std::string_view(text) != "0";
#endif
}

bool verification() {
  return config().verify;
}

}  // namespace partita

#include "core/base/verification.h"

#include <atomic>
#include <cstdlib>
#include <string_view>

namespace partita {
namespace {

bool from_environment() {
  const char* text = std::getenv("PARTITA_VERIFY");
#ifdef NDEBUG
  return text && std::string_view(text) == "1";
#else
  return !text || std::string_view(text) != "0";
#endif
}

std::atomic<bool> enabled{from_environment()};

}  // namespace

bool verification() {
  return enabled;
}

void set_verification(bool on) {
  enabled = on;
}

}  // namespace partita

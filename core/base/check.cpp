#include "core/base/check.h"

#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

#include "core/base/result.h"

namespace partita {
namespace {
thread_local std::vector<std::string> work;
}

WorkingOn::WorkingOn(std::string what) {
  work.push_back(std::move(what));
}

WorkingOn::~WorkingOn() {
  work.pop_back();
}

void check_failed(const char* condition, const char* file, int line, const std::string& message) {
  std::fprintf(stderr, "partita: internal error at %s:%d: %s", file, line, condition);
  if (!message.empty()) std::fprintf(stderr, ": %s", message.c_str());
  for (const std::string& what : work) std::fprintf(stderr, "; %s", what.c_str());
  std::fputs("\n", stderr);
  std::_Exit(static_cast<int>(Fault::Internal) + 1);
}

}  // namespace partita

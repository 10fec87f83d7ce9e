#include "core/base/check.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/base/result.h"

namespace partita {
namespace {
thread_local std::vector<std::string> work;
std::atomic<CheckHandler> handler = nullptr;
}  // namespace

WorkingOn::WorkingOn(std::string what) {
  work.push_back(std::move(what));
}

WorkingOn::~WorkingOn() {
  work.pop_back();
}

CheckHandler set_check_handler(CheckHandler set) {
  return handler.exchange(set);
}

void check_failed(const char* condition, const char* file, int line, const std::string& message) {
  std::string text = fmt::format("internal error at {}:{}: {}", file, line, condition);
  if (!message.empty()) text += ": " + message;
  for (const std::string& what : work) text += "; " + what;
  if (const CheckHandler own = handler)
    own(text);
  else
    std::fprintf(stderr, "partita: %s\n", text.c_str());
  std::_Exit(static_cast<int>(Fault::Internal) + 1);
}

}  // namespace partita

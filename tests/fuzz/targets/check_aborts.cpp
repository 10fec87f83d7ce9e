// Part of every target: a broken invariant is a crash, so that libFuzzer keeps the input.
#include <cstdio>
#include <cstdlib>

#include "core/base/check.h"

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  partita::set_check_handler([](const std::string& line) {
    std::fprintf(stderr, "%s\n", line.c_str());
    std::abort();
  });
  return 0;
}

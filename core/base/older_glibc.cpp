// What programs of packages have in place of newer functions of glibc, so that glibc 2.34 is enough. glibc 2.35 gave
// hypot and hypotf new versions, of which the results are the same and errno is not set; 2.36 brought arc4random, which
// libraries that are linked statically use where the machine that built them has it. The versions are those of x86-64.
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include <sys/random.h>

extern "C" {

double older_hypot(double x, double y);
float older_hypotf(float x, float y);
asm(".symver older_hypot,hypot@GLIBC_2.2.5\n.symver older_hypotf,hypotf@GLIBC_2.2.5");

double __wrap_hypot(double x, double y) {
  return older_hypot(x, y);
}

float __wrap_hypotf(float x, float y) {
  return older_hypotf(x, y);
}

void arc4random_buf(void* to, std::size_t size) noexcept {
  for (auto* at = static_cast<char*>(to); size > 0;) {
    const ssize_t got = ::getrandom(at, size, 0);
    if (got < 0 && errno != EINTR) std::abort();  // callers take what they get for random
    if (got < 0) continue;
    at += got;
    size -= static_cast<std::size_t>(got);
  }
}

std::uint32_t arc4random() noexcept {
  std::uint32_t number = 0;
  arc4random_buf(&number, sizeof number);
  return number;
}
}

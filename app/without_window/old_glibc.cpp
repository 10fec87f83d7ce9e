// Functions that newer versions of glibc have, so that the library runs with those from 2.34 on.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include <unistd.h>

#if defined(__x86_64__) && defined(__GLIBC__)
extern "C" {

// As they were before 2.35, when they got versions that do not set errno.
double partita_old_hypot(double x, double y);
float partita_old_hypotf(float x, float y);
__asm__(".symver partita_old_hypot, hypot@GLIBC_2.2.5");
__asm__(".symver partita_old_hypotf, hypotf@GLIBC_2.2.5");
double __wrap_hypot(double x, double y);
float __wrap_hypotf(float x, float y);
double __wrap_hypot(double x, double y) {
  return partita_old_hypot(x, y);
}
float __wrap_hypotf(float x, float y) {
  return partita_old_hypotf(x, y);
}

// Of 2.36; std::random_device calls it.
std::uint32_t __wrap_arc4random();
std::uint32_t __wrap_arc4random() {
  std::uint32_t out = 0;
  if (getentropy(&out, sizeof out) != 0) std::abort();  // the kernel has random numbers since 3.17
  return out;
}
}
#endif

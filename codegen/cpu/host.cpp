#include "codegen/cpu/host.h"

#include <algorithm>
#include <fstream>
#include <string>

#include <dnnl.hpp>
#include <unistd.h>

namespace partita::codegen {

std::size_t last_level_cache_bytes() {
  std::size_t largest = 0;
  for (int index = 0;; ++index) {
    std::ifstream file("/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index) + "/size");
    std::size_t size = 0;
    char unit = 0;
    if (!(file >> size)) break;
    file >> unit;
    largest = std::max(largest, size << (unit == 'M' ? 20 : unit == 'K' ? 10 : 0));
  }
  // A container may have no /sys. On AMD's processors this also counts caches of other cores.
  if (largest == 0) largest = static_cast<std::size_t>(std::max(sysconf(_SC_LEVEL3_CACHE_SIZE), 0L));
  return largest;
}

bool convolutions_want_channels_last() {
  // oneDNN's brgemm kernels need avx512_core. For older instruction sets it has kernels for layouts in blocks of
  // channels.
  return dnnl::get_effective_cpu_isa() >= dnnl::cpu_isa::avx512_core;
}

}  // namespace partita::codegen

#include "codegen/cpu/host.h"

#include <algorithm>
#include <fstream>
#include <string>

#include <dnnl.hpp>

namespace partita::codegen {

std::size_t last_level_cache_bytes() {
  // sysconf(_SC_LEVEL3_CACHE_SIZE) counts the caches of other cores on AMD's processors.
  std::size_t largest = 0;
  for (int index = 0;; ++index) {
    std::ifstream file("/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index) + "/size");
    std::size_t size = 0;
    char unit = 0;
    if (!(file >> size)) return largest;
    file >> unit;
    largest = std::max(largest, size << (unit == 'M' ? 20 : unit == 'K' ? 10 : 0));
  }
}

bool convolutions_want_channels_last() {
  // Its brgemm kernels do. Older instruction sets have kernels for layouts in blocks of channels.
  return dnnl::get_effective_cpu_isa() >= dnnl::cpu_isa::avx512_core;
}

}  // namespace partita::codegen

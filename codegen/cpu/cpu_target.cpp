#include "codegen/cpu/cpu_target.h"

#include <algorithm>
#include <fstream>

#include <unistd.h>

#include "codegen/cpu/extern/in_floats.h"
#include "codegen/cpu/extern/product.h"
#include "core/schedule/channels_last.h"

namespace partita::codegen {
namespace {

/// The size of the largest cache of a core, as Linux reports it; 0: unknown.
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

}  // namespace

loops::Target host_target(int threads) {
  static const loops::Target host = [] {
    loops::Target target;
    target.vector_bytes = host_processor().vector_bytes;
    target.cache_bytes = last_level_cache_bytes();
    target.routines = library_routines();
    target.pads_images = true;
    target.narrow_matrices = product_kernel() != nullptr;
    target.multiplies_bfloat16 = multiplies(DType::BFloat16);
    target.channels_last = schedule::channels_last_dtypes();
    return target;
  }();
  loops::Target target = host;
  target.threads = threads;
  // Fewer columns make too few blocks for the threads.
  if (threads > 1) {
    target.few_columns = target.few_channels = std::max<std::int64_t>(2, threads) * target.block_columns + 1;
    target.split_rows = 1 << 10;
  }
  return target;
}

std::vector<InstructionSet> instruction_sets() {
  const std::string& triple = host_processor().triple;
#ifdef __x86_64__
  return {{"baseline", {"x86-64-v2", "", triple, 16}},
          {"avx2", {"x86-64-v3", "", triple, 32}},
          {"avx512", {"x86-64-v4", "", triple, 64}}};
#else
  return {{"baseline", {"generic", "", triple, 16}}};
#endif
}

loops::Target target_of(const InstructionSet& set, int threads) {
  loops::Target target = host_target(threads);
  target.vector_bytes = set.processor.vector_bytes;
  target.multiplies_bfloat16 = target.multiplies_bfloat16 && set.name == "avx512";
  if (set.name == "baseline") {
    target.narrow_matrices = false;
    target.channels_last.clear();
  }
  return target;
}

}  // namespace partita::codegen

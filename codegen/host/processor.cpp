#include "codegen/host/processor.h"

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <llvm/ADT/StringMap.h>
#include <llvm/TargetParser/Host.h>

namespace partita::codegen {

const Processor& host_processor() {
  static const Processor host = [] {
    Processor p{llvm::sys::getHostCPUName().str(), {}, llvm::sys::getProcessTriple()};
    const auto features = llvm::sys::getHostCPUFeatures();
    std::vector<std::string> list;
    for (const auto& f : features) list.push_back((f.second ? "+" : "-") + f.first().str());
    std::ranges::sort(list);
    p.features = fmt::format("{}", fmt::join(list, ","));
    const auto has = [&](const char* name) { return features.lookup(name); };
    const bool wide = has("avx512f") && has("avx512bw") && has("avx512dq") && has("avx512vl");
    p.vector_bytes = wide ? 64 : has("avx2") ? 32 : 16;
    return p;
  }();
  return host;
}

}  // namespace partita::codegen

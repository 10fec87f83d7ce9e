#pragma once
// Compiles one kernel and runs it on memory that the test provides.
#include <QtTest>
#include <cstdlib>
#include <vector>

#include "codegen/cpu/jit.h"
#include "codegen/host/link.h"
#include "core/base/threads.h"

namespace partita::codegen {

struct CompiledKernel {
  KernelEntry entry;
  std::unique_ptr<LoadedCode> code;
  ObjectCode object;
  std::vector<std::string> symbols;
};

inline CompiledKernel compile(const loops::Kernel& kernel, std::vector<std::string> symbols = {},
                              bool keep_text = false) {
  if (const auto broken = loops::verify(kernel); !broken.empty()) qFatal("%s", broken[0].c_str());
  auto object = compile_kernels({&kernel, 1}, symbols, {.keep_text = keep_text});
  if (!object) qFatal("%s", object.error().line().c_str());
  if (std::getenv("PARTITA_TEST_ASSEMBLY")) qInfo("%s", object->assembly.c_str());
  auto code = link_code(object->objects);
  if (!code) qFatal("%s", code.error().line().c_str());
  return {kernel_entry(kernel, kernel_symbol(0)), std::move(*code), std::move(*object), std::move(symbols)};
}

/// Returns true if the kernel had no fault.
inline bool run(CompiledKernel& kernel, std::vector<void*> buffers, std::vector<std::int64_t> values = {},
                int threads = 1) {
  KernelFault fault;
  buffers.push_back(&fault);
  auto value = [&](const SymExpr& e) {
    auto v = e.evaluate([&](const std::string& name) -> std::optional<std::int64_t> {
      for (std::size_t i = 0; i < kernel.symbols.size(); ++i)
        if (kernel.symbols[i] == name) return values[i];
      return std::nullopt;
    });
    return static_cast<std::int64_t>(*v);
  };
  std::size_t bytes = (kernel.entry.scratch_bytes(value) + 63) / 64 * 64;
  struct Free {
    void operator()(std::byte* p) const { std::free(p); }
  };
  std::unique_ptr<std::byte, Free> scratch(
      static_cast<std::byte*>(std::aligned_alloc(64, std::max<std::size_t>(bytes, 64) * 8)));
  for (const Phase& phase : kernel.entry.phases) {
    auto f = kernel.code->find(phase.symbol);
    if (!f) qFatal("%s", f.error().line().c_str());
    const auto function = reinterpret_cast<PhaseFunction>(*f);
    parallel_for(phase.parallel ? threads : 1, value(phase.iterations), 1, phase.alignment,
                 [&](std::int64_t begin, std::int64_t end, int thread) {
                   function(buffers.data(), values.data(), scratch.get() + bytes * static_cast<std::size_t>(thread),
                            begin, end);
                 });
  }
  return !fault.met;
}

}  // namespace partita::codegen

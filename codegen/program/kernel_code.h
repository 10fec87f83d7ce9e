#pragma once
// The code of a program's kernels, before and after it is loaded.
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace partita::codegen {

/// Code of some kernels that is not yet loaded: relocatable objects, or what a device loads.
struct ObjectCode {
  std::vector<std::string> objects;
  std::string ir, assembly;                              ///< of compilers that are asked for them
  double emit_ms = 0, optimise_ms = 0, generate_ms = 0;  ///< LLVM, summed over threads
};
/// Packs objects into one string for a store. unpack() gives error codegen.object for other bytes.
std::string pack(std::span<const std::string> objects);
Result<std::vector<std::string>> unpack(std::string_view bytes);

/// The name of kernel `index` of a program, with which its functions' names begin.
std::string kernel_symbol(std::size_t index);

/// Watches one run of a kernel whose code asks for it.
class KernelWatch {
 public:
  virtual ~KernelWatch() = default;
  struct Found {
    const char* code = "";  ///< of the error
    std::string what;
  };
  /// Before the run: the memory of the kernel's next pointer. `fresh`: it has no values yet.
  virtual void takes(std::byte* begin, std::size_t bytes, bool fresh) = 0;
  /// Before each function of the kernel.
  virtual void begin(std::int64_t iterations) = 0;
  /// What functions get behind the KernelFault.
  virtual void* argument() = 0;
  /// After each function: what it did wrong; null: nothing.
  virtual const Found* found() const = 0;
};

/// Loaded code. Its functions live as long as it does.
class LoadedCode {
 public:
  virtual ~LoadedCode() = default;
  /// A PhaseFunction (kernel_entry.h), or what the device that the code was loaded for has for one.
  virtual Result<void*> find(const std::string& symbol) = 0;
  /// For one run of a kernel; null: nobody watches.
  virtual std::unique_ptr<KernelWatch> watch() const { return nullptr; }
};

}  // namespace partita::codegen

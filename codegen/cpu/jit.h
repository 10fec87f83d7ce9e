#pragma once
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/cpu/host.h"
#include "codegen/cpu/kernel_shape.h"

namespace partita::codegen {

struct JitOptions {
  loops::Target target = host_target();  ///< `threads` also compile, each its share of the kernels
  bool keep_text = false;                ///< LLVM IR and assembly
};

/// Machine code of some kernels, not yet placed: relocatable objects.
struct ObjectCode {
  std::vector<std::string> objects;
  std::string ir, assembly;                              ///< when asked for
  double emit_ms = 0, optimise_ms = 0, generate_ms = 0;  ///< summed over threads
};

/// Kernel i's functions are named by kernel_entry(kernels[i], symbol_prefix + i). `symbols` are the names that sizes in
/// the kernels use, in the order in which their values are handed over. Error codegen.cpu (exit 3).
Result<ObjectCode> compile_kernels(std::span<const loops::Kernel> kernels, const std::vector<std::string>& symbols,
                                   const JitOptions& options = {});
std::string kernel_symbol(std::size_t index);

/// Placed code. Functions live as long as it does.
class LoadedCode {
 public:
  virtual ~LoadedCode() = default;
  /// Error codegen.link when objects are damaged or name a function we do not have.
  static Result<std::unique_ptr<LoadedCode>> link(std::span<const std::string> objects);
  virtual Result<void*> find(const std::string& symbol) = 0;
};

/// Objects as one string, for a store; error codegen.object when the bytes are not that.
std::string pack(std::span<const std::string> objects);
Result<std::vector<std::string>> unpack(std::string_view bytes);

}  // namespace partita::codegen

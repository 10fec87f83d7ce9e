#pragma once
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/cpu/kernel_shape.h"
#include "codegen/host/processor.h"
#include "codegen/host/runtime.h"

namespace partita::codegen {

struct JitOptions {
  loops::Target target = host_target();  ///< `threads` also compile, each its share of the kernels
  bool keep_text = false;                ///< LLVM IR and assembly
  bool mark_lines = false;               ///< mark the text's instructions with their scalars' sources, as debug lines
  Processor processor = host_processor();
  std::string prefix = {};  ///< of the functions' names: code for several processors may be linked into one library
};

/// Machine code of some kernels as relocatable objects, which are not yet loaded.
struct ObjectCode {
  std::vector<std::string> objects;
  std::string ir, assembly;                              ///< set with keep_text
  double emit_ms = 0, optimise_ms = 0, generate_ms = 0;  ///< summed over threads
};

/// Compiles kernels. kernel_entry(kernels[i], prefix + kernel_symbol(i)) names the functions of kernel i. `symbols` are
/// the names in the kernels' sizes, in the order in which their values are passed. Error codegen.cpu (exit 3).
Result<ObjectCode> compile_kernels(std::span<const loops::Kernel> kernels, const std::vector<std::string>& symbols,
                                   const JitOptions& options = {});
std::string kernel_symbol(std::size_t index);
/// Assembles text in GNU syntax to a relocatable object for a library. Error codegen.assembly.
Result<std::string> assemble(const std::string& text);

/// Loaded code. Its functions live as long as it does.
class LoadedCode {
 public:
  virtual ~LoadedCode() = default;
  /// `more`: functions that the code calls beside runtime_functions(). Error codegen.link when objects are damaged or
  /// need an unknown function.
  static Result<std::unique_ptr<LoadedCode>> link(std::span<const std::string> objects,
                                                  std::span<const RuntimeFunction> more = {});
  virtual Result<void*> find(const std::string& symbol) = 0;
};

/// Packs objects into one string for a store. unpack() gives error codegen.object for other bytes.
std::string pack(std::span<const std::string> objects);
Result<std::vector<std::string>> unpack(std::string_view bytes);

}  // namespace partita::codegen

#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/config.h"
#include "core/base/result.h"

namespace partita {
class CodeStore;
}

namespace partita::codegen {

/// What turns CUDA C++ into machine code on this machine.
struct CudaCompiler {
  bool in_process = false;            ///< NVRTC, a library; else nvcc, a program
  std::string path;                   ///< of either
  std::vector<std::string> includes;  ///< folders with cuda_fp16.h
  std::string version;                ///< "NVRTC 13.0", or "nvcc"
};
/// Looks for NVRTC, then for nvcc: in the folder that the setting cuda_path names, and nowhere else if it names one;
/// in those that CUDA_HOME, CUDA_PATH and VIRTUAL_ENV name; in /usr/local/cuda; where the system looks for libraries
/// and programs. A folder is a CUDA toolkit's or a Python environment's. Error cuda.compiler (exit 3) says where it
/// looked.
Result<CudaCompiler> find_cuda_compiler(const Config& config = partita::config());

/// Where a library of NVIDIA's may be, the most likely file first: `name` is "libcublasLt.so". In the folders of
/// find_cuda_compiler(), and then names for the system's own search, with each of the `versions` (".13") and without.
std::vector<std::string> cuda_library_paths(const std::string& name, std::span<const std::string_view> versions,
                                            const Config& config = partita::config());

/// A device's generation, by the name that compilers have for it.
struct CudaArchitecture {
  std::string name;                 ///< "sm_80"
  int registers = 65536;            ///< of a multiprocessor, as the fields below; registers are 32 bits
  int warps = 64;                   ///< at one time
  int blocks = 32;                  ///< at one time
  int shared_bytes = 102400;        ///< that the blocks share
  int block_shared_bytes = 101376;  ///< that one block can have
};
/// Error cuda.architecture (exit 2) lists those that are known: sm_75 ... sm_120.
Result<CudaArchitecture> find_cuda_architecture(std::string_view name);
/// Those of the setting cuda_architectures.
Result<std::vector<CudaArchitecture>> cuda_architectures(const Config& config = partita::config());

/// Machine code of one text for one architecture.
struct CudaBinary {
  std::string cubin;
  std::string ptx;
  std::string log;  ///< the assembler's words about registers and spills
  bool from_store = false;
};
/// Compiles CUDA C++, or takes what `store` (may be null) has for the same text, architecture and compiler. Errors
/// cuda.compile (exit 4: the text is ours) with the compiler's first words, cuda.compiler. `mark_lines`: code and PTX
/// say from which lines they come.
Result<CudaBinary> compile_cuda(const CudaCompiler& compiler, const std::string& text,
                                const CudaArchitecture& architecture, CodeStore* store = nullptr,
                                bool mark_lines = false);

/// What a function of a binary needs on the device.
struct CudaResources {
  std::string function;
  int registers = 0;                      ///< of one thread
  int frame_bytes = 0;                    ///< local memory of one thread: arrays and spilled registers
  int spill_stores = 0, spill_loads = 0;  ///< bytes that the code writes and reads of it for want of registers
  int shared_bytes = 0;                   ///< of static shared memory of a block
  int constant_bytes = 0;                 ///< arguments and literals
};
/// By the binary's ELF sections and log. Error cuda.binary (exit 4) for bytes that are no binary of a GPU.
Result<std::vector<CudaResources>> cuda_resources(const CudaBinary& binary);

/// How many threads of a kernel a multiprocessor holds at one time.
struct Occupancy {
  int blocks = 0;          ///< of the kernel on one multiprocessor; 0: it cannot start
  int warps = 0;           ///< in these blocks
  double share = 0;        ///< of the warps that the multiprocessor can hold, 0 to 1
  std::string_view bound;  ///< what allows no more: "registers", "shared memory", "warps", "blocks"
};
/// By the rules of NVIDIA's occupancy calculator (cuda_occupancy.h). `dynamic_shared` in bytes.
Occupancy occupancy(const CudaResources& kernel, int threads, std::size_t dynamic_shared,
                    const CudaArchitecture& architecture);

}  // namespace partita::codegen

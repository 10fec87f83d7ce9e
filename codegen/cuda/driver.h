#pragma once
// A CUDA device by its driver's library, which is opened at run time: without it everything else works.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "codegen/cuda/compile_cuda.h"
#include "codegen/cuda/cuda_kernel.h"
#include "codegen/program/kernel_code.h"
#include "codegen/program/kernel_device.h"
#include "core/base/result.h"
#include "core/tensor/value.h"

namespace partita::codegen {

struct CudaDriver;  // the functions of the library
struct ProgramKernel;

/// The first device. Its work is in one stream, in order, so memory that is given back may be used again at once by
/// what is asked for later. Any thread may call.
class CudaDevice : public std::enable_shared_from_this<CudaDevice> {
 public:
  /// The first device; while it is open, further calls return the same. Error cuda.device (exit 3): there is no
  /// library, no device, or one that the library refuses.
  static Result<std::shared_ptr<CudaDevice>> open(const std::string& library = "libcuda.so.1");
  /// open(), and then it stays open until the process ends: a device, and the libraries on it, take longer to open than
  /// most graphs take to run.
  static Result<std::shared_ptr<CudaDevice>> of_process();
  ~CudaDevice();
  CudaDevice(const CudaDevice&) = delete;
  CudaDevice& operator=(const CudaDevice&) = delete;

  const std::string& name() const { return name_; }                       ///< "NVIDIA A100-SXM4-40GB"
  const CudaArchitecture& architecture() const { return architecture_; }  ///< the newest known one that it runs
  bool stays_open() const { return stays_open_; }                         ///< is it of_process()?

  using Address = std::uint64_t;
  /// Memory of at least so many bytes, aligned to 256. Error cuda.memory when the device has no more, after everything
  /// that is kept for later use was given back to it.
  Result<Address> allocate(std::size_t bytes);
  void free(Address address);  ///< keeps it for later use
  std::size_t kept_bytes() const { return kept_bytes_; }

  Status to_device(Address to, const void* from, std::size_t bytes);
  Status to_host(void* to, Address from, std::size_t bytes);  ///< waits for it
  Status copy(Address to, Address from, std::size_t bytes);
  Status clear(Address at, std::size_t bytes);
  /// Waits for all work. Error cuda.fault says what the device met, and which kernels it may have been in.
  Status wait();

  /// Memory that goes back to the device with its last owner.
  Result<std::shared_ptr<RemoteMemory>> block(std::size_t bytes);
  /// Copies the storages of tensors on the host to the device, each once; what is there already stays.
  Status place(std::vector<Value>& values);

  /// Code of a binary, and its functions. It goes with the last copy.
  Result<std::shared_ptr<void>> load(const std::string& cubin);
  Result<void*> function(void* module, const std::string& name, std::size_t shared_bytes);
  /// `arguments`: addresses of the values. `kernel` is for errors: its name and nodes.
  Status launch(void* function, std::int64_t blocks, int threads, std::size_t shared_bytes, std::span<void*> arguments,
                const std::string& kernel, void* stream);
  void* stream() const { return stream_; }
  /// For what puts work into a stream by itself: holds the device, and gives the thread its context.
  std::unique_lock<std::recursive_mutex> enter() const;
  /// Work for the next wait()'s error to name.
  void note(std::string work);

  /// Moments in the order of the work; seconds_between() waits for both.
  Result<std::shared_ptr<void>> record_event();
  Result<double> seconds_between(void* begin, void* end);

  /// Work as a CUDA graph: it is done once in a stream of its own, then recorded there and not done. `work` puts the
  /// same work into the stream that it gets each time; it must neither allocate nor wait.
  Result<std::shared_ptr<void>> record(const std::function<Status(void* stream)>& work);
  Status replay(void* graph);

 private:
  explicit CudaDevice(const CudaDriver& driver) : driver_(driver) {}
  Status checked(int result, const char* call) const;
  void release_kept();

  const CudaDriver& driver_;
  std::atomic<bool> stays_open_ = false;
  int device_ = 0;
  void* stream_ = nullptr;
  void* side_stream_ = nullptr;  ///< of record(); null before the first
  void* context_ = nullptr;
  mutable std::recursive_mutex mutex_;
  std::string name_;
  CudaArchitecture architecture_;
  std::map<Address, std::size_t> allocated_;  ///< bytes, of all that the driver has given
  std::multimap<std::size_t, Address> kept_;  ///< by bytes: what nobody uses
  std::size_t kept_bytes_ = 0;
  std::vector<std::string> running_;  ///< kernels since the last wait, with their nodes
};

/// What CUDA graphs did in this process.
struct CudaGraphCounts {
  std::int64_t recorded = 0, replayed = 0;
  std::map<std::string, std::int64_t> skipped;  ///< by reason
};
CudaGraphCounts cuda_graph_counts();

/// Binaries of the kernels for the device, made by several threads. Errors: find_cuda_compiler()'s, compile_cuda()'s.
Result<std::vector<std::string>> compile_for(const CudaDevice& device, std::span<const CudaKernel> kernels);
/// `kernels`: those of the program that the binaries were compiled for. The code's functions are the driver's. Errors
/// cuda.binary for other objects, cuda.driver when the device refuses it.
Result<std::shared_ptr<LoadedCode>> load_for(const std::shared_ptr<CudaDevice>& device,
                                             std::span<const ProgramKernel> kernels,
                                             std::span<const std::string> objects);
/// For one executable. `records`: its runs become CUDA graphs where they may.
std::unique_ptr<KernelDevice> kernel_device(std::shared_ptr<CudaDevice> device, bool records);

}  // namespace partita::codegen

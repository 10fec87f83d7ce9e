// CudaDevice on NVIDIA's driver library, which dlopen opens: a pool of freed memory, copies, modules, launches in one
// stream, events, CUDA graphs by stream capture. Also places values on the device.
#include "codegen/cuda/driver.h"

#include <algorithm>
#include <limits>

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "codegen/cuda/open_library.h"

namespace partita::codegen {

/// The parts of the driver's interface that are used, by the names of cuda.h. A function returns 0, or an error.
struct CudaDriver {
  LibraryFunctions library;
  int (*init)(unsigned flags) = library.find("cuInit");
  int (*device_count)(int* count) = library.find("cuDeviceGetCount");
  int (*device_get)(int* device, int ordinal) = library.find("cuDeviceGet");
  int (*device_name)(char* name, int bytes, int device) = library.find("cuDeviceGetName");
  int (*device_attribute)(int* value, int attribute, int device) = library.find("cuDeviceGetAttribute");
  int (*retain_context)(void** context, int device) = library.find("cuDevicePrimaryCtxRetain");
  int (*release_context)(int device) = library.find("cuDevicePrimaryCtxRelease_v2");
  int (*set_context)(void* context) = library.find("cuCtxSetCurrent");
  int (*stream_create)(void** stream, unsigned flags) = library.find("cuStreamCreate");
  int (*stream_destroy)(void* stream) = library.find("cuStreamDestroy_v2");
  int (*stream_wait)(void* stream) = library.find("cuStreamSynchronize");
  int (*allocate)(std::uint64_t* address, std::size_t bytes) = library.find("cuMemAlloc_v2");
  int (*free)(std::uint64_t address) = library.find("cuMemFree_v2");
  int (*to_device)(std::uint64_t to, const void* from, std::size_t bytes,
                   void* stream) = library.find("cuMemcpyHtoDAsync_v2");
  int (*to_host)(void* to, std::uint64_t from, std::size_t bytes, void* stream) = library.find("cuMemcpyDtoHAsync_v2");
  int (*copy)(std::uint64_t to, std::uint64_t from, std::size_t bytes,
              void* stream) = library.find("cuMemcpyDtoDAsync_v2");
  int (*fill)(std::uint64_t at, unsigned char value, std::size_t bytes, void* stream) = library.find("cuMemsetD8Async");
  int (*module_load)(void** module, const void* image) = library.find("cuModuleLoadData");
  int (*module_unload)(void* module) = library.find("cuModuleUnload");
  int (*module_function)(void** function, void* module, const char* name) = library.find("cuModuleGetFunction");
  int (*function_attribute)(void* function, int attribute, int value) = library.find("cuFuncSetAttribute");
  int (*launch)(void* function, unsigned x, unsigned y, unsigned z, unsigned threads_x, unsigned threads_y,
                unsigned threads_z, unsigned shared_bytes, void* stream, void** arguments,
                void** extra) = library.find("cuLaunchKernel");
  int (*event_create)(void** event, unsigned flags) = library.find("cuEventCreate");
  int (*event_destroy)(void* event) = library.find("cuEventDestroy_v2");
  int (*event_record)(void* event, void* stream) = library.find("cuEventRecord");
  int (*event_wait)(void* event) = library.find("cuEventSynchronize");
  int (*elapsed)(float* milliseconds, void* begin, void* end) = library.find("cuEventElapsedTime");
  int (*stream_wait_event)(void* stream, void* event, unsigned flags) = library.find("cuStreamWaitEvent");
  int (*begin_capture)(void* stream, int mode) = library.find("cuStreamBeginCapture_v2");
  int (*end_capture)(void* stream, void** graph) = library.find("cuStreamEndCapture");
  int (*graph_destroy)(void* graph) = library.find("cuGraphDestroy");
  int (*instantiate)(void** instance, void* graph,
                     unsigned long long flags) = library.find("cuGraphInstantiateWithFlags");
  int (*instance_destroy)(void* instance) = library.find("cuGraphExecDestroy");
  int (*graph_launch)(void* instance, void* stream) = library.find("cuGraphLaunch");
  int (*error_name)(int error, const char** name) = library.find("cuGetErrorName");
  int (*error_string)(int error, const char** text) = library.find("cuGetErrorString");
};

namespace {

constexpr int out_of_memory = 2;  // CUDA_ERROR_OUT_OF_MEMORY
constexpr int capability_major = 75, capability_minor = 76;
constexpr int most_dynamic_shared = 8;  // CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
constexpr unsigned non_blocking = 1;
constexpr int thread_local_capture = 1;  // CU_STREAM_CAPTURE_MODE_THREAD_LOCAL: other threads may allocate meanwhile
constexpr std::size_t granularity = 512;

Diagnostic no_device(const std::string& why) {
  return unsupported(
      "cuda.device",
      fmt::format("there is no CUDA device: {}; --backend cuda-emulate runs the same kernels on the CPU", why));
}

/// The library stays open.
Result<const CudaDriver*> open_driver(const std::string& library) {
  static std::mutex mutex;
  static std::map<std::string, std::unique_ptr<CudaDriver>> opened;
  const std::lock_guard lock(mutex);
  if (const auto known = opened.find(library); known != opened.end()) return known->second.get();
  void* handle = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) return no_device(::dlerror());
  auto driver = std::make_unique<CudaDriver>(LibraryFunctions(handle));
  const std::string& missing = driver->library.missing();
  if (!missing.empty()) return no_device(fmt::format("{} has no {}", library, missing));
  return opened.emplace(library, std::move(driver)).first->second.get();
}

std::string words_of(const CudaDriver& driver, int error) {
  const char *name = nullptr, *text = nullptr;
  if (driver.error_name(error, &name) != 0 || !name) return fmt::format("error {}", error);
  return driver.error_string(error, &text) == 0 && text ? fmt::format("{} ({})", name, text) : name;
}

class Block final : public RemoteMemory {
 public:
  Block(std::shared_ptr<CudaDevice> device, CudaDevice::Address address, std::size_t bytes)
      : device_(std::move(device)), address_(address), bytes_(bytes) {}
  ~Block() override { device_->free(address_); }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  std::uint64_t address() const override { return address_; }
  Status copy_to(std::byte* to) override { return device_->to_host(to, address_, bytes_); }

 private:
  std::shared_ptr<CudaDevice> device_;
  CudaDevice::Address address_;
  std::size_t bytes_;
};

/// Calls `f` with each tensor of a value.
void for_each_tensor(Value& value, const std::function<void(Tensor&)>& f) {
  if (auto* t = std::get_if<Tensor>(&value.v)) f(*t);
  if (auto* list = std::get_if<ValueList>(&value.v))
    for (Value& v : *list) for_each_tensor(v, f);
}

}  // namespace

std::unique_lock<std::recursive_mutex> CudaDevice::enter() const {
  std::unique_lock lock(mutex_);
  driver_.set_context(context_);  // if it fails, so does the call that follows
  return lock;
}

Result<std::shared_ptr<CudaDevice>> CudaDevice::open(const std::string& library) {
  static std::mutex mutex;
  static std::map<std::string, std::weak_ptr<CudaDevice>> open_devices;
  const std::lock_guard lock(mutex);
  if (auto known = open_devices[library].lock()) return known;
  TRY(const CudaDriver* driver, open_driver(library));
  int count = 0;
  if (const int error = driver->init(0)) return no_device(words_of(*driver, error));
  if (const int error = driver->device_count(&count)) return no_device(words_of(*driver, error));
  if (count == 0) return no_device("the driver finds none");
  std::shared_ptr<CudaDevice> out(new CudaDevice(*driver));
  char name[256] = {};
  int major = 0, minor = 0;
  for (const int error :
       {driver->device_get(&out->device_, 0), driver->device_name(name, sizeof name - 1, out->device_),
        driver->device_attribute(&major, capability_major, out->device_),
        driver->device_attribute(&minor, capability_minor, out->device_)})
    if (error) return no_device(words_of(*driver, error));
  out->name_ = name;
  // A binary runs on devices of its own and later minor versions.
  std::optional<CudaArchitecture> newest;
  for (int m = minor; m >= 0 && !newest; --m)
    if (auto found = find_cuda_architecture(fmt::format("sm_{}{}", major, m))) newest = *std::move(found);
  if (!newest)
    return no_device(fmt::format("{} is of generation {}.{}, for which no code is made", name, major, minor));
  out->architecture_ = *std::move(newest);
  if (const int error = driver->retain_context(&out->context_, out->device_))
    return no_device(words_of(*driver, error));
  if (const int error = driver->set_context(out->context_)) return no_device(words_of(*driver, error));
  if (const int error = driver->stream_create(&out->stream_, non_blocking)) return no_device(words_of(*driver, error));
  open_devices[library] = out;
  return out;
}

Result<std::shared_ptr<CudaDevice>> CudaDevice::of_process() {
  static std::mutex mutex;
  static auto* const kept = new std::shared_ptr<CudaDevice>;  // never destroyed: the driver may end before
  const std::lock_guard lock(mutex);
  if (!*kept) {
    TRY(*kept, open());
    (*kept)->stays_open_ = true;
  }
  return *kept;
}

CudaDevice::~CudaDevice() {
  if (!context_) return;
  const auto lock = enter();
  if (stream_) driver_.stream_wait(stream_);
  for (const auto& [address, bytes] : allocated_) driver_.free(address);
  if (side_stream_) driver_.stream_destroy(side_stream_);
  if (stream_) driver_.stream_destroy(stream_);
  driver_.release_context(device_);
}

Status CudaDevice::checked(int result, const char* call) const {
  if (result == 0) return {};
  return Diagnostic{Fault::Internal, "cuda.driver",
                    fmt::format("{}: {} on {}", call, words_of(driver_, result), name_)};
}

Result<CudaDevice::Address> CudaDevice::allocate(std::size_t bytes) {
  const auto lock = enter();
  if (bytes > std::numeric_limits<std::size_t>::max() - granularity)
    return input_error("cuda.memory", fmt::format("{} bytes are more than any device has", bytes));
  const std::size_t rounded = std::max((bytes + granularity - 1) / granularity * granularity, granularity);
  // A much larger block is left for a request that needs it.
  if (const auto found = kept_.lower_bound(rounded); found != kept_.end() && found->first <= rounded + rounded / 4) {
    const Address address = found->second;
    kept_bytes_ -= found->first;
    kept_.erase(found);
    return address;
  }
  Address address = 0;
  int error = driver_.allocate(&address, rounded);
  if (error == out_of_memory && !kept_.empty()) {
    TRY_DO(wait());  // earlier work may still use what is kept
    release_kept();
    error = driver_.allocate(&address, rounded);
  }
  if (error == out_of_memory) {
    std::size_t held = 0;
    for (const auto& [at, size] : allocated_) held += size;
    return input_error("cuda.memory",
                       fmt::format("{} has no {} bytes more; this process holds {} there", name_, rounded, held));
  }
  TRY_DO(checked(error, "cuMemAlloc"));
  allocated_.emplace(address, rounded);
  return address;
}

void CudaDevice::free(Address address) {
  const auto lock = enter();
  const auto known = allocated_.find(address);
  if (known == allocated_.end()) return;
  kept_.emplace(known->second, address);
  kept_bytes_ += known->second;
}

void CudaDevice::release_kept() {
  for (const auto& [bytes, address] : kept_) {
    driver_.free(address);
    allocated_.erase(address);
  }
  kept_.clear();
  kept_bytes_ = 0;
}

Status CudaDevice::to_device(Address to, const void* from, std::size_t bytes) {
  const auto lock = enter();
  return bytes == 0 ? Status() : checked(driver_.to_device(to, from, bytes, stream_), "cuMemcpyHtoDAsync");
}

Status CudaDevice::to_host(void* to, Address from, std::size_t bytes) {
  const auto lock = enter();
  if (bytes > 0) TRY_DO(checked(driver_.to_host(to, from, bytes, stream_), "cuMemcpyDtoHAsync"));
  return wait();
}

Status CudaDevice::copy(Address to, Address from, std::size_t bytes) {
  const auto lock = enter();
  return bytes == 0 ? Status() : checked(driver_.copy(to, from, bytes, stream_), "cuMemcpyDtoDAsync");
}

Status CudaDevice::clear(Address at, std::size_t bytes) {
  const auto lock = enter();
  return bytes == 0 ? Status() : checked(driver_.fill(at, 0, bytes, stream_), "cuMemsetD8Async");
}

Status CudaDevice::wait() {
  const auto lock = enter();
  const int error = driver_.stream_wait(stream_);
  std::vector<std::string> running;
  running.swap(running_);
  if (error == 0) return {};
  return Diagnostic{
      Fault::Internal, "cuda.fault",
      fmt::format("{} met {} in {}", name_, words_of(driver_, error),
                  running.empty() ? "a copy" : fmt::format("one of the kernels {}", fmt::join(running, ", ")))};
}

Result<std::shared_ptr<void>> CudaDevice::load(const std::string& cubin) {
  const auto lock = enter();
  void* module = nullptr;
  TRY_DO(checked(driver_.module_load(&module, cubin.data()), "cuModuleLoadData"));
  return std::shared_ptr<void>(module, [device = shared_from_this()](void* m) {
    const auto held = device->enter();
    device->driver_.module_unload(m);
  });
}

Result<void*> CudaDevice::function(void* module, const std::string& name, std::size_t shared_bytes) {
  const auto lock = enter();
  void* function = nullptr;
  TRY_DO(checked(driver_.module_function(&function, module, name.c_str()), "cuModuleGetFunction"));
  constexpr std::size_t without_asking = 48 * 1024;
  if (shared_bytes > without_asking)
    TRY_DO(checked(driver_.function_attribute(function, most_dynamic_shared, static_cast<int>(shared_bytes)),
                   "cuFuncSetAttribute"));
  return function;
}

Status CudaDevice::launch(void* function, std::int64_t blocks, int threads, std::size_t shared_bytes,
                          std::span<void*> arguments, const std::string& kernel, void* stream) {
  if (blocks == 0) return {};
  const auto lock = enter();
  if (blocks < 0 || blocks > std::numeric_limits<std::int32_t>::max())
    return unsupported("cuda.launch", fmt::format("kernel {} has {} blocks, more than a grid has", kernel, blocks));
  const int error = driver_.launch(function, static_cast<unsigned>(blocks), 1, 1, static_cast<unsigned>(threads), 1, 1,
                                   static_cast<unsigned>(shared_bytes), stream, arguments.data(), nullptr);
  if (error != 0)
    return Diagnostic{Fault::Internal, "cuda.fault",
                      fmt::format("kernel {} cannot be launched on {}: {}", kernel, name_, words_of(driver_, error))};
  note(kernel);
  return {};
}

void CudaDevice::note(std::string work) {
  const auto lock = enter();
  if (running_.empty() || running_.back() != work) running_.push_back(std::move(work));
}

Result<std::shared_ptr<void>> CudaDevice::record_event() {
  const auto lock = enter();
  void* event = nullptr;
  TRY_DO(checked(driver_.event_create(&event, 0), "cuEventCreate"));
  std::shared_ptr<void> owned(event, [device = shared_from_this()](void* e) {
    const auto held = device->enter();
    device->driver_.event_destroy(e);
  });
  TRY_DO(checked(driver_.event_record(event, stream_), "cuEventRecord"));
  return owned;
}

Result<double> CudaDevice::seconds_between(void* begin, void* end) {
  const auto lock = enter();
  float milliseconds = 0;
  TRY_DO(checked(driver_.event_wait(end), "cuEventSynchronize"));
  TRY_DO(checked(driver_.elapsed(&milliseconds, begin, end), "cuEventElapsedTime"));
  return double(milliseconds) / 1e3;
}

Result<std::shared_ptr<void>> CudaDevice::record(const std::function<Status(void* stream)>& work) {
  const auto lock = enter();
  if (!side_stream_) TRY_DO(checked(driver_.stream_create(&side_stream_, non_blocking), "cuStreamCreate"));
  // A first use may load or set up something, which cannot be recorded. So the work is done once before, as soon as
  // what it reads is there.
  TRY(const std::shared_ptr<void> before, record_event());
  TRY_DO(checked(driver_.stream_wait_event(side_stream_, before.get(), 0), "cuStreamWaitEvent"));
  const Status warm = work(side_stream_);
  TRY_DO(checked(driver_.stream_wait(side_stream_), "cuStreamSynchronize"));
  TRY_DO(warm);
  TRY_DO(checked(driver_.begin_capture(side_stream_, thread_local_capture), "cuStreamBeginCapture"));
  const Status recorded = work(side_stream_);
  // Recording is ended after an error, too: until then the stream takes no other work.
  void *graph = nullptr, *instance = nullptr;
  const int ended = driver_.end_capture(side_stream_, &graph);
  const std::shared_ptr<void> owned(graph, [this](void* g) {
    if (g) driver_.graph_destroy(g);
  });
  TRY_DO(recorded);
  TRY_DO(checked(ended, "cuStreamEndCapture"));
  TRY_DO(checked(driver_.instantiate(&instance, graph, 0), "cuGraphInstantiate"));
  return std::shared_ptr<void>(instance, [device = shared_from_this()](void* i) {
    const auto held = device->enter();
    device->driver_.instance_destroy(i);
  });
}

Status CudaDevice::replay(void* graph) {
  const auto lock = enter();
  return checked(driver_.graph_launch(graph, stream_), "cuGraphLaunch");
}

Result<std::shared_ptr<RemoteMemory>> CudaDevice::block(std::size_t bytes) {
  TRY(const Address address, allocate(bytes));
  return std::shared_ptr<RemoteMemory>(std::make_shared<Block>(shared_from_this(), address, bytes));
}

Status CudaDevice::place(std::vector<Value>& values) {
  std::map<std::shared_ptr<Storage>, std::shared_ptr<Storage>> placed;
  Status out;
  for (Value& value : values)
    for_each_tensor(value, [&](Tensor& t) {
      if (!out || !t.storage || t.storage->remote() || t.device().type != DeviceType::Cpu) return;
      std::shared_ptr<Storage>& there = placed[t.storage];
      if (!there) {
        const std::size_t bytes = t.storage->bytes();
        auto memory = block(bytes);
        if (memory) out = to_device((*memory)->address(), t.storage->data(), bytes);
        if (!memory) out = memory.error();
        if (!out) return;
        there = Storage::remote(bytes, *memory);
      }
      t.storage = there;
    });
  if (out && !placed.empty()) return wait();  // the host's memory may be freed once this has returned
  return out;
}

}  // namespace partita::codegen

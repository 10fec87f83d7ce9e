#include "codegen/cuda/driver.h"

#include <algorithm>
#include <limits>

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace partita::codegen {

/// The parts of the driver's interface that are used, by the names of cuda.h. A function returns 0, or an error.
struct CudaDriver {
  int (*init)(unsigned flags) = nullptr;
  int (*device_count)(int* count) = nullptr;
  int (*device_get)(int* device, int ordinal) = nullptr;
  int (*device_name)(char* name, int bytes, int device) = nullptr;
  int (*device_attribute)(int* value, int attribute, int device) = nullptr;
  int (*retain_context)(void** context, int device) = nullptr;
  int (*release_context)(int device) = nullptr;
  int (*set_context)(void* context) = nullptr;
  int (*stream_create)(void** stream, unsigned flags) = nullptr;
  int (*stream_destroy)(void* stream) = nullptr;
  int (*stream_wait)(void* stream) = nullptr;
  int (*allocate)(std::uint64_t* address, std::size_t bytes) = nullptr;
  int (*free)(std::uint64_t address) = nullptr;
  int (*to_device)(std::uint64_t to, const void* from, std::size_t bytes, void* stream) = nullptr;
  int (*to_host)(void* to, std::uint64_t from, std::size_t bytes, void* stream) = nullptr;
  int (*fill)(std::uint64_t at, unsigned char value, std::size_t bytes, void* stream) = nullptr;
  int (*module_load)(void** module, const void* image) = nullptr;
  int (*module_unload)(void* module) = nullptr;
  int (*module_function)(void** function, void* module, const char* name) = nullptr;
  int (*function_attribute)(void* function, int attribute, int value) = nullptr;
  int (*launch)(void* function, unsigned x, unsigned y, unsigned z, unsigned threads_x, unsigned threads_y,
                unsigned threads_z, unsigned shared_bytes, void* stream, void** arguments, void** extra) = nullptr;
  int (*error_name)(int error, const char** name) = nullptr;
  int (*error_string)(int error, const char** text) = nullptr;
};

namespace {

constexpr int out_of_memory = 2;  // CUDA_ERROR_OUT_OF_MEMORY
constexpr int capability_major = 75, capability_minor = 76;
constexpr int most_dynamic_shared = 8;  // CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
constexpr unsigned non_blocking = 1;
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
  auto driver = std::make_unique<CudaDriver>();
  std::string missing;
  const auto find = [&](const char* name, auto& function) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(handle, name));
    if (!function) missing = name;
  };
  find("cuInit", driver->init);
  find("cuDeviceGetCount", driver->device_count);
  find("cuDeviceGet", driver->device_get);
  find("cuDeviceGetName", driver->device_name);
  find("cuDeviceGetAttribute", driver->device_attribute);
  find("cuDevicePrimaryCtxRetain", driver->retain_context);
  find("cuDevicePrimaryCtxRelease_v2", driver->release_context);
  find("cuCtxSetCurrent", driver->set_context);
  find("cuStreamCreate", driver->stream_create);
  find("cuStreamDestroy_v2", driver->stream_destroy);
  find("cuStreamSynchronize", driver->stream_wait);
  find("cuMemAlloc_v2", driver->allocate);
  find("cuMemFree_v2", driver->free);
  find("cuMemcpyHtoDAsync_v2", driver->to_device);
  find("cuMemcpyDtoHAsync_v2", driver->to_host);
  find("cuMemsetD8Async", driver->fill);
  find("cuModuleLoadData", driver->module_load);
  find("cuModuleUnload", driver->module_unload);
  find("cuModuleGetFunction", driver->module_function);
  find("cuFuncSetAttribute", driver->function_attribute);
  find("cuLaunchKernel", driver->launch);
  find("cuGetErrorName", driver->error_name);
  find("cuGetErrorString", driver->error_string);
  if (!missing.empty()) return no_device(fmt::format("{} has no {}", library, missing));
  return opened.emplace(library, std::move(driver)).first->second.get();
}

std::string words_of(const CudaDriver& driver, int error) {
  const char *name = nullptr, *text = nullptr;
  if (driver.error_name(error, &name) != 0 || !name) return fmt::format("error {}", error);
  return driver.error_string(error, &text) == 0 && text ? fmt::format("{} ({})", name, text) : name;
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
  if (count == 0) return no_device("the driver counts none");
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

CudaDevice::~CudaDevice() {
  if (!context_) return;
  const auto lock = enter();
  if (stream_) driver_.stream_wait(stream_);
  for (const auto& [address, bytes] : allocated_) driver_.free(address);
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
  // A much larger block would be missed by who needs it.
  if (const auto found = kept_.lower_bound(rounded); found != kept_.end() && found->first <= rounded + rounded / 4) {
    const Address address = found->second;
    kept_bytes_ -= found->first;
    kept_.erase(found);
    return address;
  }
  Address address = 0;
  int error = driver_.allocate(&address, rounded);
  if (error == out_of_memory && !kept_.empty()) {
    TRY_DO(wait());  // what is kept may still be in use by work before
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
                          std::span<void*> arguments, std::string_view kernel, std::span<const std::string> nodes) {
  if (blocks == 0) return {};
  const auto lock = enter();
  const std::string where = fmt::format("{} ({})", kernel, fmt::join(nodes, ", "));
  if (blocks < 0 || blocks > std::numeric_limits<std::int32_t>::max())
    return unsupported("cuda.launch", fmt::format("kernel {} has {} blocks, more than a grid has", where, blocks));
  const int error = driver_.launch(function, static_cast<unsigned>(blocks), 1, 1, static_cast<unsigned>(threads), 1, 1,
                                   static_cast<unsigned>(shared_bytes), stream_, arguments.data(), nullptr);
  if (error != 0)
    return Diagnostic{Fault::Internal, "cuda.fault",
                      fmt::format("kernel {} cannot be launched on {}: {}", where, name_, words_of(driver_, error))};
  if (running_.empty() || running_.back() != where) running_.push_back(where);
  return {};
}

}  // namespace partita::codegen

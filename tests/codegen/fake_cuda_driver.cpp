// A CUDA driver's library without a device: memory is the host's, kernels are a function of the test. It writes down
// what is called, for test_cuda_driver.cpp.
#include <cstdlib>
#include <cstring>
#include <list>
#include <map>
#include <string>

namespace {

struct State {
  std::string log;
  std::map<std::string, int> fails;  ///< by function: the error that it returns
  int devices = 1, major = 8, minor = 0;
  std::size_t room = std::size_t{1} << 30;
  std::map<std::uint64_t, std::size_t> memory;
  std::list<std::string> functions;
  void (*on_launch)(const char* function, unsigned blocks, unsigned threads, void** arguments) = nullptr;
};
State state;

int did(const char* function, const std::string& what = {}) {
  state.log += std::string(function) + (what.empty() ? "" : " " + what) + "\n";
  const auto fails = state.fails.find(function);
  return fails == state.fails.end() ? 0 : fails->second;
}

}  // namespace

extern "C" {

// What the test calls.
void fake_reset() {
  state = State();
}
const char* fake_log() {
  return state.log.c_str();
}
void fake_forget_log() {
  state.log.clear();
}
void fake_fail(const char* function, int error) {
  if (error)
    state.fails[function] = error;
  else
    state.fails.erase(function);
}
void fake_devices(int count, int major, int minor) {
  state.devices = count, state.major = major, state.minor = minor;
}
void fake_room(std::size_t bytes) {
  state.room = bytes;
}
void fake_on_launch(void (*f)(const char*, unsigned, unsigned, void**)) {
  state.on_launch = f;
}

// The driver's interface.
int cuInit(unsigned) {
  return did("init");
}
int cuDeviceGetCount(int* count) {
  *count = state.devices;
  return 0;
}
int cuDeviceGet(int* device, int ordinal) {
  *device = ordinal;
  return 0;
}
int cuDeviceGetName(char* name, int bytes, int) {
  std::strncpy(name, "a fake device", static_cast<std::size_t>(bytes));
  return 0;
}
int cuDeviceGetAttribute(int* value, int attribute, int) {
  *value = attribute == 75 ? state.major : state.minor;
  return 0;
}
int cuDevicePrimaryCtxRetain(void** context, int) {
  *context = &state;
  return did("retain");
}
int cuDevicePrimaryCtxRelease_v2(int) {
  return did("release");
}
int cuCtxSetCurrent(void* context) {
  return context == &state ? 0 : 201;
}
int cuStreamCreate(void** stream, unsigned) {
  *stream = &state.log;
  return did("stream");
}
int cuStreamDestroy_v2(void*) {
  return did("end stream");
}
int cuStreamSynchronize(void*) {
  return did("wait");
}
int cuMemAlloc_v2(std::uint64_t* address, std::size_t bytes) {
  const int error = did("allocate", std::to_string(bytes));
  std::size_t held = bytes;
  for (const auto& [at, size] : state.memory) held += size;
  if (held > state.room) return 2;
  *address = reinterpret_cast<std::uint64_t>(std::aligned_alloc(256, (bytes + 255) / 256 * 256));
  state.memory[*address] = bytes;
  return error;
}
int cuMemFree_v2(std::uint64_t address) {
  std::free(reinterpret_cast<void*>(address));
  return state.memory.erase(address) == 1 ? did("free") : 1;
}
int cuMemcpyHtoDAsync_v2(std::uint64_t to, const void* from, std::size_t bytes, void*) {
  std::memcpy(reinterpret_cast<void*>(to), from, bytes);
  return did("to device", std::to_string(bytes));
}
int cuMemcpyDtoHAsync_v2(void* to, std::uint64_t from, std::size_t bytes, void*) {
  std::memcpy(to, reinterpret_cast<void*>(from), bytes);
  return did("to host", std::to_string(bytes));
}
int cuMemsetD8Async(std::uint64_t at, unsigned char value, std::size_t bytes, void*) {
  std::memset(reinterpret_cast<void*>(at), value, bytes);
  return did("clear");
}
int cuModuleLoadData(void** module, const void*) {
  *module = &state.functions;
  return did("load");
}
int cuModuleUnload(void*) {
  return did("unload");
}
int cuModuleGetFunction(void** function, void*, const char* name) {
  *function = &state.functions.emplace_back(name);
  return did("function", name);
}
int cuFuncSetAttribute(void*, int, int value) {
  return did("shared memory", std::to_string(value));
}
int cuLaunchKernel(void* function, unsigned x, unsigned, unsigned, unsigned threads, unsigned, unsigned, unsigned,
                   void*, void** arguments, void**) {
  const std::string& name = *static_cast<std::string*>(function);
  if (const int error = did("launch", name + " " + std::to_string(x) + " x " + std::to_string(threads))) return error;
  if (state.on_launch) state.on_launch(name.c_str(), x, threads, arguments);
  return 0;
}
int cuGetErrorName(int error, const char** name) {
  *name = error == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS" : error == 100 ? "CUDA_ERROR_NO_DEVICE" : "CUDA_ERROR_OTHER";
  return 0;
}
int cuGetErrorString(int, const char** text) {
  *text = "a fake error";
  return 0;
}

}  // extern "C"

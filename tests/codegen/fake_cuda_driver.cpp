// A CUDA driver's library without a device: memory is the host's, kernels are a function of the test. It writes down
// what is called, for test_cuda_driver.cpp.
#include <cstdlib>
#include <cstring>
#include <functional>
#include <list>
#include <map>
#include <string>
#include <vector>

namespace {

using Captured = std::vector<std::function<void()>>;

struct State {
  std::string log;
  std::map<std::string, int> fails;  ///< by function: the error that it returns
  int devices = 1, major = 8, minor = 0;
  std::size_t room = std::size_t{1} << 30;
  std::map<std::uint64_t, std::size_t> memory;
  std::list<std::string> functions;
  std::list<std::string> streams;  ///< what their work is marked by
  void* capturing = nullptr;       ///< the stream
  Captured captured;
  int launches = 0;
  float worked = 0;  ///< milliseconds, of what fake_work() was told
  void (*on_launch)(const char* function, unsigned blocks, unsigned threads, void** arguments) = nullptr;
};
State state;

int did(const std::string& function, const std::string& what = {}) {
  state.log += function + (what.empty() ? "" : " " + what) + "\n";
  const auto fails = state.fails.find(function);
  return fails == state.fails.end() ? 0 : fails->second;
}

std::string place(void* stream) {
  return *static_cast<std::string*>(stream);
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
/// Work of a library that takes so long.
void fake_work(float milliseconds) {
  if (state.capturing)
    state.captured.emplace_back([milliseconds] { state.worked += milliseconds; });
  else
    state.worked += milliseconds;
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
  *stream = &state.streams.emplace_back(state.streams.empty() ? "" : " on the side");
  return did("stream");
}
int cuStreamDestroy_v2(void*) {
  return did("end stream");
}
int cuStreamSynchronize(void* stream) {
  if (state.capturing == stream) return did("wait while capturing"), 900;
  return did("wait" + place(stream));
}
int cuEventCreate(void** event, unsigned) {
  *event = new float(0);
  return 0;
}
int cuEventDestroy_v2(void* event) {
  delete static_cast<float*>(event);
  return 0;
}
/// An event's time: a millisecond for each launch before it.
int cuEventRecord(void* event, void* stream) {
  *static_cast<float*>(event) = static_cast<float>(state.launches) + state.worked;
  return did("event" + place(stream));
}
int cuEventSynchronize(void*) {
  return 0;
}
int cuEventElapsedTime(float* milliseconds, void* begin, void* end) {
  *milliseconds = *static_cast<float*>(end) - *static_cast<float*>(begin);
  return 0;
}
int cuStreamWaitEvent(void* stream, void*, unsigned) {
  return did("wait for event" + place(stream));
}
int cuStreamBeginCapture_v2(void* stream, int mode) {
  state.capturing = stream;
  state.captured.clear();
  return did("capture", std::to_string(mode));
}
/// Also after an error, with no graph then.
int cuStreamEndCapture(void* stream, void** graph) {
  if (state.capturing != stream) return 901;
  state.capturing = nullptr;
  *graph = nullptr;
  if (const int error = did("end capture")) return error;
  *graph = new Captured(std::move(state.captured));
  return 0;
}
int cuGraphDestroy(void* graph) {
  delete static_cast<Captured*>(graph);
  return 0;
}
int cuGraphInstantiateWithFlags(void** instance, void* graph, unsigned long long) {
  *instance = new Captured(*static_cast<Captured*>(graph));
  return did("instantiate");
}
int cuGraphExecDestroy(void* instance) {
  delete static_cast<Captured*>(instance);
  return did("end instance");
}
int cuGraphLaunch(void* instance, void* stream) {
  if (const int error = did("graph" + place(stream))) return error;
  for (const auto& work : *static_cast<Captured*>(instance)) work();
  return 0;
}
int cuMemcpyDtoDAsync_v2(std::uint64_t to, std::uint64_t from, std::size_t bytes, void*) {
  std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<void*>(from), bytes);
  return did("copy", std::to_string(bytes));
}
int cuMemAlloc_v2(std::uint64_t* address, std::size_t bytes) {
  const int error = did(state.capturing ? "allocate while capturing" : "allocate", std::to_string(bytes));
  if (state.capturing) return 900;
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
/// Does the work, or notes it for a graph.
int fake_do(std::function<void()> work, void* stream) {
  ++state.launches;
  if (state.capturing == stream)
    state.captured.push_back(std::move(work));
  else
    work();
  return 0;
}
/// As the driver, it copies the values of the arguments, which are pointers and numbers of eight bytes.
int cuLaunchKernel(void* function, unsigned x, unsigned, unsigned, unsigned threads, unsigned, unsigned, unsigned,
                   void* stream, void** arguments, void**) {
  const std::string& name = *static_cast<std::string*>(function);
  if (const int error = did("launch", name + " " + std::to_string(x) + " x " + std::to_string(threads) + place(stream)))
    return error;
  constexpr std::size_t most = 3;  // that kernels of the tests read
  std::vector<std::uint64_t> values;
  for (std::size_t i = 0; i < most && state.on_launch; ++i)
    values.push_back(*static_cast<std::uint64_t*>(arguments[i]));
  return fake_do(
      [name, x, threads, values]() mutable {
        if (values.empty()) return;
        void* own[most];
        for (std::size_t i = 0; i < most; ++i) own[i] = &values[i];
        state.on_launch(name.c_str(), x, threads, own);
      },
      stream);
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

// The kernels of a program on a CUDA device. The device has a copy of each buffer that a kernel uses; who has written
// last has the values, and the other gets them when it needs them. Inputs whose values are on the device are used in
// place.
//
// With the setting cuda_graphs, runs become CUDA graphs as in cudagraphify_impl of torch/_inductor/compile_fx.py: the
// second run is done as the first, then recorded, and later ones are one launch. Inputs that were at the same place on
// the device in both are static; others have a static copy, which each run fills. What is recorded holds addresses, so
// it is made again when a static input is elsewhere, and left out of a run while somebody holds the last one's results.
#include <algorithm>
#include <atomic>
#include <future>
#include <mutex>
#include <set>
#include <thread>
#include <unordered_map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "codegen/cuda/driver.h"
#include "codegen/cuda/library_calls.h"
#include "codegen/program/program.h"
#include "core/base/whereabouts.h"

namespace partita::codegen {

namespace {

constexpr std::size_t alignment = 16;  // that kernels count on

struct Counts {
  std::mutex mutex;
  CudaGraphCounts counts;
};
Counts& counts() {
  static Counts all;
  return all;
}
void count_skip(const std::string& why) {
  const std::lock_guard lock(counts().mutex);
  ++counts().counts.skipped[why];
}

class CudaCode final : public LoadedCode {
 public:
  Result<void*> find(const std::string& symbol) override {
    const auto found = functions.find(symbol);
    if (found == functions.end()) return input_error("cuda.binary", "the code has no function " + symbol);
    return found->second;
  }
  std::vector<std::shared_ptr<void>> modules;
  std::unordered_map<std::string, void*> functions;
};

class DeviceKernels final : public KernelDevice {
 public:
  DeviceKernels(std::shared_ptr<CudaDevice> device, bool records)
      : owner_(std::move(device)), device_(*owner_), records_(records) {}
  DeviceKernels(const DeviceKernels&) = delete;
  DeviceKernels& operator=(const DeviceKernels&) = delete;

  void never_record(std::string why) override {
    if (!records_) return;
    records_ = false;
    count_skip(why);
  }

  Result<bool> begin(const Run& run) override {
    copies_.resize(run.buffers.size());
    actions_.clear();
    events_.clear();
    timed_ = run.timed;
    // Temporaries without elements have a place, too.
    const bool has_temporaries = std::ranges::any_of(run.buffers, [](const Memory& m) { return bool(m.in_arena); });
    if (has_temporaries && (!arena_ || run.arena_bytes > arena_room_)) {
      TRY(arena_, device_.block(run.arena_bytes));
      arena_room_ = run.arena_bytes;
    }
    if (faults_) TRY_DO(device_.clear(faults_->address(), fault_room_ * sizeof(DeviceFault)));
    const bool may_replay = recording_ && !timed_ && static_inputs_stay(run);
    if (recording_ && !timed_ && !may_replay) forget_recording();
    const bool replays = may_replay && !results_are_held();
    if (may_replay && !replays) count_skip("the results of the last run are still in use");
    recorded_now_ = records_ && !timed_ && !recording_ && runs_ > 0;
    for (std::size_t b = 0; b < run.buffers.size(); ++b) TRY_DO(bind(copies_[b], run.buffers[b], replays));
    if (!replays) return false;
    TRY_DO(device_.replay(recording_.get()));
    device_.note(recorded_names_);
    for (Copy& copy : copies_)
      if (copy.memory.written) copy.host_current = false, copy.current = true;
    const std::lock_guard lock(counts().mutex);
    ++counts().counts.replayed;
    return true;
  }

  Status run(const Kernel& kernel) override {
    std::vector<CudaDevice::Address> addresses;
    for (const int b : kernel.buffers) {
      Copy& copy = copies_[static_cast<std::size_t>(b)];
      TRY_DO(give_to_device(copy));
      addresses.push_back(copy.address);
    }
    if (kernel.workspace_bytes > workspace_room_) {  // in the first run only
      TRY(workspace_, device_.block(kernel.workspace_bytes));
      workspace_room_ = kernel.workspace_bytes;
    }
    for (const auto& [offset, bytes] : kernel.workspace) addresses.push_back(workspace_->address() + offset);
    TRY_DO(reserve_faults(kernel.number + 1));
    addresses.insert(addresses.end(), kernel.symbols.begin(), kernel.symbols.end());  // of the same size
    addresses.push_back(faults_->address() + kernel.number * sizeof(DeviceFault));
    const std::string name = fmt::format("{} ({})", kernel.name, fmt::join(kernel.origins, ", "));
    const std::vector<Launch> launches(kernel.launches.begin(), kernel.launches.end());
    TRY_DO(act({name, [this, launches, addresses = std::move(addresses), name](void* stream) mutable -> Status {
                  std::vector<void*> arguments;
                  for (CudaDevice::Address& a : addresses) arguments.push_back(&a);
                  for (const Launch& l : launches)
                    TRY_DO(device_.launch(l.function, l.blocks, l.threads, l.shared_bytes, arguments, name, stream));
                  return {};
                }}));
    return written(kernel.buffers);
  }

  Prepared prepare(const ExternContext& context, std::string& why_not) override {
    return prepare_on_device(owner_, context, why_not);
  }

  Status call(ExternStep& step, std::span<const int> read, std::span<const int> wrote,
              const std::string& name) override {
    std::vector<std::byte*> addresses(copies_.size());
    for (const std::span<const int> list : {read, wrote})
      for (const int b : list) {
        if (b < 0) continue;
        Copy& copy = copies_[static_cast<std::size_t>(b)];
        TRY_DO(give_to_device(copy));
        addresses[static_cast<std::size_t>(b)] = reinterpret_cast<std::byte*>(copy.address);
      }
    auto& own = static_cast<DeviceStep&>(step);  // of prepare()
    TRY_DO(act({name, [&own, addresses = std::move(addresses)](void* stream) {
                  return own.run_in(stream, addresses.data());
                }}));
    device_.note(name);
    return written(wrote);
  }

  Status give_to_host(std::span<const int> buffers, bool host_writes) override {
    for (const int b : buffers) {
      if (b < 0) continue;
      Copy& copy = copies_[static_cast<std::size_t>(b)];
      if (!copy.host_current && copy.current)
        TRY_DO(device_.to_host(copy.memory.host, copy.address, copy.memory.bytes));
      copy.host_current = true;
      if (host_writes) copy.current = false;
    }
    return {};
  }

  Result<std::shared_ptr<Storage>> result(int buffer) override {
    Copy& copy = copies_[static_cast<std::size_t>(buffer)];
    TRY_DO(give_to_device(copy));  // a result that nothing writes needs memory, too
    return Storage::remote(copy.memory.bytes, copy.own);
  }

  Result<std::vector<Fault>> end(std::size_t kernels) override {
    std::vector<Fault> out(kernels);
    if (recorded_now_) TRY_DO(record());
    actions_.clear();
    ++runs_;
    // Inputs may be results of other graphs, whose memory is free when nobody holds them.
    for (Copy& copy : copies_) copy.memory.remote.reset();
    std::vector<DeviceFault> met(std::min(kernels, fault_room_));
    if (met.empty()) {
      TRY_DO(device_.wait());
      return out;
    }
    TRY_DO(device_.to_host(met.data(), faults_->address(), met.size() * sizeof(DeviceFault)));
    for (std::size_t i = 0; i < met.size(); ++i) out[i] = {met[i].met != 0, met[i].which, met[i].position};
    return out;
  }

  Result<std::vector<double>> seconds() override {
    std::vector<double> out;
    for (const auto& [begin, end] : events_) {
      TRY(const double taken, device_.seconds_between(begin.get(), end.get()));
      out.push_back(taken);
    }
    return out;
  }

 private:
  /// As prelude.cuh has it.
  struct DeviceFault {
    std::uint32_t met = 0;
    std::int64_t which = 0, position = 0;
  };
  struct Copy {
    Memory memory;
    CudaDevice::Address address = 0;         ///< where kernels find it
    std::shared_ptr<RemoteMemory> own;       ///< memory of this buffer alone; null: none yet
    std::size_t room = 0;                    ///< bytes of `own`
    std::shared_ptr<RemoteMemory> recorded;  ///< of a result: what the recording writes
    CudaDevice::Address last_remote = 0;     ///< where the last run's input was on the device; 0: on the host
    bool moves = false;                      ///< an input that was elsewhere in some run
    bool current = false;                    ///< the device has the last values
    bool host_current = false;               ///< the host has them
  };
  /// Work that is put into a stream, again where it is recorded.
  struct Action {
    std::string name;
    std::function<Status(void* stream)> put;
  };

  static CudaDevice::Address remote_address(const Memory& memory) {
    return memory.remote ? memory.remote->address() + memory.offset : 0;
  }

  /// Work for the device; what is recorded later is kept.
  Status act(Action action) {
    if (timed_) {
      TRY(std::shared_ptr<void> begin, device_.record_event());
      TRY_DO(action.put(device_.stream()));
      TRY(std::shared_ptr<void> end, device_.record_event());
      events_.emplace_back(std::move(begin), std::move(end));
    } else {
      TRY_DO(action.put(device_.stream()));
    }
    if (recorded_now_) actions_.push_back(std::move(action));
    return {};
  }

  Status written(std::span<const int> buffers) {
    for (const int b : buffers)
      if (b >= 0 && copies_[static_cast<std::size_t>(b)].memory.written)
        copies_[static_cast<std::size_t>(b)].host_current = false;
    // A process that watches for crashes has to know the kernel, so kernels run one at a time.
    return watched() ? device_.wait() : Status();
  }

  /// Are all inputs that the recording reads in place still at the same addresses?
  bool static_inputs_stay(const Run& run) {
    for (std::size_t b = 0; b < run.buffers.size(); ++b) {
      Copy& copy = copies_[b];
      if (static_.contains(b) && remote_address(run.buffers[b]) != copy.address) copy.moves = true;
    }
    return std::ranges::none_of(static_, [&](std::size_t b) { return copies_[b].moves; });
  }

  bool results_are_held() const {
    return std::ranges::any_of(copies_, [](const Copy& copy) {
      return copy.recorded && copy.recorded.use_count() > (copy.own == copy.recorded ? 2 : 1);
    });
  }

  void forget_recording() {
    recording_.reset();
    static_.clear();
    for (Copy& copy : copies_) copy.recorded.reset();
  }

  /// A buffer of a run that begins. Inputs that are copied are copied now.
  Status bind(Copy& copy, const Memory& memory, bool replays) {
    const bool keeps = copy.memory.fixed && memory.fixed && copy.memory.host == memory.host && copy.current &&
                       !copy.last_remote && !memory.remote;
    const CudaDevice::Address before = std::exchange(copy.last_remote, remote_address(memory));
    copy.memory = memory;
    copy.current = keeps;
    copy.host_current = memory.holds && !memory.remote;
    if (memory.in_arena) copy.address = arena_->address() + *memory.in_arena;
    if (memory.result) {
      if (replays)
        copy.own = copy.recorded;
      else if (copy.own && copy.own.use_count() > 1)
        copy.own.reset();                                   // somebody has the last results, or a recording writes them
      std::atomic_thread_fence(std::memory_order_acquire);  // after the last reads by the thread that released it
      copy.address = copy.own ? copy.own->address() : 0;
    }
    if (memory.remote) {
      const CudaDevice::Address at = copy.last_remote;
      copy.moves |= runs_ > 0 && before != at;
      // While runs are recorded, an input that moves is copied to where the recording reads it.
      const bool in_place = at % alignment == 0 && (memory.written || !records_ || !copy.moves);
      if (in_place) {
        copy.address = at;
      } else {
        TRY_DO(reserve(copy));
        TRY_DO(device_.copy(copy.address, at, memory.bytes));
      }
      copy.current = true;
    } else if (memory.holds && replays) {
      return give_to_device(copy);
    }
    return {};
  }

  /// Memory of its own for a buffer that has no place.
  Status reserve(Copy& copy) {
    if (copy.memory.in_arena) return {};
    const std::size_t bytes = copy.memory.bytes;
    // Who has a result copies all of its memory, so that has no more than the result's bytes.
    if (!copy.own || bytes > copy.room || (copy.memory.result && bytes < copy.room)) {
      copy.own.reset();
      TRY(copy.own, device_.block(bytes));
      copy.room = bytes;
      copy.current = false;
    }
    copy.address = copy.own->address();
    return {};
  }

  Status give_to_device(Copy& copy) {
    if (!copy.current) TRY_DO(reserve(copy));
    if (!copy.current && copy.host_current)
      TRY_DO(device_.to_device(copy.address, copy.memory.host, copy.memory.bytes));
    copy.current = true;
    return {};
  }

  /// Records what this run has done. What the device refuses to record runs as it did.
  Status record() {
    auto made = device_.record([&](void* stream) -> Status {
      for (Action& action : actions_) TRY_DO(action.put(stream));
      return {};
    });
    if (!made) {
      never_record("recording failed: " + made.error().message);
      return device_.wait();
    }
    recording_ = *std::move(made);
    recorded_names_.clear();
    for (const Action& action : actions_) recorded_names_ += (recorded_names_.empty() ? "" : ", ") + action.name;
    for (std::size_t b = 0; b < copies_.size(); ++b) {
      Copy& copy = copies_[b];
      if (copy.memory.remote && copy.address == copy.last_remote) static_.insert(b);
      if (copy.memory.result) copy.recorded = copy.own;
    }
    const std::lock_guard lock(counts().mutex);
    ++counts().counts.recorded;
    return {};
  }

  Status reserve_faults(std::size_t kernels) {
    if (kernels <= fault_room_) return {};
    const std::size_t room = std::max<std::size_t>(kernels * 2, 64);
    TRY(const std::shared_ptr<RemoteMemory> larger, device_.block(room * sizeof(DeviceFault)));
    TRY_DO(device_.clear(larger->address(), room * sizeof(DeviceFault)));
    // What kernels have reported is kept.
    if (faults_) TRY_DO(device_.copy(larger->address(), faults_->address(), fault_room_ * sizeof(DeviceFault)));
    faults_ = larger;
    fault_room_ = room;
    return {};
  }

  std::shared_ptr<CudaDevice> owner_;
  CudaDevice& device_;
  std::vector<Copy> copies_;  ///< by plan buffer
  std::shared_ptr<RemoteMemory> arena_, workspace_, faults_;
  std::size_t arena_room_ = 0, workspace_room_ = 0, fault_room_ = 0;

  bool timed_ = false;
  std::vector<std::pair<std::shared_ptr<void>, std::shared_ptr<void>>> events_;  ///< begin and end, by action

  bool records_ = false;             ///< its runs become CUDA graphs
  bool recorded_now_ = false;        ///< this one does
  std::int64_t runs_ = 0;            ///< that ended: from then on no memory is asked for but results'
  std::vector<Action> actions_;      ///< of this run, in order
  std::shared_ptr<void> recording_;  ///< null: none
  std::string recorded_names_;       ///< its kernels, for errors
  std::set<std::size_t> static_;     ///< the buffers that the recording reads where the caller has them
};

}  // namespace

CudaGraphCounts cuda_graph_counts() {
  const std::lock_guard lock(counts().mutex);
  return counts().counts;
}

Result<std::shared_ptr<LoadedCode>> load_for(const std::shared_ptr<CudaDevice>& device,
                                             std::span<const ProgramKernel> kernels,
                                             std::span<const std::string> objects) {
  auto code = std::make_shared<CudaCode>();
  for (const std::string& cubin : objects) {
    TRY(auto module, device->load(cubin));
    code->modules.push_back(std::move(module));
  }
  // A kernel is in one of the binaries.
  const auto find = [&](const Phase& f) -> Result<void*> {
    Result<void*> found = input_error("cuda.binary", "the stored code of a device is damaged");
    for (auto module = code->modules.begin(); module != code->modules.end() && !found; ++module)
      found = device->function(module->get(), f.symbol, f.shared_bytes);
    return found;
  };
  for (const ProgramKernel& kernel : kernels)
    for (const Phase& f : kernel.entry.phases) {
      if (code->functions.contains(f.symbol)) continue;
      TRY(void* function, find(f));
      code->functions.emplace(f.symbol, function);
    }
  return std::shared_ptr<LoadedCode>(std::move(code));
}

Result<std::vector<std::string>> compile_for(const CudaDevice& device, std::span<const CudaKernel> kernels) {
  TRY(const CudaCompiler compiler, find_cuda_compiler());
  // The prelude takes as long as several small kernels.
  constexpr std::size_t least_bytes = 16 << 10;
  std::size_t bytes = 0;
  for (const CudaKernel& k : kernels) bytes += k.text.size();
  const std::size_t threads = std::max(1U, std::thread::hardware_concurrency());
  const std::size_t parts = std::clamp<std::size_t>(bytes / least_bytes, 1, threads);
  std::vector<std::string> texts(parts, std::string(cuda_prelude()));
  for (const CudaKernel& k : kernels) *std::ranges::min_element(texts, {}, &std::string::size) += "\n" + k.text;
  std::vector<std::future<Result<CudaBinary>>> made;
  for (const std::string& text : texts)
    made.push_back(std::async(std::launch::async, [&] { return compile_cuda(compiler, text, device.architecture()); }));
  std::vector<std::string> cubins;
  Status failed;
  for (auto& each : made) {
    Result<CudaBinary> binary = each.get();
    if (binary)
      cubins.push_back(std::move(binary->cubin));
    else if (failed)
      failed = std::move(binary).error();
  }
  if (!failed) return std::move(failed).error();
  return cubins;
}

std::unique_ptr<KernelDevice> kernel_device(std::shared_ptr<CudaDevice> device, bool records) {
  return std::make_unique<DeviceKernels>(std::move(device), records);
}

}  // namespace partita::codegen

// Runs CUDA blocks on the CPU: threads are fibers that change at barriers and warp exchanges, or a plain loop where
// none needs another. Checks bounds, alignment and races of each access, and that all threads reach a barrier.
#include "codegen/cuda/emulate_run.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <memory>
#include <optional>

#include <boost/context/detail/fcontext.hpp>
#include <fmt/format.h>
#include <sanitizer/asan_interface.h>
#include <sys/mman.h>

#include "codegen/cuda/emulate_access.h"
#include "core/base/check.h"

namespace partita::codegen {
namespace {

namespace context = boost::context::detail;

constexpr unsigned warp_threads = 32, block_threads = 1024, slot_bytes = 64;
constexpr std::size_t stack_bytes = 64 << 10, shared_alignment = 128;
constexpr std::size_t around_shared = 64 << 10;  // that holds nothing else: accesses past the ends are told from others
constexpr std::size_t all_stacks = block_threads * stack_bytes;
constexpr std::size_t most_checked = std::size_t{1} << 24;  // elements of a memory, whose check takes 64 bytes of each

/// As emulate_prelude.cuh declares it.
struct Index {
  unsigned x = 0, y = 0, z = 0;
};
struct Place {
  Index thread, block, block_size{1, 1, 1}, grid{1, 1, 1};
};

/// A thread of a block.
struct Lane {
  enum class State : std::uint8_t { Ready, AtBlock, AtWarp, Done };
  Place place;
  State state = State::Ready;
  context::fcontext_t fiber = nullptr;
  unsigned line = 0;  ///< at which it waits
  unsigned mask = 0;  ///< AtWarp: the lanes that it waits for
  int predicate = 0;
  const void* mine = nullptr;  ///< AtWarp: what it gives the others
  unsigned bytes = 0;
};

using ThreadFunction = void (*)(void* const* arguments, const std::int64_t* symbols);

/// What partita_launch gets.
struct Function {
  ThreadFunction thread = nullptr;
  unsigned threads = 1;
  std::size_t shared_bytes = 0;
  bool cooperates = false;
  const char* names = "";  ///< of the pointers: "in:0,out:4", with the bytes of an element that is written; 0: none is
};

std::string at_line(unsigned line) {
  return line ? fmt::format("line {}", line) : "a line of the prelude";
}

/// Runs one block after another, for one thread of the machine.
class Blocks {
 public:
  Blocks() = default;
  Blocks(const Blocks&) = delete;
  Blocks& operator=(const Blocks&) = delete;
  ~Blocks() {
    if (stacks_) ::munmap(stacks_, all_stacks);
  }
  void run(const Function& function, void* const* arguments, const std::int64_t* symbols, EmulatedLaunch& launch,
           std::int64_t begin, std::int64_t end);
  const Place& here() const { return lanes_[current_].place; }
  std::byte* shared() { return base_; }
  unsigned wait_block(int predicate, unsigned line);
  const std::byte* wait_warp(unsigned mask, const void* mine, unsigned bytes, unsigned line);
  unsigned active() const;
  void access(std::byte* at, std::uint64_t bytes, std::uint64_t how);
  /// Ends the launch with this error.
  void fail(const char* code, std::string what);
  /// The same on a fiber, which does not go on.
  void leave(const char* code, std::string what) {
    fail(code, std::move(what));
    suspend(Lane::State::Done);
  }
  std::string who(unsigned fiber) const {
    const Place& place = lanes_[fiber].place;
    return fmt::format("thread {} of block {}", place.thread.x, place.block.x);
  }
  unsigned current() const { return current_; }

 private:
  static void enter(context::transfer_t from);
  bool describe_memory();
  Touch touch(std::uint64_t how) const;
  void body();
  void start(unsigned fiber);
  void resume(unsigned fiber);
  void suspend(Lane::State state);
  void run_block();
  bool run_warp(unsigned first);
  bool exchange(unsigned first);
  void stuck_warp(unsigned thread);
  bool release_block();
  unsigned lanes_of(unsigned first) const { return std::min(function_->threads - first, warp_threads); }
  std::byte* stack(unsigned fiber) const { return stacks_ + fiber * stack_bytes; }
  std::string line(const char* does, std::uint64_t bytes, unsigned at) const {
    return fmt::format("{} {} {} byte{} at {}", who(current_), does, bytes, bytes == 1 ? "" : "s", at_line(at));
  }

  std::vector<Lane> lanes_{block_threads};
  std::vector<std::byte> shared_;
  std::byte* base_ = nullptr;  ///< of the block's shared memory
  MemoryCheck shared_check_;
  BlockTime time_;
  std::vector<std::byte> slots_ = std::vector<std::byte>(std::size_t{block_threads} * slot_bytes);
  std::byte* stacks_ = nullptr;
  context::fcontext_t scheduler_ = nullptr;
  unsigned current_ = 0;
  bool failed_ = false;
  unsigned votes_ = 0;  ///< predicates given at the last barrier

  const Function* function_ = nullptr;
  void* const* arguments_ = nullptr;
  const std::int64_t* symbols_ = nullptr;
  EmulatedLaunch* launch_ = nullptr;
  std::int64_t begin_ = 0, end_ = 0;
  std::size_t last_ = 0;  ///< the memory that the last access was to
};

/// Of this thread of the machine. It stays, since stacks are made only once.
Blocks& blocks() {
  thread_local const auto own = std::make_unique<Blocks>();
  return *own;
}

void Blocks::fail(const char* code, std::string what) {
  if (!launch_->failed.exchange(true)) {
    launch_->error = {code, std::move(what)};
  }
  failed_ = true;
}

void Blocks::run(const Function& function, void* const* arguments, const std::int64_t* symbols, EmulatedLaunch& launch,
                 std::int64_t begin, std::int64_t end) {
  function_ = &function;
  arguments_ = arguments;
  symbols_ = symbols;
  launch_ = &launch;
  // What was left when a launch failed is not unwound.
  if (failed_) ASAN_UNPOISON_MEMORY_REGION(stacks_, all_stacks);
  failed_ = false;
  last_ = 0;
  CHECK(function.threads >= 1 && function.threads <= block_threads, "threads of a CUDA block");
  if (!stacks_) {
    void* memory = ::mmap(nullptr, all_stacks, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (memory == MAP_FAILED) return fail("codegen.cuda_memory", "there is no memory for the stacks of a block");
    stacks_ = static_cast<std::byte*>(memory);
  }
  const std::size_t room = 2 * around_shared + shared_alignment + function.shared_bytes;
  if (shared_.size() < room) shared_.resize(room);
  base_ = reinterpret_cast<std::byte*>(
      (reinterpret_cast<std::uintptr_t>(shared_.data()) + around_shared + shared_alignment - 1) &
      ~(shared_alignment - 1));
  if (!shared_check_.resize(function.shared_bytes) || !describe_memory())
    return fail("codegen.cuda_memory", "there is no memory to check accesses with");
  for (unsigned t = 0; t < function.threads; ++t)
    lanes_[t].place = {{t, 0, 0}, {}, {function.threads, 1, 1}, {static_cast<unsigned>(launch.blocks), 1, 1}};
  if (!function.cooperates) {
    begin_ = begin;
    end_ = end;
    start(0);
    return resume(0);
  }
  for (std::int64_t block = begin; block < end && !failed_ && !launch.failed.load(std::memory_order_relaxed); ++block) {
    for (unsigned t = 0; t < function.threads; ++t) lanes_[t].place.block.x = static_cast<unsigned>(block);
    run_block();
  }
}

/// Reads the names of the kernel's memory, and makes checks of what it writes.
bool Blocks::describe_memory() {
  const std::lock_guard guard(launch_->lock);
  if (std::exchange(launch_->described, true)) return true;
  std::string_view names = function_->names;
  for (EmulatedLaunch::Memory& m : launch_->memory) {
    const std::string_view one = names.substr(0, names.find(','));
    names.remove_prefix(std::min(names.size(), one.size() + 1));
    m.name = one.substr(0, one.rfind(':'));
    m.item = 0;
    if (m.name.size() < one.size()) std::from_chars(one.data() + m.name.size() + 1, one.data() + one.size(), m.item);
    m.check.reset();
    if (m.item == 0 || m.bytes / m.item > most_checked) continue;
    m.check = std::make_shared<MemoryCheck>();
    if (m.bytes && !m.check->resize((m.bytes + m.item - 1) / m.item)) return false;
  }
  return true;
}

Touch Blocks::touch(std::uint64_t how) const {
  const Place& place = lanes_[current_].place;
  return {.block = place.block.x,
          .epoch = time_.epoch,
          .warp_epoch = time_.of_warps[place.thread.x / warp_threads],
          .thread = place.thread.x,
          .line = static_cast<unsigned>(how >> access_line_shift),
          .writes = (how & access_write) != 0,
          .atomic = (how & access_atomic) != 0};
}

void Blocks::enter(context::transfer_t from) {
  Blocks& own = *static_cast<Blocks*>(from.data);
  own.scheduler_ = from.fctx;
  own.body();
  own.suspend(Lane::State::Done);
}

void Blocks::body() {
  if (function_->cooperates) return function_->thread(arguments_, symbols_);
  Place& place = lanes_[0].place;
  for (std::int64_t block = begin_; block < end_; ++block) {
    place.block.x = static_cast<unsigned>(block);
    for (unsigned t = 0; t < function_->threads; ++t) {
      place.thread.x = t;
      function_->thread(arguments_, symbols_);
    }
  }
}

void Blocks::start(unsigned fiber) {
  lanes_[fiber].state = Lane::State::Ready;
  lanes_[fiber].fiber = context::make_fcontext(stack(fiber) + stack_bytes, stack_bytes, enter);
}

void Blocks::resume(unsigned fiber) {
  current_ = fiber;
  lanes_[fiber].fiber = context::jump_fcontext(lanes_[fiber].fiber, this).fctx;
}

void Blocks::suspend(Lane::State state) {
  lanes_[current_].state = state;
  scheduler_ = context::jump_fcontext(scheduler_, nullptr).fctx;
}

void Blocks::run_block() {
  std::memset(base_, 0xff, function_->shared_bytes);  // NaN, which shows reads before the first write
  ++time_.epoch;
  for (unsigned t = 0; t < function_->threads; ++t) start(t);
  do {
    for (unsigned first = 0; first < function_->threads; first += warp_threads)
      while (run_warp(first) && !failed_) {
      }
  } while (!failed_ && release_block());
}

/// Runs each thread of a warp until it waits or ends. True if some of them may go on.
bool Blocks::run_warp(unsigned first) {
  for (unsigned t = first; t < first + lanes_of(first); ++t)
    if (lanes_[t].state == Lane::State::Ready) {
      resume(t);
      if (failed_) return false;
    }
  return exchange(first);
}

/// Resumes the threads that wait for lanes that have all arrived. True if there were any.
bool Blocks::exchange(unsigned first) {
  const unsigned lanes = lanes_of(first);
  bool released = false;
  for (unsigned lane = 0; lane < lanes; ++lane) {
    const Lane& asks = lanes_[first + lane];
    if (asks.state != Lane::State::AtWarp) continue;
    const unsigned mask = asks.mask & (lanes == 32 ? ~0u : (1u << lanes) - 1);
    bool all = true;
    for (unsigned other = 0; other < lanes && all; ++other)
      all = !(mask >> other & 1) ||
            (lanes_[first + other].state == Lane::State::AtWarp && lanes_[first + other].mask == asks.mask);
    if (!all) continue;
    for (unsigned other = 0; other < lanes; ++other) {
      if (!(mask >> other & 1)) continue;
      Lane& mate = lanes_[first + other];
      if (mate.bytes) std::memcpy(slots_.data() + (first + other) * slot_bytes, mate.mine, mate.bytes);
      mate.state = Lane::State::Ready;
    }
    if (asks.bytes == 0) time_.warp_waited(first / warp_threads);
    released = true;
  }
  return released;
}

void Blocks::stuck_warp(unsigned thread) {
  const Lane& asks = lanes_[thread];
  const unsigned first = thread / warp_threads * warp_threads;
  for (unsigned lane = 0; lane < lanes_of(first); ++lane) {
    const Lane& mate = lanes_[first + lane];
    if (!(asks.mask >> lane & 1) || (mate.state == Lane::State::AtWarp && mate.mask == asks.mask)) continue;
    std::string does = "has ended";
    if (mate.state == Lane::State::AtBlock) does = "waits for the block at " + at_line(mate.line);
    if (mate.state == Lane::State::AtWarp)
      does = fmt::format("waits for the lanes {:#010x} at {}", mate.mask, at_line(mate.line));
    return fail("codegen.cuda_barrier",
                fmt::format("{} waits at {} for the lanes {:#010x} of its warp, but thread {} {}", who(thread),
                            at_line(asks.line), asks.mask, first + lane, does));
  }
}

/// What happens when no thread can go on alone. True if the block goes on.
bool Blocks::release_block() {
  std::optional<unsigned> waits, ended;
  votes_ = 0;
  for (unsigned t = 0; t < function_->threads; ++t) {
    const Lane& lane = lanes_[t];
    if (lane.state == Lane::State::AtWarp) return stuck_warp(t), false;
    if (lane.state == Lane::State::Done) {
      ended = t;
      continue;
    }
    votes_ += lane.predicate != 0;
    if (!waits) waits = t;
    const unsigned other = lanes_[*waits].line;
    if (lane.line && other && lane.line != other)
      return fail("codegen.cuda_barrier", fmt::format("{} waits for the block at {}, but thread {} at {}", who(*waits),
                                                      at_line(other), t, at_line(lane.line))),
             false;
  }
  if (!waits) return false;
  if (ended)
    return fail("codegen.cuda_barrier", fmt::format("{} waits for the block at {}, but thread {} ended without it",
                                                    who(*waits), at_line(lanes_[*waits].line), *ended)),
           false;
  ++time_.epoch;
  for (unsigned t = 0; t < function_->threads; ++t) lanes_[t].state = Lane::State::Ready;
  return true;
}

unsigned Blocks::wait_block(int predicate, unsigned line) {
  Lane& lane = lanes_[current_];
  lane.predicate = predicate;
  lane.line = line;
  suspend(Lane::State::AtBlock);
  return votes_;
}

const std::byte* Blocks::wait_warp(unsigned mask, const void* mine, unsigned bytes, unsigned line) {
  Lane& lane = lanes_[current_];
  lane.mask = mask;
  lane.mine = mine;
  lane.bytes = std::min(bytes, slot_bytes);
  lane.line = line;
  const unsigned first = current_ / warp_threads * warp_threads;
  if (!(mask >> (current_ - first) & 1)) {
    leave("codegen.cuda_barrier", fmt::format("{} is not among the lanes {:#010x} that it waits for at {}",
                                              who(current_), mask, at_line(line)));
  }
  suspend(Lane::State::AtWarp);
  return slots_.data() + first * slot_bytes;
}

unsigned Blocks::active() const {
  const unsigned first = current_ / warp_threads * warp_threads;
  unsigned mask = 0;
  for (unsigned lane = 0; lane < lanes_of(first); ++lane)
    mask |= unsigned{lanes_[first + lane].state != Lane::State::Done} << lane;
  return mask;
}

void Blocks::access(std::byte* at, std::uint64_t bytes, std::uint64_t how) {
  if (bytes == 0) return;
  const bool writes = how & access_write;
  const auto line_at = static_cast<unsigned>(how >> access_line_shift);
  const std::uint64_t align = std::uint64_t{1} << (how >> access_align_shift & 0xff);
  const char* does = writes ? "writes" : "reads";
  if (reinterpret_cast<std::uintptr_t>(at) & (align - 1)) {
    return leave("codegen.cuda_alignment",
                 fmt::format("{}, at an address that is no multiple of {}", line(does, bytes, line_at), align));
  }
  const auto within = [&](const std::byte* begin, std::size_t size) {
    return at >= begin && bytes <= size && static_cast<std::size_t>(at - begin) <= size - bytes;
  };
  Touch mine = touch(how);
  const auto race = [&](MemoryCheck& check, std::size_t offset, std::size_t end, unsigned item, std::string_view of) {
    const auto other = check.touch(offset / item, (end + item - 1) / item, mine);
    if (!other) return;
    const std::string block = other->block == mine.block ? "" : fmt::format(" of block {}", other->block);
    leave("codegen.cuda_race",
          fmt::format("{} of {}, from byte {} on, which thread {}{} {} at {} with no barrier between",
                      line(does, bytes, line_at), of, offset, unsigned{other->thread}, block,
                      other->writes ? "writes" : "reads", at_line(other->line)));
  };
  if (within(base_, function_->shared_bytes)) {
    const auto offset = static_cast<std::size_t>(at - base_);
    mine.block = 0;  // each block has its own
    return race(shared_check_, offset, offset + bytes, 1, "shared memory");
  }
  auto& memory = launch_->memory;
  // An atomic operation on a small type exchanges the whole word around it.
  const std::size_t word = how & access_atomic ? 3 : 0;
  const auto is_in = [&](std::size_t i) {
    return i < memory.size() && within(memory[i].begin, (memory[i].bytes + word) & ~word);
  };
  if (!is_in(last_))
    for (last_ = 0; last_ < memory.size() && !is_in(last_);) ++last_;
  if (last_ < memory.size()) {
    const EmulatedLaunch::Memory& m = memory[last_];
    if (!m.check) return;
    const auto offset = static_cast<std::size_t>(at - m.begin);
    return race(*m.check, offset, std::min(offset + bytes, m.bytes), m.item, m.name);
  }
  if (within(stack(current_), stack_bytes) || within(slots_.data(), slots_.size())) return;
  // The access most likely meant the nearest memory, which the error names.
  std::string what = "outside of all of its memory";
  std::uint64_t nearest = std::uint64_t{1} << 32;
  for (const EmulatedLaunch::Memory& m : memory) {
    const std::ptrdiff_t offset = at - m.begin;
    const std::uint64_t off = offset < 0
                                  ? static_cast<std::uint64_t>(-offset)
                                  : static_cast<std::uint64_t>(offset) + bytes -
                                        std::min<std::uint64_t>(m.bytes, static_cast<std::uint64_t>(offset) + bytes);
    if (!m.begin || off >= nearest || m.name.empty()) continue;
    nearest = off;
    what = fmt::format("at byte {} of {}, which has {}", offset, m.name, m.bytes);
  }
  if (const std::ptrdiff_t offset = at - base_;
      function_->shared_bytes && offset >= 0 && static_cast<std::uint64_t>(offset) < nearest &&
      static_cast<std::size_t>(offset) < function_->shared_bytes + around_shared)
    what = fmt::format("at byte {} of shared memory, which has {}", offset, function_->shared_bytes);
  leave("codegen.cuda_bounds", fmt::format("{}, {}", line(does, bytes, line_at), what));
}

}  // namespace

#define PARTITA_EMULATION extern "C" __attribute__((visibility("hidden")))
PARTITA_EMULATION const void* partita_here() {
  return &blocks().here();
}
PARTITA_EMULATION std::byte* partita_shared() {
  return blocks().shared();
}
PARTITA_EMULATION unsigned partita_wait_block(int predicate, unsigned line) {
  return blocks().wait_block(predicate, line);
}
PARTITA_EMULATION const void* partita_wait_warp(unsigned mask, const void* mine, unsigned bytes, unsigned line) {
  return blocks().wait_warp(mask, mine, bytes, line);
}
PARTITA_EMULATION void partita_wait_nobody(unsigned mask, unsigned lane, unsigned line) {
  Blocks& b = blocks();
  b.leave("codegen.cuda_barrier",
          fmt::format("{} asks at {} for the value of lane {}, which is not among the lanes {:#010x}",
                      b.who(b.current()), at_line(line), lane, mask));
}
PARTITA_EMULATION void partita_wait_trap(unsigned line) {
  Blocks& b = blocks();
  b.leave("codegen.cuda_trap", fmt::format("{} traps at {}", b.who(b.current()), at_line(line)));
}
PARTITA_EMULATION unsigned partita_active() {
  return blocks().active();
}
PARTITA_EMULATION void partita_access(std::byte* at, std::uint64_t bytes, std::uint64_t how) {
  blocks().access(at, bytes, how);
}
PARTITA_EMULATION void partita_launch(ThreadFunction thread, unsigned threads, std::size_t shared, bool cooperates,
                                      const char* names, void* const* arguments, const std::int64_t* symbols,
                                      EmulatedLaunch* launch, std::int64_t begin, std::int64_t end) {
  const Function function{thread, threads, shared, cooperates, names};
  blocks().run(function, arguments, symbols, *launch, begin, end);
}

std::span<const RuntimeFunction> emulation_functions() {
#define PARTITA_ROW(name) {#name, reinterpret_cast<void*>(name)}
  static const std::vector<RuntimeFunction> table = {
      PARTITA_ROW(partita_here),      PARTITA_ROW(partita_shared),      PARTITA_ROW(partita_wait_block),
      PARTITA_ROW(partita_wait_warp), PARTITA_ROW(partita_wait_nobody), PARTITA_ROW(partita_wait_trap),
      PARTITA_ROW(partita_active),    PARTITA_ROW(partita_access),      PARTITA_ROW(partita_launch),
  };
#undef PARTITA_ROW
  return table;
}

}  // namespace partita::codegen

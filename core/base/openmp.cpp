// The part of libgomp's interface that oneDNN and parallel_for() call, with threads of our own. libgomp's threads wait
// for each other in loops of several milliseconds, so on a machine that does other work too a step took up to 8 times
// as long; how they wait is read from the environment once, before main(). Programs export these functions, by which
// oneDNN's calls reach them. Libraries of `partita compile` do not have them: they live in somebody else's process,
// with its libgomp.
#include "core/base/openmp.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include <pthread.h>
#include <sched.h>

namespace {

using Work = void (*)(void*);

inline void pause_processor() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#endif
}

/// Waits until `value` is not `old`. Steps of a model follow each other within microseconds, and to wake a thread takes
/// tens of them; then the processor is left to others, at first for a moment.
template <class T>
T wait_while(const std::atomic<T>& value, T old) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::microseconds attentive{20}, patient{200};
  T now = value.load(std::memory_order_acquire);
  const auto begin = Clock::now();
  for (auto waited = Clock::duration{}; now == old && waited < patient; waited = Clock::now() - begin) {
    for (int i = 0; i < 16 && now == old; ++i) {
      pause_processor();
      now = value.load(std::memory_order_acquire);
    }
    if (now == old && waited > attentive) sched_yield();
  }
  while (now == old) {
    value.wait(old, std::memory_order_acquire);
    now = value.load(std::memory_order_acquire);
  }
  return now;
}

class Team;
/// What the thread computes: share `index` of the `count` that `team` runs, and outside of them the only one.
struct Share {
  Team* team = nullptr;
  int index = 0, count = 1;
};
thread_local Share share;
/// The thread's share while this lives, however its work ends.
class InShare {
 public:
  explicit InShare(const Share& now) : outer_(std::exchange(share, now)) {}
  ~InShare() { share = outer_; }
  InShare(const InShare&) = delete;
  InShare& operator=(const InShare&) = delete;

 private:
  const Share outer_;
};
thread_local int wanted_threads = 0;

/// The threads that serve one thread's parallel regions. A region has at most as many shares as the team has threads. A
/// thread begins with its own share, whose data its caches know; then it takes those that no thread has begun, so
/// nobody waits for a thread that the machine does not run. Shares may wait for one another: each thread is in at most
/// one, so for each that is not begun a thread is left.
class Team {
 public:
  explicit Team(int threads) : size_(threads), begun_(static_cast<std::size_t>(threads)) {
    for (int i = 1; i < threads; ++i) others_.emplace_back([this, i] { serve(i); });
  }
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;
  ~Team() {
    publish(0);
    others_.clear();
  }

  int size() const { return size_; }

  /// Raises what the first share that raised did, once no share runs any more. Shares that wait at barriers must not
  /// raise.
  void run(Work work, void* data, int count) {
    work_ = work;
    data_ = data;
    wanted_threads_ = wanted_threads;
    arrived_.store(0, std::memory_order_relaxed);
    left_.store(count, std::memory_order_relaxed);
    const std::uint64_t region = publish(count);
    take_shares(region, 0);
    for (int left = left_.load(std::memory_order_acquire); left > 0;) left = wait_while(left_, left);
    if (raised_) std::rethrow_exception(std::exchange(raised_, nullptr));
  }

  /// Returns when all `count` shares of the region are here.
  void barrier(int count) {
    const int all = arrived_.fetch_add(1, std::memory_order_acq_rel) + 1;
    const int round = (all + count - 1) / count;  // counted from the region's first
    if (all == round * count) {
      arrived_.notify_all();
      return;
    }
    for (int now = all; now < round * count;) now = wait_while(arrived_, now);
  }

 private:
  /// A region is known by its number, above the number of its shares.
  static constexpr int count_bits = 16;
  static constexpr std::uint64_t count_mask = (1U << count_bits) - 1;

  std::uint64_t publish(int count) {
    const std::uint64_t region = (((region_.load(std::memory_order_relaxed) >> count_bits) + 1) << count_bits) |
                                 static_cast<std::uint64_t>(count);
    region_.store(region, std::memory_order_seq_cst);
    region_.notify_all();
    return region;
  }

  void serve(int index) {
    std::uint64_t region = 0;
    for (;;) {
      region = wait_while(region_, region);
      if ((region & count_mask) == 0) return;
      take_shares(region, index);
    }
  }

  void take_shares(std::uint64_t region, int own) {
    const int count = static_cast<int>(region & count_mask);
    for (int i = 0; i < count; ++i) {
      const int index = (own + i) % count;
      if (begin(region, index)) run_share(index, count);
    }
  }

  /// Only one thread begins a share. Who comes late to a region finds all its shares begun, there or in a later one.
  bool begin(std::uint64_t region, int index) {
    std::atomic<std::uint64_t>& begun = begun_[static_cast<std::size_t>(index)].region;
    std::uint64_t before = begun.load(std::memory_order_relaxed);
    return before < region && begun.compare_exchange_strong(before, region, std::memory_order_acq_rel);
  }

  void run_share(int index, int count) {
    try {
      const InShare within({this, index, count});
      wanted_threads = wanted_threads_;
      work_(data_);
    } catch (...) {
      const std::lock_guard lock(raised_mutex_);
      if (!raised_) raised_ = std::current_exception();
    }
    if (left_.fetch_sub(1, std::memory_order_acq_rel) == 1) left_.notify_one();
  }

  struct alignas(64) Begun {
    std::atomic<std::uint64_t> region{0};
  };

  const int size_;
  std::vector<Begun> begun_;
  alignas(64) std::atomic<std::uint64_t> region_{0};
  Work work_ = nullptr;
  void* data_ = nullptr;
  int wanted_threads_ = 0;
  std::mutex raised_mutex_;
  std::exception_ptr raised_;  ///< by a share of the region
  alignas(64) std::atomic<int> left_{0};
  std::atomic<int> arrived_{0};
  std::vector<std::jthread> others_;
};

/// A process that was forked has none of its parent's threads.
std::atomic<int> forks = 0;

struct OwnTeam {
  std::unique_ptr<Team> team;
  int forks_before = forks;

  Team& of_size(int threads) {
    if (forks_before != forks) {
      static_cast<void>(team.release());  // its threads cannot be joined
      forks_before = forks;
    }
    if (!team || team->size() < threads) {
      team.reset();
      team = std::make_unique<Team>(threads);
    }
    return *team;
  }
  ~OwnTeam() {
    if (forks_before != forks) static_cast<void>(team.release());
  }
};

}  // namespace

void omp_set_num_threads(int threads) {
  wanted_threads = threads;
}
int omp_get_max_threads() {
  static const int processors = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  return wanted_threads > 0 ? wanted_threads : processors;
}
int omp_get_num_threads() {
  return share.count;
}
int omp_get_thread_num() {
  return share.index;
}
int omp_in_parallel() {
  return share.team != nullptr;
}

void GOMP_parallel(Work work, void* data, unsigned threads, unsigned /*flags*/) {
  constexpr unsigned most = 1024;
  const int count = static_cast<int>(std::min(threads ? threads : static_cast<unsigned>(omp_get_max_threads()), most));
  if (count <= 1 || share.team) {
    const InShare within({share.team, 0, 1});
    return work(data);
  }
  static const bool listening = [] { return pthread_atfork(nullptr, nullptr, [] { ++forks; }) == 0; }();
  static_cast<void>(listening);
  static thread_local OwnTeam own;
  own.of_size(count).run(work, data, count);
}

void GOMP_barrier() {
  if (share.team && share.count > 1) share.team->barrier(share.count);
}

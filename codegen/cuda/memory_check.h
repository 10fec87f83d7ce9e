#pragma once
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <optional>

namespace partita::codegen {

/// How far a block has come. Numbers grow from block to block of one thread of the machine, and 0 never was.
struct BlockTime {
  unsigned epoch = 1;                   ///< barriers of the block
  std::array<unsigned, 32> of_warps{};  ///< barriers of each warp

  void warp_waited(unsigned warp) { ++of_warps[warp]; }
};

/// An access to memory.
struct Touch {
  unsigned block = 0, epoch = 0, warp_epoch = 0;
  unsigned thread : 10 = 0, line : 20 = 0, writes : 1 = 0, atomic : 1 = 0;

  /// Two threads touch the same, one of them writes, not both by atomic operations, and nothing is between: blocks of a
  /// launch wait for no other, threads of a block at its barriers or, if they are of one warp, at the warp's.
  bool races(const Touch& other) const {
    if (other.epoch == 0 || !(writes || other.writes) || (atomic && other.atomic)) return false;
    if (other.block != block) return true;
    if (other.epoch != epoch || other.thread == thread) return false;
    return other.thread / 32 != thread / 32 || other.warp_epoch == warp_epoch;
  }
};

/// Finds races on the elements of a memory. Of the threads that read an element, and of those that write it, it keeps
/// two, of different blocks if there are such: any other thread is then of another block than one of them.
class MemoryCheck {
 public:
  /// False: there is no memory for it. Elements are untouched.
  bool resize(std::size_t elements) {
    if (elements <= size_) return true;
    cells_.reset(static_cast<Cell*>(std::calloc(elements, sizeof(Cell))));
    size_ = cells_ ? elements : 0;
    return size_ > 0;
  }

  /// Notes an access to the elements from `first` up to `end`; the touch that it races with, if there is one.
  std::optional<Touch> touch(std::size_t first, std::size_t end, const Touch& mine) {
    for (std::size_t e = first; e < end; ++e) {
      const Lock lock(locks_[e / 16 % locks_.size()]);
      Cell& cell = cells_.get()[e];
      for (const Touch& other : cell.writes)
        if (mine.races(other)) return other;
      if (mine.writes)
        for (const Touch& other : cell.reads)
          if (mine.races(other)) return other;
      note(mine.writes ? cell.writes : cell.reads, mine);
    }
    return std::nullopt;
  }

 private:
  using Two = std::array<Touch, 2>;
  struct Cell {
    Two writes, reads;
  };
  struct Free {
    void operator()(Cell* cells) const { std::free(cells); }
  };
  struct Lock {
    explicit Lock(std::atomic_flag& flag) : flag(flag) {
      while (flag.test_and_set(std::memory_order_acquire)) {
      }
    }
    ~Lock() { flag.clear(std::memory_order_release); }
    std::atomic_flag& flag;
  };

  static void note(Two& two, const Touch& mine) {
    auto& [first, second] = two;
    const bool apart = second.epoch && first.block != second.block;
    if (first.epoch == 0 ||
        (first.block == mine.block && (apart || first.epoch != mine.epoch || first.thread == mine.thread)))
      first = mine;
    else if (!apart || second.block == mine.block)
      second = mine;
  }

  std::unique_ptr<Cell, Free> cells_;
  std::size_t size_ = 0;
  std::array<std::atomic_flag, 256> locks_;  ///< blocks run on several threads of the machine
};

}  // namespace partita::codegen

#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace partita::codegen {

/// Finds races on the shared memory of a block: two threads touch a byte, one of them writes, not both by atomic
/// operations, and no barrier of the block, nor one of a warp that both are in, is between. Of the threads that read a
/// byte since it was written it keeps two.
class SharedMemoryCheck {
 public:
  struct Touch {
    unsigned thread = 0, line = 0;
    bool writes = false, atomic = false;
    unsigned epoch = 0, warp_epoch = 0;  ///< filled in by touch(); an epoch of 0 never was
  };

  void resize(std::size_t bytes) {
    if (cells_.size() < bytes) cells_.resize(bytes);
  }
  void next_block() { ++epoch_; }
  void block_waited() { ++epoch_; }
  void warp_waited(unsigned warp) { ++warp_epochs_[warp]; }

  /// Notes an access; the touch that it races with, if there is one.
  std::optional<Touch> touch(std::size_t offset, std::uint64_t bytes, Touch mine) {
    mine.epoch = epoch_;
    mine.warp_epoch = warp_epochs_[mine.thread / 32];
    for (std::size_t b = offset; b < offset + bytes; ++b) {
      Cell& cell = cells_[b];
      if (race(cell.write, mine)) return cell.write;
      if (mine.writes) {
        for (const Touch& read : cell.reads)
          if (race(read, mine)) return read;
        cell.write = mine;
      } else {
        Touch& first = cell.reads[0];
        cell.reads[first.epoch == epoch_ && first.thread != mine.thread] = mine;
      }
    }
    return std::nullopt;
  }

 private:
  struct Cell {
    Touch write;
    std::array<Touch, 2> reads;  ///< by different threads
  };

  bool race(const Touch& other, const Touch& mine) const {
    if (other.epoch != epoch_ || other.thread == mine.thread || (other.atomic && mine.atomic)) return false;
    return other.thread / 32 != mine.thread / 32 || other.warp_epoch == mine.warp_epoch;
  }

  std::vector<Cell> cells_;
  unsigned epoch_ = 0;
  std::array<unsigned, 32> warp_epochs_{};
};

}  // namespace partita::codegen

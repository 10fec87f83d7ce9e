#pragma once
#include <algorithm>

#include "codegen/cpu/extern/convolution.h"

namespace partita::codegen {

/// Rows of one image that a thread computes and works on while they are in cache.
struct RowBlock {
  std::int64_t image = 0, first = 0, rows = 0;
};

/// A call whose result is made in blocks of rows, by all threads, with the work that follows it done on each.
class RowBlocksStep : public ExternStep {
 public:
  RowBlocksStep(int threads, const ConcreteView& out, std::vector<RowBlock> blocks);
  Status run(std::byte* const* buffers) final;
  std::size_t scratch_bytes() const final { return thread_bytes() * static_cast<std::size_t>(threads_); }

  /// Takes over the work if compute() can do it in registers, or if it goes by these blocks. Returns how, or why not;
  /// `does` tells which.
  std::string take_work(const std::shared_ptr<ResultWork>& work, bool& does);

 protected:
  virtual void begin(std::byte* const* buffers) = 0;                    ///< before the blocks of a run
  virtual std::size_t thread_bytes() const { return 0; }                ///< of scratch that a thread needs
  virtual void compute(const RowBlock& block, std::byte* scratch) = 0;  ///< on any thread
  int threads() const { return threads_; }
  /// Of results in float: those of the block's image, and the work on them that compute() is to do.
  float* image(const RowBlock& block) const { return at_ + block.image * out_.strides[0]; }
  RegisterWork register_work(const RowBlock& block) const;
  std::int64_t most_rows() const { return std::ranges::max_element(blocks_, {}, &RowBlock::rows)->rows; }

 private:
  int threads_;
  ConcreteView out_;
  std::vector<RowBlock> blocks_;
  std::shared_ptr<ResultWork> work_;  ///< null: none, or in registers
  std::optional<ClampedSum> simple_;  ///< the work in registers
  float* at_ = nullptr;               ///< the result of this run
  RegisterWork in_registers_;
  std::int64_t work_per_row_ = 0;
};

/// Equal shares of the images' rows, `unit` rows or a multiple of it each: at least `parts` of an image, and so many
/// that threads have as much to do.
std::vector<RowBlock> share_rows(std::int64_t images, std::int64_t rows, std::int64_t unit, std::int64_t parts,
                                 int threads);

}  // namespace partita::codegen

#include "codegen/cpu/extern/row_blocks.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/base/threads.h"
#include "core/tensor/tensor.h"

namespace partita::codegen {

RowBlocksStep::RowBlocksStep(int threads, const ConcreteView& out, std::vector<RowBlock> blocks)
    : threads_(threads), out_(out), blocks_(std::move(blocks)) {}

std::string RowBlocksStep::take_work(const std::shared_ptr<ResultWork>& work, bool& does) {
  does = false;
  if (!work) return {};
  if (work->simple) {
    simple_ = work->simple;
    does = true;
    return "in registers";
  }
  const auto per_row = iterations_per_row(out_, *work);
  const auto fits = [&](const RowBlock& b) {
    return (b.image * out_.sizes[2] + b.first) * *per_row % work->alignment == 0;
  };
  if (!per_row || !std::ranges::all_of(blocks_, fits))
    return "a kernel of its own: the work does not go by the rows of blocks";
  work_ = work;
  work_per_row_ = *per_row;
  does = true;
  return fmt::format("in {} block{} of rows", blocks_.size(), blocks_.size() == 1 ? "" : "s");
}

RegisterWork RowBlocksStep::register_work(const RowBlock& block) const {
  RegisterWork work = in_registers_;
  if (work.added) work.added += block.image * out_.strides[0];
  return work;
}

Status RowBlocksStep::run(std::byte* const* buffers) {
  begin(buffers);
  const std::size_t bytes = thread_bytes();
  at_ = reinterpret_cast<float*>(out_.at(buffers));
  if (simple_) in_registers_ = codegen::register_work(*simple_, out_, buffers);
  TRY(const std::shared_ptr<Storage> scratch, Storage::allocate(scratch_bytes()));
  if (work_) work_->start(buffers);
  parallel_for(threads_, static_cast<std::int64_t>(blocks_.size()), 1, 1,
               [&](std::int64_t first, std::int64_t last, int thread) {
                 for (std::int64_t i = first; i < last; ++i) {
                   const RowBlock& b = blocks_[static_cast<std::size_t>(i)];
                   compute(b, scratch->data() + bytes * static_cast<std::size_t>(thread));
                   const std::int64_t row = b.image * out_.sizes[2] + b.first;
                   if (work_) work_->run(row * work_per_row_, (row + b.rows) * work_per_row_);
                 }
               });
  return work_ ? work_->finish() : Status{};
}

std::vector<RowBlock> share_rows(std::int64_t images, std::int64_t rows, std::int64_t unit, std::int64_t parts,
                                 int threads) {
  const std::int64_t units = (rows + unit - 1) / unit;
  parts = std::clamp<std::int64_t>(parts, 1, units);
  while (parts < units && images * parts % threads != 0) ++parts;
  std::vector<RowBlock> blocks;
  for (std::int64_t image = 0; image < images; ++image)
    for (std::int64_t i = 0; i < parts; ++i) {
      const std::int64_t first = unit * (units * i / parts), end = std::min(unit * (units * (i + 1) / parts), rows);
      blocks.push_back({image, first, end - first});
    }
  return blocks;
}

}  // namespace partita::codegen

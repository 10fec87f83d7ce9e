// The semantics are those of torch/csrc/distributed/c10d/FakeProcessGroup.hpp.
#include "core/ops/record/fake_ranks.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/ops/record/call.h"

namespace partita {
namespace {

/// The rows from `first` on.
Tensor rows_of(const Tensor& t, std::int64_t first, std::int64_t count) {
  Sizes sizes = t.sizes;
  sizes[0] = count;
  return t.view_as(std::move(sizes), t.strides, t.offset + first * t.strides[0]);
}

/// Fills `to` with the rows of `from`, from the first one on and again.
void repeat(const Tensor& from, const Tensor& to) {
  const std::int64_t all = to.sizes[0], given = from.sizes[0];
  if (all > 0 && given == 0) fail("rows are to come from other ranks, but there are none here to stand in for them");
  for (std::int64_t at = 0; at < all; at += given) {
    const std::int64_t count = std::min(given, all - at);
    rows_of(to, at, count).copy_from(rows_of(from, 0, count));
  }
}

Tensor with_dim(const Tensor& t) {
  return t.dim() > 0 ? t : t.view_as({1}, {1}, t.offset);
}

}  // namespace

std::int64_t FakeRanks::group_size(const std::string& group) const {
  return group == world_group ? size_ : 0;
}

Result<RankPlace> FakeRanks::next_place() {
  if (size_ == 0)
    return input_error("ranks.place", "PyTorch asks how many ranks the job has; say it with --ranks fake:N");
  return RankPlace{.ranks = size_};
}

void FakeRanks::start(Collective c) {
  const auto splits = static_cast<std::int64_t>(c.output_splits.size());
  const std::int64_t ranks = c.group_size > 0 ? c.group_size : splits;
  if (size_ > 0 && (ranks > size_ || (ranks > 0 && c.group == world_group && ranks != size_)))
    fail(fmt::format("group {} has {} ranks, but the job is said to have {}", c.group, ranks, size_));
  for (std::size_t i = 0; i < c.outputs.size(); ++i) {
    const Tensor& out = c.outputs[i];
    switch (c.kind) {
      case Collective::Kind::AllReduce:
      case Collective::Kind::Broadcast:
        if (out.storage != c.inputs[i].storage) out.copy_from(c.inputs[i]);
        break;
      case Collective::Kind::AllGather:
        repeat(with_dim(c.inputs[i]), out);
        break;
      case Collective::Kind::ReduceScatter:
        out.copy_from(rows_of(c.inputs[i], 0, out.sizes[0]));
        break;
      case Collective::Kind::AllToAll:
        if (c.output_splits.empty()) out.copy_from(c.inputs[i]);
        for (std::int64_t at = 0; const std::int64_t count : c.output_splits) {
          repeat(c.inputs[i], rows_of(out, at, count));
          at += count;
        }
        break;
      case Collective::Kind::Send:
      case Collective::Kind::Receive:
        break;
    }
  }
}

}  // namespace partita

#pragma once
#include "core/ops/record/communicator.h"

namespace partita {

/// Stands in for all other ranks of a job, with the semantics of PyTorch's FakeProcessGroup on rank 0: what would come
/// from them is made of what this rank sends, so sizes are right and numbers mean nothing.
class FakeRanks final : public Communicator {
 public:
  /// `size`: how many ranks the job has; 0: as many as each call says.
  explicit FakeRanks(std::int64_t size) : size_(size) {}

  std::int64_t size() const { return size_; }
  /// Fails where a call's group does not fit into the job.
  void start(Collective collective) override;
  void wait(const Tensor&) override {}
  std::int64_t group_size(const std::string& group) const override;
  /// Error ranks.place when the size is not known.
  Result<RankPlace> next_place() override;

 private:
  std::int64_t size_;
};

}  // namespace partita

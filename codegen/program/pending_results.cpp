// Of its own, since executors need it and compiled libraries have no evaluations.
#include "codegen/program/extern.h"
#include "core/base/raise.h"
#include "core/ops/record/communicator.h"

namespace partita::codegen {

void PendingResults::add(int buffer, Tensor result, Tensor place) {
  results_.push_back({buffer, std::move(result), std::move(place)});
}

Status PendingResults::finish(int buffer) {
  for (const Pending& p : results_) {
    if (p.buffer != buffer) continue;
    if (p.result.numel() > 0)
      TRY_DO(catch_raised<void>([&]() -> Status {
        communicator_->wait(p.result);
        return {};
      }));
    p.place.copy_from(p.result);
  }
  std::erase_if(results_, [&](const Pending& p) { return p.buffer == buffer; });
  return {};
}

}  // namespace partita::codegen

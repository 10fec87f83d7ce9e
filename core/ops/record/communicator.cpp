#include "core/ops/record/communicator.h"

#include "core/base/raise.h"

namespace partita {

Status finish(const Value& value, Communicator& communicator) {
  if (const auto* list = value.get<ValueList>())
    for (const Value& item : *list) TRY_DO(finish(item, communicator));
  const auto* t = value.get<Tensor>();
  if (!t || t->numel() == 0) return {};
  return catch_raised<void>([&]() -> Status {
    communicator.wait(*t);
    return {};
  });
}

Result<RankPlace> Communicator::next_place() {
  return unsupported("ranks.place", "only this process knows the other ranks; take interp or cpu");
}

std::int64_t Communicator::group_size(const std::string&) const {
  return 0;
}

}  // namespace partita

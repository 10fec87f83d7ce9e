#pragma once
// What a Meeting knows of its ranks and of collectives; for its own files.
#include "core/ranks/meeting.h"

namespace partita {

/// A collective of a group, from its first part to the last one's results.
struct Meeting::Slot {
  std::string group, channel;  ///< of the channel, members number their collectives alike
  std::int64_t number = 1;     ///< of the group's collectives, of the same two ranks' messages with this tag: from 1
  Exchange exchange;
  bool done = false;
  std::vector<std::vector<Tensor>> results;  ///< by position in the group, once done

  std::size_t position_of(int rank) const;
};

/// What a rank has started and not waited for.
struct Meeting::Pending {
  std::vector<Tensor> outputs;
  std::shared_ptr<Slot> slot;
  std::size_t position = 0;  ///< the rank's in the group
};

struct Meeting::Rank {
  std::unique_ptr<View> view;
  std::map<std::string, std::int64_t> started;  ///< how many collectives, by channel: a group, or a pair and a tag
  std::vector<Pending> pending;
  std::shared_ptr<Slot> waits_for;  ///< without results; null: the rank computes, or has ended
  bool ended = false;
  std::optional<Diagnostic> error;
};

}  // namespace partita

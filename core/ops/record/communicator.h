#pragma once
// What collectives ask of the run that they are part of: the other ranks of the job.
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/tensor/tensor.h"
#include "core/tensor/value.h"

namespace partita {

/// The process group of all ranks of a job.
constexpr std::string_view world_group = "0";

/// A collective as one rank starts it. All members of its group must start it alike.
struct Collective {
  enum class Kind { AllReduce, AllGather, ReduceScatter, AllToAll, Broadcast, Send, Receive };

  Kind kind = Kind::AllReduce;
  /// The name of the process group, as graphs have it: "0" is the world. Calls of older logs list its ranks, which is
  /// the name then: "[0, 1]", and " TAG" after it where the call has a tag.
  std::string group;
  std::int64_t group_size = 0;  ///< as the call says it; 0 where the operator has no such argument
  std::string reduce_op;        ///< of AllReduce and ReduceScatter, in lower case: "sum", "avg", ...
  std::int64_t root = 0;        ///< Broadcast: the source, a global rank. Send, Receive: the other one
  std::int64_t tag = 0;         ///< Send, Receive
  Sizes output_splits;          ///< AllToAll: rows from each member; empty: as many from all
  Sizes input_splits;           ///< AllToAll: rows for each member; empty: as many for all
  std::vector<Tensor> inputs;   ///< one, or several where the operator is a coalesced one
  std::vector<Tensor> outputs;  ///< dense, of the sizes that the operator's fake gives; filled by wait() at the latest
  std::string node;             ///< the name of the node that starts it, for messages; may be empty
};

/// A rank's place in its job, for another process that takes part in its name.
struct RankPlace {
  std::int64_t rank = 0, ranks = 1;
  std::map<std::string, std::vector<int>> groups;  ///< members by name, as global ranks; the world need not be there
  std::string meeting_point;  ///< a file that the processes of all ranks share; empty: the others are stood in for
};

/// The other ranks, seen from one. Functions report what is wrong with fail(), as evaluations do.
class Communicator {
 public:
  virtual ~Communicator() = default;

  /// Starts a collective and does not wait for the others. Keeps copies of what it sends, so that the inputs may be
  /// overwritten at once (PyTorch's functional collectives promise the same).
  virtual void start(Collective collective) = 0;
  /// Waits until the collective one of whose outputs has this storage has come to its end; returns at once where there
  /// is none. Fails when it cannot end: members started something else, or ended, or all wait.
  virtual void wait(const Tensor& output) = 0;
  /// How many ranks a group has, for operators that do not say; 0 where that is not known.
  virtual std::int64_t group_size(const std::string& group) const;
  /// The rank's place while another process runs a graph of its, a new one for each graph. Error ranks.place where it
  /// cannot be had.
  virtual Result<RankPlace> next_place();
};

/// Waits for the tensors of a value, if a collective fills them.
Status finish(const Value& value, Communicator& communicator);

}  // namespace partita

#pragma once
// A job of few ranks in one process, a thread for each.
#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "core/ops/record/call.h"
#include "core/ops/record/communicator.h"
#include "tests/support/values.h"

namespace partita::testing {

/// Where the ranks meet. All groups have all ranks. Collectives are sums and maxima of floats, gathers, exchanges and
/// broadcasts.
class Meeting {
 public:
  explicit Meeting(std::size_t ranks) : ranks_(ranks) {}

  void start(std::size_t rank, Collective c) {
    const std::lock_guard lock(mutex_);
    Exchange& e = exchanges_[{c.group, counts_[{rank, c.group}]++}];
    for (Tensor& t : c.inputs) t = *t.clone();
    started.push_back(std::to_string(rank) + " starts in " + c.group);
    e.members.resize(ranks_);
    e.members[rank] = std::move(c);
    if (++e.arrived < ranks_) return;
    for (std::size_t r = 0; r < ranks_; ++r)
      for (std::size_t i = 0; i < e.members[r].outputs.size(); ++i) fill(e.members, r, i);
    e.done = true;
    changed_.notify_all();
  }
  void wait(const Tensor& output) {
    std::unique_lock lock(mutex_);
    Exchange* of_output = nullptr;
    for (auto& [key, e] : exchanges_)
      for (const Collective& c : e.members)
        for (const Tensor& t : c.outputs)
          if (t.storage == output.storage) of_output = &e;
    if (!of_output) return;
    constexpr std::chrono::seconds long_enough(20);
    if (!changed_.wait_for(lock, long_enough, [&] { return of_output->done; })) fail("a rank waits for ever");
  }

  std::vector<std::string> started;

 private:
  struct Exchange {
    std::vector<Collective> members;  ///< by rank
    std::size_t arrived = 0;
    bool done = false;
  };

  static void fill(const std::vector<Collective>& members, std::size_t rank, std::size_t i) {
    const Collective& own = members[rank];
    const Tensor& out = own.outputs[i];
    std::vector<double> found, part;
    const auto count = static_cast<std::size_t>(out.numel());
    switch (own.kind) {
      case Collective::Kind::AllReduce:
      case Collective::Kind::ReduceScatter:
        found = elements(members[0].inputs[i]);
        for (std::size_t r = 1; r < members.size(); ++r) {
          part = elements(members[r].inputs[i]);
          for (std::size_t k = 0; k < found.size(); ++k)
            found[k] = own.reduce_op == "max" ? std::max(found[k], part[k]) : found[k] + part[k];
        }
        if (own.kind == Collective::Kind::ReduceScatter)
          found = {found.begin() + static_cast<std::ptrdiff_t>(rank * count),
                   found.begin() + static_cast<std::ptrdiff_t>((rank + 1) * count)};
        break;
      case Collective::Kind::AllGather:
        for (const Collective& c : members) {
          part = elements(c.inputs[i]);
          found.insert(found.end(), part.begin(), part.end());
        }
        break;
      case Collective::Kind::AllToAll:
        for (const Collective& c : members) {
          const std::int64_t row = c.inputs[i].numel() / std::max<std::int64_t>(c.inputs[i].sizes[0], 1);
          const auto mine = c.input_splits.begin() + static_cast<std::ptrdiff_t>(rank);
          const std::int64_t first = std::accumulate(c.input_splits.begin(), mine, std::int64_t{0}) * row;
          part = elements(c.inputs[i]);
          found.insert(found.end(), part.begin() + first, part.begin() + first + *mine * row);
        }
        break;
      case Collective::Kind::Broadcast:
        found = elements(members[static_cast<std::size_t>(own.root)].inputs[i]);
        break;
      case Collective::Kind::Send:
      case Collective::Kind::Receive:
        fail("no rank sends in tests");
    }
    out.copy_from(tensor(out.dtype, out.sizes, found));
  }

  std::size_t ranks_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::pair<std::string, std::size_t>, Exchange> exchanges_;  ///< by group, and the how-many-th of it
  std::map<std::pair<std::size_t, std::string>, std::size_t> counts_;
};

class Member final : public Communicator {
 public:
  Member(Meeting& meeting, std::size_t rank) : meeting_(meeting), rank_(rank) {}
  void start(Collective c) override { meeting_.start(rank_, std::move(c)); }
  void wait(const Tensor& output) override { meeting_.wait(output); }

 private:
  Meeting& meeting_;
  std::size_t rank_;
};

/// Runs each rank in a thread of its own.
inline std::vector<Result<std::vector<Value>>> run_ranks(
    Meeting& meeting, std::size_t ranks,
    const std::function<Result<std::vector<Value>>(std::size_t rank, const std::shared_ptr<Communicator>&)>& run) {
  std::vector<Result<std::vector<Value>>> results(ranks, std::vector<Value>());
  std::vector<std::thread> threads;
  for (std::size_t r = 0; r < ranks; ++r)
    threads.emplace_back([&, r] { results[r] = run(r, std::make_shared<Member>(meeting, r)); });
  for (std::thread& t : threads) t.join();
  return results;
}

}  // namespace partita::testing

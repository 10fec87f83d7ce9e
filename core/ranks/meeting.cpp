#include "core/ranks/meeting.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/base/check.h"
#include "core/base/raise.h"
#include "core/ranks/meeting_state.h"

namespace partita {
namespace {

/// Do the elements of one lie among those of the other? Both are dense.
bool share_memory(const Tensor& a, const Tensor& b) {
  const auto bytes = [](const Tensor& t) { return t.numel() * static_cast<std::int64_t>(itemsize(t.dtype)); };
  if (!a.storage || !b.storage) return false;
  const std::byte *x = a.data(), *y = b.data();
  return x == y || (x < y + bytes(b) && y < x + bytes(a));
}

bool share_memory(const std::vector<Tensor>& tensors, const Tensor& other) {
  return std::ranges::any_of(tensors, [&](const Tensor& t) { return share_memory(t, other); });
}

void fill(const std::vector<Tensor>& outputs, const std::vector<Tensor>& results) {
  for (std::size_t i = 0; i < outputs.size() && i < results.size(); ++i) {
    const Tensor &to = outputs[i], &from = results[i];
    if (to.numel() != from.numel())
      throw Raise{input_error("ranks.output", fmt::format("a collective gives {} elements, and its output has {}",
                                                          from.numel(), to.numel()))};
    to.copy_from(from.view_as(to.sizes, row_major_strides(to.sizes), from.offset));
  }
}

/// What a rank raises that the job's failure stopped.
[[noreturn]] void release() {
  Diagnostic released = stopped_on_request();
  released.message = "stopped, since the job has failed";
  throw Raise{std::move(released)};
}

}  // namespace

class Meeting::View : public Communicator {
 public:
  View(Meeting& meeting, int rank) : meeting_(meeting), rank_(rank) {}
  void start(Collective collective) override { meeting_.start(rank_, std::move(collective)); }
  void wait(const Tensor& output) override { meeting_.wait(rank_, output); }
  std::int64_t group_size(const std::string& group) const override {
    const auto members =
        partita::members_of(meeting_.job_, rank_, {.kind = Collective::Kind::AllReduce, .group = group});
    return members ? static_cast<std::int64_t>(members->size()) : 0;
  }
  Result<RankPlace> next_place() override { return meeting_.next_place(rank_, graphs_++); }

 private:
  Meeting& meeting_;
  const int rank_;
  int graphs_ = 0;  ///< that other processes ran
};

std::size_t Meeting::Slot::position_of(int rank) const {
  return static_cast<std::size_t>(std::ranges::find(exchange.members, rank) - exchange.members.begin());
}

Meeting::Meeting(Job job, MeetingOptions options)
    : job_(std::move(job)),
      options_(std::move(options)),
      computing_(std::max(options_.computing, 1)),
      active_(job_.ranks) {
  for (int rank = 0; rank < job_.ranks; ++rank) {
    ranks_.push_back(std::make_unique<Rank>());
    ranks_.back()->view = std::make_unique<View>(*this, rank);
  }
}

Meeting::~Meeting() = default;

/// Ranks run as many graphs in the same order, so the graph's number is the same for all.
Result<RankPlace> Meeting::next_place(int rank, int graph) {
  const std::lock_guard lock(mutex_);
  if (!folder_) {
    TRY(ScratchFolder folder, ScratchFolder::make("ranks"));
    folder_.emplace(std::move(folder));
  }
  return RankPlace{.rank = rank,
                   .ranks = job_.ranks,
                   .groups = job_.groups,
                   .meeting_point = fmt::format("{}/graph-{}", folder_->path(), graph)};
}

Communicator& Meeting::rank(int rank) {
  return *ranks_[static_cast<std::size_t>(rank)]->view;
}

void Meeting::start(int rank, Collective collective) {
  for (Tensor& t : collective.inputs) t = unwrap(t.clone());
  Lock lock(mutex_);
  if (failure_) release();
  std::vector<int> members = members_of(rank, collective, lock);
  const std::shared_ptr<Slot> slot = join(rank, std::move(collective), std::move(members));
  if (!slot->exchange.complete()) return;
  if (const std::string why = mismatch(slot->exchange); !why.empty()) {
    fail_mismatched(slot, why, lock);
    release();
  }
  complete(*slot, lock);
}

std::vector<int> Meeting::members_of(int rank, const Collective& c, const Lock& lock) {
  Result<std::vector<int>> members = partita::members_of(job_, rank, c);
  if (members) return *std::move(members);
  const std::string at = place(rank, c.node);
  fail_job(Diagnostic(Fault::Input, "ranks.group",
                      fmt::format("rank {} starts {}{}: {}", rank, text(c), at.empty() ? "" : " " + at,
                                  members.error().message),
                      where(rank, c), lines(nullptr)),
           lock);
  release();
}

std::shared_ptr<Meeting::Slot> Meeting::join(int rank, Collective collective, std::vector<int> members) {
  Rank& r = *ranks_[static_cast<std::size_t>(rank)];
  const std::string key = channel_of(collective, members);
  const std::int64_t number = ++r.started[key];
  std::shared_ptr<Slot>& slot = open_[{key, number}];
  if (!slot) {
    slot = std::make_shared<Slot>(Slot{.group = collective.group, .channel = key, .number = number});
    slot->exchange.parts.resize(members.size());
    slot->exchange.members = std::move(members);
  }
  // Memory that is used anew is nobody's who could still wait for what was in it.
  std::erase_if(r.pending, [&](const Pending& p) {
    return std::ranges::any_of(collective.outputs, [&](const Tensor& t) { return share_memory(p.outputs, t); });
  });
  const std::size_t position = slot->position_of(rank);
  r.pending.push_back({collective.outputs, slot, position});
  slot->exchange.parts[position] = std::move(collective);
  return slot;
}

/// Nobody else touches a slot that has all its parts, until it is done.
void Meeting::complete(Slot& slot, Lock& lock) {
  lock.unlock();
  std::vector<std::vector<Tensor>> given = results(slot.exchange);
  lock.lock();
  slot.results = std::move(given);
  slot.done = true;
  std::erase_if(open_, [&](const auto& entry) { return entry.second.get() == &slot; });
  for (auto& part : slot.exchange.parts) part->inputs.clear(), part->outputs.clear();
  for (const int member : slot.exchange.members)
    if (Rank& r = *ranks_[static_cast<std::size_t>(member)]; r.waits_for.get() == &slot) {
      r.waits_for = nullptr;
      ++active_;
    }
  changed_.notify_all();
}

void Meeting::wait(int rank, const Tensor& output) {
  Rank& r = *ranks_[static_cast<std::size_t>(rank)];
  Lock lock(mutex_);
  for (std::size_t i = 0; i < r.pending.size();) {
    if (!share_memory(r.pending[i].outputs, output)) {
      ++i;
      continue;
    }
    wait_for(rank, r.pending[i].slot, lock);
    const Pending p = std::move(r.pending[i]);
    r.pending.erase(r.pending.begin() + static_cast<std::ptrdiff_t>(i));
    lock.unlock();
    fill(p.outputs, std::exchange(p.slot->results[p.position], {}));
    lock.lock();
  }
}

void Meeting::wait_for(int rank, const std::shared_ptr<Slot>& slot, Lock& lock) {
  if (slot->done) return;
  if (failure_) release();
  Rank& r = *ranks_[static_cast<std::size_t>(rank)];
  r.waits_for = slot;
  --active_;
  fail_if_stuck(lock);
  computing_.release();
  changed_.wait(lock, [&] { return slot->done || failure_; });
  lock.unlock();
  computing_.acquire();
  lock.lock();
  if (!slot->done) release();
}

Status Meeting::finish(int rank) {
  Rank& r = *ranks_[static_cast<std::size_t>(rank)];
  return catch_raised<void>([&]() -> Status {
    Lock lock(mutex_);
    for (Pending& p : r.pending) {
      wait_for(rank, p.slot, lock);
      std::vector<Tensor> results = std::exchange(p.slot->results[p.position], {});
      for (std::size_t i = 0; i < p.outputs.size() && i < results.size(); ++i)
        if (p.outputs[i].storage.use_count() > 1) fill({p.outputs[i]}, {results[i]});
    }
    r.pending.clear();
    return {};
  });
}

void Meeting::end(int rank, const Status& status) {
  Rank& r = *ranks_[static_cast<std::size_t>(rank)];
  Lock lock(mutex_);
  r.ended = true;
  r.pending.clear();
  if (!r.waits_for) --active_;
  computing_.release();
  if (!status) {
    r.error = status.error();
    Diagnostic why = status.error();
    why.message = fmt::format("rank {}: {}", rank, why.message);
    const std::vector<std::string> others = failure_ ? std::vector<std::string>() : lines(nullptr);
    why.notes.insert(why.notes.end(), others.begin(), others.end());
    fail_job(std::move(why), lock);
  }
  fail_if_stuck(lock);
}

void Meeting::stop(Diagnostic why) {
  fail_job(std::move(why), Lock(mutex_));
}

void Meeting::fail_job(Diagnostic why, const Lock&) {
  if (failure_) return;
  failure_ = std::move(why);
  progress_.stop = true;
  changed_.notify_all();
}

void Meeting::fail_mismatched(const std::shared_ptr<Slot>& slot, const std::string& why, const Lock& lock) {
  if (failure_) return;
  broken_ = slot;
  fail_job(mismatched(*slot, why), lock);
}

/// That parts of a collective do not match tells more than who waits.
void Meeting::fail_if_stuck(const Lock& lock) {
  const auto waits = [](const auto& r) { return r->waits_for != nullptr; };
  if (active_ > 0 || failure_ || std::ranges::none_of(ranks_, waits)) return;
  for (const auto& [key, slot] : open_)
    if (const std::string why = mismatch(slot->exchange); !why.empty()) return fail_mismatched(slot, why, lock);
  fail_job(stuck(), lock);
}

std::optional<Diagnostic> Meeting::failure() const {
  const Lock lock(mutex_);
  return failure_;
}

}  // namespace partita

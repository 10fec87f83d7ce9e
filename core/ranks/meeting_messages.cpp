// What a Meeting says of a job that fails: who waits where, and what the others do instead.
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/ranks/meeting_state.h"

namespace partita {
namespace {

/// Equal texts of several ranks as one: text -> ranks, in the order of the first rank.
class RanksByText {
 public:
  void add(int rank, const std::string& text) {
    const auto found = std::ranges::find(rows_, text, &Row::first);
    if (found == rows_.end())
      rows_.push_back({text, {rank}});
    else
      found->second.push_back(rank);
  }
  using Row = std::pair<std::string, std::vector<int>>;
  std::vector<Row>& rows() { return rows_; }

 private:
  std::vector<Row> rows_;
};

std::string which(const std::string& group, std::int64_t number, const Collective& c) {
  if (c.kind == Collective::Kind::Send || c.kind == Collective::Kind::Receive)
    return fmt::format("its {} {}", ordinal(number), text(c));
  return fmt::format("its {} collective of group '{}', {}", ordinal(number), group, text(c));
}

}  // namespace

std::string_view name_of(RankEnd::State state) {
  static constexpr std::string_view names[] = {"done", "failed", "waits", "stopped"};
  return names[static_cast<std::size_t>(state)];
}

std::string Meeting::place(int rank, const std::string& node) const {
  if (node.empty()) return {};
  const std::string origin = options_.origin ? options_.origin(rank, node) : std::string();
  return origin.empty() ? "at " + node : fmt::format("at {} ({})", node, origin);
}

Where Meeting::where(int rank, const Collective& c) const {
  return {.node = c.node, .origin = options_.origin && !c.node.empty() ? options_.origin(rank, c.node) : std::string()};
}

std::string Meeting::started_text(int rank, const Slot& slot) const {
  const Collective& c = *slot.exchange.parts[slot.position_of(rank)];
  const std::string at = place(rank, c.node);
  return fmt::format("{}{}", which(slot.group, slot.number, c), at.empty() ? "" : " " + at);
}

/// `about`: the collective that the failure is about, or null.
std::string Meeting::line_of(int rank, const Slot* about) const {
  const Rank& r = *ranks_[static_cast<std::size_t>(rank)];
  const bool member = about && about->position_of(rank) < about->exchange.members.size();
  if (about && about == broken_.get() && member && about->exchange.parts[about->position_of(rank)])
    return "starting " + started_text(rank, *about);
  if (r.waits_for) return "waiting for " + started_text(rank, *r.waits_for);
  const char* state = r.error ? "failed" : r.ended ? "ended" : "computing";
  if (!about) return state;
  if (!member) return fmt::format("{}; it is not in group '{}'", state, about->group);
  const auto found = r.started.find(about->channel);
  const std::int64_t started = found == r.started.end() ? 0 : found->second;
  return fmt::format("{} after {} collective{} of group '{}'", state, started, started == 1 ? "" : "s", about->group);
}

std::vector<std::string> Meeting::lines(const Slot* about) const {
  RanksByText by_text;
  for (int rank = 0; rank < job_.ranks; ++rank) by_text.add(rank, line_of(rank, about));
  std::vector<std::string> out;
  for (const auto& [text, ranks] : by_text.rows()) out.push_back(fmt::format("{}: {}", ranks_text(ranks), text));
  return out;
}

Diagnostic Meeting::mismatched(const Slot& slot, const std::string& why) const {
  RanksByText by_text;
  for (std::size_t i = 0; i < slot.exchange.members.size(); ++i)
    if (const auto& part = slot.exchange.parts[i]) by_text.add(slot.exchange.members[i], text(*part));
  auto& rows = by_text.rows();
  std::vector<std::string> texts;
  constexpr std::size_t most = 4;
  for (const auto& [text, ranks] : rows) {
    if (texts.size() == most) {
      texts.push_back(fmt::format("{} others", rows.size() - most));
      break;
    }
    std::vector<int> sorted = ranks;
    std::ranges::sort(sorted);
    texts.push_back(fmt::format("{} on {}", text, ranks_text(sorted)));
  }
  const auto odd =
      std::ranges::min_element(rows, {}, [](const auto& row) { return row.second.size(); })->second.front();
  Where at = where(odd, *slot.exchange.parts[slot.position_of(odd)]);
  return {Fault::Input, "ranks.mismatch",
          fmt::format("group '{}', {} collective: {}: {}; its ranks must start the same collectives in the same order",
                      slot.group, ordinal(slot.number), why, fmt::join(texts, ", ")),
          std::move(at), lines(&slot)};
}

/// Nobody can go on, and what was started matches.
Diagnostic Meeting::stuck() const {
  const Slot* about = nullptr;
  std::ptrdiff_t most = 0;
  std::vector<int> waiting, absent;
  for (const auto& [key, slot] : open_) {
    const auto waiters = std::ranges::count_if(ranks_, [&](const auto& r) { return r->waits_for == slot; });
    if (waiters > most) most = waiters, about = slot.get();
  }
  for (int rank = 0; rank < job_.ranks; ++rank)
    if (ranks_[static_cast<std::size_t>(rank)]->waits_for.get() == about) waiting.push_back(rank);
  for (std::size_t i = 0; i < about->exchange.members.size(); ++i)
    if (!about->exchange.parts[i]) absent.push_back(about->exchange.members[i]);
  std::ranges::sort(absent);
  const Collective& c = *about->exchange.parts[about->position_of(waiting.front())];
  return {Fault::Input, "ranks.deadlock",
          fmt::format("no rank can go on: {} {} for {}, which {} {} not start ({})", ranks_text(waiting),
                      waiting.size() == 1 ? "waits" : "wait", which(about->group, about->number, c), ranks_text(absent),
                      absent.size() == 1 ? "does" : "do", line_of(absent.front(), about)),
          where(waiting.front(), c), lines(about)};
}

std::vector<RankEnd> Meeting::ends() const {
  const Lock lock(mutex_);
  std::vector<RankEnd> out;
  for (int rank = 0; rank < job_.ranks; ++rank) {
    const Rank& r = *ranks_[static_cast<std::size_t>(rank)];
    RankEnd end;
    const Slot* slot = broken_ ? broken_.get() : r.waits_for.get();
    if (slot && slot->position_of(rank) < slot->exchange.members.size() &&
        slot->exchange.parts[slot->position_of(rank)]) {
      end = {RankEnd::State::Waits, line_of(rank, slot), slot->exchange.parts[slot->position_of(rank)]->node};
    } else if (r.waits_for) {
      end = {RankEnd::State::Waits, line_of(rank, nullptr), {}};
    } else if (r.error && r.error->fault == Fault::Cancelled) {
      end = {RankEnd::State::Stopped, r.error->message, r.error->where.node};
    } else if (r.error) {
      end = {RankEnd::State::Failed, r.error->line(), r.error->where.node};
    }
    out.push_back(std::move(end));
  }
  return out;
}

}  // namespace partita

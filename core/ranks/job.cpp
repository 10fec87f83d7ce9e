#include "core/ranks/job.h"

#include <algorithm>
#include <charconv>
#include <numeric>
#include <optional>

#include <fmt/format.h>

namespace partita {
namespace {

/// The members that a name lists, "[0, 1] TAG"; of several groups in one list, those of the rank's. Nullopt for other
/// names.
std::optional<std::vector<int>> listed_members(const Collective& c, int rank) {
  const std::size_t end = c.group.find(']');
  if (!c.group.starts_with('[') || end == std::string::npos) return std::nullopt;
  std::vector<int> all;
  const char* at = c.group.data() + 1;
  for (const char* const last = c.group.data() + end; at < last;) {
    int number = 0;
    const auto [behind, error] = std::from_chars(at, last, number);
    if (error != std::errc()) return std::nullopt;
    all.push_back(number);
    for (at = behind; at < last && (*at == ',' || *at == ' ');) ++at;
  }
  const auto size = static_cast<std::size_t>(std::max<std::int64_t>(c.group_size, 0));
  const auto own = std::ranges::find(all, rank);
  if (size == 0 || size >= all.size() || all.size() % size != 0 || own == all.end()) return all;
  const auto first =
      all.begin() + (own - all.begin()) / static_cast<std::ptrdiff_t>(size) * static_cast<std::ptrdiff_t>(size);
  return std::vector<int>(first, first + static_cast<std::ptrdiff_t>(size));
}

}  // namespace

bool is_point_to_point(const Collective& c) {
  return c.kind == Collective::Kind::Send || c.kind == Collective::Kind::Receive;
}

Status check(const Job& job) {
  if (job.ranks < 1 || job.ranks > Job::most_ranks)
    return input_error("ranks.count", fmt::format("{} ranks; a job has from 1 to {}", job.ranks, Job::most_ranks));
  for (const auto& [name, members] : job.groups) {
    if (members.empty()) return input_error("ranks.group", fmt::format("group '{}' has no ranks", name));
    std::vector<bool> seen(static_cast<std::size_t>(job.ranks));
    for (const int rank : members) {
      if (rank < 0 || rank >= job.ranks)
        return input_error("ranks.group", fmt::format("group '{}' names rank {}, and the job has the ranks 0 to {}",
                                                      name, rank, job.ranks - 1));
      if (seen[static_cast<std::size_t>(rank)])
        return input_error("ranks.group", fmt::format("group '{}' names rank {} twice", name, rank));
      seen[static_cast<std::size_t>(rank)] = true;
    }
  }
  return {};
}

Result<std::vector<int>> members_of(const Job& job, int rank, const Collective& c) {
  const auto wrong = [](std::string what) { return input_error("ranks.group", std::move(what)); };
  if (is_point_to_point(c)) {
    if (c.root < 0 || c.root >= job.ranks || c.root == rank)
      return wrong(fmt::format("there is no other rank {}", c.root));
    const int other = static_cast<int>(c.root);
    return c.kind == Collective::Kind::Send ? std::vector{rank, other} : std::vector{other, rank};
  }
  std::vector<int> members;
  if (const auto found = job.groups.find(c.group); found != job.groups.end()) {
    members = found->second;
  } else if (auto listed = listed_members(c, rank)) {
    members = *std::move(listed);
  } else if (c.group == world_group || c.group_size == job.ranks) {
    members.resize(static_cast<std::size_t>(job.ranks));
    std::iota(members.begin(), members.end(), 0);
  } else {
    return wrong(fmt::format("which ranks group '{}' has is not known; name them in the groups of case.json", c.group));
  }
  for (const int member : members)
    if (member < 0 || member >= job.ranks)
      return wrong(fmt::format("group '{}' has ranks that the job does not have", c.group));
  if (std::ranges::find(members, rank) == members.end()) return wrong(fmt::format("it is not in group '{}'", c.group));
  return members;
}

std::string channel_of(const Collective& c, const std::vector<int>& members) {
  if (is_point_to_point(c)) return fmt::format("{} {}>{} {}", c.group, members[0], members[1], c.tag);
  // A list of ranks may name several groups.
  return c.group.starts_with('[') ? fmt::format("{} {}", c.group, members.front()) : c.group;
}

std::string ranks_text(const std::vector<int>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t begin = 0, end; begin < ranks.size(); begin = end) {
    end = begin + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) ++end;
    const char* between = end - begin == 2 ? ", " : "-";
    text += fmt::format("{}{}", begin > 0 ? ", " : "", ranks[begin]);
    if (end - begin > 1) text += fmt::format("{}{}", between, ranks[end - 1]);
  }
  return text;
}

std::string ordinal(std::int64_t number) {
  const std::int64_t last = number % 10, tens = number / 10 % 10;
  const char* ending = tens == 1 ? "th" : last == 1 ? "st" : last == 2 ? "nd" : last == 3 ? "rd" : "th";
  return fmt::format("{}{}", number, ending);
}

}  // namespace partita

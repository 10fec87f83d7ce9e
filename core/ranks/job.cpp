#include "core/ranks/job.h"

#include <fmt/format.h>

namespace partita {

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

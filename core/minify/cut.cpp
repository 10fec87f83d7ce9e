// Finds the calls that are needed. Candidates are subsets of one base graph, so a try costs only what it keeps.
#include <algorithm>

#include "core/minify/search.h"

namespace partita::minify {
namespace {

class Cutter {
 public:
  Cutter(Search& search, const std::shared_ptr<Base>& base, Kept start)
      : search_(search), base_(base), kept_(std::move(start)) {}

  Status operator()() {
    TRY_DO(guess());
    TRY_DO(results_only());
    TRY_DO(truncate_suffix());
    TRY_DO(only_what_leads_to_the_end());
    TRY_DO(remove_prefix());
    TRY_DO(only_what_leads_to_the_end());
    return delta_debugging();
  }

 private:
  bool done() const { return kept_.size() <= 1 || search_.enough(); }

  /// Takes the removables if they fail.
  Result<bool> attempt(Kept items) {
    auto candidate = items.empty() ? std::nullopt : keep(base_, items, results_);
    if (!candidate) return false;
    TRY(const bool fails, search_.fails(*candidate));
    if (!fails) return false;
    kept_ = std::move(items);
    search_.take(std::move(*candidate));
    return true;
  }

  /// Takes the first subset that fails. Tries as many at once as there are jobs.
  Result<bool> first_of(std::size_t count, const std::function<Kept(std::size_t)>& make) {
    const auto wave = static_cast<std::size_t>(std::max(search_.jobs(), 1));
    for (std::size_t begin = 0; begin < count && !search_.enough(); begin += wave) {
      std::vector<Candidate> candidates;
      std::vector<Kept> sets;
      for (std::size_t i = begin; i < std::min(begin + wave, count); ++i) {
        Kept items = make(i);
        auto candidate = items.empty() || items.size() == kept_.size() ? std::nullopt : keep(base_, items, results_);
        if (!candidate) continue;
        candidates.push_back(std::move(*candidate));
        sets.push_back(std::move(items));
      }
      if (candidates.empty()) continue;
      TRY(const std::vector<bool> fails, search_.fail(candidates));
      for (std::size_t i = 0; i < fails.size(); ++i)
        if (fails[i]) {
          kept_ = std::move(sets[i]);
          search_.take(std::move(candidates[i]));
          return true;
        }
    }
    return false;
  }

  /// Finds the smallest n in (0, kept] for which make(n) fails, assuming that larger n fail too. Divides into `jobs` +
  /// 1 parts at once; with one job, into halves.
  Status bisect(const std::function<Kept(std::size_t)>& make) {
    std::size_t passes = 0, fails = kept_.size();
    const auto jobs = static_cast<std::size_t>(std::max(search_.jobs(), 1));
    while (fails - passes > 1 && !search_.enough()) {
      std::vector<std::size_t> points;
      for (std::size_t k = 1; k <= jobs; ++k) {
        const std::size_t point = passes + (fails - passes) * k / (jobs + 1);
        if (point > passes && point < fails && (points.empty() || points.back() != point)) points.push_back(point);
      }
      if (points.empty()) points.push_back(passes + 1);
      std::vector<Candidate> candidates;
      std::vector<std::size_t> asked;
      for (const std::size_t point : points)
        if (auto candidate = keep(base_, make(point), results_)) {
          candidates.push_back(std::move(*candidate));
          asked.push_back(point);
        }
      TRY(const std::vector<bool> failed, search_.fail(candidates));
      std::size_t i = 0;
      for (const std::size_t point : points) {
        // A candidate that cannot be made counts as passing.
        const bool was_asked = i < asked.size() && asked[i] == point;
        if (was_asked && failed[i]) {
          fails = point;
          search_.take(std::move(candidates[i]));
          best_ = make(point);
          break;
        }
        i += was_asked;
        passes = point;
      }
    }
    if (!best_.empty()) kept_ = std::move(best_);
    best_.clear();
    return {};
  }

  /// Tries the calls alone that the failure names or the oracle suspects, then with more and more of what leads to
  /// them.
  Status guess() {
    if (done()) return {};
    search_.strategy("the call that the failure names");
    Kept items;
    for (const std::string& name : search_.suspects())
      if (const Node* node = base_->graph().find(name); node && base_->removable_of(*node) != Base::not_removable)
        items.push_back(base_->removable_of(*node));
    if (items.empty()) return {};
    std::ranges::sort(items);
    items.erase(std::ranges::unique(items).begin(), items.end());
    constexpr int depths[] = {0, 1, 3, 7};
    for (const int depth : depths) {
      TRY(const bool taken, attempt(leading_to(items, depth)));
      if (taken) return {};
    }
    return {};
  }

  /// Tries to leave out the graph's own results that other kept calls read.
  Status results_only() {
    if (done()) return {};
    search_.strategy("remove outputs");
    results_ = false;
    TRY(const bool taken, attempt(kept_));
    results_ = !taken;
    return {};
  }

  Status truncate_suffix() {
    if (done()) return {};
    search_.strategy("truncate suffix");
    return bisect(
        [this](std::size_t n) { return Kept(kept_.begin(), kept_.begin() + static_cast<std::ptrdiff_t>(n)); });
  }

  Status remove_prefix() {
    if (done()) return {};
    search_.strategy("remove prefix");
    return bisect([this](std::size_t n) { return Kept(kept_.end() - static_cast<std::ptrdiff_t>(n), kept_.end()); });
  }

  /// After truncating the suffix, the last call is needed. Tries to drop all calls that do not lead to it.
  Status only_what_leads_to_the_end() {
    if (done()) return {};
    search_.strategy("dead code");
    auto taken = attempt(leading_to({kept_.back()}, -1));
    return taken ? Status() : Status(std::move(taken).error());
  }

  /// The kept removables that lead to `ends` by at most `depth` reads (-1: any number), and `ends`.
  Kept leading_to(const Kept& ends, int depth) const {
    std::vector<char> in(base_->removables().size(), 0), stays(base_->removables().size(), 0);
    for (const std::size_t item : kept_) stays[item] = 1;
    Kept found = ends, level = ends;
    for (const std::size_t item : ends) in[item] = 1;
    for (int d = 0; !level.empty() && d != depth; ++d) {
      Kept next;
      for (const std::size_t item : level)
        for (const Node* read : base_->removables()[item].reads) {
          const std::size_t other = base_->removable_of(*read);
          if (other == Base::not_removable || in[other] || !stays[other]) continue;
          in[other] = 1;
          next.push_back(other);
        }
      found.insert(found.end(), next.begin(), next.end());
      level = std::move(next);
    }
    std::ranges::sort(found);
    return found;
  }

  /// Zeller's ddmin: removes one of two halves, then of ever smaller parts, until no single call can go.
  Status delta_debugging() {
    if (done()) return {};
    search_.strategy("delta debugging");
    for (std::size_t size = (kept_.size() + 1) / 2; !done();) {
      const std::size_t parts = (kept_.size() + size - 1) / size;
      // Start from the end: later calls are more often unneeded.
      TRY(bool taken, first_of(parts, [&](std::size_t i) { return without(parts - 1 - i, size); }));
      if (taken) {
        size = std::min(size, std::max<std::size_t>(kept_.size() / 2, 1));
      } else if (size == 1) {
        return {};
      } else {
        size = (size + 1) / 2;
      }
    }
    return {};
  }

  Kept without(std::size_t part, std::size_t size) const {
    const std::size_t begin = part * size, end = std::min(begin + size, kept_.size());
    Kept out(kept_.begin(), kept_.begin() + static_cast<std::ptrdiff_t>(begin));
    out.insert(out.end(), kept_.begin() + static_cast<std::ptrdiff_t>(end), kept_.end());
    return out;
  }

  Search& search_;
  const std::shared_ptr<Base>& base_;
  Kept kept_, best_;
  bool results_ = true;
};

}  // namespace

Status cut(Search& search, const std::shared_ptr<Base>& base, Kept start) {
  return Cutter(search, base, std::move(start))();
}

}  // namespace partita::minify

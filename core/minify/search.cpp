#include "core/minify/search.h"

#include <algorithm>
#include <sstream>
#include <thread>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/base/hash.h"
#include "core/base/number_text.h"

namespace partita::minify {
namespace {

constexpr const char* passed = "-";  // stored answer: does not fail
constexpr double hang_factor = 30, hang_seconds = 0.5;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> out;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) out.push_back(line);
  return out;
}

}  // namespace

Status Search::wait_while_paused() const {
  for (;;) {
    TRY_DO(check_cancelled(options_.progress));
    if (!options_.steering || !options_.steering->pause.load(std::memory_order_relaxed) || enough()) return {};
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

double Search::seconds_for_a_try() const {
  const double all = oracle_.limits.seconds;
  if (patient_ || target_.what != "timeout" || slowest_pass_ == 0) return all;
  return std::min(all, hang_factor * slowest_pass_ + hang_seconds);
}

Status Search::begin(const Candidate& start) {
  strategy("the graph itself");
  start_calls_ = start.calls;
  best_ = start;
  std::optional<std::string> answer = options_.memory.recall ? options_.memory.recall(start.hash()) : std::nullopt;
  const bool remembered = answer.has_value();
  if (!answer) {
    TRY(const Verdict verdict, judge(oracle_, start, options_.progress));
    answer = verdict ? to_json(*verdict) : passed;
    if (options_.memory.remember) options_.memory.remember(start.hash(), *answer);
  }
  (remembered ? recalled_ : tries_)++;
  nodes_tried_ += remembered ? 0 : start.graph->size();
  if (*answer == passed)
    return Diagnostic{
        Fault::Differs, "minify.passes",
        fmt::format("the graph does not fail ({}); give the inputs and the --check it fails with", oracle_.question),
        Where{.graph = start.graph->name}};
  TRY(target_, failure_from_json(*answer));
  failure_ = target_;
  known_[start.hash()] = true;
  report_try(start, true, remembered);
  if (options_.taken) options_.taken(best_, failure_);
  return target_.what == "timeout" && !patient_ ? learn_what_passing_takes(start) : Status();
}

/// Tries a single call, another than the one that the failure names: until something has passed, each hang would cost
/// the whole time limit.
Status Search::learn_what_passing_takes(const Candidate& start) {
  const auto& items = start.base->removables();
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (items[i].node->name() == failure_.node) continue;
    const auto alone = keep(start.base, {i}, false);
    if (!alone) continue;
    const auto done = fails(*alone);
    return done ? Status() : Status(done.error());
  }
  return {};
}

std::vector<std::string> Search::suspects() const {
  std::vector<std::string> names;
  if (oracle_.suspects) {
    constexpr std::string_view question = "suspects";
    const std::uint64_t key = hash_combine(best_.hash(), hash64(question));
    const std::optional<std::string> known = options_.memory.recall ? options_.memory.recall(key) : std::nullopt;
    names = known ? lines_of(*known) : oracle_.suspects(best_, options_.progress);
    if (!known && !names.empty() && options_.memory.remember)
      options_.memory.remember(key, fmt::format("{}", fmt::join(names, "\n")));
  }
  if (names.empty() && !failure_.node.empty()) names.push_back(failure_.node);
  return names;
}

Result<bool> Search::confirm() {
  Oracle oracle = oracle_;
  oracle.limits.seconds = std::min(oracle.limits.seconds, 10 * seconds_for_a_try());
  TRY(const Verdict verdict, judge(oracle, best_, options_.progress));
  ++tries_;
  nodes_tried_ += best_.graph->size();
  const bool fails = verdict && verdict->same(target_);
  if (fails) failure_ = *verdict;
  report_try(best_, fails, false);
  return fails;
}

Result<std::vector<bool>> Search::fail(std::span<const Candidate> candidates) {
  TRY_DO(wait_while_paused());
  std::vector<bool> out(candidates.size(), false);
  std::vector<std::size_t> unknown;
  std::vector<Candidate> asked;
  std::vector<std::uint64_t> hashes;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const std::uint64_t hash = candidates[i].hash();
    if (const auto known = known_.find(hash); known != known_.end()) {
      out[i] = known->second;
      continue;
    }
    const auto answer = options_.memory.recall ? options_.memory.recall(hash) : std::nullopt;
    if (answer) {
      const auto failure = *answer == passed ? Result<Failure>(Failure()) : failure_from_json(*answer);
      out[i] = failure && *answer != passed && failure->same(target_);
      if (out[i]) failure_ = *failure;
      known_[hash] = out[i];
      ++recalled_;
      report_try(candidates[i], out[i], true);
      continue;
    }
    unknown.push_back(i);
    asked.push_back(candidates[i]);
    hashes.push_back(hash);
  }
  if (asked.empty()) return out;
  Oracle oracle = oracle_;
  oracle.limits.seconds = seconds_for_a_try();
  const std::vector<Judgement> judgements = judge(oracle, asked, options_.jobs, options_.progress);
  TRY_DO(check_cancelled(options_.progress));
  for (std::size_t k = 0; k < asked.size(); ++k) {
    const Judgement& judgement = judgements[k];
    if (!judgement.verdict && is_lost(judgement.verdict.error())) return judgement.verdict.error();
    const Verdict verdict = judgement.verdict ? *judgement.verdict : Verdict();
    if (!verdict) slowest_pass_ = std::max(slowest_pass_, judgement.seconds);
    const bool fails = verdict && verdict->same(target_);
    if (fails) failure_ = *verdict;
    out[unknown[k]] = known_[hashes[k]] = fails;
    if (options_.memory.remember && judgement.verdict)
      options_.memory.remember(hashes[k], verdict ? to_json(*verdict) : passed);
    ++tries_;
    nodes_tried_ += asked[k].graph->size();
    report_try(asked[k], fails, false);
  }
  return out;
}

Result<bool> Search::fails(const Candidate& candidate) {
  TRY(const std::vector<bool> out, fail({&candidate, 1}));
  return bool(out[0]);
}

void Search::take(Candidate candidate) {
  best_ = std::move(candidate);
  ++strategies_.back().successes;
  strategies_.back().calls_after = best_.calls;
  if (options_.taken) options_.taken(best_, failure_);
}

void Search::strategy(std::string name) {
  if (!strategies_.empty()) strategies_.back().seconds += seconds() - strategy_begun_;
  strategy_begun_ = seconds();
  strategies_.push_back({std::move(name), 0, 0, best_.calls, best_.calls, 0});
}

void Search::report_try(const Candidate& candidate, bool fails, bool remembered) {
  ++strategies_.back().tries;
  if (!options_.event && !options_.progress) return;
  Event e;
  e.strategy = strategies_.back().name;
  e.tried = count_text(candidate.calls, "call") + ", " + count_text(candidate.graph->placeholders().size(), "input");
  e.fails = fails;
  e.remembered = remembered;
  e.tries = tries_;
  e.recalled = recalled_;
  e.calls = best_.calls;
  e.start_calls = start_calls_;
  e.seconds = seconds();
  e.tries_per_second = e.seconds > 0 ? static_cast<double>(tries_) / e.seconds : 0;
  e.graph = best_.graph;
  if (options_.event) options_.event(e);
  if (options_.progress && start_calls_ > 0)
    options_.progress->at(1 - static_cast<double>(best_.calls) / static_cast<double>(start_calls_), e.strategy);
}

void Search::report(MinifyResult& out) {
  strategies_.back().seconds += seconds() - strategy_begun_;
  strategy_begun_ = seconds();
  out.strategies = strategies_;
  out.failure = failure_;
  out.tries = tries_;
  out.recalled = recalled_;
  out.nodes_tried = nodes_tried_;
  out.start_calls = start_calls_;
  out.calls = best_.calls;
  out.seconds = seconds();
  out.hang_seconds = seconds_for_a_try();
}

}  // namespace partita::minify

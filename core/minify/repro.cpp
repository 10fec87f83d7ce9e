#include "core/minify/repro.h"

#include <cstdio>
#include <filesystem>

#include <fmt/format.h>

#include "core/aot/saved_case.h"
#include "core/base/number_text.h"
#include "core/base/output.h"
#include "core/base/scratch.h"
#include "core/ops/record/user_operator.h"

namespace partita::minify {
namespace {

namespace fs = std::filesystem;

std::string readme(const MinifyResult& r, const ReproText& t) {
  std::string text = fmt::format("# {}\n\n{} left of {}: it fails with `{}`.\n\n", t.check, count_text(r.calls, "call"),
                                 r.start_calls, r.failure.text());
  if (!r.failure.message.empty()) text += fmt::format("    {}\n\n", r.failure.message);
  text += fmt::format("```python\n{}```\n\n## See it again\n\n", case_text(*plain_copy(*r.graph)));
  text += fmt::format("    {}\n    python repro.py            # eager against PyTorch's {}\n\n", t.again, t.backend);
  text += t.config.empty() ? "The configuration is at its defaults.\n\n"
                           : fmt::format("With this configuration (`partita.config`):\n\n```\n{}```\n\n", t.config);
  if (!t.culprit.pass.empty() || !t.culprit.kernel.empty()) {
    text += "## Where\n\n";
    if (!t.culprit.pass.empty()) text += fmt::format("- pass: {}\n", t.culprit.pass);
    if (!t.culprit.kernel.empty()) text += fmt::format("- kernel: {}\n", t.culprit.kernel);
    if (!t.culprit.detail.empty()) text += fmt::format("\n```\n{}```\n", t.culprit.detail);
    text += "\n";
  }
  if (!r.made_up.empty()) {
    text += "These inputs replace values that could not be computed, and are zeros:";
    for (const std::string& name : r.made_up) text += " " + name;
    text += ".\n\n";
  }
  if (!r.strategies.empty()) {
    text += "## How it was found\n\n| strategy | tries | taken | calls before | after |\n|---|---|---|---|---|\n";
    for (const StrategyRun& s : r.strategies)
      if (s.tries > 0)
        text +=
            fmt::format("| {} | {} | {} | {} | {} |\n", s.name, s.tries, s.successes, s.calls_before, s.calls_after);
  }
  text += fmt::format(
      "\nMade by {}; the text is PyTorch 2.13's FX. Inputs are in `inputs.safetensors`, their sizes in "
      "`graph.input`.\n",
      t.version);
  return text;
}

}  // namespace

Status write_case(const Candidate& candidate, const std::string& folder) {
  TRY(const std::vector<Value> inputs, candidate.inputs());
  return partita::write_case(*plain_copy(*candidate.graph), inputs, folder);
}

Status write_repro(const MinifyResult& reduced, const std::string& folder, ReproText text) {
  TRY_DO(make_folder(folder));
  const std::unique_ptr<Graph> graph = plain_copy(*reduced.graph);
  const std::map<std::string, std::string> meanings = meaning_files(*graph);
  if (!meanings.empty()) text.again += text.with_meanings;
  TRY_DO(partita::write_case(*graph, reduced.inputs, folder));
  // PyTorch has the user's operators from their modules, else by the texts of their meanings.
  const std::unique_ptr<Graph> in_torch = graph->clone();
  if (text.imports.empty()) TRY_DO(place_meanings(*in_torch));
  const std::string script = repro_script(*in_torch, reduced.inputs, text);
  TRY_DO(write_file((fs::path(folder) / "repro.py").string(), script));
  const fs::path operators = fs::path(folder) / operators_folder;
  for (const auto& [name, meaning] : meanings) {
    TRY_DO(make_folder(operators.string()));
    TRY_DO(write_file((operators / name).string(), meaning));
  }
  if (!text.config.empty()) TRY_DO(write_file((fs::path(folder) / "partita.config").string(), text.config));
  return write_file((fs::path(folder) / "README.md").string(), readme(reduced, text));
}

SmallestSoFar::SmallestSoFar(std::string folder, std::string check)
    : folder_(std::move(folder)), check_(std::move(check)), begun_(std::chrono::steady_clock::now()) {}

void SmallestSoFar::take(const Candidate& candidate, const Failure& failure) {
  if (calls_ > 0 && candidate.calls > calls_) return;  // a second round, with more patience, begins with the start
  is_start_ = start_calls_ == 0;
  if (is_start_) start_calls_ = candidate.calls;
  calls_ = candidate.calls;
  waiting_ = candidate;
  failure_ = failure;
  write_what_waits();
}

void SmallestSoFar::write_what_waits() {
  constexpr double at_least = 1, most = 0.1;  // seconds, and a share of the time
  const double begin = seconds();
  if (!waiting_ || given_up_ || spent_ > at_least + most * begin) return;
  const Status written = write(*waiting_);
  waiting_.reset();
  spent_ += seconds() - begin;
  if (written) return;
  std::fprintf(stderr, "partita: warning: %s; what is found is written at the end only\n",
               written.error().line().c_str());
  given_up_ = true;
}

Status SmallestSoFar::write(const Candidate& candidate) const {
  TRY_DO(make_folder(folder_));
  const fs::path folder = folder_;
  // The files belong together, so they change places at once.
  const fs::path made = folder / ".partita-unfinished";
  const RemovedOnSignal removed(made.string());
  std::error_code ignored;
  fs::remove_all(made, ignored);
  TRY_DO(make_folder(made.string()));
  Status moved = write_case(candidate, made.string());
  for (const char* name : {"graph.py", "inputs.safetensors", "graph.input"})
    if (moved && fs::exists(made / name, ignored)) moved = move_file((made / name).string(), (folder / name).string());
  fs::remove_all(made, ignored);
  TRY_DO(moved);
  const std::string found = is_start_
                                ? std::string("Nothing smaller than the graph itself was found")
                                : fmt::format("{} left of {} were found", count_text(calls_, "call"), start_calls_);
  return write_file((folder / "README.md").string(),
                    fmt::format("# {}: not finished\n\n{} when this was written: it fails with `{}`.\n\n    {}\n\n"
                                "The minification was still at work. If it was stopped, the same command with "
                                "`--resume` goes on from there.\n",
                                check_, found, failure_.text(), failure_.message));
}

}  // namespace partita::minify

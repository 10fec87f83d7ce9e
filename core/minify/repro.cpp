#include "core/minify/repro.h"

#include <filesystem>

#include <fmt/format.h>

#include "core/aot/saved_case.h"
#include "core/base/output.h"
#include "core/minify/repro_script.h"

namespace partita::minify {
namespace {

namespace fs = std::filesystem;

std::string readme(const MinifyResult& r, const ReproText& t) {
  std::string text = fmt::format("# {}\n\n{} call{} left of {}: it fails with `{}`.\n\n", t.check, r.calls,
                                 r.calls == 1 ? "" : "s", r.start_calls, r.failure.text());
  if (!r.failure.message.empty()) text += fmt::format("    {}\n\n", r.failure.message);
  text += fmt::format("```python\n{}```\n\n## See it again\n\n", case_text(*plain_copy(*r.graph)));
  text += fmt::format("    {}\n    python repro.py            # eager against torch.compile\n\n", t.again);
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
  text += "## How it was found\n\n| strategy | tries | taken | calls before | after |\n|---|---|---|---|---|\n";
  for (const StrategyRun& s : r.strategies)
    if (s.tries > 0)
      text += fmt::format("| {} | {} | {} | {} | {} |\n", s.name, s.tries, s.successes, s.calls_before, s.calls_after);
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

Status write_repro(const MinifyResult& reduced, const std::string& folder, const ReproText& text) {
  TRY_DO(make_folder(folder));
  const std::unique_ptr<Graph> graph = plain_copy(*reduced.graph);
  TRY_DO(partita::write_case(*graph, reduced.inputs, folder));
  std::vector<std::size_t> numbers;
  for (std::size_t i = 0; i < reduced.inputs.size(); ++i)
    if (!reduced.inputs[i].get<Tensor>()) numbers.push_back(i);
  const std::string script = repro_script(case_text(*graph), numbers, text.tolerance);
  TRY_DO(write_file((fs::path(folder) / "repro.py").string(), script));
  if (!text.config.empty()) TRY_DO(write_file((fs::path(folder) / "partita.config").string(), text.config));
  return write_file((fs::path(folder) / "README.md").string(), readme(reduced, text));
}

}  // namespace partita::minify

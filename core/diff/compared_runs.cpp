#include "core/diff/compared_runs.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/load/records.h"

namespace partita {
namespace {

/// The same by "Recompiling function NAME in FILE:LINE", which only logs of stderr have.
void find_recompiled_function(Compilation& compilation) {
  constexpr std::string_view before = "Recompiling function ", between = " in ";
  const Artefact* reasons = compilation.record("recompile_reasons");
  const auto text = reasons ? reasons->text() : Result<std::string>(std::string());
  if (!text || !text->starts_with(before)) return;
  const std::string line = text->substr(before.size(), text->find('\n') - before.size());
  const std::size_t in = line.find(between);
  if (in == line.npos) return;
  compilation.name = line.substr(0, in);
  compilation.code = fmt::format("{} {}", compilation.name,
                                 std::filesystem::path(line.substr(in + between.size())).filename().string());
}

/// The name and place of the compiled function, as the metrics at the end of the compilation say.
void find_function(Compilation& compilation) {
  const Artefact* metrics = compilation.record("compilation_metrics");
  if (!metrics) return find_recompiled_function(compilation);
  for (const nlohmann::json& record : records(*metrics)) {
    if (!record.is_object()) continue;
    compilation.name = text_field(record, "co_name");
    if (compilation.name.empty()) continue;
    compilation.code = fmt::format("{} {}:{}", compilation.name,
                                   std::filesystem::path(text_field(record, "co_filename")).filename().string(),
                                   int_field(record, "co_firstlineno"));
    return;
  }
}

std::string key_of(const Artefact& a, std::string_view log, const std::string& log_name, const std::string& opened) {
  if (!log.empty()) return log_name + (log_name.empty() || a.group.empty() ? "" : " ") + a.group;
  std::error_code ignored;
  if (!std::filesystem::is_directory(opened, ignored)) return {};
  return std::filesystem::path(a.group).lexically_relative(opened).generic_string();
}

}  // namespace

const Artefact* Compilation::record(std::string_view name) const {
  const auto found = std::ranges::find(artefacts, name, [](const Artefact* a) { return record_name(*a); });
  return found == artefacts.end() ? nullptr : *found;
}

std::vector<const Artefact*> Compilation::graphs() const {
  std::vector<const Artefact*> out;
  std::ranges::copy_if(artefacts, std::back_inserter(out), &Artefact::is_graph);
  return out;
}

std::vector<Run> runs_of(const std::vector<const Loaded*>& opened) {
  std::vector<Run> runs;
  for (const Loaded* loaded : opened) {
    std::error_code ignored;
    const bool folder = std::filesystem::is_directory(loaded->path, ignored);
    std::vector<std::string_view> logs, log_of_artefact;
    for (const Artefact& a : loaded->artefacts) {
      log_of_artefact.push_back(folder ? log_of(a) : a.group.empty() && !a.is_graph() ? a.where.file : log_of(a));
      const std::string_view log = log_of_artefact.back();
      if (!log.empty() && std::ranges::find(logs, log) == logs.end()) logs.push_back(log);
    }
    const bool by_log = opened.size() == 1 && logs.size() > 1;
    const std::size_t first = runs.size();
    for (std::size_t i = 0; i < (by_log ? logs.size() : 1); ++i)
      runs.push_back({by_log ? log_title(logs[i]) : loaded->path, loaded->path, {}});
    for (std::size_t i = 0; i < loaded->artefacts.size(); ++i) {
      const Artefact& a = loaded->artefacts[i];
      const std::string_view log = log_of_artefact[i];
      if (by_log && log.empty()) continue;  // a file beside the logs
      const auto number = static_cast<std::size_t>(std::ranges::find(logs, log) - logs.begin());
      std::string log_name;
      if (!by_log && logs.size() > 1 && !log.empty()) {
        // Without the letters that are others in each run.
        const std::string title = log_title(log);
        log_name = title.starts_with("rank ") ? title.substr(0, title.find(' ', 5)) : fmt::format("log {}", number + 1);
      }
      Run& run = runs[first + (by_log ? number : 0)];
      const std::string key = key_of(a, log, log_name, loaded->path);
      auto of = std::ranges::find(run.compilations, key, &Compilation::key);
      if (of == run.compilations.end()) {
        run.compilations.push_back({key, {}, {}, {}});
        of = run.compilations.end() - 1;
      }
      of->artefacts.push_back(&a);
    }
  }
  for (Run& run : runs) {
    std::ranges::stable_partition(run.compilations, [](const Compilation& c) { return c.key.empty(); });
    for (Compilation& c : run.compilations) find_function(c);
  }
  return runs;
}

std::vector<std::vector<const Compilation*>> match_compilations(const std::vector<Run>& runs) {
  std::vector<std::vector<const Compilation*>> rows;
  using Same = bool (*)(const Compilation&, const Compilation&);
  constexpr Same ways[] = {
      [](const Compilation& a, const Compilation& b) { return a.key == b.key && a.code == b.code; },
      [](const Compilation& a, const Compilation& b) { return !a.code.empty() && a.code == b.code; },
      [](const Compilation& a, const Compilation& b) { return !a.name.empty() && a.name == b.name; },
      [](const Compilation& a, const Compilation& b) { return a.key == b.key && (a.name.empty() || b.name.empty()); },
  };
  for (std::size_t run = 0; run < runs.size(); ++run) {
    std::vector<const Compilation*> left;
    for (const Compilation& c : runs[run].compilations) left.push_back(&c);
    const std::size_t known = rows.size();
    for (const Same same : ways)
      for (std::size_t row = 0; row < known; ++row) {
        if (rows[row][run]) continue;
        const Compilation* like = *std::ranges::find_if(rows[row], [](const Compilation* c) { return c != nullptr; });
        const auto found = std::ranges::find_if(left, [&](const Compilation* c) { return same(*like, *c); });
        if (found == left.end()) continue;
        rows[row][run] = *found;
        left.erase(found);
      }
    for (const Compilation* c : left) {
      rows.emplace_back(runs.size());
      rows.back()[run] = c;
    }
  }
  return rows;
}

}  // namespace partita

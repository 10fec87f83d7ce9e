#pragma once
// All ranks of a folder run together, and compared.
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "app/tasks/rank_folder.h"
#include "app/tasks/run_artefact.h"
#include "core/compare/compare.h"
#include "core/ranks/run_together.h"

namespace partita {

/// What all ranks computed, on one backend.
struct RanksRun {
  std::vector<TensorFile> results;    ///< by rank: OUT files; empty for a rank that did not come to its end
  std::vector<RankEnd> ends;          ///< by rank
  std::optional<Diagnostic> failure;  ///< of the job; unset: all ranks are done
};

/// Error aot.cut where the ranks' graphs are forwards or backwards, which PyTorch made of a training step.
Status check_trainable(const RankFolder& folder);
/// Runs the graph of each rank as run_artefact() does, in this process and in step.
Result<RanksRun> run_ranks(const RankFolder& folder, const RunRequest& request, const Backend& backend);

/// OUT/rank_R/KIND.safetensors
std::string results_file(const RankFolder& folder, const std::string& out, std::size_t rank);
/// Writes that file for each rank.
Status write_results(const RankFolder& folder, const RanksRun& run, const std::string& out);

/// What became of each rank, equal lines of several ranks as one.
std::string text(const RankFolder& folder, const RanksRun& run);
/// {"graph", "backend", "graphs", "ok", "ranks": [{"rank", "state", "text", "node", "results"}], "failure"}
nlohmann::ordered_json to_json(const RankFolder& folder, const RanksRun& run, std::string_view backend);

/// One side against another.
struct RanksComparison {
  std::string expected, found;  ///< "stored", "interp"
  std::vector<Report> ranks;    ///< by rank
  /// Results that are the same on all ranks of the expected side and not on those of the found one: by key, the first
  /// rank whose value is not rank 0's.
  std::map<std::string, int> torn;

  bool ok() const;
};

/// Compares what sides compute, each a backend, "stored": the results that the folder holds, or "file:OUT": those that
/// write_results() wrote. The first is the reference. Rows that differ are judged by a run in double. Error
/// compare.stored when the folder holds none; a job that fails on a side is an error that names the side.
Result<std::vector<RanksComparison>> compare_ranks(const RankFolder& folder, const RunRequest& request,
                                                   const std::vector<std::string>& sides, const Tolerance& tolerance);
/// Compares every node of each rank's graph, with what the others send when all run on the interpreter (ranks_alone()):
/// so a rank is not accused of what it was sent. Sides are backends. Error cli.usage for others.
Result<std::vector<RanksComparison>> compare_nodes_of_ranks(const RankFolder& folder, const RunRequest& request,
                                                            const std::vector<std::string>& sides,
                                                            const Tolerance& tolerance);
std::string text(const RankFolder& folder, const RanksComparison& comparison);
nlohmann::ordered_json to_json(const RankFolder& folder, const RanksComparison& comparison);

}  // namespace partita

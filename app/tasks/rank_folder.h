#pragma once
// A folder with the graphs of a job's ranks.
#include <memory>
#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/load/safetensors.h"
#include "core/load/session.h"
#include "core/ranks/job.h"

namespace partita {

struct RankGraph {
  Artefact artefact;  ///< ranks with equal texts have copies of one graph, which was read once
  std::shared_ptr<const Graph> graph;
  TensorFile io;  ///< input.N, and the output.N that the rank had; empty: the folder has none
};

struct RankFolder {
  Job job;
  std::string kind;              ///< "forward": the name of the ranks' files
  std::vector<RankGraph> ranks;  ///< by rank
  std::size_t graphs = 0;        ///< that are not equal
};

/// Reads a folder that has, for each rank R from 0 up, either rank_R/KIND.py, with its values in KIND.safetensors
/// beside it, or a log with rank_R in its name, whose graph `graph` picks. `graph`: KIND; may be empty where there is
/// but one. A case.json in it names the groups: {"ranks": 2, "groups": {"0": [0, 1]}}. `inputs`: a file with values for
/// all ranks in place of those beside the texts; may be empty. Errors ranks.folder, ranks.missing, ranks.twice,
/// ranks.count, ranks.group, ranks.case, and those of reading.
Result<RankFolder> read_rank_folder(const std::string& path, const std::string& graph, const std::string& inputs,
                                    const Progress* progress);

}  // namespace partita

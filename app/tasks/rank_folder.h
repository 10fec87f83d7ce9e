#pragma once
// A folder with the graphs of a job's ranks.
#include <memory>
#include <optional>
#include <string>
#include <string_view>
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

/// The rank that a name tells: "rank_3" of a folder, "..._rank_3_x81" of a log.
std::optional<int> rank_in(std::string_view name);
/// The graph's id where the whole folder is opened: "rank_0/forward", "..._rank_0_x81/0_0.aot_forward_graph".
std::string id_in_folder(const RankGraph& graph);

struct RankFolder {
  Job job;
  Sizes mesh;                    ///< of the device mesh, as case.json says it; empty: it does not
  std::string kind;              ///< "forward": the name of the ranks' files
  std::vector<RankGraph> ranks;  ///< by rank
  std::size_t graphs = 0;        ///< that are not equal
};

/// Reads a folder that has, for each rank R from 0 up, either rank_R/KIND.py, with its values in KIND.safetensors
/// beside it, or a log with rank_R in its name, whose graph `graph` picks. `graph`: KIND; may be empty where there is
/// but one. A case.json in it names the groups, {"ranks": 2, "groups": {"0": [0, 1]}}, and, for graphs of DTensors on a
/// mesh of several dimensions, that: "mesh": [2, 2]. Graphs of DTensors become those of each rank's own. `inputs`: a
/// file with values for all ranks in place of those beside the texts; may be empty. Errors ranks.folder, ranks.missing,
/// ranks.twice, ranks.count, ranks.group, ranks.case, and those of reading.
Result<RankFolder> read_rank_folder(const std::string& path, const std::string& graph, const std::string& inputs,
                                    const Progress* progress);

}  // namespace partita

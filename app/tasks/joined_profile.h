#pragma once
// The times of the user's own run, at the nodes of the graphs of its log: a profile of torch.profiler joined to what
// inductor wrote.
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "app/tasks/profile_costs.h"
#include "core/load/output_code.h"
#include "core/load/profile/profile.h"

namespace partita {

/// What a compiled graph called, over the steps of a profile.
struct ProfiledCall {
  enum class Kind : unsigned char {
    Kernel,   ///< code of the compiler's own
    Library,  ///< an operator that the output code calls
    Other,    ///< what the output code does not name
    Wrapper,  ///< the time of the graph's runs in none of its calls
  };
  /// What says which call of the output code an event of the profile is.
  enum class Match : unsigned char {
    None,
    Order,  ///< its name and its turn
    Name,   ///< its name, which only one call has
    Place,  ///< the calls before and after it: no other is between them
  };
  Kind kind = Kind::Other;
  Match match = Match::None;
  std::string name;                  ///< "cpp_fused_gelu_0", "aten::mm"
  int kernel = -1;                   ///< in InductorCode::kernels; -1: none of them
  std::vector<std::string> nodes;    ///< of the post-grad graph
  std::vector<std::string> sources;  ///< of the graph before AOTAutograd
  std::vector<StackFrame> frames;    ///< of the user's program
  std::optional<CallCost> cost;      ///< of one call
  std::vector<double> seconds;       ///< by step: of all its calls there
  std::vector<int> calls;            ///< by step

  bool on_nodes() const { return !nodes.empty() || !sources.empty(); }
};
std::string_view name(ProfiledCall::Kind kind);
std::string_view name(ProfiledCall::Match match);

/// A compiled graph that ran.
struct ProfiledGraph {
  std::string key;                 ///< of the cache; empty: the caches were bypassed
  std::string name;                ///< "0/1 forward"; of a graph that is not in the log, "fdyey4..."
  std::vector<std::size_t> codes;  ///< in ProfiledLog::codes, all with the same code; empty: it is not in the log
  bool assumed_sizes = false;      ///< costs are by the sizes that the graph was compiled for, and it takes others, too
  std::vector<int> runs;           ///< by step
  std::vector<double> seconds;     ///< by step: of all its runs
  std::vector<ProfiledCall> calls;  ///< in the order of the output code, then others; the wrapper's own time last
  std::vector<std::string> silent;  ///< kernels and calls of the output code that the profile does not have
};

/// Steps [from, to) of a profile.
struct StepRange {
  std::size_t from = 0, to = 0;
};

/// Times over steps in which the graph ran, in seconds.
struct StepTimes {
  double median = 0, least = 0, most = 0, sum = 0;
  double calls = 0;       ///< in a step: the median
  std::size_t steps = 0;  ///< in which its graph ran

  /// Per second; nullopt where the cost is not known or nothing was measured.
  std::optional<double> rate(double of_one_call) const;
};

struct ProfiledLog {
  std::shared_ptr<const Profile> profile;
  std::vector<InductorCode> codes;    ///< of the log, which must outlive this
  std::vector<ProfiledGraph> graphs;  ///< by their first run
  std::vector<std::string> notes;     ///< what a reader must know: what was not profiled, what is damaged

  StepRange all() const { return {0, profile->steps.size()}; }
};

/// Where the time of steps went, in seconds. On a device, that of its kernels.
struct ProfileSum {
  double total = 0;     ///< of all runs of compiled graphs
  double on_nodes = 0;  ///< in calls whose nodes are known
  double named = 0;     ///< in calls without nodes
  double wrapper = 0;   ///< in no call; on a device, of the CPU, and not part of the total
  double outside = 0;   ///< of a device's kernels that no compiled graph launched, over the whole profile
};

/// Joins a profile to a log. Error profile.no_code when the log has no output code of inductor.
Result<ProfiledLog> join_profile(const Loaded& loaded, std::shared_ptr<const Profile> profile);
/// Reads the profile and joins it.
Result<ProfiledLog> profiled(const Loaded& loaded, const std::string& profile, const Progress* progress);

StepTimes times_of(const ProfiledGraph& graph, const ProfiledCall& call, StepRange steps);
StepTimes times_of(const ProfiledGraph& graph, StepRange steps);  ///< of its runs
ProfileSum sum_of(const ProfiledLog& log, StepRange steps);
/// Sum of sum_of() in a line, with what steps are.
std::string summary(const ProfiledLog& log, StepRange steps);

/// The kernels that compute a node, each with its whole time in a step: a fused kernel's is not divided.
struct NodeTime {
  struct Part {
    std::string kernel;  ///< its call_id()
    double seconds = 0;  ///< the median of the steps
  };
  std::vector<Part> parts;
  double seconds() const;
};
/// "cpp_fused_gelu_0, call 2 of 0/1 forward": unique in a profile.
std::string call_id(const ProfiledGraph& graph, const ProfiledCall& call);
/// By node name, for a graph of the log. A graph that inductor's was made from has the times of nodes of the same name
/// and operator.
std::unordered_map<std::string, NodeTime> node_times(const ProfiledLog& log, const Artefact& artefact,
                                                     const Graph& graph, StepRange steps);

nlohmann::ordered_json to_json(const ProfiledLog& log, StepRange steps);
/// As `partita kernels --profile` prints it.
std::string to_text(const ProfiledLog& log, StepRange steps);

/// Leaves only the graphs of an artefact: of output code, or of a graph that it was made from. Error profile.graph when
/// none of it ran.
Status keep_graph(ProfiledLog& log, const std::string& id);
/// "3" or "2-4", counted from 1; empty: all. Error profile.steps for steps that the profile does not have.
Result<StepRange> steps_of(const Profile& profile, const std::string& words);

}  // namespace partita

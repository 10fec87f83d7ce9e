#pragma once
// The options that verbs which run a graph have in common.
#include <string>

#include "app/tasks/run_artefact.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace partita {

/// Declares where a verb finds its graph; returns the option for the path.
CLI::Option* add_graph_options(CLI::App& app, std::string& path, std::string& graph);
/// Declares --ranks, for verbs that run a graph and say in their results who answered its collectives.
void add_ranks_option(CLI::App& app, OtherRanks& ranks);
/// Declares path, --graph, --inputs, --train, --partitioner, --threads, --random-weights, --seed.
void add_run_options(CLI::App& app, RunRequest& request);
/// Declares --profile and --steps.
void add_profile_options(CLI::App& app, std::string& profile, std::string& steps);
/// Runs compiled code in a worker, and declares --plant and --timeout for it.
void add_worker_options(CLI::App& app, RunRequest& request);

}  // namespace partita

#include "app/run_options.h"

#include <CLI/CLI.hpp>

#include "app/config_options.h"
#include "app/tasks/plant.h"

namespace partita {

CLI::Option* add_graph_options(CLI::App& app, std::string& path, std::string& graph) {
  app.add_option("--graph", graph,
                 "id of the graph, as `partita list` shows it; its end or its kind (joint), if only one is meant");
  return app.add_option("path", path, "graph, archive, log or folder");
}

void add_ranks_option(CLI::App& app, OtherRanks& ranks) {
  app.add_option_function<std::string>(
         "--ranks", [&ranks](const std::string& text) { ranks = unwrap(parse_ranks(text == "true" ? "" : text)); },
         "run all ranks of a folder together; --ranks fake: stand in for the other ranks of a graph as PyTorch's "
         "FakeProcessGroup does, fake:N for a job of N ranks, whose numbers mean nothing but their sizes")
      ->expected(0, 1)
      ->type_name("[fake[:N]]")
      ->check([](const std::string& text) {
        const auto ranks = parse_ranks(text == "true" ? "" : text);
        return ranks ? std::string() : ranks.error().message;
      });
}

void add_run_options(CLI::App& app, RunRequest& request) {
  add_graph_options(app, request.path, request.graph)->required();
  app.add_option(
      "--inputs", request.inputs,
      "safetensors file with input.0, input.1, ..., or a .input pickle, whose inputs are made as get_inputs does; "
      "without it, the values beside a repro script or a dump");
  app.add_flag("--train", request.train, "differentiate the outputs and return gradients");
  add_config_option(app, "--device", "device");
  add_config_option(app, "--partitioner", "partitioner");
  add_config_option(app, "--threads", "threads");
  app.add_option("--random-weights", request.random_weights,
                 "make up what neither the file nor the inputs hold, from this seed");
  app.add_option("--seed", request.seed, "as torch.manual_seed, before random operators draw their numbers")
      ->capture_default_str();
}

void add_profile_options(CLI::App& app, std::string& profile, std::string& steps) {
  auto* file =
      app.add_option("--profile", profile,
                     "what export_chrome_trace of torch.profiler wrote of the run of this log, .json or .json.gz: "
                     "the times of the program itself");
  app.add_option("--steps", steps, "only these steps of the profile, counted from 1: 3 or 2-4")->needs(file);
}

void add_worker_options(CLI::App& app, RunRequest& request) {
  request.worker.emplace();
  app.add_option("--plant", request.worker->plant,
                 "OP:wrong, OP:crash or OP:hang: compile this operator by a wrong rule, to see what is found")
      ->check([](const std::string& text) {
        const auto plant = parse_plant(text);
        return plant ? std::string() : plant.error().message;
      });
  app.parse_complete_callback([&request] {
    if (!request.worker->plant.empty()) request.plant = plant_in(*request.worker, request.worker->plant);
  });
  add_config_option(app, "--timeout", "step_seconds");
}

}  // namespace partita

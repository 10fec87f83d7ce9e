#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "app/cli/command.h"
#include "app/config_options.h"
#include "app/progress_line.h"
#include "app/run_options.h"
#include "app/tasks/graph_of_rank.h"
#include "app/tasks/run_artefact.h"
#include "codegen/library/library.h"
#include "core/aot/graph_io.h"

namespace partita::cli {
namespace {

struct CompileVerbOptions {
  std::string path, graph, inputs, weights = "inside";
  codegen::LibraryOptions library;
  bool json = false;
};

void print(const codegen::LibraryReport& r, const CompileVerbOptions& o) {
  if (o.json) {
    const nlohmann::ordered_json document = {{"library", o.library.output}, {"library_bytes", r.library_bytes},
                                             {"code_bytes", r.code_bytes},  {"weight_bytes", r.weight_bytes},
                                             {"kernels", r.kernels},        {"isas", r.isas},
                                             {"inputs", r.inputs},          {"outputs", r.outputs},
                                             {"gradients", r.gradients},    {"guards", r.guards},
                                             {"evaluated", r.evaluated},    {"folded", r.folded},
                                             {"compile_ms", r.compile_ms},  {"link_ms", r.link_ms}};
    fmt::print("{}\n", document.dump(1));
    return;
  }
  for (const std::string& input : r.inputs) fmt::print("input     {}\n", input);
  for (const std::string& output : r.outputs) fmt::print("output    {}\n", output);
  if (!r.gradients.empty()) fmt::print("gradients {}\n", r.gradients.size());
  for (const std::string& guard : r.guards) fmt::print("guard     {}\n", guard);
  if (r.folded > 0) fmt::print("folded    {} constants, when it is loaded\n", r.folded);
  for (const std::string& call : r.evaluated) fmt::print("evaluated {}\n", call);
  fmt::print("kernels   {} for each of {}: {} bytes of code\n", r.kernels, fmt::join(r.isas, ", "), r.code_bytes);
  fmt::print("weights   {} bytes {} the library\n", r.weight_bytes, o.library.weights_beside ? "beside" : "in");
  fmt::print("{} has {} bytes; compiled in {:.0f} ms, linked in {:.0f} ms\n", o.library.output, r.library_bytes,
             r.compile_ms, r.link_ms);
}

Result<int> run(CompileVerbOptions o) {
  ProgressLine line;
  o.library.progress = &line.progress();
  o.library.weights_beside = o.weights == "beside";
  TRY(const Loaded loaded, load(o.path, o.library.progress));
  TRY(const Artefact artefact, pick_of_rank(loaded, o.graph));
  TRY(const TensorFile io, read_inputs(o.inputs));
  auto report = codegen::compile_library(artefact, io, o.library);
  line.clear();
  if (!report) return std::move(report).error();
  print(*report, o);
  return 0;
}

}  // namespace

extern const Command compile_command = {
    "compile", "Compile a graph ahead of time, to a shared library with a C interface", [](CLI::App& app) -> Action {
      auto o = std::make_shared<CompileVerbOptions>();
      add_graph_options(app, o->path, o->graph)->required();
      app.add_option("-o,--output", o->library.output,
                     "the library; its interface, partita_model.h, is written beside it")
          ->required()
          ->check(CLI::Validator(
              [](std::string& path) {
                return path == "-" ? "a library cannot be written to standard output; give a file" : std::string();
              },
              ""));
      app.add_option("--inputs", o->inputs, "safetensors file with weights that the archive lacks, as param.NAME");
      app.add_flag("--train", o->library.train, "also a backward, with the gradients of the parameters");
      app.add_option("--weights", o->weights, "inside the library, or beside it as NAME.safetensors")
          ->check(CLI::IsMember({"inside", "beside"}))
          ->capture_default_str();
      app.add_option("--isa", o->library.isas,
                     "baseline, avx2, avx512: the instructions to make code for, of which the best is chosen when the "
                     "library is loaded; by default all")
          ->delimiter(',');
      app.add_flag("--evaluations", o->library.evaluations,
                   "take in the operators' evaluations although no call needs them at the example's sizes");
      app.add_option("--random-weights", o->library.random_weights, "make up weights that are missing, from this seed");
      add_config_option(app, "--threads", "threads");
      add_config_option(app, "--partitioner", "partitioner");
      app.add_flag("--json", o->json, "one JSON document");
      return [o] { return run(*o); };
    }};

}  // namespace partita::cli

#include "app/tasks/locate.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/cli/command.h"
#include "app/progress_line.h"
#include "app/run_options.h"

namespace partita::cli {
namespace {

struct LocateVerbOptions {
  RunRequest request;
  std::string against = "torch:inductor";
  bool switches = false, json = false;
};

/// What is to be searched: one graph by its id, else all compilations.
Result<std::vector<CompilationGraphs>> chosen(const Loaded& loaded, const std::string& id) {
  if (!id.empty()) {
    TRY(const Artefact* artefact, loaded.pick(id));
    return std::vector<CompilationGraphs>{{.start = artefact, .stages = {}}};
  }
  std::vector<CompilationGraphs> all = compilations_of(loaded);
  if (all.empty()) return loaded.pick("").error();  // which says that there is no graph
  return all;
}

void print(const std::vector<LocatedCompilation>& found) {
  for (const LocatedCompilation& compilation : found) {
    if (found.size() > 1)
      fmt::print("{}{}\n", compilation.name, compilation.left_out.empty() ? "" : ": left out: " + compilation.left_out);
    for (const Located& l : compilation.graphs) fmt::print("{}\n", fmt::join(l.lines(), "\n  "));
  }
}

Result<int> run(LocateVerbOptions o) {
  ProgressLine line;
  o.request.progress = &line.progress();
  TRY(const Loaded loaded, load(o.request.path, o.request.progress));
  TRY(const std::vector<CompilationGraphs> compilations, chosen(loaded, o.request.graph));
  std::vector<LocatedCompilation> found;
  if (compilations.size() == 1) {
    TRY(const TensorFile io, read_io(o.request, *compilations[0].start));
    TRY(found.emplace_back(LocatedCompilation{.name = compilations[0].start->id}).graphs,
        locate(compilations[0], io, o.request, o.against, o.switches));
  } else {
    TRY(found, locate_all(compilations, o.request, o.against, o.switches));
  }
  line.clear();
  if (o.json)
    fmt::print("{}\n", to_json(found).dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
  else
    print(found);
  if (std::ranges::all_of(found, [](const LocatedCompilation& c) { return !c.left_out.empty(); }))
    return input_error("locate.nothing", fmt::format("{}: no compilation was searched: {}: {}", loaded.path,
                                                     found[0].name, found[0].left_out));
  return std::ranges::all_of(found, &LocatedCompilation::clean) ? 0 : 1;
}

}  // namespace

extern const Command locate_command = {
    "locate", "Find which kernel and node of PyTorch's inductor is wrong", [](CLI::App& app) -> Action {
      auto o = std::make_shared<LocateVerbOptions>();
      add_run_options(app, o->request);
      app.add_option("--against", o->against,
                     "torch:inductor[+KEY=VALUE...], with options of inductor; PyTorch is that of --python")
          ->capture_default_str();
      app.add_flag(
          "--switches", o->switches,
          "also compile what is wrong with one setting of inductor changed after another, and say which of them "
          "make it right");
      app.add_flag("--json", o->json, "one JSON document");
      app.footer(
          "Without --graph all compilations of a log or a folder are searched: with --inputs, with values that their "
          "files hold, or with --random-weights. Those that cannot be are left out, with the reason. Exit code 1 when "
          "something is wrong.");
      return [o] { return run(*o); };
    }};

}  // namespace partita::cli

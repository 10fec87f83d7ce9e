#include "app/tasks/locate.h"

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

Result<int> run(LocateVerbOptions o) {
  ProgressLine line;
  o.request.progress = &line.progress();
  TRY(const Loaded loaded, load(o.request.path, o.request.progress));
  TRY(const Artefact* artefact, loaded.pick(o.request.graph));
  TRY(const TensorFile io, read_io(o.request, *artefact));
  const auto found = locate(*artefact, io, o.request, o.against, o.switches);
  line.clear();
  if (!found) return found.error();
  if (o.json) fmt::print("{}\n", to_json(*found).dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
  bool clean = true;
  for (const Located& l : *found) {
    if (!o.json) fmt::print("{}\n", fmt::join(l.lines(), "\n  "));
    clean = clean && l.clean();
  }
  return clean ? 0 : 1;
}

}  // namespace

extern const Command locate_command;
const Command locate_command = {
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
      app.footer("Exit code 1 when something is wrong.");
      return [o] { return run(*o); };
    }};

}  // namespace partita::cli

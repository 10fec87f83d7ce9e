
#include <fmt/format.h>

#include "app/cli/command.h"
#include "app/config_options.h"
#include "app/progress_line.h"
#include "app/run_artefact.h"
#include "app/standard_streams.h"
#include "codegen/backends.h"
#include "core/base/whereabouts.h"
#include "core/compare/per_node.h"
#include "core/store/code_store.h"

namespace partita::cli {
namespace {

struct Options {
  RunRequest request;
  std::string backends = "interp,cpu";
  double rtol = 1e-4, atol = 1e-5;
  bool per_node = false, json = false;
};

constexpr const char* stored_name = "stored";

/// One side of a comparison: a backend, or (null) the results in the IO file.
Result<const Backend*> parse_side(const std::string& name) {
  if (name == stored_name) return nullptr;
  return find_backend(name);
}

Result<std::pair<const Backend*, const Backend*>> parse_backends(const std::string& text) {
  const std::size_t comma = text.find(',');
  if (comma == std::string::npos)
    return input_error("cli.usage", fmt::format("--backends takes two names, A,B, and got {}", text));
  TRY(const Backend* a, parse_side(text.substr(0, comma)));
  TRY(const Backend* b, parse_side(text.substr(comma + 1)));
  if (!a && !b) return input_error("cli.usage", "--backends stored,stored compares the file with itself");
  return std::pair(a, b);
}

Result<int> run(Options o) {
  ProgressLine line;
  o.request.progress = &line.progress();
  TRY(const auto pair, parse_backends(o.backends));
  const auto [a, b] = pair;
  TRY(const Loaded loaded, load(o.request.path, o.request.progress));
  TRY(const Artefact* artefact, loaded.pick(o.request.graph));
  TRY(const TensorFile io, read_io(o.request));
  const Tolerance tolerance{o.rtol, o.atol};
  const auto store = std::make_shared<CodeStore>();
  std::vector<Report> reports;
  if (o.per_node && (!a || !b))
    return input_error("cli.usage", "--per-node takes two backends: a file holds results, not every node's value");
  if (o.per_node) {
    TRY(reports, compare_artefact_nodes(*artefact, io, o.request, *a, *b, tolerance, store));
  } else {
    const TensorFile stored = stored_results(io, o.request.train);
    if (stored.tensors.empty() && (!a || !b))
      return input_error("compare.stored", "the --inputs file holds no output.N to compare with");
    const auto add = [&](std::string_view expected_name, std::string_view name, Report report) {
      reports.push_back(std::move(report));
      reports.back().expected_name = expected_name;
      reports.back().found_name = name;
    };
    const std::string_view a_name = a ? a->name : stored_name, b_name = b ? b->name : stored_name;
    std::vector<TensorFile> found;
    for (const Backend* side : {a, b}) {
      auto results = side ? run_artefact(*artefact, io, o.request, *side, store) : stored;
      if (!results && is_death(results.error())) {
        add(a_name, side->name, Report{.rows = {row_of_death(results.error())}});
        break;
      }
      if (!results) return std::move(results).error();
      found.push_back(*std::move(results));
      if (!stored.tensors.empty() && a && b)
        add("the stored results", side->name, compare_results(stored, found.back(), tolerance, false));
    }
    // Strides are compared when both sides are backends.
    if (found.size() == 2) add(a_name, b_name, compare_results(found[0], found[1], tolerance, a && b));
  }
  line.clear();
  bool ok = true;
  std::string text, json;
  for (const Report& r : reports) {
    ok &= r.ok();
    text += r.text();
    json += (json.empty() ? "" : ",\n") + r.json();
    store->add(CheckRow{remembered_path(o.request.path), artefact->id, "compare", r.ok(), r.json()});
  }
  fmt::print("{}", o.json ? fmt::format("{{\"ok\": {}, \"config\": {}, \"reports\": [{}]}}\n", ok,
                                        config_json(config(), ConfigPart::Differs).dump(), json)
                          : text);
  return ok ? 0 : 1;
}

}  // namespace

extern const Command compare_command;
const Command compare_command = {
    "compare", "Hold two backends against one another and against stored results", [](CLI::App& app) -> Action {
      auto o = std::make_shared<Options>();
      add_run_options(app, o->request);
      add_worker_options(app, o->request);
      app.add_option("--backends", o->backends, "A,B: compares B with A; stored stands for the results in --inputs")
          ->capture_default_str();
      app.add_option("--rtol", o->rtol)->check(CLI::NonNegativeNumber)->capture_default_str();
      app.add_option("--atol", o->atol)->check(CLI::NonNegativeNumber)->capture_default_str();
      app.add_flag("--per-node", o->per_node,
                   "every node's value, not only results; rounding is told from error by a run in double");
      app.add_flag("--json", o->json, "one JSON document");
      return [o] { return run(*o); };
    }};

}  // namespace partita::cli

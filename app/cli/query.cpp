#include <chrono>
#include <filesystem>
#include <set>
#include <thread>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "app/cli/command.h"
#include "app/progress_line.h"
#include "app/run_options.h"
#include "app/tasks/queries.h"
#include "core/base/assign.h"
#include "core/base/file_watch.h"
#include "core/load/follow.h"

namespace partita::cli {
namespace {

struct QueryVerbOptions {
  RunRequest request;
  std::string question;
  std::vector<std::string> words;
  bool json = false, follow = false;
};

std::string json_of(const QueryVerbOptions& o, const Artefact* graph, const QueryAnswer& answer, int indent) {
  nlohmann::ordered_json document = {{"question", o.question}, {"arguments", o.words}};
  if (graph) document["graph"] = graph->id;
  document.update(to_json(answer));
  return document.dump(indent, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

/// Prints the rows that were not printed before: as lines, or as a line of JSON.
void print_new_rows(const QueryVerbOptions& o, QueryAnswer answer, std::set<std::string>& printed) {
  std::erase_if(answer.rows, [&](const QueryRow& row) { return !printed.insert(row.text).second; });
  if (answer.rows.empty()) return;
  if (o.json) {
    fmt::print("{}\n", json_of(o, nullptr, answer, -1));
  } else {
    for (const QueryRow& row : answer.rows) fmt::print("{}\n", printable_lines(row.text));
  }
  std::fflush(stdout);
}

/// Answers again whenever the log or folder has grown, until the process is ended.
Result<int> follow(const QueryVerbOptions& o, const Query& query) {
  if (query.needs_graph)
    return input_error("cli.usage", "--follow is for questions about a log, and " + o.question + " is about a graph");
  namespace fs = std::filesystem;
  using Clock = std::chrono::steady_clock;
  constexpr double at_least = 0.5, at_most = 2, share = 0.02;  // seconds between looks; of a processor
  const std::string path = fs::path(o.request.path).lexically_normal().string();
  Followed followed(path);
  FileWatch watch(fs::is_directory(path) ? std::string() : fs::path(path).filename().string());
  const Progress progress;
  auto begun = followed.begin(&progress);
  // A program may not have written anything yet.
  if (!begun && begun.error().code != "load.nothing") return begun.error();
  Loaded loaded = begun ? *std::move(begun) : Loaded{path, {}, {}};
  std::set<std::string> printed;
  for (bool grown = true;;) {
    const auto start = Clock::now();
    if (grown) {
      TRY(const QueryAnswer found, answer({loaded, nullptr, o.request}, o.question, o.words));
      print_new_rows(o, found, printed);
    }
    for (const std::string& folder : followed.folders()) watch.add(folder);
    const std::chrono::duration<double> took = Clock::now() - start;
    std::this_thread::sleep_for(std::max(std::chrono::duration<double>(at_least), took / share));
    watch.wait(at_most, &progress);
    TRY(LoadNews news, followed.next(&progress));
    for (const std::string& file : news.rewritten)
      return input_error("load.rewritten", "holds something else now; ask again", {.file = file});
    grown = !news.empty();
    add_news(loaded, std::move(news));
  }
}

Result<int> run(const QueryVerbOptions& o) {
  const auto query = std::ranges::find(queries(), o.question, &Query::name);
  if (o.follow && query != queries().end()) return follow(o, *query);
  TRY(const Loaded loaded, load(o.request.path));
  QuerySubject subject{loaded, nullptr, o.request};
  ProgressLine line;
  if (!o.request.profile.empty()) subject.request.progress = &line.progress();  // it may have gigabytes
  if (query != queries().end() && query->needs_graph) TRY_DO(assign(subject.artefact, loaded.pick(o.request.graph)));
  TRY(const QueryAnswer found, answer(subject, o.question, o.words));
  if (o.json) {
    fmt::print("{}\n", json_of(o, subject.artefact, found, 1));
    return 0;
  }
  fmt::print("{}\n", printable_lines(found.text));
  for (const QueryRow& row : found.rows) fmt::print("  {}\n", printable_lines(row.text));
  return 0;
}

/// The questions, for the help.
std::string questions() {
  std::string out = "Questions:\n";
  for (const Query& q : queries())
    out += fmt::format("  {:<24}{}\n", fmt::format("{} {}", q.name, fmt::join(q.arguments, " ")), q.help);
  return out;
}

}  // namespace

extern const Command query_command = {
    "query", "Fixed questions about a graph, answered exactly", [](CLI::App& app) -> Action {
      auto o = std::make_shared<QueryVerbOptions>();
      add_run_options(app, o->request);
      add_profile_options(app, o->request.profile, o->request.steps);
      app.add_option("question", o->question, "one of those below")->required();
      app.add_option("words", o->words, "what the question is about");
      app.add_flag("--json", o->json, "one JSON document");
      app.add_flag("--follow", o->follow,
                   "go on while the log or folder grows: print each row when it comes, with "
                   "--json as a document a line");
      app.footer(questions());
      return [o] { return run(*o); };
    }};

}  // namespace partita::cli

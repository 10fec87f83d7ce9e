#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "app/cli/command.h"
#include "app/run_options.h"
#include "app/tasks/queries.h"

namespace partita::cli {
namespace {

struct QueryVerbOptions {
  RunRequest request;
  std::string question;
  std::vector<std::string> words;
  bool json = false;
};

std::string printable_lines(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 && c != '\n') c = '?';
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

Result<int> run(const QueryVerbOptions& o) {
  TRY(const Loaded loaded, load(o.request.path));
  QuerySubject subject{loaded, nullptr, o.request};
  const auto query = std::ranges::find(queries(), o.question, &Query::name);
  if (query != queries().end() && query->needs_graph) {
    TRY(subject.artefact, loaded.pick(o.request.graph));
  }
  TRY(const QueryAnswer found, answer(subject, o.question, o.words));
  if (o.json) {
    nlohmann::ordered_json document = {{"question", o.question}, {"arguments", o.words}};
    if (subject.artefact) document["graph"] = subject.artefact->id;
    document.update(to_json(found));
    fmt::print("{}\n", document.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
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

extern const Command query_command;
const Command query_command = {"query", "Fixed questions about a graph, answered exactly", [](CLI::App& app) -> Action {
                                 auto o = std::make_shared<QueryVerbOptions>();
                                 add_run_options(app, o->request);
                                 app.add_option("question", o->question, "one of those below")->required();
                                 app.add_option("words", o->words, "what the question is about");
                                 app.add_flag("--json", o->json, "one JSON document");
                                 app.footer(questions());
                                 return [o] { return run(*o); };
                               }};

}  // namespace partita::cli

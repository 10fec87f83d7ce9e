#pragma once
// Fixed questions about graphs, each with an exact answer: `partita query`, and the palette of the window.
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "app/tasks/run_artefact.h"

namespace partita {

/// What a question is about.
struct QuerySubject {
  const Loaded& loaded;
  const Artefact* artefact = nullptr;  ///< null: none is chosen; questions about a log need none
  RunRequest request;                  ///< for what has to run: inputs, train
};

struct QueryRow {
  std::string node;  ///< what the row is about; empty: no node
  std::string text;
  std::optional<double> number;  ///< bytes, or what rows are ranked by
  /// Of what the row is about, when that is not the graph of the question: its id.
  std::string artefact = {};
  std::vector<std::string> cells = {};  ///< the same as `text` in the answer's columns
  StackFrame at = {};                   ///< the line of the program; no file: the row is about none
};

/// Bytes in use over the steps of a forward and a backward.
struct QueryCurve {
  std::string name;                                        ///< whose they are: "our cut"
  std::vector<std::pair<std::string, std::string>> steps;  ///< the graph and the name of each
  std::vector<double> bytes;                               ///< at each step
};

struct QueryAnswer {
  std::string text;  ///< the answer in one line
  std::vector<QueryRow> rows;
  std::vector<std::string> columns = {};                     ///< headings of the rows' cells; empty: rows are texts
  std::shared_ptr<const nlohmann::ordered_json> facts = {};  ///< more keys of the JSON; null: none
  std::vector<QueryCurve> curves = {};                       ///< what the window draws beside the rows
};

struct Query {
  std::string_view name;
  std::vector<std::string_view> arguments;  ///< "NODE"; those in brackets may be left out
  std::string_view help;
  bool needs_graph;
  Result<QueryAnswer> (*answer)(const QuerySubject& subject, const std::vector<std::string>& words);
  bool needs_file = !needs_graph;  ///< it is about all of a file, or about graphs beside that of the question
};

/// All questions.
std::span<const Query> queries();
/// Answers one. Errors: query.unknown lists them, query.arguments says what it takes, query.node for an unknown node,
/// and those of what has to run.
Result<QueryAnswer> answer(const QuerySubject& subject, const std::string& question,
                           const std::vector<std::string>& words);
/// Answers one about an artefact of the file at `path`, with values from the file `inputs` (empty: made up); a question
/// about a whole log reads the file again. `words`: the question and its arguments.
Result<QueryAnswer> ask(const std::string& path, const Artefact& artefact, const std::string& inputs,
                        const std::vector<std::string>& words, const Progress& progress);
nlohmann::ordered_json to_json(const QueryAnswer& answer);

}  // namespace partita

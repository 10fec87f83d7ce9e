// The options of `partita minify` as an oracle: a crash, a wrong result or the user's command, tried by this process
// and its forks or by `partita minify --once`. Also the search for the guilty pass or kernel, and the report.
#include "app/tasks/minify_question.h"

#include <algorithm>
#include <thread>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "app/tasks/config_values.h"
#include "app/tasks/locate.h"
#include "app/tasks/plant.h"
#include "codegen/torch/column.h"
#include "core/base/hash.h"
#include "core/compare/check_passes.h"
#include "core/ir/print.h"

namespace partita {

using minify::Candidate;
using minify::Oracle;

namespace {

/// Tries the graph of a folder and no other; `mode`: --once or --blame.
minify::CaseProgram try_program(const MinifyCheck& check, const std::string& program, const char* mode) {
  return [check, program, mode](const std::string& folder) {
    std::vector<std::string> words = {program, "minify", folder + "/graph.py", "--inputs",
                                      folder + "/inputs.safetensors"};
    words.insert(words.end(), {"--check", check.check, "--tolerance", fmt::format("{}", check.tolerance), "--timeout",
                               fmt::format("{}", check.timeout), "--memory-limit",
                               fmt::format("{}", check.memory_limit), mode, "--json"});
    if (!check.plant.empty()) words.insert(words.end(), {"--plant", check.plant});
    return with_configuration(std::move(words));
  };
}

/// Longer than the program gives its own tries, so that it can report a time-out itself.
ProcessLimits outer_limits(const MinifyCheck& check) {
  constexpr double seconds_to_start = 5;
  return {check.timeout + seconds_to_start, 0};
}

/// The nodes that locate() names, in the graph that is minified. An error is no answer: the search goes on without.
std::function<std::vector<std::string>(const Candidate&, const Progress*)> located_nodes(const std::string& column) {
  return [column](const Candidate& candidate, const Progress* progress) -> std::vector<std::string> {
    const auto inputs = candidate.inputs();
    if (!inputs) return {};
    auto report = torch::locate(column, *candidate.graph, *inputs, {.config = config(), .progress = progress});
    return report ? Located{"", *std::move(report)}.given_nodes() : std::vector<std::string>();
  };
}

Result<MinifyQuestion> command_question(const MinifyCheck& check) {
  MinifyQuestion q;
  q.name = "command";
  q.jobs = std::max(check.jobs, 1);
  TRY(q.oracle, minify::command_oracle(check.command, check.matches, {check.timeout, check.memory_limit << 20}));
  q.oracle.in_child = q.jobs > 1;
  q.again = check.command;
  return q;
}

}  // namespace

Result<MinifyQuestion> minify_question(const MinifyCheck& check) {
  if (check.check.empty() == check.command.empty())
    return input_error("cli.usage", "minify takes --check crash|accuracy[:backend] or --command 'CMD {}'");
  if (!check.command.empty()) return command_question(check);
  const std::size_t colon = check.check.find(':');
  const std::string kind = check.check.substr(0, colon);
  const std::string backend =
      colon == std::string::npos ? std::string(default_compiler().name) : check.check.substr(colon + 1);
  if (kind != "crash" && kind != "accuracy")
    return input_error(
        "cli.usage",
        fmt::format("--check takes crash or accuracy, with a backend behind a colon, and got {}", check.check));
  MinifyQuestion q;
  q.jobs = check.jobs > 0 ? check.jobs : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  TRY(q.backend, find_backend(backend));
  q.name = kind + ":" + backend;
  q.tolerance = check.tolerance;
  std::optional<std::pair<const Op*, Plant>> plant;
  if (!check.plant.empty()) {
    TRY(plant, parse_plant(check.plant));
  }
  q.oracle_of = [=](const CompileFn& compile) {
    const CompileFn faulty = plant && compile ? planted(compile, plant->first, plant->second) : compile;
    Oracle oracle = kind == "crash"
                        ? minify::crash_oracle(backend, faulty)
                        : minify::accuracy_oracle(backend, faulty, {.tolerance = check.tolerance}, config().threads);
    oracle.limits = {check.timeout, check.memory_limit << 20};
    oracle.in_child = true;  // compiled code may crash whatever is asked of it
    if (backend.starts_with("torch:inductor")) oracle.suspects = located_nodes(backend);
    return oracle;
  };
  TRY_DO(q.backend->start(q.backend_options));  // tries are forks of this process
  q.oracle = q.oracle_of(q.backend->make(q.backend_options));
  q.oracle.question += check.plant.empty() ? "" : " planted " + check.plant;
  q.options = fmt::format("--check {}{}", q.name, check.plant.empty() ? "" : " --plant " + check.plant);
  const bool configured = !config_part(config(), ConfigPart::Differs).empty();
  q.again = fmt::format("partita minify graph.py --inputs inputs.safetensors {} --once{}", q.options,
                        configured ? " --config-file partita.config" : "");
  return q;
}

Oracle asked_elsewhere(const MinifyQuestion& question, const MinifyCheck& check, const std::string& program) {
  Oracle oracle;
  oracle.question = question.oracle.question;
  oracle.program = try_program(check, program, "--once");
  oracle.limits = outer_limits(check);
  oracle.cut_first = question.oracle.cut_first;
  return oracle;
}

Result<minify::Culprit> find_culprit(const MinifyQuestion& question, const Candidate& smallest,
                                     const minify::Failure& failure, double hang_seconds) {
  if (!question.backend || !question.backend->machine) return minify::Culprit();
  const auto oracle_of = [&](const CompileFn& compile) {
    Oracle oracle = question.oracle_of(compile);
    if (hang_seconds > 0) oracle.limits.seconds = std::min(oracle.limits.seconds, hang_seconds);
    return oracle;
  };
  return find_culprit(question.backend->stages(question.backend_options), oracle_of, smallest, failure,
                      {.tolerance = question.tolerance});
}

Result<minify::Culprit> culprit_elsewhere(const MinifyCheck& check, const std::string& program,
                                          const minify::MinifyResult& reduced, const Progress* progress) {
  const Candidate smallest = minify::with_inputs(reduced.graph, reduced.inputs, 0);
  // A try for each pass and each step of the plan, each within its own limit.
  const ProcessLimits no_limit;
  MinifyCheck quick = check;
  quick.timeout = std::min(check.timeout, reduced.hang_seconds);
  TRY(const ProcessEnd end, minify::run_on_case(try_program(quick, program, "--blame"), smallest, no_limit, progress));
  const auto answer = nlohmann::json::parse(end.output, nullptr, false);
  if (!answer.is_object() || !answer.contains("pass") || !answer.contains("kernel"))
    return Diagnostic{Fault::Differs, "minify.no_culprit", "who is to blame could not be found out: " + end.output};
  return minify::Culprit{answer["pass"], answer["kernel"], answer.value("detail", std::string())};
}

std::string to_json(const minify::Culprit& culprit) {
  return nlohmann::ordered_json{{"pass", culprit.pass}, {"kernel", culprit.kernel}, {"detail", culprit.detail}}.dump();
}

minify::Memory remembered_tries(const std::shared_ptr<CodeStore>& store, const std::string& session) {
  minify::Memory memory;
  memory.recall = [store, session](std::uint64_t candidate) { return store->find_try(session, candidate); };
  memory.remember = [store, session](std::uint64_t candidate, const std::string& answer) {
    store->add_try(session, candidate, answer);
  };
  return memory;
}

namespace {

/// A text that other inputs do not have.
std::string identity(const Value& value) {
  if (const auto* n = value.get<std::int64_t>()) return fmt::format("{}", *n);
  if (const auto* x = value.get<double>()) return fmt::format("{:a}", *x);
  const auto* t = value.get<Tensor>();
  if (!t) return {};
  std::string text = fmt::format("{}[{}]", short_name(t->dtype), fmt::join(t->sizes, ", "));
  if (const auto dense = t->contiguous())
    text += content_hash({reinterpret_cast<const char*>(dense->data()),
                          static_cast<std::size_t>(dense->numel()) * itemsize(dense->dtype)});
  return text;
}

}  // namespace

std::string minify_session(const minify::Start& start, const MinifyQuestion& question) {
  std::string text;
  for (const std::string& part : {std::string(PARTITA_VERSION), question.oracle.question, print(*start.graph)})
    add_part(text, part);
  for (const Value& v : start.inputs) add_part(text, identity(v));
  return content_hash(text);
}

minify::ReproText repro_text(const MinifyQuestion& question, const minify::Culprit& culprit) {
  return {question.name,      question.again, "partita " PARTITA_VERSION,
          question.tolerance, culprit,        config_text(config(), ConfigPart::Differs)};
}

std::string minify_report(const minify::MinifyResult& r, const minify::Culprit& culprit, const std::string& folder) {
  nlohmann::ordered_json document = {
      {"folder", folder},
      {"config", config_json(config(), ConfigPart::Differs)},
      {"failure", {{"what", r.failure.what}, {"op", r.failure.op}, {"message", r.failure.message}}},
      {"calls", {{"before", r.start_calls}, {"after", r.calls}}},
      {"tries", r.tries},
      {"recalled", r.recalled},
      {"nodes_tried", r.nodes_tried},
      {"seconds", r.seconds},
      {"tries_per_second", r.seconds > 0 ? static_cast<double>(r.tries) / r.seconds : 0},
      {"nodes_per_second", r.seconds > 0 ? static_cast<double>(r.nodes_tried) / r.seconds : 0},
      {"pass", culprit.pass},
      {"kernel", culprit.kernel},
      {"made_up", r.made_up},
      {"graph", print(*r.graph, {.annotations = true, .origins = false, .deletions = false})},
      {"strategies", nlohmann::ordered_json::array()}};
  for (const minify::StrategyRun& s : r.strategies)
    if (s.tries > 0)
      document["strategies"].push_back({{"name", s.name},
                                        {"tries", s.tries},
                                        {"taken", s.successes},
                                        {"calls_before", s.calls_before},
                                        {"calls_after", s.calls_after},
                                        {"seconds", s.seconds}});
  // What a dying child prints need not be UTF-8.
  return document.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

Result<MinifyTool> minify_tool(const MinifyRequest& asked, const std::string& plant, const std::string& program) {
  const bool planted = asked.compiler == kPlanted;
  MinifyCheck check;
  check.check = fmt::format("{}:{}", asked.check, planted ? default_compiler().name : asked.compiler);
  if (planted) check.plant = plant;
  TRY(MinifyQuestion question, minify_question(check));
  MinifyTool tool;
  tool.oracle = asked_elsewhere(question, check, program);
  tool.jobs = question.jobs;
  tool.functional = question.functional();
  tool.options = question.options;
  tool.words = repro_text(question, {});
  tool.memory = [question](const minify::Start& start) {
    return remembered_tries(std::make_shared<CodeStore>(), minify_session(start, question));
  };
  tool.culprit = [check, program](const minify::MinifyResult& reduced, const Progress& progress) {
    return culprit_elsewhere(check, program, reduced, &progress);
  };
  tool.report = [](const minify::MinifyResult& reduced, const minify::Culprit& culprit) {
    return minify_report(reduced, culprit);
  };
  return tool;
}

}  // namespace partita

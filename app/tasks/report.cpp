// Collects what a report says as JSON: graphs, cut, passes, kernels, a comparison, facts of a log. What a graph does
// not permit becomes a line of the summary. The HTML page carries this JSON and the program that shows it.
#include "app/tasks/report.h"

#include <array>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sodium.h>

#include "app/tasks/config_values.h"
#include "app/tasks/cuts.h"
#include "app/tasks/graph_changes.h"
#include "app/tasks/kernels.h"
#include "app/tasks/notes.h"
#include "codegen/host/processor.h"
#include "core/aot/aot.h"
#include "core/base/number_text.h"
#include "core/base/whereabouts.h"
#include "core/compare/report_json.h"
#include "core/diff/compared_runs.h"
#include "core/diff/timeline.h"
#include "core/load/records.h"
#include "core/store/code_store.h"

namespace partita {

// The page's style and program, resources/report.
std::string_view report_style();
std::string_view report_program();

namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t most_nodes = 12'000;     // in all pictures together
constexpr std::size_t most_bytes = 1'000'000;  // of diffs, and of code of kernels

/// JSON that ends no script element and begins no comment in one.
std::string script_safe(const Json& data) {
  const std::string text = data.dump(-1, ' ', true, Json::error_handler_t::replace);
  std::string out;
  out.reserve(text.size());
  for (const char c : text)
    c == '<' ? out += "\\u003c" : c == '>' ? out += "\\u003e" : c == '&' ? out += "\\u0026" : out += c;
  return out;
}

/// For the page's own policy: nothing else runs or styles it.
std::string policy_hash(std::string_view text) {
  std::array<unsigned char, crypto_hash_sha256_BYTES> hash;
  crypto_hash_sha256(hash.data(), reinterpret_cast<const unsigned char*>(text.data()), text.size());
  std::array<char, sodium_base64_ENCODED_LEN(crypto_hash_sha256_BYTES, sodium_base64_VARIANT_ORIGINAL)> text_of;
  sodium_bin2base64(text_of.data(), text_of.size(), hash.data(), hash.size(), sodium_base64_VARIANT_ORIGINAL);
  return fmt::format("'sha256-{}'", text_of.data());
}

class Content {
 public:
  Content(const ReportRequest& request, const Loaded& loaded) : request_(request), loaded_(loaded) {}

  Result<ReportContent> make() {
    Json data = {{"graphs", Json::array()}, {"first", 0}};
    row("File", loaded_.path);
    for (const Artefact& a : loaded_.artefacts)
      if (a.is_graph()) add_artefact(a, data);
    const auto picked = loaded_.pick(request_.run.graph);
    if (!picked && !request_.run.graph.empty()) return picked.error();
    if (!picked) {
      row("Graph", "several; --graph chooses one for cut, passes and kernels");
    } else {
      row("Graph", (*picked)->id);
      for (std::size_t g = 0; g < data["graphs"].size(); ++g)
        if (data["graphs"][g]["id"] == (*picked)->id) data["first"] = g;
      add_flow(**picked, data);
      add_kernels(**picked, data);
      TRY_DO(add_comparison(**picked, data));
    }
    for (const InductorCode& code : inductor_code(loaded_)) data["inductor"].push_back(inductor_json(code));
    add_compilations(data);
    TRY_DO(add_repro(data));
    environment();
    for (const Diagnostic& w : loaded_.warnings) row("Not read", w.line());
    return ReportContent{loaded_.path, std::move(summary_), std::move(data)};
  }

 private:
  void row(std::string_view name, std::string_view text) { summary_.emplace_back(name, text); }

  void missing(std::string_view what, const Diagnostic& why) { row(what, "not possible: " + why.line()); }

  /// Adds a picture while there is room, and the notes at its nodes, which the window keeps under `noted`.
  void add_graph(std::shared_ptr<const Graph> graph, const std::string& id, const std::string& noted,
                 const std::string& title, Json& data) {
    auto notes = notes_of(request_.run.path, noted);
    if (!notes) missing("Notes at " + title, notes.error());
    for (const auto& [node, text] : notes ? *notes : Notes())
      if (graph->find(node)) data["notes"].push_back({{"graph", title}, {"node", node}, {"text", text}});
    if (graph->size() > most_nodes - nodes_) return row("Left out", fmt::format("{} ({} nodes)", title, graph->size()));
    nodes_ += graph->size();
    data["graphs"].push_back(request_.picture(std::move(graph), id, title, notes ? *notes : Notes()));
  }

  void add_artefact(const Artefact& a, Json& data) {
    auto graph = a.graph();
    if (!graph) return missing(a.id, graph.error());
    add_graph(*std::move(graph), a.id, a.id, a.title.empty() ? a.id : fmt::format("{}: {}", a.id, a.title), data);
  }

  /// The graphs that `run` compiles, where the joint one is cut, and what the passes did.
  void add_flow(const Artefact& artefact, Json& data) {
    auto graph = artefact.graph();
    if (!graph) return;
    AotOptions options;
    options.snapshots = true;
    add_cuts(artefact, data);
    options.train = may_train(artefact);  // PyTorch's own cut is not cut again
    auto made = aot(**graph, artefact.program.get(), as_run(**graph, artefact, options));
    if (!made) {
      missing("Training", made.error());
      options.train = false;
      made = aot(**graph, artefact.program.get(), as_run(**graph, artefact, options));
      if (!made) return missing("Inference", made.error());
    }
    const Partition& p = made->partition;
    if (made->joint) {
      add_graph(std::move(made->joint), "made/joint", artefact.id + "/joint", "joint graph, made here", data);
      data["cut"] = {{"saved", saved_json(p)},
                     {"recomputed", p.recomputed},
                     {"activation_bytes", p.activation_bytes},
                     {"input_bytes", p.input_bytes}};
      row("Saved for the backward, our cut",
          fmt::format("{} values, {} of activations, {} of inputs; {} calls computed again", p.saved.size(),
                      bytes_text(static_cast<double>(p.activation_bytes)),
                      bytes_text(static_cast<double>(p.input_bytes)), p.recomputed.size()));
    }
    data["passes"] = Json::array();
    for (const StageRun& stage : made->stages) add_passes(stage.run, "", data["passes"]);
    for (const auto& [name, half] : {std::pair("forward", p.forward.get()), std::pair("backward", p.backward.get())}) {
      if (!half) continue;
      add_graph(half->clone(), std::string("made/") + name, artefact.id + "/" + name,
                std::string(name) + " graph, made here", data);
      PassContext context;
      const std::unique_ptr<Graph> passed = half->clone();
      const auto run = post_grad_passes(*passed, context, {.snapshots = true});
      if (!run) {
        missing("Post-grad passes", run.error());
        continue;
      }
      add_passes(*run, name, data["passes"]);
    }
  }

  /// PyTorch's cut, where its graphs are there, and ours of the joint graph beside them.
  void add_cuts(const Artefact& artefact, Json& data) {
    const StepGraphs graphs = graphs_beside(loaded_, artefact);
    if (!graphs.forward || !graphs.backward) return;
    const auto cuts = read_cuts(graphs);
    if (!cuts) return missing("PyTorch's cut", cuts.error());
    row("Saved for the backward, PyTorch's cut", summary(*cuts->theirs));
    if (cuts->budget) row("PyTorch's memory budget", fmt::format("{}", *cuts->budget));
    Json rows = Json::array();
    const auto bytes = [](const std::optional<SavedValue>& v) { return v ? Json(v->bytes) : Json(nullptr); };
    for (const CutDifference& d : cuts->values) rows.push_back({d.name, bytes(d.theirs), bytes(d.ours), d.why});
    data["cuts"] = {{"values", std::move(rows)}};
  }

  /// What a step of the program holds, as `bench` measures it and `query peak` says.
  void add_memory(const Artefact& artefact, bool train, Json& data) {
    RunRequest how = request_.run;
    how.train = train;
    const auto memory = cut_memory(loaded_, artefact, how);
    if (!memory) return missing("Memory of a step", memory.error());
    const auto& [theirs, ours] = *memory;
    if (theirs) row("A training step by PyTorch's cut holds", held_text(*theirs));
    if (ours) row(train ? "A training step holds" : "A step holds", held_text(*ours));
    data["memory"] = memory_json(ours ? *ours : *theirs);
  }

  void add_passes(const PipelineRun& run, const std::string& graph, Json& out) {
    const Graph* before = run.before.get();
    for (const PassRun& pass : run.passes) {
      Json row = {{"pass", pass.name},           {"stage", row_of(pass.stage).passes}, {"ms", pass.milliseconds},
                  {"before", pass.nodes_before}, {"after", pass.nodes_after},          {"graph", graph}};
      if (pass.changed && before && pass.after) {
        std::string diff = graph_changes(*before, *pass.after);
        if (text_bytes_ + diff.size() > most_bytes)
          diff = "+ left out, to keep the page small: see partita passes --print changed";
        text_bytes_ += diff.size();
        row["diff"] = std::move(diff);
      }
      out.push_back(std::move(row));
      before = pass.after.get();
    }
  }

  bool has_inputs() const { return !request_.run.inputs.empty() || request_.run.random_weights; }

  static bool may_train(const Artefact& artefact) {
    const auto graph = artefact.graph();
    return graph && check_not_cut(**graph, artefact);
  }

  void add_kernels(const Artefact& artefact, Json& data) {
    const Backend& backend = default_compiler();
    RunRequest how = request_.run;
    std::optional<Result<std::vector<PlannedGraph>>> planned;
    // Kernels of a training step, or of inference where weights without gradients make training impossible.
    for (const bool train : {true, false}) {
      how.train = train;
      if (train && !may_train(artefact)) continue;
      planned = plan_kernels(artefact, nullptr, how, backend);
      if (*planned) break;
    }
    if (!*planned) return missing("Kernels", planned->error());
    add_memory(artefact, how.train, data);
    const StagedCompiler compiler = backend.stages({});
    std::size_t room = most_bytes, steps = 0;
    for (const PlannedGraph& graph : **planned) {
      Json list = kernels_json(graph);
      list.erase("buffers");
      list.erase("live_bytes");
      for (std::size_t s = 0; s < graph.report.rows.size(); ++s) {
        const auto code = compiler.forms.front().text(graph.planned.second, s);
        if (!code || !*code || (*code)->text.size() > room) continue;
        room -= (*code)->text.size();
        list["steps"][s]["code"] = (*code)->text;
      }
      steps += graph.report.rows.size();
      data["kernels"].push_back(std::move(list));
    }
    row("Kernels", fmt::format("{} steps", steps));
  }

  /// The compiler against the interpreter and against what the file holds, each in a process of its own.
  Status add_comparison(const Artefact& artefact, Json& data) {
    TRY(const TensorFile io, read_io(request_.run, artefact));
    if (io.tensors.empty() && !has_inputs()) return {};
    TRY(const Backend* reference, find_backend("interp"));
    const Backend& compiler = default_compiler();
    const auto store = std::make_shared<CodeStore>();
    const TensorFile stored = stored_results(io, request_.run.train);
    const auto found = run_artefact(artefact, io, request_.run, compiler, store);
    if (!found) {
      missing("Run, compiled", found.error());
      return {};
    }
    const auto expected = run_artefact(artefact, io, request_.run, *reference, store);
    if (expected)
      add_report(compare_results(*expected, *found, tolerance_without_baseline(), true), reference->name, compiler.name,
                 data);
    if (!expected) missing("Run, interpreted", expected.error());
    if (!stored.tensors.empty())
      add_report(compare_results(stored, *found, tolerance_without_baseline(), false), "the stored results",
                 compiler.name, data);
    return {};
  }

  void add_report(const Report& report, std::string_view expected, std::string_view found, Json& data) {
    Json rows = Json::array();
    for (const Difference& d : report.rows) {
      std::string what = d.died;
      for (const std::string& each : d.layout) what += (what.empty() ? "" : "; ") + each;
      if (d.rounding) what += "rounding";
      rows.push_back({{"name", d.name},
                      {"ok", d.ok()},
                      {"max_abs", number_json(d.max_abs)},
                      {"max_rel", number_json(d.max_rel)},
                      {"what", what}});
    }
    data["comparison"].push_back({{"expected", expected}, {"found", found}, {"ok", report.ok()}, {"rows", rows}});
    row(fmt::format("{} with {}", found, expected),
        report.ok() ? fmt::format("{} values, all agree", report.rows.size())
                    : fmt::format("{} of {} values differ", report.bad(), report.rows.size()));
    for (const std::string& reason : not_compared(std::span(&report, 1))) row("Not compared", reason);
  }

  /// What a log says of its compilations: what took how long, why there are so many, what caches answered, and under
  /// which guards the code runs.
  void add_compilations(Json& data) {
    const std::vector<Run> runs = runs_of({&loaded_});
    using FactsOf = Facts (*)(const Compilation&);
    for (const auto& [title, facts] : {std::pair<const char*, FactsOf>("Graph breaks", break_facts),
                                       {"Recompilations", recompilation_facts},
                                       {"Caches", cache_facts}}) {
      Json rows = Json::array();
      for (const Run& run : runs)
        for (const Compilation& c : run.compilations)
          for (const auto& [name, value] : facts(c))
            rows.push_back({(runs.size() > 1 ? run.name + " " : "") + c.key, c.code, name, value});
      if (rows.empty()) continue;
      row(title, fmt::format("{}", rows.size()));
      data["facts"].push_back({{"title", title}, {"rows", std::move(rows)}});
    }
    if (const Timeline timeline = make_timeline(loaded_); !timeline.steps.empty()) {
      row("Compiling", timeline.summary());
      for (const TimelineStep& step : timeline.steps)
        data["steps"].push_back({step.name, step.self_seconds, step.seconds, step.count});
    }
    for (const Artefact& a : loaded_.artefacts) {
      const bool metrics = a.id.ends_with("compilation_metrics"), guards = a.id.find("guards") != std::string::npos;
      if (a.is_graph() || !(metrics || guards)) continue;
      const auto text = a.text();
      if (!text) {
        missing(a.id, text.error());
      } else if (guards) {
        const bool fits = text_bytes_ + text->size() <= most_bytes;
        text_bytes_ += fits ? text->size() : 0;
        data["guards"].push_back(
            {{"id", a.id}, {"text", fits ? *text : "left out, to keep the page small: see partita show"}});
      } else {
        add_times(a, data["compile_times"]);
      }
    }
  }

  /// A row for each time in the records of PyTorch's CompilationMetrics.
  static void add_times(const Artefact& a, Json& rows) {
    for (const nlohmann::json& record : records(a))
      for (const auto& [name, value] : record.items())
        if (name.ends_with("time_s") && value.is_number() && value > 0)
          rows.push_back({{"id", a.id}, {"what", name.substr(0, name.size() - 7)}, {"seconds", value.get<double>()}});
  }

  Status add_repro(Json& data) {
    if (request_.repro.empty()) return {};
    for (const char* name : {"README.md", "graph.py", "repro.py"}) {
      TRY(const auto bytes, FileBytes::open(request_.repro + "/" + name));
      data["repro"].push_back({{"name", name}, {"text", bytes->text()}});
    }
    return {};
  }

  void environment() {
    row("Partita", PARTITA_VERSION);
    const codegen::Processor& host = codegen::host_processor();
    row("Machine", fmt::format("{}, {}, threads: {}", host.triple, host.name, config().threads));
    const Json options = config_json(config(), ConfigPart::Differs);
    row("Configuration", options.empty() ? "as by default" : options.dump());
    for (const Artefact& a : loaded_.artefacts)
      if (a.id.ends_with("torch_version"))
        if (const auto text = a.text()) row("PyTorch", *text);
    std::string command = "partita report " + loaded_.path;
    if (!request_.run.graph.empty()) command += " --graph " + request_.run.graph;
    if (!request_.run.inputs.empty()) command += " --inputs " + request_.run.inputs;
    if (request_.run.random_weights) command += fmt::format(" --random-weights {}", *request_.run.random_weights);
    if (request_.run.train) command += " --train";
    row("Made by", command);
  }

  const ReportRequest& request_;
  const Loaded& loaded_;
  std::vector<std::pair<std::string, std::string>> summary_;
  std::size_t nodes_ = 0, text_bytes_ = 0;
};

}  // namespace

std::string html_text(std::string_view text) {
  std::string out;
  for (const char c : text) switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += static_cast<unsigned char>(c) < 0x20 && c != '\n' ? ' ' : c;
    }
  return out;
}

Result<ReportContent> report_content(const ReportRequest& request) {
  TRY(const Loaded loaded, load(request.run.path, request.run.progress));
  return Content(request, loaded).make();
}

std::string report_page(const ReportContent& content) {
  const std::string style(report_style()), program(report_program());
  const std::string title = html_text("Partita: " + content.path.substr(content.path.find_last_of('/') + 1));
  std::string summary;
  for (const auto& [name, text] : content.summary)
    summary += fmt::format("<tr><th scope=\"row\">{}</th><td>{}</td></tr>\n", html_text(name), html_text(text));
  return fmt::format(R"(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src {}; script-src {}">
<meta name="viewport" content="width=device-width">
<title>{}</title>
<style>{}</style>
</head>
<body>
<header><h1>{}</h1><nav id="nav"><a href="#summary">Summary</a><a href="#graphs">Graphs</a></nav></header>
<main id="main">
<section id="summary">
<h2>Summary</h2>
<table>
<tbody>
{}</tbody>
</table>
<noscript><p>The pictures and tables below are drawn by this page's own program, which this browser does not run.</p></noscript>
</section>
<section id="graphs">
<h2>Graphs</h2>
<div class="bar">
<select id="which" aria-label="graph"></select>
<input id="search" placeholder="search nodes, Enter for the next" aria-label="search nodes">
<span id="found" class="dim"></span>
<button id="fit">Fit</button>
<button id="fold">Fold modules</button>
<button id="unfold">Unfold</button>
<span class="dim">drag pans, the wheel zooms</span>
</div>
<div class="work">
<svg id="picture" role="group" aria-label="picture of the graph"></svg>
<div><pre id="code" tabindex="0" aria-label="code"></pre><div id="node" aria-live="polite"></div></div>
</div>
</section>
</main>
<script type="application/json" id="data">{}</script>
<script>{}</script>
</body>
</html>
)",
                     policy_hash(style), policy_hash(program), title, style, title, summary, script_safe(content.data),
                     program);
}

}  // namespace partita

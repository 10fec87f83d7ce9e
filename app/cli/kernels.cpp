// The verb kernels: prints a compiler's plans as tables, JSON or code, and inductor's output code with its links to
// nodes. app/tasks/kernels.cpp makes and measures the plans.
#include "app/tasks/kernels.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "app/cli/command.h"
#include "app/config_options.h"
#include "app/progress_line.h"
#include "app/run_options.h"
#include "app/tasks/graph_of_rank.h"
#include "app/tasks/joined_profile.h"
#include "core/base/assign.h"
#include "core/base/mapped.h"
#include "core/base/number_text.h"
#include "core/base/text.h"

namespace partita::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* pytorch = "pytorch";  // what a log or a debug folder has of inductor's

/// Operations of a step or in a second.
std::string operations_text(double n) {
  return n <= 0 ? "-" : amount_text(n);
}

/// "zoo.py:41", where the node comes from in the user's program; empty when that is not known.
std::string source_of(const Graph& graph, const std::string& name) {
  const Node* node = graph.find(name);
  if (!node || !node->origin || node->origin->of_user().file.empty()) return {};
  const StackFrame& frame = node->origin->of_user();
  return fmt::format("{}:{}", frame.file.substr(frame.file.rfind('/') + 1), frame.line);
}

/// As a table with the reasons, and what holds memory when most is needed.
std::string kernels_text(const PlannedGraph& graph) {
  const schedule::KernelReport& report = graph.report;
  const Graph& nodes = *graph.planned.first;
  const bool timed = report.limit.has_value();
  std::string out =
      fmt::format("{}: {} steps, arena {}\n", report.graph, report.rows.size(), bytes_text(report.arena_bytes));
  if (timed) {
    double sum = 0;
    for (const schedule::KernelRow& row : report.rows) sum += row.seconds.value_or(0);
    const schedule::MachineLimit& limit = *report.limit;
    out += fmt::format("{} in all; the limit is {}/s copied, {}/s within 1 MiB, and {} operations/s in products",
                       seconds_text(sum), bytes_text(limit.bytes_per_second), bytes_text(limit.cached_bytes_per_second),
                       operations_text(limit.operations_per_second));
    if (limit.half_operations_per_second > 0)
      out += fmt::format(", {} of 16-bit floats", operations_text(limit.half_operations_per_second));
    out += "; above 100 %: nearer caches, better sizes; *: fits into the last-level cache\n";
  }
  out += fmt::format("{:>4}  {:<10} {:>9} {:>9} {:>9}", "step", "kind", "read", "written", "arith");
  if (timed) out += fmt::format(" {:>9} {:>7}", "time", "limit");
  out += "  name\n";
  for (std::size_t s = 0; s < report.rows.size(); ++s) {
    const schedule::KernelRow& row = report.rows[s];
    out += fmt::format("{:>4}  {:<10} {:>9} {:>9} {:>9}", s, name(row.kind), bytes_text(row.read),
                       bytes_text(row.written), operations_text(row.operations));
    if (timed) {
      const auto share = report.share(row);
      out += fmt::format(" {:>9} {:>7}", seconds_text(row.seconds.value_or(0)),
                         share ? fmt::format("{:.0f} %{}", 100 * *share, report.in_cache(row) ? " *" : "") : "-");
    }
    out += "  " + without_control(row.name);
    if (!row.library.empty()) out += fmt::format(" ({})", row.library);
    out += "\n";
    std::vector<std::string> origins;
    for (const std::string& origin : row.origins) {
      const std::string source = source_of(nodes, origin);
      origins.push_back(without_control(source.empty() ? origin : fmt::format("{} ({})", origin, source)));
    }
    if (row.origins.size() > 1 || row.kind != schedule::KernelRow::Kind::Kernel)
      out += fmt::format("      of {}\n", fmt::join(origins, ", "));
    if (!row.why_not.empty()) out += fmt::format("      no library: {}\n", row.why_not);
    for (const schedule::KernelRow::Neighbour& n : row.apart)
      if (n.reads) out += fmt::format("      reads step {}, apart because {}\n", n.step, n.why);
  }
  if (const auto peak = report.peak(); peak && report.live[*peak] > 0) {
    out += fmt::format("most memory at step {}: {} of temporaries\n", *peak, bytes_text(report.live[*peak]));
    for (const schedule::BufferRow* b : report.live_at(*peak))
      out += fmt::format("      {:>9}  %{} {}, steps {} to {}, arena+{:.0f}\n", bytes_text(b->bytes), b->buffer,
                         without_control(b->node), b->first, b->last, b->offset);
  }
  return out;
}

/// The step of this name or number, or that computes this node; nullopt when there is none.
std::optional<std::size_t> find_step(const schedule::KernelReport& report, std::string_view name) {
  for (std::size_t s = 0; s < report.rows.size(); ++s)
    if (report.rows[s].name == name || fmt::format("{}", s) == name) return s;
  // A call goes by its node, and a kernel by any of its nodes.
  for (std::size_t s = 0; s < report.rows.size(); ++s)
    if (std::ranges::find(report.rows[s].origins, name) != report.rows[s].origins.end()) return s;
  return std::nullopt;
}

/// The code of a step with its nodes and their source lines at the right.
std::string linked_text(const loops::LinkedText& code, const PlannedGraph& graph, std::size_t step) {
  const std::vector<std::string>& origins = graph.report.rows[step].origins;
  std::string out;
  std::size_t line = 0;
  for (const std::string_view content : lines_of(code.text)) {
    std::string shown;
    for (char c : content) shown += c == '\t' ? std::string(8 - shown.size() % 8, ' ') : std::string(1, c);
    std::vector<std::string> nodes;
    if (line < code.lines.size())
      for (int i : code.lines[line])
        if (static_cast<std::size_t>(i) < origins.size()) {
          const std::string source = source_of(*graph.planned.first, origins[static_cast<std::size_t>(i)]);
          nodes.push_back(without_control(origins[static_cast<std::size_t>(i)] + (source.empty() ? "" : " " + source)));
        }
    out += nodes.empty() ? shown + "\n" : fmt::format("{:<76} ; {}\n", shown, fmt::join(nodes, ", "));
    ++line;
  }
  return out;
}

std::string inductor_text(const InductorCode& code) {
  std::string out = fmt::format("{}: {} calls; {} links to nodes found, {} missed\n", without_control(code.code->id),
                                code.kernels.size(), code.found, code.missed);
  for (const InductorKernel& k : code.kernels) {
    out += fmt::format("{:>6}  {:<7} {:<9} {}\n", k.call, k.language, name(k.link), without_control(k.name));
    if (!k.nodes.empty())
      out += fmt::format("        of {}\n", without_control(fmt::format("{}", fmt::join(k.nodes, ", "))));
    if (!k.sources.empty())
      out +=
          fmt::format("        of the program's {}\n", without_control(fmt::format("{}", fmt::join(k.sources, ", "))));
    for (const StackFrame& f : k.frames)
      out += without_control(fmt::format("        {}:{}  {}", f.file, f.line, f.code)) + "\n";
    if (!k.missed.empty())
      out += fmt::format("        in no graph: {}\n", without_control(fmt::format("{}", fmt::join(k.missed, ", "))));
  }
  return out;
}

struct KernelsVerbOptions {
  RunRequest request;
  std::string backend{default_compiler().name};
  std::string show, kernel;
  bool json = false;
};

int print_json(const Json& document) {
  fmt::print("{}\n", document.dump(1, ' ', false, Json::error_handler_t::replace));
  return 0;
}

Result<int> inductor(const KernelsVerbOptions& o, const Loaded& loaded) {
  if (!o.show.empty() && o.show != "code")
    return input_error("cli.usage", "--backend pytorch has --show code only: what inductor wrote");
  std::vector<InductorCode> all = inductor_code(loaded);
  std::erase_if(all, [&](const InductorCode& code) {
    const auto is = [&](const Artefact* a) { return a && a->id == o.request.graph; };
    return !o.request.graph.empty() && !is(code.code) && !is(code.post_grad) && !is(code.pre_grad);
  });
  if (all.empty())
    return input_error("kernels.output_code",
                       "there is no output code of inductor in it" +
                           (o.request.graph.empty() ? std::string() : " for " + o.request.graph) +
                           "; TORCH_TRACE and TORCH_COMPILE_DEBUG write it",
                       {.file = loaded.path});
  Json document = {{"backend", pytorch}, {"graphs", Json::array()}};
  bool met = false;
  for (const InductorCode& code : all) {
    Json graph = inductor_json(code);
    if (!o.json && o.show.empty()) fmt::print("{}", inductor_text(code));
    for (std::size_t i = 0; i < code.kernels.size() && !o.show.empty(); ++i) {
      const InductorKernel& k = code.kernels[i];
      if (!o.kernel.empty() && o.kernel != k.name) continue;
      met = true;
      if (o.json)
        graph["kernels"][i]["text"] = code.code_of(k);
      else
        fmt::print("# {} of {}\n{}\n", k.name, fmt::join(k.nodes, ", "), code.code_of(k));
    }
    document["graphs"].push_back(std::move(graph));
  }
  if (!o.show.empty() && !met) return input_error("kernels.kernel", "there is no kernel " + o.kernel);
  return o.json ? print_json(document) : 0;
}

/// What the program's own run spent in inductor's kernels.
Result<int> profiled_kernels(const KernelsVerbOptions& o, const Loaded& loaded) {
  if (!o.show.empty())
    return input_error("cli.usage", "--profile tells times; --backend pytorch --show code prints the code");
  ProgressLine line;
  TRY(ProfiledLog log, profiled(loaded, o.request.profile, &line.progress()));
  TRY(const StepRange steps, steps_of(*log.profile, o.request.steps));
  if (!o.request.graph.empty()) TRY_DO(keep_graph(log, o.request.graph));
  if (o.json) return print_json(to_json(log, steps));
  fmt::print("{}\n", printable_lines(to_text(log, steps)));
  return 0;
}

Result<const KernelForm*> find_form(const StagedCompiler& compiler, const std::string& name) {
  const auto found = std::ranges::find(compiler.forms, name, &KernelForm::name);
  if (found != compiler.forms.end()) return &*found;
  return input_error("kernels.show", fmt::format("no form {}; this backend has {}", name,
                                                 fmt::join(mapped(compiler.forms, &KernelForm::name), ", ")));
}

/// Prints, or adds to the document, the code of the steps that are asked for.
Result<bool> show(const KernelsVerbOptions& o, const KernelForm& form, const PlannedGraph& graph, Json& steps) {
  bool met = false;
  std::optional<std::size_t> only;
  if (!o.kernel.empty() && !(only = find_step(graph.report, o.kernel))) return false;
  for (std::size_t s = 0; s < graph.report.rows.size(); ++s) {
    if (only && *only != s) continue;
    TRY(const std::optional<loops::LinkedText> code, form.text(graph.planned.second, s));
    if (!code) {
      if (only)
        return input_error("kernels.kernel", fmt::format("step {} is a call of {}, which has no code of its own", s,
                                                         graph.report.rows[s].name));
      continue;
    }
    met = true;
    if (!o.json) {
      fmt::print("{}: step {}\n{}\n", graph.report.graph, s, linked_text(*code, graph, s));
      continue;
    }
    steps[s]["code"] = {{"form", form.name}, {"text", code->text}, {"line_nodes", code->lines}};
  }
  return met;
}

Result<int> run(const KernelsVerbOptions& o) {
  if (!o.kernel.empty() && o.show.empty())
    return input_error("cli.usage", "--kernel chooses what --show prints; give --show, too");
  TRY(const Loaded loaded, load(o.request.path));
  if (!o.request.profile.empty()) return profiled_kernels(o, loaded);
  if (o.backend == pytorch) return inductor(o, loaded);
  TRY(const Backend* backend, find_backend(o.backend));
  TRY(const Artefact artefact, pick_of_rank(loaded, o.request.graph));
  TRY(const TensorFile io, read_io(o.request, artefact));
  const bool runs = !o.request.inputs.empty() || o.request.random_weights || !io.tensors.empty();
  TRY(const std::vector<PlannedGraph> graphs, plan_kernels(artefact, runs ? &io : nullptr, o.request, *backend));
  const StagedCompiler compiler = backend->stages({});
  const KernelForm* form = nullptr;
  if (!o.show.empty()) TRY_DO(assign(form, find_form(compiler, o.show)));
  Json document = {{"backend", o.backend}, {"graph", artefact.id}, {"graphs", Json::array()}};
  bool met = false;
  for (const PlannedGraph& graph : graphs) {
    Json each = kernels_json(graph);
    if (!o.json && !form) fmt::print("{}", kernels_text(graph));
    if (form) {
      TRY(const bool shown, show(o, *form, graph, each["steps"]));
      met |= shown;
    }
    document["graphs"].push_back(std::move(each));
  }
  if (!o.kernel.empty() && !met) return input_error("kernels.kernel", "there is no kernel, step or node " + o.kernel);
  return o.json ? print_json(document) : 0;
}

}  // namespace

extern const Command kernels_command = {
    "kernels", "What a compiler makes of a graph: kernels and calls, their code, and memory over time",
    [](CLI::App& app) -> Action {
      auto o = std::make_shared<KernelsVerbOptions>();
      add_run_options(app, o->request);
      add_profile_options(app, o->request.profile, o->request.steps);
      app.add_option("--backend", o->backend,
                     "a compiler, as `run --backend`; pytorch: what a log or debug folder has of inductor's")
          ->capture_default_str();
      app.add_option(
          "--show", o->show,
          "print code: loops, llvm or asm, lines with the nodes that they compute; of cuda and cuda-emulate: "
          "loops, cuda, ptx, sass, or resources (registers, spills, memory, occupancy); of pytorch: code");
      app.add_option("--kernel", o->kernel, "only this one's code, by name, number of the step, or node");
      app.add_flag("--json", o->json, "one JSON document");
      return [o] { return run(*o); };
    }};

}  // namespace partita::cli

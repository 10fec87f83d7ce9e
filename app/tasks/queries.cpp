// The table of questions, and the answers about one graph: by its use lists and metas, or by running the flow, the
// planner or the interpreter. Questions about logs are in log_queries.cpp.
#include "app/tasks/queries.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <deque>
#include <span>
#include <unordered_map>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "app/tasks/code_memory.h"
#include "app/tasks/cuts.h"
#include "app/tasks/graph_changes.h"
#include "app/tasks/kernels.h"
#include "app/tasks/locate.h"
#include "app/tasks/log_queries.h"
#include "app/tasks/rank_ladder.h"
#include "core/base/assign.h"
#include "core/base/mapped.h"
#include "core/base/number_text.h"
#include "core/base/text.h"
#include "core/fake/propagate.h"
#include "core/interp/interpreter.h"
#include "core/ir/print.h"
#include "core/partition/partition.h"

namespace partita {

namespace {

using Words = std::vector<std::string>;

Result<const Node*> find_node(const Graph& graph, const std::string& name) {
  if (const Node* node = graph.find(name)) return node;
  return input_error("query.node", fmt::format("there is no node {} in this graph", name), {.graph = graph.name});
}

std::string source_of(const Node& node) {
  if (!node.origin || node.origin->of_user().file.empty()) return {};
  const StackFrame& frame = node.origin->of_user();
  return fmt::format("  {}:{}", frame.file, frame.line);
}

QueryRow row_of(const Node& node) {
  return {node.name(), print(node, {.annotations = true, .origins = false, .deletions = false}) + source_of(node), {}};
}

Result<std::size_t> number_of(const std::string& word, const char* what) {
  std::size_t n = 0;
  const auto [end, failed] = std::from_chars(word.data(), word.data() + word.size(), n);
  if (failed != std::errc() || end != word.data() + word.size())
    return input_error("query.arguments", fmt::format("{} is a number, and {} is none", what, word));
  return n;
}

Result<QueryAnswer> users(const QuerySubject& s, const Words& words) {
  TRY(const auto graph, s.artefact->graph());
  TRY(const Node* node, find_node(*graph, words[0]));
  std::vector<const Node*> readers(node->users().begin(), node->users().end());
  std::ranges::sort(readers, {}, &Node::id);
  readers.erase(std::unique(readers.begin(), readers.end()), readers.end());
  QueryAnswer out;
  for (const Node* user : *graph)
    if (std::ranges::find(readers, user) != readers.end()) out.rows.push_back(row_of(*user));
  out.text = fmt::format("{} use {}", count_text(out.rows.size(), "node"), node->name());
  return out;
}

/// A shortest path along data, downward from A to B.
Result<QueryAnswer> path(const QuerySubject& s, const Words& words) {
  TRY(const auto graph, s.artefact->graph());
  TRY(const Node* from, find_node(*graph, words[0]));
  TRY(const Node* to, find_node(*graph, words[1]));
  std::unordered_map<const Node*, const Node*> before{{from, nullptr}};
  std::deque<const Node*> open{from};
  while (!open.empty() && !before.contains(to)) {
    const Node* at = open.front();
    open.pop_front();
    for (const Node* user : at->users())
      if (before.try_emplace(user, at).second) open.push_back(user);
  }
  QueryAnswer out;
  if (!before.contains(to)) {
    out.text = fmt::format("no path leads from {} to {}", from->name(), to->name());
    return out;
  }
  for (const Node* at = to; at; at = before[at]) out.rows.push_back(row_of(*at));
  std::ranges::reverse(out.rows);
  out.text = fmt::format("{} from {} to {}", count_text(out.rows.size() - 1, "step"), from->name(), to->name());
  return out;
}

QueryAnswer saved_values(const Partition& cut, std::size_t most) {
  std::vector<SavedValue> values = cut.saved;
  std::ranges::stable_sort(values, std::greater(), &SavedValue::bytes);
  QueryAnswer out{fmt::format("{} saved: {} bytes of activations, {} bytes of inputs",
                              count_text(values.size(), "value"), cut.activation_bytes, cut.input_bytes),
                  {}};
  for (const SavedValue& v : values) {
    if (out.rows.size() == most) break;
    out.rows.push_back({v.name,
                        fmt::format("{:>12} bytes  {}{}: {}", v.bytes, v.name, v.is_input ? " (an input)" : "", v.why),
                        static_cast<double>(v.bytes)});
  }
  return out;
}

/// Of a forward that is cut out already, which must not be differentiated again: descriptors of a trace log tell what
/// it saves, or the backward beside it.
Result<Partition> cut_of_forward(const QuerySubject& s, const Graph& forward) {
  const StepGraphs beside = graphs_beside(s.loaded, *s.artefact);
  if (beside.backward) {
    TRY(const auto backward, beside.backward->graph());
    return read_cut(forward, *backward);
  }
  if (const auto saved = described_saved(forward)) return partita::cut_of_forward(forward, *saved);
  return input_error("query.saved",
                     "which outputs of a forward graph are saved is told by its backward, which is not beside it; ask "
                     "the joint graph",
                     {.graph = forward.name});
}

Result<QueryAnswer> saved(const QuerySubject& s, const Words& words) {
  std::size_t most = 10;
  if (!words.empty()) TRY_DO(assign(most, number_of(words[0], "COUNT")));
  TRY(const auto graph, s.artefact->graph());
  switch (s.artefact->kind) {
    case ArtefactKind::Forward: {
      TRY(const Partition cut, cut_of_forward(s, *graph));
      return saved_values(cut, most);
    }
    case ArtefactKind::Inference:
      return saved_values({}, most);
    case ArtefactKind::Backward:
    case ArtefactKind::PostGrad:
      return input_error("query.saved",
                         fmt::format("a {} graph does not tell what its program saves; ask the forward or joint graph",
                                     kind_name(s.artefact->kind)),
                         {.graph = graph->name});
    default:
      TRY_DO(check_not_cut(*graph, *s.artefact));
  }
  AotOptions options;
  TRY(AotGraphs made, aot(*graph, s.artefact->program.get(), as_run(*graph, *s.artefact, options)));
  return saved_values(made.partition, most);
}

std::string bytes_cell(const std::optional<SavedValue>& value) {
  return value ? fmt::format("{}", value->bytes) : "-";
}

/// PyTorch's cut beside ours, value by value. `words`: files with the backward and the joint graph, where they do not
/// lie beside the forward.
Result<QueryAnswer> cut(const QuerySubject& s, const Words& words) {
  StepGraphs graphs = graphs_beside(s.loaded, *s.artefact);
  std::vector<Loaded> others;
  others.reserve(words.size());
  for (const std::string& path : words) {
    TRY(others.emplace_back(), load(path));
    TRY(const Artefact* given, others.back().pick({}));
    (&path == &words[0] ? graphs.backward : graphs.joint) = given;
  }
  if (!words.empty()) graphs.forward = s.artefact;
  TRY(const Cuts cuts, read_cuts(graphs));
  QueryAnswer out{{}, {}, {"Value", "PyTorch", "Ours", "Why"}};
  out.facts = std::make_shared<nlohmann::ordered_json>(to_json(cuts));
  if (cuts.theirs) out.text = "PyTorch saves " + summary(*cuts.theirs);
  if (cuts.budget) out.text += fmt::format("; its memory budget: {}", *cuts.budget);
  if (cuts.by_default_partitioner) out.text += "; as the default partitioner does, which takes no budget";
  if (cuts.ours) out.text += fmt::format("{}{} {}", out.text.empty() ? "" : "\n", "ours saves", summary(*cuts.ours));
  if (cuts.no_ours) out.text += "\nours is not made: " + cuts.no_ours->line();
  for (const CutDifference& d : cuts.values) {
    const SavedValue& value = d.theirs ? *d.theirs : *d.ours;
    out.rows.push_back({.node = d.name,
                        .text = fmt::format("{:>12} {:>12}  {}{}: {}", bytes_cell(d.theirs), bytes_cell(d.ours), d.name,
                                            value.is_input ? " (an input)" : "", d.why),
                        .number = static_cast<double>(value.bytes)});
    out.rows.back().cells = {d.name, bytes_cell(d.theirs), bytes_cell(d.ours), d.why};
  }
  return out;
}

/// Of a line of the program: FILE:LINE, where FILE may be the end of a path.
Result<QueryAnswer> line(const QuerySubject& s, const Words& words) {
  const std::size_t colon = words[0].rfind(':');
  if (colon == std::string::npos)
    return input_error("query.arguments", "a line is given as FILE:LINE, and got " + words[0]);
  TRY(const std::size_t number, number_of(words[0].substr(colon + 1), "LINE"));
  const std::string file = words[0].substr(0, colon);
  TRY(const auto graph, s.artefact->graph());
  QueryAnswer out;
  for (const Node* node : *graph) {
    if (!node->origin) continue;
    for (const StackFrame* frame : {static_cast<const StackFrame*>(node->origin.get()), &node->origin->of_user()}) {
      const bool whole = frame->file.size() == file.size() ||
                         (frame->file.size() > file.size() && frame->file[frame->file.size() - file.size() - 1] == '/');
      if (static_cast<std::size_t>(frame->line) != number || !frame->file.ends_with(file) || !whole) continue;
      out.rows.push_back(row_of(*node));
      break;
    }
  }
  out.text = fmt::format("{} come from {}", count_text(out.rows.size(), "node"), words[0]);
  return out;
}

/// All tensors of a meta.
void each_tensor(const Meta& meta, const std::function<void(const TensorMeta&)>& f) {
  if (const TensorMeta* t = meta.tensor()) return f(*t);
  if (const auto* list = meta.tuple())
    for (const Meta& item : list->items) each_tensor(item, f);
}

Result<QueryAnswer> dtype(const QuerySubject& s, const Words& words) {
  TRY(auto graph, s.artefact->graph());
  QueryAnswer out;
  // Text may leave types out; what cannot be inferred has none.
  std::string unknown;
  if (const auto known = propagate(*graph); !known)
    unknown = "; types that the file leaves out are not known: " + known.error().message;
  const auto wanted = dtype_from_short(words[0]);
  if (!wanted)
    return input_error("query.arguments", words[0] + " is no dtype as graphs print it, like f32, bf16, i64, b8");
  for (const Node* node : *graph) {
    bool has = false;
    if (!node->is_output()) each_tensor(node->meta, [&](const TensorMeta& t) { has |= t.dtype == *wanted; });
    if (has) out.rows.push_back(row_of(*node));
  }
  out.text = fmt::format("{} {}{}", count_text(out.rows.size(), "node"), words[0], unknown);
  return out;
}

/// The graph after the first N passes of the flow that `run` takes, whose graph is the given or the joint one.
Result<QueryAnswer> changed(const QuerySubject& s, const Words& words) {
  TRY(const std::size_t from, number_of(words[0], "N"));
  TRY(const std::size_t to, number_of(words[1], "M"));
  TRY(const auto graph, s.artefact->graph());
  AotOptions options;
  options.train = s.request.train;
  options.snapshots = true;
  TRY(const AotGraphs made, aot(*graph, s.artefact->program.get(), as_run(*graph, *s.artefact, options)));
  std::vector<const PassRun*> passes;
  std::vector<std::shared_ptr<const Graph>> after;  // [n]: after n passes
  std::vector<std::size_t> stage_of;
  PassContext context;
  const std::unique_ptr<Graph> passed = made.partition.forward->clone();
  TRY(const PipelineRun post, post_grad_passes(*passed, context, {.snapshots = true}));
  std::vector<const PipelineRun*> runs;
  for (const StageRun& stage : made.stages) runs.push_back(&stage.run);
  runs.push_back(&post);
  for (const PipelineRun* run : runs)
    for (const PassRun& pass : run->passes) {
      if (after.empty()) after.push_back(run->before);
      passes.push_back(&pass);
      after.push_back(pass.after);
    }
  if (from >= to || to > passes.size())
    return input_error("query.arguments",
                       fmt::format("there are {} passes: 0 <= N < M <= {}", passes.size(), passes.size()));
  QueryAnswer out;
  std::vector<std::string> names;
  for (std::size_t n = from; n < to; ++n)
    if (passes[n]->changed) names.push_back(fmt::format("{} {}", n + 1, passes[n]->name));
  const std::string diff = graph_changes(*after[from], *after[to]);
  for (const std::string_view line : lines_of(diff))
    out.rows.push_back({std::string(line.substr(2, line.find_first_of(":= (", 2) - 2)), std::string(line), {}});
  out.text = fmt::format("{} differ between pass {} and {}; what changed it: {}", count_text(out.rows.size(), "line"),
                         from, to, names.empty() ? "nothing" : fmt::format("{}", fmt::join(names, ", ")));
  return out;
}

void add_curve(const std::string& whose, const StepMemory& memory, QueryAnswer& out) {
  QueryCurve& curve = out.curves.emplace_back(QueryCurve{whose, memory.steps, {}});
  for (std::size_t s = 0; s < memory.steps.size(); ++s) curve.bytes.push_back(memory.live(s));
}

void add_rows_in_use(const std::string& whose, const StepMemory& memory, QueryAnswer& out) {
  add_curve(whose, memory, out);
  const std::size_t at = memory.peak();
  const auto& [graph, step] = memory.steps[at];
  out.text += fmt::format("\nmost is in use at step {}, {} of the {}: {:.0f} bytes", at, step, graph, memory.live(at));
  out.rows.clear();
  for (const StepMemory::Row& row : memory.rows)
    if (row.first <= at && at <= row.last)
      out.rows.push_back({row.node,
                          fmt::format("{:>12.0f} bytes  {}, {}, steps {} to {}", row.bytes, row.node, name(row.kind),
                                      row.first, row.last),
                          row.bytes});
  std::ranges::stable_sort(out.rows, std::greater(), &QueryRow::number);
}

/// What PyTorch's own code holds, where it is there; its rows are then the answer's.
Status add_code_memory(const QuerySubject& s, QueryAnswer& out, nlohmann::ordered_json& facts) {
  TRY(const std::optional<CodeMemory> code, code_memory(s.loaded, *s.artefact));
  if (!code || code->memory.steps.empty()) return {};
  out.text += "\na step in PyTorch's own code holds at most " + held_text(code->memory);
  if (!code->unknown.empty())
    out.text += fmt::format("\nnot counted, since nothing tells their sizes: what {} return{}",
                            fmt::join(code->unknown, ", "), code->unknown.size() == 1 ? "s" : "");
  add_rows_in_use("PyTorch's code", code->memory, out);
  facts["pytorch_code"] = memory_json(code->memory);
  facts["pytorch_code"]["unknown"] = code->unknown;
  return {};
}

/// What a step holds. Of a log's training step both cuts, each as our compiler runs it; of a forward or a backward that
/// PyTorch cut, its cut alone; and what PyTorch's own code holds.
Result<QueryAnswer> peak(const QuerySubject& s, const Words&) {
  TRY(const CutMemory found, cut_memory(s.loaded, *s.artefact, s.request));
  const auto& [theirs, ours] = found;
  const StepMemory& memory = ours ? *ours : *theirs;
  QueryAnswer out;
  if (theirs) out.text = "a step by PyTorch's cut holds " + held_text(*theirs);
  if (ours) out.text += (out.text.empty() ? "a step holds " : "\na step by our cut holds ") + held_text(*ours);
  static constexpr const char* of_theirs = "PyTorch's cut, as our compiler runs it";
  if (memory.steps.empty())
    out.text = "no memory beside inputs and weights: there are no steps";
  else
    add_rows_in_use(ours ? "our cut" : of_theirs, memory, out);
  if (theirs && ours) add_curve(of_theirs, *theirs, out);
  nlohmann::ordered_json facts = memory_json(memory);
  if (theirs) facts["theirs"] = memory_json(*theirs);
  if (const Status read = add_code_memory(s, out, facts); !read)
    out.text += "\nwhat PyTorch's own code holds is not known: " + read.error().message;
  out.facts = std::make_shared<nlohmann::ordered_json>(std::move(facts));
  return out;
}

std::string not_finite(const Value& value) {
  if (const auto* list = value.get<std::vector<Value>>()) {
    for (const Value& item : *list)
      if (std::string found = not_finite(item); !found.empty()) return found;
    return {};
  }
  const Tensor* t = value.get<Tensor>();
  if (!t || !(is_floating(t->dtype) || is_complex(t->dtype))) return {};
  std::int64_t nans = 0, infinities = 0;
  for (std::int64_t i = 0; i < t->numel(); ++i) {
    const double x = t->item_as_double(i);
    nans += std::isnan(x);
    infinities += std::isinf(x);
  }
  if (nans + infinities == 0) return {};
  return fmt::format("{} NaN and {} infinite of {} elements", nans, infinities, t->numel());
}

/// What a question runs the graph on.
Result<TensorFile> read_io_to_run(const QuerySubject& s) {
  TRY(TensorFile io, read_io(s.request, *s.artefact));
  if (s.request.inputs.empty() && !s.request.random_weights && io.tensors.empty())
    return input_error("query.inputs", "this runs the graph; give --inputs or --random-weights");
  return io;
}

Result<QueryAnswer> inductor(const QuerySubject& s, const Words& words) {
  TRY(const TensorFile io, read_io_to_run(s));
  TRY(const std::vector<Located> found,
      locate(*s.artefact, io, s.request, words.empty() ? "torch:inductor" : words[0]));
  TRY(const std::unique_ptr<Graph> graph, s.artefact->graph());
  QueryAnswer out;
  for (const Located& l : found) {
    const std::vector<std::string> lines = l.lines(), given = l.given_nodes();
    if (!l.clean() && out.text.empty()) out.text = lines[0];
    for (const std::string& line : lines)
      out.rows.push_back({.node = !given.empty() && graph->find(given[0]) ? given[0] : std::string(), .text = line});
  }
  if (out.text.empty()) out.text = "inductor does nothing wrong on these inputs";
  return out;
}

Result<QueryAnswer> nan(const QuerySubject& s, const Words&) {
  TRY(const TensorFile io, read_io_to_run(s));
  QueryAnswer out;
  TRY(const RunRequest request, with_recorded_generator(s.request, io));
  const auto generator = new_generator(request);
  TRY(const std::shared_ptr<Communicator> communicator, communicator_of(s.request));
  const CompileFn watch = [&](const Graph& graph) -> Result<CompiledFn> {
    return CompiledFn([&, graph = &graph](std::vector<Value> inputs) {
      InterpOptions options;
      options.generator = generator;
      options.progress = s.request.progress;
      options.communicator = communicator.get();
      options.observer = [&](const Node& node, const Value& value) -> Status {
        if (!out.rows.empty() || node.is_output()) return {};
        if (const std::string found = not_finite(value); !found.empty()) {
          QueryRow row = row_of(node);
          row.text += "  " + found;
          out.rows.push_back(std::move(row));
        }
        return {};
      };
      return interpret(*graph, std::move(inputs), options);
    });
  };
  if (s.request.train) {
    TRY_DO(run_program(*s.artefact, io, run_options(s.request, watch)));
  } else {
    TRY_DO(run_as_it_is(*s.artefact, io, s.request.random_weights, watch));
  }
  out.text = out.rows.empty() ? "all values are finite" : "the first value that is not finite: " + out.rows[0].node;
  return out;
}

const std::vector<Query> questions = {
    {"users", {"NODE"}, "who reads a value", true, users},
    {"path", {"A", "B"}, "a shortest path of data from A to B", true, path},
    {"saved", {"[COUNT]"}, "the biggest values that the forward keeps for the backward, and why", true, saved, true},
    {"cut",
     {"[BACKWARD.py]", "[JOINT.py]"},
     "what PyTorch saved for the backward beside what ours saves, and why",
     true,
     cut,
     true},
    {"line", {"FILE:LINE"}, "the nodes that come from a line of the program", true, line},
    {"dtype", {"DTYPE"}, "the nodes with a dtype: f64, bf16, i64, ...", true, dtype},
    {"breaks", {}, "the lines that break graphs in a trace log, compilations that failed, and why", false, breaks_of},
    {"times",
     {},
     "where the time of compiling went, as a trace log says; with --profile, that of the run itself",
     false,
     compile_times_of},
    {"recompilations", {}, "why a trace log's programs were compiled again", false, recompilations_of},
    {"caches", {}, "what caches answered in a trace log", false, caches_of},
    {"guards", {}, "under what a trace log's compiled code may run", false, guards_of},
    {"changed", {"N", "M"}, "what passes N+1 to M of the flow changed in the graph", true, changed},
    {"peak", {}, "what holds memory when most is needed", true, peak, true},
    {"collectives",
     {},
     "the collectives of a folder of ranks, and which do not match; of a graph, what runs while each is under way",
     false,
     [](const QuerySubject& s, const Words&) { return answer_collectives(s); },
     true},
    {"nan", {}, "the first value that is not finite; runs the graph", true, nan},
    {"inductor", {"[COLUMN]"}, "what PyTorch's inductor does wrong, as `partita locate` finds it", true, inductor},
};

}  // namespace

std::span<const Query> queries() {
  return questions;
}

Result<QueryAnswer> answer(const QuerySubject& subject, const std::string& question, const Words& words) {
  const auto query = std::ranges::find(questions, question, &Query::name);
  if (query == questions.end())
    return input_error("query.unknown", fmt::format("no question {}; there are {}", question,
                                                    fmt::join(mapped(questions, &Query::name), ", ")));
  const auto needed = static_cast<std::size_t>(
      std::ranges::count_if(query->arguments, [](std::string_view a) { return !a.starts_with("["); }));
  if (words.size() < needed || words.size() > query->arguments.size())
    return input_error(
        "query.arguments",
        fmt::format("{} takes {}", question,
                    query->arguments.empty() ? "nothing" : fmt::format("{}", fmt::join(query->arguments, " "))));
  if (!subject.request.profile.empty() && query->answer != compile_times_of)
    return input_error("query.profile", fmt::format("{} is not about a profile; with --profile ask times", question));
  if (query->needs_graph && !subject.artefact)
    return input_error("query.graph", "this question is about one graph; choose it with --graph");
  return query->answer(subject, words);
}

Result<QueryAnswer> ask(const std::string& path, const Artefact& artefact, const std::string& inputs,
                        const std::vector<std::string>& words, const Progress& progress) {
  const std::string question = words.empty() ? std::string() : words[0];
  Loaded loaded;
  const auto query = std::ranges::find(queries(), question, &Query::name);
  if (query != queries().end() && query->needs_file) TRY_DO(assign(loaded, load(path, &progress)));
  const QuerySubject subject{loaded, artefact.is_graph() ? &artefact : nullptr,
                             window_request(inputs, false, progress)};
  return answer(subject, question, {words.begin() + (words.empty() ? 0 : 1), words.end()});
}

nlohmann::ordered_json to_json(const QueryAnswer& answer) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const QueryRow& row : answer.rows) {
    nlohmann::ordered_json out = {{"node", row.node}, {"text", row.text}};
    if (row.number) out["number"] = *row.number;
    if (!row.artefact.empty()) out["graph"] = row.artefact;
    rows.push_back(std::move(out));
  }
  nlohmann::ordered_json out = {{"answer", answer.text}, {"rows", rows}};
  if (answer.facts) out.update(*answer.facts);
  return out;
}

}  // namespace partita

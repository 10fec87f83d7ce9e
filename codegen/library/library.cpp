#include "codegen/library/library.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "codegen/cpu/executor.h"
#include "codegen/cpu/jit.h"
#include "codegen/library/describe_values.h"
#include "codegen/library/link.h"
#include "core/aot/aot.h"
#include "core/aot/graph_io.h"
#include "core/aot/wrapper.h"
#include "core/base/scratch.h"
#include "core/fake/propagate.h"
#include "core/ir/place.h"
#include "core/load/trace_writer.h"
#include "core/ops/catch_raised.h"
#include "core/schedule/instantiate.h"
#include "core/schedule/make_plan.h"
#include "core/schedule/specialise.h"
#include "core/schedule/split.h"

namespace partita::codegen {
namespace {

using Clock = std::chrono::steady_clock;
using From = LibraryArgument::From;
using SizeSet = std::map<std::string, std::int64_t>;

constexpr std::size_t most_codes = 27, most_tried = 1000;  // 27: 0, 1 and more of each of three sizes
constexpr std::int64_t most_special = 7;
constexpr std::uint64_t most_inside = 1'500'000'000;  // beyond it addresses in the library do not fit its relocations

/// The graphs of a library.
enum class Part : std::uint8_t { Forward, Backward, Constants };
constexpr std::array part_names = {"forward", "backward", "constants"};

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

bool has_symbols(const Meta& meta) {
  if (const SymExpr* e = meta.sym()) return !e->is_int();
  const TensorMeta* t = meta.tensor();
  return t && (!concrete(t->sizes) || !concrete(t->strides));
}

/// Functions that nobody calls: a program is only prepared, to learn who does its calls.
class NoCode final : public LoadedCode {
 public:
  Result<void*> find(const std::string&) override { return reinterpret_cast<void*>(this); }
};

class LibraryCompiler {
 public:
  LibraryCompiler(const Artefact& artefact, const TensorFile& io, const LibraryOptions& options,
                  const std::string& folder)
      : artefact_(artefact), io_(io), options_(options), folder_(folder) {}

  Result<LibraryReport> compile() {
    const auto start = Clock::now();
    const StopsLoops stops(options_.progress);
    TRY_DO(step(options_.progress, 0, "making the graphs"));
    TRY_DO(make_graphs());
    TRY_DO(describe_inputs());
    TRY_DO(choose_sets());
    TRY_DO(compile_graph(*graphs_.partition.forward, Part::Forward));
    if (options_.train) TRY_DO(compile_graph(*graphs_.partition.backward, Part::Backward));
    if (graphs_.constants) TRY_DO(compile_graph(*graphs_.constants->graph, Part::Constants));
    TRY_DO(describe_results());
    TRY_DO(step(options_.progress, 0.8, "writing the weights"));
    TRY_DO(write_weights());
    report_.compile_ms = ms_since(start);
    const auto linking = Clock::now();
    TRY_DO(step(options_.progress, 0.9, "linking"));
    TRY_DO(link());
    report_.link_ms = ms_since(linking);
    report_.folded = description_.folded;
    for (const LibraryValue& v : description_.inputs) report_.inputs.push_back(shown(v));
    for (const LibraryValue& v : description_.outputs) report_.outputs.push_back(shown(v));
    for (const LibraryValue& v : description_.gradients) report_.gradients.push_back(shown(v));
    return std::move(report_);
  }

 private:
  Status make_graphs();
  Status check_wrappers() const;
  Status describe_inputs();
  Status choose_sets();
  Status compile_graph(const Graph& graph, Part part);
  /// Adds code for the sizes 0 and 1, and for small sizes that break the guards of the code for all sizes (a size less
  /// 1 that is 1), where the graph can have them.
  Status add_small(const Graph& graph, Part part, const SizeSet& hints, const std::vector<Guard>& guards);
  /// `fixed`: the sizes that the graph has as numbers.
  Status add_code(const Graph& graph, Part part, std::size_t set, const SizeSet& fixed, const SizeSet& hints,
                  const std::vector<Guard>& guards);
  Status find_evaluations(const schedule::Plan& plan, const ProgramSource& source, const Graph& graph,
                          const SizeSet& hints);
  Status describe_results();
  Status write_weights();
  Status link();
  std::uint64_t weight(const std::string& name, const Tensor& tensor);
  /// The weight that is the value of the program's input.
  std::uint64_t weight_of_input(std::size_t i);
  LibraryGraphFacts& facts_of(Part part) {
    return part == Part::Forward    ? description_.forward
           : part == Part::Backward ? description_.backward
                                    : description_.constants;
  }
  void note_written(std::size_t placeholder) {
    const LibraryArgument& a = description_.arguments[placeholder];
    if (a.from == From::Weight) description_.weights[a.index].written = true;
  }
  std::string file(std::string_view name) const { return folder_ + "/" + std::string(name); }

  const Artefact& artefact_;
  const TensorFile& io_;
  const LibraryOptions& options_;
  const std::string folder_;
  GraphInputs inputs_;
  std::vector<std::string> names_;          ///< of the graph's placeholders
  std::map<std::string, SymRange> ranges_;  ///< of sizes, as the program gives them
  AotGraphs graphs_;
  LibraryDescription description_;
  LibraryReport report_;
  std::vector<Tensor> weights_;
  std::vector<InstructionSet> sets_;
  std::vector<Guard> general_;  ///< of the part's code for all sizes
  std::vector<LinkCode> code_;
  std::vector<std::string> objects_;
  std::vector<Meta> results_, gradients_;  ///< what the plans promise
};

/// Makes forward and backward, with values for their weights.
Status LibraryCompiler::make_graphs() {
  TRY(std::unique_ptr<Graph> graph, artefact_.graph());
  const ExportedProgram* signature = artefact_.program.get();
  // With sizes from 0 the stages would take guards against 0 and 1, which get code of their own.
  ranges_ = graph->shapes->ranges();
  for (const auto& [symbol, range] : ranges_)
    if (symbol.starts_with("s") && range.low < 2 && graph->shapes->hint(SymExpr::symbol(symbol)).value_or(2) >= 2)
      graph->shapes->set_range(symbol, {2, range.high});
  if (options_.train && is_joint(*graph))
    return unsupported("compile.joint", "this is a joint graph already; give the graph that it was made of",
                       {.graph = graph->name});
  TRY(inputs_, gather_inputs(*graph, signature, io_, options_.random_weights.value_or(0)));
  const std::vector<Node*> placeholders = graph->placeholders();
  for (const Node* node : placeholders) names_.push_back(node->name());  // AOTAutograd's graphs have others
  if (!options_.random_weights) {
    for (std::size_t i = 0; i < placeholders.size(); ++i) {
      const std::string& key = inputs_.keys[i];
      if (!key.starts_with("input.") && !key.starts_with("symbol.") && !io_.find(key) &&
          !(signature && signature->tensor_of(placeholders[i]->name())))
        return input_error("io.missing", fmt::format("there are no values for {}; give them by --inputs, or use "
                                                     "--random-weights SEED",
                                                     key));
    }
  }
  AotOptions how = as_run(*graph, {.train = options_.train});
  if (!options_.train) how.values = inputs_.values;
  // A parameter of a text may be an input of the library, which changes.
  const std::vector<InputBinding> bindings = bind_inputs(*graph, signature, how);
  bool fixed = true;
  for (std::size_t i = 0; i < bindings.size(); ++i)
    fixed = fixed && (bindings[i].role == InputRole::User || bindings[i].role == InputRole::Symbol ||
                      !inputs_.keys[i].starts_with("input."));
  how.split_constants = fixed && config().use_runtime_constant_folding;
  how.freezing = fixed && how.freezing;
  TRY(graphs_, aot(*graph, signature, how));
  return check_wrappers();
}

/// What the runtime does not do around the graphs is refused.
Status LibraryCompiler::check_wrappers() const {
  TRY(const Wrappers wrappers, catch_raised<Wrappers>([&] { return wrap_graphs(graphs_); }));
  for (const Wrapper& w : wrappers) {
    const auto* epilogue = std::get_if<RuntimeWrapper>(&w);
    const bool known = std::holds_alternative<DebugAssertWrapper>(w) ||
                       std::holds_alternative<AutogradDispatchWrapper>(w) ||
                       std::holds_alternative<FakifiedOutWrapper>(w);
    const bool writes = epilogue && std::ranges::none_of(epilogue->mutated, [](const RuntimeWrapper::Mutated& m) {
                          return !m.data || m.view_offset;
                        });
    if (!known && !writes)
      return unsupported("compile.wrapper", fmt::format("a library cannot do what {} does: {}", name_of(w), summary(w)),
                         {.graph = graphs_.partition.forward->name});
  }
  return {};
}

/// The number of a weight; equal views of one memory are one weight.
std::uint64_t LibraryCompiler::weight(const std::string& name, const Tensor& tensor) {
  for (std::size_t i = 0; i < weights_.size(); ++i) {
    const Tensor& t = weights_[i];
    if (t.storage == tensor.storage && t.offset == tensor.offset && t.sizes == tensor.sizes &&
        t.strides == tensor.strides && t.dtype == tensor.dtype)
      return i;
  }
  std::string own = name;
  const auto taken = [&](const std::string& text) {
    return std::ranges::any_of(description_.weights, [&](const LibraryWeight& w) { return w.value.name == text; });
  };
  for (int k = 1; taken(own); ++k) own = fmt::format("{}.{}", name, k);
  LibraryWeight w{.value = {.name = std::move(own), .dtype = tensor.dtype}};
  for (std::int64_t n : tensor.sizes) w.value.sizes.push_back(std::to_string(n));
  for (std::int64_t n : tensor.strides) w.value.strides.push_back(std::to_string(n));
  description_.weights.push_back(std::move(w));
  weights_.push_back(tensor);
  return weights_.size() - 1;
}

Status LibraryCompiler::describe_inputs() {
  description_.trains = options_.train;
  description_.threads = config().threads;
  const std::vector<Node*> placeholders = graphs_.partition.forward->placeholders();
  std::set<std::size_t> read;
  for (std::size_t i = 0; i < placeholders.size(); ++i)
    if (!placeholders[i]->users().empty()) read.insert(i);
  for (std::size_t i : graphs_.meta.mutated_runtime_inputs()) read.insert(i);
  for (std::size_t i : graphs_.frozen) read.erase(i);
  for (std::size_t i = 0; i < placeholders.size(); ++i) {
    const Meta& meta = placeholders[i]->meta;
    LibraryArgument argument;
    if (i >= names_.size()) {
      argument = {From::Folded, description_.folded++};
      description_.arguments.push_back(argument);
      continue;
    }
    const std::string& key = inputs_.keys[i];
    const auto* tensor = inputs_.values[i].get<Tensor>();
    // "input.0", "param.NAME", "symbol.s0": the last follow from the sizes of other inputs.
    const bool is_input = key.starts_with("input."), is_weight = !is_input && !key.starts_with("symbol.");
    if (is_input && (tensor || meta.sym())) {
      argument.from = From::Input;
      argument.index = description_.inputs.size();
      description_.inputs.push_back(value_of_meta(names_[i], meta));
    } else if (tensor && is_weight && read.contains(i)) {
      argument = {From::Weight, weight_of_input(i)};
    }
    description_.arguments.push_back(std::move(argument));
  }
  if (graphs_.constants)
    for (std::size_t i : graphs_.constants->inputs) description_.constant_inputs.push_back(weight_of_input(i));
  return {};
}

std::uint64_t LibraryCompiler::weight_of_input(std::size_t i) {
  const std::string& key = inputs_.keys[i];
  // Tied weights share the archive's memory, of which the inputs may be copies.
  const Tensor* stored = artefact_.program && !io_.find(key) ? artefact_.program->tensor_of(names_[i]) : nullptr;
  return weight(key.substr(key.find('.') + 1), stored ? *stored : *inputs_.values[i].get<Tensor>());
}

Status LibraryCompiler::choose_sets() {
  const std::vector<InstructionSet> all = instruction_sets();
  for (const std::string& name : options_.isas)
    if (std::ranges::find(all, name, &InstructionSet::name) == all.end()) {
      std::vector<std::string> names;
      for (const InstructionSet& set : all) names.push_back(set.name);
      return input_error("compile.isa",
                         fmt::format("there is no code for {}; take one of {}", name, fmt::join(names, ", ")));
    }
  for (const InstructionSet& set : all)
    if (options_.isas.empty() || std::ranges::find(options_.isas, set.name) != options_.isas.end())
      sets_.push_back(set), report_.isas.push_back(set.name), code_.push_back({.isa = set.name});
  return {};
}

Status LibraryCompiler::compile_graph(const Graph& source, Part part) {
  std::unique_ptr<Graph> graph = source.clone();
  PassContext context;
  context.threads = config().threads;
  context.fold_limit_bytes = config().fold_limit;
  trace::artifact("before_post_grad_graph", *graph);
  {
    const trace::Stage timed("post_grad_passes");
    TRY(const PipelineRun passed,
        post_grad_passes(*graph, context, {.disabled = configured_disabled(), .progress = options_.progress}));
  }
  trace::artifact("inductor_post_grad_graph", *graph);
  if (const auto cut = schedule::split_at_values(*graph))
    for (const Node* node : *cut->call)
      if (node->op()->is_call())
        return unsupported("compile.values",
                           "a library cannot have sizes that values decide, as this call's; use `partita run`",
                           place_of(*node));
  LibraryGraphFacts& facts = facts_of(part);
  bool symbolic = false;
  std::set<std::string> symbols;
  for (const Node* node : graph->placeholders()) {
    symbolic |= has_symbols(node->meta);
    const SymExpr* e = node->meta.sym();
    facts.numbers.push_back(e && !e->is_int() ? e->str() : "");
    SymList sizes = e ? SymList{*e} : SymList{};
    if (const TensorMeta* t = node->meta.tensor()) sizes.insert(sizes.end(), t->sizes.begin(), t->sizes.end());
    for (SymExpr size : sizes)
      for (const std::string& name : size.symbols()) symbols.insert(name);
  }
  SizeSet hints;
  std::vector<Guard> guards;
  if (symbolic) {
    for (const std::string& name : symbols) {
      const auto hint = graph->shapes->hint(SymExpr::symbol(name));
      if (!hint) return unsupported("compile.dynamic", "the size " + name + " has no example value");
      hints[name] = *hint;
      const auto range = ranges_.find(name);
      SymRange r = range == ranges_.end() ? SymRange() : range->second;
      if (r.low == 2) r.low = 0;  // what every symbol has, since 0 and 1 get code of their own
      description_.symbols[name] = {r.low, r.high};
    }
    // What inference decides by the sizes, and what the sizes of the example must keep.
    if (auto fit = schedule::specialise(*graph, hints); !fit) return std::move(fit).error();
    const std::unique_ptr<Graph> inferred = graph->clone();
    TRY_DO([&]() -> Status {
      TRY(const std::size_t count, propagate(*inferred));
      (void)count;
      return {};
    }());
    guards = inferred->shapes->guards();
  }
  for (std::size_t set = 0; set < sets_.size(); ++set) TRY_DO(add_code(*graph, part, set, {}, hints, guards));
  return add_small(*graph, part, hints, guards);
}

Status LibraryCompiler::add_small(const Graph& graph, Part part, const SizeSet& hints,
                                  const std::vector<Guard>& guards) {
  std::vector<std::pair<std::string, std::int64_t>> singles;
  for (const auto& [symbol, hint] : hints) {
    const LibraryDescription::Range range = description_.symbols.at(symbol);
    for (std::int64_t value = range.low; value <= std::min(range.high, most_special); ++value) {
      SizeSet sizes = hints;
      sizes[symbol] = value;
      if (value < 2 || !schedule::broken_guards(general_, sizes).empty()) singles.emplace_back(symbol, value);
    }
  }
  std::vector<SizeSet> all = {{}};  // those with the fewest come first
  for (std::size_t i = 0; i < all.size() && all.size() < most_tried; ++i)
    for (const auto& [symbol, value] : singles)
      if (all[i].empty() || symbol > all[i].rbegin()->first) {
        SizeSet more = all[i];
        more.emplace(symbol, value);
        all.push_back(std::move(more));
      }
  std::vector<SizeSet>& made = facts_of(part).fixed;
  for (const SizeSet& fixed : all) {
    if (fixed.empty() || made.size() == most_codes) continue;
    SizeSet rest, sizes = hints;
    for (const auto& [symbol, value] : fixed) sizes[symbol] = value;
    for (const auto& [symbol, hint] : hints)
      if (!fixed.contains(symbol)) rest.emplace(symbol, hint);
    // What inference, guards or the planner refuse, runs refuse.
    const auto number = [&](const std::string& symbol) {
      const auto it = fixed.find(symbol);
      return it == fixed.end() ? std::nullopt : std::optional<SymExpr>(it->second);
    };
    std::vector<Guard> own;
    for (const Guard& g : guards)
      if (const SymExpr condition = g.condition.substitute(number); !condition.symbols().empty())
        own.push_back({condition, g.reason});
    const auto small = schedule::fix_symbols(graph, fixed);
    if (!small || !schedule::specialise(graph, sizes) || !schedule::broken_guards(guards, sizes).empty()) continue;
    for (std::size_t set = 0; set < sets_.size(); ++set) {
      const Status done = add_code(**small, part, set, fixed, rest, own);
      if (!done && (set > 0 || done.error().fault != Fault::Unsupported)) return done;
      if (!done) break;
    }
  }
  return {};
}

Status LibraryCompiler::add_code(const Graph& graph, Part part, std::size_t number, const SizeSet& fixed,
                                 const SizeSet& hints, const std::vector<Guard>& guards) {
  const InstructionSet& set = sets_[number];
  const double share = static_cast<double>(number) / static_cast<double>(sets_.size());
  TRY_DO(step(options_.progress, (part == Part::Forward ? 0.2 : 0.5) + 0.3 * share, "compiling for " + set.name));
  const loops::Target target = target_of(set, config().threads);
  auto planned = [&] {
    const trace::Stage timed("plan");
    return schedule::make_plan(graph, {.sizes = hints, .target = target, .symbolic = !hints.empty()});
  }();
  if (!planned && !hints.empty() && planned.error().fault == Fault::Unsupported)
    return unsupported("compile.dynamic", "the graph has no plan for all sizes: " + planned.error().message,
                       planned.error().where);
  TRY(schedule::Plan plan, std::move(planned));
  plan.symbols = hints;  // whose names kernels take
  for (const Guard& g : guards)
    if (std::ranges::find(plan.guards, g.condition, &Guard::condition) == plan.guards.end()) plan.guards.push_back(g);
  LibraryGraphFacts& facts = facts_of(part);
  LinkCode& code_of_set = code_[number];
  std::vector<LinkGraph>& codes = part == Part::Forward    ? code_of_set.forward
                                  : part == Part::Backward ? code_of_set.backward
                                                           : code_of_set.constants;
  const std::string label = fmt::format("{}_{}_{}", set.name, part_names[static_cast<std::size_t>(part)], codes.size());
  if (number == 0) trace::guards(graph, plan.guards);
  if (fixed.empty()) general_ = plan.guards;
  if (trace::on()) trace::output_code(label, print(plan));
  const trace::Stage timed("code_gen");
  TRY(ProgramSource source, make_program(plan));
  LinkGraph linked{.program = file(label), .prefix = label + "_", .functions = {}};
  TRY(const std::string bytes, program_bytes(source.program));
  TRY_DO(write_file(linked.program, bytes));
  JitOptions how{.target = target, .processor = set.processor, .prefix = linked.prefix};
  how.target.threads = static_cast<int>(std::max(std::thread::hardware_concurrency(), 1u));
  TRY(const ObjectCode code, compile_kernels(source.kernels, source.program.symbols, how));
  for (std::size_t i = 0; i < code.objects.size(); ++i) {
    objects_.push_back(file(fmt::format("{}_{}.o", label, i)));
    report_.code_bytes += code.objects[i].size();
    TRY_DO(write_file(objects_.back(), code.objects[i]));
  }
  std::set<std::string> names;
  for (const ProgramKernel& kernel : source.program.kernels)
    for (const Phase& phase : kernel.entry.phases) names.insert(phase.symbol);
  linked.functions.assign(names.begin(), names.end());
  codes.push_back(std::move(linked));
  if (number == 0) facts.fixed.push_back(fixed);
  for (std::size_t b = 0; b < plan.buffers.size(); ++b) {
    const schedule::PlanBuffer& buffer = plan.buffers[b];
    if (buffer.kind == schedule::PlanBuffer::Kind::Constant)
      facts.constants[buffer.attribute] = weight(buffer.attribute, graph.attributes.at(buffer.attribute));
    if (buffer.kind == schedule::PlanBuffer::Kind::Input && part == Part::Forward && source.program.written[b])
      note_written(static_cast<std::size_t>(buffer.index));
  }
  if (number + 1 < sets_.size()) return {};
  report_.kernels += source.kernels.size();
  if (fixed.empty()) {
    for (const Guard& g : plan.guards) report_.guards.push_back(g.condition.str());
    if (part != Part::Constants) (part == Part::Forward ? results_ : gradients_) = plan.promised;
  }
  return find_evaluations(plan, source, graph, hints);
}

/// Prepares the program for the example's sizes, to find the calls that no library takes.
Status LibraryCompiler::find_evaluations(const schedule::Plan& plan, const ProgramSource& source, const Graph& graph,
                                         const SizeSet& hints) {
  if (source.program.calls.empty()) return {};
  std::map<std::string, Tensor> constants;
  for (const schedule::PlanBuffer& b : plan.buffers)
    if (b.kind == schedule::PlanBuffer::Kind::Constant) constants[b.attribute] = graph.attributes.at(b.attribute);
  TRY(const auto prepared,
      load_program(std::make_shared<codegen::Program>(source.program), hints, std::make_shared<NoCode>(), constants));
  for (const ExternReport& call : prepared->externs)
    if (call.library == "interpreter") {
      std::string line = fmt::format("{} ({}){}{}", call.node, call.op, call.why_not.empty() ? "" : ": ", call.why_not);
      if (std::ranges::find(report_.evaluated, line) == report_.evaluated.end())
        report_.evaluated.push_back(std::move(line));
    }
  return {};
}

Status LibraryCompiler::describe_results() {
  LibraryDescription& d = description_;
  const ViewAndMutationMeta& meta = graphs_.meta;
  const Partition& p = graphs_.partition;
  const std::vector<std::size_t> mutated = meta.mutated_runtime_inputs();
  d.results = options_.train ? p.forward_outputs : results_.size();
  d.saved = options_.train ? p.saved.size() : 0;
  d.saved_numbers = options_.train ? p.saved_symbols : 0;
  for (std::size_t k = 0; k < mutated.size(); ++k) {
    d.written.emplace_back(k, mutated[k]);
    note_written(mutated[k]);
  }
  // An exported program returns what it writes as its first results.
  const ExportedProgram* signature = artefact_.program.get();
  const std::size_t end = d.results - meta.num_intermediate_bases;
  const std::vector<Arg> results = p.forward->outputs();
  for (std::size_t i = mutated.size(); i < end; ++i) {
    const std::size_t k = i - mutated.size();
    const ProgramOutput* output = signature && k < signature->outputs.size() ? &signature->outputs[k] : nullptr;
    const bool writes = output && (output->kind == ProgramOutputKind::BufferMutation ||
                                   output->kind == ProgramOutputKind::ParameterMutation ||
                                   output->kind == ProgramOutputKind::UserInputMutation);
    if (!writes) {
      d.output_result.push_back(i);
      d.outputs.push_back(value_of_result(fmt::format("output.{}", d.outputs.size()), results_[i], results[i]));
      continue;
    }
    const std::size_t known = d.written.size();
    for (std::size_t n = 0; n < names_.size(); ++n) {
      const ProgramInput* input = signature->input(names_[n]);
      if (!input ||
          (output->kind == ProgramOutputKind::UserInputMutation ? input->name : input->target) != output->target)
        continue;
      d.written.emplace_back(i, n);
      // It was left out if only its new value counts.
      if (const auto* t = inputs_.values[n].get<Tensor>(); t && d.arguments[n].from == From::Nothing)
        d.arguments[n] = {From::Weight, weight(output->target, *t)};
      note_written(n);
    }
    if (d.written.size() == known)
      return unsupported("compile.written", "the program writes " + output->target + ", which is none of its inputs");
  }
  if (!options_.train) return {};
  for (std::size_t i : graphs_.tangent_of) d.tangent_of.push_back(i);
  std::set<std::uint64_t> differentiated;
  for (std::size_t i = 0; i < gradients_.size() && i < d.arguments.size(); ++i) {
    if (!gradients_[i].tensor() || d.arguments[i].from == From::Nothing) continue;
    const bool is_weight = d.arguments[i].from == From::Weight;
    const std::uint64_t index = d.arguments[i].index;
    if (is_weight && !differentiated.insert(index).second)
      return unsupported("compile.tied", "the weight " + d.weights[index].value.name +
                                             " is several parameters, whose gradients a library cannot add");
    d.gradient_result.push_back(i);
    d.gradients.push_back(value_of_meta(
        is_weight ? "grad." + d.weights[index].value.name : fmt::format("grad.input.{}", index), gradients_[i]));
  }
  return {};
}

Status LibraryCompiler::write_weights() {
  std::uint64_t at = 0;
  for (std::size_t i = 0; i < weights_.size(); ++i) {
    TRY(const std::int64_t count, reach(weights_[i].sizes, weights_[i].strides));
    description_.weights[i].offset = at;
    at += (static_cast<std::uint64_t>(count) * itemsize(weights_[i].dtype) + 63) / 64 * 64;
  }
  report_.weight_bytes = at;
  if (options_.weights_beside) {
    const std::filesystem::path beside = std::filesystem::path(options_.output).replace_extension(".safetensors");
    description_.weights_file = beside.filename();
    TensorFile file;
    for (std::size_t i = 0; i < weights_.size(); ++i)
      file.tensors.emplace(description_.weights[i].value.name, weights_[i]);
    return write_safetensors(beside, file);
  }
  if (at > most_inside)
    return unsupported("compile.weights",
                       fmt::format("{} MB of weights do not fit into a library; use --weights beside", at / 1'000'000));
  std::ofstream out(file("weights"), std::ios::binary);
  for (std::size_t i = 0; i < weights_.size(); ++i) {
    TRY(const std::int64_t count, reach(weights_[i].sizes, weights_[i].strides));
    out.seekp(static_cast<std::streamoff>(description_.weights[i].offset));
    if (count > 0)
      out.write(reinterpret_cast<const char*>(weights_[i].data()),
                static_cast<std::streamsize>(count) * static_cast<std::streamsize>(itemsize(weights_[i].dtype)));
  }
  out.close();
  std::error_code failed;
  if (out) std::filesystem::resize_file(file("weights"), at, failed);
  if (!out || failed) return input_error("file.write", file("weights") + ": the weights cannot be written");
  return {};
}

Status LibraryCompiler::link() {
  TRY_DO(write_file(file("description"), description_bytes(description_)));
  TRY_DO(link_library({.folder = folder_,
                       .code = code_,
                       .objects = objects_,
                       .description = file("description"),
                       .weights = options_.weights_beside ? "" : file("weights"),
                       .evaluations = options_.evaluations || !report_.evaluated.empty(),
                       .output = options_.output}));
  std::error_code ignored;
  report_.library_bytes = std::filesystem::file_size(options_.output, ignored);
  const std::filesystem::path header = std::filesystem::path(options_.output).parent_path() / "partita_model.h";
  return write_file(header, library_header());
}

}  // namespace

Result<LibraryReport> compile_library(const Artefact& artefact, const TensorFile& io, const LibraryOptions& options) {
  const std::filesystem::path beside = std::filesystem::absolute(options.output).parent_path();
  if (std::error_code ignored; !std::filesystem::is_directory(beside, ignored))
    return input_error("file.missing", "there is no folder " + beside.string() + " for the library");
  TRY(const ScratchFolder folder, ScratchFolder::make("compile"));
  return trace::compiled([&] {
    return catch_raised<LibraryReport>([&] { return LibraryCompiler(artefact, io, options, folder.path()).compile(); });
  });
}

}  // namespace partita::codegen

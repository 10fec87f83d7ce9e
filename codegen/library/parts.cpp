// Compiles one graph of a library: cuts it where values decide sizes, and gives each part code for all sizes, then for
// 0, 1 and small sizes that break guards, once for each instruction set. Calls that decide sizes are interpreted.
#include "codegen/library/parts.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <set>
#include <thread>

#include <fmt/format.h>

#include "codegen/cpu/cpu_machine.h"
#include "codegen/cpu/extern/routines.h"
#include "codegen/cpu/jit.h"
#include "codegen/program/executor.h"
#include "core/aot/pipeline.h"
#include "core/base/assign.h"
#include "core/base/check.h"
#include "core/base/mapped.h"
#include "core/base/output.h"
#include "core/fake/propagate.h"
#include "core/interp/interpreter.h"
#include "core/interp/symbols.h"
#include "core/ir/symbols_of.h"
#include "core/load/trace_writer.h"
#include "core/schedule/instantiate.h"
#include "core/schedule/make_plan.h"
#include "core/schedule/specialise.h"
#include "core/schedule/split.h"
#include "core/sym/float_symbol.h"

namespace partita::codegen {
namespace {

using SizeSet = std::map<std::string, std::int64_t>;

constexpr std::size_t most_codes = 27, most_tried = 1000;  // 27: 0, 1 and more of each of three sizes
constexpr std::int64_t most_special = 7;
constexpr std::array role_names = {"forward", "backward", "constants"};

/// Functions that nobody calls: a program is only prepared, to learn who does its calls.
class NoCode final : public LoadedCode {
 public:
  Result<void*> find(const std::string&) override { return reinterpret_cast<void*>(this); }
};

class PartsCompiler {
 public:
  PartsCompiler(LibraryDraft& draft, const PartsRequest& request) : draft_(draft), request_(request) {}

  Result<std::vector<Meta>> compile();

 private:
  using Indices = std::vector<std::uint64_t>;

  /// Begins a part, whose inputs are these values.
  LibraryPart& begin(const Graph& graph, const Indices& inputs);
  /// Makes code of a part whose sizes inputs tell.
  Status add_part(const Graph& graph, const Indices& inputs);
  /// The same, after a size that values decide: what has no code is interpreted.
  Status add_part_after(const Graph& graph, const Indices& inputs);
  /// A call whose results' sizes values decide, and which is interpreted.
  Status add_call(const Graph& graph, const Indices& inputs);
  Status keep_graph(const Graph& graph, LibraryPart& part);
  /// Runs the example's values through a part.
  Status run_example(const Graph& graph, const Indices& inputs);
  /// Example values of the symbols in a part's inputs.
  Result<SizeSet> hints_of(const Graph& graph, const Indices& inputs);
  Status compile_codes(const Graph& graph, const Indices& inputs);
  /// Adds code for the sizes 0 and 1, and for small sizes that break the guards of the code for all sizes (a size less
  /// 1 that is 1), where the part can have them.
  Status add_small(const Graph& graph, const SizeSet& hints, const std::vector<Guard>& guards);
  /// `fixed`: the sizes that the graph has as numbers.
  Status add_code(const Graph& graph, std::size_t set, const SizeSet& fixed, const SizeSet& hints,
                  const std::vector<Guard>& guards);
  Status find_evaluations(const schedule::Plan& plan, const ProgramSource& source, const Graph& graph,
                          const SizeSet& hints);
  void note_evaluated(std::string line);

  std::vector<LibraryPart>& parts() {
    LibraryDescription& d = draft_.description;
    return request_.role == LibraryRole::Forward    ? d.forward
           : request_.role == LibraryRole::Backward ? d.backward
                                                    : d.constants;
  }
  LinkGraph& codes(LinkCode& code) const {
    return request_.role == LibraryRole::Forward    ? code.forward
           : request_.role == LibraryRole::Backward ? code.backward
                                                    : code.constants;
  }

  LibraryDraft& draft_;
  const PartsRequest& request_;
  std::set<std::string> own_symbols_;  ///< of the graph's inputs; others were decided by values
  std::vector<Value> pool_;            ///< example values, once values decide sizes
  std::vector<Guard> general_;         ///< of the part's code for all sizes
  std::vector<Meta> promised_;
};

Result<std::vector<Meta>> PartsCompiler::compile() {
  std::unique_ptr<Graph> rest = request_.graph.clone();
  PassContext context;
  context.threads = config().threads;
  context.fold_limit_bytes = config().fold_limit;
  const StageRow& stage = row_of(Stage::PostGradPasses);
  trace::artifact(stage.before, *rest);
  {
    const trace::Stage timed(stage.name);
    TRY(const PipelineRun passed,
        post_grad_passes(*rest, context, {.disabled = configured_disabled(), .progress = draft_.options.progress}));
  }
  trace::artifact(stage.after, *rest);
  for (const Node* node : rest->placeholders()) own_symbols_.merge(symbols_of(node->meta));
  Indices pool(rest->placeholders().size());  // what a part's numbers stand for
  std::iota(pool.begin(), pool.end(), 0);
  std::uint64_t given = pool.size();
  bool whole = true;
  while (const auto cut = schedule::split_at_values(*rest)) {
    if (whole) TRY_DO(assign(pool_, request_.example()));
    const auto inputs = [&](const std::vector<std::size_t>& list) {
      return mapped(list, [&](std::size_t i) { return pool[i]; });
    };
    const auto add = [&](const Graph& graph, const std::vector<std::size_t>& takes, auto function) -> Status {
      TRY_DO((this->*function)(graph, inputs(takes)));
      TRY_DO(run_example(graph, inputs(takes)));
      for (std::size_t i = 0; i < graph.outputs().size(); ++i) pool.push_back(given++);
      return {};
    };
    if (cut->before)
      TRY_DO(add(*cut->before, cut->before_inputs, whole ? &PartsCompiler::add_part : &PartsCompiler::add_part_after));
    TRY_DO(add(*cut->call, cut->call_inputs, &PartsCompiler::add_call));
    pool = inputs(cut->after_inputs);
    rest = cut->after->clone();
    whole = false;
  }
  TRY_DO(whole ? add_part(*rest, pool) : add_part_after(*rest, pool));
  return std::move(promised_);
}

LibraryPart& PartsCompiler::begin(const Graph& graph, const Indices& inputs) {
  LibraryPart part{.inputs = inputs, .results = graph.outputs().size()};
  for (const Node* node : graph.placeholders()) {
    const SymExpr* e = node->meta.sym();
    part.numbers.push_back(e && !e->is_int() ? e->str() : "");
  }
  parts().push_back(std::move(part));
  for (LinkCode& code : draft_.code) codes(code).emplace_back();
  return parts().back();
}

Status PartsCompiler::add_part(const Graph& graph, const Indices& inputs) {
  begin(graph, inputs);
  return compile_codes(graph, inputs);
}

Status PartsCompiler::add_part_after(const Graph& graph, const Indices& inputs) {
  TRY_DO(keep_graph(graph, begin(graph, inputs)));
  const Status done = compile_codes(graph, inputs);
  if (done || done.error().fault != Fault::Unsupported) return done;
  for (LinkCode& code : draft_.code) codes(code).back().clear();
  parts().back().fixed.clear();
  promised_.clear();
  for (const Arg& result : graph.outputs()) promised_.push_back(result.node() ? result.node()->meta : Meta());
  note_evaluated(fmt::format("{}: {}", graph.name, done.error().message));
  return {};
}

Status PartsCompiler::add_call(const Graph& graph, const Indices& inputs) {
  const Node* call = nullptr;  // what stands before it are views and numbers that it reads
  for (const Node* node : graph)
    if (node->op()->is_call() && !node->is(Op::getitem())) call = node;
  CHECK(call, "a part without its call");
  note_evaluated(fmt::format("{} ({}): {}", call->name(), call->op()->name,
                             call->meta.sym() ? "values decide it" : "values decide sizes of its result"));
  return keep_graph(graph, begin(graph, inputs));
}

Status PartsCompiler::keep_graph(const Graph& graph, LibraryPart& part) {
  TRY(part.graph, graph_bytes(graph));
  for (const auto& [name, tensor] : graph.attributes) part.constants[name] = draft_.weight(name, tensor);
  return {};
}

Status PartsCompiler::run_example(const Graph& graph, const Indices& inputs) {
  TRY(std::vector<Value> made, interpret(graph, mapped(inputs, [&](std::uint64_t i) { return pool_[i]; }),
                                         {.threads = config().threads, .progress = draft_.options.progress}));
  std::ranges::move(made, std::back_inserter(pool_));
  return {};
}

Result<SizeSet> PartsCompiler::hints_of(const Graph& graph, const Indices& inputs) {
  std::set<std::string> symbols;
  for (const Node* node : graph.placeholders()) symbols.merge(symbols_of(node->meta));
  SymbolMap bound;
  if (!std::ranges::includes(own_symbols_, symbols) || std::ranges::any_of(symbols, is_float_symbol))
    TRY_DO(assign(bound, bind_symbols(graph, mapped(inputs, [&](std::uint64_t i) { return pool_[i]; }))));
  SizeSet hints;
  for (const std::string& name : symbols) {
    const SymExpr symbol = SymExpr::symbol(name);
    if (const auto known = bound.all().find(name); is_float_symbol(name) && known != bound.all().end()) {
      hints[name] = known->second;
      continue;
    }
    if (!own_symbols_.contains(name)) {
      const auto value = bound.value(symbol);
      if (!value) return unsupported("compile.values", "no value of the graph tells the size " + name);
      // Code for 0 and 1 is apart.
      graph.shapes->set_range(name, {2, INT64_MAX});
      graph.shapes->set_hint(name, std::max<std::int64_t>(*value, 2));
    }
    const auto hint = graph.shapes->hint(symbol);
    if (!hint) return unsupported("compile.dynamic", "the size " + name + " has no example value");
    hints[name] = *hint;
    if (!own_symbols_.contains(name)) continue;
    const auto range = request_.ranges.find(name);
    SymRange r = range == request_.ranges.end() ? SymRange() : range->second;
    // 0 and 1 get code of their own; for negative integers there is none.
    if (r.low == 2 || r.low < 0) r.low = 0;
    draft_.description.symbols[name] = {r.low, r.high};
  }
  return hints;
}

Status PartsCompiler::compile_codes(const Graph& graph, const Indices& inputs) {
  TRY(const SizeSet hints, hints_of(graph, inputs));
  std::vector<Guard> guards;
  if (!hints.empty()) {
    // What inference decides by the sizes, and what the sizes of the example must keep.
    if (auto fit = schedule::specialise(graph, hints); !fit) {
      if (parts().back().graph.empty()) return std::move(fit).error();
      return unsupported("compile.values", "the example's sizes do not fit: " + fit.error().message);
    }
    const std::unique_ptr<Graph> inferred = graph.clone();
    if (auto done = propagate(*inferred); !done) return std::move(done).error();
    guards = inferred->shapes->guards();
  }
  for (std::size_t set = 0; set < draft_.sets.size(); ++set) TRY_DO(add_code(graph, set, {}, hints, guards));
  return add_small(graph, hints, guards);
}

Status PartsCompiler::add_small(const Graph& graph, const SizeSet& hints, const std::vector<Guard>& guards) {
  std::vector<std::pair<std::string, std::int64_t>> singles;
  for (const auto& [symbol, hint] : hints) {
    if (is_float_symbol(symbol)) continue;
    const auto known = draft_.description.symbols.find(symbol);
    const auto range = own_symbols_.contains(symbol) ? known->second : LibraryDescription::Range{0, INT64_MAX};
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
  const std::vector<SizeSet>& made = parts().back().fixed;
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
    for (std::size_t set = 0; set < draft_.sets.size(); ++set) {
      const Status done = add_code(**small, set, fixed, rest, own);
      if (!done && (set > 0 || done.error().fault != Fault::Unsupported)) return done;
      if (!done) break;
    }
  }
  return {};
}

Status PartsCompiler::add_code(const Graph& graph, std::size_t number, const SizeSet& fixed, const SizeSet& hints,
                               const std::vector<Guard>& guards) {
  const InstructionSet& set = draft_.sets[number];
  const bool forward = request_.role == LibraryRole::Forward;
  const double share = static_cast<double>(number) / static_cast<double>(draft_.sets.size());
  TRY_DO(step(draft_.options.progress, (forward ? 0.2 : 0.5) + 0.3 * share, "compiling for " + set.name));
  const loops::Target target = target_of(set, config().threads);
  auto planned = [&] {
    const trace::Stage timed("plan");
    return schedule::make_plan(graph, {.sizes = hints, .target = target, .symbolic = !hints.empty()});
  }();
  if (!planned && !hints.empty() && planned.error().fault == Fault::Unsupported) {
    const bool small = std::ranges::any_of(hints, [](const auto& hint) { return hint.second < 2; });
    return unsupported("compile.dynamic",
                       "the graph has no plan for all sizes: " + planned.error().message +
                           (small ? "; export it with an example from 2 up, or with a number that is fixed" : ""),
                       planned.error().where);
  }
  TRY(schedule::Plan plan, std::move(planned));
  plan.symbols = hints;  // whose names kernels take
  for (const Guard& g : guards)
    if (std::ranges::find(plan.guards, g.condition, &Guard::condition) == plan.guards.end()) plan.guards.push_back(g);
  LinkGraph& graph_codes = codes(draft_.code[number]);
  const std::string label = fmt::format("{}_{}_{}_{}", set.name, role_names[static_cast<std::size_t>(request_.role)],
                                        graph_codes.size() - 1, graph_codes.back().size());
  if (number == 0) trace::guards(graph, plan.guards);
  if (fixed.empty()) general_ = plan.guards;
  if (trace::on()) trace::output_code(label, print(plan));
  const trace::Stage timed("code_gen");
  TRY(ProgramSource source, make_program(*cpu_machine(), plan));
  LinkPartCode linked{.program = draft_.file(label), .prefix = label + "_", .functions = {}};
  TRY(const std::string bytes, program_bytes(source.program));
  TRY_DO(write_file(linked.program, bytes));
  JitOptions how{.target = target, .processor = set.processor, .prefix = linked.prefix};
  how.target.threads = static_cast<int>(std::max(std::thread::hardware_concurrency(), 1u));
  TRY(const ObjectCode code, compile_kernels(source.kernels->kernels(), source.program.symbols, how));
  for (std::size_t i = 0; i < code.objects.size(); ++i) {
    draft_.objects.push_back(draft_.file(fmt::format("{}_{}.o", label, i)));
    draft_.report.code_bytes += code.objects[i].size();
    TRY_DO(write_file(draft_.objects.back(), code.objects[i]));
  }
  std::set<std::string> names;
  for (const ProgramKernel& kernel : source.program.kernels)
    for (const Phase& phase : kernel.entry.phases) names.insert(phase.symbol);
  linked.functions.assign(names.begin(), names.end());
  graph_codes.back().push_back(std::move(linked));
  LibraryPart& part = parts().back();
  if (number == 0) part.fixed.push_back(fixed);
  for (std::size_t b = 0; b < plan.buffers.size(); ++b) {
    const schedule::PlanBuffer& buffer = plan.buffers[b];
    if (buffer.kind == schedule::PlanBuffer::Kind::Constant)
      part.constants[buffer.attribute] = draft_.weight(buffer.attribute, graph.attributes.at(buffer.attribute));
    if (buffer.kind != schedule::PlanBuffer::Kind::Input || !forward || !source.program.written[b]) continue;
    const std::uint64_t from = part.inputs[static_cast<std::size_t>(buffer.index)];
    if (from < draft_.description.arguments.size()) draft_.note_written(from);
  }
  if (number + 1 < draft_.sets.size()) return {};
  draft_.report.kernels += source.kernels->kernels().size();
  if (fixed.empty()) {
    for (const Guard& g : plan.guards) draft_.report.guards.push_back(g.condition.str());
    promised_ = plan.promised;
  }
  return find_evaluations(plan, source, graph, hints);
}

/// Prepares the program for the example's sizes, to find the calls that no library takes.
Status PartsCompiler::find_evaluations(const schedule::Plan& plan, const ProgramSource& source, const Graph& graph,
                                       const SizeSet& hints) {
  if (source.program.calls.empty()) return {};
  std::map<std::string, Tensor> constants;
  for (const schedule::PlanBuffer& b : plan.buffers)
    if (b.kind == schedule::PlanBuffer::Kind::Constant) constants[b.attribute] = graph.attributes.at(b.attribute);
  TRY(const auto prepared, load_program(std::make_shared<codegen::Program>(source.program), hints,
                                        std::make_shared<NoCode>(), constants, {.prepare = prepare_extern}));
  for (const ExternReport& call : prepared->externs)
    if (call.library == "interpreter")
      note_evaluated(fmt::format("{} ({}){}{}", call.node, call.op, call.why_not.empty() ? "" : ": ", call.why_not));
  return {};
}

void PartsCompiler::note_evaluated(std::string line) {
  std::vector<std::string>& lines = draft_.report.evaluated;
  if (std::ranges::find(lines, line) == lines.end()) lines.push_back(std::move(line));
}

}  // namespace

Result<std::vector<Meta>> compile_parts(LibraryDraft& draft, const PartsRequest& request) {
  return PartsCompiler(draft, request).compile();
}

}  // namespace partita::codegen

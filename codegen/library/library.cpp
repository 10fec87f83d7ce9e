// The steps of `partita compile`: makes forward and backward, refuses wrappers that the runtime lacks, compiles each
// graph (parts.cpp), describes inputs and results, writes weights, and links.
#include "codegen/library/library.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "codegen/library/describe_values.h"
#include "codegen/library/parts.h"
#include "core/aot/aot.h"
#include "core/aot/graph_io.h"
#include "core/aot/wrapper.h"
#include "core/base/assign.h"
#include "core/base/mapped.h"
#include "core/base/output.h"
#include "core/base/raise.h"
#include "core/base/scratch.h"
#include "core/interp/interpreter.h"
#include "core/ir/place.h"
#include "core/load/trace_writer.h"
#include "core/ops/facts/effects.h"

namespace partita::codegen {
namespace {

using Clock = std::chrono::steady_clock;
using From = LibraryArgument::From;

constexpr std::uint64_t most_inside = 1'500'000'000;  // beyond it addresses in the library do not fit its relocations

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

/// A library has no other ranks, and returns nothing but tensors and numbers.
Status check_stands_alone(const Graph& graph) {
  for (const Node* node : graph)
    if (is_collective(node->op()))
      return unsupported("compile.ranks",
                         fmt::format("{} is a collective, and a library has no other ranks", node->name()),
                         place_of(*node));
  for (const Arg& result : graph.outputs())
    if (const Node* node = result.node(); node && node->is_placeholder() && !node->meta.known())
      return unsupported(
          "compile.output",
          fmt::format("the graph returns its input {}, which is no tensor; a library cannot", node->name()),
          place_of(*node));
  for (const auto& [target, child] : graph.children) TRY_DO(check_stands_alone(*child));
  return {};
}

std::string weights_file(const LibraryOptions& options) {
  return std::filesystem::path(options.output).replace_extension(".safetensors").string();
}
std::string header_file(const LibraryOptions& options) {
  return (std::filesystem::path(options.output).parent_path() / "partita_model.h").string();
}

class LibraryCompiler {
 public:
  LibraryCompiler(const Artefact& artefact, const TensorFile& io, const LibraryOptions& options,
                  const std::string& folder)
      : artefact_(artefact), io_(io), options_(options), draft_{.options = options, .folder = folder} {}

  Result<LibraryReport> compile() {
    const auto start = Clock::now();
    const StopsLoops stops(options_.progress);
    TRY_DO(step(options_.progress, 0, "making the graphs"));
    TRY_DO(make_graphs());
    TRY_DO(describe_inputs());
    TRY_DO(choose_sets());
    TRY_DO(compile_graphs());
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
  Status compile_graphs();
  Result<std::vector<Value>> example(const Graph& graph, LibraryRole role) const;
  Status describe_results();
  Status write_weights();
  Status link();
  /// The weight that is the value of the program's input.
  std::uint64_t weight_of_input(std::size_t i);
  const Artefact& artefact_;
  const TensorFile& io_;
  const LibraryOptions& options_;
  GraphInputs inputs_;
  std::vector<std::string> names_;          ///< of the graph's placeholders
  std::map<std::string, SymRange> ranges_;  ///< of sizes, as the program gives them
  AotGraphs graphs_;
  LibraryDraft draft_;
  LibraryDescription& description_ = draft_.description;
  LibraryReport& report_ = draft_.report;
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
  TRY_DO(check_stands_alone(*graphs_.partition.forward));
  if (graphs_.partition.backward) TRY_DO(check_stands_alone(*graphs_.partition.backward));
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
      argument = {From::Folded, description_.folded++, {}};
      description_.arguments.push_back(argument);
      continue;
    }
    const std::string& key = inputs_.keys[i];
    const auto* tensor = inputs_.values[i].get<Tensor>();
    if (const SymExpr* e = meta.sym(); e && !e->is_int()) argument.number = e->str();
    // "input.0", "param.NAME", "symbol.s0": the last follow from the sizes of other inputs.
    const bool is_input = key.starts_with("input."), is_weight = !is_input && !key.starts_with("symbol.");
    if (is_input && (tensor || meta.sym())) {
      argument.from = From::Input;
      argument.index = description_.inputs.size();
      description_.inputs.push_back(value_of_meta(names_[i], meta));
    } else if (tensor && is_weight && read.contains(i)) {
      argument = {From::Weight, weight_of_input(i), {}};
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
  return draft_.weight(key.substr(key.find('.') + 1), stored ? *stored : *inputs_.values[i].get<Tensor>());
}

Status LibraryCompiler::choose_sets() {
  const std::vector<InstructionSet> all = instruction_sets();
  for (const std::string& name : options_.isas)
    if (std::ranges::find(all, name, &InstructionSet::name) == all.end())
      return input_error("compile.isa", fmt::format("there is no code for {}; take one of {}", name,
                                                    fmt::join(mapped(all, &InstructionSet::name), ", ")));
  for (const InstructionSet& set : all)
    if (options_.isas.empty() || std::ranges::find(options_.isas, set.name) != options_.isas.end())
      draft_.sets.push_back(set), report_.isas.push_back(set.name), draft_.code.push_back({.isa = set.name});
  return {};
}

Status LibraryCompiler::compile_graphs() {
  const auto parts = [&](const Graph& graph, LibraryRole role) {
    return compile_parts(
        draft_, {.graph = graph, .role = role, .ranges = ranges_, .example = [&] { return example(graph, role); }});
  };
  TRY(results_, parts(*graphs_.partition.forward, LibraryRole::Forward));
  if (options_.train) TRY_DO(assign(gradients_, parts(*graphs_.partition.backward, LibraryRole::Backward)));
  if (graphs_.constants) {
    TRY(const std::vector<Meta> folded, parts(*graphs_.constants->graph, LibraryRole::Constants));
    (void)folded;
  }
  return {};
}

/// The values that the program's example gives the inputs of one of its graphs.
Result<std::vector<Value>> LibraryCompiler::example(const Graph& graph, LibraryRole role) const {
  if (role == LibraryRole::Backward)
    return unsupported("compile.values", "a library cannot have a backward in which values decide sizes",
                       {.graph = graph.name});
  std::vector<Value> values;
  if (graphs_.constants) {
    for (std::size_t i : graphs_.constants->inputs) values.push_back(inputs_.values[i]);
    if (role == LibraryRole::Constants) return values;
    TRY(values, interpret(*graphs_.constants->graph, std::move(values), {.threads = config().threads}));
  }
  values.insert(values.begin(), inputs_.values.begin(), inputs_.values.end());
  return values;
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
    draft_.note_written(mutated[k]);
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
        d.arguments[n] = {From::Weight, draft_.weight(output->target, *t), {}};
      draft_.note_written(n);
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
  for (std::size_t i = 0; i < draft_.weights.size(); ++i) {
    TRY(const std::int64_t count, reach(draft_.weights[i].sizes, draft_.weights[i].strides));
    description_.weights[i].offset = at;
    at += (static_cast<std::uint64_t>(count) * itemsize(draft_.weights[i].dtype) + 63) / 64 * 64;
  }
  report_.weight_bytes = at;
  if (options_.weights_beside) {
    const std::filesystem::path beside = weights_file(options_);
    description_.weights_file = beside.filename();
    TensorFile file;
    for (std::size_t i = 0; i < draft_.weights.size(); ++i)
      file.tensors.emplace(description_.weights[i].value.name, draft_.weights[i]);
    return write_safetensors(beside, file);
  }
  if (at > most_inside)
    return unsupported("compile.weights",
                       fmt::format("{} MB of weights do not fit into a library; use --weights beside", at / 1'000'000));
  std::ofstream out(draft_.file("weights"), std::ios::binary);
  for (std::size_t i = 0; i < draft_.weights.size(); ++i) {
    TRY(const std::int64_t count, reach(draft_.weights[i].sizes, draft_.weights[i].strides));
    out.seekp(static_cast<std::streamoff>(description_.weights[i].offset));
    if (count > 0)
      out.write(reinterpret_cast<const char*>(draft_.weights[i].data()),
                static_cast<std::streamsize>(count) * static_cast<std::streamsize>(itemsize(draft_.weights[i].dtype)));
  }
  out.close();
  std::error_code failed;
  if (out) std::filesystem::resize_file(draft_.file("weights"), at, failed);
  if (!out || failed) return input_error("file.write", draft_.file("weights") + ": the weights cannot be written");
  return {};
}

Status LibraryCompiler::link() {
  TRY_DO(write_file(draft_.file("description"), description_bytes(description_)));
  TRY_DO(link_library({.folder = draft_.folder,
                       .code = draft_.code,
                       .objects = draft_.objects,
                       .description = draft_.file("description"),
                       .weights = options_.weights_beside ? "" : draft_.file("weights"),
                       .evaluations = options_.evaluations || !report_.evaluated.empty(),
                       .output = options_.output}));
  std::error_code ignored;
  report_.library_bytes = std::filesystem::file_size(draft_.file("library.so"), ignored);
  return write_file(header_file(options_), library_header());
}

}  // namespace

Result<LibraryReport> compile_library(const Artefact& artefact, const TensorFile& io, const LibraryOptions& options) {
  const std::filesystem::path beside = std::filesystem::absolute(options.output).parent_path();
  if (std::error_code ignored; !std::filesystem::is_directory(beside, ignored))
    return input_error("file.missing", "there is no folder " + beside.string() + " for the library");
  TRY_DO(output_place(options.output));
  TRY_DO(output_place(header_file(options)));
  if (options.weights_beside) TRY_DO(output_place(weights_file(options)));
  TRY(const ScratchFolder folder, ScratchFolder::make("compile"));
  return trace::compiled([&] {
    return catch_raised<LibraryReport>([&] { return LibraryCompiler(artefact, io, options, folder.path()).compile(); });
  });
}

}  // namespace partita::codegen

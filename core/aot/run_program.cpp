// A program that runs many times: gathers inputs, makes and compiles its graphs, nests the wrappers around them, and in
// each step collects results and gradients under the caller's keys. Also graphs that run as they stand.
#include "core/aot/run_program.h"

#include <algorithm>
#include <iterator>
#include <set>

#include <fmt/format.h>

#include "core/aot/expand_subclasses.h"
#include "core/aot/one_rank.h"
#include "core/aot/program_parts.h"
#include "core/aot/text_roles.h"
#include "core/base/assign.h"
#include "core/base/check.h"
#include "core/base/memory.h"
#include "core/base/raise.h"
#include "core/compare/per_node.h"
#include "core/dtensor/calls.h"
#include "core/dtensor/enter.h"
#include "core/fake/propagate.h"
#include "core/interp/aten_calls.h"
#include "core/interp/interpreter.h"
#include "core/ir/place.h"
#include "core/load/trace_writer.h"
#include "core/ops/facts/alias.h"
#include "core/ops/record/record.h"
#include "core/ops/schema/in_place.h"
#include "core/partition/joint_parts.h"

namespace partita {
namespace {

/// "param.NAME" -> "grad.NAME", "input.3" -> "grad.input.3"
std::string gradient_key(const std::string& key) {
  return key.starts_with("param.") ? "grad." + key.substr(6) : "grad." + key;
}

/// a + b
Result<Tensor> sum(const Tensor& a, const Tensor& b) {
  const DType wide = is_complex(a.dtype) ? DType::Complex128 : DType::Float64;
  TRY(const Tensor out, a.to(wide));
  TRY(const Tensor more, b.to(wide));
  const std::int64_t n = out.numel() * (is_complex(wide) ? 2 : 1);
  for (std::int64_t k = 0; k < n; ++k)
    reinterpret_cast<double*>(out.data())[k] += reinterpret_cast<const double*>(more.data())[k];
  return out.to(a.dtype);
}

Result<Tensor> filled(const Tensor& like, double value) {
  TRY(Tensor one, Tensor::scalar(like.dtype, value));
  TRY(Tensor out, Tensor::zeros(like.dtype, like.sizes));
  if (value != 0) out.copy_from(one.view_as(like.sizes, Sizes(like.sizes.size(), 0), 0));
  return out;
}

/// Gives the forward what its constants graph computes, which is run for the first call.
BoxedFn with_constants(BoxedFn inner, ConstantsGraph constants) {
  return [inner = std::move(inner), constants = std::move(constants),
          once = std::make_shared<std::vector<Value>>()](std::vector<Value>& inputs) -> Result<std::vector<Value>> {
    if (once->empty()) {
      std::vector<Value> fixed;
      for (std::size_t i : constants.inputs) fixed.push_back(inputs[i]);
      TRY(*once, interpret(*constants.graph, std::move(fixed)));
    }
    inputs.insert(inputs.end(), once->begin(), once->end());
    auto results = inner(inputs);
    inputs.resize(inputs.size() - once->size());
    return results;
  };
}

/// Does the call show its argument's elements conjugated? PyTorch sets a bit of a view of the memory for that.
bool conjugates(const Node& node) {
  const OpRecord* record = find_record(node.op());
  const Schema* schema = find_schema(node.op());
  const TensorMeta* t = node.meta.tensor();
  if (!record || !schema || !schema->is_view || (t && !is_complex(t->dtype))) return false;
  if (record->views.element_change != ElementChange::None) return true;
  if (!record->decompose || record->fake) return false;
  Graph parts;
  Node* trial = parts.copy_node(node, [&](Node* in) { return Arg(parts.placeholder(in->name(), in->meta)); });
  if (!decompose(*trial)) return false;
  return std::ranges::any_of(parts, [&](const Node* n) { return n != trial && conjugates(*n); });
}

/// Does the graph of ATen calls write, and have conjugated views? As it stands it has no conjugate bit: such a view is
/// a copy, which writes do not reach.
bool may_write_conjugates(const Graph& as_written) {
  if (std::ranges::all_of(as_written, [](const Node* n) { return written_by(*n).empty(); })) return false;
  // Text may leave out the metas. Where they cannot be inferred, what it tells must do.
  const std::unique_ptr<Graph> graph = as_written.clone();
  (void)propagate(*graph);
  return std::ranges::any_of(*graph, [](const Node* n) { return n->op()->is_call() && conjugates(*n); });
}

/// The inputs in whose memory the graph of ATen calls writes, as far as schemas tell.
std::set<std::size_t> written_inputs(const Graph& graph, const std::vector<Value>& inputs) {
  const std::vector<Node*> placeholders = graph.placeholders();
  std::set<std::size_t> written;
  for (const Node* n : graph) {
    if (view_in_place(n->op()) || takes_memory(n->op())) continue;
    for (const Node* target : written_by(*n)) {
      const auto at =
          static_cast<std::size_t>(std::ranges::find(placeholders, memory_owner(target)) - placeholders.begin());
      const Tensor* t = at < inputs.size() ? inputs[at].get<Tensor>() : nullptr;
      for (std::size_t i = 0; t && i < inputs.size(); ++i)
        if (const Tensor* other = inputs[i].get<Tensor>(); i == at || (other && overlap(*t, *other))) written.insert(i);
    }
  }
  return written;
}

}  // namespace

std::vector<bool> inputs_to_differentiate(const Graph& graph, const ExportedProgram* program, const GraphInputs& inputs,
                                          const TensorFile& io) {
  std::vector<bool> wants;
  std::vector<Node*> placeholders = graph.placeholders();
  bool marked =
      std::any_of(io.tensors.begin(), io.tensors.end(), [](auto& entry) { return entry.second.requires_grad; });
  for (std::size_t i = 0; i < placeholders.size(); ++i) {
    const Tensor* given = io.find(inputs.keys[i]);
    const ProgramInput* from = program ? program->input(placeholders[i]->name()) : nullptr;
    bool parameter = from ? from->kind == ProgramInputKind::Parameter && !is_frozen(program, *placeholders[i])
                          : !program && !marked && text_role(*placeholders[i]).role == InputRole::Parameter;
    wants.push_back(parameter || (given && given->requires_grad));
  }
  return wants;
}

Diagnostic nothing_to_differentiate(const Graph& graph) {
  return input_error(
      "run.train",
      "there is nothing to differentiate: the file has no parameters; mark inputs by requires_grad in the "
      "--inputs file's metadata",
      {.graph = graph.name});
}

Result<TrainedFunction> TrainedFunction::make(const Artefact& artefact, const TensorFile& io,
                                              const RunOptions& options) {
  return trace::compiled([&] { return compile(artefact, io, options); });
}

Result<TrainedFunction> TrainedFunction::compile(const Artefact& artefact, const TensorFile& given,
                                                 const RunOptions& options) {
  TrainedFunction f;
  TRY(std::unique_ptr<Graph> graph, artefact.graph());
  TRY(auto of_rank, of_one_rank(*graph));
  if (of_rank) graph = std::move(of_rank);
  TRY(f.subclasses_, unwrap_subclasses(graph, given, options.aot.train));
  const TensorFile io = f.subclasses_ ? with_inner_keys(*f.subclasses_, given) : given;
  f.program_ = artefact.program;
  const std::size_t held = held_bytes();
  TRY(f.inputs_, gather_inputs(*graph, f.program_.get(), io, options.random_weights, !is_joint(*graph)));
  f.input_bytes_ = held_bytes() - held;
  f.caller_ = f.inputs_;
  AotOptions how = as_run(*graph, artefact, options.aot);
  const bool joint = how.train && is_joint(*graph);
  const std::vector<bool> callers = inputs_to_differentiate(*graph, f.program_.get(), f.inputs_, io);
  if (!joint) TRY_DO(assign(f.wrappers_, wrap_inputs(*graph, f.inputs_, true)));
  f.at_ = places_of_inputs(f.wrappers_, f.caller_.values.size());
  if (f.subclasses_) f.wrappers_.insert(f.wrappers_.begin(), *f.subclasses_);
  if (how.train && !joint) {
    f.wants_.assign(f.inputs_.values.size(), false);
    for (std::size_t c = 0; c < callers.size(); ++c)
      if (callers[c]) f.wants_[f.at_[c]] = true;
    how.requires_grad = f.wants_;
    if (std::find(how.requires_grad.begin(), how.requires_grad.end(), true) == how.requires_grad.end())
      return nothing_to_differentiate(*graph);
  }
  if (!how.train) how.values = f.inputs_.values;
  trace::input(*graph, joint ? nullptr : f.program_ ? "exported_program" : "dynamo_output_graph");
  TRY(ProgramParts parts, make_parts(*graph, f.program_, how, options));
  f.graphs_ = parts.graphs;
  f.made_ = std::move(parts.summary);
  TRY_DO(f.copy_written());
  if (joint) {
    // The values of tangents_* are among the inputs, after those of the primals.
    GraphInputs primals;
    std::vector<Node*> placeholders = graph->placeholders();
    for (std::size_t i = 0; i < placeholders.size(); ++i) {
      if (is_backward_input(*placeholders[i])) {
        f.joint_tangents_.push_back(f.inputs_.values[i]);
      } else {
        primals.values.push_back(f.inputs_.values[i]);
        primals.keys.push_back(f.inputs_.keys[i]);
      }
    }
    f.caller_ = f.inputs_ = std::move(primals);
    f.at_ = places_of_inputs({}, f.caller_.values.size());
  }
  for (const auto& [key, tensor] : io.tensors)
    if (key.starts_with("tangent.")) f.tangents_.emplace(key, tensor);
  const auto random = std::make_shared<PhiloxState>(options.seed);
  if (parts.backward) {
    f.autograd_ = std::make_shared<Autograd>();
    f.autograd_->compile = [compile = std::move(parts.backward), wrappers = parts.wrappers, random,
                            traced = trace::current()]() -> Result<CompiledFn> {
      const trace::Compilation part(traced);
      TRY(CompiledFn backward, compile());
      return post_compile_backward(wrappers, std::move(backward), random);
    };
    if (!options.lazy_backward) TRY_DO(f.autograd_->compile_backward());
  }
  std::ranges::move(parts.wrappers, std::back_inserter(f.wrappers_));
  BoxedFn inner = boxed(std::move(parts.forward));
  if (!f.made_.frozen.empty())
    inner = [compiled = std::move(inner), frozen = f.made_.frozen](std::vector<Value>& inputs) {
      for (std::size_t i : frozen) inputs[i] = Value();  // the graph has them
      return compiled(inputs);
    };
  if (parts.constants) inner = with_constants(std::move(inner), *parts.constants);
  f.run_ = post_compile(f.wrappers_, std::move(inner), f.autograd_, random);
  if (config().freezing_discard_parameters) f.discard_frozen();
  if (options.place) TRY_DO(f.place_inputs(options.place));
  return f;
}

/// The two lists share memory, and are placed as one.
Status TrainedFunction::place_inputs(Status (*place)(std::vector<Value>&)) {
  std::vector<Value> all = caller_.values;
  all.insert(all.end(), inputs_.values.begin(), inputs_.values.end());
  TRY_DO(place(all));
  const auto middle = all.begin() + static_cast<std::ptrdiff_t>(caller_.values.size());
  std::move(all.begin(), middle, caller_.values.begin());
  std::move(middle, all.end(), inputs_.values.begin());
  return {};
}

/// Gives runs a memory of their own for what they write: the archive's and the file's values must not change.
Status TrainedFunction::copy_written() {
  std::set<const Storage*> written;
  for (std::size_t i = 0; i < made_.meta.inputs.size() && i < inputs_.values.size(); ++i)
    if (const Tensor* t = inputs_.values[i].get<Tensor>();
        t && (made_.meta.inputs[i].mutates_data || made_.meta.inputs[i].mutates_metadata))
      written.insert(t->storage.get());
  std::vector<Value*> places;
  std::vector<Value> values;
  for (std::vector<Value>* list : {&caller_.values, &inputs_.values})
    for (Value& value : *list)
      if (const Tensor* t = value.get<Tensor>(); t && written.contains(t->storage.get())) {
        places.push_back(&value);
        values.push_back(value);
      }
  const std::size_t held = held_bytes();
  TRY(std::vector<Value> copies, copy_values(values));
  input_bytes_ += held_bytes() - held;
  for (std::size_t i = 0; i < places.size(); ++i) *places[i] = std::move(copies[i]);
  return {};
}

/// Lets go of the inputs that compiled code has as constants.
void TrainedFunction::discard_frozen() {
  if (made_.frozen.empty()) return;
  for (std::size_t i : made_.frozen) {
    inputs_.values[i] = Value();
    for (std::size_t c : inputs_in(i)) caller_.values[c] = Value();
  }
  if (!program_) return;
  const auto kept = std::make_shared<ExportedProgram>(*program_);
  kept->tensors.clear();  // gradients ask for them, and nothing is differentiated
  program_ = kept;
}

std::vector<std::size_t> TrainedFunction::inputs_in(std::size_t i) const {
  std::vector<std::size_t> out;
  for (std::size_t c = 0; c < at_.size(); ++c)
    if (at_[c] == i) out.push_back(c);
  return out;
}

bool TrainedFunction::is_base(std::size_t input) const {
  return std::ranges::any_of(wrappers_, [&](const Wrapper& w) {
    const auto* base = std::get_if<SyntheticBaseWrapper>(&w);
    return base && base->is_base(input);
  });
}

Result<std::vector<Value>> TrainedFunction::tangents(const std::vector<Value>& outputs) const {
  if (!joint_tangents_.empty()) return joint_tangents_;
  std::vector<Value> out;
  const std::vector<std::size_t> mutated = made_.meta.mutated_runtime_inputs();
  const bool given =
      std::ranges::any_of(tangents_, [](const auto& entry) { return !entry.first.starts_with("tangent.input."); });
  for (std::size_t position : made_.tangent_of) {
    const Tensor* value = outputs[position].get<Tensor>();
    CHECK(value, "a tangent of a value that is not a tensor");
    std::optional<Tensor> tangent;
    if (position < mutated.size()) {
      TRY(tangent, input_tangent(mutated[position], value->sizes));
    } else if (auto it = tangents_.find(fmt::format("tangent.{}", position - mutated.size())); it != tangents_.end()) {
      tangent = it->second;
      if (tangent->sizes != value->sizes)
        return input_error("run.input", fmt::format("the sizes of {} and of its output differ", it->first));
    }
    if (!tangent) {
      const bool loss = position >= mutated.size() && !given && value->dim() == 0;
      TRY(tangent, filled(*value, loss ? 1 : 0));
    }
    TRY(const Tensor dense, tangent->contiguous());
    TRY(out.emplace_back(), laid_out(dense, made_.tangents[out.size()]));
  }
  return out;
}

/// The tangent of an input's value after the run; for a base, the sum of its views'.
Result<std::optional<Tensor>> TrainedFunction::input_tangent(std::size_t input, const Sizes& sizes) const {
  std::optional<Tensor> total;
  for (std::size_t c : inputs_in(input)) {
    const auto it = tangents_.find("tangent." + caller_.keys[c]);
    if (it == tangents_.end()) continue;
    Tensor tangent = it->second;
    if (is_base(input)) {
      const Tensor& view = *caller_.values[c].get<Tensor>();
      if (tangent.sizes != view.sizes)
        return input_error("run.input", "the sizes of " + it->first + " and its input differ");
      TRY(const Tensor whole, Tensor::zeros(tangent.dtype, sizes));
      whole.view_as(view.sizes, view.strides, view.offset).copy_from(tangent);
      tangent = whole;
    } else if (tangent.sizes != sizes) {
      return input_error("run.input", "the sizes of " + it->first + " and its input differ");
    }
    if (total) {
      TRY(total, sum(*total, tangent));
    } else {
      total = tangent;
    }
  }
  return total;
}

/// The tangent of an input that the graph does not write, or not so that autograd sees it, is a part of its gradient.
Status TrainedFunction::pass_input_tangents(std::vector<Value>& gradients) const {
  const std::vector<std::size_t> mutated = made_.meta.mutated_runtime_inputs();
  std::set<std::size_t> taken;
  for (std::size_t i = 0; i < made_.meta.inputs.size(); ++i)
    if (made_.meta.inputs[i].seen_by_autograd) taken.insert(i);
  for (std::size_t position : made_.tangent_of)
    if (position < mutated.size()) taken.insert(mutated[position]);
  for (std::size_t i = 0; i < wants_.size(); ++i) {
    const Tensor* input = inputs_.values[i].get<Tensor>();
    if (!wants_[i] || !input || taken.contains(i)) continue;
    TRY(const std::optional<Tensor> tangent, input_tangent(i, input->sizes));
    if (!tangent) continue;
    gradients.resize(std::max(gradients.size(), i + 1));
    if (const Tensor* gradient = gradients[i].get<Tensor>()) {
      TRY(gradients[i], sum(*gradient, *tangent));
    } else {
      gradients[i] = *tangent;
    }
  }
  return {};
}

Status TrainedFunction::collect_gradients(const std::vector<Value>& gradients, TensorFile& out) const {
  // A tied weight has several placeholders over one memory of the archive (the inputs here are copies). Each of its
  // names gets the whole gradient.
  std::map<const Storage*, Tensor> total;
  std::vector<std::pair<std::string, const Storage*>> names;
  // What follows the inputs is the random offset of a given joint graph.
  for (std::size_t i = 0; i < gradients.size() && i < inputs_.values.size() && i < made_.inputs; ++i) {
    const Tensor *gradient = gradients[i].get<Tensor>(), *input = inputs_.values[i].get<Tensor>();
    if (!gradient || !input) continue;
    bool tied = inputs_.keys[i].starts_with("param.");
    if (!tied) {
      out.tensors[gradient_key(inputs_.keys[i])] = *gradient;
      if (!is_base(i))
        for (std::size_t c : inputs_in(i)) out.tensors[gradient_key(caller_.keys[c])] = *gradient;
      continue;
    }
    const std::string name = inputs_.keys[i].substr(std::string_view("param.").size());
    auto stored = program_ ? program_->tensors.find(name) : std::map<std::string, Tensor>::const_iterator();
    const Storage* memory =
        program_ && stored != program_->tensors.end() ? stored->second.storage.get() : input->storage.get();
    names.emplace_back(gradient_key(inputs_.keys[i]), memory);
    auto [all, fresh] = total.emplace(memory, *gradient);
    if (fresh) continue;
    if (all->second.sizes != gradient->sizes)
      return unsupported("run.tied",
                         fmt::format("{} shares memory with a parameter of different sizes", inputs_.keys[i]));
    TRY(all->second, sum(all->second, *gradient));
  }
  for (const auto& [name, storage] : names) out.tensors[name] = total.at(storage);
  if (!program_) return {};
  // Further names of a tied weight, without a placeholder in the exported graph.
  for (const auto& [name, tensor] : program_->tensors)
    if (auto it = total.find(tensor.storage.get()); it != total.end() && it->second.sizes == tensor.sizes)
      out.tensors.emplace("grad." + name, it->second);
  return {};
}

Result<TensorFile> TrainedFunction::step(bool gradients) {
  const ViewAndMutationMeta& meta = made_.meta;
  if (autograd_) {
    autograd_->tangents = nullptr;
    if (gradients) autograd_->tangents = [this](const std::vector<Value>& outputs) { return tangents(outputs); };
  }
  std::vector<Value> values = caller_.values;
  TRY(const std::vector<Value> outputs, run_(values));
  std::vector<Value> found;
  if (autograd_) found = std::exchange(autograd_->gradients, {});
  if (gradients && !wants_.empty()) TRY_DO(pass_input_tangents(found));

  std::set<std::size_t> written;
  for (std::size_t c = 0; c < values.size(); ++c) {
    if (values[c].is_none()) continue;
    caller_.values[c] = values[c];
    written.insert(c);
  }
  for (const auto& mutated : {meta.mutated_runtime_inputs(), meta.mutated_in_graph()})
    for (std::size_t i : mutated)
      for (std::size_t c : inputs_in(i)) written.insert(c);
  TRY(TensorFile out, collect_outputs(program_.get(), caller_, {}, outputs));
  for (std::size_t c : written) out.tensors[after_key(caller_.keys[c])] = *caller_.values[c].get<Tensor>();
  TRY_DO(collect_gradients(found, out));
  return subclasses_ ? with_outer_keys(*subclasses_, out) : std::move(out);
}

Result<TensorFile> run_as_it_is(const Artefact& artefact, const TensorFile& file,
                                std::optional<std::uint64_t> random_weights, const CompileFn& compile) {
  TRY(std::unique_ptr<Graph> graph, artefact.graph());
  if (has_dtensors(*graph) || has_dtensor_calls(*graph)) {
    const AotOptions local{.train = false, .passes = false, .choose_layouts = false};
    return run_program(artefact, file, {.aot = local, .forward = compile, .random_weights = random_weights});
  }
  TRY(const std::optional<SubclassWrapper> subclasses, unwrap_subclasses(graph, file, false));
  const TensorFile io = subclasses ? with_inner_keys(*subclasses, file) : file;
  TRY(GraphInputs inputs, gather_inputs(*graph, artefact.program.get(), io, random_weights));
  const GraphInputs given = inputs;
  TRY(const std::unique_ptr<Graph> resolved, with_aten_calls(*graph));
  const bool resizes = std::ranges::any_of(*resolved, [](const Node* n) { return resizes_storage(n->op()); });
  if (resizes || may_write_conjugates(*resolved)) {
    const AotOptions functional{.train = false, .choose_layouts = false};
    return run_program(artefact, file, {.aot = functional, .forward = compile, .random_weights = random_weights});
  }
  const std::set<std::size_t> written = written_inputs(*resolved, given.values);
  TRY(Wrappers wrappers, wrap_inputs(*graph, inputs, false));
  // A run only sees values, so inputs whose sizes or strides change are returned too.
  const std::vector<Node*> placeholders = graph->placeholders(), last = follow_in_place(*graph);
  std::vector<Arg> results;
  std::vector<std::size_t> changed;
  for (std::size_t i = 0; i < placeholders.size(); ++i)
    if (last[i] != placeholders[i]) changed.push_back(i), results.emplace_back(last[i]);
  if (auto epilogue = RuntimeWrapper::of_changed(changed)) {
    std::ranges::move(graph->outputs(), std::back_inserter(results));
    graph->set_output(Arg::tuple(std::move(results)));
    wrappers.emplace_back(*std::move(epilogue));
  }
  GraphInputs after = given;
  std::vector<Value> before, taken = given.values;
  if (mutates_inputs(*graph)) TRY_DO(assign(before, copy_values(given.values)));
  const auto traced = [&] {
    trace::input(*graph, artefact.program ? "exported_program" : "dynamo_output_graph");
    return compile(*graph);
  };
  TRY(const CompiledFn run, trace::compiled(traced));
  TRY(const std::vector<Value> outputs, post_compile(wrappers, boxed(run))(taken));
  for (std::size_t i = 0; i < taken.size(); ++i)
    if (!taken[i].is_none()) after.values[i] = taken[i];
  TRY(TensorFile out, collect_outputs(artefact.program.get(), after, before, outputs));
  // Inputs that were written and have the values they had.
  for (const std::size_t i : written)
    if (const Tensor* t = after.values[i].get<Tensor>()) out.tensors.emplace(after_key(after.keys[i]), *t);
  return subclasses ? with_outer_keys(*subclasses, out) : std::move(out);
}

Result<TensorFile> run_program(const Artefact& artefact, const TensorFile& io, const RunOptions& options) {
  TRY(TrainedFunction f, TrainedFunction::make(artefact, io, options));
  return f.step();
}

}  // namespace partita

#include "core/aot/run_program.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/aot/run_compiled.h"
#include "core/aot/text_roles.h"
#include "core/base/check.h"

namespace partita {
namespace {

/// "buffer.NAME" -> "buffer_after.NAME"
std::string after_key(const std::string& key) {
  std::size_t dot = key.find('.');
  return key.substr(0, dot) + "_after" + key.substr(dot);
}

/// "param.NAME" -> "grad.NAME", "input.3" -> "grad.input.3"
std::string gradient_key(const std::string& key) {
  return key.starts_with("param.") ? "grad." + key.substr(6) : "grad." + key;
}

/// The placeholders to differentiate: those that the IO file marks, and parameters. Parameters of text count only if
/// the file marks nothing.
std::vector<bool> wanted(const Graph& graph, const Program* program, const GraphInputs& inputs, const TensorFile& io) {
  std::vector<bool> wants;
  std::vector<Node*> placeholders = graph.placeholders();
  bool marked =
      std::any_of(io.tensors.begin(), io.tensors.end(), [](auto& entry) { return entry.second.requires_grad; });
  for (std::size_t i = 0; i < placeholders.size(); ++i) {
    const Tensor* given = io.find(inputs.keys[i]);
    const ProgramInput* from = program ? program->input(placeholders[i]->name()) : nullptr;
    bool parameter = from ? from->kind == ProgramInputKind::Parameter
                          : !program && !marked && text_role(*placeholders[i]).role == InputRole::Parameter;
    wants.push_back(parameter || (given && given->requires_grad));
  }
  return wants;
}

Result<Tensor> filled(const Tensor& like, double value) {
  TRY(Tensor one, Tensor::scalar(like.dtype, value));
  TRY(Tensor out, Tensor::zeros(like.dtype, like.sizes));
  if (value != 0) out.copy_from(one.view_as(like.sizes, Sizes(like.sizes.size(), 0), 0));
  return out;
}

}  // namespace

Result<TrainedFunction> TrainedFunction::make(const Artefact& artefact, const TensorFile& io,
                                              const RunOptions& options) {
  TrainedFunction f;
  TRY(const std::unique_ptr<Graph> graph, artefact.graph());
  f.program_ = artefact.program;
  TRY(f.inputs_, gather_inputs(*graph, f.program_.get(), io, options.random_weights));
  AotOptions how = options.aot;
  how.tangents_for_aliases = true;
  how.keep_input_mutations = can_write_inputs(*graph);
  const bool joint = how.train && is_joint(*graph);
  if (how.train && !joint) {
    how.requires_grad = wanted(*graph, f.program_.get(), f.inputs_, io);
    if (std::find(how.requires_grad.begin(), how.requires_grad.end(), true) == how.requires_grad.end())
      return input_error("run.train",
                         "there is nothing to differentiate: the file has no parameters; mark inputs by "
                         "requires_grad in the --inputs file's metadata",
                         {.graph = graph->name});
  }
  TRY(AotGraphs graphs, aot(*graph, f.program_.get(), how));
  f.graphs_ = std::make_shared<AotGraphs>(std::move(graphs));
  if (joint) {
    // The values of tangents_* are among the inputs, after those of the primals.
    GraphInputs primals;
    std::vector<Node*> placeholders = graph->placeholders();
    for (std::size_t i = 0; i < placeholders.size(); ++i) {
      if (placeholders[i]->name().starts_with("tangents")) {
        f.joint_tangents_.push_back(f.inputs_.values[i]);
      } else {
        primals.values.push_back(f.inputs_.values[i]);
        primals.keys.push_back(f.inputs_.keys[i]);
      }
    }
    f.inputs_ = std::move(primals);
  }
  for (const auto& [key, tensor] : io.tensors)
    if (key.starts_with("tangent.")) f.tangents_.emplace(std::strtoull(key.c_str() + 8, nullptr, 10), tensor);
  if (options.joint && f.graphs_->joint) TRY_DO(options.joint(*f.graphs_->joint));
  TRY(f.forward_, options.forward(*f.graphs_->partition.forward));
  if (f.graphs_->partition.backward) {
    TRY(f.backward_, options.backward(*f.graphs_->partition.backward));
  }
  return f;
}

Result<std::vector<Value>> TrainedFunction::tangents(const std::vector<Value>& outputs) const {
  if (!joint_tangents_.empty()) return joint_tangents_;
  std::vector<Value> out;
  std::size_t mutated = graphs_->meta.mutated_runtime_inputs().size();
  for (std::size_t position : graphs_->tangent_of) {
    const Tensor* value = outputs[position].get<Tensor>();
    CHECK(value, "a tangent of a value that is not a tensor");
    auto given = position < mutated ? tangents_.end() : tangents_.find(position - mutated);
    if (given != tangents_.end()) {
      if (given->second.sizes != value->sizes)
        return input_error("run.input",
                           fmt::format("the sizes of tangent.{} and output {} differ", given->first, given->first));
      out.emplace_back(given->second);
      continue;
    }
    bool loss = position >= mutated && tangents_.empty() && value->dim() == 0;
    TRY(Tensor tangent, filled(*value, loss ? 1 : 0));
    out.emplace_back(std::move(tangent));
  }
  return out;
}

Status TrainedFunction::collect_gradients(const std::vector<Value>& gradients, TensorFile& out) const {
  // A tied weight has several placeholders over one memory of the archive (the inputs here are copies). Each of its
  // names gets the whole gradient.
  std::map<const Storage*, Tensor> total;
  std::vector<std::pair<std::string, const Storage*>> names;
  for (std::size_t i = 0; i < gradients.size() && i < inputs_.values.size(); ++i) {
    const Tensor *gradient = gradients[i].get<Tensor>(), *input = inputs_.values[i].get<Tensor>();
    if (!gradient || !input) continue;
    bool tied = inputs_.keys[i].starts_with("param.");
    if (!tied) {
      out.tensors[gradient_key(inputs_.keys[i])] = *gradient;
      continue;
    }
    const std::string name = inputs_.keys[i].substr(std::string_view("param.").size());
    auto stored = program_ ? program_->tensors.find(name) : std::map<std::string, Tensor>::const_iterator();
    const Storage* memory =
        program_ && stored != program_->tensors.end() ? stored->second.storage.get() : input->storage.get();
    names.emplace_back(gradient_key(inputs_.keys[i]), memory);
    auto [sum, fresh] = total.emplace(memory, *gradient);
    if (fresh) continue;
    if (sum->second.sizes != gradient->sizes)
      return unsupported("run.tied",
                         fmt::format("{} shares memory with a parameter of different sizes", inputs_.keys[i]));
    TRY(Tensor added, sum->second.to(DType::Float64));
    TRY(const Tensor more, gradient->to(DType::Float64));
    auto *a = added.as<double>(), *b = more.as<double>();
    for (std::int64_t k = 0; k < added.numel(); ++k) a[k] += b[k];
    TRY(sum->second, added.to(gradient->dtype));
  }
  for (const auto& [name, storage] : names) out.tensors[name] = total.at(storage);
  if (!program_) return {};
  // Further names of a tied weight, without a placeholder in the exported graph.
  for (const auto& [name, tensor] : program_->tensors)
    if (auto it = total.find(tensor.storage.get()); it != total.end() && it->second.sizes == tensor.sizes)
      out.tensors.emplace("grad." + name, it->second);
  return {};
}

Result<TensorFile> TrainedFunction::step() {
  const Partition& p = graphs_->partition;
  const ViewAndMutationMeta& meta = graphs_->meta;
  TRY(std::vector<Value> values, forward_(inputs_.values));
  CHECK(values.size() == p.forward_outputs + p.saved.size(), "the forward returned a wrong number of values");

  std::vector<Value> gradients;
  if (backward_) {
    // The backward runs before the inputs are written, because saved inputs must have their old values.
    std::vector<Value> saved(values.begin() + static_cast<std::ptrdiff_t>(p.forward_outputs), values.end());
    std::rotate(saved.begin(), saved.end() - static_cast<std::ptrdiff_t>(p.saved_symbols), saved.end());
    TRY(std::vector<Value> seeds, tangents(values));
    saved.insert(saved.end(), seeds.begin(), seeds.end());
    TRY(gradients, backward_(std::move(saved)));
  }

  TRY(std::vector<Value> outputs, finish_forward(*graphs_, values, inputs_.values));
  TRY(TensorFile out, collect_outputs(program_.get(), inputs_, {}, outputs));
  for (std::size_t i : meta.mutated_runtime_inputs())
    out.tensors[after_key(inputs_.keys[i])] = *inputs_.values[i].get<Tensor>();
  for (std::size_t i : meta.mutated_in_graph())
    out.tensors[after_key(inputs_.keys[i])] = *inputs_.values[i].get<Tensor>();
  TRY_DO(collect_gradients(gradients, out));
  return out;
}

Result<TensorFile> run_program(const Artefact& artefact, const TensorFile& io, const RunOptions& options) {
  TRY(TrainedFunction f, TrainedFunction::make(artefact, io, options));
  return f.step();
}

}  // namespace partita

#include "core/minify/repro.h"

#include <filesystem>

#include <fmt/format.h>

#include "core/ir/print.h"
#include "core/load/file.h"
#include "core/load/pickle.h"
#include "core/load/safetensors.h"
#include "core/minify/repro_script.h"

namespace partita::minify {
namespace {

namespace fs = std::filesystem;

std::string graph_text(const Graph& graph) {
  return print(graph, {.annotations = true, .origins = false, .deletions = true});
}

/// Copies the graph, with a Python identifier as name and without origins and notes.
std::unique_ptr<Graph> plain_copy(const Graph& graph) {
  std::unique_ptr<Graph> copy = graph.clone();
  copy->name = "GraphModule";
  copy->form = GraphForm::Flat;
  for (Node* node : *copy) {
    node->origin = nullptr;
    node->note.clear();
  }
  return copy;
}

Result<TensorFile> input_file(const Graph& graph, const std::vector<Value>& inputs) {
  TensorFile file;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const std::string key = fmt::format("input.{}", i);
    if (const auto* t = inputs[i].get<Tensor>()) {
      // Copy to memory of its own, so that a small view does not bring along a large storage.
      TRY(Tensor own, Tensor::empty_strided(t->dtype, t->sizes, t->strides));
      own.copy_from(*t);
      file.tensors[key] = std::move(own);
    } else if (const auto* n = inputs[i].get<std::int64_t>()) {
      TRY(file.tensors[key], Tensor::scalar(DType::Int64, static_cast<double>(*n)));
    } else if (const auto* x = inputs[i].get<double>()) {
      TRY(file.tensors[key], Tensor::scalar(DType::Float64, *x));
    }
  }
  for (const auto& [name, tensor] : graph.attributes) {
    TRY(Tensor own, tensor.contiguous());
    file.tensors["constant." + name] = std::move(own);
  }
  return file;
}

Status write_files(const Graph& graph, const std::vector<Value>& inputs, const fs::path& folder) {
  TRY_DO(write_file((folder / "graph.py").string(), graph_text(graph)));
  TRY(const TensorFile file, input_file(graph, inputs));
  TRY_DO(write_safetensors((folder / "inputs.safetensors").string(), file));
  std::vector<Meta> metas;
  for (const Value& v : inputs) metas.push_back(meta_of(v));
  if (const auto pickle = write_dumped_inputs(metas)) TRY_DO(write_file((folder / "graph.input").string(), *pickle));
  return {};
}

std::string readme(const MinifyResult& r, const ReproText& t) {
  std::string text = fmt::format("# {}\n\n{} call{} left of {}: it fails with `{}`.\n\n", t.check, r.calls,
                                 r.calls == 1 ? "" : "s", r.start_calls, r.failure.text());
  if (!r.failure.message.empty()) text += fmt::format("    {}\n\n", r.failure.message);
  text += fmt::format("```python\n{}```\n\n## See it again\n\n", graph_text(*plain_copy(*r.graph)));
  text += fmt::format("    {}\n    python repro.py            # eager against torch.compile\n\n", t.again);
  text += t.config.empty() ? "The configuration is at its defaults.\n\n"
                           : fmt::format("With this configuration (`partita.config`):\n\n```\n{}```\n\n", t.config);
  if (!t.culprit.pass.empty() || !t.culprit.kernel.empty()) {
    text += "## Where\n\n";
    if (!t.culprit.pass.empty()) text += fmt::format("- pass: {}\n", t.culprit.pass);
    if (!t.culprit.kernel.empty()) text += fmt::format("- kernel: {}\n", t.culprit.kernel);
    if (!t.culprit.detail.empty()) text += fmt::format("\n```\n{}```\n", t.culprit.detail);
    text += "\n";
  }
  if (!r.made_up.empty()) {
    text += "These inputs replace values that could not be computed, and are zeros:";
    for (const std::string& name : r.made_up) text += " " + name;
    text += ".\n\n";
  }
  text += "## How it was found\n\n| strategy | tries | taken | calls before | after |\n|---|---|---|---|---|\n";
  for (const StrategyRun& s : r.strategies)
    if (s.tries > 0)
      text += fmt::format("| {} | {} | {} | {} | {} |\n", s.name, s.tries, s.successes, s.calls_before, s.calls_after);
  text += fmt::format(
      "\nMade by {}; the text is PyTorch 2.13's FX. Inputs are in `inputs.safetensors`, their sizes in "
      "`graph.input`.\n",
      t.version);
  return text;
}

}  // namespace

Status write_case(const Candidate& candidate, const std::string& folder) {
  TRY(const std::vector<Value> inputs, candidate.inputs());
  return write_files(*plain_copy(*candidate.graph), inputs, folder);
}

Status write_repro(const MinifyResult& reduced, const std::string& folder, const ReproText& text) {
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (failed)
    return input_error("minify.write", "the folder cannot be created: " + failed.message(), Where{.file = folder});
  const std::unique_ptr<Graph> graph = plain_copy(*reduced.graph);
  TRY_DO(write_files(*graph, reduced.inputs, folder));
  std::vector<std::size_t> numbers;
  for (std::size_t i = 0; i < reduced.inputs.size(); ++i)
    if (!reduced.inputs[i].get<Tensor>()) numbers.push_back(i);
  const std::string script = repro_script(graph_text(*graph), numbers, text.tolerance);
  TRY_DO(write_file((fs::path(folder) / "repro.py").string(), script));
  if (!text.config.empty()) TRY_DO(write_file((fs::path(folder) / "partita.config").string(), text.config));
  return write_file((fs::path(folder) / "README.md").string(), readme(reduced, text));
}

}  // namespace partita::minify

#include "core/aot/saved_case.h"

#include <filesystem>

#include <fmt/format.h>

#include "core/base/assign.h"
#include "core/base/output.h"
#include "core/compare/compare.h"
#include "core/ir/print.h"
#include "core/load/pickle.h"
#include "core/load/safetensors.h"
#include "core/ops/record/values.h"

namespace partita {
namespace {

Result<TensorFile> input_file(const Graph& graph, const std::vector<Value>& inputs) {
  TensorFile file;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const std::string key = fmt::format("input.{}", i);
    if (const auto* t = inputs[i].get<Tensor>()) {
      // Copy to memory of its own, so that a small view does not bring along a large storage.
      TRY(Tensor own, Tensor::empty_strided(t->dtype, t->sizes, t->strides));
      own.copy_from(*t);
      file.tensors[key] = std::move(own);
    } else {
      TRY(const auto number, tensor_or_number(inputs[i]));
      if (number) file.tensors[key] = *number;
    }
  }
  for (const auto& [name, tensor] : graph.attributes)
    TRY_DO(assign(file.tensors["constant." + name], tensor.contiguous()));
  return file;
}

}  // namespace

std::string case_text(const Graph& graph) {
  return print(graph, {.annotations = true, .origins = false, .deletions = true});
}

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

Meta meta_of(const Value& value) {
  if (const auto* n = value.get<std::int64_t>()) return SymExpr(*n);
  const auto* t = value.get<Tensor>();
  return t ? Meta(meta_of(*t)) : Meta();
}

Status write_case(const Graph& graph, const std::vector<Value>& inputs, const std::string& into) {
  const std::filesystem::path folder = into;
  TRY_DO(write_file((folder / "graph.py").string(), case_text(graph)));
  TRY(const TensorFile file, input_file(graph, inputs));
  TRY_DO(write_safetensors((folder / "inputs.safetensors").string(), file));
  std::vector<Meta> metas;
  for (const Value& v : inputs) metas.push_back(meta_of(v));
  if (const auto pickle = write_dumped_inputs(metas)) TRY_DO(write_file((folder / "graph.input").string(), *pickle));
  return {};
}

}  // namespace partita

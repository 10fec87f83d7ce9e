#pragma once
// aot_export_module and aot_export_joint_simple of torch/_functorch/aot_autograd.py.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/result.h"
#include "core/ir/graph.h"
#include "core/load/export_signature.h"
#include "core/load/safetensors.h"

namespace partita {

struct ExportOptions {
  bool trace_joint = false;  ///< forward and backward in one graph
  /// Which output the loss is, for aot_export_module with trace_joint. Negative numbers count from the end, as in
  /// Python.
  std::optional<std::int64_t> loss_index = {};
  bool pre_dispatch = false;  ///< composites and changes of the grad mode stay; not with trace_joint
};

/// Names of the graph's inputs or outputs, each with what it stands for.
using NameMap = std::vector<std::pair<std::string, std::string>>;

struct BackwardSignature {
  NameMap gradients_to_parameters;
  NameMap gradients_to_user_inputs;
  /// As PyTorch names it: the output at the loss's index among all outputs of the graph. If inputs are written, whose
  /// new values come first, this is not the loss.
  std::optional<std::string> loss_output;
  std::string loss;  ///< the output that is the loss
};

/// torch/_functorch/_aot_autograd/schemas.py, GraphSignature. Inputs of the graph are parameters, buffers, user inputs;
/// outputs are new values of written inputs, the user's outputs, gradients.
struct GraphSignature {
  std::vector<std::string> parameters, buffers;  ///< their names in the module
  std::vector<std::string> user_inputs;
  std::vector<std::optional<std::string>> user_outputs;  ///< unset: a constant
  NameMap inputs_to_parameters, inputs_to_buffers;
  NameMap buffers_to_mutate, parameters_to_mutate, user_inputs_to_mutate;  ///< by the output that is the new value
  std::string in_spec, out_spec;                                           ///< as Python prints a TreeSpec
  std::optional<BackwardSignature> backward;
};

struct ExportedModule {
  std::unique_ptr<Graph> graph;
  GraphSignature signature;
};

/// Lifts parameters and buffers to the first inputs and makes the graph functional; with trace_joint also computes the
/// gradients of the loss. `io`: an inputs' file, which tells what requires grad, which inputs share memory and on which
/// device they are; null without one. Then the parameters are differentiated, or, if there are none, every floating
/// input. Errors export.*: what PyTorch refuses, in the first line of its words.
Result<ExportedModule> export_module(const Graph& graph, const ExportedProgram* program, const TensorFile* io,
                                     const ExportOptions& options);

/// Makes the functional graph, or the joint graph, of a function that needs no wrapper around it: it writes no input,
/// no output is a view of an input, and its outputs are one tuple. Errors as for export_module.
Result<std::unique_ptr<Graph>> export_joint_simple(const Graph& graph, const ExportedProgram* program,
                                                   const TensorFile* io, const ExportOptions& options);

}  // namespace partita

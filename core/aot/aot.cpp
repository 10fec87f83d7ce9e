#include "core/aot/aot.h"

#include "core/aot/text_roles.h"

namespace partita {

bool can_be_differentiated(const Node& placeholder) {
  const TensorMeta* t = placeholder.meta.tensor();
  return t && (is_floating(t->dtype) || is_complex(t->dtype));
}

bool is_frozen(const ExportedProgram* program, const Node& placeholder) {
  const Tensor* stored = program ? program->tensor_of(placeholder.name()) : nullptr;
  return stored && !stored->requires_grad;
}

std::vector<InputBinding> bind_inputs(const Graph& graph, const ExportedProgram* program, const AotOptions& options) {
  std::vector<InputBinding> inputs;
  bool any_parameter = false;
  for (Node* node : graph.placeholders()) {
    InputBinding b =
        program ? InputBinding{node->meta.sym() ? InputRole::Symbol : InputRole::User, node->name()} : text_role(*node);
    const ProgramInput* from = program ? program->input(node->name()) : nullptr;
    if (from && from->kind == ProgramInputKind::Parameter)
      b = {InputRole::Parameter, from->target};
    else if (from && from->kind == ProgramInputKind::Buffer)
      b = {InputRole::Buffer, from->target};
    else if (from && from->kind == ProgramInputKind::Constant)
      b = {InputRole::Constant, from->target};
    any_parameter |= b.role == InputRole::Parameter;
    inputs.push_back(std::move(b));
  }
  std::vector<Node*> placeholders = graph.placeholders();
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    bool wanted =
        any_parameter || program ? inputs[i].role == InputRole::Parameter : inputs[i].role != InputRole::Buffer;
    wanted = wanted && !is_frozen(program, *placeholders[i]);
    if (!options.requires_grad.empty()) wanted = i < options.requires_grad.size() && options.requires_grad[i];
    inputs[i].requires_grad = options.train && wanted && can_be_differentiated(*placeholders[i]);
  }
  return inputs;
}

}  // namespace partita

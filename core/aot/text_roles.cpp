#include "core/aot/text_roles.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "core/aot/aot.h"

namespace partita {
namespace {

std::string with_dots(std::string text, std::string_view separator) {
  for (std::size_t at = 0; (at = text.find(separator, at)) != std::string::npos;)
    text.replace(at, separator.size(), ".");
  return text;
}

std::string with_underscores(std::string text) {
  std::ranges::replace(text, '.', '_');
  return text;
}

/// "ParamAOTInput(target='fc1.weight')" -> "fc1.weight"
std::optional<std::string> noted(const std::string& note, std::string_view kind) {
  if (!note.starts_with(kind)) return std::nullopt;
  const std::size_t open = note.find('\''), close = note.rfind('\'');
  if (open == std::string::npos || close == open) return std::nullopt;
  return note.substr(open + 1, close - open - 1);
}

/// "L_self_modules_enc_modules_0_parameters_weight_", "_parameters_" -> "enc.0.weight". Dynamo's name is the source
/// L['self']._modules['enc']._modules['0']._parameters['weight'], with each run of non-letters made one underscore.
std::optional<std::string> from_dynamo(const std::string& target, std::string_view member) {
  const std::size_t at = target.rfind(member);
  if (at == std::string::npos) return std::nullopt;
  std::string leaf = target.substr(at + member.size());
  if (leaf.ends_with('_')) leaf.pop_back();
  const std::size_t modules = target.find("_modules_");
  if (modules == std::string::npos || modules >= at) return leaf;
  constexpr std::size_t length = std::string_view("_modules_").size();
  return with_dots(target.substr(modules + length, at - modules - length), "_modules_") + "." + leaf;
}

InputBinding symbol_or_user(const Node& placeholder) {
  return {placeholder.meta.sym() ? InputRole::Symbol : InputRole::User, placeholder.name()};
}

bool is_tangent(const Graph& graph, const Node& placeholder) {
  return graph.form == GraphForm::Joint && placeholder.name().starts_with("tangents_");
}

/// Can t be the value of the placeholder?
bool fits(const Node& placeholder, const Tensor& t) {
  if (placeholder.meta.sym()) return t.dim() == 0 && is_number(t);
  const TensorMeta* meta = placeholder.meta.tensor();
  if (!meta) return true;
  const auto agree = [](SymExpr size, std::int64_t n) { return !size.is_int() || size.is(n); };
  return meta->dtype == t.dtype && std::ranges::equal(meta->sizes, t.sizes, agree);
}

/// The key of a weight. The file's name may have dots where the placeholder's name has underscores.
std::string weight_key(const InputBinding& weight, const TensorFile& io) {
  std::string key = plain_key(weight);
  if (io.find(key)) return key;
  for (const auto& [name, tensor] : io.tensors)
    if (name.starts_with(key.substr(0, key.find('.') + 1)) && with_underscores(name) == with_underscores(key))
      return name;
  return key;
}

/// Numbers placeholders as inputs. The file may leave out the number of a symbol.
class Counter {
 public:
  explicit Counter(const TensorFile& io) : io_(io) {}
  std::string next(const Node& placeholder) {
    std::string key = fmt::format("input.{}", count_);
    const Tensor* t = io_.find(key);
    if (placeholder.meta.sym() && t && !is_number(*t)) return "symbol." + placeholder.name();
    ++count_;
    return key;
  }

 private:
  const TensorFile& io_;
  int count_ = 0;
};

/// Assigns each given input to the first placeholder that it fits; nullopt when one fits nowhere.
std::optional<std::vector<std::string>> placed(const Graph& graph, const TensorFile& io) {
  std::vector<std::string> keys;
  int next = 0;
  for (const Node* p : graph.placeholders()) {
    const std::string key = fmt::format("input.{}", next);
    const Tensor* t = io.find(key);
    if (t && !is_tangent(graph, *p) && fits(*p, *t)) {
      keys.push_back(key);
      ++next;
    } else {
      keys.push_back((p->meta.sym() ? "symbol." : "param.") + p->name());
    }
  }
  if (io.find(fmt::format("input.{}", next))) return std::nullopt;
  return keys;
}

}  // namespace

bool is_weight(InputRole role) {
  return role == InputRole::Parameter || role == InputRole::Buffer || role == InputRole::Constant;
}

std::string plain_key(const InputBinding& weight) {
  const char* stem = weight.role == InputRole::Parameter ? "param."
                     : weight.role == InputRole::Buffer  ? "buffer."
                                                         : "constant.";
  return stem + weight.name;
}

bool is_number(const Tensor& t) {
  return t.numel() == 1 && !is_floating(t.dtype) && !is_complex(t.dtype);
}

InputBinding text_role(const Node& placeholder) {
  const std::string& source = placeholder.target.empty() ? placeholder.name() : placeholder.target;
  for (auto [role, kind, member] : {std::tuple(InputRole::Parameter, "ParamAOTInput", "_parameters_"),
                                    {InputRole::Buffer, "BufferAOTInput", "_buffers_"}}) {
    if (auto name = noted(placeholder.note, kind)) return {role, *name};
    if (auto name = from_dynamo(source, member)) return {role, *name};
  }
  if (placeholder.meta.tensor())
    for (auto [role, prefix] :
         {std::pair(InputRole::Parameter, "p_"), {InputRole::Buffer, "b_"}, {InputRole::Constant, "c_"}})
      if (source.starts_with(prefix)) return {role, source.substr(2)};
  return symbol_or_user(placeholder);
}

InputBinding input_role(const Node& placeholder, const ExportedProgram* program) {
  if (!program) return text_role(placeholder);
  const ProgramInput* from = program->input(placeholder.name());
  for (auto [kind, role] : {std::pair(ProgramInputKind::Parameter, InputRole::Parameter),
                            {ProgramInputKind::Buffer, InputRole::Buffer},
                            {ProgramInputKind::Constant, InputRole::Constant}})
    if (from && from->kind == kind) return {role, from->target};
  return symbol_or_user(placeholder);
}

std::vector<std::string> text_keys(const Graph& graph, const TensorFile& io) {
  const std::vector<Node*> placeholders = graph.placeholders();
  std::vector<InputBinding> roles;
  std::size_t given = 0, weights = 0;
  for (const Node* p : placeholders) {
    roles.push_back(text_role(*p));
    weights += is_weight(roles.back().role);
  }
  bool named = false;
  for (const auto& [key, tensor] : io.tensors) {
    given += key.starts_with("input.");
    named = named || key.starts_with("param.") || key.starts_with("buffer.");
  }
  const bool users_only = weights > 0 && (given > 0 || named) && given + weights <= placeholders.size();
  std::vector<std::string> keys;
  Counter counter(io);
  for (std::size_t i = 0; i < placeholders.size(); ++i)
    keys.push_back(users_only && is_weight(roles[i].role) ? weight_key(roles[i], io) : counter.next(*placeholders[i]));
  if (users_only || given == 0) return keys;
  bool all_fit = true;
  for (std::size_t i = 0; i < placeholders.size(); ++i)
    if (const Tensor* t = io.find(keys[i])) all_fit = all_fit && fits(*placeholders[i], *t);
  if (!all_fit)
    if (auto by_fit = placed(graph, io)) return *by_fit;
  return keys;
}

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
  const std::vector<Node*> placeholders = graph.placeholders();
  for (const Node* node : placeholders) {
    inputs.push_back(input_role(*node, program));
    any_parameter |= inputs.back().role == InputRole::Parameter;
  }
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

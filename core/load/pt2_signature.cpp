// Signature, pytrees and tensors of a .pt2 archive. Two tables map PyTorch's kinds of inputs and outputs to ours;
// tensors of one file share its storage, and pickled ones are taken apart into their inner tensors.
#include <algorithm>

#include "core/base/assign.h"
#include "core/load/pickle.h"
#include "core/load/pt2_graph.h"

namespace partita {
namespace pt2 {
namespace {

struct InputRow {
  std::string_view key;
  ProgramInputKind kind;
  const char* target;  ///< name of the field that holds the target; null when there is none
};
constexpr InputRow input_rows[] = {{"user_input", ProgramInputKind::UserInput, nullptr},
                                   {"parameter", ProgramInputKind::Parameter, "parameter_name"},
                                   {"buffer", ProgramInputKind::Buffer, "buffer_name"},
                                   {"tensor_constant", ProgramInputKind::Constant, "tensor_constant_name"},
                                   {"custom_obj", ProgramInputKind::CustomObject, "custom_obj_name"},
                                   {"constant_input", ProgramInputKind::UserInput, nullptr},
                                   {"token", ProgramInputKind::Token, nullptr}};

struct OutputRow {
  std::string_view key;
  ProgramOutputKind kind;
  const char* target;
};
constexpr OutputRow output_rows[] = {
    {"user_output", ProgramOutputKind::UserOutput, nullptr},
    {"loss_output", ProgramOutputKind::Loss, nullptr},
    {"buffer_mutation", ProgramOutputKind::BufferMutation, "buffer_name"},
    {"parameter_mutation", ProgramOutputKind::ParameterMutation, "parameter_name"},
    {"user_input_mutation", ProgramOutputKind::UserInputMutation, "user_input_name"},
    {"gradient_to_parameter", ProgramOutputKind::ParameterGradient, "parameter_name"},
    {"gradient_to_user_input", ProgramOutputKind::UserInputGradient, "user_input_name"},
    {"token", ProgramOutputKind::Token, nullptr}};

/// The value's name, from {name} itself or from a union ({as_tensor: {name}}, {as_sym_int: {as_name}}).
std::string name_of(Json argument) {
  std::string_view name;
  for (const char* key : {"name", "as_name"})
    if (argument[key].get(name) == simdjson::SUCCESS) return std::string(name);
  auto u = union_of(argument, "an argument");
  if (!u || !u->value.is_object()) return {};
  for (const char* key : {"name", "as_name"})
    if (u->value[key].get(name) == simdjson::SUCCESS) return std::string(name);
  return {};
}

/// A node of treespec_dumps(), whose leaves have no type.
std::optional<Arg> tree_of(Json spec) {
  simdjson::dom::array children;
  if (spec["children_spec"].get(children) != simdjson::SUCCESS) return std::nullopt;
  std::string_view type, context;
  if (spec["type"].get(type) != simdjson::SUCCESS) return spec["type"].is_null() ? std::optional(Arg()) : std::nullopt;
  std::vector<Arg> items;
  for (Json child : children) {
    std::optional<Arg> item = tree_of(child);
    if (!item) return std::nullopt;
    items.push_back(*std::move(item));
  }
  if (type == "builtins.tuple") return Arg::tuple(std::move(items));
  if (type == "builtins.list") return Arg::list(std::move(items));
  simdjson::dom::parser parser;
  simdjson::dom::array keys;
  if (type != "builtins.dict" || spec["context"].get(context) != simdjson::SUCCESS ||
      parser.parse(context.data(), context.size()).get(keys) != simdjson::SUCCESS || keys.size() != items.size())
    return std::nullopt;
  ArgDict dict;
  for (Json key : keys) {
    std::string_view text;
    if (key.get(text) != simdjson::SUCCESS) return std::nullopt;
    dict.items.emplace_back(std::string(text), std::move(items[dict.items.size()]));
  }
  return Arg(std::move(dict));
}

/// The text of treespec_dumps(): [1, NODE].
std::optional<Arg> tree_in(Json signature, const char* key) {
  std::string_view text;
  simdjson::dom::parser parser;
  Json spec;
  if (signature[key].get(text) != simdjson::SUCCESS ||
      parser.parse(text.data(), text.size()).at(1).get(spec) != simdjson::SUCCESS)
    return std::nullopt;
  return tree_of(spec);
}

/// The tensors that a pickled one consists of, by the names of the attributes that hold them. `left`: values that may
/// still be looked at; a damaged pickle's dicts may hold themselves.
Status add_inner_tensors(const PickleValue& value, const std::string& name, ExportedProgram& program, int& left) {
  if (--left < 0) return input_error("load.pickle", "tensors that consist of too many others");
  if (auto* t = value.get<Tensor>()) program.tensors.emplace(name, *t);
  if (auto* dict = value.get<PickleDict>())
    for (const auto& [key, item] : dict->items)
      if (auto* attribute = key->get<std::string>())
        TRY_DO(add_inner_tensors(*item, name + "." + *attribute, program, left));
  return {};
}

Status read_pickled(const ZipArchive& zip, const std::string& path, const std::string& name, ExportedProgram& program) {
  TRY(const std::shared_ptr<Storage> file, zip.read_storage(path));
  const std::string_view bytes(reinterpret_cast<const char*>(file->data()), file->bytes());
  TRY(const Pickle pickle, read_torch_save(bytes, file));
  const std::size_t before = program.tensors.size();
  int left = 1000;
  TRY_DO(add_inner_tensors(*pickle.root, name, program, left));
  if (program.tensors.size() == before) return unsupported("load.pt2.constant", "it holds no tensors");
  return {};
}

}  // namespace

void read_trees(Json graph_module, ExportedProgram& program) {
  Json signature;
  if (graph_module["module_call_graph"].at(0)["signature"].get(signature) != simdjson::SUCCESS) return;
  program.arguments = tree_in(signature, "in_spec");
  program.returned = tree_in(signature, "out_spec");
}

Status read_signature(Json signature, ExportedProgram& program) {
  TRY(auto inputs, field_as<Array>(signature, "input_specs"));
  for (Json spec : inputs) {
    TRY(Union u, union_of(spec, "an input spec"));
    const auto* row = std::ranges::find(input_rows, u.kind, &InputRow::key);
    if (row == std::end(input_rows))
      return unsupported("load.pt2.signature", fmt::format("an archive with an input of kind '{}'", u.kind));
    ProgramInput input;
    input.kind = row->kind;
    if (u.kind == "constant_input") {
      TRY(input.name, field_as<std::string_view>(u.value, "name"));
      TRY(Json value, need(u.value, "value"));
      TRY(Union literal, union_of(value, "a constant input"));
      TRY(input.constant, read_literal(literal));
    } else {
      TRY(Json argument, need(u.value, "arg"));
      input.name = name_of(argument);
    }
    if (row->target) TRY_DO(assign(input.target, field_as<std::string_view>(u.value, row->target)));
    input.persistent = flag_in(u.value, "persistent", true);
    program.inputs.push_back(std::move(input));
  }
  TRY(auto outputs, field_as<Array>(signature, "output_specs"));
  for (Json spec : outputs) {
    TRY(Union u, union_of(spec, "an output spec"));
    const auto* row = std::ranges::find(output_rows, u.kind, &OutputRow::key);
    if (row == std::end(output_rows))
      return unsupported("load.pt2.signature", fmt::format("an archive with an output of kind '{}'", u.kind));
    ProgramOutput output;
    output.kind = row->kind;
    TRY(Json argument, need(u.value, "arg"));
    output.name = name_of(argument);
    if (row->target) TRY_DO(assign(output.target, field_as<std::string_view>(u.value, row->target)));
    program.outputs.push_back(std::move(output));
  }
  return {};
}

Status read_tensors(const ZipArchive& zip, const std::string& folder, const std::string& config,
                    ExportedProgram& program, std::vector<Diagnostic>& warnings) {
  if (!zip.has(folder + config)) return {};
  TRY(std::string text, zip.read(folder + config));
  simdjson::dom::parser parser;
  Json json;
  if (parser.parse(text).get(json) != simdjson::SUCCESS) return bad(config + " is not JSON");
  TRY(Json table, need(json, "config"));
  TRY(auto entries, as<simdjson::dom::object>(table, "config"));
  std::map<std::string, std::shared_ptr<Storage>> storages;
  for (auto entry : entries) {
    std::string name(entry.key);
    TRY(std::string_view path, field_as<std::string_view>(entry.value, "path_name"));
    auto meta_json = field(entry.value, "tensor_meta");
    if (flag_in(entry.value, "use_pickle") || !meta_json) {
      if (Status read = read_pickled(zip, folder + std::string(path), name, program); !read)
        warnings.push_back(unsupported("load.pt2.constant", fmt::format("'{}' is a pickled object and was left out: {}",
                                                                        name, read.error().message)));
      continue;
    }
    auto read = read_tensor_meta(*meta_json, nullptr);
    if (!read && read.error().code == unknown_dtype) {
      warnings.push_back(
          unsupported(read.error().code, fmt::format("'{}' was left out: {}", name, read.error().message)));
      continue;
    }
    TRY(const TensorMeta meta, std::move(read));
    auto sizes = concrete(meta.sizes), strides = concrete(meta.strides);
    if (!sizes || !strides || !meta.offset.is_int()) return bad(fmt::format("'{}' has symbolic sizes", name));
    auto& storage = storages[std::string(path)];
    if (!storage) TRY_DO(assign(storage, zip.read_storage(folder + std::string(path))));
    Tensor t{storage, meta.dtype, *sizes, *strides, meta.offset.as_int()};
    TRY(const bool within, within_storage(t));
    if (!within) return bad(fmt::format("'{}' reaches beyond its {} bytes", name, storage->bytes()));
    t.requires_grad = flag_in(entry.value, "is_param") && meta.requires_grad;
    program.tensors.emplace(std::move(name), std::move(t));
  }
  return {};
}

}  // namespace pt2

const ProgramInput* ExportedProgram::input(std::string_view placeholder) const {
  const auto found = std::ranges::find(inputs, placeholder, &ProgramInput::name);
  return found == inputs.end() ? nullptr : &*found;
}

const Tensor* ExportedProgram::tensor_of(std::string_view placeholder) const {
  const ProgramInput* i = input(placeholder);
  auto it = i ? tensors.find(i->target) : tensors.end();
  return it == tensors.end() ? nullptr : &it->second;
}

std::string_view kind_name(ProgramInputKind kind) {
  static constexpr std::string_view names[] = {"USER_INPUT",      "PARAMETER",  "BUFFER",
                                               "CONSTANT_TENSOR", "CUSTOM_OBJ", "TOKEN"};
  return names[static_cast<std::size_t>(kind)];
}

std::string_view kind_name(ProgramOutputKind kind) {
  static constexpr std::string_view names[] = {
      "USER_OUTPUT",         "LOSS_OUTPUT",           "BUFFER_MUTATION",        "PARAMETER_MUTATION",
      "USER_INPUT_MUTATION", "GRADIENT_TO_PARAMETER", "GRADIENT_TO_USER_INPUT", "TOKEN"};
  return names[static_cast<std::size_t>(kind)];
}

}  // namespace partita

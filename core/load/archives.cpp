// Zip archives, pickles and safetensors as artefacts.
#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "core/load/export_signature.h"
#include "core/load/pickle.h"
#include "core/load/pt2_graph.h"
#include "core/load/safetensors.h"
#include "core/load/sources.h"
#include "core/ops/facts/requires_grad.h"

namespace partita {
namespace {

bool has_inner_tensors(const ExportedProgram& program, const std::string& target) {
  const std::string prefix = target + ".";
  const auto first = program.tensors.lower_bound(prefix);
  return !program.tensors.contains(target) && first != program.tensors.end() && first->first.starts_with(prefix);
}

/// Gives the graph, in place of a parameter or buffer that consists of other tensors, those that it takes from it
/// (export.access_subclass_inner_tensor), as torchao's unwrap_tensor_subclass does: w.qdata of w.
void unwrap_subclasses(Graph& graph, ExportedProgram& program) {
  // New inputs are looked at too: what they stand for may consist of other tensors itself.
  for (std::size_t i = 0; i < program.inputs.size();) {
    const ProgramInput whole = program.inputs[i];
    Node* const placeholder = graph.find(whole.name);
    if (!placeholder || whole.target.empty() || !has_inner_tensors(program, whole.target)) {
      ++i;
      continue;
    }
    std::vector<ProgramInput> parts;
    const std::vector<Node*> users(placeholder->users().begin(), placeholder->users().end());
    for (Node* user : users) {
      const auto* attribute = user->args().size() == 2 ? user->args()[1].get<std::string>() : nullptr;
      if (!attribute) continue;
      ProgramInput part = whole;
      part.name = whole.name + "_" + *attribute;
      part.target = whole.target + "." + *attribute;
      if (!program.tensors.contains(part.target) && !has_inner_tensors(program, part.target)) continue;
      if (const auto known = std::ranges::find(parts, part.target, &ProgramInput::target); known != parts.end()) {
        user->replace_all_uses_with(graph.find(known->name));
      } else {
        Node* const own = graph.placeholder(part.name, user->meta, placeholder);
        user->replace_all_uses_with(own);
        part.name = own->name();
        parts.push_back(std::move(part));
      }
      graph.erase(user);
    }
    if (parts.empty()) ++i;
    const auto at =
        program.inputs.insert(program.inputs.begin() + static_cast<std::ptrdiff_t>(i), parts.begin(), parts.end());
    if (parts.empty() || !placeholder->users().empty()) continue;  // what reads the whole will ask for its values
    program.inputs.erase(at + std::ssize(parts));
    graph.erase(placeholder);
  }
}

namespace fs = std::filesystem;

constexpr std::int64_t schema_major = 8;

void add(Artefact a, const std::string& prefix, const std::string& id, const std::string& path, Loading& loading) {
  a.id = join_id(prefix, id);
  a.where.file = path;
  a.group = fs::path(path).parent_path().string();
  if (a.title.empty()) a.title = fs::path(path).filename().string();
  loading.add(std::move(a));
}

Status read_ranges(pt2::Json model, ShapeEnv& shapes) {
  auto ranges = pt2::field(model, "range_constraints");
  if (!ranges) return {};
  TRY(auto object, pt2::as<simdjson::dom::object>(*ranges, "range_constraints"));
  for (auto entry : object) {
    SymRange range{INT64_MIN, INT64_MAX};  // a bound that is not said is infinite
    std::int64_t value;
    if (auto low = pt2::field(entry.value, "min_val"); low && low->get(value) == simdjson::SUCCESS) range.low = value;
    if (auto high = pt2::field(entry.value, "max_val"); high && high->get(value) == simdjson::SUCCESS)
      range.high = value;
    shapes.set_range(std::string(entry.key), range);
  }
  return {};
}

/// One model of an archive: models/NAME.json with its tensors and sample inputs.
Status load_model(const ZipArchive& zip, const std::string& root, const std::string& name, const std::string& path,
                  const std::string& prefix, Loading& loading) {
  TRY(std::string text, zip.read(root + "models/" + name + ".json"));
  simdjson::dom::parser parser;
  pt2::Json model;
  if (parser.parse(text).get(model) != simdjson::SUCCESS)
    return pt2::bad(fmt::format("models/{}.json is not JSON", name));
  TRY(pt2::Json version, pt2::need(model, "schema_version"));
  TRY(pt2::Json major_json, pt2::need(version, "major"));
  TRY(std::int64_t major, pt2::as<std::int64_t>(major_json, "schema_version"));
  if (major != schema_major)
    return unsupported(
        "load.pt2.version",
        fmt::format("schema version {} of torch.export; save the program with a PyTorch that writes version {}", major,
                    schema_major));
  TRY(pt2::Json module, pt2::need(model, "graph_module"));
  TRY(pt2::Json graph_json, pt2::need(module, "graph"));
  TRY(pt2::Json signature, pt2::need(module, "signature"));

  auto program = std::make_shared<ExportedProgram>();
  TRY_DO(pt2::read_signature(signature, *program));
  pt2::read_trees(module, *program);
  auto shapes = std::make_shared<ShapeEnv>();
  TRY_DO(read_ranges(model, *shapes));
  std::vector<std::string> names;
  for (const ProgramInput& input : program->inputs) names.push_back(input.name);
  TRY(std::unique_ptr<Graph> graph, pt2::read_graph(graph_json, "GraphModule", shapes, names));
  spread_requires_grad(*graph);  // the archive marks only its parameters

  std::vector<Diagnostic> warnings;
  TRY_DO(pt2::read_tensors(zip, root + "data/weights/", name + "_weights_config.json", *program, warnings));
  TRY_DO(pt2::read_tensors(zip, root + "data/constants/", name + "_constants_config.json", *program, warnings));
  unwrap_subclasses(*graph, *program);
  std::string samples = root + "data/sample_inputs/" + name + ".pt";
  if (zip.has(samples)) {
    TRY(std::string bytes, zip.read(samples));
    auto owner = std::make_shared<const std::string>(std::move(bytes));
    Result<Pickle> pickle = read_torch_save(*owner, owner);
    if (pickle) {
      TRY(program->sample_inputs, pytree_leaves(*pickle->root));
    } else if (pickle.error().code == "load.pickle.global") {  // a tensor subclass, for one
      warnings.push_back(std::move(pickle).error());
      warnings.back().message += "; the sample inputs were left out";
    } else {
      return std::move(pickle).error();
    }
  }
  for (Diagnostic& w : warnings) {
    w.where.file = path;
    w.severity = Severity::Warning;
    loading.out.warnings.push_back(std::move(w));
  }
  bool core = false;
  if (auto verifiers = pt2::field(model, "verifiers")) {
    TRY(auto list, pt2::as<pt2::Array>(*verifiers, "verifiers"));
    for (pt2::Json item : list)
      if (std::string_view dialect; item.get(dialect) == simdjson::SUCCESS && dialect == "ATEN") core = true;
  }
  Artefact a = Artefact::of_graph(std::shared_ptr<const Graph>(std::move(graph)));
  a.kind = core ? ArtefactKind::Core : ArtefactKind::Exported;
  a.program = std::move(program);
  a.title =
      fmt::format("{} of {}", core ? "core ATen program" : "exported program", fs::path(path).filename().string());
  std::string id = name == "model" ? "" : name;
  if (id.empty() && prefix.empty()) id = kind_name(a.kind);
  add(std::move(a), prefix, id, path, loading);
  return {};
}

Status load_archive_bytes(const std::shared_ptr<const FileBytes>& bytes, const std::string& prefix, Loading& loading) {
  const std::string& path = bytes->path();
  TRY(ZipArchive zip, ZipArchive::open(bytes->text(), bytes));
  std::string root = zip.root();
  if (!root.empty()) root += "/";
  if (zip.has(root + "data.pkl")) {
    TRY(Pickle pickle, read_torch_save(bytes->text(), bytes));
    add(Artefact::of_string(describe(pickle)), prefix, prefix.empty() ? fs::path(path).stem().string() : "", path,
        loading);
    return {};
  }
  if (zip.has("serialized_exported_program.json"))
    return unsupported("load.pt2.version",
                       "a torch.export archive from before PyTorch 2.7; save the program with a newer PyTorch");
  std::vector<std::string> models;
  std::string folder = root + "models/";
  for (const std::string& name : zip.names())
    if (name.starts_with(folder) && name.ends_with(".json"))
      models.push_back(name.substr(folder.size(), name.size() - folder.size() - 5));
  TRY(const bool is_aoti, load_aoti(zip, root, path, prefix, loading));
  if (models.empty() && is_aoti) return {};
  if (models.empty())
    return pt2::bad(zip.has(root + "archive_format")
                        ? "it has no program (models/NAME.json); torch.export.save raised an error or was stopped "
                          "before it wrote one"
                        : "the archive has no models/NAME.json and no data.pkl");
  if (zip.has(root + "archive_format")) {
    TRY(std::string format, zip.read(root + "archive_format"));
    if (format != "pt2")
      return unsupported("load.pt2.version", fmt::format("archive format '{}'", format.substr(0, 40)));
  }
  if (zip.has(root + "byteorder")) {
    TRY(std::string order, zip.read(root + "byteorder"));
    if (order != "little") return unsupported("load.pt2.version", "an archive of a big-endian machine");
  }
  for (const std::string& name : models) TRY_DO(load_model(zip, root, name, path, prefix, loading));
  return {};
}

Status placed(Status status, const std::string& path) {
  if (status) return status;
  Diagnostic error = std::move(status).error();
  if (error.where.file.empty()) error.where.file = path;
  return error;
}

}  // namespace

Status load_archive(std::shared_ptr<const FileBytes> bytes, const std::string& prefix, Loading& loading) {
  return placed(load_archive_bytes(bytes, prefix, loading), bytes->path());
}

Status load_pickle(std::shared_ptr<const FileBytes> bytes, const std::string& prefix, Loading& loading) {
  auto pickle = read_pickle(bytes->text());
  if (!pickle) return placed(pickle.error(), bytes->path());
  std::string id = prefix.empty() ? fs::path(bytes->path()).stem().string() : "";
  const auto snapshot = describe_snapshot(*pickle);
  add(Artefact::of_string(snapshot ? *snapshot : describe(*pickle)), prefix, id, bytes->path(), loading);
  if (snapshot)
    tell_what(bytes->path(),
              fmt::format("a memory snapshot of torch.cuda.memory: {}; it holds no graph",
                          snapshot->substr(0, snapshot->find('\n'))),
              loading);
  return {};
}

std::shared_ptr<const Companion> read_companion(const std::string& module_path) {
  fs::path folder = fs::path(module_path).parent_path();
  std::string name = folder.filename().string();
  auto companion = std::make_shared<Companion>();
  bool any = false;
  auto read = [&](const fs::path& path, auto use) {
    std::error_code error;
    if (!fs::is_regular_file(path, error)) return;
    auto bytes = FileBytes::open(path.string());
    Status status = bytes ? use(*bytes) : Status(bytes.error());
    // A file that cannot be read is reported where it is listed by itself; the graph is usable without it.
    if (status) any = true;
  };
  read(folder / (name + ".input"), [&](const std::shared_ptr<const FileBytes>& bytes) -> Status {
    TRY(companion->placeholders, read_dumped_inputs(bytes->text()));
    return {};
  });
  read(folder / (name + ".pt"), [&](const std::shared_ptr<const FileBytes>& bytes) -> Status {
    TRY(Pickle pickle, read_torch_save(bytes->text(), bytes));
    TRY(companion->sample_inputs, pytree_leaves(*pickle.root));
    return {};
  });
  read(folder / "state_dict.pt", [&](const std::shared_ptr<const FileBytes>& bytes) -> Status {
    TRY(Pickle pickle, read_torch_save(bytes->text(), bytes));
    auto* dict = pickle.root->get<PickleDict>();
    if (!dict) return input_error("load.torch_save", "a state dict that is not a dict");
    for (const auto& [key, value] : dict->items)
      if (key->get<std::string>() && value->get<Tensor>())
        companion->attributes[*key->get<std::string>()] = *value->get<Tensor>();
    return {};
  });
  return any ? companion : nullptr;
}

Status load_tensors(std::shared_ptr<const FileBytes> bytes, const std::string& prefix, Loading& loading) {
  const std::string& path = bytes->path();
  TRY(TensorFile file, read_safetensors(path));
  std::string text;
  for (const auto& [name, t] : file.tensors)
    text += fmt::format("{}: {}[{}]\n", name, short_name(t.dtype), fmt::join(t.sizes, ", "));
  for (const auto& [name, dtype] : file.unread) {
    text += fmt::format("{}: {}\n", name, dtype);
    loading.out.warnings.push_back(unsupported(
        "load.safetensors.dtype",
        fmt::format("'{}' has the dtype {}, which is unknown here, and was left out", name, dtype), {.file = path}));
    loading.out.warnings.back().severity = Severity::Warning;
  }
  if (text.empty()) text = "no tensors\n";
  add(Artefact::of_string(std::move(text)), prefix, prefix.empty() ? fs::path(path).stem().string() : "", path,
      loading);
  return {};
}

}  // namespace partita

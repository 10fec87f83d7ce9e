// What PyTorch leaves beside a repro script: the values of its inputs, and the graph with all its parts.
#include <algorithm>
#include <filesystem>
#include <span>

#include <fmt/format.h>

#include "core/base/assign.h"
#include "core/base/natural_order.h"
#include "core/base/raise.h"
#include "core/ir/print.h"
#include "core/load/fx_lines.h"
#include "core/load/fx_text.h"
#include "core/load/pickle.h"
#include "core/load/runnable.h"
#include "core/sym/term_budget.h"

namespace partita {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view debug_folder = "torch_compile_debug";
constexpr std::size_t max_graphs_beside = 200;

/// The part of "..., save_dir='/home/me/torch_compile_debug/run_1/minifier/checkpoints'" from the debug folder on, as
/// its place below the folder that a copy of both lies in; empty where the script has none, or a ".." in it.
fs::path saved_below(std::string_view text) {
  constexpr std::string_view key = "save_dir='";
  const std::size_t at = text.find(key);
  if (at == text.npos) return {};
  const std::string_view rest = text.substr(at + key.size());
  const fs::path saved(rest.substr(0, rest.find('\'')));
  const auto begin = std::find(saved.begin(), saved.end(), debug_folder);
  fs::path out;
  for (auto part = begin; part != saved.end(); ++part) {
    if (*part == "..") return {};
    out /= *part;
  }
  return out;
}

/// The path, if it is one of a file or folder below `root` and no link leads elsewhere.
std::optional<fs::path> below(const fs::path& root, const fs::path& path) {
  std::error_code error;
  const fs::path real = fs::canonical(path, error), real_root = error ? fs::path() : fs::canonical(root, error);
  if (error) return std::nullopt;
  const auto [end, at] = std::mismatch(real_root.begin(), real_root.end(), real.begin(), real.end());
  return end == real_root.end() ? std::optional(real) : std::nullopt;
}

/// The folder of a script's run: what "minifier" and "torchinductor" lie in.
fs::path run_of(const fs::path& folder, const fs::path& saved) {
  if (folder.filename() == "minifier") return folder.parent_path();
  if (folder.filename() == "checkpoints") return folder.parent_path().parent_path();
  if (folder.parent_path().filename() == "torchinductor") return folder.parent_path().parent_path();
  return saved.empty() ? fs::path() : folder / saved.parent_path().parent_path();
}

/// The bytes of a storage, which torch.save wrote alone.
Result<std::shared_ptr<Storage>> read_storage(const fs::path& path) {
  TRY(auto bytes, FileBytes::open(path.string()));
  TRY(const Pickle pickle, read_torch_save(bytes->text(), bytes));
  const Tensor* flat = pickle.root->get<Tensor>();
  if (!flat) return input_error("load.repro", "no storage of an input's values", {.file = path.string()});
  return flat->storage;
}

/// The input's value over its storage.
Result<Value> value_of(const TensorMeta& meta, std::shared_ptr<Storage> storage, const ShapeEnv& shapes) {
  Tensor t{std::move(storage), meta.dtype, {}, {}};
  const auto number = [&](SymExpr e) -> Result<std::int64_t> {
    if (const auto n = shapes.hint(e)) return *n;
    return input_error("load.repro", fmt::format("the script does not say what {} is", e.str()));
  };
  for (const SymExpr size : meta.sizes) TRY_DO(assign(t.sizes.emplace_back(), number(size)));
  for (const SymExpr stride : meta.strides) TRY_DO(assign(t.strides.emplace_back(), number(stride)));
  TRY(t.offset, number(meta.offset));
  TRY(const bool within, within_storage(t));
  if (!within) return input_error("load.repro", "an input reaches beyond its storage");
  t.requires_grad = meta.requires_grad;
  return Value(std::move(t));
}

/// The values of all inputs; empty if one of them has none.
Result<std::vector<Value>> values_of(const LoadArgs& args, const fs::path& folder, const fs::path& saved) {
  ShapeEnv shapes;
  for (const auto& [symbol, hint] : args.hints) shapes.set_hint(symbol, hint);
  std::map<std::string, std::shared_ptr<Storage>> storages;
  std::vector<Value> out;
  for (std::size_t i = 0; i < args.inputs.size(); ++i) {
    if (const SymExpr* number = args.inputs[i].sym()) {
      const auto hint = shapes.hint(*number);
      if (!hint) return std::vector<Value>();
      out.emplace_back(*hint);
      continue;
    }
    const std::string& name = args.storages[i];
    const TensorMeta* meta = args.inputs[i].tensor();
    if (!meta || name.empty() || name.find_first_not_of("0123456789abcdef") != name.npos) return std::vector<Value>();
    auto& storage = storages[name];
    for (const fs::path& kept : {folder / "checkpoints", folder, folder / saved}) {
      if (storage) break;
      if (const auto file = below(folder, kept / "storages" / name)) TRY_DO(assign(storage, read_storage(*file)));
    }
    if (!storage) return std::vector<Value>();
    TRY(out.emplace_back(), value_of(*meta, storage, shapes));
  }
  return out;
}

bool same_nodes(const Graph& a, const Graph& b) {
  const auto text = [](const Node& n) {
    std::string out = n.name() + " " + n.op()->name + " " + n.target;
    for (const Arg& arg : n.args()) out += " " + print(arg);
    for (const auto& [key, arg] : n.kwargs()) out += " " + key + "=" + print(arg);
    return out;
  };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&](const Node* x, const Node* y) { return text(*x) == text(*y); });
}

/// The same graph among those of the run, which have their sub graphs.
std::shared_ptr<const Graph> whole_graph(const Graph& script, const fs::path& run) {
  std::vector<fs::path> folders;
  std::error_code error;
  for (fs::directory_iterator it(run / "torchinductor", error), end; !error && it != end; it.increment(error))
    if (folders.size() < max_graphs_beside) folders.push_back(it->path());
  std::ranges::sort(folders, naturally_before, [](const fs::path& p) { return p.filename().string(); });
  for (const fs::path& folder : folders)
    for (const char* name : {"fx_graph_readable.py", "fx_graph_transformed.py"}) {
      const auto path = below(run, folder / name);
      const auto bytes = path ? FileBytes::open(path->string()) : input_error("file.missing", "");
      if (!bytes) continue;
      const TermBudget budget((*bytes)->text().size());
      auto graph = parse_fx_text((*bytes)->text());
      if (graph && same_nodes(script, **graph)) return std::shared_ptr<const Graph>(*std::move(graph));
    }
  return nullptr;
}

bool lacks_sub_graphs(std::string_view text) {
  for (const FxSection& section : find_fx_graphs(text))
    for (const auto& [attribute, name] : fx::made_modules(text, section))
      if (name == fx::lost_module) return true;
  return false;
}

}  // namespace

std::shared_ptr<const Companion> find_sub_graphs(std::string_view text, std::string_view group,
                                                 std::span<const Artefact> beside) {
  if (text.find(fx::lost_module) == text.npos || !lacks_sub_graphs(text)) return nullptr;
  const auto script = parse_fx_text(text);
  if (!script) return nullptr;
  for (const Artefact& a : beside) {
    auto graph = a.is_graph() && a.group == group ? a.graph() : input_error("load.no_graph", "");
    if (!graph || (*graph)->children.empty() || !same_nodes(**script, **graph)) continue;
    auto out = std::make_shared<Companion>();
    out->whole = *std::move(graph);
    return out;
  }
  return nullptr;
}

std::shared_ptr<const Companion> read_repro(const std::string& path, std::string_view text,
                                            std::vector<Diagnostic>& warnings) {
  const LoadArgs args = read_load_args(text);
  if (args.inputs.empty()) return nullptr;
  std::error_code error;
  const fs::path folder = fs::absolute(path, error).lexically_normal().parent_path(), saved = saved_below(text);
  auto out = std::make_shared<Companion>();
  if (auto values = catch_raised<std::vector<Value>>([&] { return values_of(args, folder, saved); })) {
    out->sample_inputs = *std::move(values);
  } else {
    warnings.push_back(std::move(values).error());
    warnings.back().message += "; the values beside the script are left out";
    warnings.back().severity = Severity::Warning;
    if (warnings.back().where.file.empty()) warnings.back().where.file = path;
  }
  if (const fs::path run = run_of(folder, saved); !run.empty() && lacks_sub_graphs(text))
    if (const auto script = parse_fx_text(text)) out->whole = whole_graph(**script, run);
  return out->whole || !out->sample_inputs.empty() ? out : nullptr;
}

}  // namespace partita

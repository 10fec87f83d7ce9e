#include "core/load/session.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <iterator>
#include <map>

#include <fmt/format.h>

#include "core/base/config.h"
#include "core/ir/devices.h"
#include "core/ir/print.h"
#include "core/ir/symbols_of.h"
#include "core/load/fx_lines.h"
#include "core/load/fx_text.h"
#include "core/load/operators.h"
#include "core/load/runnable.h"
#include "core/load/sources.h"
#include "core/sym/term_budget.h"

namespace partita {
namespace {

struct KindRow {
  std::string_view name;
  Stage stage;
  bool differentiable;
};
constexpr KindRow kinds[] = {
#define V(name, text, stage, differentiable) {text, Stage::stage, differentiable},
    PARTITA_ARTEFACT_KINDS(V)
#undef V
};

/// Sets missing metas. An annotation in the text is kept.
void give_metas(const std::vector<Meta>& metas, Graph& graph) {
  std::vector<Node*> inputs = graph.placeholders();
  for (std::size_t i = 0; i < std::min(inputs.size(), metas.size()); ++i)
    if (!inputs[i]->meta.known()) inputs[i]->meta = metas[i];
}

/// Adds what the text lacks from the files beside it.
void apply(const Companion& companion, Graph& graph) {
  give_metas(companion.placeholders, graph);
  for (const auto& [target, tensor] : companion.attributes) graph.attributes.emplace(target, tensor);
  if (!companion.whole) return;
  for (const auto& [name, child] : companion.whole->children)
    if (!graph.child(name)) graph.children.emplace_back(name, child->clone());
}

/// Gives the inputs' symbols what the log says of them.
void apply(const LoggedSymbols& logged, Graph& graph) {
  for (const Node* input : graph.placeholders())
    for (const std::string& symbol : symbols_of(input->meta))
      if (const auto it = logged.find(symbol); it != logged.end()) {
        graph.shapes->set_hint(symbol, it->second.hint);
        graph.shapes->set_range(symbol, it->second.range);
      }
}

std::string untabbed(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
    std::size_t start = text[at] == '\t' ? at + 1 : at;
    out.append(text.substr(start, end - start));
    at = end;
  }
  return out;
}

}  // namespace

std::string_view kind_name(ArtefactKind kind) {
  return kinds[static_cast<std::size_t>(kind)].name;
}

Stage stage_of(ArtefactKind kind) {
  return kinds[static_cast<std::size_t>(kind)].stage;
}

bool is_differentiable(ArtefactKind kind) {
  return kinds[static_cast<std::size_t>(kind)].differentiable;
}

Artefact Artefact::of_text(std::vector<Part> parts) {
  Artefact a;
  a.where.file = parts.front().bytes->path();
  a.parts_ = std::move(parts);
  return a;
}

Artefact Artefact::of_text(std::shared_ptr<const FileBytes> bytes, std::vector<Piece> pieces) {
  return of_text({Part{std::move(bytes), std::move(pieces)}});
}

Artefact Artefact::of_text(std::shared_ptr<const FileBytes> bytes) {
  std::size_t size = bytes->text().size();
  return of_text(std::move(bytes), {{0, size, false}});
}

Artefact Artefact::of_string(std::string text) {
  Artefact a;
  a.string_ = std::make_shared<const std::string>(std::move(text));
  return a;
}

Artefact Artefact::of_graph(std::shared_ptr<const Graph> graph) {
  Artefact a;
  a.graph_ = std::move(graph);
  return a;
}

Result<std::string> Artefact::text() const {
  if (graph_) return print(*graph_);
  if (string_) return *string_;
  std::string out;
  for (const Part& part : parts_)
    for (const Piece& piece : part.pieces) {
      const std::string_view content = part.bytes->text().substr(piece.begin, piece.size);
      if (piece.tabbed)
        out += untabbed(content);
      else
        out += content;
    }
  return out;
}

Result<std::unique_ptr<Graph>> Artefact::graph() const {
  if (!is_graph())
    return input_error("load.no_graph", fmt::format("'{}' is text, not a graph; choose a graph with --graph", id),
                       where);
  const auto as_configured = [](std::unique_ptr<Graph> graph) -> Result<std::unique_ptr<Graph>> {
    if (config().device == "cpu") move_to(*graph, Device{});
    TRY_DO(give_meanings(*graph));
    return graph;
  };
  if (graph_) return as_configured(graph_->clone());
  TRY(std::string source, text());
  const TermBudget budget(source.size());
  TRY(auto graph, parse_fx_text(source, where.file, std::max(where.line, 1)));
  if (companion) apply(*companion, *graph);
  if (const LoadArgs args = read_load_args(source); args.inputs.size() == graph->placeholders().size()) {
    give_metas(args.inputs, *graph);
    for (const auto& [symbol, hint] : args.hints) {
      graph->shapes->set_hint(symbol, hint);
      graph->shapes->set_range(symbol, fx::range_of(symbol));
    }
  }
  if (symbols) apply(*symbols, *graph);
  return as_configured(std::move(graph));
}

namespace {

/// Is it the artefact's id with more of its path before it? Ids of a folder's files are short.
bool is_long_id(std::string_view asked, const Artefact& a) {
  if (asked.size() <= a.id.size() || !asked.ends_with("/" + a.id)) return false;
  // The path may end with parts that the id has too.
  const std::string ending = "/" + std::string(asked);
  for (std::filesystem::path path = std::filesystem::path(a.where.file).replace_extension(); path.has_relative_path();
       path = path.parent_path())
    if ((path / a.id).generic_string().ends_with(ending) || (path / a.id).generic_string() == asked) return true;
  return false;
}

std::string ids_of(const std::vector<const Artefact*>& graphs) {
  std::string ids;
  for (std::size_t i = 0; i < std::min<std::size_t>(graphs.size(), 12); ++i) ids += (i ? ", " : "") + graphs[i]->id;
  if (graphs.size() > 12) ids += fmt::format(", and {} more", graphs.size() - 12);
  return ids;
}

/// The recorded graphs that "3" or "rank_1/3" means, each by the call that is asked about most.
std::vector<const Artefact*> recorded_with_number(const std::vector<const Artefact*>& graphs, std::string_view word) {
  const std::size_t slash = word.rfind('/');
  const std::string_view digits = word.substr(slash == word.npos ? 0 : slash + 1);
  const std::string_view folder = word.substr(0, word.size() - digits.size());
  std::int64_t number = 0;
  const auto [end, bad] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (bad != std::errc() || end != digits.data() + digits.size()) return {};
  std::map<std::string, const Artefact*> found;  // by its text's file
  for (const Artefact* a : graphs) {
    if (!a->recorded || a->recorded->of_trace || a->recorded->number != number || !a->id.starts_with(folder)) continue;
    const Artefact*& kept = found[a->where.file];
    if (!kept || (a->recorded->why != "first" && kept->recorded->why == "first")) kept = a;
  }
  std::vector<const Artefact*> out;
  for (const auto& [file, a] : found) out.push_back(a);
  return out;
}

/// The graphs that a word may mean that is no id: those whose ids end with it, or those of that kind.
std::vector<const Artefact*> meant(const std::vector<const Artefact*>& graphs, std::string_view word) {
  std::vector<const Artefact*> out;
  const auto take = [&](const auto& is) {
    if (out.empty()) std::ranges::copy_if(graphs, std::back_inserter(out), is);
  };
  take([&](const Artefact* a) { return a->id.ends_with("/" + std::string(word)); });
  if (out.empty()) out = recorded_with_number(graphs, word);
  take([&](const Artefact* a) { return kind_name(a->kind) == word; });
  take([&](const Artefact* a) { return a->id.ends_with("." + std::string(word)); });
  return out;
}

}  // namespace

const Artefact* Loaded::find(std::string_view id) const {
  for (const Artefact& a : artefacts)
    if (a.id == id) return &a;
  for (const Artefact& a : artefacts)
    if (is_long_id(id, a)) return &a;
  return nullptr;
}

Result<const Artefact*> Loaded::pick(std::string_view id) const {
  std::vector<const Artefact*> graphs;
  for (const Artefact& a : artefacts)
    if (a.is_graph()) graphs.push_back(&a);
  if (!id.empty()) {
    if (const Artefact* a = find(id)) return a;
  } else if (graphs.size() == 1) {
    return graphs[0];
  } else {
    for (ArtefactKind kind : {ArtefactKind::Joint, ArtefactKind::Exported, ArtefactKind::Core, ArtefactKind::Dynamo,
                              ArtefactKind::Inference, ArtefactKind::Forward}) {
      std::vector<const Artefact*> of_kind;
      for (const Artefact* a : graphs)
        if (a->kind == kind) of_kind.push_back(a);
      if (of_kind.size() == 1) return of_kind[0];
      if (of_kind.size() > 1) break;
    }
    // A minifier keeps its steps in a folder beside the script that it began with.
    std::vector<const Artefact*> first;
    std::ranges::copy_if(graphs, std::back_inserter(first), [](const Artefact* a) {
      return std::filesystem::path(a->where.file).parent_path().filename() != "checkpoints";
    });
    if (first.size() == 1) return first[0];
  }
  if (graphs.empty()) {
    for (const Diagnostic& note : warnings)
      if (note.code == what_code) return input_error(note.code, note.message, note.where);
    return input_error("load.no_graph", "holds no graph; partita list shows what is in it", {.file = path});
  }
  const std::vector<const Artefact*> found = id.empty() ? std::vector<const Artefact*>() : meant(graphs, id);
  if (found.size() == 1) return found[0];
  const std::string what = id.empty()      ? fmt::format("holds {} graphs", graphs.size())
                           : found.empty() ? fmt::format("no graph '{}' in it", id.substr(0, 100))
                                           : fmt::format("{} graphs are '{}'", found.size(), id.substr(0, 100));
  return input_error("load.graph_id",
                     fmt::format("{}; choose one with --graph: {}", what, ids_of(found.empty() ? graphs : found)),
                     {.file = path});
}

Status check_not_empty(const Loaded& loaded) {
  if (!loaded.artefacts.empty()) return {};
  // A warning that gives a reason is more useful than "nothing found".
  if (!loaded.warnings.empty()) return loaded.warnings.front();
  return input_error(
      "load.nothing",
      "holds nothing that Partita reads; give FX text, a .pt2 archive, a TORCH_TRACE log or a folder of them",
      {.file = loaded.path});
}

Result<Loaded> load(const std::string& path, const Progress* progress) {
  Progress silent;
  Loaded out;
  out.path = path;
  Loading loading{out, progress ? *progress : silent};
  TRY_DO(load_path(path, loading));
  TRY_DO(check_not_empty(out));
  return out;
}

}  // namespace partita

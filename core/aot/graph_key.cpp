#include "core/aot/graph_key.h"

#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/base/build_id.h"
#include "core/base/config.h"
#include "core/base/hash.h"
#include "core/ir/print.h"
#include "core/ir/symbols_of.h"

namespace partita {
namespace {

/// What the annotation of a meta does not say.
std::string unsaid(const Meta& meta) {
  if (const MetaTuple* tuple = meta.tuple()) {
    std::string text = "(";
    for (const Meta& item : tuple->items) text += annotation(item) + unsaid(item) + ",";
    return text + ")";
  }
  const TensorMeta* t = meta.tensor();
  if (!t) return {};
  std::string text;
  if (!t->offset.is(0)) text += " offset=" + t->offset.str();
  if (t->requires_grad) text += " requires_grad";
  if (!t->strides_known) text += " strides unknown";
  if (!t->device_known) text += " device unknown";
  if (t->storage_id >= 0) text += fmt::format(" storage={}", t->storage_id);
  return text;
}

void add_constants(const Graph& graph, const std::string& prefix, std::string& text) {
  text += text_of(graph.attributes, prefix);
  for (const auto& [target, child] : graph.children) add_constants(*child, prefix + target + ".", text);
}

void add_details(const Graph& graph, const std::string& prefix, std::string& text) {
  if (graph.form == GraphForm::Joint) text += prefix + "joint form\n";
  for (const Node* node : graph) {
    std::string line = unsaid(node->meta);
    if (!node->note.empty()) line += " note=" + node->note;
    if (!node->target.empty()) line += " target=" + node->target;
    if (node->op()->meaning) line += " meaning=" + node->op()->meaning_hash;
    if (node->recompute != Recompute::Unspecified) line += fmt::format(" recompute={}", int(node->recompute));
    if (!line.empty()) text += fmt::format("{}{}:{}\n", prefix, node->name(), line);
  }
  for (const auto& [target, child] : graph.children) add_details(*child, prefix + target + ".", text);
}

bool has_symbols(const Graph& graph) {
  for (const Node* node : graph.placeholders()) {
    const TensorMeta* t = node->meta.tensor();
    if (node->meta.sym() || (t && (!concrete(t->sizes) || !concrete(t->strides)))) return true;
  }
  return false;
}

void add_symbols_of(const Graph& graph, std::set<std::string>& out) {
  for (const Node* node : graph) out.merge(symbols_of(node->meta));
  for (const auto& [name, child] : graph.children) add_symbols_of(*child, out);
}

}  // namespace

std::string text_of(const std::map<std::string, Tensor>& constants, const std::string& prefix) {
  std::string text;
  for (const auto& [name, tensor] : constants) {
    text += fmt::format("{}{}: {}[{}][{}] ", prefix, name, short_name(tensor.dtype), fmt::join(tensor.sizes, ", "),
                        fmt::join(tensor.strides, ", "));
    const auto dense = tensor.contiguous();
    text += dense ? content_hash({reinterpret_cast<const char*>(dense->data()),
                                  static_cast<std::size_t>(dense->numel()) * itemsize(dense->dtype)})
                  : dense.error().line();
    text += '\n';
  }
  return text;
}

KeyParts graph_parts(const Graph& graph) {
  std::string details, symbols, constants;
  add_details(graph, "", details);
  add_constants(graph, "", constants);
  if (graph.shapes) {
    std::set<std::string> own;  // the shapes also know symbols of parts that the graph is cut into
    add_symbols_of(graph, own);
    for (const auto& [name, range] : graph.shapes->ranges())
      if (own.contains(name)) symbols += fmt::format("{} is in {} .. {}\n", name, range.low, range.high);
    for (const Guard& g : graph.shapes->guards()) symbols += fmt::format("{}  # {}\n", g.condition.str(), g.reason);
  }
  return {{"graph", print(graph, {.annotations = true, .origins = has_symbols(graph), .deletions = false})},
          {"details", std::move(details)},
          {"symbols", std::move(symbols)},
          {"constants", std::move(constants)}};
}

KeyParts common_parts(const Config& config) {
  return {{"program", build_id()}, {"configuration", code_key(config)}};
}

}  // namespace partita

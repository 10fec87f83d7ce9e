// Reads a graph from the JSON that the Python package writes, node by node, and looks for what the compiler refuses.
#include "codegen/python/read_graph.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <limits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/base/assign.h"
#include "core/fake/propagate.h"
#include "core/ir/verify.h"
#include "core/load/fx_nodes.h"
#include "core/ops/facts/control.h"
#include "core/ops/facts/effects.h"
#include "core/ops/record/record.h"
#include "core/sym/sym_expr.h"

namespace partita::python {
namespace {

using nlohmann::json;

constexpr int most_nested = 50;

Diagnostic wrong(std::string what) {
  return input_error("python.graph", std::move(what));
}

/// What a text is short for: "float32" or "torch.float32".
std::string_view without_torch(std::string_view name) {
  return name.starts_with("torch.") ? name.substr(6) : name;
}

template <class E>
std::optional<E> named(std::string_view name, E last) {
  for (int i = 0; i <= static_cast<int>(last); ++i)
    if (torch_name(static_cast<E>(i)) == without_torch(name)) return static_cast<E>(i);
  return std::nullopt;
}

class Reader {
 public:
  explicit Reader(const std::vector<Tensor>& attributes) : attributes_(attributes) {}

  Result<std::unique_ptr<Graph>> read(const json& described, std::shared_ptr<ShapeEnv> shapes, int depth);

 private:
  Result<Arg> argument(const json& described, int depth) const;
  Result<std::vector<Arg>> arguments(const json& described, int depth) const;
  Result<Arg> special(const std::string& kind, const json& content, int depth) const;
  Result<Meta> meta(const json& described, int depth) const;
  Status add(const json& node);

  const std::vector<Tensor>& attributes_;
  fx::NodeReader* nodes_ = nullptr;
  std::deque<std::string> names_;  ///< of nodes, to which the NodeReader points
};

/// An object of an object; empty where there is none.
const json& object_in(const json& described, const char* key) {
  static const json none = json::object();
  const auto found = described.find(key);
  return found != described.end() && found->is_object() ? *found : none;
}

Result<double> number(const json& described) {
  if (described.is_number()) return described.get<double>();
  const auto found = described.is_object() ? described.find("float") : described.end();
  const std::string text = found != described.end() && found->is_string() ? found->get<std::string>() : "";
  if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (text == "inf") return HUGE_VAL;
  if (text == "-inf") return -HUGE_VAL;
  return wrong(fmt::format("'{}' is no number", described.dump().substr(0, 60)));
}

Result<std::vector<Arg>> Reader::arguments(const json& described, int depth) const {
  if (!described.is_array()) return wrong("a list of arguments is none");
  std::vector<Arg> out;
  for (const json& item : described) {
    TRY(Arg arg, argument(item, depth + 1));
    out.push_back(std::move(arg));
  }
  return out;
}

Result<Arg> Reader::argument(const json& described, int depth) const {
  if (depth > most_nested) return wrong("an argument is nested too deeply");
  if (described.is_null()) return Arg();
  if (described.is_boolean()) return Arg(described.get<bool>());
  if (described.is_number_unsigned() && described.get<std::uint64_t>() > INT64_MAX)
    return wrong("an integer has more than 64 bits");
  if (described.is_number_integer()) return Arg(described.get<std::int64_t>());
  if (described.is_number()) return Arg(described.get<double>());
  if (described.is_string()) return Arg(described.get<std::string>());
  if (described.is_array()) {
    TRY(std::vector<Arg> items, arguments(described, depth));
    return Arg::list(std::move(items));
  }
  if (described.size() != 1) return wrong("an argument has not one kind");
  return special(described.begin().key(), described.begin().value(), depth);
}

Result<Arg> Reader::special(const std::string& kind, const json& content, int depth) const {
  const std::string text = content.is_string() ? content.get<std::string>() : "";
  if (kind == "node") {
    Node* node = nodes_->find(text);
    if (!node) return wrong(fmt::format("an argument is the node '{}', which is not before it", text.substr(0, 60)));
    return Arg(node);
  }
  if (kind == "float") {
    TRY(const double value, number({{"float", content}}));
    return Arg(value);
  }
  if (kind == "complex") {
    if (!content.is_array() || content.size() != 2) return wrong("a complex number has not two parts");
    TRY(const double real, number(content[0]));
    TRY(const double imaginary, number(content[1]));
    return Arg(std::complex<double>(real, imaginary));
  }
  if (kind == "tuple" || kind == "slice") {
    TRY(std::vector<Arg> items, arguments(content, depth));
    if (kind == "tuple") return Arg::tuple(std::move(items));
    if (items.size() != 3) return wrong("a slice has not three parts");
    return Arg(ArgSlice{std::move(items)});
  }
  if (kind == "dtype") {
    if (const auto dtype = dtype_from_torch(without_torch(text))) return Arg(*dtype);
    return unsupported("python.dtype", fmt::format("the dtype {}", text.substr(0, 60)));
  }
  if (kind == "device") {
    if (const auto device = Device::parse(text)) return Arg(*device);
  } else if (kind == "layout") {
    if (const auto layout = named(text, Layout::Mkldnn)) return Arg(*layout);
  } else if (kind == "memory_format") {
    if (const auto format = named(text, MemoryFormat::ChannelsLast3d)) return Arg(*format);
  }
  return unsupported("python.argument", fmt::format("an argument {} '{}'", kind.substr(0, 60), text.substr(0, 60)));
}

Result<Meta> Reader::meta(const json& described, int depth) const {
  if (depth > most_nested) return wrong("a tuple is nested too deeply");
  if (described.is_string()) return parse_annotation(described.get<std::string>());
  if (!described.is_array()) return Meta();
  MetaTuple tuple;
  for (const json& item : described) {
    TRY(Meta one, meta(item, depth + 1));
    tuple.items.push_back(std::move(one));
  }
  return Meta(std::move(tuple));
}

Status Reader::add(const json& node) {
  const auto text = [&](const char* key) {
    const auto found = node.find(key);
    return found != node.end() && found->is_string() ? found->get<std::string>() : std::string();
  };
  std::string op = text("op"), target = text("target");
  const std::string& name = names_.emplace_back(text("name"));
  Args args;
  Kwargs kwargs;
  if (node.contains("args")) TRY_DO(assign(args, arguments(node["args"], 0)));
  if (node.contains("kwargs")) {
    if (!node["kwargs"].is_object()) return wrong("the named arguments of a node are none");
    for (const auto& [key, value] : node["kwargs"].items()) {
      TRY(Arg arg, argument(value, 0));
      kwargs.emplace_back(key, std::move(arg));
    }
  }
  if (op == "call_operator") {
    op = "call_function";
    target.insert(0, "torch.ops.");
  }
  if (op == "output") return wrong("an output among the nodes");
  if (op == "placeholder") target = name;
  TRY_DO(nodes_->add(op, name, target, std::move(args), std::move(kwargs)));
  if (node.contains("meta")) TRY_DO(assign(nodes_->find(name)->meta, meta(node["meta"], 0)));
  return {};
}

Result<std::unique_ptr<Graph>> Reader::read(const json& described, std::shared_ptr<ShapeEnv> shapes, int depth) {
  if (depth > most_nested) return wrong("sub graphs are nested too deeply");
  if (!described.is_object() || !described.contains("nodes") || !described["nodes"].is_array())
    return wrong("a graph has a list of nodes");
  fx::NodeReader nodes;
  nodes_ = &nodes;
  for (const json& node : described["nodes"]) {
    if (!node.is_object()) return wrong("a node is no object");
    TRY_DO(add(node));
  }
  TRY(Arg result, argument(described.contains("output") ? described["output"] : json(), 0));
  TRY_DO(nodes.add("output", "output", "output", {std::move(result)}, {}));
  TRY(std::unique_ptr<Graph> graph, nodes.finish());
  if (const auto name = described.find("name"); name != described.end() && name->is_string())
    graph->name = name->get<std::string>();
  graph->shapes = shapes;
  for (const auto& [name, index] : object_in(described, "attributes").items()) {
    if (!index.is_number_unsigned() || index.get<std::size_t>() >= attributes_.size())
      return wrong(fmt::format("the attribute {} has no tensor", name.substr(0, 60)));
    graph->attributes.emplace(name, attributes_[index.get<std::size_t>()]);
  }
  for (const auto& [name, child] : object_in(described, "children").items()) {
    TRY(std::unique_ptr<Graph> own, read(child, shapes, depth + 1));
    graph->children.emplace_back(name, std::move(own));
  }
  for (const Node* node : *graph)
    if (node->op() == Op::get_attr() && !graph->attributes.contains(node->target) && !graph->child(node->target))
      return wrong(fmt::format("the attribute {} has no tensor and no graph", node->target.substr(0, 60)));
  if (const auto broken = verify(*graph); !broken.empty()) return broken[0];
  return graph;
}

/// Hints and ranges of the symbols.
Status read_symbols(const json& described, ShapeEnv& shapes) {
  if (!described.is_object()) return wrong("the symbols are no object");
  for (const auto& [name, facts] : described.items()) {
    if (!facts.is_object()) return wrong(fmt::format("nothing is said of the symbol {}", name.substr(0, 60)));
    if (const auto hint = facts.find("hint"); hint != facts.end() && hint->is_number_integer())
      shapes.set_hint(name, hint->get<std::int64_t>());
    SymRange range;
    const auto bound = [&](const char* key, std::int64_t& to) {
      const auto found = facts.find(key);
      if (found == facts.end() || !found->is_number_integer()) return false;
      to = found->get<std::int64_t>();
      return true;
    };
    const bool low = bound("low", range.low), high = bound("high", range.high);
    if (low || high) shapes.set_range(name, range);
  }
  return {};
}

/// The metas of a tensor whose dtype or known sizes are another by our rule than by PyTorch's, of one result or of
/// several. That is a fault of ours, which a graph must not suffer from.
std::optional<std::pair<Meta, Meta>> find_difference(const Meta& ours, const Meta& theirs) {
  const TensorMeta *a = ours.tensor(), *b = theirs.tensor();
  if (a && b && (a->dtype != b->dtype || (concrete(a->sizes) && concrete(b->sizes) && a->sizes != b->sizes)))
    return std::pair(ours, theirs);
  const MetaTuple *x = ours.tuple(), *y = theirs.tuple();
  for (std::size_t i = 0; x && y && i < x->items.size() && i < y->items.size(); ++i)
    if (auto found = find_difference(x->items[i], y->items[i])) return found;
  return std::nullopt;
}

/// Does a call give the vectors of a decomposition? Their signs or phases are the LAPACK's that computes them.
bool gives_vectors(const Node& node) {
  const OpRecord* record = find_record(node.op());
  const MetaTuple* results = node.meta.tuple();
  if (!record || !record->spectral.known() || !results) return false;
  return std::ranges::any_of(std::array{record->spectral.left, record->spectral.right}, [&](int i) {
    const bool there = i >= 0 && static_cast<std::size_t>(i) < results->items.size();
    const TensorMeta* t = there ? results->items[static_cast<std::size_t>(i)].tensor() : nullptr;
    return t && !t->numel().is(0);  // of values alone, the vectors are empty
  });
}

std::optional<std::string> why_refused(Node& node) {
  if (!node.op()->is_call()) return std::nullopt;
  const Op* op = node.op();
  if (is_collective(op)) return "it exchanges values with other processes";
  const TensorMeta* t = node.meta.tensor();
  if (t && t->device.type != DeviceType::Cpu) return fmt::format("its result is on {}", t->device.str());
  for (const Node* in : node.inputs())
    if (const TensorMeta* given = in->meta.tensor(); given && given->device.type != DeviceType::Cpu)
      return fmt::format("an argument is on {}", given->device.str());
  if (std::holds_alternative<OpaqueMeta>(node.meta.v))
    return fmt::format("its result is {}", std::get<OpaqueMeta>(node.meta.v).text);
  for (const Node* in : node.inputs())
    if (const auto* opaque = std::get_if<OpaqueMeta>(&in->meta.v)) return "an argument is " + opaque->text;
  if (find_region(op)) {
    for (const Node* in : node.inputs())
      if (in->op() == Op::get_attr())
        if (Graph* child = node.graph().child(in->target))
          for (const Refused& inner : find_refused(*child)) return fmt::format("{}: {}", inner.op, inner.why);
    return std::nullopt;
  }
  if (find_control(op)) return "the compiler does not have it";
  if (op->kind == OpKind::Torch && !find_record(op)) return "the compiler does not have it";
  if (gives_vectors(node)) return "its vectors have signs or phases that PyTorch's own LAPACK decides";
  if (const Status done = check_evaluable(node); !done) return done.error().message;
  const auto inferred = infer(node);
  if (!inferred) return inferred.error().message;
  if (const auto differs = find_difference(*inferred, node.meta))
    return fmt::format("the compiler takes its result for {}, PyTorch for {}", annotation(differs->first),
                       annotation(differs->second));
  return std::nullopt;
}

}  // namespace

Result<std::unique_ptr<Graph>> read_graph(std::string_view text, const std::vector<Tensor>& attributes) {
  const json described = json::parse(text, nullptr, false);
  if (described.is_discarded()) return wrong("the graph is no JSON");
  auto shapes = std::make_shared<ShapeEnv>();
  TRY_DO(read_symbols(described.is_object() && described.contains("symbols") ? described["symbols"] : json::object(),
                      *shapes));
  return Reader(attributes).read(described, shapes, 0);
}

bool draws_numbers(const Graph& graph) {
  return std::ranges::any_of(graph, [](const Node* node) { return draws(node->op()); }) ||
         std::ranges::any_of(graph.children, [](const auto& child) { return draws_numbers(*child.second); });
}

std::vector<Refused> find_refused(Graph& graph) {
  std::vector<Refused> out;
  for (Node* node : graph)
    if (auto why = why_refused(*node)) out.push_back({node->name(), node->op()->name, *std::move(why)});
  return out;
}

}  // namespace partita::python

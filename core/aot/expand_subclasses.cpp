// Rewrites a graph on tensor subclasses to one on their inner tensors: each input and call is copied once for each
// inner tensor. Renames the keys of IO and OUT files both ways.
#include "core/aot/expand_subclasses.h"

#include <algorithm>
#include <unordered_map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/ir/place.h"
#include "core/ir/replace_uses.h"
#include "core/ops/facts/control.h"
#include "core/ops/facts/requires_grad.h"

namespace partita {
namespace {

using Classes = std::map<std::string, std::vector<std::string>>;
using Item = SubclassWrapper::Item;

Result<Classes> read_classes(const std::string& text) {
  const auto json = nlohmann::json::parse(text, nullptr, false);
  const auto bad = [] {
    return input_error("io.subclasses",
                       "the inputs' file declares subclasses otherwise than as {\"TwoTensor\": [\"a\", \"b\"]}");
  };
  if (!json.is_object()) return bad();
  Classes out;
  for (const auto& [name, attributes] : json.items()) {
    if (!attributes.is_array() || attributes.empty()) return bad();
    for (const auto& a : attributes) {
      if (!a.is_string()) return bad();
      out[name].push_back(a);
    }
  }
  return out;
}

class Unwrapper {
 public:
  Unwrapper(const Graph& graph, const Classes& classes, bool train) : graph_(graph), classes_(classes), train_(train) {
    out_ = without_nodes(graph);
  }

  Result<SubclassWrapper> run() {
    for (const Node* node : graph_) {
      if (node->is_placeholder())
        placeholder(*node);
      else
        TRY_DO(node->is_output() ? output() : call(*node));
    }
    return std::move(wrapper_);
  }
  std::unique_ptr<Graph> graph() { return std::move(out_); }

 private:
  /// A declared class and the meta of its inner tensors.
  struct Wrapped {
    const Classes::value_type* type = nullptr;
    Meta inner;
  };
  std::optional<Wrapped> wrapped(const Meta& meta) const {
    const auto* opaque = std::get_if<OpaqueMeta>(&meta.v);
    const std::size_t open = opaque ? opaque->text.find('(') : std::string::npos;
    const auto it = open == std::string::npos ? classes_.end() : classes_.find(opaque->text.substr(0, open));
    if (it == classes_.end() || !opaque->text.ends_with(')')) return std::nullopt;
    auto inner = parse_annotation(std::string_view(opaque->text).substr(open + 1, opaque->text.size() - open - 2));
    if (!inner || !inner->tensor()) return std::nullopt;
    return Wrapped{&*it, *std::move(inner)};
  }

  void placeholder(const Node& node) {
    const auto is = wrapped(node.meta);
    wrapper_.inputs.push_back(is ? Item{is->type->first, is->type->second} : Item());
    if (!is) {
      plain_[&node] = copy(node, 0);
      return;
    }
    Inner& inner = inner_[&node];
    inner.type = is->type;
    for (const std::string& attribute : is->type->second) {
      Node* made = out_->placeholder(node.name() + "_" + attribute, is->inner);
      made->target = (node.target.empty() ? node.name() : node.target) + "_" + attribute;
      made->origin = node.origin;
      inner.nodes.push_back(made);
    }
  }

  Node* copy(const Node& node, std::size_t k) {
    return out_->copy_node(node, [&](Node* n) -> Arg {
      const auto it = inner_.find(n);
      return it == inner_.end() ? plain_.at(n) : it->second.nodes[k];
    });
  }

  Status call(const Node& node) {
    const Classes::value_type* type = nullptr;
    const Node* plain = nullptr;
    for (const Node* n : node.inputs()) {
      const auto it = inner_.find(n);
      if (it == inner_.end()) {
        if (!n->is(Op::get_attr()) && (!n->meta.known() || (n->meta.tensor() && can_require_grad(n->meta)))) plain = n;
      } else if (type && type != it->second.type) {
        return refused(node, "takes tensors of two subclasses");
      } else {
        type = it->second.type;
      }
    }
    if (!type) {
      plain_[&node] = copy(node, 0);
      return {};
    }
    if (is_control(node.op())) return refused(node, "runs sub graphs on a tensor subclass");
    if (plain && train_)
      return refused(node, "takes a " + type->first + " and the plain tensor " + plain->name() +
                               ", whose gradient would be a " + type->first);
    const auto is = wrapped(node.meta);
    Inner& inner = inner_[&node];
    inner.type = type;
    for (std::size_t k = 0; k < type->second.size(); ++k) {
      inner.nodes.push_back(copy(node, k));
      if (is) inner.nodes.back()->meta = is->inner;
    }
    return {};
  }

  Status output() {
    std::vector<Arg> results;
    for (const Arg& a : graph_.outputs()) {
      const auto it = a.node() ? inner_.find(a.node()) : inner_.end();
      if (it == inner_.end()) {
        results.push_back(a.node() ? Arg(plain_.at(a.node())) : a);
        wrapper_.outputs.emplace_back();
        continue;
      }
      if (!wrapped(a.node()->meta)) return refused(*a.node(), "is returned and not annotated as what it is");
      for (Node* n : it->second.nodes) results.emplace_back(n);
      wrapper_.outputs.push_back({it->second.type->first, it->second.type->second});
    }
    out_->set_output(Arg::tuple(std::move(results)));
    return {};
  }

  static Diagnostic refused(const Node& node, const std::string& why) {
    return unsupported("aot.subclass", fmt::format("{} {}", node.name(), why), place_of(node));
  }

  struct Inner {
    const Classes::value_type* type = nullptr;
    std::vector<Node*> nodes;
  };

  const Graph& graph_;
  const Classes& classes_;
  bool train_;
  std::unique_ptr<Graph> out_;
  SubclassWrapper wrapper_;
  std::unordered_map<const Node*, Inner> inner_;
  std::unordered_map<const Node*, Node*> plain_;
};

/// "0.a" -> "0", "0.b" -> "1", "1" -> "2", for a TwoTensor and a plain value.
std::map<std::string, std::string> inner_numbers(const std::vector<Item>& items) {
  std::map<std::string, std::string> out;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const std::string outer = std::to_string(i);
    if (items[i].attributes.empty()) out.emplace(outer, std::to_string(out.size()));
    for (const std::string& a : items[i].attributes) out.emplace(outer + "." + a, std::to_string(out.size()));
  }
  return out;
}

class Renaming {
 public:
  Renaming(const SubclassWrapper& wrapper, bool to_inner)
      : inputs_(inner_numbers(wrapper.inputs)), outputs_(inner_numbers(wrapper.outputs)) {
    if (to_inner) return;
    for (auto* map : {&inputs_, &outputs_}) {
      std::map<std::string, std::string> back;
      for (const auto& [outer, inner] : *map) back.emplace(inner, outer);
      *map = std::move(back);
    }
  }

  std::string operator()(const std::string& key) const {
    for (const auto& [prefix, numbers] : {std::pair<std::string_view, const Numbers*>{"tangent.input.", &inputs_},
                                          {"grad.input.", &inputs_},
                                          {"input_after.", &inputs_},
                                          {"input.", &inputs_},
                                          {"tangent.", &outputs_},
                                          {"output.", &outputs_}}) {
      if (!key.starts_with(prefix)) continue;
      const auto it = numbers->find(key.substr(prefix.size()));
      return it == numbers->end() ? key : std::string(prefix) + it->second;
    }
    return key;
  }

  TensorFile file(const TensorFile& from) const {
    TensorFile out;
    out.metadata = from.metadata;
    for (const auto& [key, tensor] : from.tensors) out.tensors[(*this)(key)] = tensor;
    for (const auto& [map, to] : {std::pair{&from.storages, &out.storages}, {&from.aliases, &out.aliases}})
      for (auto [key, memory] : *map) {
        memory.key = (*this)(memory.key);
        (*to)[(*this)(key)] = memory;
      }
    return out;
  }

 private:
  using Numbers = std::map<std::string, std::string>;
  Numbers inputs_, outputs_;
};

}  // namespace

Result<std::optional<SubclassWrapper>> unwrap_subclasses(std::unique_ptr<Graph>& graph, const TensorFile& io,
                                                         bool train) {
  const auto declared = io.metadata.find("subclasses");
  if (declared == io.metadata.end()) return std::optional<SubclassWrapper>();
  TRY(const Classes classes, read_classes(declared->second));
  Unwrapper unwrapper(*graph, classes, train);
  TRY(SubclassWrapper wrapper, unwrapper.run());
  if (std::ranges::all_of(wrapper.inputs, [](const Item& i) { return i.attributes.empty(); }))
    return std::optional<SubclassWrapper>();
  graph = unwrapper.graph();
  return std::optional(std::move(wrapper));
}

TensorFile with_inner_keys(const SubclassWrapper& wrapper, const TensorFile& io) {
  return Renaming(wrapper, true).file(io);
}

TensorFile with_outer_keys(const SubclassWrapper& wrapper, const TensorFile& out) {
  return Renaming(wrapper, false).file(out);
}

}  // namespace partita

#include "core/ir/fx_dot.h"

#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>

#include "core/base/md5.h"
#include "core/ir/print.h"

namespace partita {
namespace {

constexpr std::string_view colours[] = {"CadetBlue1", "Coral",      "DarkOliveGreen1", "DarkSeaGreen1",
                                        "GhostWhite", "Khaki1",     "LavenderBlush1",  "LightSkyBlue",
                                        "MistyRose1", "MistyRose2", "PaleTurquoise2",  "PeachPuff1",
                                        "Salmon",     "Thistle1",   "Thistle3",        "Wheat1"};
constexpr std::size_t longest_list = 8;  ///< items of a list argument that are printed

/// FX's qualified name of the node's target.
std::string target_of(const Node& node) {
  if (node.op()->kind == OpKind::Torch) return "torch.ops." + node.op()->name;
  if (node.op()->is_call()) return node.op()->name;
  if (node.is_output()) return "output";
  return node.target.empty() ? node.name() : node.target;
}

std::string colour_of(const Node& node) {
  switch (node.op()->kind) {
    case OpKind::Placeholder:
      return "\"AliceBlue\"";
    case OpKind::GetAttr:
      return "LightGrey";
    case OpKind::Output:
      return "PowderBlue";
    default:
      break;
  }
  std::string name = target_of(node);
  if (name.starts_with("_operator.")) name.erase(0, 1);  // FX hashes operator.getitem but prints _operator.getitem
  Md5 md5;
  md5.update(name);
  return std::string(colours[std::strtoul(md5.hex().substr(0, 8).c_str(), nullptr, 16) % std::size(colours)]);
}

/// torch.fx.node._format_arg: Python's str().
std::string text_of(const Arg& arg, std::size_t limit) {
  if (const Node* node = arg.node()) return "%" + node->name();
  if (const auto* s = arg.get<std::string>()) return *s;
  if (const auto* device = arg.get<Device>()) return device->str();
  const auto* list = arg.get<ArgList>();
  if (!list) return print(arg);
  std::string items;
  for (std::size_t i = 0; i < std::min(list->items.size(), limit); ++i)
    items += (i > 0 ? ", " : "") + text_of(list->items[i], static_cast<std::size_t>(-1));
  const std::string more = list->items.size() > limit ? fmt::format(", ...[total_len={}]", list->items.size()) : "";
  if (!list->is_tuple) return fmt::format("[{}{}]", items, more);
  return fmt::format("({}{}{})", items, list->items.size() == 1 ? "," : "", more);
}

/// The field "|args=(0,)"; several items get one line each. Items that name nodes are left out, because edges show
/// them.
std::string field(std::string_view name, char open, char close, std::vector<std::string> items) {
  std::erase_if(items, [](const std::string& s) { return s.find('%') != std::string::npos; });
  if (items.empty()) return {};
  const bool one = items.size() == 1;
  std::string out = fmt::format("|{}={}{}", name, open, one ? "" : "\\l");
  for (std::size_t i = 0; i < items.size(); ++i) out += (i > 0 ? ",\\n" : "") + items[i];
  out += fmt::format(",{}{}{}", one ? "" : "\\n", close, one ? "" : "\\l");
  std::string escaped;
  for (const char c : out) escaped += c == '{' || c == '}' ? std::string("\\") + c : std::string(1, c);
  return escaped;
}

/// Every user once, in graph order.
std::vector<const Node*> users_of(const Node& node, const std::vector<std::size_t>& position) {
  std::vector<const Node*> users(node.users().begin(), node.users().end());
  std::ranges::sort(users, {}, [&](const Node* n) { return position[n->id()]; });
  users.erase(std::unique(users.begin(), users.end()), users.end());
  return users;
}

std::string label(const Node& node, std::size_t users) {
  std::string out = fmt::format("{{name=%{}|op_code={}\\n|target={}\\n", node.name(), fx_kind(node), target_of(node));
  std::vector<std::string> args, kwargs;
  for (const Arg& a : node.args()) args.push_back(text_of(a, longest_list));
  for (const auto& [key, a] : node.kwargs()) kwargs.push_back(key + ": " + text_of(a, longest_list));
  return out + field("args", '(', ')', std::move(args)) + field("kwargs", '{', '}', std::move(kwargs)) +
         fmt::format("|num_users={}\\n}}", users);
}

}  // namespace

std::string_view fx_kind(const Node& node) {
  switch (node.op()->kind) {
    case OpKind::Placeholder:
      return "placeholder";
    case OpKind::GetAttr:
      return "get_attr";
    case OpKind::Output:
      return "output";
    case OpKind::Method:
      return "call_method";
    case OpKind::Torch:
    case OpKind::Function:
      break;
  }
  return "call_function";
}

std::string to_fx_dot(const Graph& graph) {
  std::vector<std::size_t> position(graph.id_limit(), 0);
  std::size_t count = 0;
  for (const Node* node : graph) position[node->id()] = count++;
  std::string nodes, edges;
  for (const Node* node : graph) {
    const std::vector<const Node*> users = users_of(*node, position);
    nodes +=
        fmt::format("{} [label=\"{}\", shape=record, fillcolor={}, style=\"filled,rounded\", fontcolor=\"#000000\"];\n",
                    node->name(), label(*node, users.size()), colour_of(*node));
    for (const Node* user : users) edges += fmt::format("{} -> {};\n", node->name(), user->name());
  }
  return "digraph fx_graph {\nrankdir=TB;\n" + nodes + edges + "}\n";
}

}  // namespace partita

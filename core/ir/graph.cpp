// A graph's nodes as a linked list with use lists: creates, moves, renames, copies and erases them, and removes dead
// ones. Names are made unique by FX's rules.
#include "core/ir/graph.h"

#include <algorithm>
#include <cctype>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "core/base/check.h"
#include "core/base/python_text.h"
#include "core/ir/fx_dot.h"
#include "core/ir/replace_uses.h"

namespace partita {
namespace {

/// Names that FX never gives to a node: Python's keywords and builtins, and what its generated code imports. "sum"
/// becomes "sum_1".
bool is_reserved(const std::string& name) {
  static const std::unordered_set<std::string_view> reserved = {
      "Ellipsis",     "NoneType",    "NotImplemented",
      "abs",          "aiter",       "all",
      "anext",        "any",         "ascii",
      "bin",          "bool",        "breakpoint",
      "bytearray",    "bytes",       "callable",
      "chr",          "classmethod", "compile",
      "complex",      "copyright",   "credits",
      "delattr",      "device",      "dict",
      "dir",          "divmod",      "enumerate",
      "eval",         "exec",        "exit",
      "filter",       "float",       "format",
      "frozenset",    "fx_pytree",   "getattr",
      "globals",      "hasattr",     "hash",
      "help",         "hex",         "id",
      "inf",          "input",       "int",
      "isinstance",   "issubclass",  "iter",
      "len",          "license",     "list",
      "locals",       "map",         "max",
      "memoryview",   "min",         "nan",
      "next",         "object",      "oct",
      "open",         "ord",         "pow",
      "print",        "property",    "pytree",
      "quit",         "range",       "repr",
      "reversed",     "round",       "set",
      "setattr",      "slice",       "sorted",
      "staticmethod", "str",         "sum",
      "super",        "torch",       "tuple",
      "type",         "vars",        "zip",
  };
  return reserved.contains(name) || !is_identifier(name);
}

}  // namespace

const Arg* Node::kwarg(std::string_view key) const {
  for (const auto& [name, value] : kwargs_)
    if (name == key) return &value;
  return nullptr;
}

std::vector<Node*> Node::inputs() const {
  std::vector<Node*> out;
  auto collect = [&](Node* n) { out.push_back(n); };
  for (const Arg& a : args_) for_each_node(a, collect);
  for (const auto& [key, a] : kwargs_) for_each_node(a, collect);
  return out;
}

void Node::set_args(Args args, Kwargs kwargs) {
  Graph::drop_uses(this);
  args_ = std::move(args);
  kwargs_ = std::move(kwargs);
  Graph::add_uses(this);
}

void Node::replace_input(Node* from, Arg to) {
  auto swap = [&](Node* n) -> Arg { return n == from ? to : Arg(n); };
  set_args(map_nodes(args_, swap), map_nodes(kwargs_, swap));
}

void Node::replace_all_uses_with(Node* other) {
  CHECK(other != this);
  std::vector<Node*> readers = users_;
  std::sort(readers.begin(), readers.end());
  readers.erase(std::unique(readers.begin(), readers.end()), readers.end());
  for (Node* user : readers) user->replace_input(this, other);
}

Graph::Graph(std::string name) : name(std::move(name)), shapes(std::make_shared<ShapeEnv>()) {}

Graph::~Graph() {
  for (Node* n = first_; n;) {
    Node* next = n->next_;
    delete n;
    n = next;
  }
}

Graph* Graph::child(std::string_view target) const {
  for (const auto& [key, graph] : children)
    if (key == target) return graph.get();
  return nullptr;
}

void Graph::add_uses(Node* node) {
  for (Node* input : node->inputs()) {
    CHECK(input->graph_ == node->graph_, "node " + node->name_ + " reads " + input->name_ + " of another graph");
    input->users_.push_back(node);
  }
}

void Graph::drop_uses(Node* node) {
  for (Node* input : node->inputs()) {
    auto it = std::find(input->users_.begin(), input->users_.end(), node);
    CHECK(it != input->users_.end());
    *it = input->users_.back();
    input->users_.pop_back();
  }
}

void Graph::link(Node* node, Node* before) {
  CHECK(!before || before->graph_ == this);
  node->next_ = before;
  node->previous_ = before ? before->previous_ : last_;
  (node->previous_ ? node->previous_->next_ : first_) = node;
  (before ? before->previous_ : last_) = node;
}

void Graph::unlink(Node* node) {
  (node->previous_ ? node->previous_->next_ : first_) = node->next_;
  (node->next_ ? node->next_->previous_ : last_) = node->previous_;
}

std::string Graph::unique_name(std::string_view hint) {
  std::string base;
  for (char c : hint) base += std::isalnum(static_cast<unsigned char>(c)) || c == '_' ? c : '_';
  if (base.empty() || std::isdigit(static_cast<unsigned char>(base[0]))) base = "_" + base;
  if (!by_name_.contains(base) && !is_reserved(base)) return base;
  // The hint "add_2" continues the count of "add", as in FX's namespace.
  std::size_t digits = base.size();
  while (digits > 0 && std::isdigit(static_cast<unsigned char>(base[digits - 1]))) --digits;
  if (digits < base.size() && digits > 1 && base[digits - 1] == '_') base.resize(digits - 1);
  int& suffix = next_suffix_[base];
  std::string candidate;
  do candidate = fmt::format("{}_{}", base, ++suffix);
  while (by_name_.contains(candidate));
  return candidate;
}

Node* Graph::create(const Op* op, Args args, Kwargs kwargs, std::string_view name_hint, Node* before) {
  if (op->kind == OpKind::Function) {
    // A node of this name would hide the function, or its module, in the graph's code.
    const std::string global = op->name.substr(0, op->name.find('.'));
    Node* hiding = std::exchange(by_name_[global], nullptr);
    if (hiding) by_name_[hiding->name_ = unique_name(global)] = hiding;
  }
  Node* node = new Node;
  node->op_ = op;
  node->graph_ = this;
  node->id_ = next_id_++;
  node->name_ = unique_name(name_hint.empty() ? op->brief() : name_hint);
  by_name_[node->name_] = node;
  node->args_ = std::move(args);
  node->kwargs_ = std::move(kwargs);
  add_uses(node);
  link(node, before);
  ++size_;
  return node;
}

Node* Graph::placeholder(std::string_view node_name, Meta meta, Node* before) {
  Node* node = create(Op::placeholder(), {}, {}, node_name, before);
  node->meta = std::move(meta);
  node->target = node->name_;
  return node;
}

Node* Graph::set_output(Arg value) {
  if (Node* old = output()) {
    old->set_args({std::move(value)}, {});
    return old;
  }
  return create(Op::output(), {std::move(value)}, {}, "output");
}

Node* Graph::copy_node(const Node& node, const std::function<Arg(Node*)>& map, Node* before) {
  Node* copy = create(node.op_, map_nodes(node.args_, map), map_nodes(node.kwargs_, map), node.name_, before);
  copy->meta = node.meta;
  copy->origin = node.origin;
  copy->target = node.target;
  copy->note = node.note;
  copy->recompute = node.recompute;
  return copy;
}

void Graph::erase(Node* node) {
  CHECK(node->graph_ == this);
  CHECK(node->users_.empty(), "erasing " + node->name_ + ", which is still read");
  drop_uses(node);
  unlink(node);
  by_name_.erase(node->name_);
  --size_;
  delete node;
}

void Graph::move_before(Node* node, Node* before) {
  CHECK(node->graph_ == this && node != before);
  unlink(node);
  link(node, before);
}

void Graph::rename(Node* node, std::string_view name_hint) {
  if (node->name_ == name_hint) return;
  by_name_.erase(node->name_);
  node->name_ = unique_name(name_hint);
  by_name_[node->name_] = node;
}

std::unique_ptr<Graph> without_nodes(const Graph& graph) {
  auto copy = std::make_unique<Graph>(graph.name);
  copy->form = graph.form;
  copy->shapes = graph.shapes;
  copy->attributes = graph.attributes;
  for (const auto& [target, child] : graph.children) copy->children.emplace_back(target, child->clone());
  return copy;
}

std::unique_ptr<Graph> Graph::clone() const {
  std::unique_ptr<Graph> copy = without_nodes(*this);
  copy->by_name_.reserve(by_name_.size());
  std::vector<Node*> copy_of(next_id_, nullptr);
  for (Node* node : *this) copy_of[node->id_] = copy->copy_node(*node, [&](Node* n) -> Arg { return copy_of[n->id_]; });
  copy->next_suffix_ = next_suffix_;
  return copy;
}

std::size_t Graph::eliminate_dead(const std::function<bool(const Node&)>& keep) {
  std::size_t erased = 0;
  for (Node* node = last_; node;) {
    Node* previous = node->previous_;
    bool removable = node->op_->is_call() || node->is(Op::get_attr());
    if (removable && node->users_.empty() && !keep(*node)) {
      erase(node);
      ++erased;
    }
    node = previous;
  }
  return erased;
}

Node* Graph::find(std::string_view node_name) const {
  auto it = by_name_.find(std::string(node_name));
  return it == by_name_.end() ? nullptr : it->second;
}

Node* Graph::output() const {
  return last_ && last_->is_output() ? last_ : nullptr;
}

std::vector<Node*> Graph::placeholders() const {
  std::vector<Node*> out;
  for (Node* node : *this)
    if (node->is_placeholder()) out.push_back(node);
  return out;
}

std::vector<Arg> Graph::outputs() const {
  std::vector<Arg> out;
  const auto flatten = [&](const auto& self, const Arg& arg) -> void {
    if (const auto* list = arg.get<ArgList>()) {
      for (const Arg& item : list->items) self(self, item);
    } else if (const auto* dict = arg.get<ArgDict>()) {
      for (const auto& [key, item] : dict->items) self(self, item);
    } else {
      out.push_back(arg);
    }
  };
  if (Node* node = output(); node && !node->args().empty()) flatten(flatten, node->args()[0]);
  return out;
}

std::map<std::string, std::size_t> Graph::kind_counts() const {
  std::map<std::string, std::size_t> counts;
  for (const Node* node : *this) ++counts[std::string(fx_kind(*node))];
  return counts;
}

}  // namespace partita

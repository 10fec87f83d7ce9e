#pragma once
#include <cstddef>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/ir/arg.h"
#include "core/ir/meta.h"
#include "core/ir/op.h"
#include "core/sym/shape_env.h"
#include "core/tensor/tensor.h"

namespace partita {

class Graph;

/// A frame of a Python stack trace.
struct StackFrame {
  std::string file;
  int line = 0;
  std::string function;
  std::string code;  ///< the source line
  bool operator==(const StackFrame&) const = default;
};

/// The place in the user's program that a node comes from: a "# File:" comment, a stack trace, or the module stack of
/// an archive. As a frame it is the innermost one, which print_readable shows; its file is empty for "No stacktrace
/// found for following nodes".
struct Origin : StackFrame {
  /// The innermost frame outside the torch package, when that is another one; only archives have whole stack traces.
  std::optional<StackFrame> caller;
  const StackFrame& of_user() const { return caller ? *caller : *this; }
  std::string modules;  ///< path in the module tree, "transformer.h.0.attn"; empty when unknown
  std::string prefix;   ///< text before "File:" in the comment, e.g. "recompute: MUST_SAVE"
  bool operator==(const Origin&) const = default;
};

/// Whether to save or recompute a value in the backward, as told by torch.utils.checkpoint or by the user.
enum class Recompute : unsigned char { Unspecified, MustSave, PreferSave, PreferRecompute, MustRecompute };

/// One value of a graph. A node with several results is a tuple, which getitem reads. Its Graph makes, moves and
/// destroys it; its address never changes.
class Node {
 public:
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  const Op* op() const { return op_; }
  const std::string& name() const { return name_; }
  const Args& args() const { return args_; }
  const Kwargs& kwargs() const { return kwargs_; }
  const Arg* kwarg(std::string_view key) const;  ///< null: not given
  /// The nodes that read this one, once per read, in no particular order.
  const std::vector<Node*>& users() const { return users_; }
  /// The nodes that this one reads, in argument order, repeats included.
  std::vector<Node*> inputs() const;
  Graph& graph() const { return *graph_; }
  std::size_t id() const { return id_; }  ///< dense within the graph and never reused: an index for side tables
  Node* next() const { return next_; }    ///< null after the last
  Node* previous() const { return previous_; }

  bool is(const Op* op) const { return op_ == op; }
  bool is_placeholder() const { return op_->kind == OpKind::Placeholder; }
  bool is_output() const { return op_->kind == OpKind::Output; }

  void set_op(const Op* op) { op_ = op; }
  /// Changes what the node reads, and the users of what it read and reads.
  void set_args(Args args, Kwargs kwargs);
  void replace_input(Node* from, Arg to);
  /// Makes every user read `other` instead.
  void replace_all_uses_with(Node* other);

  Meta meta;
  std::shared_ptr<const Origin> origin;  ///< null when unknown
  std::string target;  ///< placeholder: its name in the signature (L_x_); get_attr: attribute path; else empty
  std::string note;    ///< descriptor of an AOT input or output, e.g. "PlainAOTInput(idx=0)"; empty when there is none
  Recompute recompute = Recompute::Unspecified;

 private:
  friend class Graph;
  Node() = default;

  const Op* op_ = nullptr;
  std::string name_;
  Args args_;
  Kwargs kwargs_;
  std::vector<Node*> users_;
  Graph* graph_ = nullptr;
  Node* next_ = nullptr;
  Node* previous_ = nullptr;
  std::size_t id_ = 0;
};

/// The signature of the printed forward. Graphs of both forms run the same.
enum class GraphForm : unsigned char {
  Flat,   ///< def forward(self, a, b): ... return (x, y)
  Joint,  ///< def forward(self, primals, tangents) with fx_pytree; placeholders are primals_* then tangents_*
};

/// A list of nodes in execution order, mutated in place as FX graphs are. It owns its sub graphs (cond, while_loop) and
/// the tensors that its get_attr nodes read. Not thread-safe while it is mutated.
class Graph {
 public:
  explicit Graph(std::string name = "GraphModule");
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  std::string name;  ///< the class name in FX text; not always a Python identifier
  GraphForm form = GraphForm::Flat;
  std::shared_ptr<ShapeEnv> shapes;                                      ///< shared with the graphs made from this one
  std::map<std::string, Tensor> attributes;                              ///< by get_attr target: _tensor_constant0, ...
  std::vector<std::pair<std::string, std::unique_ptr<Graph>>> children;  ///< by get_attr target: true_graph_0, ...
  Graph* child(std::string_view target) const;                           ///< null when there is none

  /// Appends a node, or inserts it before `before`. The name is made unique as FX does: "add", "add_1", ...
  Node* create(const Op* op, Args args, Kwargs kwargs = {}, std::string_view name_hint = {}, Node* before = nullptr);
  Node* placeholder(std::string_view name, Meta meta = {}, Node* before = nullptr);
  /// Makes the output node. `value` is what forward returns: a node, a tuple or a list.
  Node* set_output(Arg value);
  /// Copies a node of any graph, with its inputs mapped by `map`. Keeps meta, origin, note and, if it is free, the
  /// name.
  Node* copy_node(const Node& node, const std::function<Arg(Node*)>& map, Node* before = nullptr);
  /// CHECKs that the node has no users.
  void erase(Node* node);
  void move_before(Node* node, Node* before);
  void rename(Node* node, std::string_view name_hint);
  std::unique_ptr<Graph> clone() const;  ///< a deep copy with the same names and node order; attributes share storage
  /// Erases calls and get_attrs without users, unless `keep` holds for them, from last to first. Returns their number.
  std::size_t eliminate_dead(const std::function<bool(const Node&)>& keep);

  Node* first() const { return first_; }
  Node* last() const { return last_; }
  std::size_t size() const { return size_; }
  std::size_t id_limit() const { return next_id_; }  ///< greater than every id
  Node* find(std::string_view node_name) const;      ///< null when there is none
  Node* output() const;                              ///< null before set_output
  std::vector<Node*> placeholders() const;           ///< in order
  /// The values that forward returns, flattened to a list; a single value is a list of one.
  std::vector<Arg> outputs() const;
  /// The number of nodes of each kind, as case.json has it: placeholder, get_attr, call_function, call_method, output.
  std::map<std::string, std::size_t> kind_counts() const;

  class iterator {
   public:
    using value_type = Node*;
    using difference_type = std::ptrdiff_t;
    using iterator_category = std::forward_iterator_tag;
    explicit iterator(Node* n = nullptr) : node_(n), next_(n ? n->next() : nullptr) {}
    Node* operator*() const { return node_; }
    iterator& operator++() {
      node_ = next_;
      next_ = node_ ? node_->next() : nullptr;
      return *this;
    }
    iterator operator++(int) {
      iterator old = *this;
      ++*this;
      return old;
    }
    bool operator==(const iterator& o) const { return node_ == o.node_; }

   private:
    Node* node_;
    Node* next_;  ///< kept, so that the loop body may erase the current node
  };
  iterator begin() const { return iterator(first_); }
  iterator end() const { return iterator(); }

 private:
  friend class Node;
  void link(Node* node, Node* before);
  void unlink(Node* node);
  std::string unique_name(std::string_view hint);
  static void add_uses(Node* node);
  static void drop_uses(Node* node);

  Node* first_ = nullptr;
  Node* last_ = nullptr;
  std::size_t size_ = 0;
  std::size_t next_id_ = 0;
  std::unordered_map<std::string, Node*> by_name_;
  std::unordered_map<std::string, int> next_suffix_;
};

}  // namespace partita

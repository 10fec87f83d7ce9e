// Prints graphs as Python, as FX does: statements with annotations, comments of origins, deletions after the last use,
// nested classes for sub graphs, a joint graph's flatten statement. Also code without these, and arguments.
#include "core/ir/print.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <unordered_map>

#include <fmt/format.h>

#include "core/base/python_text.h"
#include "core/ir/python_operators.h"

namespace partita {
namespace {

/// Python's repr of a float: shortest digits, "1e-05" with two exponent digits, "1.0" for whole numbers.
std::string repr(double v) {
  if (std::isnan(v)) return "nan";
  if (std::isinf(v)) return v < 0 ? "-inf" : "inf";
  double a = std::fabs(v);
  bool scientific = a != 0 && (a >= 1e16 || a < 1e-4);
  char text[64];
  auto end =
      std::to_chars(text, text + sizeof text, v, scientific ? std::chars_format::scientific : std::chars_format::fixed)
          .ptr;
  std::string out(text, end);
  if (!scientific && out.find('.') == std::string::npos) out += ".0";
  return out;
}

std::string quoted(const std::string& s) {
  char quote = s.find('\'') != std::string::npos && s.find('"') == std::string::npos ? '"' : '\'';
  return quote + inside_quotes(s, quote) + quote;
}

/// The annotation as it stands between the quotes behind a name.
std::string annotation_text(const Meta& meta) {
  return inside_quotes(annotation(meta), '"');
}

/// torch.fx.graph._format_target: "self.a.b"; a part that is no identifier is read by getattr.
std::string attribute(std::string_view target) {
  std::string out = "self";
  for (;;) {
    const std::size_t dot = target.find('.');
    const std::string_view part = target.substr(0, dot);
    out = is_identifier(part) ? fmt::format("{}.{}", out, part)
                              : fmt::format("getattr({}, \"{}\")", out, inside_quotes(part, '"'));
    if (dot == std::string_view::npos) return out;
    target.remove_prefix(dot + 1);
  }
}

/// The class name of a graph; PyTorch's own "<lambda>" is kept.
std::string class_name(std::string name) {
  if (name == "<lambda>") return name;
  for (char& c : name)
    if (!is_identifier(std::string("_") + c)) c = '_';
  return is_identifier(name) ? name : "_" + name;
}

std::string repr(std::complex<double> c) {
  auto part = [](double v) {
    if (v == std::floor(v) && std::fabs(v) < 1e16)
      return fmt::format("{}{:.0f}", std::signbit(v) && v == 0 ? "-" : "", v == 0 ? 0.0 : v);
    return repr(v);
  };
  std::string imaginary = part(c.imag()) + "j";
  if (c.real() == 0 && !std::signbit(c.real())) return imaginary;
  return "(" + part(c.real()) + (imaginary[0] == '-' || std::isnan(c.imag()) ? "" : "+") + imaginary + ")";
}

std::string joined(const std::vector<Arg>& items) {
  std::string out;
  for (const Arg& a : items) out += (out.empty() ? "" : ", ") + print(a);
  return out;
}

/// The row of an _operator function that print_readable writes as a Python operator.
template <std::size_t n>
const PythonOperator* find_operator(const PythonOperator (&table)[n], std::string_view function) {
  for (const PythonOperator& row : table)
    if (row.function == function) return &row;
  return nullptr;
}

std::string_view operator_name(const Op* op) {
  std::string_view name = op->name;
  if (op->kind != OpKind::Function || !name.starts_with("_operator.")) return {};
  return name.substr(10);
}

std::string arguments(const Node& node, std::size_t skip) {
  std::string out;
  for (std::size_t i = skip; i < node.args().size(); ++i) out += (out.empty() ? "" : ", ") + print(node.args()[i]);
  for (const auto& [key, value] : node.kwargs()) out += (out.empty() ? "" : ", ") + key + " = " + print(value);
  return out;
}

std::string statement(const Node& node, bool annotated) {
  std::string head = node.name();
  std::string type = annotated ? annotation_text(node.meta) : "";
  if (!type.empty()) head += ": \"" + type + "\"";
  std::string_view op = operator_name(node.op());
  const Args& a = node.args();
  bool plain = node.kwargs().empty();
  if (plain && a.size() == 2) {
    if (const PythonOperator* row = find_operator(binary_operators, op))
      return fmt::format("{} = {} {} {}", head, print(a[0]), row->symbol, print(a[1]));
    if (const PythonOperator* row = find_operator(in_place_operators, op); row && a[0].node())
      return fmt::format("{} {} {};  {} = {}", print(a[0]), row->symbol, print(a[1]), head, print(a[0]));
    if (op == "getitem") return fmt::format("{} = {}[{}]", head, print(a[0]), print(a[1]));
  }
  if (plain && a.size() == 3 && op == "setitem")
    return fmt::format("{}[{}] = {};  {} = {}", print(a[0]), print(a[1]), print(a[2]), head, print(a[0]));
  if (plain && a.size() == 1 && op == "neg") return fmt::format("{} = -{}", head, print(a[0]));
  if (plain && a.size() == 1 && op == "invert") return fmt::format("{} = ~{}", head, print(a[0]));
  switch (node.op()->kind) {
    case OpKind::GetAttr:
      return fmt::format("{} = {}", head, attribute(node.target));
    case OpKind::Torch:
      return fmt::format("{} = torch.ops.{}({})", head, node.op()->name, arguments(node, 0));
    case OpKind::Function:
      return fmt::format("{} = {}({})", head, node.op()->name, arguments(node, 0));
    case OpKind::Method:
      return fmt::format("{} = {}.{}({})", head,
                         a.empty()     ? ""
                         : a[0].node() ? print(a[0])
                                       : fmt::format("({})", print(a[0])),
                         node.op()->name, arguments(node, 1));
    case OpKind::Placeholder:
      return node.target == node.name() ? head : fmt::format("{} = {}", node.name(), node.target);
    case OpKind::Output:
      break;
  }
  return "return " + (a.empty() ? "None" : print(a[0]));
}

class Printer {
 public:
  Printer(const Graph& graph, const PrintOptions& options, int depth)
      : graph_(graph), options_(options), depth_(depth) {}

  std::string text() {
    line(0, fmt::format("class {}(torch.nn.Module):", class_name(graph_.name)));
    statements(graph_.form);
    for (const auto& [target, child] : graph_.children) {
      out_ += "\n";
      std::string inner = Printer(*child, options_, depth_ + 1).text_named(target);
      out_ += inner;
    }
    return std::move(out_);
  }

  /// The bare function without its class.
  std::string function() {
    statements(GraphForm::Flat);
    return std::move(out_);
  }

 private:
  void statements(GraphForm form) {
    if (options_.deletions) find_last_uses();
    signature(form);
    const Origin none, *shown = nullptr;
    std::string_view shown_tag;
    bool first = true;
    for (Node* node : graph_) {
      if (node->is_placeholder()) continue;
      if (node->is_output()) {
        output(*node, form);
        break;
      }
      const std::string_view tag = own_tag(*node);
      const bool other_origin = node->origin && !(shown && *shown == *node->origin);
      if (options_.origins && (other_origin || tag != shown_tag)) {
        if (!first) out_ += "\n";
        comment(node->origin ? *node->origin : none, tag);
        shown_tag = tag;
      }
      shown = node->origin ? node->origin.get() : shown;
      first = false;
      line(2, statement(*node, options_.annotations) + deletions(*node));
    }
  }

  std::string text_named(const std::string& target) {
    std::string body = text();
    // The printed name of a nested class is the name of the attribute that holds it.
    std::size_t start = body.find("class ") + 6, end = body.find('(', start);
    return body.replace(start, end - start, class_name(target));
  }

  void line(int indent, std::string_view content) {
    out_.append(static_cast<std::size_t>(4 * (depth_ + indent)), ' ');
    out_ += content;
    out_ += '\n';
  }

  std::string declared(const Node& node, std::string_view name) const {
    std::string type = options_.annotations ? annotation_text(node.meta) : "";
    return type.empty() ? std::string(name) : fmt::format("{}: \"{}\"", name, type);
  }

  void signature(GraphForm form) {
    std::vector<Node*> inputs = graph_.placeholders();
    if (form == GraphForm::Joint) {
      // Other inputs (a random seed) are parameters of their own, fwd_seed for fwd_seed_1.
      std::string declarations, names, parameters = "primals, tangents";
      for (Node* n : inputs) {
        if (!n->name().starts_with("primals_") && !n->name().starts_with("tangents_"))
          parameters += ", " + n->name().substr(0, n->name().rfind('_'));
        if (!annotation(n->meta).empty()) declarations += declared(*n, n->name()) + "; ";
        names += n->name() + ", ";
      }
      line(1, fmt::format("def forward(self, {}):", parameters));
      if (options_.annotations) line(2, declarations);
      out_ += "\n";
      line(2, names + "= fx_pytree.tree_flatten_spec([" + parameters + "], self._in_spec)");
      return;
    }
    std::string parameters = "self";
    for (Node* n : inputs) {
      parameters += ", " + declared(*n, n->target.empty() ? n->name() : n->target);
      if (!n->args().empty()) parameters += " = " + print(n->args()[0]);  // the placeholder's default value
    }
    line(1, fmt::format("def forward({}):", parameters));
    bool renamed = false;
    for (Node* n : inputs) {
      if (n->target.empty() || n->target == n->name() || n->target.starts_with("*")) continue;
      line(2, n->name() + " = " + n->target);
      renamed = true;
    }
    if (renamed) out_ += "\n";
  }

  /// The node's tag where the comment does not have it from a file.
  static std::string_view own_tag(const Node& node) {
    const std::string_view known = node.origin ? std::string_view(node.origin->prefix) : std::string_view();
    const bool is_printed =
        known.find("recompute: ") != std::string_view::npos || known.find("ac_graph_id: ") != std::string_view::npos;
    return is_printed ? std::string_view() : name_of(node.recompute);
  }

  void comment(const Origin& o, std::string_view tag) {
    std::string prefix = o.prefix.empty() ? "" : o.prefix + " ";
    if (!tag.empty()) prefix += fmt::format("recompute: {} ", tag);
    if (o.file.empty())
      line(2, "# " + one_line(prefix) + "No stacktrace found for following nodes");
    else
      line(2,
           "# " + one_line(fmt::format("{}File: {}:{} in {}, code: {}", prefix, o.file, o.line, o.function, o.code)));
  }

  void output(const Node& node, GraphForm form) {
    const Arg value = node.args().empty() ? Arg() : node.args()[0];
    if (form == GraphForm::Joint) {
      auto* list = value.get<ArgList>();
      line(2, fmt::format("return pytree.tree_unflatten([{}], self._out_spec)",
                          list ? joined(list->items) : print(value)));
    } else {
      line(2, "return " + print(value));
    }
  }

  void find_last_uses() {
    std::unordered_map<const Node*, const Node*> last;
    for (Node* node : graph_)
      for (Node* input : node->inputs()) last[input] = node;
    for (Node* node : graph_) {
      auto it = last.find(node);
      if (it != last.end() && !it->second->is_output()) freed_[it->second].push_back(node);
      if (it == last.end() && !node->is_placeholder() && !node->is_output()) freed_[node].push_back(node);
    }
  }

  std::string deletions(const Node& node) {
    auto it = freed_.find(&node);
    if (it == freed_.end()) return {};
    std::vector<Node*> read = node.inputs();
    auto order = [&](Node* n) { return std::find(read.begin(), read.end(), n) - read.begin(); };
    std::stable_sort(it->second.begin(), it->second.end(), [&](Node* a, Node* b) { return order(a) < order(b); });
    std::string text = ";  ";
    for (Node* n : it->second) text += n->name() + " = ";
    return text + "None";
  }

  const Graph& graph_;
  const PrintOptions& options_;
  int depth_;
  std::string out_;
  std::unordered_map<const Node*, std::vector<Node*>> freed_;
};

}  // namespace

std::string_view name_of(Recompute tag) {
  static constexpr std::string_view names[] = {"", "MUST_SAVE", "PREFER_SAVE", "PREFER_RECOMPUTE", "MUST_RECOMPUTE"};
  return names[static_cast<std::size_t>(tag)];
}

std::string print(const Arg& arg) {
  struct Visitor {
    std::string operator()(std::monostate) const { return "None"; }
    std::string operator()(bool b) const { return b ? "True" : "False"; }
    std::string operator()(std::int64_t i) const { return fmt::format("{}", i); }
    std::string operator()(double d) const { return repr(d); }
    std::string operator()(std::complex<double> c) const { return repr(c); }
    std::string operator()(const std::string& s) const { return quoted(s); }
    std::string operator()(Node* n) const { return n->name(); }
    std::string operator()(DType t) const { return fmt::format("torch.{}", torch_name(t)); }
    std::string operator()(const Device& d) const {
      Device bare{d.type, -1};
      return d.index < 0 ? fmt::format("device(type='{}')", bare.str())
                         : fmt::format("device(type='{}', index={})", bare.str(), d.index);
    }
    std::string operator()(Layout l) const { return fmt::format("torch.{}", torch_name(l)); }
    std::string operator()(MemoryFormat f) const { return fmt::format("torch.{}", torch_name(f)); }
    std::string operator()(const ArgList& l) const {
      if (!l.is_tuple) return "[" + joined(l.items) + "]";
      return "(" + joined(l.items) + (l.items.size() == 1 ? ",)" : ")");
    }
    std::string operator()(const ArgSlice& s) const { return "slice(" + joined(s.parts) + ")"; }
    std::string operator()(const ArgDict& d) const {
      std::string out;
      for (const auto& [key, value] : d.items) out += (out.empty() ? "" : ", ") + quoted(key) + ": " + print(value);
      return "{" + out + "}";
    }
    std::string operator()(const ArgName& n) const { return n.text; }
  };
  return std::visit(Visitor(), arg.v);
}

std::string print(const Node& node, const PrintOptions& options) {
  return statement(node, options.annotations);
}

std::string print(const Graph& graph, const PrintOptions& options) {
  return Printer(graph, options, 0).text();
}

std::string plain_code(const Graph& graph) {
  return "\n\n\n" + Printer(graph, {.annotations = false, .origins = false, .deletions = true}, -1).function() + "    ";
}

}  // namespace partita

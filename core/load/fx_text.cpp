// Reads FX modules: class, signature, flatten statement, then statement by statement, with nested classes as sub
// graphs. Expressions are in fx_expression.cpp, lines and comments in fx_lines.cpp.
#include "core/load/fx_text.h"

#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "core/base/assign.h"
#include "core/base/python_text.h"
#include "core/base/text.h"
#include "core/ir/symbols_of.h"
#include "core/load/fx_expression.h"
#include "core/load/fx_lines.h"
#include "core/load/fx_nodes.h"

namespace partita {
namespace {

using fx::Expression;
using fx::ExpressionReader;
using fx::Lexer;
using fx::Line;
using fx::Token;
using fx::TokenKind;

using fx::class_name;
using fx::read_line;

constexpr int max_module_depth = 50;

/// The classes beside the one that is read, of which it makes its sub graphs.
struct Beside {
  std::vector<FxSection> classes;
  std::size_t most = 10'000;  ///< sub graphs that may still be made: classes that make others twice are many

  const FxSection* find(std::string_view name) const {
    for (const FxSection& s : classes)
      if (s.name == name && s.form == FxForm::Module && s.pieces.empty()) return &s;
    return nullptr;
  }
};

class ModuleReader {
 public:
  ModuleReader(std::string_view text, Lexer& lexer, std::shared_ptr<ShapeEnv> shapes, Beside& beside)
      : text_(text), lexer_(lexer), shapes_(std::move(shapes)), beside_(beside) {}

  /// Reads the class with the header line `header`, and moves `at` past its last line.
  Result<std::unique_ptr<Graph>> read(const Line& header, std::size_t& at, int depth) {
    auto graph = std::make_unique<Graph>(std::string(class_name(header)));
    if (shapes_) graph->shapes = shapes_;
    ExpressionReader reader(lexer_, *graph);
    graph_ = graph.get();
    reader_ = &reader;
    if (depth > max_module_depth) return reader.error_at(header.begin, "modules nested too deeply");
    at = header.end;
    bool has_forward = false;
    std::vector<std::pair<std::string_view, std::string_view>> made;
    Line line;
    while (read_line(text_, at, line)) {
      bool blank = line.content.empty() || line.content.front() == '#';
      if (!blank && line.indent <= header.indent) break;
      if (const auto sub_graph = fx::made_module(line.content); sub_graph && !has_forward) made.push_back(*sub_graph);
      if (!has_forward && line.content.starts_with("def forward(")) {
        has_forward = true;
        TRY_DO(forward(line, at));
        note_symbols();
      } else if (std::string_view name = class_name(line); has_forward && !name.empty()) {
        ModuleReader inner(text_, lexer_, graph->shapes, beside_);
        TRY(auto child, inner.read(line, at, depth + 1));
        graph->children.emplace_back(std::string(name), std::move(child));
      } else {
        at = line.end;
      }
    }
    if (!has_forward)
      return reader.error_at(header.begin, fmt::format("class {} has no forward method", graph->name.substr(0, 60)));
    for (const auto& [attribute, name] : made) TRY_DO(make_child(attribute, name, depth, *graph));
    call_as_wrappers(*graph);
    return graph;
  }

  /// Reads a forward method that stands alone.
  Result<std::unique_ptr<Graph>> read_method(const Line& def) {
    auto graph = std::make_unique<Graph>();
    ExpressionReader reader(lexer_, *graph);
    graph_ = graph.get();
    reader_ = &reader;
    std::size_t at = def.begin;
    TRY_DO(forward(def, at));
    note_symbols();
    return graph;
  }

 private:
  /// The sub graph of "self.ATTRIBUTE = NAME()", if the text has that class.
  Status make_child(std::string_view attribute, std::string_view name, int depth, Graph& graph) {
    const FxSection* section = beside_.find(name);
    if (!section || graph.child(attribute)) return {};
    Line header;
    read_line(text_, section->begin, header);
    if (beside_.most-- == 0) return reader_->error_at(header.begin, "too many sub graphs");
    std::size_t at = 0;
    ModuleReader inner(text_, lexer_, graph.shapes, beside_);
    TRY(auto child, inner.read(header, at, depth + 1));
    graph.children.emplace_back(std::string(attribute), std::move(child));
    return {};
  }

  /// self.NAME(x), of a class NAME within this one, is what torch.ops.higher_order.wrap(self.NAME, x) is.
  static void call_as_wrappers(Graph& graph) {
    constexpr std::string_view self = "self.";
    for (Node *node = graph.first(), *next = nullptr; node; node = next) {
      next = node->next();
      std::string_view target = node->op()->name;
      if (node->op()->kind != OpKind::Function || !target.starts_with(self) || !node->kwargs().empty()) continue;
      target.remove_prefix(self.size());
      if (!graph.child(target)) continue;
      Args args = node->args();
      Node* const module = graph.create(Op::get_attr(), {}, {}, fmt::format("{}_module", target), node);
      module->target = target;
      args.insert(args.begin(), module);
      Node* const call = graph.create(Op::torch("higher_order.wrap"), std::move(args), {}, {}, node);
      const std::string name = node->name();
      call->meta = node->meta;
      call->origin = node->origin;
      call->note = node->note;
      node->replace_all_uses_with(call);
      graph.erase(node);
      graph.rename(call, name);
    }
  }

  struct Parameter {
    std::string_view name;
    std::string_view stars;  ///< "*" or "**"; becomes part of the placeholder's target
    Meta meta;
    std::string note;
    Arg default_value;
    bool has_default = false;
    Node* node = nullptr;
  };

  Status forward(const Line& def, std::size_t& at) {
    TRY_DO(signature(def));
    // Joint graphs and exported modules with pytrees declare their placeholders in the flatten statement.
    Line line;
    bool returned = false;
    at = next_line();
    while (!returned && read_line(text_, at, line)) {
      if (line.content.empty()) {
        at = line.end;
        continue;
      }
      if (line.content.front() == '#') {
        comment(line.content.substr(1));
        at = line.end;
        continue;
      }
      if (line.indent <= def.indent) break;
      if (!placeholders_made_ && !is_declaration(line.content)) TRY_DO(make_placeholders(line.content));
      lexer_.seek(line.begin + line.indent);
      TRY_DO(logical_line(returned));
      at = next_line();
    }
    if (!returned) return reader_->error_at(at, "'return' expected, found the end of the method");
    return {};
  }

  /// A declaration in a joint graph: primals_1: "f32[2]" without '=' after it.
  static bool is_declaration(std::string_view content) {
    std::size_t colon = content.find(": \"");
    if (colon == std::string_view::npos || content.substr(0, colon).find_first_of(" =(.[") != std::string_view::npos)
      return false;
    std::size_t close = content.find('"', colon + 3);
    if (close == std::string_view::npos) return false;
    std::string_view rest = trimmed(content.substr(close + 1));
    return rest.empty() || rest.front() == ';' || rest.front() == '#';
  }

  void comment(std::string_view text) {
    text = trimmed(text);
    if (auto origin = fx::origin_of(text)) {
      reader_->recompute = fx::recompute_tag(origin->prefix);
      reader_->origin = std::move(origin);
    }
  }

  Status signature(const Line& def) {
    lexer_.seek(def.begin + def.indent);
    lexer_.next();
    lexer_.next();
    if (!lexer_.eat("(")) return reader_->expected("'('");
    while (!lexer_.eat(")")) {
      std::string_view stars;
      if (lexer_.peek().is("*") || lexer_.peek().is("**")) stars = lexer_.next().text;
      if (!at_name()) return reader_->expected("a parameter name");
      lexer_.take_comment();
      Parameter p;
      p.name = lexer_.next().text;
      p.stars = stars;
      if (lexer_.eat(":")) TRY_DO(assign(p.meta, annotation()));
      if (lexer_.eat("=")) {
        const std::size_t begin = lexer_.peek().at, nodes = graph_->id_limit();
        TRY(p.default_value, reader_->argument());
        if (graph_->id_limit() != nodes)
          return reader_->error_at(begin, "the default of a parameter must be a literal");
        p.has_default = true;
      }
      bool comma = lexer_.eat(",");
      p.note = lexer_.take_comment();
      if (!comma && !lexer_.peek().is(")")) return reader_->expected("',' or ')'");
      if (p.name != "self" || !parameters_.empty()) parameters_.push_back(std::move(p));
    }
    if (lexer_.eat("->")) {
      TRY(Meta ignored, annotation());
    }
    if (!lexer_.eat(":")) return reader_->expected("':'");
    if (lexer_.peek().kind != TokenKind::Newline) return reader_->expected("the end of the line");
    return {};
  }

  /// The start of the next line. The look-ahead token must stay the newline, or indentation and comments would be
  /// skipped.
  std::size_t next_line() const { return std::min(lexer_.position() + 1, text_.size()); }

  /// Reads a quoted FX annotation. A Python type (torch.Tensor, list[int]) is skipped.
  Result<Meta> annotation() {
    if (lexer_.peek().kind == TokenKind::String) {
      Token token = lexer_.next();
      auto meta = parse_annotation(fx::unquote(token.text));
      if (!meta) return reader_->error_at(token.at, meta.error().message);
      return meta;
    }
    int depth = 0;
    bool any = false;
    for (;; any = true) {
      const Token& t = lexer_.peek();
      bool ends = t.kind == TokenKind::Newline || t.kind == TokenKind::End || t.kind == TokenKind::Bad ||
                  (depth == 0 && (t.is(",") || t.is(")") || t.is("=") || t.is(":") || t.is(";")));
      if (ends) break;
      if (t.is("[") || t.is("(")) ++depth;
      if (t.is("]") || t.is(")")) --depth;
      lexer_.next();
    }
    if (!any) return reader_->expected("a type annotation");
    return Meta();
  }

  /// What is a size and what is only an integer: the sizes of inputs are from 2, as PyTorch makes other sizes numbers,
  /// those of results from 0, and other symbols may be any integer.
  void note_symbols() {
    const auto known = graph_->shapes->ranges();
    std::unordered_set<std::string> noted;
    const auto note = [&](const std::string& symbol, SymRange range) {
      if (!known.contains(symbol) && noted.insert(symbol).second) graph_->shapes->set_range(symbol, range);
    };
    const auto note_sizes = [&](const Node& node, const auto& range_of) {
      const TensorMeta* tensor = node.meta.tensor();
      for (SymExpr size : tensor ? tensor->sizes : SymList())
        if (size.kind() == SymKind::Symbol) note(size.name(), range_of(size.name()));
    };
    for (const Node* node : graph_->placeholders()) note_sizes(*node, fx::range_of);
    for (const Node* node : *graph_) note_sizes(*node, [](const std::string&) { return SymRange(); });
    for (const Node* node : *graph_)
      for (const std::string& symbol : symbols_of(node->meta))
        if (!SymExpr::symbol(symbol).is_float()) note(symbol, {INT64_MIN, INT64_MAX});
  }

  Status make_placeholders(std::string_view first_statement) {
    placeholders_made_ = true;
    bool flattened = first_statement.find("fx_pytree.tree_flatten_spec(") != std::string_view::npos;
    if (!flattened) {
      for (Parameter& p : parameters_) TRY_DO(add_placeholder(p));
      return {};
    }
    // Functionalised random numbers add seeds and offsets.
    bool joint = parameters_.size() >= 2 && parameters_[0].name == "primals" && parameters_[1].name == "tangents";
    graph_->form = joint ? GraphForm::Joint : GraphForm::Flat;
    return {};
  }

  Status add_placeholder(Parameter& p) {
    // Python refuses it too; a second one of this name would be printed as if the first were renamed.
    if (reader_->names.contains(p.name))
      return reader_->error_at(static_cast<std::size_t>(p.name.data() - lexer_.text().data()),
                               fmt::format("the parameter '{}' occurs twice", p.name.substr(0, 60)));
    p.node = graph_->placeholder(p.name, std::move(p.meta));
    p.node->target = fmt::format("{}{}", p.stars, p.name);
    p.node->note = std::move(p.note);
    if (p.has_default) p.node->set_args({std::move(p.default_value)}, {});
    reader_->names[p.name] = p.node;
    return {};
  }

  /// Reads statements separated by ';' up to the end of the line.
  Status logical_line(bool& returned) {
    for (;;) {
      TRY_DO(statement(returned));
      if (!lexer_.eat(";") || returned || lexer_.peek().kind == TokenKind::Newline) break;
    }
    in_place_ = nullptr;
    TokenKind kind = lexer_.peek().kind;
    if (kind != TokenKind::Newline && kind != TokenKind::End) return reader_->expected("';' or the end of the line");
    if (!last_declared_.empty()) {
      std::string_view note = lexer_.take_comment();
      if (auto it = declared_.find(last_declared_); it != declared_.end()) it->second.note = note;
      last_declared_ = {};
    }
    return {};
  }

  Status statement(bool& returned) {
    const Token& t = lexer_.peek();
    if (t.is_name("return")) {
      returned = true;
      return return_statement();
    }
    if (t.is_name("pass")) {
      lexer_.next();
      return {};
    }
    if (!at_name()) return reader_->expected("a statement");
    if (t.is_name("self") && !reader_->names.contains("self"))
      if (const std::string found = fx::assigned_attributes(text_, t.at); !found.empty())
        return reader_->error_at(t.at, found);
    char after = lexer_.after_peek();
    if (after == ':' || after == '=' || after == ',') return assignment();
    TRY(Expression target, reader_->expression());
    if (const Op* op = fx::in_place_operator(lexer_.peek().text)) {
      lexer_.next();
      TRY(Arg value, reader_->argument());
      if (target.op || !target.value.node())
        return reader_->error_at(t.at, "the left side of an in-place operator must be a node");
      return in_place({{}, op, {target.value, std::move(value)}});
    }
    if (lexer_.eat("=")) {
      if (target.op != Op::getitem()) return reader_->expected("a name or a subscript left of '='");
      TRY(Arg value, reader_->argument());
      const Op* op = Op::get(OpKind::Function, "_operator.setitem");
      return in_place({{}, op, {target.args[0], target.args[1], std::move(value)}});
    }
    // A call without a name, made for its effect.
    if (!target.op) return reader_->expected("'='");
    reader_->materialise(std::move(target), {});
    return {};
  }

  /// A statement "name = base" that follows on the line may give the node its name.
  Status in_place(Expression statement) {
    in_place_base_ = statement.args[0].node();
    in_place_ = reader_->materialise(std::move(statement), {});
    return {};
  }

  bool at_name() const { return lexer_.peek().kind == TokenKind::Name && is_identifier(lexer_.peek().text); }

  bool at_end_of_statement() const {
    const Token& t = lexer_.peek();
    return t.kind == TokenKind::Newline || t.kind == TokenKind::End || t.is(";");
  }

  Status assignment() {
    std::size_t at = lexer_.position();
    std::string_view name = lexer_.next().text;
    Meta meta;
    if (lexer_.eat(":")) {
      TRY(meta, annotation());
      if (!lexer_.peek().is("=")) {
        declared_[name].meta = std::move(meta);
        last_declared_ = name;
        return {};
      }
    }
    if (lexer_.peek().is(",")) return flatten(name);
    if (!lexer_.eat("=")) return reader_->expected("'='");
    // "a = b = None" frees names; it makes no node.
    while (lexer_.peek().kind == TokenKind::Name && lexer_.after_peek() == '=') {
      lexer_.next();
      lexer_.next();
    }
    if (lexer_.peek().is_name("None")) {
      const std::size_t value = lexer_.position();
      lexer_.next();
      if (at_end_of_statement()) return {};
      lexer_.seek(value);
    }
    TRY(Expression value, reader_->expression());
    if (value.op) {
      define(name, reader_->materialise(std::move(value), name), std::move(meta));
      return {};
    }
    Node* node = value.value.node();
    if (!node) return reader_->error_at(at, fmt::format("a call expected right of '{} ='", name.substr(0, 60)));
    if (in_place_ && node == in_place_base_) {
      graph_->rename(in_place_, name);
      define(name, std::exchange(in_place_, nullptr), std::move(meta));
      return {};
    }
    if (node->is_placeholder() && node->users().empty() && node->name() == node->target) {
      graph_->rename(node, name);
    }
    reader_->names[name] = node;
    return {};
  }

  void define(std::string_view name, Node* node, Meta meta) {
    node->meta = std::move(meta);
    reader_->names[name] = node;
  }

  /// Reads a, b, = fx_pytree.tree_flatten_spec([primals, tangents], self._in_spec)
  Status flatten(std::string_view first) {
    std::vector<std::string_view> names = {first};
    std::size_t at = lexer_.position();
    while (lexer_.eat(",")) {
      if (!at_name()) break;
      names.push_back(lexer_.next().text);
    }
    if (!lexer_.eat("=")) return reader_->expected("'='");
    std::size_t call = lexer_.position();
    std::size_t end = std::min(text_.find('\n', call), text_.size());
    if (!text_.substr(call).starts_with("fx_pytree.tree_flatten_spec(") || graph_->size() > 0)
      return reader_->error_at(at, "only fx_pytree.tree_flatten_spec, at the start, assigns to several names");
    lexer_.seek(end);
    std::unordered_map<std::string_view, Parameter*> given;
    for (Parameter& p : parameters_) given.emplace(p.name, &p);
    for (std::string_view name : names) {
      Parameter p;
      if (auto it = given.find(name); it != given.end()) p = *it->second;
      p.name = name;
      if (auto it = declared_.find(name); it != declared_.end()) {
        p.meta = it->second.meta;
        p.note = it->second.note;
      }
      TRY_DO(add_placeholder(p));
    }
    return {};
  }

  Status return_statement() {
    lexer_.next();
    std::vector<std::string> notes;
    Arg value;
    if (at_end_of_statement()) {
      graph_->set_output(Arg());
      return {};
    }
    bool tree = lexer_.peek().is_name("pytree");
    if (tree) {
      for (std::string_view part : {"pytree", ".", "tree_unflatten", "("})
        if (lexer_.next().text != part) return reader_->expected("pytree.tree_unflatten(");
    }
    if (lexer_.peek().is("[")) {
      lexer_.next();
      TRY(std::vector<Arg> list, reader_->items("]", &notes));
      value = Arg::list(std::move(list));
    } else if (lexer_.peek().is("(")) {
      TRY(value, tuple(notes));
    } else {
      TRY(value, reader_->argument());
    }
    if (tree) {
      if (!lexer_.eat(",")) return reader_->expected("','");
      TRY(Expression spec, reader_->expression());
      if (spec.op != Op::get_attr() || !lexer_.eat(")")) return reader_->expected("self._out_spec)");
    }
    Node* output = graph_->set_output(std::move(value));
    fx::save_region_borders(*graph_);
    bool any = false;
    for (const std::string& note : notes) any = any || !note.empty();
    for (std::size_t i = 0; any && i < notes.size(); ++i) output->note += (i ? "\n" : "") + notes[i];
    return {};
  }

  /// Reads a tuple, or an expression in brackets.
  Result<Arg> tuple(std::vector<std::string>& notes) {
    lexer_.next();
    bool comma = false;
    TRY(std::vector<Arg> list, reader_->items(")", &notes, &comma));
    if (list.size() == 1 && !comma) return list[0];
    return Arg::tuple(std::move(list));
  }

  std::string_view text_;
  Lexer& lexer_;
  std::shared_ptr<ShapeEnv> shapes_;
  Beside& beside_;
  Graph* graph_ = nullptr;
  ExpressionReader* reader_ = nullptr;
  std::vector<Parameter> parameters_;
  bool placeholders_made_ = false;
  std::unordered_map<std::string_view, Parameter> declared_;
  std::string_view last_declared_;
  Node* in_place_ = nullptr;  ///< made by the last in-place statement of the line, and without a name of its own
  Node* in_place_base_ = nullptr;
};

}  // namespace

namespace {

Result<std::unique_ptr<Graph>> read_section(std::string_view text, const FxSection& section, Beside& beside) {
  if (!section.pieces.empty()) {
    const std::string alone = section.text_of(text);
    const std::vector<FxSection> found = fx::find_all_graphs(alone);
    if (found.empty() || !found[0].pieces.empty())
      return input_error("load.fx_text", "a graph between words that are no prefix of its lines", {.line = 1});
    Beside none;
    auto graph = read_section(alone, found[0], none);
    if (!graph && graph.error().where.line > 0) graph.error().where.line += section.line - 1;
    return graph;
  }
  const std::string_view lines = text.substr(section.begin, section.end - section.begin);
  if (section.form == FxForm::Print || section.form == FxForm::Table) {
    auto graph = section.form == FxForm::Print ? fx::read_print(lines) : fx::read_table(lines);
    if (!graph && graph.error().where.line > 0) graph.error().where.line += section.line - 1;
    return graph;
  }
  Lexer lexer(text);
  Line header;
  read_line(text, section.begin, header);
  ModuleReader reader(text, lexer, nullptr, beside);
  if (section.form == FxForm::Method) return reader.read_method(header);
  std::size_t at = 0;
  TRY(auto graph, reader.read(header, at, 0));
  fx::read_ranges(text.substr(section.end - 1), *graph->shapes);
  return graph;
}

}  // namespace

Result<std::unique_ptr<Graph>> parse_fx_text(std::string_view text, std::string_view file, int first_line) {
  auto place = [&](Diagnostic error) {
    error.where.file = file;
    if (error.where.line > 0) error.where.line += first_line - 1;
    return error;
  };
  Beside beside;
  beside.classes = fx::find_all_graphs(text);
  const std::vector<FxSection> graphs = fx::whole_graphs(text, beside.classes);
  if (graphs.empty())
    return place(input_error("load.fx_text", "no 'class NAME(torch.nn.Module)' with a forward method in it"));
  auto graph = read_section(text, graphs[0], beside);
  if (!graph) return place(std::move(graph).error());
  return graph;
}

}  // namespace partita

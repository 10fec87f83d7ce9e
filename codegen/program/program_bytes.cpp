// Programs and graphs as bytes: the fields of each part, once for writing and reading. Nodes refer to each other by
// number; what was read is checked before it is used.
#include <algorithm>
#include <unordered_map>
#include <utility>

#include "codegen/program/program.h"
#include "core/aot/stored_constants.h"
#include "core/base/raise.h"
#include "core/ir/archive_meta.h"
#include "core/ir/verify.h"

namespace partita {

void fields(auto& a, ArgList& l) {
  a(l.items, l.is_tuple);
}
void fields(auto& a, ArgSlice& s) {
  a(s.parts);
}
void fields(auto& a, ArgDict& d) {
  a(d.items);
}
void fields(auto& a, ArgName& n) {
  a(n.text);
}

/// The node of a symbolic number is its expression.
template <class A>
void fields(A& a, Node*& node) {
  SymExpr e = 0;
  if constexpr (!A::reads) {
    if (!node->meta.sym())
      throw Raise{unsupported("codegen.program", "the literal " + node->name() + " cannot be written")};
    e = *node->meta.sym();
  }
  a(e);
  if constexpr (A::reads) node = static_cast<Graph*>(a.context)->placeholder("number", Meta(e));
}
void fields(auto& a, Arg& arg) {
  variant(a, arg.v);
}

namespace {

/// A node as plain data. Nodes in its arguments are numbers: their places among the graph's nodes.
struct StoredNode {
  OpKind kind = OpKind::Torch;
  std::string op, name, target, note;
  Args args;
  Kwargs kwargs;
  Meta meta;
};
struct StoredNodes {
  std::string name;
  std::vector<StoredNode> nodes;
  StoredConstants constants;
  std::map<std::string, SymRange> ranges;  ///< of the outermost graph; its sub graphs share them
  std::vector<std::string> targets;        ///< of the sub graphs
  std::vector<StoredNodes> children;
  std::shared_ptr<Graph> numbers = {};  ///< holds the numbers of a graph that is written
};

StoredNodes nodes_of(const Graph& graph, bool outermost) {
  StoredNodes out;
  out.name = graph.name;
  out.numbers = std::make_shared<Graph>("numbers");
  std::unordered_map<const Node*, Node*> number;
  const auto map = [&](Node* n) -> Arg { return number.at(n); };
  for (const Node* n : graph) {
    number[n] = out.numbers->placeholder("number", Meta(SymExpr(static_cast<std::int64_t>(number.size()))));
    out.nodes.push_back({n->op()->kind, n->op()->name, n->name(), n->target, n->note, map_nodes(n->args(), map),
                         map_nodes(n->kwargs(), map), n->meta});
  }
  out.constants = unwrap(store_constants(graph.attributes, {}));
  if (outermost && graph.shapes) out.ranges = graph.shapes->ranges();
  for (const auto& [target, child] : graph.children) {
    out.targets.push_back(target);
    out.children.push_back(nodes_of(*child, false));
  }
  return out;
}

/// Null for what is no graph.
std::unique_ptr<Graph> graph_of(const StoredNodes& stored, std::shared_ptr<ShapeEnv> shapes) {
  auto graph = std::make_unique<Graph>(stored.name);
  if (!shapes) {
    shapes = std::make_shared<ShapeEnv>();
    for (const auto& [symbol, range] : stored.ranges) shapes->set_range(symbol, range);
  }
  graph->shapes = shapes;
  std::vector<Node*> nodes;
  bool known = true;
  const auto map = [&](Node* number) -> Arg {
    const SymExpr place = *number->meta.sym();
    known = known && place.is_int() && place.as_int() >= 0 && std::cmp_less(place.as_int(), nodes.size());
    return known ? Arg(nodes[static_cast<std::size_t>(place.as_int())]) : Arg();
  };
  for (const StoredNode& n : stored.nodes) {
    Node* made = graph->create(Op::get(n.kind, n.op), map_nodes(n.args, map), map_nodes(n.kwargs, map), n.name);
    made->target = n.target;
    made->note = n.note;
    made->meta = n.meta;
    nodes.push_back(made);
  }
  auto constants = constants_of(stored.constants, {});
  if (!known || !constants || stored.targets.size() != stored.children.size()) return nullptr;
  graph->attributes = *std::move(constants);
  for (std::size_t i = 0; i < stored.targets.size(); ++i) {
    auto child = graph_of(stored.children[i], shapes);
    if (!child) return nullptr;
    graph->children.emplace_back(stored.targets[i], std::move(child));
  }
  return verify(*graph).empty() ? std::move(graph) : nullptr;
}

void fields(auto& a, StoredNode& n) {
  a.choice(n.kind, 6);
  a(n.op, n.name, n.target, n.note, n.args, n.kwargs, n.meta);
}
void fields(auto& a, StoredNodes& g) {
  a(g.name, g.nodes, g.constants, g.ranges, g.targets, g.children);
}

}  // namespace

namespace loops {
void fields(auto& a, Bound& b) {
  a(b.node, b.space, b.size, b.wraps);
}
}  // namespace loops

namespace schedule {
void fields(auto& a, PlanBuffer& b) {
  a.choice(b.kind, 4);
  a(b.index, b.attribute, b.dtype, b.elements, b.offset, b.device);
}
void fields(auto& a, PlanView& v) {
  a(v.buffer, v.dtype, v.sizes, v.strides, v.offset);
}
void fields(auto& a, HandedOn& h) {
  a(h.input);
}
void fields(auto& a, KernelCall& c) {
  a(c.kernel, c.buffers);
}
void fields(auto& a, ExternCall::Argument& argument) {
  variant(a, argument);
}
template <class A>
void fields(A& a, ExternCall& c) {
  std::optional<StoredNodes> graph;
  if (c.graph) graph = nodes_of(*c.graph, true);
  a(graph);
  if constexpr (A::reads)
    if (graph && !(c.graph = graph_of(*graph, nullptr))) a.fail();
  OpKind kind = A::reads ? OpKind::Torch : c.op->kind;
  std::string name = A::reads ? std::string() : c.op->name;
  a.choice(kind, 6);
  a(name, c.args, c.results, c.origin, c.around, c.narrow);
  if constexpr (A::reads) c.op = Op::get(kind, name);
}
void fields(auto& a, std::variant<KernelCall, ExternCall>& step) {
  variant(a, step);
}
void fields(auto& a, PlanOutput& output) {
  variant(a, output);
}
void fields(auto& a, Plan& p) {
  a.choice(p.target.device, 4);
  a(p.target.threads, p.buffers, p.steps, p.outputs, p.promised, p.inputs, p.arena_bytes, p.guards);
}
}  // namespace schedule

namespace codegen {

void fields(auto& a, Phase& p) {
  a(p.symbol, p.parallel, p.iterations, p.alignment, p.threads, p.shared_bytes);
}
void fields(auto& a, KernelEntry& e) {
  a(e.phases, e.scratch, e.scratch_item, e.workspace, e.workspace_item);
}
void fields(auto& a, ProgramKernel::Work& w) {
  a(w.operations, w.extents);
}
void fields(auto& a, ClampedSum& c) {
  a(c.added, c.low, c.high);
}
void fields(auto& a, ProgramKernel& k) {
  a(k.name, k.entry, k.bounds, k.origins, k.work, k.simple);
}
void fields(auto& a, ProgramCall& c) {
  a.choice(c.routine, std::size(library_routine_names));
  a(c.draws, c.has_work);
}
void fields(auto& a, Program& p) {
  a(p.plan, p.kernels, p.calls, p.written, p.symbols);
}

namespace {

/// Do all indices name something?
bool sound(const Program& program) {
  const schedule::Plan& plan = program.plan;
  const auto buffer = [&](int b) { return b >= 0 && static_cast<std::size_t>(b) < plan.buffers.size(); };
  const auto view = [&](const schedule::PlanView& v) {
    return (v.buffer == -1 || buffer(v.buffer)) && v.sizes.size() == v.strides.size();
  };
  const auto views = [&](const std::vector<schedule::PlanView>& list) { return std::ranges::all_of(list, view); };
  const auto around = [&](const schedule::ExternCall& call) {
    if (call.around.empty()) return true;
    const auto* image = call.args.empty() ? nullptr : std::get_if<schedule::PlanView>(&call.args[0]);
    return image && image->buffer >= 0 && call.around.size() % 2 == 0 &&
           call.around.size() + 4 <= 2 * image->sizes.size() &&
           std::ranges::all_of(call.around, [](std::int64_t n) { return n >= 0 && n <= 65535; });
  };
  if (program.written.size() != plan.buffers.size() || plan.target.threads < 1 || plan.target.threads > 1024)
    return false;
  for (const schedule::PlanBuffer& b : plan.buffers)
    if (b.elements.is_float() || (b.kind == schedule::PlanBuffer::Kind::Input &&
                                  (b.index < 0 || static_cast<std::size_t>(b.index) >= plan.inputs.size())))
      return false;
  for (const TensorMeta& t : plan.inputs)
    if (t.sizes.size() != t.strides.size()) return false;
  std::size_t calls = 0;
  for (const auto& step : plan.steps) {
    if (auto* call = std::get_if<schedule::KernelCall>(&step)) {
      if (call->kernel < 0 || static_cast<std::size_t>(call->kernel) >= program.kernels.size() ||
          !std::ranges::all_of(call->buffers, buffer))
        return false;
      continue;
    }
    const auto& call = std::get<schedule::ExternCall>(step);
    if (calls < program.calls.size() && program.calls[calls].has_work &&
        (call.results.size() != 1 || &step == &plan.steps.back() ||
         !std::holds_alternative<schedule::KernelCall>(*(&step + 1))))
      return false;
    ++calls;
    const bool narrow = call.narrow == -1 ||
                        (call.narrow >= 0 && static_cast<std::size_t>(call.narrow) < call.args.size() &&
                         std::holds_alternative<schedule::PlanView>(call.args[static_cast<std::size_t>(call.narrow)]) &&
                         call.results.size() == 1 && call.results[0].buffer >= 0);
    if (!views(call.results) || !around(call) || !narrow) return false;
    for (const auto& argument : call.args)
      if (!std::ranges::all_of(schedule::views_in(argument), view)) return false;
  }
  for (const ProgramKernel& k : program.kernels)
    if (k.entry.scratch.size() != k.entry.scratch_item.size() ||
        k.entry.workspace.size() != k.entry.workspace_item.size() ||
        std::ranges::any_of(k.entry.phases,
                            [](const Phase& p) { return p.alignment < 1 || p.threads < 0 || p.threads > 1024; }))
      return false;
  for (const auto& output : plan.outputs)
    if (auto* v = std::get_if<schedule::PlanView>(&output)) {
      if (!view(*v) || v->buffer < 0 ||
          plan.buffers[static_cast<std::size_t>(v->buffer)].kind == schedule::PlanBuffer::Kind::Temporary)
        return false;
    } else if (auto* literal = std::get_if<Arg>(&output)) {
      bool has_node = false;
      for_each_node(*literal, [&](Node*) { has_node = true; });
      if (has_node) return false;
    } else if (auto* given = std::get_if<schedule::HandedOn>(&output)) {
      if (given->input < 0 || static_cast<std::size_t>(given->input) >= plan.inputs.size()) return false;
    }
  return calls == program.calls.size();
}

constexpr std::string_view heading = "PTP5", graph_heading = "PTN1";

Diagnostic damaged() {
  return input_error("codegen.program", "a stored program is damaged; it is made again");
}

}  // namespace

Result<std::string> program_bytes(Program program) {
  return to_bytes(heading, std::move(program));
}

Result<Program> read_program(std::string_view bytes) {
  auto graph = std::make_shared<Graph>("numbers");
  // Sizes of damaged text may be too large to be made.
  auto program = catch_raised<Program>([&]() -> Result<Program> {
    auto read = from_bytes<Program>(heading, bytes, graph.get());
    return read && sound(*read) ? Result<Program>(*std::move(read)) : damaged();
  });
  if (!program) return damaged();
  program->plan.graph = std::move(graph);
  return program;
}

Result<std::string> graph_bytes(const Graph& graph) {
  return catch_raised<std::string>([&] { return to_bytes(graph_heading, nodes_of(graph, true)); });
}

Result<std::unique_ptr<Graph>> read_graph(std::string_view bytes) {
  Graph numbers("numbers");
  auto graph = catch_raised<std::unique_ptr<Graph>>([&]() -> Result<std::unique_ptr<Graph>> {
    const auto read = from_bytes<StoredNodes>(graph_heading, bytes, &numbers);
    auto made = read ? graph_of(*read, nullptr) : nullptr;
    return made ? Result<std::unique_ptr<Graph>>(std::move(made)) : damaged();
  });
  if (!graph) return damaged();
  return graph;
}

}  // namespace codegen
}  // namespace partita

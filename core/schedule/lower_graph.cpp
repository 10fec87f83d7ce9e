// Turns a functional graph into definitions, by its records' lower functions and scalar bodies, and extern calls for
// the rest. Library calls take in padding and casts before them; copy_ becomes a destination.
#include "core/schedule/lower_graph.h"

#include <algorithm>
#include <cctype>
#include <limits>

#include <fmt/format.h>

#include "core/base/raise.h"
#include "core/ir/place.h"
#include "core/ops/facts/control.h"
#include "core/ops/record/lower_call.h"
#include "core/ops/record/record.h"
#include "core/schedule/channels_last.h"
#include "core/schedule/memory_layout.h"
#include "core/schedule/specialise.h"
#include "core/sym/float_symbol.h"
#include "core/tensor/significant_strides.h"

namespace partita::schedule {
namespace {

using loops::LowerCall;
using loops::LoweredTensor;

bool computable(const Meta& m, bool complex) {
  if (const TensorMeta* t = m.tensor()) return has_arithmetic(t->dtype) && (complex || !is_complex(t->dtype));
  if (const MetaTuple* tuple = m.tuple())
    return std::ranges::all_of(tuple->items, [&](const Meta& item) { return computable(item, complex); });
  return true;
}

/// Is it a call whose loops are right for complex numbers, too, if the target has their operations? Views are that only
/// say where elements lie, and scalar bodies that are evaluated as they stand.
bool may_be_complex(const Schema& schema, const OpRecord* record, const Node& node) {
  if (!record) return false;
  if (!record->lower) return !record->eval;
  if (!schema.is_view) return true;
  const TensorMeta *from = tensor_argument(node, 0), *to = node.meta.tensor();
  return from && to && from->dtype == to->dtype && record->views.element_change == ElementChange::None;
}

/// Kernels write each element once, to memory of its own.
bool has_separate_elements(const loops::Lowering& lowering, const Meta& m) {
  const TensorMeta* t = m.tensor();
  if (!t || !t->strides_known) return true;
  return is_without_overlap(lowering, lowering.plain(t->sizes), lowering.plain_strides(t->strides));
}

/// Is it a view that only loops read? Then its elements need no places of their own: a loop that reads an expanded
/// dimension reads the one element there is.
bool is_read_by_loops_only(const loops::Lowering& lowering, const Schema& schema, const Node& node) {
  const TensorMeta *from = tensor_argument(node, 0), *to = node.meta.tensor();
  if (!schema.is_view || !from || !to || from->dtype != to->dtype || node.users().empty()) return false;
  return std::ranges::all_of(node.users(), [&](const Node* user) {
    const Schema* reader = user->op()->is_call() ? find_schema(user->op()) : nullptr;
    const OpRecord* record = reader ? find_record(user->op()) : nullptr;
    return record && !reader->is_mutable && (record->lower || record->pointwise.body) &&
           computable(user->meta, false) &&
           (has_separate_elements(lowering, user->meta) || is_read_by_loops_only(lowering, *reader, *user));
  });
}

class GraphLowering {
 public:
  GraphLowering(LoweredGraph& to, Graph& graph, const std::map<std::string, std::int64_t>& sizes)
      : to_(to), graph_(graph), sizes_(sizes) {}

  Status run() {
    int placeholders = 0;
    for (Node* node : graph_) {
      to_.lowering.origin = node->name();
      TRY_DO(lower(*node, placeholders));
      note_guards(*node);
    }
    return {};
  }

 private:
  Status lower(Node& node, int& placeholders) {
    if (node.is_placeholder()) {
      if (const TensorMeta* t = node.meta.tensor()) input(node, *t, {PlanBuffer::Kind::Input, placeholders, {}});
      ++placeholders;
      return {};
    }
    if (node.op()->kind == OpKind::GetAttr) return attribute(node);
    if (node.is_output() || node.meta.sym()) return {};
    // FX text has no annotations of tuples.
    if (!node.meta.known() && !node.is(Op::getitem()) && !find_control(node.op())) {
      TRY(node.meta, infer(node));
    }
    return call(node);
  }

  void note_guards(const Node& node) {
    if (!to_.lowering.symbolic()) return;
    std::vector<Guard> all = graph_.shapes->guards();
    for (std::size_t i = to_.guards.size(); i < all.size(); ++i) {
      all[i].reason += " at " + node.name();
      if (const StackFrame* user = node.origin ? &node.origin->of_user() : nullptr; user && !user->file.empty())
        all[i].reason += fmt::format(" ({}:{})", user->file, user->line);
      to_.guards.push_back(std::move(all[i]));
    }
  }

  void input(const Node& node, const TensorMeta& meta, Source source) {
    LoweredTensor t = to_.lowering.memory(meta.dtype, to_.lowering.plain(meta.sizes));
    to_.sources[t.id] = std::move(source);
    to_.promised[t.id] = meta;
    to_.values[&node] = {t.id};
  }

  Status attribute(const Node& node) {
    auto it = to_.graph->attributes.find(node.target);
    if (it == to_.graph->attributes.end()) {
      if (to_.graph->child(node.target)) return {};  // region() takes it
      return input_error("schedule.attribute", "attribute " + node.target + " has no value", place_of(node));
    }
    const Tensor& t = it->second;
    TensorMeta meta;
    meta.dtype = t.dtype;
    meta.sizes.assign(t.sizes.begin(), t.sizes.end());
    meta.strides.assign(t.strides.begin(), t.strides.end());
    input(node, meta, {PlanBuffer::Kind::Constant, 0, node.target});
    return {};
  }

  Status call(const Node& node) {
    for (const Node* input : node.inputs())
      if (overwritten_.contains(input))
        return unsupported(
            "schedule.mutation",
            node.name() + " reads input " + input->name() + " after it was overwritten; functionalise the graph first",
            place_of(node));
    if (node.is(Op::getitem())) {
      auto* index = node.args().at(1).get<std::int64_t>();
      auto it = to_.values.find(node.args()[0].node());
      const std::int64_t n = it == to_.values.end() ? 0 : static_cast<std::int64_t>(it->second.size());
      if (!index || *index < -n || *index >= n)
        return unsupported("schedule.getitem", "getitem of a value that is not a list of results", place_of(node));
      to_.values[&node] = {it->second[static_cast<std::size_t>(*index < 0 ? *index + n : *index)]};
      return {};
    }
    if (is_kernel(node.op())) return kernel_without_code(node);
    if (const ControlOp* control = find_control(node.op()); control && control->kind != Control::WithEffects)
      return region(node);
    const Schema* schema = find_schema(node.op());
    if (!schema && !find_record(node.op()))
      if (Result<Meta> known = infer(node); !known) return std::move(known).error();
    if (!schema)
      return unsupported("ops.unknown", "no compiled form of " + node.op()->name + "; use --backend interp",
                         place_of(node));
    TRY(Args bound, bind_arguments(*schema, node.args(), node.kwargs()));
    if (schema->is_mutable) return mutation(node, *schema, bound);
    const OpRecord* record = find_record(node.op());
    const bool complex = !to_.target().complex_ops.empty() && may_be_complex(*schema, record, node);
    bool in_loops = computable(node.meta, complex) && (has_separate_elements(to_.lowering, node.meta) ||
                                                       is_read_by_loops_only(to_.lowering, *schema, node));
    for (Node* n : node.inputs()) in_loops = in_loops && computable(n->meta, complex);
    const bool may_be_view = record && record->lower && (schema->is_view || record->views.may_alias);
    if (may_be_view || (in_loops && record && (record->lower || record->pointwise.body))) {
      auto call =
          std::make_shared<LowerCall>(*schema, bound, node, to_.lowering, [&](const Node* n) { return value(n); });
      const int first = to_.lowering.size();
      Status done = catch_raised_at<void>(node, [&]() -> Status {
        record->lower ? record->lower(*call) : loops::lower_pointwise(*record, call);
        return {};
      });
      bool has_code = true;
      for (int d = first; d < to_.lowering.size(); ++d) has_code = has_code && to_.lowering[d].has_code;
      if (done && ((in_loops && has_code) || are_views(*call))) return results(node, *call);
      if (!done && done.error().fault != Fault::Unsupported) return done;
    }
    return external(node, record, std::move(bound));
  }

  /// Is each result a strided view of memory with the strides of its meta? Then nothing is computed, and any dtype is
  /// fine.
  bool are_views(const LowerCall& call) const {
    for (std::size_t i = 0; i < call.results.size(); ++i) {
      const int id = call.results[i].id;
      const StridedView seen = resolve_view(to_, id, Through::Views);
      if (seen.base == id || to_.lowering[seen.base].kind != loops::Definition::Kind::Memory) return false;
      if (!same_significant_strides(call.results[i].sizes, to_.lowering.plain_strides(call.out(i).strides),
                                    seen.strides))
        return false;
    }
    return true;
  }

  LoweredTensor value(const Node* node) const {
    auto it = to_.values.find(node);
    if (it == to_.values.end() || it->second.size() != 1 || it->second[0] < 0)
      fail_unsupported("argument " + node->name() + " is not one tensor");
    return to_.lowering.handle(it->second[0]);
  }

  Status results(const Node& node, const LowerCall& call) {
    std::vector<int> ids;
    for (std::size_t i = 0; i < call.results.size(); ++i) {
      const LoweredTensor& t = call.results[i];
      ids.push_back(t.id);
      if (t.valid()) to_.promised.emplace(t.id, call.out(i));
    }
    to_.values[&node] = std::move(ids);
    return {};
  }

  Status external(const Node& node, const OpRecord* record, Args bound) {
    if (!record || !(record->eval || record->pointwise.body || record->decompose))
      return unsupported("ops.unknown",
                         "no compiled form of " + node.op()->name + "; `partita ops` lists what is there",
                         place_of(node));
    ExternNode e{&node, std::move(bound), {}};
    if (const MetaTuple* tuple = node.meta.tuple())
      for (const Meta& m : tuple->items) add_result(e, m);
    else if (node.meta.known())
      add_result(e, node.meta);
    e.any_strides = record->cost.expensive;
    TRY_DO(take_in_padding(e, *record));
    take_in_cast(e, *record);
    e.fuses = to_.target().has(record->library) && e.results.size() == 1 && e.results[0] >= 0;
    to_.values[&node] = e.results;
    if (e.fuses && record->library == LibraryRoutine::Convolution) take_out_bias(e);
    to_.externs.push_back(std::move(e));
    return {};
  }

  /// A GPU's library adds a convolution's bias by a kernel of its own. Here it becomes work on the call's result, which
  /// is one kernel with what follows, and no kernel where a convolution is ours. Sums in half types are rounded once
  /// only within the call.
  void take_out_bias(ExternNode& e) {
    const Node *weight = e.args[1].node(), *bias = e.args[2].node();
    const LoweredTensor result = to_.lowering.handle(e.results[0]);
    if (to_.target().device != DeviceType::Cuda || !bias || !weight->meta.tensor() || itemsize(result.dtype) < 4 ||
        !is_floating(result.dtype))
      return;
    const LoweredTensor added = value(bias);
    const std::size_t channel = result.dim() + 1 - weight->meta.tensor()->dim();
    if (added.dtype != result.dtype || added.dim() != 1) return;
    const LoweredTensor sum = to_.lowering.map(
        result.dtype, result.sizes, [result, added, channel](loops::Body& body, const loops::Index& i) {
          return body.b.make(loops::ScalarOp::Add, body.read(result, i), body.read(added, {i[channel]}));
        });
    e.args[2] = Arg();
    to_.promised[sum.id] = *e.node->meta.tensor();
    to_.values[e.node] = {sum.id};
  }

  /// A library convolution can read zeros around its image itself: nobody then makes an image with them, if no other
  /// calls read it.
  Status take_in_padding(ExternNode& e, const OpRecord& record) {
    const loops::Target& target = to_.target();
    if (record.library != LibraryRoutine::Convolution || !target.has(record.library) || !target.pads_images) return {};
    const Node* padded = e.args[0].node();
    const OpRecord* pads = padded && padded->op()->is_call() ? find_record(padded->op()) : nullptr;
    if (!pads || pads->role != Role::Pads) return {};
    for (const Node* user : padded->users()) {
      const OpRecord* reader = find_record(user->op());
      if (!reader || reader->library != record.library || user->args()[0].node() != padded) return {};
    }
    TRY(const Args bound, bind_arguments(*pads->schema, padded->args(), padded->kwargs()));
    Node* image = bound[0].node();
    const ArgList* widths = bound[1].get<ArgList>();
    const auto* real = bound[2].get<double>();
    const auto* whole = bound[2].get<std::int64_t>();
    const bool zero = (real && *real == 0) || (whole && *whole == 0);
    if (!image || !image->meta.tensor() || overwritten_.contains(image) || !widths || !zero ||
        widths->items.size() + 4 > 2 * image->meta.tensor()->dim())
      return {};
    std::vector<std::int64_t> around;
    for (const Arg& width : widths->items) {
      const auto* n = width.get<std::int64_t>();
      if (!n || *n < 0 || *n > std::numeric_limits<std::uint16_t>::max()) return {};
      around.push_back(*n);
    }
    e.args[0] = image;
    e.around = std::move(around);
    return {};
  }

  /// A product can read a matrix of narrower elements itself, if that is an input: nobody then makes the matrix that it
  /// is cast to.
  void take_in_cast(ExternNode& e, const OpRecord& record) const {
    const loops::Target& target = to_.target();
    const bool adds = record.library == LibraryRoutine::AddMatmul;
    if (!target.narrow_matrices || !target.has(record.library) || (record.library != LibraryRoutine::Matmul && !adds))
      return;
    const std::size_t right = adds ? 2 : 1;
    const int matrix = to_.value(e.args[right].node()), left = to_.value(e.args[right - 1].node());
    const loops::Definition& d = to_.lowering[matrix];
    if (matrix == left || d.sizes.size() != 2) return;
    constexpr std::int64_t few_rows = 16;  // of which reading the matrix takes longer than multiplying with it
    if (d.dtype == DType::BFloat16 && target.multiplies_bfloat16 &&
        to_.lowering.hint(to_.lowering[left].sizes[0]) > few_rows)
      return;
    const StridedView read = resolve_view(to_, matrix, Through::Cast);
    const auto source = to_.sources.find(read.base);
    const DType narrow = to_.lowering[read.base].dtype;
    const bool is_half = narrow == DType::Float16 || narrow == DType::BFloat16;
    const bool is_exact = narrow == DType::Int8 ? is_floating(d.dtype) : is_half && d.dtype == DType::Float32;
    if (source != to_.sources.end() && source->second.kind != PlanBuffer::Kind::Temporary && is_exact &&
        itemsize(d.dtype) <= 4 && is_matrix(d.sizes, read.strides))
      e.narrow = static_cast<int>(right);
  }

  void add_result(ExternNode& e, const Meta& m) {
    const TensorMeta* meta = m.tensor();
    if (!meta) return e.results.push_back(-1);
    LoweredTensor t = to_.lowering.memory(meta->dtype, to_.lowering.plain(meta->sizes));
    to_.sources[t.id] = {PlanBuffer::Kind::Temporary, static_cast<int>(to_.externs.size()), {}};
    to_.promised[t.id] = *meta;
    e.results.push_back(t.id);
  }

  /// A call of sub graphs: a graph of its own around it, which the plan's runner interprets.
  Status region(const Node& node) {
    auto graph = std::make_shared<Graph>(node.name());
    graph->shapes = to_.graph->shapes;
    ExternNode e{&node, {}, {}};
    std::unordered_map<const Node*, Node*> own;
    std::vector<Node*> inputs = node.inputs();
    for (Node* input : inputs) {
      if (own.contains(input) || to_.graph->child(input->target)) continue;
      if (!input->meta.tensor() && !input->meta.sym())
        return unsupported("schedule.region", node.name() + " takes " + input->name() + ", which is not a tensor",
                           place_of(node));
      own[input] = graph->placeholder(input->name(), input->meta);
      e.args.emplace_back(input);
    }
    for (Node* input : inputs) {
      const Graph* child = own.contains(input) ? nullptr : to_.graph->child(input->target);
      if (!child) continue;
      own[input] = graph->create(Op::get_attr(), {}, {}, input->name());
      own[input]->target = input->target;
      // A sub graph that keeps its symbols has their values from its inputs.
      if (to_.lowering.symbolic()) {
        graph->children.emplace_back(input->target, child->clone());
        continue;
      }
      // Sizes that follow from values within stay symbols, and the sub graph is interpreted.
      auto specialised = specialise(*child, sizes_);
      if (!specialised && specialised.error().fault != Fault::Unsupported) return std::move(specialised).error();
      graph->children.emplace_back(input->target, specialised ? *std::move(specialised) : child->clone());
    }
    Node* call = graph->copy_node(node, [&](Node* n) -> Arg { return own.at(n); });
    // FX text annotates the getitems of a call, not the call.
    std::vector<Meta> metas;
    if (const MetaTuple* tuple = node.meta.tuple()) metas.assign(tuple->items.begin(), tuple->items.end());
    for (const Node* user : node.users()) {
      const auto* index = user->is(Op::getitem()) ? user->args()[1].get<std::int64_t>() : nullptr;
      if (!index || *index < 0)
        return unsupported("schedule.region", node.name() + " is read as a whole", place_of(*user));
      metas.resize(std::max(metas.size(), static_cast<std::size_t>(*index) + 1));
      if (user->meta.known()) metas[static_cast<std::size_t>(*index)] = user->meta;
    }
    std::vector<Arg> results;
    for (std::size_t i = 0; i < metas.size(); ++i) {
      results.emplace_back(graph->create(Op::getitem(), {call, static_cast<std::int64_t>(i)}));
      add_result(e, metas[i]);
    }
    graph->set_output(Arg::tuple(std::move(results)));
    e.graph = std::move(graph);
    to_.values[&node] = e.results;
    to_.externs.push_back(std::move(e));
    return {};
  }

  /// Lowers copy_(input, value) at the end of a functional graph; other mutations are errors here.
  Status mutation(const Node& node, const Schema& schema, const Args& bound) {
    const OpRecord* record = find_record(node.op());
    const Node* target = bound.empty() ? nullptr : bound[0].node();
    const Node* source = bound.size() < 2 ? nullptr : bound[1].node();
    if (!record || record->role != Role::CopiesSecond || !schema.args[0].is_write || !target || !source ||
        !target->is_placeholder() || !target->meta.tensor())
      return unsupported("schedule.mutation", schema.name + " changes its argument; functionalise the graph first",
                         place_of(node));
    const TensorMeta& meta = *target->meta.tensor();
    return catch_raised_at<void>(node, [&]() -> Status {
      LoweredTensor from = value(source);
      // A value that is an input's memory itself is copied first: that input may be overwritten too, or be this one.
      if (const StridedView seen = resolve_view(to_, from.id, Through::Views);
          to_.lowering[seen.base].kind == loops::Definition::Kind::Memory &&
          to_.sources.at(seen.base).kind == PlanBuffer::Kind::Input)
        from = to_.lowering.map(from.dtype, from.sizes,
                                [from](loops::Body& body, const loops::Index& i) { return body.read(from, i); });
      from = to_.lowering.expand(from, to_.lowering.plain(meta.sizes));
      LoweredTensor written = to_.lowering.map(meta.dtype, from.sizes,
                                               [from, dtype = meta.dtype](loops::Body& body, const loops::Index& i) {
                                                 return body.b.cast(body.read(from, i), dtype);
                                               });
      to_.destination[written.id] = to_.value(target);
      to_.promised[written.id] = meta;
      to_.values[&node] = {to_.value(target)};
      overwritten_.insert({&node, target});
      return {};
    });
  }

  LoweredGraph& to_;
  Graph& graph_;
  const std::map<std::string, std::int64_t>& sizes_;
  std::set<const Node*> overwritten_;  ///< inputs that a copy_ so far overwrites, and the copy_ nodes
};

/// A copy of the graph whose symbols have these values as hints, and no guards yet. Its sizes can stay symbolic if
/// every symbol is a float or a size by its name, s0, which no variable of a loop has, and sizes are at least 2.
Result<std::unique_ptr<Graph>> with_hints(const Graph& graph, const std::map<std::string, std::int64_t>& sizes) {
  for (const auto& [symbol, value] : sizes)
    if (is_float_symbol(symbol))
      continue;
    else if (symbol.size() < 2 || symbol[0] != 's' || !std::isdigit(static_cast<unsigned char>(symbol[1])) || value < 2)
      return unsupported("schedule.symbol", fmt::format("code for {} = {} only", symbol, value));
  std::unique_ptr<Graph> copy = graph.clone();
  const std::shared_ptr<const ShapeEnv> given = copy->shapes;
  copy->shapes = std::make_shared<ShapeEnv>();
  if (given)
    for (const auto& [symbol, value] : given->hints()) copy->shapes->set_hint(symbol, value);
  for (const auto& [symbol, value] : sizes) copy->shapes->set_hint(symbol, value);
  return copy;
}

}  // namespace

void for_each_tensor(const LoweredGraph& g, const ExternNode& call, const std::function<void(Node*)>& f) {
  for (const Arg& a : call.args)
    for_each_node(a, [&](Node* n) {
      if (g.values.contains(n)) f(n);
    });
}

Result<LoweredGraph> lower_graph(const Graph& graph, const std::map<std::string, std::int64_t>& sizes,
                                 const loops::Target& target, bool symbolic) {
  LoweredGraph lowered;
  std::unique_ptr<Graph> copy;
  if (symbolic) {
    TRY(copy, with_hints(graph, sizes));
    lowered.lowering = loops::Lowering(target, copy->shapes);
  } else {
    TRY(copy, specialise(graph, sizes));
    lowered.lowering = loops::Lowering(target);
  }
  for (const Arg& out : copy->outputs()) lowered.outputs.push_back(out.node() ? out.node()->meta : Meta());
  if (target.has(LibraryRoutine::Convolution) && !target.channels_last.empty())
    prefer_channels_last(*copy, target.channels_last);
  Graph& made = *copy;
  lowered.graph = std::move(copy);
  TRY_DO(GraphLowering(lowered, made, sizes).run());
  return lowered;
}

}  // namespace partita::schedule

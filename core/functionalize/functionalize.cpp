// Interprets an ATen graph on tensor objects, each a list of view steps from a memory with a version, and writes the
// functional graph: a read repeats the views on the newest content, a write goes back through them.
#include "core/functionalize/functionalize.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include <fmt/format.h>

#include "core/base/raise.h"
#include "core/functionalize/eager_tensors.h"
#include "core/functionalize/regions.h"
#include "core/functionalize/stage_rules.h"
#include "core/functionalize/to_aten.h"
#include "core/ir/place.h"
#include "core/ops/facts/control.h"
#include "core/ops/facts/effects.h"
#include "core/ops/python/python_ops.h"
#include "core/ops/record/layout.h"
#include "core/ops/record/record.h"
#include "core/ops/schema/functional_variant.h"
#include "core/ops/schema/in_place.h"
#include "core/tensor/significant_strides.h"

namespace partita {
namespace {

/// Interprets the eager graph over tensor objects and writes the functional graph.
class Functionalizer {
 public:
  Functionalizer(AtenGraph aten, const FunctionalizeOptions& options) : aten_(std::move(aten)), options_(options) {}

  Result<FunctionalGraph> run() {
    const Graph& eager = *aten_.graph;
    out_.graph = std::make_unique<Graph>(eager.name);
    out_.graph->shapes = eager.shapes;
    eager_.object_of.assign(eager.id_limit(), npos);
    plain_.assign(eager.id_limit(), nullptr);
    Status done = catch_raised<void>([&]() -> Status {
      for (Node* node : eager) {
        current_ = node;
        if (node->is_placeholder())
          placeholder(*node);
        else if (node->is(Op::get_attr()))
          attribute(*node);
        else if (node->op()->is_call())
          call(*node);
      }
      current_ = nullptr;
      finish();
      return {};
    });
    if (done) return std::move(out_);
    return current_ ? at_node(std::move(done).error(), *current_) : std::move(done).error();
  }

 private:
  static constexpr std::size_t npos = EagerTensors::npos;

  Builder builder() { return Builder(*out_.graph, nullptr, current_ ? current_->origin : nullptr); }

  bool under_no_grad() const { return current_ && aten_.no_grad.contains(current_); }
  Node* after(Node* from) const { return from ? from->next() : out_.graph->first(); }
  /// Marks the nodes made after `from` if the current call is under no_grad, but for views that were taken before.
  void mark_no_grad(Node* from) {
    if (!under_no_grad()) return;
    for (Node* n = after(from); n; n = n->next())
      if (n->op()->is_call() && !repeated_.contains(n)) out_.no_grad.insert(n);
  }

  std::size_t new_object(Node* value) {
    eager_.memories.push_back({value, value});
    eager_.objects.push_back({eager_.memories.size() - 1, {}, 0, value});
    return eager_.objects.size() - 1;
  }

  void placeholder(Node& node) {
    Node* made = out_.graph->placeholder(fmt::format("arg{}_1", inputs_.size()), node.meta);
    made->target = node.target.empty() ? node.name() : node.target;
    made->origin = node.origin;
    made->note = node.note;
    if (node.meta.tensor()) {
      eager_.object_of[node.id()] = new_object(made);
      eager_.memories.back().input = inputs_.size();
    }
    plain_[node.id()] = made;
    inputs_.push_back(&node);
  }

  void attribute(Node& node) {
    const Graph& eager = *aten_.graph;
    if (!node.users().empty() && std::ranges::all_of(node.users(), [](Node* n) { return find_region(n->op()); }))
      return;
    Node* made = out_.graph->create(Op::get_attr(), {}, {}, node.name());
    made->target = node.target;
    made->meta = node.meta;
    made->origin = node.origin;
    if (auto it = eager.attributes.find(node.target); it != eager.attributes.end()) {
      out_.graph->attributes.insert(*it);
      eager_.object_of[node.id()] = new_object(made);
    }
    if (Graph* child = eager.child(node.target); child && !out_.graph->child(node.target)) {
      refuse_writes(node, *child);
      out_.graph->children.emplace_back(node.target, child->clone());
    }
    plain_[node.id()] = made;
  }

  /// The object's value at the newest version of its memory.
  Node* read(std::size_t object) {
    EagerObject& o = eager_.objects[object];
    EagerMemory& m = eager_.memories[o.memory];
    if (o.version == m.version) return o.value;
    Node* value = m.content;
    for (std::size_t k = 0; k < o.steps.size(); ++k) value = viewed(o, k, value);
    o.value = value;
    o.version = m.version;
    return value;
  }

  /// The argument (or arguments) with the newest values of the nodes in it.
  template <class Written>
  Written mapped(const Written& written) {
    return map_nodes(written, [&](Node* n) -> Arg {
      std::size_t object = eager_.object_of[n->id()];
      if (object != npos) {
        refuse_freed(eager_.memories[eager_.objects[object].memory], n);
        return Arg(read(object));
      }
      if (!plain_[n->id()])
        fail_unsupported(n->name() + ", a list of results that are written or viewed, as an argument");
      return Arg(plain_[n->id()]);
    });
  }

  void call(Node& node) {
    Node* before = out_.graph->last();
    if (node.is(Op::getitem()))
      getitem(node);
    else if (const ControlOp* op = find_region(node.op()))
      region(node, *op);
    else if (node.op()->kind != OpKind::Torch)
      copy(node);
    else
      aten_call(node);
    mark_no_grad(before);
    for (Node* n = before ? before->next() : out_.graph->first(); n; n = n->next()) n->recompute = node.recompute;
  }

  /// What sub graphs write to their operands becomes results of the call.
  void region(Node& node, const ControlOp& op) {
    std::vector<bool> wants;
    for (const RegionOperand& o : operands_of(op, node.args()))
      wants.push_back(!under_no_grad() && o.value.node() && requires_grad(o.value.node()));
    FunctionalRegion region = unwrap(functionalize_region(node, op, wants, out_));
    Args args;
    for (const Arg& a : node.args()) {
      const ArgList* list = a.get<ArgList>();
      args.push_back(list ? Arg(ArgList{{}, list->is_tuple}) : Arg());
    }
    std::map<std::size_t, ArgList> lists;
    for (const RegionOperand& o : region.operands) lists[o.list].items.push_back(mapped(o.value));
    for (std::size_t i = 0; i < args.size(); ++i) {
      // PyTorch lists what all steps of a scan read as a tuple.
      if (const ArgList* empty = args[i].get<ArgList>())
        args[i] = ArgList{std::move(lists[i].items),
                          empty->is_tuple || (op.kind == Control::Scan && i == op.operands.back())};
      else if (std::ranges::find(op.graphs, i) == op.graphs.end())
        args[i] = mapped(node.args()[i]);
    }
    const std::vector<std::string> names = region_names(op, *out_.graph);
    for (std::size_t g = 0; g < op.graphs.size(); ++g) {
      Node* attribute = out_.graph->create(Op::get_attr(), {}, {}, names[g]);
      attribute->target = names[g];
      args[op.graphs[g]] = attribute;
      out_.graph->children.emplace_back(names[g], std::move(region.graphs[g]));
    }
    // The one keyword, mutated_arg_indices, says what has been found out here.
    Node* made = out_.graph->create(node.op(), std::move(args));
    made->origin = node.origin;
    made->note = node.note;
    MetaTuple results = region_results(op, *made);
    const MetaTuple* known = node.meta.tuple();
    for (std::size_t i = 0; known && i < region.position.size() && i < known->items.size(); ++i)
      if (Meta& item = results.items[region.position[i]]; !item.known()) item = known->items[i];
    made->meta = results;
    plain_[node.id()] = made;
    Builder build = builder();
    const auto result = [&](std::size_t i) { return build.getitem(made, static_cast<std::int64_t>(i)); };
    std::vector<std::size_t> parts;
    for (const std::size_t i : region.position)
      parts.push_back(results.items[i].tensor() ? new_object(result(i)) : npos);
    parts_[&node] = std::move(parts);
    for (const auto& [operand, i] : region.written) write(eager_.object_at(operand), result(i));
  }

  void getitem(Node& node) {
    if (auto it = parts_.find(node.args()[0].node()); it != parts_.end()) {
      const std::size_t part = unwrap(getitem_position(node.args()[1], it->second.size()));
      eager_.object_of[node.id()] = it->second[part];
      if (eager_.object_of[node.id()] != npos) return;
    }
    Node* made = copy(node);
    // The index may be a node of a known value.
    const Node* source = made->args()[0].node();
    if (const MetaTuple* items = source ? source->meta.tuple() : nullptr) {
      const auto part = static_cast<std::int64_t>(unwrap(getitem_position(node.args()[1], items->items.size())));
      made->set_args({made->args()[0], part}, {});
    }
  }

  /// Takes step `k` of an object, whose result carries a gradient if it was first taken with gradients.
  Node* viewed(const EagerObject& o, std::size_t k, Node* base) {
    const ViewStep& step = o.steps[k];
    refuse_moved_storage(step, eager_.memories[o.memory]);
    Node* last = out_.graph->last();
    Builder build = builder();
    Node* view = apply_view(build, step, base);
    for (Node* n = after(last); n; n = n->next()) {
      repeated_.insert(n);
      if (k >= o.no_grad_from) out_.no_grad.insert(n);
    }
    if (k == o.taken_at && o.stands_for) out_.hidden[view] = o.stands_for;
    return view;
  }

  /// Adds the object that a view call makes. Its last step is the call.
  std::size_t add_view(EagerObject object, const Node& node) {
    EagerMemory& m = eager_.memories[object.memory];
    const bool newest = object.version == m.version && object.value;
    Node* value = newest ? object.value : m.content;
    for (std::size_t k = newest ? object.steps.size() - 1 : 0; k < object.steps.size(); ++k)
      value = viewed(object, k, value);
    if (!value->meta.known()) value->meta = node.meta;
    object.value = value;
    object.version = m.version;
    eager_.objects.push_back(std::move(object));
    return eager_.objects.size() - 1;
  }

  /// Copies a call to the functional graph with the newest values as arguments. Its results have memory of their own.
  Node* copy(Node& node) {
    Node* made = copied(node);
    if (lies_otherwise(node, *made) && restore_gaps(eager_, node, builder(), out_.hidden)) {
      out_.graph->erase(made);
      made = copied(node);
    }
    made->note = node.note;
    plain_[node.id()] = made;
    if (made->meta.tensor()) eager_.object_of[node.id()] = new_object(made);
    return made;
  }

  Node* copied(Node& node) {
    Args args = mapped(node.args());
    Kwargs kwargs = mapped(node.kwargs());
    Node* made = nullptr;
    if (node.op()->kind == OpKind::Torch && find_record(node.op())) {
      made = builder().call(node.op(), std::move(args), std::move(kwargs));
    } else {
      made = out_.graph->create(node.op(), std::move(args), std::move(kwargs));
      made->origin = node.origin;
      Result<Meta> meta = infer(*made);
      if (meta)
        made->meta = *std::move(meta);
      else if (meta.error().code == "ops.unknown" || node.is(Op::getitem()))
        made->meta = node.meta;
      else
        throw Raise{std::move(meta).error()};
    }
    keep_known_sizes(*made, node.meta);
    return made;
  }

  void aten_call(Node& node) {
    const Schema* schema = find_schema(node.op());
    if (schema && schema->is_mutable) return mutate(node, *schema);
    if (schema && resizes_storage(node.op())) return resize_storage(node, *schema);
    if (const ControlOp* control = find_control(node.op()); control && control->kind == Control::Kernel)
      return run_kernel(node);
    refuse_unknown_write(node);
    if (schema && schema->is_view && schema->returns.size() == 1) return view(node, *schema);
    copy(node);
  }

  /// A kernel of the user's own gives new values of the tensors that it writes, of which autograd does not know.
  void run_kernel(Node& node) {
    const Op* functional = functional_kernel(node.op());
    if (!functional)
      throw Raise{unsupported("functionalize.mutation",
                              node.op()->name + " writes its arguments and has no functional form", place_of(node))};
    const std::vector<std::pair<std::string, Node*>> written = written_by_kernel(node);
    std::vector<Arg> names;
    for (const auto& [name, tensor] : written) names.emplace_back(name);
    Kwargs kwargs = mapped(node.kwargs());
    kwargs.emplace_back("tensors_to_clone", Arg::list(std::move(names)));
    Node* const made = out_.graph->create(functional, mapped(node.args()), std::move(kwargs),
                                          std::string(functional->brief()) + "_proxy");
    made->origin = node.origin;
    plain_[node.id()] = made;
    aten_.no_grad.insert(&node);
    for (const auto& [name, tensor] : written) {
      const std::size_t object = eager_.object_at(Arg(tensor));
      if (object == npos) fail("a kernel writes to a value that is not a tensor");
      write(object, builder().call(Op::getitem(), {made, Arg(name)}));
    }
  }

  /// The view step of a call and the object that it views; nullopt when it views no tensor.
  std::optional<std::pair<std::size_t, ViewStep>> step_of(const Node& node, const Schema& schema, const Op* op) {
    Args bound = unwrap(bind_arguments(schema, node.args(), node.kwargs()));
    ViewStep step{op, {}, -1, -1};
    std::size_t viewed = npos;
    for (std::size_t i = 0; i < bound.size(); ++i) {
      if (step.self < 0 && schema.args[i].type == SchemaType::Tensor && !schema.args[i].alias_set.empty()) {
        step.self = static_cast<int>(i);
        viewed = eager_.object_at(bound[i]);
        step.args.emplace_back();
      } else {
        step.args.push_back(mapped(bound[i]));
      }
    }
    if (step.self < 0 || viewed == npos) return std::nullopt;
    return std::pair(viewed, std::move(step));
  }

  void view(Node& node, const Schema& schema) {
    auto step = step_of(node, schema, node.op());
    if (!step) {
      copy(node);
      return;
    }
    read(step->first);
    EagerObject object = eager_.objects[step->first];
    if (under_no_grad()) object.no_grad_from = std::min(object.no_grad_from, object.steps.size());
    object.steps.push_back(std::move(step->second));
    object.own_metadata_changed = false;
    if (schema.returns[0].is_list) {
      // Each getitem becomes a view. The call itself is made once for all getitems that come before the next write.
      Builder build = builder();
      ViewStep all = object.steps.back();
      Node* tuple = apply_view(build, all, object.value);
      plain_[node.id()] = tuple;
      std::vector<std::size_t> parts;
      auto* results = tuple->meta.tuple();
      for (std::size_t i = 0; results && i < results->items.size(); ++i) {
        EagerObject part = object;
        part.steps.back().part = static_cast<int>(i);
        part.value = build.getitem(tuple, static_cast<std::int64_t>(i));
        eager_.objects.push_back(std::move(part));
        parts.push_back(eager_.objects.size() - 1);
      }
      parts_[&node] = std::move(parts);
      return;
    }
    eager_.object_of[node.id()] = add_view(std::move(object), node);
  }

  /// Calls the operator with what `argument(i)` says of its i-th argument. Trailing defaults are not written.
  Node* call_with(Builder& build, const Schema& target, auto argument) {
    Args args;
    Kwargs kwargs;
    bool trailing_default = true;
    for (std::size_t i = target.args.size(); i-- > 0;) {
      const SchemaArg& a = target.args[i];
      Arg value = mapped(argument(i));
      if (trailing_default && a.has_default && value == a.default_value) continue;
      if (a.keyword_only) {
        kwargs.insert(kwargs.begin(), {a.name, std::move(value)});
      } else {
        trailing_default = false;
        args.insert(args.begin(), std::move(value));
      }
    }
    return build.call(target.name, std::move(args), std::move(kwargs));
  }

  /// Replaces an in-place call, or another call that writes arguments, by its functional variant, and records the new
  /// values.
  void mutate(Node& node, const Schema& schema) {
    Args bound = unwrap(bind_arguments(schema, node.args(), node.kwargs()));
    std::vector<std::size_t> written_at;
    for (std::size_t i = 0; i < schema.args.size(); ++i)
      if (schema.args[i].is_write) written_at.push_back(i);
    if (const Op* view = view_in_place(node.op())) {
      change_metadata(node, *find_schema(view), view, bound);
      return;
    }
    if (takes_memory(node.op())) return take_memory(node, bound);
    refuse_reads_between_writes(eager_, node, schema, bound);
    std::optional<FunctionalVariant> variant = functional_variant(node.op());
    if (variant && written_at == std::vector<std::size_t>{0} && shrink(node)) return;
    const bool in_place = !schema.args.empty() && schema.args[0].is_write;
    const std::string functional =
        schema.base.substr(0, schema.base.size() - (in_place ? 1 : 0)) + "_functional.default";
    const Schema* target = variant ? variant->schema : find_schema(functional);
    if (!target)
      throw Raise{unsupported("functionalize.mutation",
                              fmt::format("{} writes its arguments and has no functional form", node.op()->name),
                              place_of(node))};
    Builder build = builder();
    Node* result = call_with(build, *target, [&](std::size_t i) -> const Arg& {
      const int from = variant ? variant->from[i] : schema.index_of(target->args[i].name);
      if (from < 0) fail(fmt::format("{} lacks an argument that {} needs", schema.name, target->name));
      return bound[static_cast<std::size_t>(from)];
    });

    // The functional variant returns the call's results, then the new values of the written arguments. For an in-place
    // call it returns only the latter.
    std::size_t own = variant || in_place ? 0 : schema.returns.size();
    auto* tuple = result->meta.tuple();
    std::vector<Node*> values;
    if (tuple)
      for (std::size_t i = 0; i < tuple->items.size(); ++i)
        values.push_back(build.getitem(result, static_cast<std::int64_t>(i)));
    else
      values.push_back(result);
    std::size_t at = own;
    std::vector<std::size_t> objects;
    for (std::size_t i : written_at) {
      auto commit = [&](const Arg& a) {
        if (!a.node()) return;
        const std::size_t object = eager_.object_at(a);
        if (object == npos || at >= values.size())
          fail(fmt::format("{} writes to a value that is not a tensor", schema.name));
        if (variant && !ops().find(node.op())) {  // resize_ and the like have their own record and may change sizes
          const TensorMeta &to = Builder::tensor(eager_.objects[object].value), &from = Builder::tensor(values[at]);
          unwrap(check_fits(schema, to.dtype, to.sizes, from.dtype, from.sizes));
        }
        write(object, values[at++]);
        objects.push_back(object);
      };
      if (auto* list = bound[i].get<ArgList>())
        std::for_each(list->items.begin(), list->items.end(), commit);
      else if (bound[i].is_none())
        ++at;
      else
        commit(bound[i]);
    }
    if (own == 0) {
      // An in-place call returns its argument.
      if (!objects.empty() && schema.returns.size() == 1 && !schema.returns[0].is_list)
        eager_.object_of[node.id()] = objects[0];
      else
        parts_[&node] = objects;
      return;
    }
    std::vector<std::size_t> parts;
    for (std::size_t i = 0; i < own; ++i) parts.push_back(new_object(values[i]));
    if (own == 1 && !node.meta.tuple())
      eager_.object_of[node.id()] = parts[0];
    else
      parts_[&node] = std::move(parts);
  }

  /// t_, unsqueeze_ and the like: from now on the object is another view of its memory.
  void change_metadata(Node& node, const Schema& schema, const Op* op, const Args& bound) {
    const std::size_t object = eager_.object_at(bound[0]);
    if (object == npos) fail("an in-place view of a value that is not a tensor");
    ViewStep step{op, {}, 0, -1};
    step.args.emplace_back();
    for (std::size_t i = 1; i < schema.args.size(); ++i) step.args.push_back(mapped(bound[i]));
    show_as(object, std::move(step));
    eager_.object_of[node.id()] = object;
  }

  /// set_: from now on the first argument is the tensor that the second is, or without one an empty tensor. To autograd
  /// it stays what it was.
  void take_memory(Node& node, const Args& bound) {
    const std::size_t object = eager_.object_at(bound[0]);
    const std::size_t source =
        bound.size() > 1 ? eager_.object_at(bound[1])
                         : new_object(builder().call("aten.new_empty.default", {mapped(bound[0]), Arg(ArgList{{0}})}));
    if (object == npos || source == npos) fail("a value that is not a tensor takes memory");
    const bool differentiable = requires_grad(bound[0].node());
    if (!under_no_grad() && (differentiable || (bound.size() > 1 && requires_grad(bound[1].node()))))
      throw Raise{unsupported("functionalize.set",
                              node.op()->name + " with gradients, for which PyTorch has no derivative",
                              place_of(node))};
    Node* const before = differentiable ? read(object) : nullptr;
    read(source);
    EagerObject taken = eager_.objects[source];
    // Eager PyTorch takes no notice that what it saved for the backward has changed.
    const bool saved = before && !before->users().empty();
    if (saved || (before && Builder::tensor(before).sizes != Builder::tensor(taken.value).sizes))
      throw Raise{unsupported("functionalize.set",
                              fmt::format("{} of a tensor that requires a gradient {}", node.op()->name,
                                          saved ? "after it was read" : "to other sizes"),
                              place_of(node))};
    taken.own_metadata_changed = true;
    taken.stands_for = before;
    eager_.objects[object] = std::move(taken);
    if (is_differentiated()) {
      eager_.objects[object].taken_at = eager_.objects[object].steps.size();
      eager_.objects[object].no_grad_from = npos;
      show_as(object, ViewStep{Op::torch("aten.detach.default"), {Arg()}});
    }
    eager_.object_of[node.id()] = object;
  }

  bool is_differentiated() const {
    return std::ranges::find(options_.requires_grad, true) != options_.requires_grad.end();
  }

  /// inductor.resize_storage_bytes_: the memory is freed or has room again. Which values it has then is not defined, so
  /// those that it had are as good as any.
  void resize_storage(Node& node, const Schema& schema) {
    const Args bound = unwrap(bind_arguments(schema, node.args(), node.kwargs()));
    const std::size_t object = eager_.object_at(bound[0]);
    if (object == npos) fail("a value that is not a tensor has no memory");
    EagerMemory& memory = eager_.memories[eager_.objects[object].memory];
    const SymExpr size = FakeCall(schema, bound, *out_.graph->shapes).sym("new_size");
    const auto holds = out_.graph->shapes->evaluate(sym_le(byte_size(Builder::tensor(memory.first)), size),
                                                    "whether a resized memory has room for its tensor");
    if (!holds) fail_unsupported(node.op()->name + " to a size that is known only at run time");
    memory.resized = true;
    memory.freed = !*holds;
    plain_[node.id()] = nullptr;
  }

  /// resize_ to other sizes of no more elements, or to other strides: the object is another view of its memory, as for
  /// t_. Returns whether the call is one.
  bool shrink(Node& node) {
    const std::size_t object = eager_.object_at(node.args()[0]);
    // Only in-place operators with a record of their own may change sizes.
    if (object == npos || !ops().find(node.op())) return false;
    const EagerObject& o = eager_.objects[object];
    const Meta inferred = unwrap(infer(node));
    const TensorMeta *before = node.args()[0].node()->meta.tensor(), *after = inferred.tensor();
    if (!before || !after) return false;
    if (after->sizes == before->sizes && same_significant_strides(after->sizes, after->strides, before->strides))
      return false;
    const SymExpr elements = before->numel(), kept = after->numel();
    const bool grows = !elements.is_int() || !kept.is_int() || kept.as_int() > elements.as_int();
    if (grows && o.steps.empty()) return false;
    if (grows || !is_row_major(*before) || !is_row_major(*after))
      throw Raise{unsupported("functionalize.resize",
                              node.op()->name + (grows ? " of a view to more elements" : " of a tensor with gaps"),
                              place_of(node))};
    for (ViewStep step : {ViewStep{Op::torch("aten.view.default"), {Arg(), builder().sizes({elements})}},
                          ViewStep{Op::torch("aten.slice.Tensor"), {Arg(), 0, 0, kept.as_int(), 1}},
                          ViewStep{Op::torch("aten.view.default"), {Arg(), builder().sizes(after->sizes)}}})
      show_as(object, std::move(step));
    eager_.object_of[node.id()] = object;
    return true;
  }

  /// From now on the object is this view of what it was. It stays the same tensor for autograd, under no_grad too.
  void show_as(std::size_t object, ViewStep step) {
    Node* now = read(object);
    EagerObject& o = eager_.objects[object];
    o.steps.push_back(std::move(step));
    o.value = viewed(o, o.steps.size() - 1, now);
    o.own_metadata_changed = true;
  }

  void write(std::size_t object, Node* value) {
    EagerObject& o = eager_.objects[object];
    EagerMemory& m = eager_.memories[o.memory];
    if (o.stands_for && !under_no_grad())
      throw Raise{unsupported("functionalize.set", "a write with gradients to a tensor to which set_ gave other memory",
                              current_ ? place_of(*current_) : Where{})};
    Node* const before = m.content;
    Builder build = builder();
    if (const DType dtype = Builder::tensor(o.value).dtype; Builder::tensor(value).dtype != dtype)
      value = build.call("aten._to_copy.default", {value}, {{"dtype", Arg(dtype)}});
    if (o.steps.empty()) {
      if (Builder::tensor(value).sizes != Builder::tensor(o.value).sizes) {  // resize_
        o.own_metadata_changed = m.replaced = true;
        m.first = value;
      }
      m.content = value;
      o.value = value;
      o.version = ++m.version;
    } else {
      const std::vector<ViewStep> steps = steps_of_write(eager_, o, build);
      std::vector<Node*> bases = {m.content};
      for (std::size_t i = 0; i + 1 < steps.size(); ++i) bases.push_back(apply_view(build, steps[i], bases.back()));
      for (std::size_t i = steps.size(); i-- > 0;) value = write_through_view(build, steps[i], bases[i], value);
      m.content = value;
      ++m.version;
    }
    if (loses_layout(m, before)) {
      m.content = build.call("aten.copy.default", {before, m.content});
      if (o.steps.empty()) o.value = m.content;
    }
    const bool hidden = under_no_grad() || is_detached(o) || (current_ && is_untraced_write(current_->op()));
    m.written_with_grad |= !under_no_grad();
    m.seen_by_autograd |= !hidden;
    if (m.content != before && hidden) out_.hidden[m.content] = before;
  }

  void finish() {
    out_.meta.keep_input_mutations = options_.keep_input_mutations;
    for (std::size_t i = 0; i < inputs_.size(); ++i)
      out_.meta.inputs.push_back(describe_input(eager_, *inputs_[i], i, options_, out_));
    std::vector<Arg> returned;
    for (std::size_t i : out_.meta.mutated_runtime_inputs())
      returned.push_back(read(eager_.object_of[inputs_[i]->id()]));
    std::vector<Arg> user = aten_.graph->outputs();
    for (std::size_t i = 0; i < user.size(); ++i)
      if (const Node* n = user[i].node(); user[i].get<ArgList>() || (n && n->meta.tuple()))
        throw Raise{unsupported("functionalize.output", fmt::format("output {} is a list; return its items", i),
                                n ? place_of(*n) : Where{})};
    std::vector<Arg> values;
    for (const Arg& a : user) values.push_back(mapped(a));
    OutputAliases aliases = classify_outputs(
        eager_, inputs_, user, values, requires_grad(*out_.graph, options_.requires_grad, out_.no_grad, out_.hidden),
        *out_.graph->shapes);
    out_.meta.outputs = std::move(aliases.outputs);
    refuse_hidden_parts(inputs_, out_.meta);
    out_.meta.num_intermediate_bases = aliases.bases.size();
    returned.insert(returned.end(), values.begin(), values.end());
    for (Node* base : aliases.bases) returned.push_back(base);

    for (std::size_t i : out_.meta.mutated_in_graph()) {
      Node* target = plain_[inputs_[i]->id()];
      Node* value = read(eager_.object_of[inputs_[i]->id()]);
      Node* copy = out_.graph->create(Op::torch("aten.copy_.default"), {target, value});
      copy->meta = target->meta;
      copy->origin = value->origin;
      out_.no_grad.insert(copy);
    }
    out_.graph->set_output(Arg::tuple(std::move(returned)));
    if (options_.keep_input_mutations) clone_written_inputs();
    const std::vector<char> live = live_nodes();
    // Nodes of sub graphs stay.
    const auto dead = [&](const Node* n) { return &n->graph() == out_.graph.get() && !live[n->id()]; };
    std::erase_if(out_.no_grad, [&](const Node* n) { return dead(n); });
    std::erase_if(out_.hidden, [&](const auto& entry) { return dead(entry.first); });
    out_.graph->eliminate_dead([&](const Node& n) { return live[n.id()] != 0; });
  }

  /// PyTorch's runtime writes inputs before the backward runs, which then must not read their memory.
  void clone_written_inputs() {
    Node* first = out_.graph->first();
    while (first->is_placeholder()) first = first->next();
    for (std::size_t i : out_.meta.mutated_runtime_inputs()) {
      const InputAliasInfo& info = out_.meta.inputs[i];
      if (!info.requires_grad || !info.mutates_data) continue;
      Node* input = plain_[inputs_[i]->id()];
      Node* clone = Builder(*out_.graph, first, nullptr).call("aten.clone.default", {input});
      input->replace_all_uses_with(clone);
      clone->set_args({input}, {});
      for (auto& [now, before] : out_.hidden)
        if (before == input) before = clone;
    }
  }

  /// By node id: what has an effect, what such nodes and the output read, and what takes hidden values' gradients.
  std::vector<char> live_nodes() const {
    const std::vector<char> needs = requires_grad(*out_.graph, options_.requires_grad, out_.no_grad, out_.hidden);
    std::vector<char> live(out_.graph->id_limit(), 0);
    for (Node* n = out_.graph->last(); n; n = n->previous()) {
      if (has_effect(*n)) live[n->id()] = 1;
      if (!live[n->id()]) continue;
      for (Node* input : n->inputs()) live[input->id()] = 1;
      if (const auto it = out_.hidden.find(n); it != out_.hidden.end() && needs[n->id()]) live[it->second->id()] = 1;
    }
    return live;
  }

  AtenGraph aten_;
  const FunctionalizeOptions& options_;
  FunctionalGraph out_;
  std::vector<Node*> inputs_;  ///< placeholders of the eager graph
  EagerTensors eager_;
  std::unordered_set<const Node*> repeated_;  ///< views of older objects, made again on newer content
  std::vector<Node*> plain_;  ///< by eager node id: functional counterpart of placeholders, tuples, numbers
  std::unordered_map<const Node*, std::vector<std::size_t>> parts_;  ///< objects of a tuple's items
  Node* current_ = nullptr;
};

}  // namespace

Result<FunctionalGraph> functionalize(const Graph& graph, const FunctionalizeOptions& options) {
  TRY(AtenGraph aten, to_aten(graph, options.requires_grad, options.pre_dispatch));
  TRY_DO(check_stage(*aten.graph, Stage::Aten));
  TRY(FunctionalGraph out, Functionalizer(std::move(aten), options).run());
  const std::vector<char> needs = requires_grad(*out.graph, options.requires_grad, out.no_grad, out.hidden);
  for (Node* n : *out.graph) set_requires_grad(*n, needs[n->id()] != 0);
  TRY_DO(check_stage(*out.graph, Stage::Functional));
  return out;
}

}  // namespace partita

// The planner: lowering, stages, fusion, epilogues, a step for each group, memory. Also notes why steps are apart,
// refuses output strides that code does not make, and marks buffers for stores that bypass the caches.
#include "core/schedule/make_plan.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include <fmt/format.h>

#include "core/base/check.h"
#include "core/base/config.h"
#include "core/base/raise.h"
#include "core/ir/place.h"
#include "core/ops/python/python_ops.h"
#include "core/schedule/emit_parts.h"
#include "core/schedule/epilogue.h"
#include "core/schedule/fuse.h"
#include "core/schedule/instantiate.h"
#include "core/schedule/verify_plan.h"
#include "core/tensor/significant_strides.h"

namespace partita::schedule {
namespace {

class Planner {
 public:
  explicit Planner(LoweredGraph& g) : g_(g) {}

  Result<Plan> run(const PlanOptions& options) {
    plan_.target = options.target;
    for (const Node* n : g_.graph->placeholders())
      plan_.inputs.push_back(n->meta.tensor() ? *n->meta.tensor() : TensorMeta());
    stages_ = find_stages(g_);
    const Fusion fusion = fuse(g_, stages_, options.fuse);
    const std::vector<Group>& groups = fusion.groups;
    Epilogues found;
    found.of.resize(groups.size());
    if (options.fuse) found = find_epilogues(g_, stages_, groups);
    const std::vector<std::optional<Epilogue>>& epilogues = found.of;
    std::set<int> taken;
    for (const auto& e : epilogues)
      if (e) taken.insert(e->call);
    std::vector<StepRange> steps(groups.size());
    for (std::size_t i = 0; i < groups.size(); ++i) {
      steps[i].begin = steps[i].end = plan_.steps.size();
      const SchedulerNode& unit = stages_.units[static_cast<std::size_t>(*groups[i].units.begin())];
      if (epilogues[i])
        call(g_.externs[static_cast<std::size_t>(epilogues[i]->call)], &*epilogues[i]);
      else if (unit.kind == SchedulerNode::Kind::Extern && taken.contains(unit.id))
        continue;  // made with its epilogue
      else if (unit.kind == SchedulerNode::Kind::Extern)
        call(g_.externs[static_cast<std::size_t>(unit.id)], nullptr);
      else if (unit.kind == SchedulerNode::Kind::Writes)
        for (std::size_t w = 0; w < g_.lowering[unit.id].writes.size(); ++w) kernel(emit(g_, stages_, unit.id, w));
      else if (std::ranges::any_of(groups[i].members, &Member::stored))
        kernel(emit(g_, stages_, groups[i]));
      steps[i].end = plan_.steps.size();
    }
    std::unordered_map<int, std::size_t> calls;  // their groups
    for (std::size_t i = 0; i < groups.size(); ++i)
      if (const SchedulerNode& unit = stages_.units[static_cast<std::size_t>(*groups[i].units.begin())];
          unit.kind == SchedulerNode::Kind::Extern)
        calls.emplace(unit.id, i);
    for (std::size_t i = 0; i < groups.size(); ++i)
      if (epilogues[i]) steps[calls.at(epilogues[i]->call)] = steps[i];
    note_apart(fusion, found, steps, options.fuse);
    TRY_DO(outputs());
    plan_.promised = std::move(g_.outputs);
    TRY_DO(check_strides());
    if (options.target.cache_bytes > 0) stream(options.target.cache_bytes);
    if (!options.symbolic) {
      TRY_DO(place_memory(plan_));
      return std::move(plan_);
    }
    plan_.graph = g_.graph;
    plan_.guards = std::move(g_.guards);
    // Those that the planner took itself follow those of the calls.
    const std::vector<Guard> all = g_.graph->shapes->guards();
    plan_.guards.insert(plan_.guards.end(), all.begin() + static_cast<std::ptrdiff_t>(plan_.guards.size()), all.end());
    return std::move(plan_);
  }

 private:
  /// The steps of a group. A call that does another group's work, too, has its step.
  struct StepRange {
    std::size_t begin = 0, end = 0;
  };

  /// Says of each two steps of which one reads what the other makes why they are not one. `steps`: by group.
  void note_apart(const Fusion& fusion, const Epilogues& epilogues, const std::vector<StepRange>& steps, bool fuses) {
    using Kind = SchedulerNode::Kind;
    std::vector<std::size_t> group_of(stages_.units.size());
    for (std::size_t i = 0; i < fusion.groups.size(); ++i)
      for (int u : fusion.groups[i].units) group_of[static_cast<std::size_t>(u)] = i;
    const auto kind = [&](std::size_t group) {
      return stages_.units[static_cast<std::size_t>(*fusion.groups[group].units.begin())].kind;
    };
    std::set<std::pair<std::size_t, std::size_t>> seen;
    for (std::size_t i = 0; i < fusion.groups.size(); ++i)
      for (int u : fusion.groups[i].units)
        for (int need : stages_.units[static_cast<std::size_t>(u)].needs) {
          const std::size_t from = group_of[static_cast<std::size_t>(need)];
          if (steps[i].begin == steps[i].end || steps[from].begin == steps[from].end) continue;
          // Of several steps the last has made the value.
          const std::size_t first = steps[from].end - 1, second = steps[i].begin;
          if (first >= second || !seen.emplace(first, second).second) continue;
          Apart why = Apart::First;
          if (const auto tried = fusion.apart.find(std::minmax(from, i)); tried != fusion.apart.end())
            why = tried->second;
          else if (const auto call = epilogues.apart.find({i, need}); call != epilogues.apart.end())
            why = call->second;
          else if (!fuses)
            why = Apart::Off;
          else if (kind(i) == Kind::Extern || kind(from) == Kind::Extern)
            why = Apart::Call;
          else if (kind(i) == Kind::Writes || kind(from) == Kind::Writes)
            why = Apart::Writes;
          plan_.apart.push_back({first, second, why});
        }
  }

  /// Release builds do not verify plans, but give no output in other strides than they say.
  Status check_strides() const {
    for (std::size_t o = 0; o < plan_.promised.size(); ++o) {
      const TensorMeta* meta = plan_.promised[o].tensor();
      const auto* view = meta ? std::get_if<PlanView>(&plan_.outputs[o]) : nullptr;
      if (view && meta->strides_known && view->sizes == g_.lowering.plain(meta->sizes) &&
          !same_significant_strides(meta->sizes, g_.lowering.plain_strides(view->strides),
                                    g_.lowering.plain_strides(meta->strides)))
        return unsupported(
            "schedule.strides",
            fmt::format("output {} is {}, whose strides compiled code does not make; use --backend interp", o,
                        annotation(*meta)));
    }
    return {};
  }

  int buffer(int definition) {
    auto target = g_.destination.find(definition);
    int holder = target == g_.destination.end() ? definition : target->second;
    auto [it, fresh] = buffers_.try_emplace(holder, static_cast<int>(plan_.buffers.size()));
    if (!fresh) return it->second;
    PlanBuffer b;
    b.device.type = plan_.target.device;
    b.dtype = g_.lowering[holder].dtype;
    b.elements = layout_of(g_, holder).elements;
    b.origin = g_.lowering[definition].origin;
    if (auto source = g_.sources.find(holder); source != g_.sources.end()) {
      b.kind = source->second.kind;
      if (b.kind == PlanBuffer::Kind::Input) b.index = source->second.index;
      b.attribute = source->second.attribute;
    }
    plan_.buffers.push_back(std::move(b));
    return it->second;
  }

  PlanView view(const StridedView& v, int definition) {
    const loops::Definition& d = g_.lowering[definition];
    return {buffer(v.base), d.dtype, d.sizes, v.strides, v.offset};
  }

  void kernel(Emitted emitted) {
    KernelCall call{static_cast<int>(plan_.kernels.size()), {}};
    for (int definition : emitted.memory) call.buffers.push_back(buffer(definition));
    emitted.kernel.name = name(emitted.kernel);
    auto broken = loops::verify(emitted.kernel);
    if (!broken.empty() && g_.lowering.symbolic())
      throw Raise{unsupported("schedule.proof", "a kernel that is not proved right for all sizes: " + broken[0])};
    CHECK(broken.empty(), loops::print(emitted.kernel) + fmt::format("{}", broken.empty() ? "" : broken[0]));
    plan_.kernels.push_back(std::move(emitted.kernel));
    plan_.steps.emplace_back(std::in_place_type<KernelCall>, std::move(call));
  }

  std::string name(const loops::Kernel& k) const {
    constexpr std::size_t most = 4;
    std::string text = "k" + std::to_string(plan_.kernels.size());
    for (std::size_t i = 0; i < std::min(k.origins.size(), most); ++i) text += "_" + k.origins[i];
    return text;
  }

  PlanView argument(const ExternNode& e, const Node* n) {
    StridedView found = argument_view(g_, e, g_.value(n));
    // Strides of dimensions of size 1 move nothing, but some operators read them (view.dtype).
    const TensorMeta& meta = *n->meta.tensor();
    for (std::size_t d = 0; d < meta.sizes.size() && meta.strides_known && !e.any_strides; ++d)
      if (meta.sizes[d].is(1)) found.strides[d] = g_.lowering.plain_strides({meta.strides[d]})[0];
    PlanView made = view(found, g_.value(n));
    if (found.base != g_.value(n)) made.dtype = g_.lowering[found.base].dtype;
    return made;
  }

  void call(const ExternNode& e, const Epilogue* epilogue) {
    const PlanView none{.buffer = -1};
    ExternCall call;
    call.op = e.node->op();
    call.device.type = plan_.target.device;
    call.origin = e.node->name();
    call.graph = e.graph;
    call.around = e.around;
    call.narrow = e.narrow;
    for (const Arg& a : e.args) {
      const ArgList* list = a.get<ArgList>();
      const auto is_tensor = [&](const Arg& item) { return item.node() && g_.values.contains(item.node()); };
      if (is_tensor(a)) {
        call.args.emplace_back(argument(e, a.node()));
      } else if (list && std::ranges::any_of(list->items, is_tensor)) {
        std::vector<PlanView> views;
        for (const Arg& item : list->items) views.push_back(is_tensor(item) ? argument(e, item.node()) : none);
        call.args.emplace_back(std::move(views));
      } else {
        call.args.emplace_back(map_nodes(a, [](Node* n) -> Arg {
          const SymExpr* known = n->meta.sym();  // a bool that is decided does not tell that it is one
          return known && known->is_int() && gives_bool(*n) ? Arg(!known->is(0)) : Arg(n);
        }));
      }
    }
    for (int r : e.results) {
      int holder = epilogue ? epilogue->result : r;
      call.results.push_back(r < 0 ? none : view({holder, layout_of(g_, r).strides, 0}, r));
    }
    if (epilogue) {
      call.epilogue = epilogue->body;
      call.epilogue_value = epilogue->value;
      call.epilogue_origins = epilogue->origins;
      for (const StridedView& v : epilogue->inputs) {
        call.epilogue_inputs.push_back(view(v, e.results[0]));
        call.epilogue_inputs.back().dtype = g_.lowering[v.base].dtype;
      }
    }
    plan_.steps.emplace_back(std::in_place_type<ExternCall>, std::move(call));
  }

  Status outputs() {
    for (const Arg& out : g_.graph->outputs()) {
      const Node* n = out.node();
      if (!n) {
        plan_.outputs.emplace_back(out);
      } else if (const SymExpr* e = n->meta.sym()) {
        if (e->is_int() && gives_bool(*n))
          plan_.outputs.emplace_back(Arg(!e->is(0)));
        else if (e->kind() == SymKind::Float)
          plan_.outputs.emplace_back(Arg(e->as_float()));
        else
          plan_.outputs.emplace_back(*e);
      } else if (n->is_placeholder() && !n->meta.tensor()) {
        const std::vector<Node*> inputs = g_.graph->placeholders();
        plan_.outputs.emplace_back(HandedOn{static_cast<int>(std::ranges::find(inputs, n) - inputs.begin())});
      } else if (!n->meta.tensor()) {
        return unsupported("schedule.output", "output " + n->name() + " is not a tensor", place_of(*n));
      } else {
        PlanView v = view(output_view(g_, g_.value(n)), g_.value(n));
        PlanBuffer& b = plan_.buffers[static_cast<std::size_t>(v.buffer)];
        if (b.kind == PlanBuffer::Kind::Temporary) b.kind = PlanBuffer::Kind::Output;
        plan_.outputs.emplace_back(std::move(v));
      }
    }
    return {};
  }

  std::size_t bytes(int buffer) const {
    const PlanBuffer& b = plan_.buffers[static_cast<std::size_t>(buffer)];
    return static_cast<std::size_t>(g_.lowering.hint(b.elements)) * itemsize(b.dtype);
  }

  /// Marks large results for stores that bypass the caches, in kernels that move more than the caches hold. Their first
  /// elements would leave the cache before they are read, and such stores need not read the memory that they overwrite.
  void stream(std::size_t cache_bytes) {
    for (const auto& step : plan_.steps) {
      auto* call = std::get_if<KernelCall>(&step);
      if (!call) continue;
      loops::Kernel& k = plan_.kernels[static_cast<std::size_t>(call->kernel)];
      std::size_t moved = 0;
      for (int b : call->buffers) moved += bytes(b);
      if (moved <= cache_bytes) continue;
      std::vector<bool> loaded(k.buffers.size(), false);
      for (const loops::ScalarNode& n : k.scalars.nodes())
        if (n.op == loops::ScalarOp::Load) loaded[static_cast<std::size_t>(n.slot)] = true;
      std::size_t next = 0;
      for (std::size_t i = 0; i < k.buffers.size(); ++i) {
        if (k.buffers[i].role == loops::Buffer::Role::Scratch) continue;
        int b = call->buffers[next++];
        PlanBuffer::Kind kind = plan_.buffers[static_cast<std::size_t>(b)].kind;
        bool ours = kind == PlanBuffer::Kind::Output || kind == PlanBuffer::Kind::Temporary;
        k.buffers[i].streamed =
            k.buffers[i].role == loops::Buffer::Role::Output && ours && !loaded[i] && bytes(b) >= cache_bytes / 2;
      }
    }
  }

  LoweredGraph& g_;
  Stages stages_;
  Plan plan_;
  std::unordered_map<int, int> buffers_;
};

}  // namespace

Result<Plan> make_plan(const Graph& graph, const PlanOptions& options) {
  WorkingOn working("plan of graph " + graph.name);
  return catch_raised<Plan>([&]() -> Result<Plan> {
    TRY(LoweredGraph lowered, lower_graph(graph, options.sizes, options.target, options.symbolic));
    TRY(Plan plan, Planner(lowered).run(options));
    if (config().verify && !options.symbolic)
      if (const std::vector<std::string> broken = verify(plan); !broken.empty())
        return Diagnostic{Fault::Internal, "schedule.verify", broken.front(), {.graph = graph.name}};
    return plan;
  });
}

}  // namespace partita::schedule

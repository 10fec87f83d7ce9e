#include "core/schedule/epilogue.h"

#include <algorithm>
#include <utility>

namespace partita::schedule {
namespace {

using loops::Body;
using loops::Definition;
using loops::Index;
using loops::LoweredTensor;
using loops::Scalar;
using loops::ScalarOp;

/// Computes the value of a group's member over the index space of a call's result.
class OverResult final : public Body {
 public:
  OverResult(loops::ScalarBuilder& b, loops::IndexMath& math, const LoweredGraph& g, const Stages& stages,
             const Group& group, int result)
      : Body(b, math), g_(g), stages_(stages), group_(group), result_(result), sizes_(g.lowering[result].sizes) {
    position = math.variables("p", sizes_);
    element_ = math.element(position, layout_of(g, result).strides);
  }

  bool fits = true;
  Index position;
  std::vector<StridedView> inputs;

  std::set<int> definitions;  ///< that are computed

  SymExpr element() const { return element_; }

  Scalar computed(int definition, const Index& index) {
    definitions.insert(definition);
    const int around = std::exchange(b.source, definition);
    const Scalar v = g_.lowering[definition].value(*this, index);
    b.source = around;
    return v;
  }
  using Body::element;

  Scalar read(const LoweredTensor& tensor, const Index& index) override {
    const Definition& d = g_.lowering[tensor.id];
    bool inside = std::ranges::any_of(group_.members, [&](const Member& m) { return m.definition == tensor.id; });
    bool memory = d.kind == Definition::Kind::Memory || stages_.unit_of[static_cast<std::size_t>(tensor.id)] >= 0;
    if (inside || !memory) return computed(tensor.id, index);
    SymExpr e = math.element(index, layout_of(g_, tensor.id).strides);
    if (tensor.id == result_) {
      fits = fits && e == element_;
      return b.input(0, tensor.dtype);
    }
    auto view = strided(math, e, position, sizes_);
    if (!view) {
      fits = false;
      return b.constant(tensor.dtype, 0);
    }
    view->base = tensor.id;
    auto same = std::ranges::find_if(inputs, [&](const StridedView& v) {
      return v.base == view->base && v.strides == view->strides && v.offset == view->offset;
    });
    if (same == inputs.end()) same = inputs.insert(inputs.end(), *view);
    return b.input(static_cast<int>(same - inputs.begin()) + 1, tensor.dtype);
  }

 private:
  const LoweredGraph& g_;
  const Stages& stages_;
  const Group& group_;
  int result_;
  SymList sizes_;
  SymExpr element_;
};

std::optional<Epilogue> over(const LoweredGraph& g, const Stages& stages, const Group& group, const Member& stored,
                             int call) {
  int result = g.externs[static_cast<std::size_t>(call)].results[0];
  const Definition &d = g.lowering[stored.definition], &r = g.lowering[result];
  if (d.dtype != r.dtype || group.domain.numel() != g.lowering.handle(result).numel() ||
      stages.stored[static_cast<std::size_t>(result)])
    return std::nullopt;
  Epilogue e;
  e.body = std::make_shared<loops::ScalarBuilder>();
  e.result = stored.definition;
  e.call = call;
  loops::IndexMath math;
  OverResult body(*e.body, math, g, stages, group, result);
  Index index = math.delinearize(math.linear(body.position, r.sizes), d.sizes);
  if (math.element(index, layout_of(g, stored.definition).strides) != body.element()) return std::nullopt;
  e.value = body.computed(stored.definition, index);
  bool plain = std::ranges::none_of(e.body->nodes(), [](const auto& n) {
    return n.op == ScalarOp::Index || n.op == ScalarOp::Load || n.op == ScalarOp::Within;
  });
  if (!body.fits || !plain || body.inputs.size() > g.target().epilogue_inputs) return std::nullopt;
  e.inputs = std::move(body.inputs);
  for (int id : body.definitions) {
    const std::string& origin = g.lowering[id].origin;
    if (!origin.empty() && std::ranges::find(e.origins, origin) == e.origins.end()) e.origins.push_back(origin);
  }
  e.body->map_sources([&](int id) {
    const auto at = std::ranges::find(e.origins, g.lowering[id].origin);
    return at == e.origins.end() ? -1 : static_cast<int>(at - e.origins.begin());
  });
  return e;
}

}  // namespace

namespace {

/// Does a group between the call's and `at` overwrite an input that the call reads? The call with an epilogue runs at
/// `at`.
bool overwritten_before(const LoweredGraph& g, const Stages& stages, const std::vector<Group>& groups, int unit,
                        std::size_t at) {
  const std::set<int>& reads = stages.units[static_cast<std::size_t>(unit)].reads;
  return std::any_of(groups.begin(), groups.begin() + static_cast<std::ptrdiff_t>(at), [&](const Group& group) {
    return std::ranges::any_of(group.members, [&](const Member& m) {
      const auto target = g.destination.find(m.definition);
      return target != g.destination.end() && reads.contains(target->second);
    });
  });
}

}  // namespace

Epilogues find_epilogues(const LoweredGraph& g, const Stages& stages, const std::vector<Group>& groups) {
  std::vector<int> readers(stages.units.size(), 0);
  for (const Group& group : groups) {
    std::set<int> needs;
    for (int u : group.units)
      needs.insert(stages.units[static_cast<std::size_t>(u)].needs.begin(),
                   stages.units[static_cast<std::size_t>(u)].needs.end());
    for (int u : needs)
      if (!group.units.contains(u)) ++readers[static_cast<std::size_t>(u)];
  }
  Epilogues found;
  found.of.resize(groups.size());
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const Group& group = groups[i];
    auto stored = std::ranges::find_if(group.members, &Member::stored);
    const bool fits = !group.domain.reduces() && stored != group.members.end() &&
                      std::ranges::count_if(group.members, &Member::stored) == 1 &&
                      !g.destination.contains(stored->definition);
    // Take the latest call, because the group's other inputs are ready by then.
    std::set<std::pair<int, int>> calls;  // with their units
    for (int u : group.units)
      for (int need : stages.units[static_cast<std::size_t>(u)].needs) {
        const SchedulerNode& unit = stages.units[static_cast<std::size_t>(need)];
        if (unit.kind != SchedulerNode::Kind::Extern) continue;
        const bool fuses = g.externs[static_cast<std::size_t>(unit.id)].fuses;
        const bool one_reader = readers[static_cast<std::size_t>(need)] == 1;
        found.apart[{i, need}] = !fuses        ? Apart::Call
                                 : !one_reader ? Apart::CallRead
                                 : !fits       ? Apart::CallWork
                                               : Apart::Order;
        if (fits && one_reader && fuses && !overwritten_before(g, stages, groups, need, i))
          calls.emplace(unit.id, need);
      }
    for (auto call = calls.rbegin(); call != calls.rend() && !found.of[i]; ++call) {
      found.of[i] = over(g, stages, group, *stored, call->first);
      found.apart[{i, call->second}] = Apart::CallWork;
    }
  }
  return found;
}

}  // namespace partita::schedule

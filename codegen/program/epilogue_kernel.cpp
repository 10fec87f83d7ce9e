#include "codegen/program/epilogue_kernel.h"

#include <algorithm>
#include <functional>

#include "core/base/check.h"
#include "core/schedule/instantiate.h"

namespace partita::codegen {
namespace {

using loops::Kernel;
using loops::Scalar;
using loops::ScalarOp;

/// One loop over the result, and each view's stride along it.
struct Axis {
  SymExpr size = 1;
  SymList strides;  ///< by view
};

/// The result's dimensions in the order of its memory; the innermost becomes the lanes. Dimensions that every view
/// walks through as one are merged. Symbols have the values of `symbols`, which decide the order only.
std::vector<Axis> axes(const std::vector<schedule::PlanView>& views,
                       const std::map<std::string, std::int64_t>& symbols) {
  const SymList& sizes = views[0].sizes;
  std::vector<Axis> all;
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d].is(1)) continue;
    Axis axis{sizes[d], {}};
    for (const schedule::PlanView& v : views) axis.strides.push_back(v.strides[d]);
    all.push_back(std::move(axis));
  }
  std::ranges::stable_sort(all, std::greater(), [&](const Axis& a) {
    return a.strides[0].is_int() ? a.strides[0].as_int()
                                 : schedule::instance_value(a.strides[0], symbols).value_or(INT64_MAX);
  });
  std::vector<Axis> merged;
  for (Axis& inner : all) {
    bool joins = !merged.empty();
    for (std::size_t v = 0; joins && v < views.size(); ++v)
      joins = merged.back().strides[v] == inner.strides[v] * inner.size;
    if (joins) {
      inner.size = inner.size * merged.back().size;
      merged.pop_back();
    }
    merged.push_back(std::move(inner));
  }
  return merged;
}

/// Copies the call's scalars, with loads in place of inputs.
Result<Scalar> copied(const schedule::ExternCall& call, const std::vector<SymExpr>& elements, Kernel& to) {
  std::vector<Scalar> made;
  for (const loops::ScalarNode& n : call.epilogue->nodes()) {
    const int source = call.epilogue->sources()[made.size()];
    to.scalars.source = source < 0 ? -1 : source + 1;  // after the call's node
    auto arg = [&](int i) { return n.args[i].id < 0 ? Scalar{} : made[static_cast<std::size_t>(n.args[i].id)]; };
    switch (n.op) {
      case ScalarOp::Input:
        made.push_back(to.scalars.load(n.slot, elements[static_cast<std::size_t>(n.slot)], n.dtype));
        break;
      case ScalarOp::Const:
        made.push_back(is_floating(n.dtype) || is_complex(n.dtype) ? to.scalars.constant(n.dtype, n.real)
                                                                   : to.scalars.constant_int(n.dtype, n.integer));
        break;
      case ScalarOp::Where:
        made.push_back(to.scalars.where(arg(0), arg(1), arg(2)));
        break;
      case ScalarOp::Cast:
        made.push_back(to.scalars.cast(arg(0), n.dtype));
        break;
      case ScalarOp::Bitcast:
        made.push_back(to.scalars.bitcast(arg(0), n.dtype));
        break;
      case ScalarOp::Index:
      case ScalarOp::Load:
      case ScalarOp::Within:
        return unsupported("codegen.epilogue", "a load in the work after " + call.op->name, {.node = call.origin});
      default:
        made.push_back(to.scalars.make(n.op, arg(0), arg(1), arg(2)));
    }
  }
  return made[static_cast<std::size_t>(call.epilogue_value.id)];
}

}  // namespace

Result<Kernel> epilogue_kernel(const schedule::Plan& plan, const schedule::ExternCall& call,
                               std::vector<int>& buffers) {
  CHECK(call.results.size() == 1, "an epilogue of a call with several results");
  Kernel k;
  k.name = "epilogue_" + call.origin;
  k.origins = {call.origin};
  k.origins.insert(k.origins.end(), call.epilogue_origins.begin(), call.epilogue_origins.end());
  std::vector<schedule::PlanView> views;
  auto add = [&](const schedule::PlanView& view) {
    const schedule::PlanBuffer& buffer = plan.buffers[static_cast<std::size_t>(view.buffer)];
    k.buffers.push_back({"b" + std::to_string(views.size()), view.dtype, buffer.elements,
                         views.empty() ? loops::Buffer::Role::Output : loops::Buffer::Role::Input});
    buffers.push_back(view.buffer);
    views.push_back(view);
    CHECK(view.sizes == views[0].sizes, "an epilogue input of other sizes");
  };
  add(call.results[0]);
  for (const schedule::PlanView& view : call.epilogue_inputs) add(view);

  const std::vector<Axis> nest = axes(views, plan.symbols);
  auto variable = [](std::size_t i) { return "i" + std::to_string(i); };
  std::vector<SymExpr> elements;
  for (std::size_t v = 0; v < views.size(); ++v) {
    SymExpr element = views[v].offset;
    for (std::size_t i = 0; i < nest.size(); ++i) element = element + SymExpr::symbol(variable(i)) * nest[i].strides[v];
    elements.push_back(element);
  }
  TRY(const Scalar value, copied(call, elements, k));
  loops::Stmt body = loops::Store{0, elements[0], {}, value};
  for (std::size_t i = nest.size(); i-- > 0;)
    body = loops::Loop{variable(i), nest[i].size, loops::Mapping::Thread, i + 1 == nest.size(), {}, {std::move(body)}};
  k.body.push_back(std::move(body));
  const std::vector<std::string> broken = loops::verify(k);
  if (!broken.empty() && !plan.symbols.empty())
    return unsupported("codegen.epilogue",
                       "work after " + call.op->name + " that cannot be proved right for all sizes: " + broken[0],
                       {.node = call.origin});
  CHECK(broken.empty(), loops::print(k) + (broken.empty() ? "" : broken[0]));
  return k;
}

}  // namespace partita::codegen

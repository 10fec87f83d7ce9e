// auto_functionalized(op, ...) and auto_functionalized_v2: PyTorch's functional form of a call that writes its
// arguments. It gives the call's results, and then the new values of what it writes.
#include <algorithm>

#include <fmt/format.h>

#include "core/ops/record/call.h"
#include "core/ops/schema/resolve.h"
#include "core/ops/schema/resolve_parts.h"

namespace partita {
namespace {

constexpr std::string_view functional_form = "higher_order.auto_functionalized",
                           functional_form_2 = "higher_order.auto_functionalized_v2", torch_ops = "torch.ops.";

/// The operator that the first argument names, if its schema is known.
const Op* written_by_name(const Op* op, const Arg* argument) {
  const ArgName* name = argument ? argument->get<ArgName>() : nullptr;
  if (!name || !name->text.starts_with(torch_ops)) return nullptr;
  const std::string_view target = std::string_view(name->text).substr(torch_ops.size());
  return op->meaning ? Op::torch(target, op->meaning_hash, op->meaning) : Op::torch(target);
}

class FunctionalizedCall {
 public:
  FunctionalizedCall(Builder& build, const Node& node) : build_(build), node_(node) {}

  Arg operator()() {
    const Op* target = written_by_name(node_.op(), node_.args().empty() ? nullptr : &node_.args()[0]);
    const Schema* schema = target ? find_schema(target) : nullptr;
    if (!schema)
      throw Raise{unsupported("ops.unknown", fmt::format("{} of {}, of which nothing is known; `partita ops --missing` "
                                                         "says what would give it a meaning",
                                                         node_.op()->name, target ? target->name : "no operator"))};
    std::vector<Arg> clones;
    if (const Arg* bases = node_.kwarg("_all_bases"))
      for (const Arg& base : bases->get<ArgList>() ? bases->get<ArgList>()->items : std::vector<Arg>())
        clones.push_back(clone(base));
    Kwargs given;
    for (const SchemaArg& a : schema->args) {
      const Arg* value = node_.kwarg(a.name);
      if (a.is_write && node_.op()->name == functional_form_2)
        given.emplace_back(a.name, view_of_base(a, clones));
      else if (a.is_write && value)
        given.emplace_back(a.name, clones.emplace_back(clone(*value)));
      else if (value)
        given.emplace_back(a.name, *value);
    }
    Node* const made = build_.call(target, {}, std::move(given));
    std::vector<Arg> results;
    if (schema->returns.size() <= 1)
      results.push_back(schema->returns.empty() ? Arg() : Arg(made));
    else
      for (std::size_t i = 0; i < schema->returns.size(); ++i)
        results.emplace_back(build_.getitem(made, static_cast<std::int64_t>(i)));
    results.insert(results.end(), clones.begin(), clones.end());
    return Arg::tuple(std::move(results));
  }

 private:
  Arg clone(const Arg& value) {
    if (value.is_none()) return {};
    if (!value.node()) fail_unsupported(node_.op()->name + " of an operator that writes a list of tensors");
    return build_.call("aten.clone.default", {value});
  }

  const Arg* said(const SchemaArg& a, std::string_view what) const {
    return node_.kwarg(fmt::format("_{}_{}", a.name, what));
  }

  /// What the operator gets: a clone of a base, or the view of it that the keywords describe.
  Arg view_of_base(const SchemaArg& a, const std::vector<Arg>& clones) {
    const Arg* index = said(a, "base_index");
    if (!index) fail_unsupported(fmt::format("{} that does not say which base '{}' is", node_.op()->name, a.name));
    if (index->is_none()) return {};
    const auto* i = index->get<std::int64_t>();
    if (!i || *i < 0 || *i >= std::ssize(clones)) fail(fmt::format("there is no base for '{}'", a.name));
    const Arg& base = clones[static_cast<std::size_t>(*i)];
    if (said(a, "size"))
      return build_.call("aten.as_strided.default",
                         {base, *said(a, "size"), required(a, "stride"), required(a, "storage_offset")});
    if (said(a, "slice_dim"))
      return build_.call("aten.slice.Tensor",
                         {base, *said(a, "slice_dim"), required(a, "slice_start"), required(a, "slice_end")});
    return base;
  }

  Arg required(const SchemaArg& a, std::string_view what) const {
    const Arg* value = said(a, what);
    if (!value) fail(fmt::format("the keyword _{}_{} is missing", a.name, what));
    return *value;
  }

  Builder& build_;
  const Node& node_;
};

}  // namespace

bool is_auto_functionalized(const Op* op) {
  return op->name == functional_form || op->name == functional_form_2;
}

const Op* auto_functionalized(const Node& call) {
  return is_auto_functionalized(call.op()) && !call.args().empty() ? written_by_name(call.op(), &call.args()[0])
                                                                   : nullptr;
}

Arg call_auto_functionalized(Builder& build, const Node& node) {
  return FunctionalizedCall(build, node)();
}

}  // namespace partita

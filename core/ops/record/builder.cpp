#include <algorithm>

#include <fmt/format.h>

#include "core/ops/facts/requires_grad.h"
#include "core/ops/python/python_ops.h"
#include "core/ops/schema/resolve.h"
#include "core/sym/solve.h"

namespace partita {

namespace {

/// Writes the arguments as PyTorch's tracer does: positional ones up to the last that differs from its default,
/// keyword-only ones where they differ from theirs.
void normalize(const Schema& schema, Args& args, Kwargs& kwargs) {
  Args bound = unwrap(bind_arguments(schema, args, kwargs));
  args.clear();
  kwargs.clear();
  std::size_t positional = 0;
  for (std::size_t i = 0; i < bound.size(); ++i) {
    const SchemaArg& a = schema.args[i];
    // One number given for an int[2] argument is repeated.
    auto spread = [&](const Arg& value) {
      bool one =
          a.is_list && a.list_size > 0 && (value.get<std::int64_t>() || (value.node() && value.node()->meta.sym()));
      return one ? Arg::list(std::vector<Arg>(static_cast<std::size_t>(a.list_size), value)) : value;
    };
    bound[i] = spread(bound[i]);
    bool is_default = a.has_default && bound[i] == spread(a.default_value);
    if (a.keyword_only && !is_default) kwargs.emplace_back(a.name, bound[i]);
    if (!a.keyword_only && !is_default) positional = i + 1;
  }
  args.assign(bound.begin(), bound.begin() + static_cast<std::ptrdiff_t>(positional));
}

/// A symbol from a size or number a*s + b, as (a*s + b - b) // a; nullopt where there is none.
std::optional<Arg> solved(Builder& build, SymExpr symbol) {
  const auto at = [&](SymExpr e, std::int64_t value) {
    return e.substitute([&](const std::string&) { return std::optional(SymExpr(value)); });
  };
  const auto tells = [&](SymExpr e) {
    const auto found = solve(e, 0);
    return found && found->symbol == symbol.name();
  };
  for (Node* n : build.graph) {
    if (n == build.before) break;
    SymList held;
    if (const SymExpr* e = n->meta.sym()) held = {*e};
    if (const TensorMeta* t = n->meta.tensor()) held = t->sizes;
    const auto e = std::ranges::find_if(held, tells);
    if (e == held.end()) continue;
    const SymExpr b = at(*e, 0), a = at(*e, 1) - b;
    return build.call("_operator.floordiv", {build.call("_operator.sub", {build.size(*e), b.as_int()}), a.as_int()});
  }
  return std::nullopt;
}

/// The expression from a size that is a number more or less, where not all of its symbols are held by themselves: a
/// size of (s0//2) + 1 tells s0//2, and not s0.
std::optional<Arg> shifted(Builder& build, SymExpr e) {
  const auto is_held = [&](const std::string& name) {
    const SymExpr symbol = SymExpr::symbol(name);
    for (Node* n : build.graph) {
      if (n == build.before) return false;
      const SymExpr* number = n->meta.sym();
      const TensorMeta* t = n->meta.tensor();
      if ((number && *number == symbol) || (t && std::ranges::find(t->sizes, symbol) != t->sizes.end())) return true;
    }
    return false;
  };
  if (std::ranges::all_of(e.symbols(), is_held)) return std::nullopt;
  for (Node* n : build.graph) {
    if (n == build.before) break;
    const TensorMeta* t = n->meta.tensor();
    for (std::size_t d = 0; t && d < t->dim(); ++d)
      if (const SymExpr more = t->sizes[d] - e; more.is_int())
        return build.call("_operator.sub", {build.size(t->sizes[d]), more.as_int()});
  }
  return std::nullopt;
}

}  // namespace

Node* Builder::call(std::string_view op, Args args, Kwargs kwargs) {
  const Op* target;
  if (is_python_arithmetic(op)) {
    target = Op::get(OpKind::Function, op);
  } else if (find_schema(op)) {
    target = Op::torch(op);
  } else {
    ResolvedCall resolved = unwrap(resolve_overload(op, args, kwargs));
    target = resolved.op;
    args = std::move(resolved.args);
    kwargs = std::move(resolved.kwargs);
  }
  return call(target, std::move(args), std::move(kwargs));
}

Node* Builder::call(const Op* target, Args args, Kwargs kwargs) {
  if (target->kind == OpKind::Torch) normalize(*find_schema(target), args, kwargs);
  Meta meta = unwrap(infer(target, args, kwargs, *graph.shapes));
  Node* node = graph.create(target, std::move(args), std::move(kwargs), {}, before);
  node->meta = std::move(meta);
  node->origin = origin;
  if (call_requires_grad(*node)) set_requires_grad(*node, true);
  return node;
}

Node* Builder::getitem(Node* tuple, std::int64_t index) {
  return call("_operator.getitem", {tuple, Arg(index)});
}

Arg Builder::size(SymExpr e) {
  if (e.is_int()) return e.as_int();
  // Prefer a node that holds the expression itself; else read it from a tensor that has it as a size.
  Node* holder = nullptr;
  std::int64_t axis = -1;
  for (Node* n : graph) {
    if (n == before) break;
    if (const SymExpr* held = n->meta.sym(); held && *held == e) return n;
    const TensorMeta* t = n->meta.tensor();
    if (!t || holder) continue;
    for (std::size_t d = 0; d < t->dim(); ++d)
      if (t->sizes[d] == e) {
        holder = n;
        axis = static_cast<std::int64_t>(d);
        break;
      }
  }
  if (holder) return call("aten.sym_size.int", {holder, Arg(axis)});
  if (e.kind() != SymKind::Symbol)
    if (auto found = shifted(*this, e)) return *std::move(found);
  constexpr std::pair<SymKind, std::string_view> operators[] = {{SymKind::Add, "_operator.add"},
                                                                {SymKind::Mul, "_operator.mul"},
                                                                {SymKind::FloorDiv, "_operator.floordiv"},
                                                                {SymKind::Mod, "_operator.mod"},
                                                                {SymKind::Pow, "_operator.pow"},
                                                                {SymKind::Max, "torch.sym_max"},
                                                                {SymKind::Min, "torch.sym_min"},
                                                                {SymKind::TrueDiv, "_operator.truediv"},
                                                                {SymKind::Eq, "_operator.eq"},
                                                                {SymKind::Ne, "_operator.ne"},
                                                                {SymKind::Lt, "_operator.lt"},
                                                                {SymKind::Le, "_operator.le"},
                                                                {SymKind::And, "_operator.and_"},
                                                                {SymKind::Or, "_operator.or_"}};
  for (const auto& [kind, op] : operators) {
    if (kind != e.kind()) continue;
    Arg out = size(e.args()[0]);
    for (SymExpr a : e.args().subspan(1)) out = call(op, {out, size(a)});
    return out;
  }
  if (e.kind() == SymKind::Float) return e.as_float();
  if (e.kind() == SymKind::Call) {
    for (const auto& [function, op] : {std::pair("ToFloat", "torch.sym_float"),
                                       {"TruncToInt", "math.trunc"},
                                       {"FloorToInt", "math.floor"},
                                       {"CeilToInt", "math.ceil"}})
      if (e.name() == function) return call(op, {size(e.args()[0])});
    if (e.name() == "Where") return call("torch.sym_ite", {size(e.args()[0]), size(e.args()[1]), size(e.args()[2])});
  }
  if (auto symbol = e.kind() == SymKind::Symbol ? solved(*this, e) : std::nullopt) return *std::move(symbol);
  fail_unsupported(fmt::format("no node holds the symbolic size {}", e.str()));
}

Arg Builder::sizes(const SymList& list) {
  std::vector<Arg> items;
  for (SymExpr e : list) items.push_back(size(e));
  return Arg::list(std::move(items));
}

const TensorMeta& Builder::tensor(const Arg& node) {
  Node* n = node.node();
  if (!n) fail("a tensor is expected");
  const TensorMeta* t = n->meta.tensor();
  if (!t) fail(fmt::format("{} is not known to be a tensor; run fake propagation first", n->name()));
  return *t;
}

}  // namespace partita

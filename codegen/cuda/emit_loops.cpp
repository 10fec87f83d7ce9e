// Writes statements: loops, stores, running values and barriers.
#include <algorithm>

#include <fmt/format.h>

#include "codegen/cuda/emit_text.h"

namespace partita::codegen {

using loops::Accumulate;
using loops::Loop;
using loops::Mapping;
using loops::ScalarOp;
using loops::Stmt;
using loops::Store;

namespace {

template <class F>
bool any_within(const std::vector<Stmt>& body, const F& f) {
  return std::ranges::any_of(body, [&](const Stmt& s) {
    const auto* l = std::get_if<Loop>(&s);
    return f(s) || (l && any_within(l->body, f));
  });
}

bool has_thread_loop(const std::vector<Stmt>& body) {
  return any_within(body, [](const Stmt& s) {
    const auto* l = std::get_if<Loop>(&s);
    return l && l->mapping == Mapping::Thread;
  });
}

/// How the prelude calls the combination of a warp's or a block's values.
std::string_view word(ScalarOp combine) {
  switch (combine) {
    case ScalarOp::Add:
      return "sum";
    case ScalarOp::Mul:
      return "product";
    case ScalarOp::Min:
      return "min";
    case ScalarOp::Max:
      return "max";
    case ScalarOp::BitAnd:
      return "and";
    default:
      return "or";
  }
}

}  // namespace

std::string CudaEmitter::fresh(std::string base) {
  std::string name = base;
  for (int i = 2; !taken_.insert(name).second; ++i) name = fmt::format("{}{}", base, i);
  return name;
}

void CudaEmitter::open(const std::vector<const Loop*>& loops, bool once) {
  Scope scope{llvm::SmallBitVector(static_cast<unsigned>(deps_.loop_stores.size())), once, {}, {}};
  for (const Loop* l : loops) scope.loops.set(static_cast<unsigned>(deps_.loop_number.at(l)));
  scopes_.push_back(std::move(scope));
  current_ = scopes_.size() - 1;
}

/// Appends the innermost scope's lines to the scope around it, as the body of `head`; without one, as they are.
void CudaEmitter::close(const std::string& head) {
  const std::vector<std::string> lines = std::move(scopes_.back().lines);
  scopes_.pop_back();
  current_ = scopes_.size() - 1;
  const auto inside = [](const std::string& text) { return text.starts_with('#') ? text : "  " + text; };
  if (!head.empty()) line(head);
  for (const std::string& text : lines) line(head.empty() ? text : inside(text));
  if (!head.empty()) line("}");
}

std::size_t CudaEmitter::depth(loops::Scalar s) const {
  const Dependences::Node& d = dependence(s);
  for (std::size_t i = current_ + 1; i-- > 1;) {
    if (scopes_[i].loops.anyCommon(d.loops)) return i;
    if (d.buffers.none()) continue;
    if (scopes_[i].once) return i;
    for (const int l : scopes_[i].loops.set_bits())
      if (deps_.loop_stores[static_cast<std::size_t>(l)].anyCommon(d.buffers)) return i;
  }
  return 0;
}

void CudaEmitter::statements(const std::vector<Stmt>& body) {
  for (const Stmt& s : body) statement(s);
}

void CudaEmitter::statement(const Stmt& stmt) {
  if (std::holds_alternative<loops::Barrier>(stmt)) {
    if (!group_) return;
    cooperates_ = true;
    forget([](const Dependences::Node& d) { return d.buffers.any(); });
    return line("__syncthreads();");
  }
  // One thread of a group runs what is not in its Thread loops.
  const auto* l = std::get_if<Loop>(&stmt);
  const bool shared = group_ && !in_thread_;
  const bool once =
      shared && (l ? l->accumulators.empty() && !has_thread_loop({stmt}) : std::holds_alternative<Store>(stmt));
  if (once) {
    open({}, true);
    in_thread_ = true;
  }
  if (const auto* s = std::get_if<Store>(&stmt)) store(*s);
  if (const auto* r = std::get_if<loops::Reduce>(&stmt)) reduce(*r);
  if (l) loop(*l);
  if (once) {
    in_thread_ = false;
    close("if (threadIdx.x == 0) {");
  }
}

void CudaEmitter::loop(const Loop& l) {
  start(l);
  const bool by_threads = group_ && !in_thread_ && l.mapping == Mapping::Thread;
  // What a loop without iterations reads may have no memory.
  if (!l.extent.is(0)) {
    const std::string end = index(l.extent).as(Expression::Sum), type = narrow_ ? "int" : "long long";
    if (l.mapping == Mapping::Unroll) line("#pragma unroll");
    open({&l});
    in_thread_ = in_thread_ || by_threads;
    statements(l.body);
    if (by_threads) in_thread_ = false;
    if (by_threads && l.extent.is_int() && l.extent.as_int() <= group_threads_)
      close(l.extent.is(group_threads_)
                ? fmt::format("{{\n  const {} {} = threadIdx.x;", type, l.var)
                : fmt::format("if (const {0} {1} = threadIdx.x; {1} < {2}) {{", type, l.var, end));
    else if (by_threads)
      close(fmt::format("for ({0} {1} = threadIdx.x; {1} < {2}; {1} += {3}) {{", type, l.var, end, group_threads_));
    else
      close(fmt::format("for ({0} {1} = 0; {1} < {2}; ++{1}) {{", type, l.var, end));
  }
  complete(l);
}

void CudaEmitter::start(const Loop& l) {
  for (const int a : l.accumulators) {
    const loops::Accumulator& acc = accumulator(a);
    const std::int64_t integer = is_floating(acc.dtype) ? 0 : loops::integer_start(acc.dtype, acc.start);
    std::string& name = accumulator_names_[static_cast<std::size_t>(a)];
    name = fresh(fmt::format("{}_{}", word(acc.combine), a));
    line(fmt::format("{} {} = {};", cuda_type(acc.dtype), name, cuda_constant(acc.dtype, acc.start, integer).text));
    forget([&](const Dependences::Node& d) { return d.accumulators.test(static_cast<unsigned>(a)); });
  }
}

/// Combines what the threads of a group have.
void CudaEmitter::complete(const Loop& l) {
  if (!group_ || in_thread_) return;
  for (const int a : l.accumulators) {
    const auto reduces = [&](const Stmt& s) {
      const auto* r = std::get_if<loops::Reduce>(&s);
      return r && r->accumulator == a;
    };
    bool by_threads = l.mapping == Mapping::Thread, by_all = false;
    if (!by_threads) {
      by_threads = any_within(l.body, [&](const Stmt& s) {
        const auto* inner = std::get_if<Loop>(&s);
        return inner && inner->mapping == Mapping::Thread && any_within(inner->body, reduces);
      });
      const auto outside = [&](const auto& self, const std::vector<Stmt>& body) -> bool {
        return std::ranges::any_of(body, [&](const Stmt& s) {
          const auto* inner = std::get_if<Loop>(&s);
          return reduces(s) || (inner && inner->mapping != Mapping::Thread && self(self, inner->body));
        });
      };
      by_all = outside(outside, l.body);
      if (any_within(l.body, [&](const Stmt& s) { return std::holds_alternative<Store>(s); }) && !by_threads)
        refuse("a serial loop of a group that reduces and stores");
    }
    if (by_threads && by_all) refuse("a reduction within and outside of a group's threads");
    if (!by_threads) continue;
    const std::string& name = accumulator_names_[static_cast<std::size_t>(a)];
    line(fmt::format("{} = block_{}({});", name, word(accumulator(a).combine), name));
    cooperates_ = true;
  }
}

void CudaEmitter::store(const Store& s) {
  const loops::Buffer& b = buffer(s.buffer);
  const Expression stored = cuda_cast(value(s.value), kernel_.scalars.dtype(s.value), b.dtype);
  const std::string at = element(s.buffer, s.element, s.index);
  switch (s.accumulate) {
    case Accumulate::None:
      line(fmt::format("{} = {};", at, stored.text));
      break;
    case Accumulate::Plain:
      if (b.dtype == DType::Float32 || b.dtype == DType::Float64)
        line(fmt::format("{} += {};", at, stored.text));
      else if (b.dtype == DType::Bool)
        line(fmt::format("{} = Add({} != 0, {});", at, at, stored.text));
      else
        line(fmt::format("{} = sum_of({}, {});", at, at, stored.text));
      break;
    case Accumulate::Atomic:
      line(fmt::format("atomic_add({}&{}, {});", b.dtype == DType::Bool ? "(bool*)" : "", at, stored.text));
      break;
  }
  forget([&](const Dependences::Node& d) { return d.buffers.test(static_cast<unsigned>(s.buffer)); });
}

void CudaEmitter::reduce(const loops::Reduce& r) {
  const loops::Accumulator& acc = accumulator(r.accumulator);
  const std::string& name = accumulator_names_[static_cast<std::size_t>(r.accumulator)];
  const Expression v = cuda_cast(value(r.value), kernel_.scalars.dtype(r.value), acc.dtype);
  const bool floating = acc.dtype == DType::Float32 || acc.dtype == DType::Float64;
  if (acc.combine == ScalarOp::Add && floating)
    line(fmt::format("{} += {};", name, v.text));
  else if (acc.combine == ScalarOp::Mul && floating)
    line(fmt::format("{} *= {};", name, v.text));
  else
    line(fmt::format("{} = {};", name, cuda_operation(acc.combine, acc.dtype, {{name}, v}).text));
}

}  // namespace partita::codegen

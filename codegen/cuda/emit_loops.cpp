// Writes statements: loops, stores, running values and barriers.
#include <algorithm>
#include <iterator>
#include <sstream>

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

bool any_within(const std::vector<Stmt>& body, const auto& f) {
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

/// Is it a word of C++, or what the prelude calls something?
bool is_word(const std::string& name) {
  static const std::set<std::string, std::less<>> words = [] {
    std::set<std::string, std::less<>> found = {"INFINITY", "NAN", "KernelFault"};
    std::istringstream cpp(
        "alignas alignof and asm auto bitand bitor bool break case catch char class compl const constexpr continue "
        "decltype default delete do double else enum explicit export extern false float for friend goto if inline int "
        "long main mutable namespace new noexcept not nullptr operator or private protected public register requires "
        "return short signed sizeof static struct switch template this throw true try typedef typeid typename union "
        "unsigned using virtual void volatile while xor");
    found.insert(std::istream_iterator<std::string>(cpp), std::istream_iterator<std::string>());
    std::string word;
    for (const char c : cuda_prelude()) {
      if (std::isalnum(static_cast<unsigned char>(c)) || c == '_') {
        word += c;
        continue;
      }
      if (!word.empty() && (c == '(' || c == '<' || c == '{')) found.insert(word);
      word.clear();
    }
    return found;
  }();
  return words.contains(name);
}

/// How the prelude calls the combination of a warp's or a block's values.
std::string_view word(ScalarOp combine) {
  if (combine == ScalarOp::Add) return "sum";
  if (combine == ScalarOp::Mul) return "product";
  if (combine == ScalarOp::Min) return "min";
  if (combine == ScalarOp::Max) return "max";
  if (combine == ScalarOp::BitAnd) return "and";
  return "or";
}

}  // namespace

/// A name that no other has, nor the prelude or C++.
std::string CudaEmitter::fresh(std::string base) {
  std::string name = base;
  for (int i = 2; is_word(name) || !taken_.insert(name).second; ++i) name = fmt::format("{}_{}", base, i);
  return name;
}

void CudaEmitter::line(std::string text) {
  scopes_[current_].lines.push_back({std::move(text), {met_.begin(), met_.end()}});
  met_.clear();
}

void CudaEmitter::open(const std::vector<const Loop*>& loops, bool once) {
  Scope scope{llvm::SmallBitVector(static_cast<unsigned>(deps_.loop_stores.size())), once, {}, {}};
  for (const Loop* l : loops) scope.loops.set(static_cast<unsigned>(deps_.loop_number.at(l)));
  scopes_.push_back(std::move(scope));
  current_ = scopes_.size() - 1;
}

/// Appends the innermost scope's lines to the scope around it, as the body of `head`, which may have several lines;
/// without one, as they are.
void CudaEmitter::close(const std::string& head) {
  std::vector<Line> lines = std::move(scopes_.back().lines);
  scopes_.pop_back();
  current_ = scopes_.size() - 1;
  if (lines.empty()) return;
  const bool braces = head.ends_with('{') && (lines.size() > 1 || head == "{" || lines[0].text.starts_with("const "));
  for (std::size_t at = 0, end = 0; at < head.size(); at = end + 1) {
    end = std::min(head.find('\n', at), head.size());
    const bool last = end == head.size();
    line(head.substr(at, end - at - (last && !braces ? 2 : 0)));
  }
  for (Line& l : lines) {
    if (!head.empty() && !l.text.starts_with('#')) l.text = "  " + l.text;
    scopes_[current_].lines.push_back(std::move(l));
  }
  if (braces) line("}");
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
  // One thread of a group runs what is not in its Thread loops.
  const auto by_one_thread = [&](const Stmt& stmt) {
    const auto* l = std::get_if<Loop>(&stmt);
    return l ? l->accumulators.empty() && !has_thread_loop({stmt}) : std::holds_alternative<Store>(stmt);
  };
  for (std::size_t i = 0; i < body.size(); ++i) {
    if (!group_ || in_thread_ || !by_one_thread(body[i])) {
      statement(body[i]);
      continue;
    }
    std::size_t end = i + 1;
    while (end < body.size() && by_one_thread(body[end])) ++end;
    open({}, true);
    in_thread_ = true;
    for (; i < end; ++i) statement(body[i]);
    --i;
    in_thread_ = false;
    close(group_is_warp_ ? "if (lane == 0) {" : "if (threadIdx.x == 0) {");
  }
}

void CudaEmitter::statement(const Stmt& stmt) {
  if (const auto* s = std::get_if<Store>(&stmt)) return store(*s);
  if (const auto* r = std::get_if<loops::Reduce>(&stmt)) return reduce(*r);
  if (const auto* l = std::get_if<Loop>(&stmt)) return loop(*l);
  if (!group_ || !barriers_) return;
  cooperates_ = true;
  forget([](const Dependences::Node& d) { return d.buffers.any(); });
  line("__syncthreads();");
}

void CudaEmitter::loop(const Loop& l) {
  start(l);
  // What a loop without iterations reads may have no memory.
  if (l.extent.is(0)) {
  } else if (group_ && !in_thread_ && l.mapping == Mapping::Thread) {
    group_loop(l);
  } else {
    const std::string end = index(l.extent).as(Expression::Sum);
    if (l.mapping == Mapping::Unroll) line("#pragma unroll");
    open({&l});
    statements(l.body);
    close(fmt::format("for ({0} {1} = 0; {1} < {2}; ++{1}) {{", index_type(), l.var, end));
  }
  complete(l);
}

/// A loop that the threads of a group share.
void CudaEmitter::group_loop(const Loop& l) {
  const bool row = row_loops_.contains(&l);
  const int lanes = row ? row_lanes_ : 1;
  const std::string end = index(l.extent).as(Expression::Sum), thread = group_is_warp_ ? "lane" : "threadIdx.x";
  const std::string first = lanes > 1 ? fresh("v" + l.var.substr(1)) : l.var;
  const auto times = [](const std::string& text, int by) {
    return by == 1 ? text : fmt::format("{} * {}", text.find(' ') == std::string::npos ? text : "(" + text + ")", by);
  };
  const bool whole = l.extent.is_int() && l.extent.as_int() % lanes == 0;
  const std::string left = whole ? "" : fmt::format("{} - {}", end, first);
  in_thread_ = true;
  open(lanes > 1 ? std::vector<const Loop*>{} : std::vector<const Loop*>{&l});
  if (row && row_iterations_ > 0) {
    const bool exact = l.extent.is(std::int64_t{group_threads_} * lanes * row_iterations_);
    const std::string at = row_iterations_ == 1 ? thread : fmt::format("turn * {} + {}", group_threads_, thread);
    const std::string begin = fmt::format("const {} {} = {}", index_type(), first, times(at, lanes));
    const bool in_head = row_iterations_ == 1 && !exact;
    if (!in_head) line(begin + ";");
    if (!in_head && !exact) line(fmt::format("if ({} >= {}) break;", first, end));
    lane_loop(l, lanes, left, first);
    close(row_iterations_ > 1 ? fmt::format("#pragma unroll\nfor (int turn = 0; turn < {}; ++turn) {{", row_iterations_)
          : exact             ? "{"
                              : fmt::format("if ({}; {} < {}) {{", begin, first, end));
  } else {
    lane_loop(l, lanes, left, first);
    close(fmt::format("for ({0} {1} = {2}; {1} < {3}; {1} += {4}) {{", index_type(), first, times(thread, lanes), end,
                      std::int64_t{group_threads_} * lanes));
  }
  in_thread_ = false;
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
    line(fmt::format("{} = {}_{}({});", name, group_is_warp_ ? "warp" : "block", word(accumulator(a).combine), name));
    cooperates_ = true;
  }
}

void CudaEmitter::store(const Store& s) {
  const loops::Buffer& b = buffer(s.buffer);
  const Expression stored = cuda_cast(value(s.value), kernel_.scalars.dtype(s.value), b.dtype);
  if (lanes_ && s.accumulate == Accumulate::None && lane_store(s, stored.text)) {
    return forget([&](const Dependences::Node& d) { return d.buffers.test(static_cast<unsigned>(s.buffer)); });
  }
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

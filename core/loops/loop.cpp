// The printer and the verifier of kernels. The verifier checks names, dtypes and the nesting of loops, then looks for
// accesses of different threads without a barrier between them.
#include "core/loops/loop.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace partita::loops {

std::int64_t integer_start(DType dtype, double start) {
  if (dtype == DType::UInt64) return start >= 0x1p64 ? -1 : static_cast<std::int64_t>(start);
  if (start >= 0x1p63) return std::numeric_limits<std::int64_t>::max();
  return static_cast<std::int64_t>(start);
}

namespace {

template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};

std::string_view role_name(Buffer::Role role) {
  switch (role) {
    case Buffer::Role::Input:
      return "in";
    case Buffer::Role::Output:
      return "out";
    case Buffer::Role::Scratch:
      return "scratch";
  }
  return "";
}

std::string_view scope_name(const Buffer& b) {
  return b.role == Buffer::Role::Scratch && b.scope == Buffer::Scope::Block ? "shared " : "";
}

class Printer {
 public:
  explicit Printer(const Kernel& kernel) : k_(kernel), uses_(kernel.scalars.nodes().size(), 0) {
    for (const ScalarNode& n : k_.scalars.nodes())
      for (Scalar a : n.args)
        if (a.id >= 0) ++uses_[static_cast<std::size_t>(a.id)];
    count(k_.body);
  }

  LinkedText print() {
    std::vector<std::string> buffers;
    for (const Buffer& b : k_.buffers)
      buffers.push_back(fmt::format("{}{}{} {}: {}[{}]", scope_name(b), role_name(b.role),
                                    b.streamed ? " streamed" : "", b.name, short_name(b.dtype), b.elements.str()));
    out_.add(fmt::format("kernel {}({})", k_.name, fmt::join(buffers, ", ")));
    if (!k_.origins.empty()) out_.add(fmt::format("  # {}", fmt::join(k_.origins, ", ")));
    body(k_.body, 1);
    return std::move(out_);
  }

 private:
  void count(const std::vector<Stmt>& statements) {
    for (const Stmt& s : statements)
      std::visit(Overloaded{[&](const Store& s) { ++uses_[static_cast<std::size_t>(s.value.id)]; },
                            [&](const Reduce& r) { ++uses_[static_cast<std::size_t>(r.value.id)]; },
                            [](const Barrier&) {}, [&](const Loop& l) { count(l.body); }},
                 s);
  }

  const std::string& buffer(int i) const { return k_.buffers[static_cast<std::size_t>(i)].name; }

  void line(int depth, const std::string& text) {
    out_.add(std::string(static_cast<std::size_t>(2 * depth), ' ') + text, {met_.begin(), met_.end()});
    met_.clear();
  }

  void body(const std::vector<Stmt>& statements, int depth) {
    std::set<int> outer = named_;
    for (const Stmt& s : statements)
      std::visit(
          Overloaded{[&](const Store& s) {
                       name_shared(s.value, depth);
                       std::string element = s.element.str();
                       if (s.index.id >= 0) {
                         name_shared(s.index, depth);
                         element = s.element.is(0) ? text(s.index) : element + " + " + text(s.index);
                       }
                       note(s.value);
                       line(depth, fmt::format("{}{}[{}] {} {}", s.accumulate == Accumulate::Atomic ? "atomic " : "",
                                               buffer(s.buffer), element,
                                               s.accumulate == Accumulate::None ? "=" : "+=", text(s.value)));
                     },
                     [&](const Reduce& r) {
                       name_shared(r.value, depth);
                       note(r.value);
                       const Accumulator& a = k_.accumulators[static_cast<std::size_t>(r.accumulator)];
                       line(depth, fmt::format("a{} = {}(a{}, {})", r.accumulator, name(a.combine), r.accumulator,
                                               text(r.value)));
                     },
                     [&](const Barrier&) { line(depth, "barrier"); },
                     [&](const Loop& l) {
                       for (int i : l.accumulators) {
                         const Accumulator& a = k_.accumulators[static_cast<std::size_t>(i)];
                         line(depth, fmt::format("a{}: {} = {}", i, short_name(a.dtype), a.start));
                       }
                       const std::string_view mapped = l.mapping == Mapping::Serial ? "" : loops::name(l.mapping);
                       line(depth, fmt::format("for {} in {}{}{}{}:", l.var, l.extent.str(), mapped.empty() ? "" : " ",
                                               mapped, l.vector ? " vector" : ""));
                       body(l.body, depth + 1);
                     }},
          s);
    named_ = std::move(outer);
  }

  /// Gives a line of its own to each value that is used more than once; arguments come first.
  void name_shared(Scalar s, int depth) {
    const ScalarNode& n = k_.scalars[s];
    if (named_.contains(s.id)) return;
    for (Scalar a : n.args)
      if (a.id >= 0) name_shared(a, depth);
    if (uses_[static_cast<std::size_t>(s.id)] < 2 || n.op == ScalarOp::Const || n.op == ScalarOp::Input ||
        n.op == ScalarOp::Index)
      return;
    line(depth, fmt::format("t{} = {}", s.id, expression(s)));
    named_.insert(s.id);
  }

  std::string text(Scalar s) const { return named_.contains(s.id) ? fmt::format("t{}", s.id) : expression(s); }

  /// The line is of the node that the value is computed for.
  void note(Scalar s) const {
    const ScalarOp op = k_.scalars[s].op;
    const int source = k_.scalars.sources()[static_cast<std::size_t>(s.id)];
    if (source >= 0 && op != ScalarOp::Const && op != ScalarOp::Input && op != ScalarOp::Index) met_.insert(source);
  }

  std::string expression(Scalar s) const {
    const ScalarNode& n = k_.scalars[s];
    note(s);
    switch (n.op) {
      case ScalarOp::Const:
        return is_floating(n.dtype) ? fmt::format("{}", n.real) : fmt::format("{}", n.integer);
      case ScalarOp::Input:
        return fmt::format("a{}", n.slot);
      case ScalarOp::Index:
        return fmt::format("({})", n.index.str());
      case ScalarOp::Load:
        if (n.args[0].id < 0) return fmt::format("{}[{}]", buffer(n.slot), n.index.str());
        return fmt::format("{}[{}{}]", buffer(n.slot), n.index.is(0) ? "" : n.index.str() + " + ", text(n.args[0]));
      case ScalarOp::Within:
        return fmt::format("Within({}, {})", text(n.args[0]), n.index.str());
      case ScalarOp::Cast:
      case ScalarOp::Bitcast:
        return fmt::format("{}.{}({})", name(n.op), short_name(n.dtype), text(n.args[0]));
      default: {
        std::vector<std::string> args;
        for (Scalar a : n.args)
          if (a.id >= 0) args.push_back(text(a));
        return fmt::format("{}({})", name(n.op), fmt::join(args, ", "));
      }
    }
  }

  const Kernel& k_;
  std::vector<int> uses_;
  std::set<int> named_;
  mutable std::set<int> met_;  ///< sources of what the next line says
  LinkedText out_;
};

class Verifier {
 public:
  explicit Verifier(const Kernel& kernel) : k_(kernel) {}

  std::vector<std::string> run() {
    for (const Buffer& b : k_.buffers) {
      if (b.streamed && b.role != Buffer::Role::Output) fault(b.name + " is streamed but not an output");
      if (b.scope == Buffer::Scope::Block && b.role != Buffer::Role::Scratch)
        fault(b.name + " is shared but not scratch");
    }
    body(k_.body);
    if (broken_.empty()) find_races();  // which takes buffers and values that exist
    return std::move(broken_);
  }

 private:
  void fault(std::string text) {
    if (std::ranges::find(broken_, text) == broken_.end()) broken_.push_back(std::move(text));
  }
  bool is_buffer(int i) const { return i >= 0 && static_cast<std::size_t>(i) < k_.buffers.size(); }
  const Buffer& buffer(int i) const { return k_.buffers[static_cast<std::size_t>(i)]; }

  void expression(SymExpr e, std::string_view where) {
    for (const std::string& s : e.symbols())
      if (s.starts_with('i') && !variables_.contains(s)) fault(fmt::format("{} uses {} outside of its loop", where, s));
  }

  void value(Scalar s, std::string_view where) {
    if (s.id < 0 || static_cast<std::size_t>(s.id) >= k_.scalars.nodes().size())
      return fault(fmt::format("{} is not a value", where));
    if (!seen_.insert(s.id).second) return;
    const ScalarNode& n = k_.scalars[s];
    if (n.op == ScalarOp::Index || n.op == ScalarOp::Load) expression(n.index, where);
    if (n.op == ScalarOp::Load) {
      if (!is_buffer(n.slot))
        fault(fmt::format("{} loads from unknown buffer {}", where, n.slot));
      else if (buffer(n.slot).streamed)
        fault(fmt::format("{} loads from {}, which is streamed", where, buffer(n.slot).name));
      else if (buffer(n.slot).dtype != n.dtype)
        fault(fmt::format("{} loads {} from {}", where, short_name(n.dtype), buffer(n.slot).name));
    }
    if (n.op == ScalarOp::Input && !complete_.contains(n.slot))
      fault(fmt::format("{} uses accumulator a{}, which is not complete", where, n.slot));
    for (Scalar a : n.args)
      if (a.id >= 0) value(a, where);
  }

  void body(const std::vector<Stmt>& statements) {
    std::set<int> before = complete_;
    for (const Stmt& s : statements)
      std::visit(
          Overloaded{[&](const Store& s) { store(s); }, [&](const Reduce& r) { reduce(r); },
                     [&](const Barrier&) { barrier(); }, [&](const Loop& l) { loop(l, statements.size() == 1); }},
          s);
    complete_ = std::move(before);
  }

  void store(const Store& s) {
    if (!is_buffer(s.buffer)) return fault(fmt::format("store to unknown buffer {}", s.buffer));
    const Buffer& b = buffer(s.buffer);
    std::string where = "store to " + b.name;
    if (b.role == Buffer::Role::Input) fault(where + ", an input");
    expression(s.element, where);
    seen_.clear();
    if (s.index.id >= 0) value(s.index, where);
    value(s.value, where);
    if (s.value.id >= 0 && static_cast<std::size_t>(s.value.id) < k_.scalars.nodes().size() &&
        k_.scalars.dtype(s.value) != b.dtype)
      fault(fmt::format("{} of {}, not {}", where, short_name(k_.scalars.dtype(s.value)), short_name(b.dtype)));
    if (s.accumulate == Accumulate::Plain)
      for (const Loop* l : around_)
        if (l->parallel() && shared_across(b, *l))
          fault(fmt::format("{} adds in {} loop {}, but not atomically", where, name(l->mapping), l->var));
  }

  void reduce(const Reduce& r) {
    std::string where = fmt::format("reduction to a{}", r.accumulator);
    if (r.accumulator < 0 || static_cast<std::size_t>(r.accumulator) >= k_.accumulators.size())
      return fault(where + ", unknown");
    if (!running_.contains(r.accumulator)) fault(where + " outside of its loop");
    seen_.clear();
    value(r.value, where);
    if (r.value.id >= 0 && k_.scalars.dtype(r.value) != k_.accumulators[static_cast<std::size_t>(r.accumulator)].dtype)
      fault(where + " of the wrong dtype");
  }

  void barrier() {
    const bool in_group = !around_.empty() && around_[0]->mapping == Mapping::Block;
    for (const Loop* l : around_)
      if (l->mapping == Mapping::Thread || l->vector || !in_group) return fault("a barrier within loop " + l->var);
  }

  void loop(const Loop& l, bool alone) {
    if (!l.var.starts_with('i')) fault("loop variable " + l.var + " is not named i...");
    if (!all_variables_.insert(l.var).second) fault("loop variable " + l.var + " is used twice");
    mapping(l, alone);
    expression(l.extent, "extent of " + l.var);
    if (l.vector && std::ranges::any_of(l.body, [](const Stmt& s) { return std::holds_alternative<Loop>(s); }))
      fault("vector loop " + l.var + " has a loop within");
    std::set<int> running = running_;
    for (int a : l.accumulators) {
      if (a < 0 || static_cast<std::size_t>(a) >= k_.accumulators.size())
        fault(fmt::format("loop {} runs unknown a{}", l.var, a));
      if (!running_.insert(a).second) fault(fmt::format("a{} is started twice", a));
    }
    variables_.insert(l.var);
    around_.push_back(&l);
    body(l.body);
    around_.pop_back();
    variables_.erase(l.var);
    running_ = std::move(running);
    complete_.insert(l.accumulators.begin(), l.accumulators.end());
  }

  void mapping(const Loop& l, bool alone) {
    if (l.mapping == Mapping::Unroll && !l.extent.is_int())
      fault(fmt::format("loop {} is unrolled {} times, which is not a number", l.var, l.extent.str()));
    if (!l.parallel()) return;
    const std::string where = fmt::format("{} loop {}", name(l.mapping), l.var);
    const bool in_group = !around_.empty() && around_[0]->mapping == Mapping::Block;
    const bool in_thread = !around_.empty() && around_.back()->mapping == Mapping::Thread;
    const bool nested = in_thread && alone && around_.back()->accumulators.empty();
    const bool in_its_place = around_.empty() || (l.mapping == Mapping::Thread && (nested || (in_group && !in_thread)));
    if (!in_its_place) fault(where + " is neither outermost nor a group's");
    if (!in_group && !l.accumulators.empty()) fault(where + " reduces, but its threads are not a group");
  }

  /// Do the iterations of a parallel loop see the same memory?
  static bool shared_across(const Buffer& b, const Loop& l) {
    if (b.role != Buffer::Role::Scratch) return true;
    return b.scope == Buffer::Scope::Block && l.mapping == Mapping::Thread;
  }

  /// What a statement does to a buffer.
  struct Access {
    bool loads = false, stores = false, adds = false;  ///< adds: atomically
    bool parallel = false;                             ///< by the threads of a parallel loop
    std::string by;
  };
  using Accesses = std::map<int, Access>;

  void find_races() {
    Accesses since;
    region(k_.body, since, nullptr);
    for (std::size_t b = 0; b < k_.buffers.size(); ++b)
      if (k_.buffers[b].role == Buffer::Role::Scratch && homes_[static_cast<int>(b)].size() > 1)
        fault(fmt::format("scratch {} is used beyond its scope", k_.buffers[b].name));
  }

  /// Checks statements that run in sequence, except for the threads of parallel loops among them. `since`: the accesses
  /// since the last barrier.
  void region(const std::vector<Stmt>& statements, Accesses& since, const Loop* group) {
    for (const Stmt& s : statements) {
      const Loop* l = std::get_if<Loop>(&s);
      if (std::holds_alternative<Barrier>(s)) {
        since.clear();
      } else if (group && l && !l->parallel()) {
        // The end of one iteration is followed by the beginning of the next.
        for (int iteration = 0; iteration < 2; ++iteration) region(l->body, since, group);
      } else {
        Accesses now;
        collect(s, group, group, now);
        for (auto& [b, access] : now) {
          if (l) access.by = "loop " + l->var;
          access.parallel = l && l->parallel();
          if (buffer(b).role == Buffer::Role::Scratch && !(group && buffer(b).scope == Buffer::Scope::Block)) continue;
          meet(b, since[b], access);
        }
      }
      if (l && l->mapping == Mapping::Block) {
        Accesses within;
        region(l->body, within, l);
      }
    }
  }

  void meet(int b, Access& before, const Access& now) {
    const bool conflict = (before.stores && (now.loads || now.stores || now.adds)) ||
                          (now.stores && (before.loads || before.adds)) || (before.adds && now.loads) ||
                          (before.loads && now.adds);
    if (conflict && (before.parallel || now.parallel))
      fault(fmt::format("no barrier between {} and {}, which both use {}", before.by, now.by, buffer(b).name));
    before.loads |= now.loads;
    before.stores |= now.stores;
    before.adds |= now.adds;
    before.parallel |= now.parallel;
    before.by = now.by;
  }

  /// `group`, `thread`: the loops that scratch of either scope belongs to.
  void collect(const Stmt& stmt, const Loop* group, const Loop* thread, Accesses& to) {
    std::set<int> seen;
    if (const auto* s = std::get_if<Store>(&stmt)) {
      loads(s->value, group, thread, seen, to);
      loads(s->index, group, thread, seen, to);
      Access& access = to[s->buffer];
      (s->accumulate == Accumulate::Atomic ? access.adds : access.stores) = true;
      access.loads |= s->accumulate == Accumulate::Plain;
      access.by = "a store";
      note_home(s->buffer, group, thread);
    } else if (const auto* r = std::get_if<Reduce>(&stmt)) {
      loads(r->value, group, thread, seen, to);
    } else if (const auto* l = std::get_if<Loop>(&stmt)) {
      for (const Stmt& inner : l->body)
        collect(inner, l->mapping == Mapping::Block ? l : group, l->parallel() ? l : thread, to);
    }
  }

  void loads(Scalar s, const Loop* group, const Loop* thread, std::set<int>& seen, Accesses& to) {
    if (s.id < 0 || !seen.insert(s.id).second) return;
    const ScalarNode& n = k_.scalars[s];
    if (n.op == ScalarOp::Load) {
      Access& access = to[n.slot];
      access.loads = true;
      if (access.by.empty()) access.by = "a load";
      note_home(n.slot, group, thread);
    }
    for (Scalar a : n.args) loads(a, group, thread, seen, to);
  }

  void note_home(int b, const Loop* group, const Loop* thread) {
    if (buffer(b).role != Buffer::Role::Scratch) return;
    const bool shared = buffer(b).scope == Buffer::Scope::Block;
    homes_[b].insert(shared ? group : thread);
    if (shared && !group) fault(fmt::format("scratch {} is shared, but outside of block loops", buffer(b).name));
  }

  const Kernel& k_;
  std::vector<const Loop*> around_;
  std::set<std::string> variables_, all_variables_;
  std::set<int> running_, complete_;
  std::set<int> seen_;  // values of the present statement: one that is used twice is looked at once
  std::map<int, std::set<const Loop*>> homes_;  // of scratch
  std::vector<std::string> broken_;
};

}  // namespace

std::string_view name(Mapping mapping) {
  constexpr std::string_view names[] = {"serial", "unroll", "thread", "block"};
  return names[static_cast<std::size_t>(mapping)];
}

void LinkedText::add(std::string_view line, std::vector<int> sources) {
  text += line;
  text += '\n';
  lines.push_back(std::move(sources));
}

std::string print(const Kernel& kernel) {
  return print_linked(kernel).text;
}

LinkedText print_linked(const Kernel& kernel) {
  return Printer(kernel).print();
}

std::vector<std::string> verify(const Kernel& kernel) {
  return Verifier(kernel).run();
}

}  // namespace partita::loops

// Interprets the loop IR, one element at a time, with the kernels of scalar_eval.cpp. Parallel loops run in reverse
// order. For each element of a written buffer a race detector keeps who accessed it last, after which barrier.
#include "core/loops/execute.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <unordered_map>

#include <fmt/format.h>

#include "core/base/check.h"
#include "core/loops/block_loop.h"
#include "core/loops/scalar_eval.h"
#include "core/loops/scalar_math.h"
#include "core/tensor/convert.h"

namespace partita::loops {
namespace {

using std::int64_t;

/// Room for one element of any dtype.
struct alignas(16) Cell {
  std::byte bytes[16];
};

/// An index expression whose variables are pointers into a table of values.
struct Formula {
  SymKind kind = SymKind::Int;
  int64_t value = 0;
  const int64_t* variable = nullptr;
  std::vector<Formula> args;

  int64_t operator()() const {
    switch (kind) {
      case SymKind::Int:
        return value;
      case SymKind::Symbol:
        return *variable;
      case SymKind::Add: {
        int64_t sum = 0;
        for (const Formula& f : args) sum += f();
        return sum;
      }
      case SymKind::Mul: {
        int64_t product = 1;
        for (const Formula& f : args) product *= f();
        return product;
      }
      case SymKind::FloorDiv:
        return device::floor_quotient(args[0](), nonzero(args[1]()));
      case SymKind::Mod:
        return device::floor_rest(args[0](), nonzero(args[1]()));
      case SymKind::Min:
      case SymKind::Max: {
        int64_t best = args[0]();
        for (const Formula& f : args) best = kind == SymKind::Min ? std::min(best, f()) : std::max(best, f());
        return best;
      }
      default:
        CHECK(false, "an index expression of an unsupported kind");
    }
  }
};

/// The position of an access in the run. Two accesses are ordered if a barrier of the kernel lies between them, if one
/// thread does both, or if one group does both and a barrier of the group lies between them.
struct Moment {
  std::uint16_t phase = 0, step = 0;    ///< barriers of the kernel, of the group, so far
  std::uint32_t group = 0, thread = 0;  ///< iterations of outermost parallel loops, of a group's Thread loops; 0: none
  bool operator==(const Moment&) const = default;
};
constexpr std::uint32_t several = UINT32_MAX;  ///< in place of a group or a thread: more than one of them

bool ordered(const Moment& before, const Moment& now) {
  if (before.phase != now.phase) return true;
  if (before.group != now.group) return false;
  return before.step != now.step || before.thread == now.thread;
}

/// An iteration of a vector loop.
struct Lane {
  std::uint32_t loop = 0, lane = 0;  ///< runs of vector loops so far, 0: none; and the iteration
};

/// Finds accesses to one element that are not ordered.
class RaceDetector {
 public:
  enum class Kind : std::uint8_t {
    Load,
    Store,
    Update,  ///< Accumulate::Plain
    Add,     ///< Accumulate::Atomic
  };

  explicit RaceDetector(const Kernel& kernel) : k_(kernel), cells_(kernel.buffers.size()) { watch_stored(kernel.body); }

  void note(const Moment& now, Lane lane, int buffer, int64_t element, Kind kind) {
    std::vector<Element>& cells = cells_[static_cast<std::size_t>(buffer)];
    if (cells.empty()) return;
    Element& cell = cells[static_cast<std::size_t>(element)];
    const Buffer& b = k_.buffers[static_cast<std::size_t>(buffer)];
    if (b.role == Buffer::Role::Scratch) {
      const bool own = cell.written && cell.writer.group == now.group &&
                       (b.scope == Buffer::Scope::Block || cell.writer.thread == now.thread);
      if (!own && kind != Kind::Store)
        throw Raise{{Fault::Internal, "loops.scratch",
                     fmt::format("{}: {}[{}] is read, but its owner did not store it", k_.name, b.name, element)}};
      if (!own) cell = {};
    }
    const bool lanes_meet = kind == Kind::Load && cell.written && cell.lane.loop != 0 && cell.lane.loop == lane.loop &&
                            cell.lane.lane != lane.lane;
    const bool alike = (kind == Kind::Load && !cell.adds) || (kind == Kind::Add && !cell.loads);
    if (lanes_meet || (cell.written && !ordered(cell.writer, now)) ||
        ((cell.loads || cell.adds) && !alike && !ordered(cell.shared, now)))
      throw Raise{{Fault::Internal, "loops.race",
                   fmt::format("{}: two {} meet at {}[{}] with no barrier between them", k_.name,
                               lanes_meet ? "lanes" : "threads", b.name, element)}};
    if (kind == Kind::Store || kind == Kind::Update) {
      cell.writer = now;
      cell.lane = lane;
      cell.written = true;
      return;
    }
    if ((!cell.loads && !cell.adds) || (cell.shared != now && ordered(cell.shared, now))) {
      cell.shared = now;
      cell.loads = cell.adds = false;
    } else if (cell.shared != now) {
      (cell.shared.group != now.group ? cell.shared.group : cell.shared.thread) = several;
    }
    (kind == Kind::Load ? cell.loads : cell.adds) = true;
  }

 private:
  struct Element {
    Moment writer, shared;  ///< who stored last; who loaded or added since, or several of them
    Lane lane;              ///< of the writer
    bool written = false, loads = false, adds = false;
  };

  /// Buffers that are only read are not watched.
  void watch_stored(const std::vector<Stmt>& body) {
    for (const Stmt& s : body) {
      if (auto* store = std::get_if<Store>(&s))
        cells_[static_cast<std::size_t>(store->buffer)].resize(
            static_cast<std::size_t>(k_.buffers[static_cast<std::size_t>(store->buffer)].elements.as_int()));
      if (auto* loop = std::get_if<Loop>(&s)) watch_stored(loop->body);
    }
  }

  const Kernel& k_;
  std::vector<std::vector<Element>> cells_;  // by buffer
};

class Executor {
 public:
  Executor(const Kernel& kernel, std::span<void* const> buffers)
      : k_(kernel), races_(kernel), values_(kernel.scalars.nodes().size()), accumulators_(kernel.accumulators.size()) {
    std::size_t given = 0;
    for (const Buffer& b : k_.buffers) {
      if (b.role != Buffer::Role::Scratch) {
        CHECK(given < buffers.size(), "a buffer is missing");
        memory_.push_back(static_cast<std::byte*>(buffers[given++]));
        continue;
      }
      auto bytes = static_cast<std::size_t>(b.elements.as_int()) * itemsize(b.dtype);
      scratch_.emplace_back(new std::byte[std::max<std::size_t>(bytes, 1)]());
      memory_.push_back(scratch_.back().get());
    }
    for (const ScalarNode& n : k_.scalars.nodes()) {
      indices_.push_back(formula(n.index));
      kernels_.push_back(n.op < ScalarOp::Const || (n.op >= ScalarOp::Where && n.op != ScalarOp::Within)
                             ? node_kernel(k_.scalars, n)
                             : nullptr);
    }
  }

  Status run() {
    return catch_raised<void>([&]() -> Status {
      body(k_.body);
      return {};
    });
  }

 private:
  Formula formula(SymExpr e) {
    if (e.is_int()) return {.value = e.as_int()};
    if (e.kind() == SymKind::Symbol) return {.kind = SymKind::Symbol, .variable = &variables_[e.name()]};
    Formula f{.kind = e.kind()};
    for (SymExpr a : e.args()) f.args.push_back(formula(a));
    return f;
  }

  int64_t evaluated(SymExpr e) {
    auto it = formulas_.find(e);
    if (it == formulas_.end()) it = formulas_.emplace(e, formula(e)).first;
    return it->second();
  }

  void body(const std::vector<Stmt>& statements) {
    for (const Stmt& s : statements) {
      if (auto* store = std::get_if<Store>(&s))
        this->store(*store);
      else if (auto* reduce = std::get_if<Reduce>(&s))
        this->reduce(*reduce);
      else if (std::holds_alternative<Barrier>(s))
        ++(in_group_ ? now_.step : now_.phase);
      else
        loop(std::get<Loop>(s));
    }
  }

  void loop(const Loop& l) {
    for (int a : l.accumulators) {
      const Accumulator& acc = k_.accumulators[static_cast<std::size_t>(a)];
      Cell& cell = accumulators_[static_cast<std::size_t>(a)];
      dispatch(acc.dtype, [&]<class T>() {
        T start = convert<T>(acc.start);
        if constexpr (is_integral_type<T>) start = static_cast<T>(integer_start(acc.dtype, acc.start));
        std::memcpy(cell.bytes, &start, sizeof(T));
      });
    }
    int64_t& variable = variables_[l.var];
    const int64_t extent = evaluated(l.extent);
    const Moment outside = now_;
    if (l.vector) lane_.loop = ++vector_loops_;
    in_group_ |= l.mapping == Mapping::Block;
    for (int64_t i = 0; i < extent; ++i) {
      // Threads run in any order. The reverse one shows code that relies on another.
      variable = l.parallel() ? extent - 1 - i : i;
      if (l.vector) lane_.lane = static_cast<std::uint32_t>(i);
      if (l.parallel()) (in_group_ && l.mapping == Mapping::Thread ? now_.thread : now_.group) = ++threads_;
      body(l.body);
    }
    if (l.vector) lane_ = {};
    in_group_ &= l.mapping != Mapping::Block;
    const std::uint16_t step = now_.step;
    now_ = outside;
    if (in_group_) now_.step = step;
  }

  /// The nodes to compute for a statement; arguments come before their users.
  const std::vector<int>& order(Scalar s) {
    std::vector<int>& list = orders_[s.id];
    if (list.empty()) {
      std::vector<bool> needed(static_cast<std::size_t>(s.id) + 1, false);
      needed.back() = true;
      for (int i = s.id; i >= 0; --i)
        if (needed[static_cast<std::size_t>(i)])
          for (Scalar a : k_.scalars[{i}].args)
            if (a.id >= 0) needed[static_cast<std::size_t>(a.id)] = true;
      for (int i = 0; i <= s.id; ++i)
        if (needed[static_cast<std::size_t>(i)]) list.push_back(i);
    }
    return list;
  }

  const Cell& value(Scalar s) {
    for (int i : order(s)) compute(i);
    return values_[static_cast<std::size_t>(s.id)];
  }

  void compute(int i) {
    const ScalarNode& n = k_.scalars[{i}];
    Cell& out = values_[static_cast<std::size_t>(i)];
    auto constant = [&](auto v) {
      dispatch(n.dtype, [&]<class T>() {
        T converted = convert<T>(v);
        std::memcpy(out.bytes, &converted, sizeof(T));
      });
    };
    switch (n.op) {
      case ScalarOp::Const:
        return is_integral(n.dtype) || n.dtype == DType::Bool ? constant(n.integer) : constant(n.real);
      case ScalarOp::Index:
        return constant(indices_[static_cast<std::size_t>(i)]());
      case ScalarOp::Input:
        out = accumulators_[static_cast<std::size_t>(n.slot)];
        return;
      case ScalarOp::Load: {
        int64_t element = indices_[static_cast<std::size_t>(i)]() + (n.args[0].id >= 0 ? int64(n.args[0]) : 0);
        const std::byte* from = address(n.slot, element);
        races_.note(now_, lane_, n.slot, element, RaceDetector::Kind::Load);
        std::memcpy(out.bytes, from, itemsize(n.dtype));
        return;
      }
      case ScalarOp::Within: {
        const int64_t position = int64(n.args[0]);
        if (position < 0 || position >= n.index.as_int())
          throw Raise{out_of_bounds(k_.scalars.bounds()[static_cast<std::size_t>(n.slot)], position)};
        return constant(position);
      }
      default: {
        NodeKernel f = kernels_[static_cast<std::size_t>(i)];
        if (!f) throw Raise{no_operation(k_.scalars, n)};
        const void* args[3] = {};
        for (int a = 0; a < 3; ++a)
          if (n.args[a].id >= 0) args[a] = values_[static_cast<std::size_t>(n.args[a].id)].bytes;
        f(out.bytes, args, 1);
      }
    }
  }

  int64_t int64(Scalar s) const {
    int64_t v;
    std::memcpy(&v, values_[static_cast<std::size_t>(s.id)].bytes, sizeof v);
    return v;
  }

  std::byte* address(int buffer, int64_t element) {
    const Buffer& b = k_.buffers[static_cast<std::size_t>(buffer)];
    CHECK(element >= 0 && (!b.elements.is_int() || element < b.elements.as_int()),
          fmt::format("{}: element {} of {}[{}]", k_.name, element, b.name, b.elements.str()));
    return memory_[static_cast<std::size_t>(buffer)] + element * static_cast<int64_t>(itemsize(b.dtype));
  }

  void store(const Store& s) {
    int64_t element = evaluated(s.element);
    if (s.index.id >= 0) {
      value(s.index);
      element += int64(s.index);
    }
    const Cell& v = value(s.value);
    std::byte* to = address(s.buffer, element);
    DType dtype = k_.buffers[static_cast<std::size_t>(s.buffer)].dtype;
    using Kind = RaceDetector::Kind;
    races_.note(now_, lane_, s.buffer, element,
                s.accumulate == Accumulate::None    ? Kind::Store
                : s.accumulate == Accumulate::Plain ? Kind::Update
                                                    : Kind::Add);
    if (s.accumulate == Accumulate::None) {
      std::memcpy(to, v.bytes, itemsize(dtype));
      return;
    }
    combine_kernel(dtype)(ScalarOp::Add, to, 0, v.bytes, 1);
  }

  void reduce(const Reduce& r) {
    const Cell& v = value(r.value);
    const Accumulator& acc = k_.accumulators[static_cast<std::size_t>(r.accumulator)];
    Cell& cell = accumulators_[static_cast<std::size_t>(r.accumulator)];
    combine_kernel(acc.dtype)(acc.combine, cell.bytes, 0, v.bytes, 1);
  }

  const Kernel& k_;
  RaceDetector races_;
  Moment now_;
  Lane lane_;
  bool in_group_ = false;                         ///< within a Block loop
  std::uint32_t threads_ = 0, vector_loops_ = 0;  ///< so far
  std::map<std::string, int64_t> variables_;
  std::vector<Cell> values_;
  std::vector<Cell> accumulators_;
  std::vector<std::byte*> memory_;
  std::vector<std::unique_ptr<std::byte[]>> scratch_;
  std::vector<Formula> indices_;
  std::vector<NodeKernel> kernels_;
  std::unordered_map<SymExpr, Formula> formulas_;
  std::map<int, std::vector<int>> orders_;
};

}  // namespace

Status execute(const Kernel& kernel, std::span<void* const> buffers) {
  return Executor(kernel, buffers).run();
}

}  // namespace partita::loops

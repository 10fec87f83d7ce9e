// Counts bytes and arithmetic of the steps of a plan: of kernels by the trip counts around loads, stores and values, of
// calls by a formula for each library routine. Also the lifetimes of buffers.
#include "core/schedule/kernel_report.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/loops/index.h"
#include "core/ops/record/record.h"

namespace partita::schedule {
namespace {

using loops::Kernel;
using loops::Loop;
using loops::Scalar;
using loops::ScalarNode;
using loops::ScalarOp;

double number(SymExpr e, double otherwise = 0) {
  return e.is_int() ? static_cast<double>(e.as_int()) : otherwise;
}

double elements(const SymList& sizes) {
  double n = 1;
  for (SymExpr s : sizes) n *= number(s);
  return n;
}

/// Counts what a kernel loads, stores and computes.
class Counter {
 public:
  Counter(const Plan& plan, const KernelCall& call, KernelRow& row)
      : plan_(plan), call_(call), kernel_(plan.kernels[static_cast<std::size_t>(call.kernel)]), row_(row) {}

  void count() {
    body(kernel_.body);
    std::size_t next = 0;
    for (std::size_t b = 0; b < kernel_.buffers.size(); ++b) {
      const loops::Buffer& buffer = kernel_.buffers[b];
      if (buffer.role == loops::Buffer::Role::Scratch) continue;
      const int memory = call_.buffers[next++];
      const double whole = number(plan_.buffers[static_cast<std::size_t>(memory)].elements);
      const auto bytes = [&](double used) {
        return std::min(used, whole) * static_cast<double>(itemsize(buffer.dtype));
      };
      if (loaded_.contains(static_cast<int>(b))) {
        const auto& [dense, gathered] = loaded_[static_cast<int>(b)];
        row_.read += bytes(dense) + gathered * static_cast<double>(itemsize(buffer.dtype));
        row_.reads.push_back(memory);
      }
      if (stored_.contains(static_cast<int>(b))) {
        row_.written += bytes(stored_[static_cast<int>(b)]);
        row_.writes.push_back(memory);
      }
    }
  }

 private:
  /// The iterations of the loops around, of those in whose variables the expression is if `only`.
  double trip_count(const SymExpr* only = nullptr) const {
    double n = 1;
    for (const Loop* l : around_)
      if (!only || loops::contains(*only, SymExpr::symbol(l->var))) n *= most(l->extent);
    return n;
  }

  /// The extent; of a block that may be shorter at the end, the longest.
  static double most(SymExpr extent) {
    if (extent.kind() == SymKind::Min)
      for (SymExpr a : extent.args())
        if (a.is_int()) return number(a);
    return number(extent, 1);
  }

  void value(Scalar s) {
    if (s.id < 0 || !seen_.insert(s.id).second) return;
    const ScalarNode& n = kernel_.scalars[s];
    for (Scalar a : n.args) value(a);
    if (n.op != ScalarOp::Load) {
      row_.operations += loops::weight(n.op) == 0 ? 0 : trip_count();
      return;
    }
    auto& [dense, gathered] = loaded_[n.slot];
    if (n.args[0].id < 0)
      dense = std::max(dense, trip_count(&n.index));
    else
      gathered += trip_count();
  }

  void body(const std::vector<loops::Stmt>& statements) {
    for (const loops::Stmt& s : statements) {
      if (const auto* store = std::get_if<loops::Store>(&s)) {
        seen_.clear();
        value(store->value);
        value(store->index);
        double& n = stored_[store->buffer];
        n = std::max(n, store->index.id < 0 ? trip_count(&store->element) : trip_count());
      } else if (const auto* reduce = std::get_if<loops::Reduce>(&s)) {
        seen_.clear();
        value(reduce->value);
        row_.operations += trip_count();
      } else if (const auto* loop = std::get_if<Loop>(&s)) {
        around_.push_back(loop);
        body(loop->body);
        around_.pop_back();
      }
    }
  }

  const Plan& plan_;
  const KernelCall& call_;
  const Kernel& kernel_;
  KernelRow& row_;
  std::vector<const Loop*> around_;
  std::set<int> seen_;
  std::map<int, std::pair<double, double>> loaded_;  ///< by buffer: elements read in order, and by gathers
  std::map<int, double> stored_;
};

/// Multiplications and additions of a call that libraries know; 0 for others.
double call_operations(const ExternCall& call, LibraryRoutine routine) {
  std::vector<const PlanView*> tensors;
  for (const auto& a : call.args)
    if (const auto* v = std::get_if<PlanView>(&a)) tensors.push_back(v);
  double results = 0;
  for (const PlanView& v : call.results)
    if (v.buffer >= 0) results += elements(v.sizes);
  const std::size_t first = routine == LibraryRoutine::AddMatmul ? 1 : 0;
  // A convolution of `result` has a window for each of its elements, a transposed one for each of the input.
  const auto convolution = [&](std::size_t input, std::size_t transposed, double result) {
    if (tensors.size() < input + 2 || tensors[input + 1]->sizes.empty()) return 0.0;
    const Arg* flag = call.args.size() > transposed ? std::get_if<Arg>(&call.args[transposed]) : nullptr;
    const bool* is_transposed = flag ? flag->get<bool>() : nullptr;
    const double windows = is_transposed && *is_transposed ? elements(tensors[input]->sizes) : result;
    const auto& weight = tensors[input + 1]->sizes;
    return 2 * windows * elements(weight) / std::max(1.0, number(weight[0]));
  };
  switch (routine) {
    case LibraryRoutine::None:
      return 0;
    case LibraryRoutine::Matmul:
    case LibraryRoutine::AddMatmul:
      if (tensors.size() <= first || tensors[first]->sizes.empty()) return 0;
      return 2 * results * number(tensors[first]->sizes.back());
    case LibraryRoutine::Convolution:
      return convolution(0, 6, results);
    case LibraryRoutine::ConvolutionBackward: {
      // Each wanted gradient of input and weight is a convolution over the gradient of the result.
      const double one = tensors.empty() ? 0 : convolution(1, 7, elements(tensors[0]->sizes));
      double wanted = 0;
      for (std::size_t i = 0; i < std::min<std::size_t>(2, call.results.size()); ++i)
        wanted += call.results[i].buffer >= 0 ? 1 : 0;
      return wanted * one;
    }
    case LibraryRoutine::Attention:
    case LibraryRoutine::AttentionBackward: {
      // Two products of every query with every key, masked or not; five in the backward, whose first argument is a
      // gradient.
      const bool backward = routine == LibraryRoutine::AttentionBackward;
      const std::size_t query = backward ? 1 : 0;
      if (tensors.size() < query + 3 || tensors[query + 1]->sizes.size() != 4) return 0;
      const double keys = number(tensors[query + 1]->sizes[2]), features = number(tensors[query]->sizes.back());
      const double pairs = elements(tensors[query]->sizes) / std::max(features, 1.0) * keys;
      return 2 * pairs *
             ((backward ? 3 : 1) * features + (backward ? 2 : 1) * number(tensors[query + 2]->sizes.back()));
    }
    case LibraryRoutine::GroupedMatmul:  // of all rows, or of all that is summed over
      if (tensors.size() < 2 || tensors[0]->sizes.empty()) return 0;
      return 2 * elements(tensors[0]->sizes) * number(tensors[1]->sizes.back());
    case LibraryRoutine::Cumsum:
    case LibraryRoutine::Cumprod:
    case LibraryRoutine::Cummax:
    case LibraryRoutine::Cummin:
    case LibraryRoutine::Logcumsumexp:
      return tensors.empty() ? 0 : elements(tensors[0]->sizes);
  }
  return 0;
}

void add_view(const PlanView& view, double& bytes, std::vector<int>& buffers) {
  if (view.buffer < 0) return;
  bytes += elements(view.sizes) * static_cast<double>(itemsize(view.dtype));
  if (std::ranges::find(buffers, view.buffer) == buffers.end()) buffers.push_back(view.buffer);
}

void count_call(const ExternCall& call, const loops::Target& target, KernelRow& row) {
  const OpRecord* record = find_record(call.op);
  const LibraryRoutine routine = record ? record->library : LibraryRoutine::None;
  row.kind =
      routine != LibraryRoutine::None && target.has(routine) ? KernelRow::Kind::Library : KernelRow::Kind::Evaluation;
  row.name = call.op->brief();
  for (const auto& argument : call.args)
    for (const PlanView& v : views_in(argument)) add_view(v, row.read, row.reads);
  for (const PlanView& v : call.epilogue_inputs) add_view(v, row.read, row.reads);
  for (const PlanView& v : call.results) add_view(v, row.written, row.writes);
  row.operations = call_operations(call, routine);
  row.half = !call.results.empty() && is_floating(call.results[0].dtype) && itemsize(call.results[0].dtype) == 2;
  if (call.epilogue && !call.results.empty()) {
    double each = 0;
    for (const ScalarNode& n : call.epilogue->nodes()) each += loops::weight(n.op) == 0 ? 0 : 1;
    row.operations += each * elements(call.results[0].sizes);
  }
}

}  // namespace

std::string_view name(KernelRow::Kind kind) {
  static constexpr std::string_view names[] = {"kernel", "library", "evaluation"};
  return names[static_cast<std::size_t>(kind)];
}

std::string_view name(PlanBuffer::Kind kind) {
  static constexpr std::string_view names[] = {"input", "constant", "temporary", "output"};
  return names[static_cast<std::size_t>(kind)];
}

std::optional<std::size_t> KernelReport::peak() const {
  const auto most = std::ranges::max_element(live);
  return most == live.end() ? std::nullopt : std::optional(static_cast<std::size_t>(most - live.begin()));
}

std::vector<const BufferRow*> KernelReport::live_at(std::size_t step) const {
  std::vector<const BufferRow*> out;
  for (const BufferRow& b : buffers)
    if (b.kind == PlanBuffer::Kind::Temporary && b.used && b.first <= step && step <= b.last) out.push_back(&b);
  std::ranges::stable_sort(out, std::greater(), &BufferRow::bytes);
  return out;
}

std::optional<double> KernelReport::share(const KernelRow& row) const {
  if (!row.seconds || *row.seconds <= 0 || !limit) return std::nullopt;
  // A last-level cache is shared, and a virtual machine names that of its whole host: it has no limit of its own.
  constexpr double own_cache = 1 << 20;
  const bool own = row.read + row.written <= own_cache;
  const double bandwidth = own ? limit->cached_bytes_per_second : limit->bytes_per_second;
  return std::max((row.read + row.written) / bandwidth, row.operations / limit->operations(row)) / *row.seconds;
}

KernelReport kernel_report(const Plan& plan, std::string graph) {
  KernelReport out;
  out.graph = std::move(graph);
  out.arena_bytes = static_cast<double>(plan.arena_bytes);
  out.cache_bytes = static_cast<double>(plan.target.cache_bytes);
  for (std::size_t b = 0; b < plan.buffers.size(); ++b) {
    const PlanBuffer& buffer = plan.buffers[b];
    out.buffers.push_back({static_cast<int>(b), buffer.kind, buffer.origin,
                           number(buffer.elements) * static_cast<double>(itemsize(buffer.dtype)),
                           static_cast<double>(buffer.offset)});
  }
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    KernelRow row;
    row.origins = step_origins(plan, plan.steps[s]);
    if (const auto* call = std::get_if<KernelCall>(&plan.steps[s])) {
      row.name = plan.kernels[static_cast<std::size_t>(call->kernel)].name;
      Counter(plan, *call, row).count();
    } else {
      count_call(std::get<ExternCall>(plan.steps[s]), plan.target, row);
    }
    for (const int b : used_by(plan.steps[s])) {
      BufferRow& buffer = out.buffers[static_cast<std::size_t>(b)];
      if (!std::exchange(buffer.used, true)) buffer.first = s;
      buffer.last = s;
    }
    out.rows.push_back(std::move(row));
  }
  for (const StepsApart& pair : plan.apart) {
    out.rows[pair.second].apart.push_back({pair.first, true, std::string(reason(pair.why))});
    out.rows[pair.first].apart.push_back({pair.second, false, std::string(reason(pair.why))});
  }
  out.live.assign(plan.steps.size(), 0);
  for (const BufferRow& b : out.buffers)
    if (b.kind == PlanBuffer::Kind::Temporary && b.used)
      for (std::size_t s = b.first; s <= b.last; ++s) out.live[s] += b.bytes;
  return out;
}

}  // namespace partita::schedule

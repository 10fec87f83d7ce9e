#include "core/schedule/verify_plan.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "core/schedule/execute_plan.h"
#include "core/tensor/significant_strides.h"
#include "core/tensor/tensor.h"

namespace partita::schedule {
namespace {

class PlanRules {
 public:
  explicit PlanRules(const Plan& plan)
      : plan_(plan), holds_(plan.buffers.size(), false), overwritten_(plan.buffers.size(), false) {}

  std::vector<std::string> run() {
    for (std::size_t b = 0; b < plan_.buffers.size(); ++b) {
      const PlanBuffer& buffer = plan_.buffers[b];
      holds_[b] = buffer.kind == PlanBuffer::Kind::Input || buffer.kind == PlanBuffer::Kind::Constant;
      if (buffer.kind == PlanBuffer::Kind::Temporary && buffer.offset + bytes(b) > plan_.arena_bytes)
        report(fmt::format("temporary {} ends outside of the arena", b));
    }
    for (std::size_t s = 0; s < plan_.steps.size(); ++s) {
      where_ = "step " + step_name(plan_, s);
      if (const auto* call = std::get_if<KernelCall>(&plan_.steps[s]))
        kernel(*call);
      else
        external(std::get<ExternCall>(plan_.steps[s]));
    }
    where_ = "the output";
    // The caller sees an input's memory as it is in the end.
    overwritten_.assign(plan_.buffers.size(), false);
    for (const auto& output : plan_.outputs)
      if (const auto* view = std::get_if<PlanView>(&output)) read(*view);
    for (std::size_t o = 0; o < plan_.promised.size(); ++o)
      if (const TensorMeta* meta = plan_.promised[o].tensor()) keeps_promise(o, *meta);
    return std::move(found_);
  }

 private:
  void report(std::string what) { found_.push_back(std::move(what)); }

  std::size_t bytes(std::size_t b) const {
    return static_cast<std::size_t>(plan_.buffers[b].elements.as_int()) * itemsize(plan_.buffers[b].dtype);
  }

  /// Nobody writes what has no elements.
  void read(int buffer) {
    if (!holds_[static_cast<std::size_t>(buffer)] && bytes(static_cast<std::size_t>(buffer)) > 0)
      report(fmt::format("{} reads buffer {}, which holds nothing yet", where_, buffer));
    // All calls come before the epilogue: they mean the value that the caller gave.
    if (overwritten_[static_cast<std::size_t>(buffer)])
      report(fmt::format("{} reads buffer {}, an input that was overwritten before", where_, buffer));
  }

  /// Writing a temporary destroys what shares bytes with it.
  void write(int buffer) {
    const auto b = static_cast<std::size_t>(buffer);
    const PlanBuffer& written = plan_.buffers[b];
    for (std::size_t o = 0; o < plan_.buffers.size(); ++o) {
      const PlanBuffer& other = plan_.buffers[o];
      if (o != b && written.kind == PlanBuffer::Kind::Temporary && other.kind == PlanBuffer::Kind::Temporary &&
          other.offset < written.offset + bytes(b) && written.offset < other.offset + bytes(o))
        holds_[o] = false;
    }
    holds_[b] = true;
    overwritten_[b] = written.kind == PlanBuffer::Kind::Input;
  }

  bool is_none(const PlanView& v) const { return v.buffer < 0; }

  void within(const PlanView& v) {
    const auto sizes = concrete(v.sizes), strides = concrete(v.strides);
    if (!sizes || !strides || !v.offset.is_int()) return report(where_ + " has a view of symbolic sizes");
    const Result<std::int64_t> reached = reach(*sizes, *strides);
    const std::int64_t end = reached && *reached > 0 ? v.offset.as_int() + *reached : 0;
    const PlanBuffer& b = plan_.buffers[static_cast<std::size_t>(v.buffer)];
    if (!reached || v.offset.as_int() < 0 ||
        static_cast<std::size_t>(end) * itemsize(v.dtype) > bytes(static_cast<std::size_t>(v.buffer)))
      report(fmt::format("{} has a view of {} elements of buffer {}, which has {}", where_, end, v.buffer,
                         b.elements.as_int()));
  }

  void read(const PlanView& v) {
    if (is_none(v)) return;
    if (std::ranges::find(v.sizes, SymExpr(0)) == v.sizes.end()) read(v.buffer);
    within(v);
  }

  void keeps_promise(std::size_t output, const TensorMeta& meta) {
    const auto* view = output < plan_.outputs.size() ? std::get_if<PlanView>(&plan_.outputs[output]) : nullptr;
    if (!view) return report(fmt::format("output {} is no tensor, which its meta promises", output));
    if (view->dtype != meta.dtype || view->sizes != meta.sizes ||
        (meta.strides_known && !same_significant_strides(meta.sizes, view->strides, meta.strides))) {
      TensorMeta planned = meta;
      planned.dtype = view->dtype, planned.sizes = view->sizes, planned.strides = view->strides;
      report(fmt::format("output {} is {}, but its meta promises {}", output, annotation(planned), annotation(meta)));
    }
  }

  void kernel(const KernelCall& call) {
    // A kernel may read what it writes, after it has written it.
    std::size_t next = 0;
    std::vector<int> written;
    const loops::Kernel& kernel = plan_.kernels[static_cast<std::size_t>(call.kernel)];
    stored_.assign(kernel.buffers.size(), false);
    input_.assign(kernel.buffers.size(), false);
    std::size_t slot = 0, at = 0;
    for (const loops::Buffer& b : kernel.buffers) {
      if (b.role != loops::Buffer::Role::Scratch)
        input_[slot] = plan_.buffers[static_cast<std::size_t>(call.buffers[at++])].kind == PlanBuffer::Kind::Input;
      ++slot;
    }
    statements(kernel, kernel.body);
    for (const loops::Buffer& b : kernel.buffers) {
      if (b.role == loops::Buffer::Role::Scratch) continue;
      const int buffer = call.buffers[next++];
      if (b.role == loops::Buffer::Role::Input)
        read(buffer);
      else
        written.push_back(buffer);
    }
    for (int buffer : written) write(buffer);
  }

  /// No statement of a kernel reads an input that an earlier one stores to.
  void statements(const loops::Kernel& kernel, const std::vector<loops::Stmt>& body) {
    for (const loops::Stmt& s : body) {
      if (const auto* store = std::get_if<loops::Store>(&s)) {
        value(kernel, store->value);
        value(kernel, store->index);
        stored_[static_cast<std::size_t>(store->buffer)] = true;
      } else if (const auto* reduce = std::get_if<loops::Reduce>(&s)) {
        value(kernel, reduce->value);
      } else if (const auto* loop = std::get_if<loops::Loop>(&s)) {
        statements(kernel, loop->body);
      }
    }
  }

  void value(const loops::Kernel& kernel, loops::Scalar root) {
    std::vector<int> open = {root.id};
    std::set<int> seen;
    while (!open.empty()) {
      const int id = open.back();
      open.pop_back();
      if (id < 0 || !seen.insert(id).second) continue;
      const loops::ScalarNode& n = kernel.scalars.nodes()[static_cast<std::size_t>(id)];
      const auto slot = static_cast<std::size_t>(n.slot);
      if (n.op == loops::ScalarOp::Load && input_[slot] && stored_[slot])
        report(fmt::format("{} reads {} after it has overwritten that input", where_, kernel.buffers[slot].name));
      for (loops::Scalar a : n.args) open.push_back(a.id);
    }
  }

  void external(const ExternCall& call) {
    for (const auto& argument : call.args)
      for (const PlanView& v : views_in(argument)) read(v);
    for (const PlanView& v : call.epilogue_inputs) read(v);
    for (const PlanView& v : call.results) {
      if (is_none(v)) continue;
      within(v);
      write(v.buffer);
    }
  }

  const Plan& plan_;
  std::vector<char> holds_;           ///< by buffer: may a step read it?
  std::vector<char> overwritten_;     ///< by buffer: an input that a step has written
  std::vector<char> stored_, input_;  ///< by buffer of the kernel: stored to so far; an input of the graph
  std::string where_;
  std::vector<std::string> found_;
};

}  // namespace

std::vector<std::string> verify(const Plan& plan) {
  return PlanRules(plan).run();
}

}  // namespace partita::schedule

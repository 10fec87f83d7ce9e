#include "core/schedule/verify_plan.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/schedule/execute_plan.h"
#include "core/tensor/tensor.h"

namespace partita::schedule {
namespace {

class PlanRules {
 public:
  explicit PlanRules(const Plan& plan) : plan_(plan), holds_(plan.buffers.size(), false) {}

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
    for (const auto& output : plan_.outputs)
      if (const auto* view = std::get_if<PlanView>(&output)) read(*view);
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

  void kernel(const KernelCall& call) {
    // A kernel may read what it writes, after it has written it.
    std::size_t next = 0;
    std::vector<int> written;
    for (const loops::Buffer& b : plan_.kernels[static_cast<std::size_t>(call.kernel)].buffers) {
      if (b.role == loops::Buffer::Role::Scratch) continue;
      const int buffer = call.buffers[next++];
      if (b.role == loops::Buffer::Role::Input)
        read(buffer);
      else
        written.push_back(buffer);
    }
    for (int buffer : written) write(buffer);
  }

  void external(const ExternCall& call) {
    for (const auto& argument : call.args) {
      if (const auto* view = std::get_if<PlanView>(&argument)) read(*view);
      if (const auto* list = std::get_if<std::vector<PlanView>>(&argument))
        for (const PlanView& v : *list) read(v);
    }
    for (const PlanView& v : call.epilogue_inputs) read(v);
    for (const PlanView& v : call.results) {
      if (is_none(v)) continue;
      within(v);
      write(v.buffer);
    }
  }

  const Plan& plan_;
  std::vector<char> holds_;  ///< by buffer: may a step read it?
  std::string where_;
  std::vector<std::string> found_;
};

}  // namespace

std::vector<std::string> verify(const Plan& plan) {
  return PlanRules(plan).run();
}

}  // namespace partita::schedule

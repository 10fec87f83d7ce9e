// Calls on halves or with narrow matrices as calls on floats.
#include "codegen/cpu/extern/in_floats.h"

#include <algorithm>
#include <numeric>

#include "codegen/cpu/extern/packed_right.h"
#include "codegen/cpu/extern/product.h"
#include "codegen/cpu/extern/product_kernel.h"
#include "core/base/threads.h"
#include "core/tensor/tensor.h"

namespace partita::codegen {
namespace {

/// A tensor of narrow elements, and the floats in its place, which lie in the same order without gaps and repetitions.
class Widened {
 public:
  Widened(const NarrowKernel& kernel, ConcreteView narrow, bool fixed)
      : kernel_(kernel), type_(*narrow_type(narrow.dtype)), narrow_(std::move(narrow)), fixed_(fixed) {
    std::vector<std::size_t> order(narrow_.sizes.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, std::ranges::greater(), [&](std::size_t d) { return narrow_.strides[d]; });
    strides_.assign(order.size(), 0);
    for (std::size_t i = order.size(); i-- > 0;) {
      const std::int64_t size = narrow_.sizes[order[i]], stride = narrow_.strides[order[i]];
      if (stride == 0) continue;
      strides_[order[i]] = elements_;
      elements_ *= size;
      if (size == 1) continue;
      if (!loops_.empty() && stride == loops_.back().stride * loops_.back().size)
        loops_.back().size *= size;
      else
        loops_.push_back({size, stride});
    }
    if (loops_.empty()) loops_.push_back({1, 1});
  }

  std::int64_t elements() const { return elements_; }
  const Sizes& strides() const { return strides_; }
  bool fixed() const { return fixed_; }

  /// Widens a fixed tensor, if its address is another one since. Returns the floats, which then have another address,
  /// too.
  std::byte* kept(int threads, std::byte* const* buffers) {
    std::byte* const at = narrow_.at(buffers);
    if (at == from_) return reinterpret_cast<std::byte*>(kept_.data());
    std::vector<float> floats(static_cast<std::size_t>(elements_));
    load(threads, buffers, floats.data());
    kept_ = std::move(floats);
    from_ = at;
    return reinterpret_cast<std::byte*>(kept_.data());
  }
  void load(int threads, std::byte* const* buffers, float* floats) const {
    pieces(threads, narrow_.at(buffers),
           [&](std::byte* at, std::int64_t n, std::int64_t first) { kernel_.widen(type_, at, n, floats + first); });
  }
  void store(int threads, std::byte* const* buffers, const float* floats) const {
    pieces(threads, narrow_.at(buffers),
           [&](std::byte* at, std::int64_t n, std::int64_t first) { kernel_.narrow(type_, floats + first, n, at); });
  }

 private:
  struct Loop {
    std::int64_t size, stride;
  };

  /// Calls convert(narrow, n, first) for all n elements from `first` on that are adjacent.
  void pieces(int threads, std::byte* narrow, const auto& convert) const {
    constexpr std::int64_t least = 1 << 15;  // elements of a thread
    const Loop inner = loops_.front();
    const std::int64_t adjacent = inner.stride == 1 ? inner.size : 1;
    parallel_for(threads, elements_, least, 1, [&](std::int64_t begin, std::int64_t end, int) {
      for (std::int64_t at = begin; at < end;) {
        std::int64_t place = 0, rest = at;
        for (const Loop& l : loops_) {
          place += rest % l.size * l.stride;
          rest /= l.size;
        }
        const std::int64_t n = std::min(end - at, adjacent - at % adjacent);
        convert(narrow + place * static_cast<std::int64_t>(itemsize(narrow_.dtype)), n, at);
        at += n;
      }
    });
  }

  const NarrowKernel& kernel_;
  NarrowType type_;
  ConcreteView narrow_;
  bool fixed_;
  Sizes strides_;            ///< of the floats
  std::vector<Loop> loops_;  ///< over the narrow elements, the innermost first
  std::int64_t elements_ = 1;
  std::vector<float> kept_;
  const std::byte* from_ = nullptr;
};

class InFloats final : public ExternStep {
 public:
  InFloats(int threads, int buffers, std::vector<Widened> operands, std::vector<Widened> results,
           std::unique_ptr<ExternStep> step)
      : threads_(threads),
        buffers_(buffers),
        operands_(std::move(operands)),
        results_(std::move(results)),
        step_(std::move(step)) {}

  Status run(std::byte* const* buffers) override {
    static thread_local std::vector<float> floats;  // kept for other calls: fresh memory costs more than to fill it
    constexpr std::int64_t line = 16;
    const auto whole_lines = [](std::int64_t n) { return (n + line - 1) / line * line; };
    std::int64_t elements = 0;
    for (const auto* list : {&operands_, &results_})
      for (const Widened& w : *list)
        if (!w.fixed()) elements += whole_lines(w.elements());
    if (std::ssize(floats) < elements) floats.resize(static_cast<std::size_t>(elements));
    std::vector<std::byte*> all(buffers, buffers + buffers_);
    float* free = floats.data();
    const auto take = [&](const Widened& w) {
      float* const taken = free;
      free += whole_lines(w.elements());
      all.push_back(reinterpret_cast<std::byte*>(taken));
      return taken;
    };
    for (Widened& w : operands_) {
      if (w.fixed())
        all.push_back(w.kept(threads_, buffers));
      else
        w.load(threads_, buffers, take(w));
    }
    std::vector<const float*> made;
    for (const Widened& w : results_) made.push_back(take(w));
    TRY_DO(step_->run(all.data()));
    for (std::size_t i = 0; i < results_.size(); ++i) results_[i].store(threads_, buffers, made[i]);
    return {};
  }

 private:
  int threads_, buffers_;  ///< buffers of the plan; those of floats follow
  std::vector<Widened> operands_, results_;
  std::unique_ptr<ExternStep> step_;
};

bool is_half(DType dtype) {
  return dtype == DType::Float16 || dtype == DType::BFloat16;
}

/// `keep_fixed`: the last tensor, a product's right matrix, is left to `prepare`; the step is null if it is not a fixed
/// matrix.
Prepared in_floats(const ExternContext& context, PrepareFunction prepare, bool keep_fixed, std::string& why_not) {
  const ProductKernel* kernel = product_kernel();
  if (!kernel) return {};
  schedule::ExternCall call = context.call;
  std::vector<schedule::PlanView*> narrow;
  int buffers = 0;
  bool known = true, kept = false;
  const auto add = [&](schedule::PlanView& v, bool keep, bool is_narrow = false) {
    buffers = std::max(buffers, v.buffer + 1);
    if (v.buffer < 0 || !(is_half(v.dtype) || is_narrow)) return;
    kept = kept || keep;
    if (keep) return;
    known = known && concrete_view(v);
    narrow.push_back(&v);
  };
  std::size_t last = 0;
  for (std::size_t i = 0; i < call.args.size(); ++i)
    if (std::holds_alternative<schedule::PlanView>(call.args[i])) last = i;
  for (std::size_t i = 0; i < call.args.size(); ++i) {
    if (auto* v = std::get_if<schedule::PlanView>(&call.args[i]))
      add(*v, keep_fixed && i == last && v->sizes.size() == 2 && context.fixed(v->buffer),
          static_cast<int>(i) == call.narrow);
    if (auto* list = std::get_if<std::vector<schedule::PlanView>>(&call.args[i]))
      for (schedule::PlanView& v : *list) add(v, false);
  }
  const std::size_t operand_count = narrow.size();
  for (schedule::PlanView& v : call.results) add(v, false);
  if ((narrow.empty() && !kept) || kept != keep_fixed) return {};
  if (!known) {
    why_not = "symbolic sizes";
    return {};
  }
  std::vector<Widened> operands, results;
  std::vector<bool> fixed;
  for (std::size_t i = 0; i < narrow.size(); ++i) {
    schedule::PlanView& v = *narrow[i];
    const bool is_operand = i < operand_count;
    fixed.push_back(is_operand && context.fixed(v.buffer));
    Widened w(*kernel->narrow, *concrete_view(v), fixed.back());
    v = {buffers + static_cast<int>(i), DType::Float32, v.sizes, SymList(w.strides().begin(), w.strides().end()), 0};
    (is_operand ? operands : results).push_back(std::move(w));
  }
  ExternContext wide{.call = call,
                     .routine = context.routine,
                     .threads = context.threads,
                     .fixed =
                         [&](int buffer) {
                           return buffer < buffers ? context.fixed(buffer)
                                                   : fixed[static_cast<std::size_t>(buffer - buffers)];
                         },
                     .generator = context.generator,
                     .elements = [&](int buffer) -> std::optional<std::int64_t> {
                       if (buffer < buffers) return context.elements(buffer);
                       const auto i = static_cast<std::size_t>(buffer - buffers);
                       return (i < operands.size() ? operands[i] : results[i - operands.size()]).elements();
                     },
                     .compile_sub_graph = context.compile_sub_graph,
                     .packed = context.packed,
                     .communicator = context.communicator};
  Prepared prepared = prepare(wide, why_not);
  if (!prepared.step) return {};
  prepared.step = std::make_unique<InFloats>(context.threads, buffers, std::move(operands), std::move(results),
                                             std::move(prepared.step));
  prepared.library += ", in floats";
  prepared.work = "a kernel of its own: the call computes in floats";
  return prepared;
}

}  // namespace

bool multiplies(DType half) {
#ifdef __x86_64__
  return half == DType::BFloat16 && __builtin_cpu_supports("avx512bf16");
#else
  return false;
#endif
}

bool belongs_in_floats(const schedule::ExternCall& call) {
  const auto slow = [](const schedule::PlanView& v) { return is_half(v.dtype) && !multiplies(v.dtype); };
  return call.narrow >= 0 || std::ranges::any_of(call.results, slow) ||
         std::ranges::any_of(call.args, [&](const auto& argument) {
           auto* v = std::get_if<schedule::PlanView>(&argument);
           return v && slow(*v);
         });
}

Prepared prepare_in_floats(const ExternContext& context, PrepareFunction prepare, std::string& why_not) {
  if (Prepared p = in_floats(context, prepare, true, why_not); p.step) return p;
  return in_floats(context, prepare, false, why_not);
}

}  // namespace partita::codegen

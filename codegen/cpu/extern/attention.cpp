#include <algorithm>
#include <atomic>
#include <cmath>

#include "codegen/cpu/extern/attention_kernel.h"
#include "codegen/cpu/extern/routines.h"
#include "core/base/threads.h"

namespace partita::codegen {
namespace {

/// For the most instructions that the processor has.
const AttentionKernel& attention_kernel() {
#ifdef __x86_64__
  if (__builtin_cpu_supports("x86-64-v4")) return attention_avx512;
  if (__builtin_cpu_supports("x86-64-v3")) return attention_avx2;
#endif
  return attention_baseline;
}

class AttentionStep final : public ExternStep {
 public:
  AttentionProblem problem;
  bool backward = false;
  int threads = 1;

  void place(AttentionOperand AttentionProblem::* operand, const ConcreteView& view) {
    AttentionOperand& o = problem.*operand;
    o.dtype = view.dtype;
    std::ranges::copy(view.strides, o.strides);
    places_.emplace_back(operand, view);
  }

  Status run(std::byte* const* buffers) override {
    for (const auto& [operand, view] : places_) (problem.*operand).data = view.at(buffers);
    const AttentionKernel& k = attention_kernel();
    const auto task = backward ? k.backward : k.forward;
    const std::int64_t tasks = this->tasks(), parts = this->parts();
    const std::size_t part_bytes = this->part_bytes();
    TRY(const std::shared_ptr<Storage> scratch, Storage::allocate(scratch_bytes()));
    std::atomic<std::int64_t> next = 0;
    // Causal blocks differ in their work, so threads take one after another.
    parallel_for(static_cast<int>(parts), parts, 1, 1, [&](std::int64_t part, std::int64_t, int) {
      std::byte* own = scratch->data() + static_cast<std::size_t>(part) * part_bytes;
      for (std::int64_t t; (t = next++) < tasks;) task(problem, t, own);
    });
    return {};
  }

  std::size_t scratch_bytes() const override { return static_cast<std::size_t>(parts()) * part_bytes(); }

 private:
  std::int64_t tasks() const {
    return backward ? problem.batch * problem.heads : attention_kernel().forward_tasks(problem);
  }
  /// That run beside one another; each must do more work than waking a thread costs.
  std::int64_t parts() const {
    constexpr double part_work = 400'000;
    const double work = 4.0 * static_cast<double>(problem.batch * problem.heads * problem.queries) *
                        static_cast<double>(problem.keys * problem.width);
    return std::min<std::int64_t>(tasks(),
                                  std::clamp<std::int64_t>(static_cast<std::int64_t>(work / part_work), 1, threads));
  }
  std::size_t part_bytes() const {
    const AttentionKernel& k = attention_kernel();
    return backward ? k.backward_scratch(problem) : k.forward_scratch(problem);
  }

  std::vector<std::pair<AttentionOperand AttentionProblem::*, ConcreteView>> places_;
};

/// No step, for this reason: the operator's evaluation does the call.
Prepared evaluated(std::string& why_not, std::string why) {
  why_not = std::move(why);
  return {};
}

bool takes(DType dtype) {
  return dtype == DType::Float32 || dtype == DType::Float64 || dtype == DType::BFloat16 || dtype == DType::Float16;
}

/// The arguments begin with query at `first`; dropout_p follows them at `options`.
Prepared prepare(const ExternContext& context, std::size_t first, std::size_t options, bool backward,
                 std::string& why_not) {
  auto query = context.view(first), key = context.view(first + 1), value = context.view(first + 2);
  auto dropout = context.number(options), causal = context.number(options + 1);
  if (!query || !key || !value || !dropout || !causal) return evaluated(why_not, "symbolic sizes");
  if (*dropout != 0) return evaluated(why_not, "dropout");
  auto step = std::make_unique<AttentionStep>();
  step->backward = backward;
  step->threads = context.threads;
  AttentionProblem& p = step->problem;
  const bool fits = query->sizes.size() == 4 && key->sizes.size() == 4 && value->sizes == key->sizes &&
                    key->sizes[0] == query->sizes[0] && key->sizes[1] == query->sizes[1] &&
                    key->sizes[3] == query->sizes[3];
  if (!fits) return evaluated(why_not, "sizes of query, key and value that do not fit together");
  p.batch = query->sizes[0], p.heads = query->sizes[1], p.queries = query->sizes[2], p.width = query->sizes[3];
  p.keys = key->sizes[2];
  p.causal = *causal != 0;
  p.in_double = query->dtype == DType::Float64;
  const auto scale = context.number(options + 3);
  p.scale = scale ? *scale : 1 / std::sqrt(static_cast<double>(p.width));
  bool placed = true;
  const auto place = [&](AttentionOperand AttentionProblem::* operand, std::optional<ConcreteView> view,
                         const Sizes& sizes) {
    placed = placed && view && takes(view->dtype) && view->sizes == sizes;
    if (placed) step->place(operand, *view);
  };
  const Sizes of_query = query->sizes, of_key = key->sizes, of_rows(of_query.begin(), of_query.end() - 1);
  place(&AttentionProblem::query, query, of_query);
  place(&AttentionProblem::key, key, of_key);
  place(&AttentionProblem::value, value, of_key);
  if (!std::holds_alternative<Arg>(context.arg(options + 2))) {
    auto mask = context.view(options + 2);
    if (mask) mask = broadcast(*mask, {p.batch, p.heads, p.queries, p.keys});
    if (!mask || (mask->dtype != DType::Bool && !takes(mask->dtype)))
      return evaluated(why_not, "a mask of another dtype or size");
    for (std::size_t d = 0; d < mask->sizes.size(); ++d)
      if (mask->sizes[d] == 1) mask->strides[d] = 0;
    step->place(&AttentionProblem::mask, *mask);
    p.has_mask = true;
  }
  const auto place_result = [&](AttentionOperand AttentionProblem::* operand, std::size_t i, const Sizes& sizes) {
    if (i < context.call.results.size() && context.call.results[i].buffer >= 0)
      place(operand, concrete_view(context.call.results[i]), sizes);
  };
  if (backward) {
    place(&AttentionProblem::grad_out, context.view(0), of_query);
    place(&AttentionProblem::out, context.view(4), of_query);
    place(&AttentionProblem::logsumexp, context.view(5), of_rows);
    place_result(&AttentionProblem::grad_query, 0, of_query);
    place_result(&AttentionProblem::grad_key, 1, of_key);
    place_result(&AttentionProblem::grad_value, 2, of_key);
  } else {
    place_result(&AttentionProblem::out, 0, of_query);
    place_result(&AttentionProblem::logsumexp, 1, of_rows);
  }
  if (!placed) return evaluated(why_not, "an argument or result of another dtype or size");
  return {std::move(step), std::string("Partita ") + attention_kernel().name};
}

}  // namespace

Prepared prepare_attention(const ExternContext& context, std::string& why_not) {
  return prepare(context, 0, 3, false, why_not);
}

Prepared prepare_attention_backward(const ExternContext& context, std::string& why_not) {
  return prepare(context, 1, 6, true, why_not);
}

}  // namespace partita::codegen

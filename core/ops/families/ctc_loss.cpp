// Connectionist temporal classification (Graves et al. 2006). Numbers in parentheses are equations of that paper.
#include <cmath>
#include <limits>

#include "core/ops/families/loss.h"
#include "core/ops/kernels/outputs.h"
#include "core/ops/record/gradients.h"
#include "core/ops/record/guards.h"
#include "core/ops/record/layout.h"
#include "core/ops/record/record.h"

namespace partita {

namespace {

using namespace kernels;

/// log_probs is [time, batch, labels]; targets are padded [batch, length] or concatenated.
void check(const FakeCall& c, const Sizes& targets) {
  const TensorMeta& x = c.tensor("log_probs");
  if (x.dim() != 3) fail("ctc_loss: log_probs must have 3 dimensions, got " + std::to_string(x.dim()));
  if (c.tensor("targets").dim() != 1 && c.tensor("targets").dim() != 2)
    fail("ctc_loss: targets must have 1 or 2 dimensions");
  auto fits = [&](std::size_t count, const char* name) {
    if (!checked(c, sym_eq(x.sizes[1], static_cast<std::int64_t>(count)), "ctc_loss batch"))
      fail(std::string(name) + " must be of size batch_size");
  };
  fits(c.integers("input_lengths").size(), "input_lengths");
  fits(targets.size(), "target_lengths");
  std::int64_t blank = c.integer("blank");
  if (blank < 0 || !checked(c, sym_lt(blank, x.sizes[2]), "ctc_loss blank")) fail("blank must be in label range");
}

Meta fake_ctc_loss(FakeCall& c) {
  Sizes lengths = c.integers("target_lengths");
  check(c, lengths);
  const TensorMeta& x = c.tensor("log_probs");
  std::int64_t longest = 0;
  for (std::int64_t n : lengths) longest = std::max(longest, n);
  return MetaTuple{{new_like(x, {x.sizes[1]}), new_like(x, {x.sizes[1], x.sizes[0], 2 * longest + 1})}};
}

Meta fake_ctc_loss_backward(FakeCall& c) {
  check(c, c.integers("target_lengths"));
  return new_like(c.tensor("log_probs"), c.tensor("log_probs").sizes);
}

/// One sample of the batch. Its states are the target's labels with blanks between and around them.
template <class T>
class Entry {
 public:
  static constexpr T none = -std::numeric_limits<T>::infinity();

  std::int64_t time, length;  ///< length of the sample's input; length of its target
  const T* log_probs;         ///< label k at time t is log_probs[t * step + k]
  std::int64_t step, blank;
  const std::int64_t* labels;

  std::int64_t states() const { return 2 * length + 1; }
  std::int64_t label(std::int64_t s) const { return s % 2 == 0 ? blank : labels[s / 2]; }
  T log_prob(std::int64_t t, std::int64_t s) const { return log_probs[t * step + label(s)]; }

  static T log_sum(std::initializer_list<T> terms) {
    T high = none, sum = 0;
    for (T v : terms) high = std::max(high, v);
    if (high == none) return none;
    for (T v : terms) sum += std::exp(v - high);
    return std::log(sum) + high;
  }

  /// Fills alpha[time, states] by (6) and (7), in logarithms. Returns the negative log likelihood (8).
  T forward(T* alpha, std::int64_t width) const {
    if (time == 0) return length == 0 ? T(0) : -none;
    alpha[0] = log_prob(0, 0);
    if (length > 0) alpha[1] = log_prob(0, 1);
    for (std::int64_t t = 1; t < time; ++t) {
      const T* before = alpha + (t - 1) * width;
      for (std::int64_t s = 0; s < states(); ++s)
        alpha[t * width + s] = log_sum({before[s], s > 0 ? before[s - 1] : none,
                                        s > 1 && label(s - 2) != label(s) ? before[s - 2] : none}) +
                               log_prob(t, s);
    }
    const T* last = alpha + (time - 1) * width;
    return -log_sum({last[states() - 1], length > 0 ? last[states() - 2] : none});
  }

  /// Fills sums[time, labels] with the sum of alpha * beta over the states that have the label (15), in logarithms.
  /// beta follows (10) and (11).
  void backward(const T* alpha, std::int64_t width, T* sums, std::int64_t labels_count) const {
    std::vector<T> beta(static_cast<std::size_t>(width), none), next(beta);
    for (std::int64_t t = time; t-- > 0;) {
      for (std::int64_t s = states(); s-- > 0;) {
        auto after = [&](std::int64_t k) { return k < states() ? next[static_cast<std::size_t>(k)] : none; };
        T carried =
            t + 1 == time
                ? (s + 2 >= states() ? T(0) : none)
                : log_sum({after(s), after(s + 1), s + 2 < states() && label(s + 2) != label(s) ? after(s + 2) : none});
        beta[static_cast<std::size_t>(s)] = carried == none ? none : carried + log_prob(t, s);
        T& sum = sums[t * labels_count + label(s)];
        sum = log_sum({sum, alpha[t * width + s] + beta[static_cast<std::size_t>(s)]});
      }
      std::swap(beta, next);
    }
  }
};

/// Calls f(batch index, entry) for every sample.
template <class T, class F>
void each_entry(const EvalCall& c, const Tensor& x, const Tensor& targets, F f) {
  Sizes times = c.integers("input_lengths"), lengths = c.integers("target_lengths");
  std::int64_t batch = x.sizes[1], labels = x.sizes[2], begin = 0;
  for (std::int64_t i : steps(batch, 4096)) {
    auto at = static_cast<std::size_t>(i);
    if (times[at] < 0 || times[at] > x.sizes[0])
      fail("Expected input_lengths to have value at most " + std::to_string(x.sizes[0]) + ", but got value " +
           std::to_string(times[at]));
    bool padded = targets.dim() == 2;
    std::int64_t room = padded ? targets.sizes[1] : targets.numel() - begin;
    if (lengths[at] < 0 || lengths[at] > room || (padded && targets.sizes[0] < batch))
      fail("ctc_loss: target_lengths do not fit targets");
    const std::int64_t* own = targets.as<std::int64_t>() + (padded ? i * targets.sizes[1] : begin);
    for (std::int64_t k = 0; k < lengths[at]; ++k)
      if (own[k] < 0 || own[k] >= labels) fail("ctc_loss: target " + std::to_string(own[k]) + " is out of label range");
    f(i, Entry<T>{times[at], lengths[at], x.as<T>() + i * labels, batch * labels, c.integer("blank"), own});
    begin += lengths[at];
  }
}

Value eval_ctc_loss(EvalCall& c) {
  std::vector<Tensor> outputs = allocate_all(c, fake_ctc_loss);
  DType dtype = outputs[0].dtype;
  Tensor x = load(c.tensor("log_probs"), dtype), targets = load(c.tensor("targets"), DType::Int64);
  Tensor loss = empty(dtype, outputs[0].sizes), alpha = empty(dtype, outputs[1].sizes);
  dispatch_floating(dtype, "ctc_loss_cpu", [&]<class T>() {
    std::fill_n(alpha.as<T>(), alpha.numel(), Entry<T>::none);
    std::int64_t width = alpha.sizes[2];
    each_entry<T>(c, x, targets, [&](std::int64_t i, const Entry<T>& e) {
      loss.as<T>()[i] = e.forward(alpha.as<T>() + i * alpha.sizes[1] * width, width);
    });
  });
  return ValueList{loss, alpha};
}

/// The gradient by (16): (exp(log p) - exp(sum + loss - log p)) times the sample's incoming gradient.
Value eval_ctc_loss_backward(EvalCall& c) {
  const DType dtype = c.tensor("log_probs").dtype;
  Tensor x = load(c.tensor("log_probs"), dtype), targets = load(c.tensor("targets"), DType::Int64);
  Tensor grad = load(c.tensor("grad"), dtype), loss = load(c.tensor("neg_log_likelihood"), dtype),
         alpha = load(c.tensor("log_alpha"), dtype), dx = zeros(dtype, x.sizes);
  std::int64_t batch = x.sizes[1], labels = x.sizes[2];
  if (grad.numel() != batch || loss.numel() != batch || alpha.dim() != 3 || alpha.sizes[0] != batch ||
      alpha.sizes[1] != x.sizes[0])
    fail("ctc_loss backward: grad, neg_log_likelihood or log_alpha do not fit log_probs");
  bool zero_infinity = c.boolean("zero_infinity");
  dispatch_floating(dtype, "ctc_loss_backward_cpu", [&]<class T>() {
    std::int64_t width = alpha.sizes[2];
    each_entry<T>(c, x, targets, [&](std::int64_t i, const Entry<T>& e) {
      T nll = loss.as<T>()[i];
      if (e.states() > width) fail("ctc_loss backward: log_alpha does not fit target_lengths");
      if (zero_infinity && nll == -Entry<T>::none) return;
      std::vector<T> sums(static_cast<std::size_t>(e.time * labels), Entry<T>::none);
      e.backward(alpha.as<T>() + i * alpha.sizes[1] * width, width, sums.data(), labels);
      for (std::int64_t t = 0; t < e.time; ++t)
        for (std::int64_t k = 0; k < labels; ++k) {
          T lp = e.log_probs[t * e.step + k], sum = sums[static_cast<std::size_t>(t * labels + k)];
          dx.as<T>()[(t * batch + i) * labels + k] = (std::exp(lp) - std::exp(sum + nll - lp)) * grad.as<T>()[i];
        }
    });
  });
  return dx;
}

Arg decompose_ctc_loss(DecomposeCall& c) {
  Builder& b = c.build;
  const TensorMeta& x = c.tensor("log_probs");
  bool batched = x.dim() == 3;
  Node *log_probs = tensor_node(c, "log_probs"), *targets = tensor_node(c, "targets");
  if (!batched) log_probs = b.call("aten.unsqueeze.default", {log_probs, 1});
  targets = to_dtype(b, targets, DType::Int64);
  Node* tuple = b.call("aten._ctc_loss.default", {log_probs, targets, c.arg("input_lengths"), c.arg("target_lengths"),
                                                  c.arg("blank"), c.arg("zero_infinity")});
  Node* loss = b.getitem(tuple, 0);
  if (c.boolean("zero_infinity")) loss = b.expression("where(eq(x, inf), 0.0, x)", {{"x", loss}}).node();
  auto reduction = reduction_of(c);
  if (reduction == Reduction::Sum) return b.call("aten.sum.default", {loss});
  if (reduction == Reduction::None) return batched ? loss : b.call("aten.squeeze.dim", {loss, 0});
  std::vector<Arg> lengths;
  for (std::int64_t n : c.integers("target_lengths"))
    lengths.emplace_back(b.call("aten.full.default", {Arg::list({1}), std::max<std::int64_t>(n, 1)},
                                {{"dtype", x.dtype}, {"device", x.device}, {"pin_memory", false}}));
  Node* divisor = b.call("aten.cat.default", {Arg::list(std::move(lengths))});
  return b.call("aten.mean.default", {b.call("aten.div.Tensor", {loss, divisor})});
}

}  // namespace

void register_ctc_loss(OpTable& t) {
  t.default_family = Family::Reduction;
  t.add("aten._ctc_loss.default", fake_ctc_loss, eval_ctc_loss,
        {{"log_probs",
          "_ctc_loss_backward(grad, log_probs, targets, input_lengths, target_lengths, result0, result1, "
          "blank, zero_infinity)"}});
  t.add("aten._ctc_loss_backward.default", fake_ctc_loss_backward, eval_ctc_loss_backward);
  t.add("aten.ctc_loss.IntList", {.decompose = decompose_ctc_loss});
}

}  // namespace partita

// multi_margin_loss and multilabel_margin_loss: hinges between the scores of a row's target classes and of its other
// classes.
#include <algorithm>

#include "core/ops/families/loss.h"
#include "core/ops/kernels/outputs.h"
#include "core/ops/record/guards.h"
#include "core/ops/record/layout.h"
#include "core/ops/record/record.h"

namespace partita {

namespace {

using namespace kernels;

/// The number of rows of scores, and of classes. A tensor [classes] is one row.
struct Rows {
  SymExpr count, classes;
};
Rows rows_of(FakeCall& c) {
  const TensorMeta& self = c.tensor("self");
  if (self.dim() != 1 && self.dim() != 2 && self.dim() != 0)
    fail("Expected non-empty vector or matrix with optional 0-dim batch size, but got: " + std::to_string(self.dim()) +
         " dimensions");
  Rows rows{self.dim() == 2 ? self.sizes[0] : SymExpr(1), self.dim() == 0 ? SymExpr(1) : self.sizes.back()};
  if (!checked(c, sym_lt(0, rows.classes), "margin loss classes"))
    fail("Expected non-empty vector or matrix with optional 0-dim batch size");
  return rows;
}

Meta fake_multi_margin(FakeCall& c) {
  Rows rows = rows_of(c);
  const TensorMeta &self = c.tensor("self"), &target = c.tensor("target");
  const auto p = c.known_number("p");
  if (p && as_double(*p) != 1 && as_double(*p) != 2) fail("only p == 1 and p == 2 supported");
  if (target.dim() > 1 || !checked(c, sym_eq(target.numel(), rows.count), "multi_margin_loss target"))
    fail("inconsistent target size, expected " + rows.count.str());
  if (c.has("weight") && !checked(c, sym_eq(c.tensor("weight").numel(), rows.classes), "multi_margin_loss weight"))
    fail("inconsistent weight size, expected " + rows.classes.str());
  return new_like(self, reduction_of(c) == Reduction::None ? target.sizes : SymList{});
}

Meta fake_multi_margin_backward(FakeCall& c) {
  fake_multi_margin(c);  // the same checks of sizes
  return new_like(c.tensor("self"), c.tensor("self").sizes);
}

Meta fake_like_self(FakeCall& c) {
  rows_of(c);
  return new_like(c.tensor("self"), c.tensor("self").sizes);
}

Meta fake_multilabel(FakeCall& c) {
  Rows rows = rows_of(c);
  const TensorMeta &self = c.tensor("self"), &target = c.tensor("target");
  if (!checked_sizes(c, self.sizes, target.sizes, "multilabel_margin_loss target"))
    fail("inconsistent target size for multilabel_margin_loss");
  bool by_row = reduction_of(c) == Reduction::None && target.dim() == 2;
  return MetaTuple{{new_like(self, by_row ? SymList{rows.count} : SymList{}), new_like(self, target.sizes)}};
}

/// The rows' losses as the result. A mean divides by the number of rows.
template <class T>
Tensor reduced_rows(const Tensor& losses, Reduction reduction) {
  if (reduction == Reduction::None) return losses;
  Tensor y = zeros(losses.dtype, {});
  T& sum = *y.as<T>();
  for (std::int64_t i : steps(losses.numel())) sum += losses.as<T>()[i];
  if (reduction == Reduction::Mean) sum /= static_cast<T>(losses.numel());
  return y;
}

/// The factor of a row's hinge derivatives in the gradient: grad_output over the number of classes (and of rows, for a
/// mean).
template <class T>
T row_gradient(const EvalCall& c, const Tensor& grad, std::int64_t row, std::int64_t rows, std::int64_t classes) {
  bool by_row = reduction_of(c) == Reduction::None && grad.dim() > 0;
  if (by_row ? grad.numel() != rows : grad.numel() < 1)
    fail(c.schema.base.substr(6) + ": grad_output does not fit self");
  T g = grad.as<T>()[by_row ? row : 0] / static_cast<T>(classes);
  return reduction_of(c) == Reduction::Mean ? g / static_cast<T>(rows) : g;
}

/// Calls f(row, target class, class, hinge) for the hinges of multi_margin_loss that are above 0.
template <class T, class F>
void each_hinge(const EvalCall& c, const Tensor& x, const Tensor& target, std::int64_t classes, F f) {
  T margin = static_cast<T>(as_double(c.number("margin")));
  for (std::int64_t row : steps(target.numel())) {
    std::int64_t own = target.as<std::int64_t>()[row];
    if (own < 0 || own >= classes) fail("target out of range");
    const T* scores = x.as<T>() + row * classes;
    for (std::int64_t k = 0; k < classes; ++k)
      if (T z = margin - scores[own] + scores[k]; k != own && z > T(0)) f(row, own, k, z);
  }
}

Value eval_multi_margin(EvalCall& c) {
  Tensor x = load(c.tensor("self"), c.tensor("self").dtype), target = load(c.tensor("target"), DType::Int64);
  Tensor weight = load_optional(c, "weight", x.dtype), losses = zeros(x.dtype, {target.numel()});
  std::int64_t classes = x.dim() == 0 ? 1 : x.sizes.back();
  bool squared = as_double(c.number("p")) == 2;
  return dispatch_floating(x.dtype, "multi_margin_loss", [&]<class T>() {
    each_hinge<T>(c, x, target, classes, [&](std::int64_t row, std::int64_t own, std::int64_t, T z) {
      T h = squared ? z * z : z;
      losses.as<T>()[row] += weight.storage ? h * weight.as<T>()[own] : h;
    });
    for (std::int64_t i : steps(losses.numel())) losses.as<T>()[i] /= static_cast<T>(classes);
    return reduced_rows<T>(losses, reduction_of(c));
  });
}

Value eval_multi_margin_backward(EvalCall& c) {
  Tensor x = load(c.tensor("self"), c.tensor("self").dtype), target = load(c.tensor("target"), DType::Int64);
  Tensor weight = load_optional(c, "weight", x.dtype), grad = load(c.tensor("grad_output"), x.dtype);
  std::int64_t classes = x.dim() == 0 ? 1 : x.sizes.back();
  bool squared = as_double(c.number("p")) == 2;
  Tensor dx = zeros(x.dtype, x.sizes);
  dispatch_floating(x.dtype, "multi_margin_loss_backward", [&]<class T>() {
    each_hinge<T>(c, x, target, classes, [&](std::int64_t row, std::int64_t own, std::int64_t k, T z) {
      T g = row_gradient<T>(c, grad, row, target.numel(), classes) * (squared ? 2 * z : T(1));
      if (weight.storage) g *= weight.as<T>()[own];
      dx.as<T>()[row * classes + k] += g;
      dx.as<T>()[row * classes + own] -= g;
    });
  });
  return dx;
}

/// Calls f for each target class of a row. The list of classes ends at the first negative number.
void each_label(const std::int64_t* labels, std::int64_t classes, auto f) {
  for (std::int64_t i = 0; i < classes && labels[i] >= 0; ++i) {
    if (labels[i] >= classes) fail("target out of range");
    f(labels[i]);
  }
}

Value eval_multilabel(EvalCall& c) {
  const DType dtype = c.tensor("self").dtype;
  Tensor x = load(c.tensor("self"), dtype), target = load(c.tensor("target"), DType::Int64);
  Tensor is_target = zeros(dtype, target.sizes);
  std::int64_t classes = x.dim() == 0 ? 1 : x.sizes.back(), rows = x.numel() / classes;
  Tensor losses = zeros(dtype, {rows});
  return dispatch_floating(dtype, "multilabel_margin_loss_forward_out_frame", [&]<class T>() {
    for (std::int64_t row : steps(rows, 4096)) {
      const std::int64_t* labels = target.as<std::int64_t>() + row * classes;
      const T* scores = x.as<T>() + row * classes;
      T *marks = is_target.as<T>() + row * classes, &loss = losses.as<T>()[row];
      each_label(labels, classes, [&](std::int64_t own) { marks[own] = T(1); });
      each_label(labels, classes, [&](std::int64_t own) {
        for (std::int64_t k = 0; k < classes; ++k)
          if (marks[k] == T(0)) loss += std::max(T(1) - scores[own] + scores[k], T(0));
      });
      loss /= static_cast<T>(classes);
    }
    return ValueList{reduced_rows<T>(losses, reduction_of(c)), is_target};
  });
}

Value eval_multilabel_backward(EvalCall& c) {
  Tensor x = load(c.tensor("self"), c.tensor("self").dtype), target = load(c.tensor("target"), DType::Int64);
  Tensor marks = load(c.tensor("is_target"), x.dtype), grad = load(c.tensor("grad_output"), x.dtype);
  if (target.numel() != x.numel() || marks.numel() != x.numel())
    fail("multilabel_margin_loss_backward: target or is_target does not fit self");
  std::int64_t classes = x.dim() == 0 ? 1 : x.sizes.back(), rows = x.numel() / classes;
  Tensor dx = zeros(x.dtype, x.sizes);
  dispatch_floating(x.dtype, "multilabel_margin_loss_backward_out_frame", [&]<class T>() {
    for (std::int64_t row : steps(rows, 4096)) {
      const T* scores = x.as<T>() + row * classes;
      T *to = dx.as<T>() + row * classes, g = row_gradient<T>(c, grad, row, rows, classes);
      each_label(target.as<std::int64_t>() + row * classes, classes, [&](std::int64_t own) {
        for (std::int64_t k = 0; k < classes; ++k)
          if (marks.as<T>()[row * classes + k] == T(0) && T(1) - scores[own] + scores[k] > T(0)) {
            to[own] -= g;
            to[k] += g;
          }
      });
    }
  });
  return dx;
}

}  // namespace

void register_margin_loss(OpTable& t) {
  t.default_family = Family::Reduction;
  t.add("aten.multi_margin_loss.default", fake_multi_margin, eval_multi_margin,
        {{"self", "multi_margin_loss_backward(grad, self, target, p, margin, weight, reduction)"}});
  t.add("aten.multi_margin_loss_backward.default", fake_multi_margin_backward, eval_multi_margin_backward);
  t.add("aten.multilabel_margin_loss_forward.default", fake_multilabel, eval_multilabel,
        {{"self", "multilabel_margin_loss_backward(grad, self, target, reduction, result1)"}});
  t.add("aten.multilabel_margin_loss_backward.default", fake_like_self, eval_multilabel_backward);
  t.add("aten.multilabel_margin_loss.default",
        {.program = "multilabel_margin_loss_forward(self, target, reduction)[0]"});
}

}  // namespace partita

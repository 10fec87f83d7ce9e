// embedding_bag: the sum, mean or maximum of an embedding's rows over bags of indices.
#include <algorithm>

#include "core/ops/facts/requires_grad.h"
#include "core/ops/kernels/in_parts.h"
#include "core/ops/kernels/outputs.h"
#include "core/ops/record/gradients.h"
#include "core/ops/record/guards.h"
#include "core/ops/record/layout.h"
#include "core/ops/record/record.h"

namespace partita {

namespace {

using namespace kernels;

enum class Mode : std::int64_t { Sum = 0, Mean = 1, Max = 2 };

Mode mode_of(const auto& c) {
  std::int64_t mode = c.integer("mode");
  if (mode < 0 || mode > 2) fail("mode has to be one of sum, mean or max");
  return static_cast<Mode>(mode);
}

/// forward_only: results that only the gradient needs are not computed.
template <bool forward_only>
Meta fake_embedding_bag(FakeCall& c) {
  const TensorMeta &weight = c.tensor("weight"), &indices = c.tensor("indices"), &offsets = c.tensor("offsets");
  if (weight.dim() != 2 || indices.dim() != 1 || offsets.dim() != 1)
    fail("embedding_bag: weight must be 2-D, indices and offsets 1-D");
  SymExpr bags = offsets.sizes[0] - (c.boolean("include_last_offset") ? 1 : 0);
  Mode mode = mode_of(c);
  bool scaled = c.has("per_sample_weights");
  if (scaled && (c.tensor("per_sample_weights").dim() != 1 ||
                 !checked(c, sym_eq(c.tensor("per_sample_weights").sizes[0], indices.sizes[0]),
                          "embedding_bag per_sample_weights")))
    fail("embedding_bag: per_sample_weights must have the sizes of indices");
  if (scaled && mode != Mode::Sum) fail("embedding_bag: per_sample_weights only supported with mode='sum'");
  // PyTorch's fast kernel leaves offset2bag empty.
  bool fast = mode == Mode::Sum &&
              (weight.dtype == DType::Float32 || weight.dtype == DType::Float16 || weight.dtype == DType::BFloat16) &&
              weight.strides[1].is(1) && c.integer("padding_idx") < 0 &&
              (!scaled || c.tensor("per_sample_weights").strides[0].is(1));
  TensorMeta offset_to_bag = new_like(offsets, {fast ? SymExpr(0) : indices.sizes[0]});
  // For a sum bag_size is not computed, but zeros; without a gradient they are as many as offsets.
  SymExpr counted = forward_only && mode == Mode::Sum ? offsets.sizes[0] : bags;
  TensorMeta maximum = new_like(offsets, mode == Mode::Max ? SymList{bags, weight.sizes[1]} : SymList{counted});
  return MetaTuple{{new_like(weight, {bags, weight.sizes[1]}), offset_to_bag, new_like(offsets, {counted}), maximum}};
}

/// Calls f(position in indices, bag) for every index of bags [first, last), in order.
void each_index(const Tensor& offsets, std::int64_t first, std::int64_t last, std::int64_t count, auto f) {
  const auto* at = offsets.as<std::int64_t>();
  for (std::int64_t done : steps(last - first, 4096)) {
    const std::int64_t bag = first + done;
    std::int64_t begin = at[bag], end = bag + 1 < offsets.numel() ? at[bag + 1] : count;
    if (begin < 0 || end > count || begin > end)
      fail("embedding_bag: offsets must increase from 0 to the number of indices");
    for (std::int64_t i = begin; i < end; ++i) f(i, bag);
  }
}

template <bool forward_only>
Value eval_embedding_bag(EvalCall& c) {
  std::vector<Tensor> outputs = allocate_all(c, fake_embedding_bag<forward_only>);
  DType dtype = evaluation_dtype(outputs[0].dtype);
  Mode mode = mode_of(c);
  Tensor weight = load(c.tensor("weight"), dtype), indices = load(c.tensor("indices"), DType::Int64);
  Tensor offsets = load(c.tensor("offsets"), DType::Int64), scales = load_optional(c, "per_sample_weights", dtype);
  std::int64_t bags = outputs[0].sizes[0], width = weight.sizes[1], padding = c.integer("padding_idx");
  Tensor out = zeros(dtype, outputs[0].sizes), bag_of = zeros(DType::Int64, outputs[1].sizes);
  Tensor sizes = zeros(DType::Int64, outputs[2].sizes), maximum = zeros(DType::Int64, outputs[3].sizes);
  dispatch_floating(dtype, "embedding_bag", [&]<class T>() {
    const auto* rows = indices.as<std::int64_t>();
    constexpr std::int64_t ahead = 8;  // rows lie anywhere, so those of the next indices are asked for early
    in_parts(c.context, bags, std::max<std::int64_t>(32768 / std::max<std::int64_t>(width, 1), 1),
             [&](std::int64_t first_bag, std::int64_t last_bag) {
               each_index(offsets, first_bag, last_bag, indices.numel(), [&](std::int64_t i, std::int64_t bag) {
                 const std::int64_t row = rows[i];
                 if (row < 0 || row >= weight.sizes[0]) fail("embedding_bag: index out of range");
                 if (i + ahead < indices.numel() && rows[i + ahead] >= 0 && rows[i + ahead] < weight.sizes[0])
                   for (std::int64_t k = 0; k < width; k += 64 / static_cast<std::int64_t>(sizeof(T)))
                     __builtin_prefetch(weight.as<T>() + rows[i + ahead] * width + k);
                 if (bag_of.numel() > 0) bag_of.as<std::int64_t>()[i] = bag;
                 if (row == padding) return;
                 const bool first = mode != Mode::Sum && sizes.as<std::int64_t>()[bag]++ == 0;
                 const T scale = scales.storage ? scales.as<T>()[i] : T(1);
                 const T* from = weight.as<T>() + row * width;
                 T* to = out.as<T>() + bag * width;
                 if (mode != Mode::Max) {
                   for (std::int64_t k = 0; k < width; ++k) to[k] += from[k] * scale;
                   return;
                 }
                 for (std::int64_t k = 0; k < width; ++k)
                   if (first || from[k] > to[k]) {
                     to[k] = from[k];
                     maximum.as<std::int64_t>()[bag * width + k] = row;
                   }
               });
             });
    for (std::int64_t bag = 0; bag < bags && mode == Mode::Mean; ++bag) {
      std::int64_t n = sizes.as<std::int64_t>()[bag];
      for (std::int64_t k = 0; k < width && n > 0; ++k) out.as<T>()[bag * width + k] /= static_cast<T>(n);
    }
  });
  // Unless the mode is max, max_indices is a copy of bag_size.
  return ValueList{out, bag_of, sizes, mode == Mode::Max ? maximum : unwrap(sizes.clone())};
}

/// Fails unless the arguments of a gradient fit the sizes of the forward call.
void check_backward(FakeCall& c) {
  if (c.tensor("grad").dim() != 2) fail("embedding_bag backward: grad must be 2-D");
  if (c.tensor("indices").dim() != 1 || c.tensor("offsets").dim() != 1)
    fail("embedding_bag backward: indices and offsets must be 1-D");
  const SymExpr bags = c.tensor("grad").sizes[0], offsets = c.tensor("offsets").sizes[0];
  if (bags.is_int() && offsets.is_int() && offsets.as_int() != bags.as_int() && offsets.as_int() != bags.as_int() + 1)
    fail("embedding_bag backward: grad has " + bags.str() + " bags, offsets " + offsets.str());
}

Meta fake_embedding_bag_backward(FakeCall& c) {
  const TensorMeta& grad = c.tensor("grad");
  check_backward(c);
  const Mode mode = mode_of(c);
  const TensorMeta &sizes = c.tensor("bag_size"), &maximum = c.tensor("maximum_indices");
  if (mode != Mode::Sum &&
      (sizes.numel().is_int() && grad.sizes[0].is_int() && sizes.numel().as_int() < grad.sizes[0].as_int()))
    fail("embedding_bag backward: bag_size must have an element per bag");
  if (mode == Mode::Max && !checked(c, sym_eq(maximum.numel(), grad.numel()), "embedding_bag backward"))
    fail("embedding_bag backward: maximum_indices must have the sizes of grad");
  if (c.has("per_sample_weights") &&
      !checked(c, sym_eq(c.tensor("per_sample_weights").numel(), c.tensor("indices").numel()),
               "embedding_bag backward"))
    fail("embedding_bag backward: per_sample_weights must have an element per index");
  return new_like(grad, {c.sym("num_weights"), grad.sizes.at(1)});
}

Value eval_embedding_bag_backward(EvalCall& c) {
  if (c.boolean("sparse")) fail_unsupported("embedding_bag with sparse gradients");
  Tensor dw = zeros_for(c, fake_embedding_bag_backward);
  const DType dtype = dw.dtype;
  Mode mode = mode_of(c);
  Tensor grad = load(c.tensor("grad"), dtype), indices = load(c.tensor("indices"), DType::Int64);
  Tensor offsets = load(c.tensor("offsets"), DType::Int64), sizes = load(c.tensor("bag_size"), DType::Int64);
  Tensor maximum = load(c.tensor("maximum_indices"), DType::Int64),
         scales = load_optional(c, "per_sample_weights", dtype);
  std::int64_t bags = grad.sizes[0], width = dw.sizes[1], rows = dw.sizes[0], padding = c.integer("padding_idx");
  bool by_frequency = c.boolean("scale_grad_by_freq");
  std::vector<std::int64_t> counts(static_cast<std::size_t>(by_frequency ? rows : 0), 0);
  dispatch_floating(dtype, "embedding_bag_backward", [&]<class T>() {
    if (mode == Mode::Max) {
      for (std::int64_t bag : steps(bags, 4096))
        for (std::int64_t k = 0; k < width && sizes.as<std::int64_t>()[bag] > 0; ++k) {
          std::int64_t row = maximum.as<std::int64_t>()[bag * width + k];
          if (row < 0 || row >= rows) fail("embedding_bag backward: index out of range");
          dw.as<T>()[row * width + k] += grad.as<T>()[bag * width + k];
        }
      return;
    }
    each_index(offsets, 0, bags, indices.numel(), [&](std::int64_t i, std::int64_t) {
      std::int64_t row = indices.as<std::int64_t>()[i];
      if (row < 0 || row >= rows) fail("embedding_bag backward: index out of range");
      if (by_frequency) ++counts[static_cast<std::size_t>(row)];
    });
    each_index(offsets, 0, bags, indices.numel(), [&](std::int64_t i, std::int64_t bag) {
      std::int64_t row = indices.as<std::int64_t>()[i];
      if (row == padding) return;
      double scale = scales.storage ? static_cast<double>(scales.as<T>()[i]) : 1;
      if (mode == Mode::Mean) scale /= static_cast<double>(std::max<std::int64_t>(sizes.as<std::int64_t>()[bag], 1));
      if (by_frequency) scale /= static_cast<double>(counts[static_cast<std::size_t>(row)]);
      const T factor = static_cast<T>(scale);
      T* const to = dw.as<T>() + row * width;
      const T* const from = grad.as<T>() + bag * width;
      for (std::int64_t k = 0; k < width; ++k) to[k] += from[k] * factor;
    });
  });
  return dw;
}

Meta fake_scales_backward(FakeCall& c) {
  check_backward(c);
  const TensorMeta& weight = c.tensor("weight");
  if (weight.dim() != 2 || !checked(c, sym_eq(weight.sizes[1], c.tensor("grad").sizes[1]), "embedding_bag backward"))
    fail("embedding_bag backward: weight must be 2-D and as wide as grad");
  return new_like(c.tensor("grad"), {c.tensor("indices").sizes.at(0)});
}

/// The gradient of index i's weight: the dot product of its embedding row and its bag's gradient.
Value eval_scales_backward(EvalCall& c) {
  Tensor ds = zeros_for(c, fake_scales_backward);
  const DType dtype = ds.dtype;
  Tensor grad = load(c.tensor("grad"), dtype), weight = load(c.tensor("weight"), dtype);
  Tensor indices = load(c.tensor("indices"), DType::Int64), offsets = load(c.tensor("offsets"), DType::Int64);
  std::int64_t width = weight.sizes[1], padding = c.integer("padding_idx");
  dispatch_floating(dtype, "embedding_bag_per_sample_weights_backward", [&]<class T>() {
    each_index(offsets, 0, grad.sizes[0], indices.numel(), [&](std::int64_t i, std::int64_t bag) {
      std::int64_t row = indices.as<std::int64_t>()[i];
      if (row < 0 || row >= weight.sizes[0]) fail("embedding_bag backward: index out of range");
      if (row == padding) return;
      double sum = 0;
      for (std::int64_t k = 0; k < width; ++k)
        sum +=
            static_cast<double>(weight.as<T>()[row * width + k]) * static_cast<double>(grad.as<T>()[bag * width + k]);
      ds.as<T>()[i] = static_cast<T>(sum);
    });
  });
  return ds;
}

template <bool has_padding>
Arg decompose_embedding_bag(DecomposeCall& c) {
  Builder& b = c.build;
  Arg padding = -1;
  if constexpr (has_padding) {
    if (c.has("padding_idx")) {
      if (c.tensor("weight").dim() != 2) fail("embedding_bag: weight must be 2-D");
      const SymExpr rows = c.tensor("weight").sizes[0], row = c.sym("padding_idx");
      if (!checked(c, sym_and(sym_le(-rows, row), sym_lt(row, rows)), "embedding_bag padding_idx"))
        fail("padding_idx must be within the number of embeddings, " + (-rows).str() + " through " + (rows - 1).str() +
             ", but got " + row.str());
      padding = c.arg("padding_idx");
      if (c.test(sym_lt(row, 0), "embedding_bag padding_idx")) padding = b.size(rows + row);
    }
  }
  auto trained = [&](std::string_view name) {
    const Node* n = c.arg(name).node();
    return n && requires_grad(n);
  };
  const bool forward_only = !trained("weight") && !trained("per_sample_weights");
  Node* bag = b.call(forward_only ? "aten._embedding_bag_forward_only.default" : "aten._embedding_bag.default",
                     {c.arg("weight"), c.arg("indices"), c.arg("offsets"), c.arg("scale_grad_by_freq"), c.arg("mode"),
                      c.arg("sparse"), c.arg("per_sample_weights"), c.arg("include_last_offset"), padding});
  const std::vector<Node*> results = results_of(b, bag);
  return Arg::tuple(std::vector<Arg>(results.begin(), results.end()));
}

}  // namespace

void register_embedding_bag(OpTable& t) {
  t.default_family = Family::Index;
  t.add_without_record({"_embedding_bag_dense_backward"});
  t.add("aten._embedding_bag_forward_only.default", fake_embedding_bag<true>, eval_embedding_bag<true>);
  t.add("aten._embedding_bag.default", fake_embedding_bag<false>, eval_embedding_bag<false>,
        {{"weight",
          "aten._embedding_bag_backward.default(grad, indices, offsets, result1, result2, result3, "
          "size(weight, 0), scale_grad_by_freq, mode, sparse, per_sample_weights, padding_idx)"},
         {"per_sample_weights",
          "aten._embedding_bag_per_sample_weights_backward.default(grad, weight, indices, offsets, result1, "
          "mode, padding_idx)"}});
  t.add("aten._embedding_bag_backward.default", fake_embedding_bag_backward, eval_embedding_bag_backward);
  t.add("aten._embedding_bag_per_sample_weights_backward.default", fake_scales_backward, eval_scales_backward);
  t.add("aten.embedding_bag.default", {.decompose = decompose_embedding_bag<false>});
  t.add("aten.embedding_bag.padding_idx", {.decompose = decompose_embedding_bag<true>});
}

}  // namespace partita

// torch.nn.functional's operators: values of PyTorch 2.13, decompositions compared with kernels, gradients of linear
// operators compared with their adjoints.
#include <QTest>
#include <cmath>

#include "core/grad/joint.h"
#include "core/interp/interpreter.h"
#include "core/ops/record/record.h"
#include "tests/support/fx.h"
#include "tests/support/values.h"

using namespace partita;
using namespace partita::testing;

namespace {

/// Eighths from -11/8 to 11/8 in a fixed shuffled order.
Tensor numbers(Sizes sizes) {
  Tensor t = *Tensor::empty(DType::Float32, std::move(sizes));
  for (std::int64_t i = 0; i < t.numel(); ++i) t.as<float>()[i] = static_cast<float>((i * 37) % 23 - 11) / 8;
  return t;
}
Value ints(const std::vector<std::int64_t>& values) {
  return ValueList(values.begin(), values.end());
}
Value none() {
  return Value();
}

struct Row {
  const char* op;
  std::vector<Value> args;
  std::vector<double> expected;  ///< of the first result that is a tensor
};

std::vector<Row> rows() {
  const Tensor log_probs =
      *evaluate(Op::torch("aten._log_softmax.default"), {numbers({4, 1, 3}), std::int64_t{-1}, false}, {})
           ->get<Tensor>();
  const Tensor labels = i64({1, 2}, {1, 1});
  return {
      // Steps of one window may be any number.
      {"aten.convolution.default",
       {numbers({1, 1, 1, 1}), numbers({1, 1, 1, 1}), none(), ints({INT64_MAX, INT64_MAX}), ints({2, 2}), ints({1, 1}),
        false, ints({0, 0}), std::int64_t{1}},
       {0}},
      // Integers wrap in the sum with the bias too.
      {"aten.convolution.default",
       {i64({1, 1, 1}, {INT64_MIN}), i64({1, 1, 1}, {1}), i64({1}, {-1}), ints({1}), ints({0}), ints({1}), true,
        ints({0}), std::int64_t{1}},
       {static_cast<double>(INT64_MAX)}},
      {"aten.unfold_copy.default",
       {numbers({2, 5}), std::int64_t{1}, std::int64_t{4}, INT64_MAX},
       {-1.375, 0.375, -0.75, 1, -1.25, 0.5, -0.625, 1.125}},
      {"aten._upsample_lanczos2d_aa.default",
       {numbers({1, 1, 4, 4}), ints({2, 3}), false},
       {-0.511541, -0.425783, 0.203031, 0.441644, 0.018175, -0.405293}},
      {"aten._upsample_bicubic2d_aa_backward.default",
       {numbers({1, 1, 2, 3}), ints({2, 3}), ints({1, 1, 3, 4}), false},
       {-0.711921, -0.126079, 0.053466, -0.338059, -0.113552, 0.0523, -0.176864, -0.590736, 0.53435, 0.207865,
        -0.330044, -0.585726}},
      {"aten.upsample_nearest1d.default",
       {numbers({1, 1, 4}), ints({6}), 1.6},
       {-1.375, -1.375, 0.375, 0.375, -0.75, 1}},
      {"aten._upsample_nearest_exact1d.default", {numbers({1, 1, 4}), ints({6})}, {-1.375, 0.375, 0.375, -0.75, 1, 1}},
      {"aten.upsample_linear1d.default", {numbers({1, 1, 3}), ints({5}), true}, {-1.375, -0.5, 0.375, -0.1875, -0.75}},
      {"aten.grid_sampler_2d.default",
       {numbers({1, 1, 3, 3}), numbers({1, 2, 2, 2}), std::int64_t{0}, std::int64_t{2}, true},
       {0.390625, 0.21875, 0.121094, -0.375}},
      {"aten.grid_sampler_2d_backward.default",
       {numbers({1, 1, 2, 2}), numbers({1, 1, 3, 3}), numbers({1, 2, 2, 2}), std::int64_t{0}, std::int64_t{1}, false,
        ValueList{true, true}},
       {-0.140625, -0.375, 0.703125, -0.601562, 0.015625, 0.046875, -0.398438, 0, 0}},
      {"aten.max_unpool2d.default",
       {numbers({1, 2, 1, 2}), i64({1, 2, 1, 2}, {3, 0, 1, 5}), ints({2, 3})},
       {0.375, 0, 0, -1.375, 0, 0, 0, -0.75, 0, 0, 0, 1}},
      {"aten.fractional_max_pool2d.default",
       {numbers({1, 1, 4, 5}), ints({2, 2}), ints({2, 3}), f32({1, 1, 2}, {0.3, 0.7})},
       {0.5, 0.5, 1.125, 0.75, 0.75, 1.375}},
      {"aten.im2col.default",
       {numbers({1, 2, 3}), ints({2, 2}), ints({1, 1}), ints({1, 0}), ints({1, 1})},
       {0,      0,     -1.375, 0.375,  1, -0.125, 0,     0,     0.375,  -0.75, -0.125, -1.25,
        -1.375, 0.375, 1,      -0.125, 0, 0,      0.375, -0.75, -0.125, -1.25, 0,      0}},
      {"aten.col2im.default",
       {numbers({1, 4, 8}), ints({3, 3}), ints({2, 2}), ints({1, 1}), ints({1, 0}), ints({1, 1})},
       {0, -0.125, -0.125, 1.25, -0.5, 1.125, -0.375, -0.875, -0.5}},
      {"aten.multi_margin_loss.default",
       {numbers({2, 3}), i64({2}, {2, 0}), std::int64_t{2}, 0.5, f32({3}, {0.5, 1, 2}), std::int64_t{0}},
       {1.760417, 0}},
      {"aten.multi_margin_loss_backward.default",
       {f32({}, {2}), numbers({2, 3}), i64({2}, {2, 0}), std::int64_t{1}, std::int64_t{1}, none(), std::int64_t{1}},
       {0.333333, 0.333333, -0.666667, 0, 0, 0}},
      {"aten.multilabel_margin_loss.default", {numbers({2, 3}), i64({2, 3}, {2, -1, 0, 1, 0, -1})}, {0.416667}},
      {"aten.glu_backward.default",
       {numbers({2, 2}), numbers({2, 4}), std::int64_t{1}},
       {-0.441129, 0.274147, 0.411958, 0.027649, -0.466844, 0.348645, 0.022032, -0.283865}},
      {"aten.ctc_loss.IntList", {log_probs, labels, ints({4}), ints({2})}, {1.606808}},
      {"aten._ctc_loss_backward.default",
       {f32({1}, {1}), log_probs, labels, ints({4}), ints({2}), f32({1}, {3.2136157}),
        *(*evaluate(Op::torch("aten._ctc_loss.default"), {log_probs, labels, ints({4}), ints({2})}, {})
               ->get<ValueList>())[1]
             .get<Tensor>(),
        std::int64_t{0}},
       {0.09512, -0.311782, 0.216662, -0.159886, 0.086183, 0.073703, -0.19723, -0.387895, 0.585125, -0.056392,
        -0.528733, 0.585125}},
      {"aten.channel_shuffle.default",
       {numbers({1, 4, 1, 2}), std::int64_t{2}},
       {-1.375, 0.375, -0.125, -1.25, -0.75, 1, 0.5, -0.625}},
      {"aten.pixel_unshuffle.default",
       {numbers({1, 1, 2, 4}), std::int64_t{2}},
       {-1.375, -0.75, 0.375, 1, -0.125, 0.5, -1.25, -0.625}},
      {"aten.poisson_nll_loss.default",
       {numbers({4}), f32({4}, {0, 1, 2, 3}), true, true, 1e-8, std::int64_t{0}},
       {0.25284, 1.079991, 2.624173, 1.482363}},
      {"aten.bilinear.default",
       {numbers({2, 2}), numbers({2, 3}), numbers({2, 2, 3})},
       {-3.748047, 2.09375, 2.941406, -0.019531}},
      {"aten.lstm_cell.default",
       {numbers({1, 2}), ValueList{numbers({1, 2}), numbers({1, 2})}, numbers({8, 2}), numbers({8, 2})},
       {-0.818226, 0.190358}},
      {"aten._embedding_bag_forward_only.default",
       {numbers({4, 2}), i64({3}, {0, 2, 3}), i64({3}, {0, 2, 3}), false, std::int64_t{0}, false, none(), true},
       {-1.5, -0.875, 0.5, -0.625}},
      {"aten.rrelu_with_noise.default",
       {numbers({4}), f32({4}, {0, 0, 0, 0}), 0.25, 0.75, false},
       {-0.6875, 0.375, -0.375, 1}},
      {"aten.alpha_dropout.default", {numbers({2}), 1.0, true}, {0, 0}},
  };
}

/// A call whose kernel and compiler decomposition must agree.
struct Twice {
  const char* name;
  const char* parameters;
  const char* call;
};
const Twice twice[] = {
    {"bilinear grid", "x: <f32[2, 3, 4, 5][60, 20, 5, 1]>, g: <f32[2, 3, 2, 2][12, 4, 2, 1]>",
     "y = $grid_sampler_2d(x, g, 0, 0, False)"},
    {"bilinear grid, reflected", "x: <f32[2, 3, 4, 5][60, 20, 5, 1]>, g: <f32[2, 3, 2, 2][12, 4, 2, 1]>",
     "y = $grid_sampler_2d(x, g, 0, 2, False)"},
    {"nearest grid, border", "x: <f32[2, 3, 4, 5][60, 20, 5, 1]>, g: <f32[2, 3, 2, 2][12, 4, 2, 1]>",
     "y = $grid_sampler_2d(x, g, 1, 1, True)"},
    {"bicubic grid, reflected", "x: <f32[2, 3, 4, 5][60, 20, 5, 1]>, g: <f32[2, 3, 2, 2][12, 4, 2, 1]>",
     "y = $grid_sampler_2d(x, g, 2, 2, True)"},
    {"bicubic", "x: <f32[1, 2, 4, 5][40, 20, 5, 1]>", "y = $upsample_bicubic2d(x, [7, 3], False)"},
    {"bicubic, corners", "x: <f32[1, 2, 4, 5][40, 1, 10, 2]>", "y = $upsample_bicubic2d(x, [7, 3], True)"},
    {"bilinear", "x: <f32[1, 2, 4, 5][40, 20, 5, 1]>", "y = $upsample_bilinear2d(x, [7, 3], False, 1.8, None)"},
    {"trilinear", "x: <f32[1, 1, 2, 4, 5][40, 40, 20, 5, 1]>", "y = $upsample_trilinear3d(x, [3, 7, 3], True)"},
    {"max_unpool", "x: <f32[2, 2, 1, 2][4, 2, 2, 1]>, i: <i64[2, 2, 1, 2][4, 2, 2, 1]>",
     "y = $max_unpool2d(x, i, [2, 3])"},
    {"im2col", "x: <f32[2, 2, 5, 4][40, 20, 4, 1]>", "y = $im2col(x, [2, 3], [2, 1], [1, 1], [2, 1])"},
    {"col2im", "x: <f32[2, 12, 4][48, 4, 1]>", "y = $col2im(x, [3, 4], [2, 3], [1, 1], [0, 0], [1, 1])"},
    {"glu", "x: <f32[2, 4][4, 1]>", "y = $glu(x, -1)"},
    {"glu_backward", "g: <f32[2, 2][2, 1]>, x: <f32[2, 4][4, 1]>", "y = $glu_backward(g, x, 1)"},
};

/// A function y = F(x) that is linear in x, and the operator that its gradient calls.
struct Adjoint {
  const char* name;
  const char* parameters;
  const char* forward;
  const char* backward;
};
const Adjoint adjoints[] = {
    {"bicubic", "x: <f32[1, 2, 4, 5][40, 20, 5, 1]>, g: <f32[1, 2, 7, 3][42, 21, 3, 1]>",
     "y = $upsample_bicubic2d(x, [7, 3], False)", "d = $upsample_bicubic2d_backward(g, [7, 3], [1, 2, 4, 5], False)"},
    {"lanczos", "x: <f32[1, 2, 4, 5][40, 20, 5, 1]>, g: <f32[1, 2, 3, 3][18, 9, 3, 1]>",
     "y = $_upsample_lanczos2d_aa(x, [3, 3], False)",
     "d = $_upsample_lanczos2d_aa_backward(g, [3, 3], [1, 2, 4, 5], False)"},
    {"trilinear", "x: <f32[1, 1, 2, 4, 5][40, 40, 20, 5, 1]>, g: <f32[1, 1, 3, 7, 3][63, 63, 21, 3, 1]>",
     "y = $upsample_trilinear3d(x, [3, 7, 3], True)",
     "d = $upsample_trilinear3d_backward(g, [3, 7, 3], [1, 1, 2, 4, 5], True)"},
    {"nearest", "x: <f32[1, 1, 5][5, 5, 1]>, g: <f32[1, 1, 8][8, 8, 1]>", "y = $upsample_nearest1d(x, [8], 1.7)",
     "d = $upsample_nearest1d_backward(g, [8], [1, 1, 5], 1.7)"},
    {"im2col", "x: <f32[2, 2, 5, 4][40, 20, 4, 1]>, g: <f32[2, 12, 12][144, 12, 1]>",
     "y = $im2col(x, [2, 3], [2, 1], [1, 1], [2, 1])", "d = $col2im(g, [5, 4], [2, 3], [2, 1], [1, 1], [2, 1])"},
    {"pixel_shuffle", "x: <f32[1, 4, 2, 3][24, 6, 3, 1]>, g: <f32[1, 1, 4, 6][24, 24, 6, 1]>",
     "y = $pixel_shuffle(x, 2)", "d = $pixel_unshuffle(g, 2)"},
    {"average pooling", "x: <f32[1, 2, 5, 5][50, 25, 5, 1]>, g: <f32[1, 2, 3, 3][18, 9, 3, 1]>",
     "y = $avg_pool2d(x, [2, 2], [2, 2], [1, 1], False, False)",
     "d = $avg_pool2d_backward(g, x, [2, 2], [2, 2], [1, 1], False, False, None)"},
    {"adaptive pooling", "x: <f32[1, 2, 5, 5][50, 25, 5, 1]>, g: <f32[1, 2, 3, 2][12, 6, 2, 1]>",
     "y = $_adaptive_avg_pool2d(x, [3, 2])", "d = $_adaptive_avg_pool2d_backward(g, x)"},
};

/// A function that dynamo keeps whole in its graphs.
struct Python {
  const char* name;
  const char* parameters;
  const char* call;  ///< without torch.nn.functional; or with all of its name, or statements that give y
  std::vector<double> expected;
};
const Python python[] = {
    {"affine_grid",
     "t: <f32[1, 2, 3][6, 3, 1]>",
     "affine_grid(t, [1, 1, 2, 3], align_corners = False)",
     {-0.020833, -1.854167, -0.9375, -1.1875, -1.854167, -0.520833, 0.354167, -1.979167, -0.5625, -1.3125, -1.479167,
      -0.645833}},
    {"affine_grid in space",
     "t: <f32[1, 3, 4][12, 4, 1]>",
     "affine_grid(t, [1, 1, 1, 2, 2], True)",
     {2, 0.75, -0.5, -0.75, 0.5, 1.75, 2.75, -1.75, -0.5, 0, -2, 1.75}},
    {"grid_sample",
     "x: <f32[1, 1, 3, 3][9, 9, 3, 1]>, g: <f32[1, 1, 2, 2][4, 4, 2, 1]>",
     "grid_sample(x, g, mode = 'nearest', padding_mode = 'reflection')",
     {0.5, 0.5}},
    {"max_unpool1d",
     "x: <f32[1, 1, 2][2, 2, 1]>, i: <i64[1, 1, 2][2, 2, 1]>",
     "max_unpool1d(x, i, 2, 4)",
     {0, 0, 0.375, 0, 0, -1.375}},
    {"multilabel_soft_margin_loss",
     "x: <f32[2, 3][3, 1]>, y: <f32[2, 3][3, 1]>",
     "multilabel_soft_margin_loss(x, y, reduction = 'sum')",
     {-0.487893}},
    {"local_response_norm",
     "x: <f32[1, 3, 2, 2][12, 4, 2, 1]>",
     "local_response_norm(x, 2, alpha = 0.5)",
     {-1.028553, 0.365407, -0.679523, 0.845897, -0.093319, -0.958011, 0.435248, -0.499684, 0.913366, 0, -0.8841,
      0.546725}},
    {"local_response_norm of lines",
     "x: <f32[1, 3, 2][6, 2, 1]>",
     "local_response_norm(x, 3, alpha = 0.5)",
     {-1.063294, 0.329111, -0.579176, 0.756584, -0.116667, -0.957355}},
    {"gaussian_nll_loss",
     "x: <f32[2, 3][3, 1]>, y: <f32[2, 3][3, 1]>",
     "gaussian_nll_loss(x, y, 0.5, full = True, reduction = 'none', eps = 0.25)",
     {0.572365, 0.572365, 0.572365, 0.572365, 0.572365, 0.572365}},
    {"triplet_margin_with_distance_loss",
     "a: <f32[2, 3][3, 1]>, b: <f32[2, 3][3, 1]>, c: <f32[2, 3][3, 1]>",
     "triplet_margin_with_distance_loss(a, b, c, swap = True)",
     {1}},
    {"antialiased",
     "x: <f32[1, 1, 4, 4][16, 16, 4, 1]>",
     "interpolate(x, size = (2, 3), mode = 'bicubic', antialias = True)",
     {-0.524243, -0.366873, 0.162156, 0.388926, 0.01937, -0.350186}},
    {"area by a factor",
     "x: <f32[1, 1, 4, 4][16, 16, 4, 1]>",
     "interpolate(x, scale_factor = 0.6, mode = 'area')",
     {-0.59375, 0.03125, 0.46875, -0.34375}},
    {"linear by a factor computed again",
     "x: <f32[1, 1, 5][5, 5, 1]>",
     "interpolate(x, scale_factor = 1.5, mode = 'linear', recompute_scale_factor = True)",
     {-1.375, -0.375, 0.053571, -0.75, 0.5, 0.517857, -0.125}},
    {"upsample_bilinear",
     "x: <f32[1, 1, 2, 2][4, 4, 2, 1]>",
     "upsample_bilinear(x, scale_factor = 2)",
     {-1.375, -0.791667, -0.208333, 0.375, -1.166667, -0.583333, 0, 0.583333, -0.958333, -0.375, 0.208333, 0.791667,
      -0.75, -0.166667, 0.416667, 1}},
    {"lp_pool2d", "x: <f32[1, 1, 2, 4][8, 8, 4, 1]>", "lp_pool2d(x, 2.0, 2)", {1.899836, 1.484293}},
    {"masked sum", "x: <f32[2, 3][3, 1]>", "m = x > 0\ny = torch.masked._ops.sum(x, 1, mask = m)", {0.375, 1}},
    {"masked prod of all", "x: <f32[2, 3][3, 1]>", "m = x > 0\ny = torch.masked._ops.prod(x, mask = m)", {0.375}},
    {"masked mean",
     "x: <f32[2, 3][3, 1]>",
     "m = x > 0\ny = torch.masked._ops.mean(x, 1, keepdim = True, mask = m)",
     {0.375, 1}},
    {"masked amin", "x: <f32[2, 3][3, 1]>", "m = x > 0\ny = torch.masked._ops.amin(x, (0, 1), mask = m)", {0.375}},
    {"masked argmax", "x: <f32[2, 3][3, 1]>", "m = x > 0\ny = torch.masked._ops.argmax(x, 1, mask = m)", {1, 0}},
    {"masked median", "x: <f32[2, 3][3, 1]>", "m = x > 0\ny = torch.masked._ops.median(x, 1, mask = m)", {0.375, 1}},
    {"masked var", "x: <f32[2, 3][3, 1]>", "m = x > 0\ny = torch.masked._ops.var(x, 1, False, mask = m)", {0, 0}},
    {"masked std without a mask",
     "x: <f32[2, 3][3, 1]>",
     "torch.masked._ops.std(x, 1, correction = 0.5)",
     {0.7932, 1.006231}},
    {"masked logsumexp",
     "x: <f32[2, 3][3, 1]>",
     "m = x > 0\ny = torch.masked._ops.logsumexp(x, 1, mask = m)",
     {0.375, 1}},
    {"masked logaddexp",
     "x: <f32[2, 3][3, 1]>",
     "m = x > 0\ny = torch.masked._ops.logaddexp(x, x, input_mask = m)",
     {-1.375, 1.068147, -0.75, 1.693147, -0.125, -1.25}},
    {"masked softmax",
     "x: <f32[2, 3][3, 1]>",
     "m = x > 0\ny = torch.masked._ops.softmax(x, 1, mask = m)",
     {0, 1, 0, 1, 0, 0}},
    {"masked cumprod",
     "x: <f32[2, 3][3, 1]>",
     "m = x > 0\ny = torch.masked._ops.cumprod(x, -1, mask = m)",
     {1, 0.375, 0.375, 1, 1, 1}},
    {"masked norm", "x: <f32[2, 3][3, 1]>", "m = x > 0\ny = torch.masked._ops.norm(x, -inf, 1, mask = m)", {0.375, 1}},
    {"masked normalize",
     "x: <f32[2, 3][3, 1]>",
     "m = x > 0\ny = torch.masked._ops.normalize(x, 3.0, 1, mask = m)",
     {0, 1, 0, 1, 0, 0}},
    {"masked by a row",
     "x: <f32[2, 3][3, 1]>",
     "m = x[0] > 0\ny = torch.masked._ops.sum(x, 1, mask = m)",
     {0.375, -0.125}},
    {"bartlett", "", "torch.signal.windows.windows.bartlett(5)", {0, 0.5, 1, 0.5, 0}},
    {"cosine", "", "torch.signal.windows.windows.cosine(4, sym = False)", {0.309017, 0.809017, 1, 0.809017}},
    {"exponential",
     "",
     "torch.signal.windows.windows.exponential(4, tau = 2.0)",
     {0.472367, 0.778801, 0.778801, 0.472367}},
    {"gaussian",
     "",
     "torch.signal.windows.windows.gaussian(4, std = 2.0, sym = False)",
     {0.606531, 0.882497, 1, 0.882497}},
    {"kaiser", "", "torch.signal.windows.windows.kaiser(4, beta = 3.0)", {0.204885, 0.871242, 0.871242, 0.204885}},
    {"kaiser of one", "", "torch.signal.windows.windows.kaiser(1)", {1}},
    {"general_hamming", "", "torch.signal.windows.windows.general_hamming(4, alpha = 0.6)", {0.2, 0.8, 0.8, 0.2}},
    {"nuttall",
     "",
     "torch.signal.windows.windows.nuttall(5, sym = False)",
     {0.000363, 0.110515, 0.798258, 0.798258, 0.110515}},
    {"general_cosine",
     "",
     "torch.signal.windows.windows.general_cosine(4, a = [0.5, 0.25, 0.25])",
     {0.5, 0.5, 0.5, 0.5}},
    {"einsum by lists",
     "x: <f32[2, 3][3, 1]>, z: <f32[3, 2][2, 1]>",
     "torch.functional.einsum(x, [0, 1], z, [1, 30], [30, 0])",
     {1.703125, -1.125, 0.796875, 1.8125}},
    {"einsum by one list",
     "x: <f32[2, 3][3, 1]>",
     "torch.functional.einsum(x, [Ellipsis, 0])",
     {-1.375, 0.375, -0.75, 1, -0.125, -1.25}},
    {"cdist by a mode",
     "x: <f32[2, 3][3, 1]>, z: <f32[1, 3][3, 1]>",
     "torch.functional.cdist(x, z, 2.0, 'donot_use_mm_for_euclid_dist')",
     {0, 2.478029}},
    {"lu", "x: <f32[2, 2][2, 1]>", "lu = torch.functional.lu(x)\ny = lu[0]", {-1.375, 0.375, 0.545455, 0.795455}},
    {"the norm of an empty matrix", "x: <f32[2, 0, 3][3, 3, 1]>", "torch.linalg.matrix_norm(x, 1)", {0, 0}},
    {"the greatest singular value of none", "x: <f32[2, 3, 0][3, 1, 1]>", "torch.linalg.matrix_norm(x, 2)", {0, 0}},
    {"an infinite norm of no columns", "x: <f32[0, 0][1, 1]>", "torch._C._linalg.linalg_norm(x, inf)", {0}},
    {"norm 'nuc'", "x: <f32[2, 3][3, 1]>", "x.norm('nuc')", {3.201904}},
    {"norm 'nuc' by dimensions", "x: <f32[2, 1, 2][2, 2, 1]>", "torch.functional.norm(x, 'nuc', (0, 2))", {2.404423}},
    {"max_pool1d_with_indices",
     "x: <f32[1, 1, 4][4, 4, 1]>",
     "pair = torch.nn.functional.max_pool1d_with_indices(x, 2)\ny = pair[1]",
     {1, 3}},
    {"adaptive_max_pool2d_with_indices",
     "x: <f32[1, 2, 4][8, 4, 1]>",
     "pair = torch.nn.functional.adaptive_max_pool2d_with_indices(x, (None, 2))\ny = pair[1]",
     {1, 3, 4, 6}},
    {"LongTensor", "", "torch.LongTensor([[1, 2], [3, 4]])", {1, 2, 3, 4}},
    {"Tensor", "", "torch.Tensor([0.5, 2])", {0.5, 2}},
    {"new", "x: <f32[2][1]>", "x.new([0.5, 2])", {0.5, 2}},
    {"a number for a dtype", "x: <f32[2][1]>", "torch.ops.aten._to_copy.default(x, dtype = 11, layout = 0)", {1, 1}},
    {"a number for a dtype, without an overload", "x: <f32[2][1]>", "torch.ops.aten.sum(x, dtype = 7)", {-1}},
    {"a number for a memory format",
     "x: <f32[1, 2, 2, 1][4, 2, 1, 1]>",
     "torch.ops.aten.clone.default(x, memory_format = 2)",
     {-1.375, 0.375, -0.75, 1}},
    {"a number for a dtype, before overloads of TorchScript", "x: <f32[2][1]>", "torch.ops.aten.to(x, 3)", {-1, 0}},
    {"a number for a size", "x: <f32[2, 3][3, 1]>", "x.view(-1)", {-1.375, 0.375, -0.75, 1, -0.125, -1.25}},
    {"_segment_reduce",
     "x: <f32[3, 2][2, 1]>",
     "n = torch.LongTensor([1, 2])\ny = torch._segment_reduce(x, 'sum', lengths = n)",
     {-1.375, 0.375, -0.875, -0.25}},
    {"text for a device", "x: <f32[2][1]>", "torch.ops.aten._to_copy.default(x, device = 'cpu')", {-1.375, 0.375}},
    {"prims views",
     "x: <f32[2, 3][3, 1]>",
     "a = torch.ops.prims.transpose.default(x, [1, 0])\nb = torch.ops.prims.split_dim.default(x, 1, 3)\nc = "
     "torch.ops.prims.broadcast_in_dim.default(a, [2, 3, 2], [1, 2])\nd = torch.ops.prims.collapse.default(c, 0, 1)\ny "
     "= torch.ops.prims.sum.default(d, [0])",
     {-3.5, -0.75}},
    {"prims.div of whole numbers",
     "x: <f32[2, 3][3, 1]>",
     "w = x * 8\ni = torch.ops.prims.convert_element_type.default(w, torch.int64)\nj = "
     "torch.ops.prims.full_like.default(i, 3, dtype = torch.int64, device = 'cpu', requires_grad = False)\ny = "
     "torch.ops.prims.div.default(i, j)",
     {-3, 1, -2, 2, 0, -3}},
    {"prims.var", "x: <f32[2, 3][3, 1]>", "torch.ops.prims.var.default(x, [1], 0.0)", {0.524306, 0.84375}},
    {"prims.iota on a device as text",
     "",
     "torch.ops.prims.iota.default(3, start = 1, step = 2, dtype = torch.int64, device = 'cpu', requires_grad = False)",
     {1, 3, 5}},
    {"_euclidean_dist",
     "x: <f32[2, 3][3, 1]>, z: <f32[1, 3][3, 1]>",
     "torch.ops.aten._euclidean_dist.default(x, z)",
     {0, 2.478029}},
};

std::vector<Value> inputs_of(const Graph& graph) {
  std::vector<Value> inputs;
  for (const Node* node : graph) {
    if (!node->is_placeholder()) continue;
    const TensorMeta& meta = *node->meta.tensor();
    Tensor t = *Tensor::empty(meta.dtype, *concrete(meta.sizes));
    t.strides = *concrete(meta.strides);
    Tensor values = numbers(t.sizes);
    // Positions for max_unpool must be distinct within a plane.
    if (meta.dtype == DType::Int64)
      for (std::int64_t i = 0; i < values.numel(); ++i) values.as<float>()[i] = static_cast<float>(5 - i % 2 * 3);
    t.copy_from(*values.to(meta.dtype));
    inputs.emplace_back(t);
  }
  return inputs;
}

std::vector<double> run(const Graph& graph) {
  auto outputs = interpret(graph, inputs_of(graph));
  if (!outputs) throw std::runtime_error(outputs.error().line());
  return elements(outputs->front());
}

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) sum += a[i] * b[i];
  return sum;
}

#define NAMES(table)              \
  QTest::addColumn<int>("index"); \
  for (int i = 0; const auto& row : table) QTest::addRow("%s", row.name) << i++

}  // namespace

class TestNn : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void values_are_pytorchs_data() {
    QTest::addColumn<int>("index");
    for (int i = 0; const Row& row : rows()) QTest::addRow("%s", row.op) << i++;
  }
  void values_are_pytorchs() {
    QFETCH(int, index);
    const Row row = rows()[static_cast<std::size_t>(index)];
    Result<Value> result = evaluate(Op::torch(row.op), row.args, {});
    QVERIFY2(bool(result), result ? "" : result.error().line().c_str());
    const auto* list = result->get<ValueList>();
    const std::vector<double> found = elements(list ? list->front() : *result);
    QCOMPARE(found.size(), row.expected.size());
    for (std::size_t i = 0; i < found.size(); ++i)
      QVERIFY2(std::abs(found[i] - row.expected[i]) < 2e-6,
               qPrintable(QString("element %1: %2, expected %3").arg(i).arg(found[i]).arg(row.expected[i])));
  }

  void a_decomposition_gives_what_its_kernel_gives_data() { NAMES(twice); }
  void a_decomposition_gives_what_its_kernel_gives() {
    QFETCH(int, index);
    const Twice& row = twice[index];
    auto graph = fx(row.parameters, std::string(row.call) + "\nreturn (y,)");
    const std::vector<double> kernel = run(*graph);
    const Op* op = nullptr;
    for (Node* node : *graph)
      if (node->op()->is_call()) {
        op = node->op();
        node->meta = *infer(*node);
      }
    Status decomposed = decompose_to_core(*graph);
    QVERIFY2(bool(decomposed), decomposed ? "" : decomposed.error().line().c_str());
    for (const Node* node : *graph) QVERIFY(node->op() != op);
    const std::vector<double> composed = run(*graph);
    QCOMPARE(composed.size(), kernel.size());
    for (std::size_t i = 0; i < kernel.size(); ++i)
      QVERIFY2(std::abs(kernel[i] - composed[i]) < 1e-5,
               qPrintable(QString("element %1: %2 and %3").arg(i).arg(kernel[i]).arg(composed[i])));
  }

  void python_functions_data() { NAMES(python); }
  void python_functions() {
    QFETCH(int, index);
    const Python& row = python[index];
    const std::string_view call = row.call;
    const bool statements = call.find("\ny = ") != std::string_view::npos, dotted = call.find('.') < call.find('(');
    const char* before = statements ? "" : dotted ? "y = " : "y = torch.nn.functional.";
    auto graph = fx(row.parameters, std::string(before) + row.call + "\nreturn (y,)");
    const std::vector<double> found = run(*graph);
    QCOMPARE(found.size(), row.expected.size());
    for (std::size_t i = 0; i < found.size(); ++i)
      QVERIFY2(std::abs(found[i] - row.expected[i]) < 2e-6,
               qPrintable(QString("element %1: %2, expected %3").arg(i).arg(found[i]).arg(row.expected[i])));
  }

  void a_gradient_is_the_adjoint_data() { NAMES(adjoints); }
  void a_gradient_is_the_adjoint() {
    QFETCH(int, index);
    const Adjoint& row = adjoints[index];
    auto forward = fx(row.parameters, std::string(row.forward) + "\nreturn (y,)");
    auto backward = fx(row.parameters, std::string(row.backward) + "\nreturn (d,)");
    const std::vector<Value> inputs = inputs_of(*forward);
    const double there = dot(run(*forward), elements(inputs[1])), back = dot(run(*backward), elements(inputs[0]));
    QVERIFY2(std::abs(there - back) < 1e-4, qPrintable(QString("%1 and %2").arg(there).arg(back)));
  }

  void what_pytorch_refuses_is_refused() {
    auto fails = [](const char* op, std::vector<Value> args, const char* why) {
      Result<Value> result = evaluate(Op::torch(op), std::move(args), {});
      return !result && result.error().message.find(why) != std::string::npos;
    };
    QVERIFY(fails("aten.max_unpool2d.default", {numbers({1, 1, 1}), i64({1, 1, 1}, {9}), ints({2, 2})},
                  "invalid max index"));
    QVERIFY(fails("aten.glu.default", {numbers({3})}, "must be even"));
    QVERIFY(fails("aten.pixel_shuffle.default", {numbers({1, 3, 2, 2}), std::int64_t{2}}, "divisible by the square"));
    QVERIFY(fails("aten.im2col.default", {numbers({1, 2, 2}), ints({3, 3}), ints({1, 1}), ints({0, 0}), ints({1, 1})},
                  "sliding blocks"));
    QVERIFY(fails("aten.grid_sampler.default",
                  {numbers({1, 1, 2, 2}), numbers({1, 1, 1, 3}), std::int64_t{0}, std::int64_t{0}, false},
                  "size 2 in last dimension"));
    QVERIFY(fails("aten.ctc_loss.IntList", {numbers({2, 1, 3}), i64({1, 2}, {1, 2}), ints({3}), ints({2})},
                  "input_lengths"));
    QVERIFY(fails("aten.multi_margin_loss.default", {numbers({1, 3}), i64({1}, {3})}, "out of range"));
  }
};

QTEST_APPLESS_MAIN(TestNn)
#include "test_nn.moc"

// Compares compiled with interpreted results in cases where they once differed: nothing to reduce, empty tensors,
// strided biases, roundings.
#include <QtTest>

#include "codegen/cpu/cpu_machine.h"
#include "codegen/cpu/cpu_target.h"
#include "codegen/program/executable.h"
#include "core/compare/compare.h"
#include "core/fake/propagate.h"
#include "core/interp/interpreter.h"
#include "core/interp/random_values.h"
#include "core/schedule/make_plan.h"
#include "tests/support/fx.h"
#include "tests/support/values.h"

using namespace partita;
using namespace partita::testing;

namespace {

struct Case {
  const char* name;
  const char* parameters;
  const char* lines;
  bool exact = false;  ///< compare every bit
};

const Case cases[] = {
    {"sum of a number", "x: <f32[][]>", "r: <f32[][]> = $sum(x)\nreturn (r,)"},
    {"softmax of a number", "x: <f32[][]>", "r: <f32[][]> = $_softmax(x, 0, False)\nreturn (r,)"},
    {"safe softmax of rows of -inf", "x: <f32[6, 20][20, 1]>, y: <bf16[6, 20][20, 1]>",
     "i: <i64[6][1]> = $arange.default(6)\nj: <i64[6, 1][1, 1]> = $unsqueeze(i, 1)\n"
     "c: <b8[6, 1][1, 1]> = $lt.Scalar(j, 3)\nm: <f32[6, 20][20, 1]> = $masked_fill.Scalar(x, c, -inf)\n"
     "r: <f32[6, 20][20, 1]> = $_safe_softmax(m, -1)\nn: <bf16[6, 20][20, 1]> = $masked_fill.Scalar(y, c, -inf)\n"
     "s: <bf16[6, 20][20, 1]> = $_safe_softmax(n, 0)\nt: <f32[6, 20][20, 1]> = $_safe_softmax(n, 1, torch.float32)\n"
     "return (r, s, t)"},
    {"safe softmax in double", "x: <f32[6, 20][20, 1]>",
     "r: <f64[6, 20][20, 1]> = $_safe_softmax(x, -1, torch.float64)\nreturn (r,)"},
    {"what is not a number stays where it is in an image of the same size", "x: <f32[1, 2, 8][16, 8, 1]>",
     "m: <f32[1, 2, 8][16, 8, 1]> = $sub.Tensor(x, 0.5)\nl: <f32[1, 2, 8][16, 8, 1]> = $log(m)\n"
     "r: <f32[1, 2, 8][16, 8, 1]> = $upsample_linear1d.vec(l, None, True, [1.0])\n"
     "s: <f32[1, 2, 8][16, 8, 1]> = $upsample_linear1d(l, [8], False)\nreturn (r, s)"},
    {"another dtype of a view whose first strides an operator reads", "x: <bf16[1, 1, 8][8, 1, 1]>",
     "v: <bf16[1, 1, 8][8, 8, 1]> = $view(x, [-1, 1, 8])\n"
     "r: <f64[1, 1, 2][2, 2, 1]> = $view_copy.dtype(v, torch.float64)\nreturn (r,)",
     true},
    {"a library's argument that is one of two equal values", "x: <f32[4, 3][3, 1]>, y: <f32[3, 4][4, 1]>",
     "c: <b8[4, 3][3, 1]> = $gt.Scalar(x, 0)\nf: <f32[4, 3][3, 1]> = $_to_copy(c, dtype=torch.float32)\n"
     "w: <f32[4, 3][3, 1]> = $where.self(f, x, x)\nr: <f32[4, 4][4, 1]> = $mm(w, y)\nreturn (r,)"},
    {"sum over no dims", "x: <f32[3][1]>", "r: <f32[3][1]> = $sum.dim_IntList(x, [])\nreturn (r,)"},
    {"empty rows", "x: <f64[5, 0, 0][1, 1, 1]>", "r: <f64[5, 0, 0][1, 1, 1]> = $_softmax(x, -1, False)\nreturn (r,)"},
    {"sums of nothing", "x: <f32[0, 3][3, 1]>", "r: <f32[3][1]> = $sum.dim_IntList(x, [0])\nreturn (r,)"},
    {"layer norm of no rows", "x: <f32[0, 1][1, 1]>, w: <f32[1][1]>, b: <f32[1][1]>",
     "n = $native_layer_norm(x, [1], w, b, 1e-05)\nr: <f32[0, 1][1, 1]> = n[0]\nreturn (r,)"},
    {"draws come in the order of the graph", "x: <f32[40][1]>",
     "a: <f32[40][1]> = $rand([40])\nb: <f32[40][1]> = $randn_like(x)\nc: <f32[40][1]> = $bernoulli.p(x, 0.5)\n"
     "d: <f32[40][1]> = $mul.Tensor(x, c)\ne: <f32[40][1]> = $add.Tensor(d, b)\nf: <f32[40][1]> = $neg(a)\n"
     "return (e, f, c)",
     true},
    {"gather with an empty index", "x: <f32[5][1]>, i: <i64[2, 0][1, 1]>",
     "r: <f32[2, 0][1, 1]> = $gather(x, 0, i)\nreturn (r,)"},
    {"convolution with a strided bias",
     "x: <f32[1, 3, 5, 5][75, 25, 5, 1]>, w: <f32[4, 3, 3, 3][27, 9, 3, 1]>, b: <f32[4, 2][2, 1]>",
     "s: <f32[4][2]> = $select.int(b, 1, 0)\n"
     "r: <f32[1, 4, 3, 3][36, 9, 3, 1]> = $convolution(x, w, s, [1, 1], [0, 0], [1, 1], False, [0, 0], 1)\nreturn "
     "(r,)"},
    {"addmm with a strided bias", "x: <f32[3, 4][4, 1]>, w: <f32[4, 5][5, 1]>, b: <f32[5, 2][2, 1]>",
     "s: <f32[5][2]> = $select.int(b, 1, 0)\nr: <f32[3, 5][5, 1]> = $addmm(s, x, w)\nreturn (r,)"},
    {"product of one row of an embedding", "w: <f32[9, 4][4, 1]>, i: <i64[1, 1][1, 1]>, v: <f32[4, 5][5, 1]>",
     "j: <i64[1, 1][1, 1]> = $remainder.Scalar(i, 9)\ne: <f32[1, 1, 4][4, 4, 1]> = $embedding(w, j)\n"
     "p: <f32[1, 1, 4][4, 4, 1]> = $permute(e, [1, 0, 2])\nt: <f32[1, 4][4, 1]> = $view(p, [1, 4])\n"
     "r: <f32[1, 5][5, 1]> = $mm(t, v)\nreturn (r, t)"},
    {"log_softmax of half types", "x: <bf16[4, 33][33, 1]>",
     "r: <bf16[4, 33][33, 1]> = $_log_softmax(x, 1, False)\nreturn (r,)"},
    {"layer norm of half types", "x: <f16[3, 7][7, 1]>, w: <f16[7][1]>",
     "n = $native_layer_norm(x, [7], w, None, 1e-05)\nr: <f16[3, 7][7, 1]> = n[0]\nreturn (r,)"},
    {"batch norm of half types", "x: <bf16[5, 3, 4][12, 4, 1]>",
     "n = $_native_batch_norm_legit.no_stats(x, None, None, True, 0.1, 1e-05)\nr: <bf16[5, 3, 4][12, 4, 1]> = n[0]\n"
     "m: <bf16[3][1]> = n[1]\nreturn (r, m)"},
    {"signs of what is known to be positive", "x: <u8[40][1]>, y: <b8[40][1]>",
     "e: <f32[40][1]> = $erf(x)\nr: <f32[40][1]> = $relu(e)\nt: <f32[40][1]> = $tanh(y)\ns: <f32[40][1]> = "
     "$relu(t)\nreturn (r, s)"},
    {"the larger of a magnitude and a number", "x: <f32[40][1]>, y: <f64[40][1]>",
     "m: <f32[40][1]> = $neg(x)\na: <f32[40][1]> = $abs(m)\nr: <f32[40][1]> = $relu(a)\nn: <f64[40][1]> = "
     "$neg(y)\nc: <f64[40][1]> = $abs(n)\ns: <f64[40][1]> = $clamp_min(c, 0)\nreturn (r, s)",
     true},
    {"the extremes of what is not a number", "x: <f32[6, 40][40, 1]>, y: <f32[6, 40][40, 1]>",
     "l: <f32[6, 40][40, 1]> = $sqrt(x)\nf: <f32[6, 40][40, 1]> = $full_like(y, 0.25)\n"
     "m: <f32[6, 40][40, 1]> = $maximum(l, y)\nn: <f32[6, 40][40, 1]> = $minimum(y, l)\n"
     "g: <f32[6, 40][40, 1]> = $maximum(f, l)\nh: <f32[6, 40][40, 1]> = $minimum(l, f)\n"
     "c: <f32[6, 40][40, 1]> = $clamp(l, -0.5, 0.5)\nr: <f32[6][1]> = $amax(l, [1])\n"
     "s: <f32[40][1]> = $amin(l, [0])\nreturn (m, n, g, h, c, r, s)",
     true},
    {"deviations whose squares are no floats", "x: <f32[6, 40][40, 1]>",
     "a: <f32[6, 40][40, 1]> = $mul.Scalar(x, 1e25)\nb: <f32[6][1]> = $std.correction(a, [1])\n"
     "r: <f32[6][1]> = $mul.Scalar(b, 1e-25)\nc: <f32[6, 40][40, 1]> = $mul.Scalar(x, 1e-25)\n"
     "d: <f32[6][1]> = $std.correction(c, [1])\ns: <f32[6][1]> = $mul.Scalar(d, 1e25)\nreturn (r, s)"},
    {"rows in vectors of several lengths", "x: <f32[5, 77][77, 1]>, y: <f32[5, 77][77, 1]>",
     "a: <f32[5, 77][77, 1]> = $add.Tensor(x, y)\nt: <f32[5, 1][1, 1]> = $amax(a, [1], True)\n"
     "d: <f32[5, 77][77, 1]> = $sub.Tensor(a, t)\ne: <f32[5, 77][77, 1]> = $mul.Tensor(d, x)\n"
     "f: <f32[5, 77][77, 1]> = $add.Tensor(e, y)\ng: <f32[5, 77][77, 1]> = $mul.Tensor(f, d)\n"
     "h: <f32[5, 77][77, 1]> = $add.Tensor(g, x)\ni: <f32[5, 77][77, 1]> = $mul.Tensor(h, y)\n"
     "j: <f32[5, 77][77, 1]> = $add.Tensor(i, d)\nk: <f32[5, 77][77, 1]> = $mul.Tensor(j, j)\n"
     "s: <f32[5, 1][1, 1]> = $sum.dim_IntList(k, [1], True)\nz: <f32[5, 77][77, 1]> = $div.Tensor(k, s)\n"
     "w: <f32[5, 77][77, 1]> = $gelu(z)\nreturn (w, s)"},
    {"signs of what has no logarithm", "x: <f32[40][1]>, o: <f32[40][1]>",
     "m: <f32[40][1]> = $mul.Tensor(x, 3)\na: <f32[40][1]> = $log(x)\nb: <f32[40][1]> = $log1p(m)\n"
     "c: <f32[40][1]> = $log2(x)\nd: <f32[40][1]> = $log10(m)\ne: <f32[40][1]> = $ones_like(o)\n"
     "p: <f32[40][1]> = $copysign.Tensor(e, a)\nq: <f32[40][1]> = $copysign.Tensor(e, b)\n"
     "r: <f32[40][1]> = $copysign.Tensor(e, c)\ns: <f32[40][1]> = $copysign.Tensor(e, d)\nreturn (p, q, r, s)",
     true},
    {"a constant is what its dtype holds", "x: <u8[5][1]>",
     "f: <u8[5][1]> = $full_like(x, -3)\nr: <f32[5][1]> = $sin(f)\nb: <b8[5][1]> = $full_like(x, -0.25, dtype = "
     "torch.bool)\nreturn (r, b)"},
    {"a loss of one sample without a reduction", "x: <f32[2][1]>, t: <i64[][]>",
     "n = $nll_loss_forward(x, t, None, 0, -100)\nr: <f32[][]> = n[0]\nw: <f32[][]> = n[1]\nreturn (r, w)"},
    {"rows of a gradient in other dimensions than their indices", "g: <f32[1, 5, 2][10, 2, 1]>, i: <i64[5, 1][1, 1]>",
     "r: <f32[3, 2][2, 1]> = $embedding_dense_backward(g, i, 3, -1, False)\nreturn (r,)"},
    {"an embedding of no indices has a gradient", "g: <f16[2, 0, 3][3, 3, 1]>, i: <i64[0][1]>",
     "r: <f16[3, 3][3, 1]> = $embedding_dense_backward(g, i, 3, 2, False)\nreturn (r,)", true},
    {"sums of many ones in a half type", "x: <bf16[3][1]>",
     "z: <bf16[3][1]> = $zeros_like(x)\no: <bf16[1000][1]> = $ones([1000], dtype = torch.bfloat16)\n"
     "i: <i64[1000][1]> = $zeros([1000], dtype = torch.int64)\nv: <bf16[1000, 1][1, 1]> = $unsqueeze(o, 1)\n"
     "p: <bf16[3][1]> = $index_put(z, [i], o, True)\na: <bf16[3][1]> = $index_add(z, 0, i, o)\n"
     "s: <bf16[3][1]> = $scatter_add(z, 0, i, o)\n"
     "e: <bf16[3, 1][1, 1]> = $embedding_dense_backward(v, i, 3, -1, False)\nreturn (p, a, s, e)",
     true},
    {"gradients of group norm",
     "g: <f32[2, 6, 5][30, 5, 1]>, x: <f32[2, 6, 5][30, 5, 1]>, m: <f32[2, 3][3, 1]>, r: <f32[2, 3][3, 1]>, "
     "w: <f32[6][1]>",
     "l = $native_group_norm_backward(g, x, m, r, w, 2, 6, 5, 3, [True, True, True])\n"
     "a: <f32[2, 6, 5][30, 5, 1]> = l[0]\nb: <f32[6][1]> = l[1]\nc: <f32[6][1]> = l[2]\n"
     "n = $native_group_norm_backward(g, x, m, r, None, 2, 6, 5, 3, [True, False, False])\n"
     "d: <f32[2, 6, 5][30, 5, 1]> = n[0]\nreturn (a, b, c, d)"},
    {"squared differences of other sizes", "x: <f32[4, 5][5, 1]>, y: <bf16[5][1]>",
     "m: <f32[][]> = $mse_loss(x, y)\ns: <f32[][]> = $mse_loss(x, y, 2)\nn: <f32[4, 5][5, 1]> = $mse_loss(x, y, 0)\n"
     "d: <f32[4, 5][5, 1]> = $mse_loss_backward(s, x, n, 1)\ne: <f32[4, 5][5, 1]> = $mse_loss_backward(n, x, d, 0)\n"
     "return (m, s, n, d, e)"},
    {"layer norm's statistics may be flat",
     "g: <f32[3, 5][5, 1]>, x: <f32[3, 5][5, 1]>, m: <f32[3][1]>, r: <f32[3][1]>",
     "l = $native_layer_norm_backward(g, x, [5], m, r, None, None, [True, False, False])\n"
     "o: <f32[3, 5][5, 1]> = l[0]\nreturn (o,)"},
    {"copy keeps the gaps of what it replaces", "x: <f32[2, 8][8, 1]>, y: <f32[2, 7][7, 1]>",
     "s: <f32[2, 7][8, 1]> = $slice.Tensor(x, 1, 1, 8)\nr: <f32[2, 7][8, 1]> = $copy(s, y)\nreturn (r,)", true},
    {"as_strided of a copy sees the copy's memory", "x: <f32[4, 6][6, 1]>",
     "t: <f32[6, 4][1, 6]> = $t(x)\ns: <f32[3, 4][1, 6]> = $slice.Tensor(t, 0, 0, 3)\nc: <f32[3, 4][1, 3]> = "
     "$clone(s)\n"
     "r: <f32[12][1]> = $as_strided(c, [12], [1])\nreturn (r,)",
     true},
    {"views of complex numbers", "x: <c64[4, 6][6, 1]>",
     "t: <c64[6, 4][1, 6]> = $t(x)\ns = $unsafe_split.Tensor(t, 4)\na: <c64[4, 4][1, 6]> = s[0]\n"
     "b: <c64[2, 4][1, 6]> = s[1]\nc: <c64[4, 4][1, 4]> = $mul.Tensor(a, 2)\nreturn (b, c)",
     true},
    {"rows without elements have a mean of 0", "x: <f64[3, 0][1, 1]>",
     "n = $native_layer_norm(x, [0], None, None, 1e-05)\nm: <f64[3, 1][1, 1]> = n[1]\nr: <f64[3, 1][1, 1]> = n[2]\n"
     "return (m, r)",
     true},
    {"a gradient of a pooled plane without elements", "g: <f32[5, 8, 7][56, 7, 1]>, x: <f32[5, 8, 0][8, 1, 1]>",
     "r: <f32[5, 8, 0][8, 1, 1]> = $_adaptive_avg_pool2d_backward(g, x)\nreturn (r,)"},
    {"a dilated window of nothing but padding", "x: <f32[3, 5, 1][5, 1, 1]>",
     "p = $max_pool1d_with_indices(x, [2], [], [1], [2])\nv: <f32[3, 5, 1][5, 1, 1]> = p[0]\n"
     "i: <i64[3, 5, 1][5, 1, 1]> = p[1]\nreturn (v, i)",
     true},
    {"a gradient of an embedding in bfloat16 rounds row by row", "g: <bf16[64, 8][8, 1]>",
     "i: <i64[64][1]> = $full([64], 1, dtype = torch.int64)\n"
     "r: <bf16[3, 8][8, 1]> = $embedding_dense_backward(g, i, 3, -1, False)\nreturn (r,)",
     true},
    {"the least of numbers beyond 2^63", "x: <f64[4, 3][3, 1]>",
     "h: <u64[4][1]> = $hash_tensor(x, [1])\nr: <u64[][]> = $amin(h, [0])\ns: <u64[][]> = $amax(h, [0])\n"
     "return (r, s)",
     true},
    {"between equal sizes is no interpolation, whatever factor is given", "x: <f32[2, 3, 4][12, 4, 1]>",
     "r: <f32[2, 3, 4][12, 4, 1]> = $upsample_linear1d(x, [4], False, 2.0)\nreturn (r,)"},
    {"sums scattered into bfloat16 are rounded once", "x: <bf16[6][1]>, s: <bf16[64][1]>",
     "i: <i64[64][1]> = $full([64], 1, dtype = torch.int64)\nr: <bf16[6][1]> = $scatter_add(x, 0, i, s)\nreturn (r,)",
     true},
    {"a stack of one tensor lies as stacks do", "x: <f32[8, 3, 2][1, 16, 8]>",
     "r: <f32[1, 8, 3, 2][48, 6, 2, 1]> = $stack([x])\nreturn (r,)", true},
    {"what is reversed keeps its strides", "x: <f32[16, 1, 8][1, 0, 16]>",
     "r: <f32[16, 1, 8][1, 16, 16]> = torch.ops.prims.rev.default(x, [0, 1, 2])\nreturn (r,)", true},
    {"the running variance of a single sample", "x: <f32[1, 2][2, 1]>, m: <f32[2][1]>, v: <f32[2][1]>",
     "n = $_native_batch_norm_legit_functional(x, None, None, m, v, True, 0.1, 1e-05)\nr: <f32[2][1]> = n[4]\n"
     "return (r,)",
     true},
    {"running statistics that stay are copies", "x: <f32[4, 2][2, 1]>, m: <f32[2][1]>, v: <f32[2][2]>",
     "n = $_native_batch_norm_legit_functional(x, None, None, m, v, False, 0.1, 1e-05)\nr: <f32[2][1]> = n[4]\n"
     "return (r,)",
     true},
    {"nearest neighbours between equal sizes, whatever factor is given", "x: <f64[7, 3, 2, 5][30, 10, 5, 1]>",
     "r: <f64[7, 3, 2, 2][12, 4, 2, 1]> = $upsample_nearest2d(x, [2, 2], 2.0)\nreturn (r,)", true},
    {"as_strided of a column", "x: <f32[3, 4][4, 1]>",
     "c: <f32[3][4]> = $select.int(x, 1, 1)\nr: <f32[4][2]> = $as_strided(c, [4], [2], 3)\nreturn (r,)", true},
    {"patches lie in rows", "x: <f32[1, 1, 1][1, 1, 1]>",
     "r: <f32[2, 5][5, 1]> = $im2col(x, [1, 2], [2, 2], [2, 1], [1, 2])\nreturn (r,)", true},
    {"gates of half types are rounded once", "x: <f16[33, 16, 1, 4][64, 4, 4, 1]>, g: <f16[33, 8, 1, 4][32, 4, 4, 1]>",
     "r: <f16[33, 8, 1, 4][32, 4, 4, 1]> = $glu(x, 1)\nd: <f16[33, 16, 1, 4][64, 4, 4, 1]> = $glu_backward(g, x, 1)\n"
     "return (r, d)"},
    {"the mean of a row with an infinity", "x: <f32[3, 4][4, 1]>",
     "f: <f32[3, 1][1, 1]> = $full([3, 1], inf)\nc: <f32[3, 5][5, 1]> = $cat([x, f], 1)\n"
     "n = $native_layer_norm(c, [5], None, None, 1e-05)\nm: <f32[3, 1][1, 1]> = n[1]\nreturn (m,)"},
    {"groups without elements have a mean of 0", "x: <f32[8, 0, 8][8, 8, 1]>",
     "n = $native_group_norm(x, None, None, 2, 0, 1, 3, 0.5)\nm: <f32[2, 3][3, 1]> = n[1]\nreturn (m,)", true},
    {"bytes seen as bool are true unless 0", "x: <u8[40][1]>",
     "b: <b8[40][1]> = $view.dtype(x, torch.bool)\nr: <f32[40][1]> = $atan(b)\ni: <i64[40][1]> = $_to_copy(b, dtype = "
     "torch.int64)\nreturn (r, i)"},
    {"the logarithm of 0 as an integer", "x: <f32[40][1]>",
     "g: <i64[40][1]> = $_to_copy(x, dtype = torch.int64)\nl: <f32[40][1]> = $log(g)\n"
     "r: <i8[40][1]> = $_to_copy(l, dtype = torch.int8)\ns: <i64[40][1]> = $_to_copy(l, dtype = torch.int64)\n"
     "return (r, s)",
     true},
    {"numbers up to 2^64 and beyond as uint64", "x: <f32[40][1]>",
     "s: <f32[40][1]> = $mul.Scalar(x, 1e19)\nr: <u64[40][1]> = $_to_copy(s, dtype = torch.uint64)\nreturn (r,)", true},
    {"sums and means in a half type", "x: <f32[8, 7][7, 1]>",
     "m: <bf16[8][1]> = $mean.dim(x, [1], dtype = torch.bfloat16)\n"
     "s: <bf16[8][1]> = $sum.dim_IntList(x, [1], dtype = torch.bfloat16)\nreturn (m, s)",
     true},
    {"windows that indices choose", "x: <f32[3, 4, 1, 5][20, 5, 5, 1]>",
     "i: <i64[5][1]> = $full([5], 2, dtype = torch.int64)\n"
     "p = $max_pool2d_with_indices(x, [1, 2], [1, 2], [0, 0], [1, 1], True)\nv: <f32[3, 4, 1, 3][12, 3, 3, 1]> = p[0]\n"
     "r: <f32[3, 4, 1, 5][20, 5, 5, 1]> = $index.Tensor(v, [None, None, None, i])\nreturn (r,)",
     true},
    {"a range is computed in double and rounded once", "x: <f32[1][1]>",
     "a: <f32[1000][1]> = $arange.start_step(0.1, 100.1, 0.1)\nr: <f32[1000][1]> = $mul.Tensor(a, 3)\nreturn (a, r)",
     true},
    // A fused multiply-add would change the last bit, often so in 1 - x * x with x near 1.
    {"products are rounded", "x: <f32[100][1]>",
     "p: <f32[100][1]> = $mul.Tensor(x, x)\nr: <f32[100][1]> = $sub.Tensor(x, p)\nreturn (r,)", true},
};

}  // namespace

class TestCornerCases : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void agree_data() {
    QTest::addColumn<int>("index");
    for (int i = 0; i < static_cast<int>(std::size(cases)); ++i) QTest::newRow(cases[i].name) << i;
  }
  void agree() {
    QFETCH(int, index);
    const auto graph = fx(cases[index].parameters, cases[index].lines);
    const auto known = propagate(*graph);
    QVERIFY2(known, known ? "" : known.error().line().c_str());
    const auto inputs = random_inputs(*graph, 3);
    QVERIFY2(inputs, inputs ? "" : inputs.error().line().c_str());
    const auto expected = interpret(*graph, *inputs);
    QVERIFY2(expected, expected ? "" : expected.error().line().c_str());
    const auto plan = schedule::make_plan(*graph, {{}, codegen::host_target()});
    QVERIFY2(plan, plan ? "" : plan.error().line().c_str());
    const auto compiled = codegen::compile_plan(*codegen::cpu_machine(), *plan, graph->attributes);
    QVERIFY2(compiled, compiled ? "" : compiled.error().line().c_str());
    const auto found = (*compiled)->run(*inputs);
    QVERIFY2(found, found ? "" : found.error().line().c_str());
    QCOMPARE(found->size(), expected->size());
    for (std::size_t i = 0; i < expected->size(); ++i) {
      const Tolerance tolerance =
          cases[index].exact ? Tolerance{0, 0} : default_tolerance((*expected)[i].get<Tensor>()->dtype);
      const Difference d = compare_values("output", (*expected)[i], (*found)[i], tolerance);
      QVERIFY2(d.ok(), qPrintable(QString("output %1: %2 of %3 differ").arg(i).arg(d.wrong).arg(d.numel)));
    }
  }

  // One running sum of all elements would be wrong by 1e-6 to 1e-5.
  void long_sums_are_made_of_short_ones_data() {
    QTest::addColumn<QString>("parameters");
    QTest::addColumn<QString>("values");
    QTest::addColumn<QString>("dims");
    const auto row = [](const char* name, const char* parameters, const char* values, const char* dims) {
      QTest::newRow(name) << parameters << values << dims;
    };
    row("rows", "x: <f32[20, 60000][60000, 1]>", "$abs(x)", "[1]");
    row("columns", "x: <f32[20000, 20][20, 1]>", "$abs(x)", "[0]");
    row("images", "x: <f32[60, 20, 10, 13][2600, 130, 13, 1]>", "$abs(x)", "[0, 2, 3]");
    row("short rows in order", "x: <f32[7, 5, 4][20, 4, 1]>, i: <i64[4, 433][433, 1]>", "$index.Tensor(x, [i])",
        "[0, 1, 2, 3]");
  }
  void long_sums_are_made_of_short_ones() {
    QFETCH(QString, parameters);
    QFETCH(QString, values);
    QFETCH(QString, dims);
    const auto graph = fx(parameters.toStdString(),
                          "v = " + values.toStdString() + "\na = $abs(v)\nd = $_to_copy(a, dtype = torch.float64)\n" +
                              "s = $sum.dim_IntList(a, " + dims.toStdString() + ")\ne = $sum.dim_IntList(d, " +
                              dims.toStdString() + ")\nreturn (s, e)");
    const auto known = propagate(*graph);
    QVERIFY2(known, known ? "" : known.error().line().c_str());
    const auto inputs = random_inputs(*graph, 5);
    QVERIFY(bool(inputs));
    const auto expected = interpret(*graph, *inputs);
    QVERIFY(bool(expected));
    const auto plan = schedule::make_plan(*graph, {{}, codegen::host_target()});
    QVERIFY(bool(plan));
    const auto compiled = codegen::compile_plan(*codegen::cpu_machine(), *plan, graph->attributes);
    QVERIFY(bool(compiled));
    const auto found = (*compiled)->run(*inputs);
    QVERIFY2(found, found ? "" : found.error().line().c_str());
    const std::vector<double> right = elements((*expected)[1]), sums = elements((*found)[0]);
    double worst = 0;
    for (std::size_t i = 0; i < right.size(); ++i) worst = std::max(worst, std::abs(sums[i] / right[i] - 1));
    QVERIFY2(worst < 2.5e-7, qPrintable(QString::number(worst)));
  }

  /// The sub graphs of a call are compiled, or the call says why they are interpreted.
  void sub_graphs_are_compiled_data() {
    QTest::addColumn<bool>("refused");
    QTest::newRow("compiled") << false;
    QTest::newRow("refused") << true;
  }
  void sub_graphs_are_compiled() {
    QFETCH(bool, refused);
    const auto graph = fx("p: <b8[][]>, x: <f32[2][1]>",
                          "t = self.t\nf = self.f\nc = torch.ops.higher_order.cond(p, t, f, (x,))\n"
                          "g: <f32[2][1]> = c[0]\nreturn (g,)",
                          "\n    class t(torch.nn.Module):\n        def forward(self, x: <f32[2][1]>):\n"
                          "            s: <f32[2][1]> = $add.Tensor(x, 1)\n            return (s,)\n"
                          "\n    class f(torch.nn.Module):\n        def forward(self, x: <f32[2][1]>):\n"
                          "            s: <f32[2][1]> = $neg(x)\n            return (s,)\n");
    const auto plan = schedule::make_plan(*graph, {{}, codegen::host_target()});
    QVERIFY2(plan, plan ? "" : plan.error().line().c_str());
    int made = 0, runs = 0;
    codegen::CompileOptions options;
    options.compile_sub_graph = [&](const Graph& body, const std::shared_ptr<Generator>&) -> Result<CompiledFn> {
      ++made;
      if (refused) return unsupported("test.refused", "not this one");
      return CompiledFn([&](std::vector<Value> inputs) {
        ++runs;
        return interpret(body, std::move(inputs));
      });
    };
    const auto compiled = codegen::compile_plan(*codegen::cpu_machine(), *plan, graph->attributes, options);
    QVERIFY2(compiled, compiled ? "" : compiled.error().line().c_str());
    const codegen::ExternReport& report = (*compiled)->externs.at(0);
    QCOMPARE(QString::fromStdString(report.library), QString(refused ? "interpreter" : "compiled sub graphs"));
    QCOMPARE(QString::fromStdString(report.why_not).contains("not this one"), refused);
    QCOMPARE(made, refused ? 1 : 2);
    const auto found = (*compiled)->run({*Tensor::scalar(DType::Bool, 1), *Tensor::zeros(DType::Float32, {2})});
    QVERIFY2(found, found ? "" : found.error().line().c_str());
    QCOMPARE((*found)[0].get<Tensor>()->as<float>()[1], 1.0F);
    QCOMPARE(runs, refused ? 0 : 1);
  }
};

QTEST_GUILESS_MAIN(TestCornerCases)
#include "test_corner_cases.moc"

// A graph before and after each pass, in rows that name the pass.
#include <QDirIterator>
#include <QtTest>
#include <algorithm>

#include <fmt/format.h>

#include "core/passes/run_passes.h"
#include "tests/support/fx.h"

using namespace partita;
using partita::testing::body;
using partita::testing::expand;
using partita::testing::fx;

namespace {

struct Case {
  const char* name;
  const char* pass;
  const char* parameters;
  const char* before;
  const char* after;  ///< null: the graph must not change
};

#define M "<f32[2, 2][2, 1]>"
constexpr const char* xy = "x: " M ", y: " M;
constexpr const char* half = "x: <bf16[4][1]>";
constexpr const char* rows4 = "x: <f32[4, 2][2, 1]>";
constexpr const char* gemm = "a: <f32[2, 3][3, 1]>, b: <f32[3, 4][4, 1]>, c: <f32[4][1]>";
#define FULL(value)      \
  "$full([2, 2], " value \
  ", dtype = torch.float32, layout = torch.strided, device = device(type='cpu'), pin_memory = False)"
#define RANGE(n) "$arange(" n ", device = device(type='cpu'), pin_memory = False)"

#define P "<f32[32, 2][2, 1]>"
#define Q "<f32[32, 3][3, 1]>"
constexpr const char* layers =
    "x: <f32[32, 4][4, 1]>, v: <f32[2, 4][4, 1]>, b: <f32[2][1]>, w: <f32[3, 4][4, 1]>, c: <f32[3][1]>";

#define ATTENTION(mask)                                                         \
  "a = $_scaled_dot_product_flash_attention_for_cpu(q, q, q, attn_mask = " mask \
  ")\no: <f32[1, 1, 2, 2][4, 4, 2, 1]> = a[0]\nreturn (o,)"
constexpr const char* query = "q: <f32[1, 1, 2, 2][4, 4, 2, 1]>, v: " M;

const Case cases[] = {
    {"a mask of zeros", "drop_masks", query, "m: " M " = " FULL("0.0") "\n" ATTENTION("m"),
     "m = " FULL("0.0") "\na = $_scaled_dot_product_flash_attention_for_cpu(q, q, q, attn_mask = None)\no = "
                        "a[0]\nreturn (o,)\n"},
    {"a repeated mask of zeros", "drop_masks", query,
     "m: " M " = " FULL("0.0") "\ne: <f32[1, 1, 2, 2][0, 0, 2, 1]> = $expand(m, [1, 1, 2, 2])\n" ATTENTION("e"),
     "m = " FULL("0.0") "\ne = $expand(m, [1, 1, 2, 2])\na = $_scaled_dot_product_flash_attention_for_cpu(q, q, q, "
                        "attn_mask = None)\no = a[0]\nreturn (o,)\n"},
    {"a mask of ones, which are added", "drop_masks", query, "m: " M " = " FULL("1.0") "\n" ATTENTION("m"), nullptr},
    {"a mask that is not known", "drop_masks", query, ATTENTION("v"), nullptr},
    {"clone of a temporary", "remove_noops", xy,
     "s: " M " = $sin(x)\nd: " M " = $clone(s)\nc: " M " = $cos(d)\nreturn (c,)",
     "s = $sin(x)\nc = $cos(s)\nreturn (c,)\n"},
    {"clone of an input that is returned", "remove_noops", xy, "d: " M " = $clone(x)\nreturn (d,)", nullptr},
    {"clone seen through a view that is returned", "remove_noops", xy,
     "d: " M " = $clone(x)\nt: <f32[2, 2][1, 2]> = $t(d)\nreturn (t,)", nullptr},
    {"clone that is written to", "remove_noops", xy,
     "d: " M " = $clone(x)\nadd_: " M " = $add_.Tensor(d, y)\ns: " M " = $sin(add_)\nreturn (s,)", nullptr},
    {"clone of what is written to later", "remove_noops", xy,
     "d: " M " = $clone(x)\ncopy_: " M " = $copy_(x, y)\ns: " M " = $sin(d)\nreturn (s,)", nullptr},
    {"clone that changes the layout", "remove_noops", "x: <f32[2, 2][1, 2]>",
     "d: " M " = $clone(x, memory_format = torch.contiguous_format)\ns: " M " = $sin(d)\nreturn (s,)", nullptr},
    {"view to the same sizes", "remove_noops", xy, "v: " M " = $view(x, [2, 2])\nreturn (v,)", "return (x,)\n"},
    {"square transpose", "remove_noops", xy, "p: <f32[2, 2][1, 2]> = $permute(x, [1, 0])\nreturn (p,)", nullptr},
    {"permute in order", "remove_noops", xy, "p: " M " = $permute(x, [0, -1])\nreturn (p,)", "return (x,)\n"},
    {"expand to more", "remove_noops", "x: <f32[1, 2][2, 1]>", "e: <f32[3, 2][0, 1]> = $expand(x, [3, 2])\nreturn (e,)",
     nullptr},
    {"cast to the same dtype", "remove_noops", half,
     "c: <bf16[4][1]> = torch.ops.prims.convert_element_type.default(x, torch.bfloat16)\ns: <bf16[4][1]> = "
     "$sin(c)\nreturn (s,)",
     "s = $sin(x)\nreturn (s,)\n"},
    {"cast to another dtype", "remove_noops", half,
     "c: <f32[4][1]> = torch.ops.prims.convert_element_type.default(x, torch.float32)\ns: <f32[4][1]> = "
     "$sin(c)\nreturn (s,)",
     nullptr},
    {"pad by nothing", "remove_noops", xy,
     "s: " M " = $sin(x)\np: " M " = $constant_pad_nd(s, [0, 0, 0, 0], 0.0)\nreturn (p,)",
     "s = $sin(x)\nreturn (s,)\n"},
    {"pad that shifts", "remove_noops", xy,
     "s: " M " = $sin(x)\np: " M " = $constant_pad_nd(s, [1, -1], 0.0)\nreturn (p,)", nullptr},
    {"slice of everything", "remove_noops", xy, "s: " M " = $slice.Tensor(x, 0, 0, 9223372036854775807)\nreturn (s,)",
     "return (x,)\n"},

    {"asserts of what is known", "remove_asserts", xy,
     "n = $_assert_tensor_metadata(x, [2, 2], [2, 1], torch.float32, device = device(type='cpu'))\nreturn (y,)",
     "return (y,)\n"},
    {"asserts of what is otherwise", "remove_asserts", xy,
     "n = $_assert_tensor_metadata(x, None, None, torch.float64)\nm = $_assert_tensor_metadata(x, [4])\nreturn (y,)",
     nullptr},

    {"layers of one input", "pack_linears", layers,
     "p: " P " = $linear(x, v, b)\nq: " Q " = $linear(x, w, c)\nreturn (p, q)",
     "cat = $cat([v, w])\ncat_1 = $cat([b, c])\nlinear = $linear(x, cat, cat_1)\nsplit_with_sizes = "
     "$split_with_sizes(linear, [2, 3], -1)\ngetitem = split_with_sizes[0]\nclone = $clone(getitem, memory_format = "
     "torch.contiguous_format)\ngetitem_1 = split_with_sizes[1]\nclone_1 = $clone(getitem_1, memory_format = "
     "torch.contiguous_format)\nreturn (clone, clone_1)\n"},
    {"layers of two inputs", "pack_linears", layers,
     "p: " P " = $linear(x, v, b)\ns: <f32[32, 4][4, 1]> = $sin(x)\nq: " Q " = $linear(s, w, c)\nreturn (p, q)",
     nullptr},
    {"layers with and without a bias", "pack_linears", layers,
     "p: " P " = $linear(x, v, b)\nq: " Q " = $linear(x, w)\nreturn (p, q)", nullptr},
    {"layers whose input is written between", "pack_linears", layers,
     "p: " P " = $linear(x, v, b)\nsin_: <f32[32, 4][4, 1]> = $sin_(x)\nq: " Q " = $linear(x, w, c)\nreturn (p, q)",
     nullptr},
    {"layers whose weight is written between", "pack_linears", layers,
     "p: " P " = $linear(x, v, b)\nsin_: <f32[3, 4][4, 1]> = $sin_(w)\nq: " Q " = $linear(x, w, c)\nreturn (p, q)",
     nullptr},
    {"layers of a computed weight", "pack_linears", layers,
     "p: " P " = $linear(x, v, b)\ns: <f32[3, 4][4, 1]> = $sin(w)\nq: " Q " = $linear(x, s, c)\nreturn (p, q)",
     nullptr},
    {"layers of two regions", "pack_linears", layers,
     "p: " P " = $linear(x, v, b)\nset = torch._C._set_grad_enabled(False)\nq: " Q " = $linear(x, w, c)\nreturn (p, q)",
     nullptr},
    {"layers of few rows", "pack_linears", "x: <f32[2, 4][4, 1]>, v: <f32[2, 4][4, 1]>, w: <f32[3, 4][4, 1]>",
     "p: <f32[2, 2][2, 1]> = $linear(x, v)\nq: <f32[2, 3][3, 1]> = $linear(x, w)\nreturn (p, q)", nullptr},

    {"equal calls", "share_common", xy,
     "a: " M " = $sin(x)\nb: " M " = $sin(x)\nc: " M " = $mul.Tensor(a, b)\nreturn (c,)",
     "a = $sin(x)\nc = $mul.Tensor(a, a)\nreturn (c,)\n"},
    {"equal calls, both returned", "share_common", xy, "a: " M " = $sin(x)\nb: " M " = $sin(x)\nreturn (a, b)",
     nullptr},
    {"equal copies by calls that may give a view, both returned", "share_common", xy,
     "a: <f64[2, 2][2, 1]> = $to.dtype(x, torch.float64)\nb: <f64[2, 2][2, 1]> = $to.dtype(x, torch.float64)\n"
     "return (a, b)",
     nullptr},
    {"equal calls of which one is annotated wrongly", "share_common", xy,
     "a: " M " = $sin(x)\nb: <f64[2][1]> = $sin(x)\nc: " M " = $mul.Tensor(a, b)\nreturn (c,)", nullptr},
    {"equal draws", "share_common", xy,
     "a: " M " = $rand_like(x)\nb: " M " = $rand_like(x)\nc: " M " = $mul.Tensor(a, b)\nreturn (c,)", nullptr},
    {"equal norms that write statistics", "share_common", "x: " M ", m: <f32[2][1]>, v: <f32[2][1]>",
     "a: " M " = $batch_norm(x, None, None, m, v, True, 0.1, 1e-05, False)\n"
     "b: " M " = $batch_norm(x, None, None, m, v, True, 0.1, 1e-05, False)\nreturn (a, b)",
     nullptr},
    {"reads around a write", "share_common", xy,
     "a: " M " = $sin(x)\ncopy_: " M " = $copy_(x, y)\nb: " M " = $sin(x)\nc: " M " = $mul.Tensor(a, b)\nreturn (c,)",
     nullptr},
    {"equal calls of which the first is written", "share_common", xy,
     "a: " M " = $sin(x)\nb: " M " = $sin(x)\nneg_: " M " = $neg_(a)\nc: " M " = $mul.Tensor(a, b)\nreturn (c,)",
     nullptr},
    {"1 is not 1.0", "share_common", xy,
     "a: " M " = $add.Tensor(x, 1)\nb: " M " = $add.Tensor(x, 1.0)\nc: " M " = $mul.Tensor(a, b)\nreturn (c,)",
     nullptr},

    {"unread chain", "remove_dead", xy, "a: " M " = $sin(x)\nb: " M " = $cos(a)\nreturn (y,)", "return (y,)\n"},
    {"unread writes, draws and asserts", "remove_dead", xy,
     "copy_: " M " = $copy_(x, y)\nr: " M " = $rand_like(x)\nn = $_assert_tensor_metadata(x, [2, 2])\nreturn (y,)",
     nullptr},

    {"an unread norm that writes statistics", "remove_dead", "x: " M ", m: <f32[2][1]>, v: <f32[2][1]>",
     "a: " M " = $batch_norm(x, None, None, m, v, True, 0.1, 1e-05, False)\nreturn (x,)", nullptr},
    {"an unread norm that reads statistics", "remove_dead", "x: " M ", m: <f32[2][1]>, v: <f32[2][1]>",
     "a: " M " = $batch_norm(x, None, None, m, v, False, 0.1, 1e-05, False)\nreturn (x,)", "return (x,)\n"},

    {"t of t", "squash_views", xy, "a: <f32[2, 2][1, 2]> = $t(x)\nb: " M " = $t(a)\nreturn (b,)", "return (x,)\n"},
    {"permute of transpose", "squash_views", "x: <f32[2, 3, 4][12, 4, 1]>",
     "a: <f32[3, 2, 4][4, 12, 1]> = $transpose.int(x, 0, 1)\nb: <f32[4, 3, 2][1, 4, 12]> = $permute(a, [2, 0, "
     "1])\nreturn (b,)",
     "b = $permute(x, [2, 1, 0])\nreturn (b,)\n"},
    {"as_strided of as_strided", "squash_views", "x: <f32[6][1]>",
     "a: <f32[2][1]> = $as_strided(x, [2], [1], 3)\nb: <f32[2][2]> = $as_strided(a, [2], [2])\nreturn (b,)",
     "b = $as_strided(x, [2], [2], 3)\nreturn (b,)\n"},
    {"a copy of as_strided of as_strided", "squash_views", "x: <f32[6][1]>",
     "a: <f32[2][3]> = $as_strided(x, [2], [3], 1)\nb: <f32[4][1]> = $as_strided_copy(a, [4], [1])\nreturn (b,)",
     "b = $as_strided_copy(x, [4], [1], 1)\nreturn (b,)\n"},
    {"one permute", "squash_views", xy, "p: <f32[2, 2][1, 2]> = $permute(x, [1, 0])\nreturn (p,)", nullptr},

#define SPLIT(of, width) "split = $split.Tensor(" of ", " width ")\ng: " M " = split[0]\nh: " M " = split[1]\n"
    {"cat of a split", "undo_split_cat", rows4,
     "n: <f32[4, 2][2, 1]> = $neg(x)\n" SPLIT("n", "2") "c: <f32[4, 2][2, 1]> = $cat([g, h])\nreturn (c,)",
     "n = $neg(x)\nreturn (n,)\n"},
    {"cat of a split in another order", "undo_split_cat", rows4,
     "n: <f32[4, 2][2, 1]> = $neg(x)\n" SPLIT("n", "2") "c: <f32[4, 2][2, 1]> = $cat([h, g])\nreturn (c,)", nullptr},
    {"cat of a split along another dimension", "undo_split_cat", rows4,
     "n: <f32[4, 2][2, 1]> = $neg(x)\n" SPLIT("n", "2") "c: <f32[2, 4][4, 1]> = $cat([g, h], 1)\nreturn (c,)", nullptr},
    {"cat of a split of an input is a copy", "undo_split_cat", rows4,
     SPLIT("x", "2") "c: <f32[4, 2][2, 1]> = $cat([g, h])\nreturn (c,)", nullptr},
    {"split of a cat at its seams", "undo_split_cat", xy,
     "c: <f32[4, 2][2, 1]> = $cat([x, y])\n" SPLIT("c", "2") "s: " M " = $sub.Tensor(g, h)\nreturn (s,)",
     "s = $sub.Tensor(x, y)\nreturn (s,)\n"},
    {"split of a cat elsewhere", "undo_split_cat", "x: <f32[1, 2][2, 1]>, y: <f32[3, 2][2, 1]>",
     "c: <f32[4, 2][2, 1]> = $cat([x, y])\n" SPLIT("c", "2") "s: " M " = $sub.Tensor(g, h)\nreturn (s,)", nullptr},

#define THIN "a: <f32[1, 8][8, 1]>, b: <f32[1, 6][6, 1]>, c: <f32[1, 8][8, 1]>, d: <f32[1, 6][6, 1]>, e: <f32[6][1]>"
#define TWO(of, more)                                                                                \
  "p: <f32[8, 1][1, 8]> = $t(a)\nq: <f32[8, 1][1, 8]> = $t(c)\nm: <f32[8, 6][6, 1]> = " of "\n" more \
  "r: <f32[8, 6][6, 1]> = $addmm(m, q, d)\n"
    {"a sum of products", "merge_products", THIN, TWO("$mm(p, b)", "") "return (r,)",
     "cat = $cat([a, c])\nt = $t(cat)\ncat_1 = $cat([b, d])\nmm = $mm(t, cat_1)\nreturn (mm,)\n"},
    {"a sum of products and a bias", "merge_products", THIN, TWO("$addmm(e, p, b)", "") "return (r,)",
     "cat = $cat([a, c])\nt = $t(cat)\ncat_1 = $cat([b, d])\naddmm = $addmm(e, t, cat_1)\nreturn (addmm,)\n"},
    {"a part of the sum is read elsewhere", "merge_products", THIN, TWO("$mm(p, b)", "n = $neg(m)\n") "return (r, n)",
     nullptr},
    {"twice a product", "merge_products", THIN, TWO("$addmm(e, p, b, beta=2)", "") "return (r,)", nullptr},
    {"products that are large beside their sum", "merge_products", "a: <f32[4, 4][4, 1]>, b: <f32[4, 4][4, 1]>",
     "m: <f32[4, 4][4, 1]> = $mm(a, b)\nr: <f32[4, 4][4, 1]> = $addmm(m, b, a)\nreturn (r,)", nullptr},

    {"mul by one", "rewrite_post_grad", xy, "s: " M " = $sin(x)\nm: " M " = $mul.Tensor(s, 1.0)\nreturn (m,)",
     "s = $sin(x)\nreturn (s,)\n"},
    {"mul by one promotes", "rewrite_post_grad", "x: <i64[2][1]>",
     "s: <i64[2][1]> = $neg(x)\nm: <f32[2][1]> = $mul.Tensor(s, 1.0)\nreturn (m,)", nullptr},
    {"mul by one of an input, returned", "rewrite_post_grad", xy, "m: " M " = $mul.Tensor(x, 1)\nreturn (m,)", nullptr},
    {"add of zero to floats", "rewrite_post_grad", xy, "s: " M " = $sin(x)\nm: " M " = $add.Tensor(s, 0)\nreturn (m,)",
     nullptr},
    {"add of zero to integers", "rewrite_post_grad", "x: <i64[2][1]>",
     "s: <i64[2][1]> = $neg(x)\nm: <i64[2][1]> = $add.Tensor(s, 0)\nreturn (m,)", "s = $neg(x)\nreturn (s,)\n"},
    {"sub of zero times alpha is not the pattern", "rewrite_post_grad", xy,
     "s: " M " = $sin(x)\nm: " M " = $sub.Tensor(s, 0, alpha = 2)\nreturn (m,)", nullptr},
    {"view of view", "rewrite_post_grad", xy,
     "v: <f32[4][1]> = $view(x, [4])\nw: <f32[1, 4][4, 1]> = $view(v, [1, 4])\nreturn (w,)",
     "view = $view(x, [1, 4])\nreturn (view,)\n"},
    {"view of a view as another dtype", "rewrite_post_grad", "x: <f32[4][1]>",
     "v: <i16[8][1]> = $view.dtype(x, torch.int16)\nw: <i16[2, 4][4, 1]> = $view(v, [2, 4])\nreturn (w,)", nullptr},
    {"expand of expand", "rewrite_post_grad", "x: <f32[1][1]>",
     "e: <f32[3][0]> = $expand(x, [3])\nf: <f32[2, 3][0, 0]> = $expand(e, [2, 3])\nreturn (f,)",
     "expand = $expand(x, [2, 3])\nreturn (expand,)\n"},
    {"expand that keeps a size of expand's", "rewrite_post_grad", "x: <f32[][]>",
     "e: <f32[1][1]> = $expand(x, [1])\nf: <f32[2, 1][0, 1]> = $expand(e, [2, -1])\nreturn (f,)", nullptr},
    {"view of view that is read elsewhere", "rewrite_post_grad", xy,
     "v: <f32[4][1]> = $view(x, [4])\nw: <f32[1, 4][4, 1]> = $view(v, [1, 4])\nreturn (v, w)", nullptr},
    {"bmm of one batch", "rewrite_post_grad", "a: <f32[1, 2, 3][6, 3, 1]>, b: <f32[1, 3, 4][12, 4, 1]>",
     "m: <f32[1, 2, 4][8, 4, 1]> = $bmm(a, b)\nreturn (m,)",
     "squeeze = $squeeze.dim(a, 0)\nsqueeze_1 = $squeeze.dim(b, 0)\nmm = $mm(squeeze, squeeze_1)\nunsqueeze = "
     "$unsqueeze(mm, 0)\nreturn (unsqueeze,)\n"},
    {"bmm of two batches", "rewrite_post_grad", "a: <f32[2, 2, 3][6, 3, 1]>, b: <f32[2, 3, 4][12, 4, 1]>",
     "m: <f32[2, 2, 4][8, 4, 1]> = $bmm(a, b)\nreturn (m,)", nullptr},
    {"mm and bias", "rewrite_post_grad", gemm,
     "mm: <f32[2, 4][4, 1]> = $mm(a, b)\nadd: <f32[2, 4][4, 1]> = $add.Tensor(mm, c)\nreturn (add,)",
     "addmm = $addmm(c, a, b)\nreturn (addmm,)\n"},
    {"bias and mm", "rewrite_post_grad", gemm,
     "mm: <f32[2, 4][4, 1]> = $mm(a, b)\nadd: <f32[2, 4][4, 1]> = $add.Tensor(c, mm)\nreturn (add,)",
     "addmm = $addmm(c, a, b)\nreturn (addmm,)\n"},
    {"mm and scaled bias", "rewrite_post_grad", gemm,
     "mm: <f32[2, 4][4, 1]> = $mm(a, b)\nadd: <f32[2, 4][4, 1]> = $add.Tensor(mm, c, alpha = 2)\nreturn (add,)",
     nullptr},
    {"mm that is read twice", "rewrite_post_grad", gemm,
     "mm: <f32[2, 4][4, 1]> = $mm(a, b)\nadd: <f32[2, 4][4, 1]> = $add.Tensor(mm, c)\nreturn (add, mm)", nullptr},
    {"mm and a larger tensor", "rewrite_post_grad", "a: <f32[1, 3][3, 1]>, b: <f32[3, 4][4, 1]>, c: <f32[2, 4][4, 1]>",
     "mm: <f32[1, 4][4, 1]> = $mm(a, b)\nadd: <f32[2, 4][4, 1]> = $add.Tensor(mm, c)\nreturn (add,)", nullptr},
    {"cast there and back", "rewrite_post_grad", half,
     "s: <bf16[4][1]> = $sin(x)\nw: <f32[4][1]> = torch.ops.prims.convert_element_type.default(s, torch.float32)\n"
     "n: <bf16[4][1]> = torch.ops.prims.convert_element_type.default(w, torch.bfloat16)\nreturn (n,)",
     "s = $sin(x)\nreturn (s,)\n"},
    {"cast there and back that names the device", "rewrite_post_grad", half,
     "s: <bf16[4][1]> = $sin(x)\nw: <f32[4][1]> = $_to_copy(s, dtype = torch.float32)\n"
     "n: <bf16[4][1]> = $_to_copy(w, dtype = torch.bfloat16, layout = torch.strided, device = device(type='cpu'))\n"
     "return (n,)",
     "s = $sin(x)\nreturn (s,)\n"},
    {"integers through complex numbers, which round them", "rewrite_post_grad", "x: <i64[4][1]>",
     "w: <c64[4][1]> = $_to_copy(x, dtype = torch.complex64)\nn: <i64[4][1]> = $_to_copy(w, dtype = torch.int64)\n"
     "return (n,)",
     nullptr},
    {"cast that loses bits and back", "rewrite_post_grad", "x: <f32[4][1]>",
     "s: <f32[4][1]> = $sin(x)\nw: <bf16[4][1]> = torch.ops.prims.convert_element_type.default(s, torch.bfloat16)\n"
     "n: <f32[4][1]> = torch.ops.prims.convert_element_type.default(w, torch.float32)\nreturn (n,)",
     nullptr},
    {"interpolation of a half type", "decompose_composites", "x: <bf16[1, 1, 4][4, 4, 1]>",
     "y: <bf16[1, 1, 8][8, 8, 1]> = $upsample_linear1d(x, [8], False)\nreturn (y,)", nullptr},
    {"mul by one before the partition", "rewrite_joint", xy,
     "s: " M " = $sin(x)\nm: " M " = $mul.Tensor(s, 1.0)\nreturn (m,)", "s = $sin(x)\nreturn (s,)\n"},
    {"pow of two, which is for the compiler", "rewrite_joint", xy,
     "s: " M " = $sin(x)\nm: " M " = $pow.Tensor_Scalar(s, 2)\nreturn (m,)", nullptr},
    {"a function and a method", "resolve_torch_calls", xy, "s: " M " = torch.sin(x)\nc: " M " = s.cos()\nreturn (c,)",
     "s = $sin(x)\nc = $cos(s)\nreturn (c,)\n"},
    {"calls of ATen", "resolve_torch_calls", xy, "s: " M " = $sin(x)\nreturn (s,)", nullptr},

    {"dropout in evaluation", "rewrite_pre_grad", xy,
     "d: " M " = $dropout(x, 0.5, False)\ns: " M " = $sin(d)\nreturn (s,)", "s = $sin(x)\nreturn (s,)\n"},
    {"dropout in evaluation by a number of run time", "rewrite_pre_grad", "x: " M ", t: <f64[][]>",
     "p: 'Sym(zuf0)' = $item(t)\nd: " M " = $dropout(x, p, False)\ns: " M " = $sin(d)\nreturn (s,)",
     "p = $item(t)\ns = $sin(x)\nreturn (s,)\n"},
    {"dropout in training", "rewrite_pre_grad", xy,
     "d: " M " = $dropout(x, 0.5, True)\ns: " M " = $sin(d)\nreturn (s,)", nullptr},

    {"arithmetic on a range", "fold_constants", xy,
     "r: <i64[2][1]> = " RANGE("2") "\nt: <i64[2][1]> = $mul.Tensor(r, 3)\nu: " M " = $add.Tensor(x, t)\nreturn (u,)",
     "_folded_constant0 = self._folded_constant0\nu = $add.Tensor(x, _folded_constant0)\nreturn (u,)\n"},
    {"equal elements become full", "fold_constants", xy,
     "f: " M " = " FULL("3.0") "\nt: " M " = $mul.Tensor(f, 2)\nu: " M " = $add.Tensor(x, t)\nreturn (u,)",
     "full_default = " FULL("6.0") "\nu = $add.Tensor(x, full_default)\nreturn (u,)\n"},
    {"equal integers that no double holds", "fold_constants", "x: <i64[2][1]>",
     "f: <i64[2][1]> = $full([2], 9223372036854775807, dtype = torch.int64)\n"
     "t: <i64[2][1]> = $bitwise_or.Scalar(f, 1)\nu: <i64[2][1]> = $add.Tensor(x, t)\nreturn (u,)",
     "_folded_constant0 = self._folded_constant0\nu = $add.Tensor(x, _folded_constant0)\nreturn (u,)\n"},
    {"a bare factory", "fold_constants", xy, "f: " M " = " FULL("3.0") "\nu: " M " = $add.Tensor(x, f)\nreturn (u,)",
     nullptr},
    {"a constant of no bytes whose size is known only at run time", "fold_constants", "x: <f32[][]>",
     "f: <f32[][]> = $full([], 1.0)\nt: <f32[][]> = $neg(f)\ni = $nonzero(t)\nr = $neg(i)\nreturn (r,)",
     "full_default = $full([], -1.0, dtype = torch.float32, layout = torch.strided, device = device(type='cpu'), "
     "pin_memory = False)\ni = $nonzero(full_default)\nr = $neg(i)\nreturn (r,)\n"},
    {"constants over the limit", "fold_constants", xy,
     "r: <i64[1000000][1]> = " RANGE("1000000") "\nt: <i64[1000000][1]> = $mul.Tensor(r, 3)\nreturn (t,)", nullptr},

    {"view", "view_to_reshape", xy, "v: <f32[4][1]> = $view(x, [4])\nreturn (v,)",
     "v = $reshape(x, [4])\nreturn (v,)\n"},
    {"view that is written to", "view_to_reshape", xy,
     "v: <f32[4][1]> = $view(x, [4])\nf: <f32[4][1]> = $fill_.Scalar(v, 1)\nreturn (y,)", nullptr},
};

const Pass* find_pass(std::string_view name) {
  for (const Pass& p : all_passes())
    if (p.name == name) return &p;
  return nullptr;
}

}  // namespace

class TestPasses : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  /// Rows above, or a program tests/LAYER/test_PASS.cpp.
  void every_pass_is_tested_under_its_name() {
    const auto has_rows = [](std::string_view name) {
      return std::ranges::any_of(cases, [&](const Case& c) { return name == c.pass; });
    };
    const auto has_program = [](std::string_view name) {
      const QString file = QString("test_%1.cpp").arg(QString::fromUtf8(name.data(), static_cast<int>(name.size())));
      return QDirIterator(PARTITA_SOURCE_DIR "/tests", {file}, QDir::Files, QDirIterator::Subdirectories).hasNext();
    };
    for (const Pass& pass : all_passes())
      QVERIFY2(has_rows(pass.name) || has_program(pass.name),
               fmt::format("{} has neither rows in test_passes.cpp nor a test_{}.cpp", pass.name, pass.name).c_str());
  }

  void text_data() {
    QTest::addColumn<int>("index");
    for (std::size_t i = 0; i < std::size(cases); ++i)
      QTest::newRow((std::string(cases[i].pass) + ": " + cases[i].name).c_str()) << static_cast<int>(i);
  }
  void text() {
    QFETCH(int, index);
    const Case& c = cases[index];
    const auto graph = fx(c.parameters, c.before);
    const std::string before = body(*graph);
    const Pass* pass = find_pass(c.pass);
    QVERIFY(pass);
    PassContext context{.pack_linears = true};
    const auto run = run_passes(*graph, {pass, 1}, context);
    QVERIFY2(run, run ? "" : run.error().line().c_str());
    QCOMPARE(QString::fromStdString(body(*graph)), QString::fromStdString(c.after ? expand(c.after) : before));
    QCOMPARE(run->passes[0].changed, c.after != nullptr);
  }
};

QTEST_GUILESS_MAIN(TestPasses)
#include "test_passes.moc"

// The convolution functions that users call, decomposed to aten.convolution.
#include <fmt/format.h>

#include "core/ops/families/convolution.h"
#include "core/ops/record/gradients.h"
#include "core/ops/record/guards.h"
#include "core/ops/record/operator_program.h"
#include "core/ops/record/record.h"

namespace partita {

namespace {

Arg repeated(const Arg& arg, std::size_t rank) {
  const ArgList* list = arg.get<ArgList>();
  if (list && list->items.size() == rank) return Arg::list(list->items);
  Arg item = list && list->items.size() == 1 ? list->items[0] : arg;
  if (list && list->items.size() != 1)
    fail("convolution parameters do not fit " + std::to_string(rank) + " dimensions");
  return Arg::list(std::vector<Arg>(rank, item));
}

struct Call {
  Arg stride, padding, dilation, output_padding, groups;
  bool transposed = false;
};

/// A complex convolution as three real ones: p of the real parts, q of the imaginary parts, r of their sums. The result
/// is p - q + i (r - p - q).
constexpr std::string_view complex_convolution =
    "X = view_as_real(x); xr = select(X, dim(x), 0); xi = select(X, dim(x), 1); "
    "W = view_as_real(weight); wr = select(W, dim(weight), 0); wi = select(W, dim(weight), 1); "
    "B = None if bias is None else view_as_real(bias); "
    "br = None if bias is None else select(B, dim(bias), 0); bi = None if bias is None else select(B, dim(bias), 1); "
    "p = convolution(xr, wr, br, s, pad, d, t, o, g); q = convolution(xi, wi, None, s, pad, d, t, o, g); "
    "b = None if bias is None else br + bi; w = wr + wi; x = xr + xi; "
    "r = (convolution(x, w, b, s, pad, d, t, o, g) - p - q) * imaginary_unit; p - q + r";

/// Adds the batch dimension where the caller left it out, and removes it from the result.
Node* convolution(DecomposeCall& c, Node* input, std::size_t rank, const Call& call) {
  Builder& b = c.build;
  bool batched = b.tensor(input).dim() == rank + 2;
  if (!batched && b.tensor(input).dim() != rank + 1)
    fail("Expected " + std::to_string(rank + 1) + "D (unbatched) or " + std::to_string(rank + 2) +
         "D (batched) input to conv" + std::to_string(rank) + "d, but got input of " +
         std::to_string(b.tensor(input).dim()) + " dimensions");
  if (!batched) input = b.call("aten.unsqueeze.default", {input, 0});
  const bool complex = is_complex(b.tensor(input).dtype);
  Node* result = build_program(c, complex ? complex_convolution : "convolution(x, weight, bias, s, pad, d, t, o, g)",
                               {{"x", input},
                                {"s", repeated(call.stride, rank)},
                                {"pad", repeated(call.padding, rank)},
                                {"d", repeated(call.dilation, rank)},
                                {"t", call.transposed},
                                {"o", repeated(call.output_padding, rank)},
                                {"g", call.groups}})
                     .node();
  return batched ? result : b.call("aten.squeeze.dim", {result, 0});
}

template <std::size_t rank>
Arg decompose_conv(DecomposeCall& c) {
  return convolution(c, tensor_node(c, "input"), rank,
                     {c.arg("stride"), c.arg("padding"), c.arg("dilation"), 0, c.arg("groups")});
}

template <std::size_t rank>
Arg decompose_conv_transpose(DecomposeCall& c) {
  return convolution(
      c, tensor_node(c, "input"), rank,
      {c.arg("stride"), c.arg("padding"), c.arg("dilation"), c.arg("output_padding"), c.arg("groups"), true});
}

/// The overloads with padding="same" or "valid".
template <std::size_t rank>
Arg decompose_conv_padding(DecomposeCall& c) {
  Builder& b = c.build;
  Node* input = tensor_node(c, "input");
  std::string padding = c.string("padding");
  Call call{c.arg("stride"), 0, c.arg("dilation"), 0, c.arg("groups")};
  if (padding == "valid") return convolution(c, input, rank, call);
  if (padding != "same") fail("Invalid padding string: '" + padding + "'");
  for (auto s : c.integers("stride"))
    if (s != 1) fail("padding='same' is not supported for strided convolutions");
  Sizes dilation = c.integers("dilation");
  if (dilation.size() == 1) dilation.resize(rank, dilation[0]);
  const TensorMeta& weight = c.tensor("weight");
  if (weight.dim() != rank + 2 || dilation.size() != rank)
    fail(fmt::format("padding='same' of {} dimensions: the weight has {}, dilation {} numbers", rank, weight.dim(),
                     dilation.size()));
  std::vector<Arg> symmetric;
  std::vector<Arg> extra(2 * rank, Arg(0));  // constant_pad_nd counts from the last dimension
  bool needs_extra = false;
  for (std::size_t i = 0; i < rank; ++i) {
    const auto size = guarded_number(c, weight.sizes[i + 2], "padding='same'");
    if (!size) fail_unsupported("padding='same' with a kernel size known only at run time");
    const std::int64_t total = (SymExpr(dilation[i]) * (SymExpr(*size) - 1)).as_int();
    symmetric.emplace_back(total / 2);
    if (total % 2 != 0) {
      extra[2 * (rank - 1 - i) + 1] = 1;
      needs_extra = true;
    }
  }
  call.padding = Arg::list(symmetric);
  if (needs_extra) input = b.call("aten.constant_pad_nd.default", {input, Arg::list(extra)});
  return convolution(c, input, rank, call);
}

}  // namespace

void register_conv_composites(OpTable& t) {
  t.default_family = Family::Matmul;
  t.add("aten.conv1d.default", {.decompose = decompose_conv<1>});
  t.add("aten.conv2d.default", {.decompose = decompose_conv<2>});
  t.add("aten.conv3d.default", {.decompose = decompose_conv<3>});
  t.add("aten.conv1d.padding", {.decompose = decompose_conv_padding<1>});
  t.add("aten.conv2d.padding", {.decompose = decompose_conv_padding<2>});
  t.add("aten.conv3d.padding", {.decompose = decompose_conv_padding<3>});
  t.add("aten.conv_transpose1d.default", {.decompose = decompose_conv_transpose<1>});
  t.add("aten.conv_transpose2d.input", {.decompose = decompose_conv_transpose<2>});
  t.add("aten.conv_transpose3d.input", {.decompose = decompose_conv_transpose<3>});
  t.add("aten._convolution.default",
        {.program = "convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups)"});
}

}  // namespace partita

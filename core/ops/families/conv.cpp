// convolution and convolution_backward: sizes, memory formats, derivative.
#include "core/ops/facts/operations.h"
#include "core/ops/families/convolution.h"
#include "core/ops/kernels/outputs.h"
#include "core/ops/record/guards.h"
#include "core/ops/record/layout.h"
#include "core/ops/record/record.h"

namespace partita {

namespace {

using namespace kernels;

SymList spatial(FakeCall& c, std::string_view name, std::size_t rank) {
  SymList list = c.syms(name);
  if (list.size() == 1) list.resize(rank, list[0]);
  if (list.size() != rank)
    fail("expected " + std::string(name) + " to be a single integer value or a list of " + std::to_string(rank) +
         " values to match the convolution dimensions, but got " + std::to_string(list.size()));
  return list;
}

/// Channels last when the input or the weight has that format, since the backends convert both to one format. A
/// convolution of one dimension runs as one of two whose height is 1, for which PyTorch makes the input row-major, but
/// not the weight (at::native::_convolution, view4d).
MemoryFormat convolution_format(FakeCall& c, const TensorMeta& input, const TensorMeta& weight) {
  if (input.dim() > 3) {
    const MemoryFormat format = suggest_memory_format(input, c.shapes);
    return format == MemoryFormat::Contiguous ? suggest_memory_format(weight, c.shapes) : format;
  }
  TensorMeta image = weight;
  image.sizes.insert(image.sizes.begin() + 2, 1);
  image.strides.insert(image.strides.begin() + 2, weight.sizes[2] * weight.strides[2]);
  return suggest_memory_format(image, c.shapes);
}

/// A tensor of these sizes in the format; one of three dimensions as an image whose height is 1.
TensorMeta in_format(const TensorMeta& like, const SymList& sizes, MemoryFormat format) {
  if (sizes.size() != 3) return new_like(like, sizes, format);
  TensorMeta meta = new_like(like, {sizes[0], sizes[1], 1, sizes[2]}, format);
  meta.sizes.erase(meta.sizes.begin() + 2);
  meta.strides.erase(meta.strides.begin() + 2);
  return meta;
}

void check_bias(FakeCall& c, const TensorMeta& bias, SymExpr channels) {
  const TensorMeta& input = c.tensor("input");
  if (bias.dim() != 1 || !checked(c, sym_eq(bias.sizes[0], channels), "convolution bias"))
    fail("expected bias to be 1-dimensional with " + channels.str() + " elements, but got a bias of " +
         std::to_string(bias.dim()) + " dimensions and " + bias.numel().str() + " elements instead");
  if (bias.dtype != input.dtype)
    fail("Input type (" + std::string(torch_name(input.dtype)) + ") and bias type (" +
         std::string(torch_name(bias.dtype)) + ") should be the same");
}

}  // namespace

Meta fake_convolution(FakeCall& c) {
  const TensorMeta &input = c.tensor("input"), &weight = c.tensor("weight");
  if (input.dim() < 3 || input.dim() > 5 || weight.dim() != input.dim())
    fail("Expected " + std::to_string(weight.dim()) + "-dimensional input for " + std::to_string(weight.dim()) +
         "-dimensional weight, but got " + std::to_string(input.dim()) + "-dimensional input instead");
  if (input.dtype != weight.dtype)
    fail("Input type (" + std::string(torch_name(input.dtype)) + ") and weight type (" +
         std::string(torch_name(weight.dtype)) + ") should be the same");
  std::size_t rank = input.dim() - 2;
  SymList stride = spatial(c, "stride", rank), padding = spatial(c, "padding", rank);
  SymList dilation = spatial(c, "dilation", rank), output_padding = spatial(c, "output_padding", rank);
  std::int64_t groups = c.integer("groups");
  bool transposed = c.boolean("transposed");
  if (groups <= 0) fail("non-positive groups is not supported");
  for (std::size_t i = 0; i < rank; ++i)
    if (!checked(c, sym_lt(0, stride[i]), "stride") || !checked(c, sym_lt(0, dilation[i]), "dilation"))
      fail("non-positive stride or dilation is not supported");
  SymExpr channels = transposed ? weight.sizes[0] : weight.sizes[1] * groups;
  if (!checked(c, sym_eq(input.sizes[1], channels), "convolution channels"))
    fail("Given groups=" + std::to_string(groups) + ", expected input to have " + channels.str() +
         " channels, but got " + input.sizes[1].str() + " channels instead");
  SymList sizes = {input.sizes[0], transposed ? weight.sizes[1] * groups : weight.sizes[0]};
  if (c.schema.index_of("bias") >= 0 && c.has("bias")) check_bias(c, c.tensor("bias"), sizes[1]);
  for (std::size_t i = 0; i < rank; ++i) {
    SymExpr in = input.sizes[i + 2], reach = dilation[i] * (weight.sizes[i + 2] - 1);
    SymExpr out = transposed ? (in - 1) * stride[i] - 2 * padding[i] + reach + output_padding[i] + 1
                             : sym_floordiv(in + 2 * padding[i] - reach - 1, stride[i]) + 1;
    if (!checked(c, sym_lt(0, out), "convolution output"))
      fail("Calculated padded input size per channel: (" + (in + 2 * padding[i]).str() + "). Kernel size: (" +
           (reach + 1).str() + "). Kernel size can't be greater than actual input size");
    sizes.push_back(out);
  }
  return in_format(input, sizes, convolution_format(c, input, weight));
}

Meta fake_convolution_backward(FakeCall& c) {
  const TensorMeta &input = c.tensor("input"), &weight = c.tensor("weight");
  const TensorMeta forward = *fake_convolution(c).tensor(), &grad = c.tensor("grad_output");
  if (!checked_sizes(c, grad.sizes, forward.sizes, "convolution_backward"))
    fail("convolution_backward: grad_output does not have the sizes of the convolution's output");
  if (grad.dtype != input.dtype) fail("convolution_backward: grad_output and input must have the same dtype");
  MemoryFormat format = convolution_format(c, input, weight);
  bool transposed = c.boolean("transposed");
  SymExpr channels = transposed ? weight.sizes[1] * c.integer("groups") : weight.sizes[0];
  return gradients_by_mask(c, in_format(input, input.sizes, format), in_format(weight, weight.sizes, format),
                           new_like(weight, {channels}));
}

namespace {

bool is_transposed(const Node& call, std::size_t argument) {
  const bool* flag = call.args().size() > argument ? call.args()[argument].get<bool>() : nullptr;
  return flag && *flag;
}
std::optional<SymExpr> forward_operations(const Node& call) {
  return convolution_operations(call, call.meta.tensor(), 0, is_transposed(call, 6));
}
/// A convolution of the size of the forward's for each gradient of input and weight that is wanted.
std::optional<SymExpr> backward_operations(const Node& call) {
  const auto one = convolution_operations(call, tensor_argument(call, 0), 1, is_transposed(call, 7));
  const auto mask = call.args().size() > 10 ? call.args()[10].get<ArgList>() : nullptr;
  if (!one || !mask || mask->items.size() < 2) return std::nullopt;
  int wanted = 0;
  for (std::size_t i = 0; i < 2; ++i) wanted += mask->items[i] == Arg(true);
  return wanted * *one;
}

}  // namespace

void register_conv(OpTable& t) {
  t.default_family = Family::Matmul;
  t.add("aten.convolution.default", fake_convolution, eval_convolution,
        {{"input, weight, bias",
          "aten.convolution_backward.default(grad, input, weight, [0] if bias is None else sizes(bias), "
          "stride, padding, dilation, transposed, output_padding, groups, output_mask)"}},
        {.cost = {.expensive = true, .operations = forward_operations},
         .library = LibraryRoutine::Convolution,
         .images = 1});
  // _convolution_double_backward
  t.add(
      "aten.convolution_backward.default", fake_convolution_backward, eval_convolution_backward,
      {{"grad_output",
        "sum_of(convolution(zeros_like(input) if grads[0] is None else grads[0], weight, grads[2], stride, padding, "
        "dilation, transposed, output_padding, groups), None if grads[1] is None else convolution(input, grads[1], "
        "None, stride, padding, dilation, transposed, output_padding, groups))"},
       {"input",
        "None if grads[1] is None else aten.convolution_backward.default(grad_output, input, grads[1], None, stride, "
        "padding, dilation, transposed, output_padding, groups, [True, False, False])[0]"},
       {"weight",
        "None if grads[0] is None else aten.convolution_backward.default(grad_output, grads[0], weight, None, stride, "
        "padding, dilation, transposed, output_padding, groups, [False, True, False])[1]"}},
      {.autograd = {.all_results_differentiable = true},
       .cost = {.expensive = true, .operations = backward_operations},
       .library = LibraryRoutine::ConvolutionBackward,
       .images = 2});
}

}  // namespace partita

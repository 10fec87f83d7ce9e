#include "core/ops/lowerings.h"

#include <unordered_map>

#include "core/ops/pointwise.h"

namespace partita::loops {
namespace {

struct Row {
  std::string_view op;
  LowerFunction lower;
};

constexpr Row rows[] = {
    {"aten.alias.default", lower_alias},
    {"aten.detach.default", lower_alias},
    {"aten.lift_fresh_copy.default", lower_copy},
    {"aten.view.default", lower_reshape},
    {"aten.reshape.default", lower_reshape},
    {"aten._unsafe_view.default", lower_reshape},
    {"aten.squeeze.default", lower_reshape},
    {"aten.squeeze.dim", lower_reshape},
    {"aten.squeeze.dims", lower_reshape},
    {"aten.unsqueeze.default", lower_reshape},
    {"aten.expand.default", lower_expand},
    {"aten.permute.default", lower_permute},
    {"aten.t.default", lower_t},
    {"aten.transpose.int", lower_transpose},
    {"aten.select.int", lower_select},
    {"aten.slice.Tensor", lower_slice},
    {"aten.split.Tensor", lower_split},
    {"aten.split_with_sizes.default", lower_split_sizes},
    {"aten.unbind.int", lower_unbind},
    {"aten.as_strided.default", lower_as_strided},
    {"aten.diagonal.default", lower_diagonal},
    {"aten.flip.default", lower_flip},
    {"aten.roll.default", lower_roll},
    {"aten.repeat.default", lower_repeat},
    {"aten.cat.default", lower_cat},
    {"aten.stack.default", lower_stack},
    {"aten.constant_pad_nd.default", lower_pad},
    {"aten.slice_scatter.default", lower_slice_scatter},
    {"aten.select_scatter.default", lower_select_scatter},
    {"aten.slice_backward.default", lower_slice_backward},
    {"aten.select_backward.default", lower_select_backward},
    {"aten.full.default", lower_full},
    {"aten.new_full.default", lower_full},
    {"aten.full_like.default", lower_full_like},
    {"aten.fill.Scalar", lower_full_like},
    {"aten.scalar_tensor.default", lower_full_like},
    {"aten.fill.Tensor", lower_fill},
    {"aten.zeros.default", lower_zeros},
    {"aten.zeros_like.default", lower_zeros},
    {"aten.new_zeros.default", lower_zeros},
    {"aten.empty.memory_format", lower_zeros},
    {"aten.empty_strided.default", lower_zeros},
    {"aten.empty_like.default", lower_zeros},
    {"aten.new_empty.default", lower_zeros},
    {"aten.new_empty_strided.default", lower_zeros},
    {"aten.ones.default", lower_ones},
    {"aten.ones_like.default", lower_ones},
    {"aten.new_ones.default", lower_ones},
    {"aten.arange.default", lower_arange},
    {"aten.arange.start", lower_arange},
    {"aten.arange.start_step", lower_arange},
    {"prims.iota.default", lower_iota},
    {"aten.eye.default", lower_eye},
    {"aten.tril.default", lower_tril},
    {"aten.triu.default", lower_triu},
    {"aten.clone.default", lower_copy},
    {"aten._to_copy.default", lower_copy},
    {"prims.convert_element_type.default", lower_copy},
    {"aten.copy.default", lower_copy_from},
    {"aten.sum.default", lower_sum},
    {"aten.sum.dim_IntList", lower_sum},
    {"aten.mean.default", lower_mean},
    {"aten.mean.dim", lower_mean},
    {"aten.prod.default", lower_prod},
    {"aten.prod.dim_int", lower_prod},
    {"aten.amax.default", lower_amax},
    {"aten.max.default", lower_amax},
    {"aten.amin.default", lower_amin},
    {"aten.min.default", lower_amin},
    {"aten.max.dim", lower_max_dim},
    {"aten.min.dim", lower_min_dim},
    {"aten.argmax.default", lower_argmax},
    {"aten.argmin.default", lower_argmin},
    {"aten.any.default", lower_any},
    {"aten.any.dim", lower_any},
    {"aten.any.dims", lower_any},
    {"aten.all.default", lower_all},
    {"aten.all.dim", lower_all},
    {"aten.all.dims", lower_all},
    {"aten.var.correction", lower_var},
    {"aten.var_mean.correction", lower_var_mean},
    {"aten.std.correction", lower_std},
    {"aten.logsumexp.default", lower_logsumexp},
    {"aten.linalg_vector_norm.default", lower_vector_norm},
    {"aten._softmax.default", lower_softmax},
    {"aten._log_softmax.default", lower_log_softmax},
    {"aten._softmax_backward_data.default", lower_softmax_backward},
    {"aten._log_softmax_backward_data.default", lower_log_softmax_backward},
    {"aten.native_layer_norm.default", lower_layer_norm},
    {"aten.native_layer_norm_backward.default", lower_layer_norm_backward},
    {"aten._fused_rms_norm.default", lower_rms_norm},
    {"aten.native_group_norm.default", lower_group_norm},
    {"aten.native_batch_norm.default", lower_batch_norm},
    {"aten._native_batch_norm_legit.no_stats", lower_batch_norm},
    {"aten._native_batch_norm_legit.default", lower_batch_norm},
    {"aten._native_batch_norm_legit_functional.default", lower_batch_norm_functional},
    {"aten._native_batch_norm_legit_no_training.default", lower_batch_norm_inference},
    {"aten.native_batch_norm_backward.default", lower_batch_norm_backward},
    {"aten.embedding.default", lower_embedding},
    {"aten.embedding_dense_backward.default", lower_embedding_backward},
    {"aten.index_select.default", lower_index_select},
    {"aten.gather.default", lower_gather},
    {"aten.index.Tensor", lower_index},
    {"aten._unsafe_index.Tensor", lower_index},
    {"aten.index_put.default", lower_index_put},
    {"aten._unsafe_index_put.default", lower_index_put},
    {"aten.scatter.src", lower_scatter},
    {"aten.scatter.value", lower_scatter},
    {"aten.scatter_add.default", lower_scatter_add},
    {"aten._unsafe_masked_index.default", lower_masked_index},
    {"aten._unsafe_masked_index_put_accumulate.default", lower_masked_index_put},
    {"aten.nll_loss_forward.default", lower_nll_loss},
    {"aten.nll_loss_backward.default", lower_nll_loss_backward},
    {"aten.max_pool2d_with_indices.default", lower_max_pool2d},
    {"aten.max_pool2d_with_indices_backward.default", lower_max_pool2d_backward},
    {"aten.avg_pool2d.default", lower_avg_pool2d},
    {"aten._adaptive_avg_pool2d.default", lower_adaptive_avg_pool2d},
    {"aten._adaptive_avg_pool2d_backward.default", lower_adaptive_avg_pool2d_backward},
};

}  // namespace

LowerFunction find_lowering(const Op* op) {
  if (const OpRecord* record = find_record(op); record && record->lower) return record->lower;
  static const auto table = [] {
    std::unordered_map<const Op*, LowerFunction> t;
    for (const Row& row : rows) t.emplace(Op::torch(row.op), row.lower);
    return t;
  }();
  auto it = table.find(op);
  return it == table.end() ? nullptr : it->second;
}

Status lower_pointwise(const OpRecord& record, std::shared_ptr<LowerCall> call) {
  Sizes sizes = call->out_sizes();
  DType dtype = call->out().dtype;
  std::unordered_map<std::string_view, LoweredTensor> inputs;
  std::vector<std::string_view> names = pointwise_inputs(record);
  if (!record.pointwise.condition.empty()) names.push_back(record.pointwise.condition);
  for (std::string_view name : names) {
    if (!call->has(name)) continue;
    if (call->is_tensor(name)) {
      inputs[name] = call->to.expand(call->in(name), sizes);
      if (is_complex(inputs[name].dtype)) fail_unsupported("complex numbers in loops");
    }
  }
  if (is_complex(dtype)) fail_unsupported("complex numbers in loops");
  call->give(call->to.map(dtype, sizes, [&record, call, inputs, dtype](Body& body, const Index& i) {
    Scalar value =
        pointwise_value(record, *call, body.b, [&](std::string_view name) { return body.read(inputs.at(name), i); });
    return body.b.cast(value, dtype);
  }));
  return {};
}

}  // namespace partita::loops

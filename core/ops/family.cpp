#include "core/ops/family.h"

#include <string>
#include <unordered_map>

#include "core/ops/record.h"

namespace partita {
namespace {

// Base names whose family neither schema tags nor records tell.
const std::unordered_map<std::string_view, Family>& by_base_name() {
  static const auto* table = [] {
    auto* t = new std::unordered_map<std::string_view, Family>;
    auto add = [t](Family family, std::initializer_list<std::string_view> names) {
      for (std::string_view name : names) t->emplace(name, family);
    };
    add(Family::Matmul, {"mm",
                         "bmm",
                         "addmm",
                         "baddbmm",
                         "addbmm",
                         "matmul",
                         "linear",
                         "dot",
                         "mv",
                         "addmv",
                         "einsum",
                         "bilinear",
                         "convolution",
                         "convolution_backward",
                         "conv1d",
                         "conv2d",
                         "conv3d",
                         "conv_transpose2d",
                         "_convolution",
                         "scaled_dot_product_attention",
                         "_scaled_dot_product_flash_attention",
                         "_scaled_dot_product_efficient_attention",
                         "_scaled_dot_product_flash_attention_for_cpu",
                         "_scaled_dot_product_flash_attention_for_cpu_backward",
                         "_scaled_dot_product_attention_math_for_cpu",
                         "lstm",
                         "gru",
                         "mkldnn_rnn_layer"});
    add(Family::Reduction, {"sum",
                            "mean",
                            "amax",
                            "amin",
                            "max",
                            "min",
                            "argmax",
                            "argmin",
                            "var",
                            "var_mean",
                            "std",
                            "std_mean",
                            "prod",
                            "any",
                            "all",
                            "norm",
                            "linalg_vector_norm",
                            "logsumexp",
                            "cumsum",
                            "cumprod",
                            "_softmax",
                            "softmax",
                            "_log_softmax",
                            "log_softmax",
                            "_softmax_backward_data",
                            "_log_softmax_backward_data",
                            "native_layer_norm",
                            "native_layer_norm_backward",
                            "layer_norm",
                            "native_group_norm",
                            "native_group_norm_backward",
                            "group_norm",
                            "native_batch_norm",
                            "native_batch_norm_backward",
                            "_native_batch_norm_legit",
                            "_native_batch_norm_legit_functional",
                            "batch_norm",
                            "nll_loss",
                            "nll_loss_forward",
                            "nll_loss_backward",
                            "cross_entropy",
                            "mse_loss",
                            "max_pool2d",
                            "max_pool2d_with_indices",
                            "max_pool2d_with_indices_backward",
                            "avg_pool2d",
                            "avg_pool2d_backward",
                            "adaptive_avg_pool2d",
                            "_adaptive_avg_pool2d",
                            "_adaptive_avg_pool2d_backward",
                            "topk",
                            "sort"});
    add(Family::View,
        {"view",       "reshape",         "t",       "transpose", "permute",    "expand",           "slice",
         "select",     "unsqueeze",       "squeeze", "getitem",   "split",      "split_with_sizes", "chunk",
         "unbind",     "alias",           "detach",  "clone",     "contiguous", "flatten",          "_unsafe_view",
         "as_strided", "lift_fresh_copy", "to",      "_to_copy",  "size",       "sym_size",         "view_as",
         "numel"});
    add(Family::Index, {"index",
                        "index_put",
                        "_index_put",
                        "gather",
                        "scatter",
                        "scatter_add",
                        "index_select",
                        "embedding",
                        "embedding_dense_backward",
                        "_embedding_bag",
                        "_embedding_bag_dense_backward",
                        "cat",
                        "stack",
                        "slice_backward",
                        "select_backward",
                        "slice_scatter",
                        "select_scatter",
                        "roll",
                        "flip",
                        "repeat",
                        "constant_pad_nd",
                        "pad",
                        "arange",
                        "full",
                        "full_like",
                        "zeros",
                        "zeros_like",
                        "ones",
                        "ones_like",
                        "empty",
                        "new_zeros",
                        "new_full",
                        "new_empty",
                        "scalar_tensor",
                        "tensor",
                        "iota",
                        "_unsafe_index",
                        "_unsafe_index_put",
                        "upsample_nearest2d",
                        "upsample_bilinear2d",
                        "copy",
                        "setitem"});
    add(Family::Random, {"dropout",
                         "native_dropout",
                         "rand",
                         "randn",
                         "rand_like",
                         "randn_like",
                         "randint",
                         "randint_like",
                         "bernoulli",
                         "multinomial",
                         "randperm",
                         "random",
                         "uniform",
                         "normal",
                         "normal_functional",
                         "log_normal",
                         "cauchy",
                         "exponential",
                         "geometric",
                         "poisson",
                         "inductor_random",
                         "inductor_seed",
                         "inductor_seeds",
                         "inductor_lookup_seed",
                         "inductor_randint",
                         "philox_rand"});
    add(Family::Control, {"cond", "while_loop", "map_impl", "scan", "wrap", "checkpoint", "tag_activation_checkpoint",
                          "_set_grad_enabled", "_enter_autocast", "_exit_autocast", "_assert_async", "_assert_scalar",
                          "_assert_tensor_metadata", "sym_constrain_range", "sym_constrain_range_for_size",
                          "_lazy_load_decompositions", "_vmap_increment_nesting"});
    return t;
  }();
  return *table;
}

// "aten.add.Tensor" -> "add"; in-place names lose their underscore: "add_" -> "add".
std::string_view base_name(const Op& op) {
  std::string_view base = op.brief();
  if (base.size() > 1 && base.back() == '_' && base[base.size() - 2] != '_') base.remove_suffix(1);
  return base;
}

}  // namespace

std::string_view family_name(Family family) {
  switch (family) {
#define V(name, text) \
  case Family::name:  \
    return text;
    PARTITA_FAMILY_NAMES(V)
#undef V
  }
  return {};
}

Family family_of(const Op* op) {
  if (!op->is_call()) return Family::Input;
  if (op->kind == OpKind::Torch) {
    if (op->name.starts_with("_c10d_functional.") || op->name.starts_with("c10d")) return Family::Collective;
    if (op->name.starts_with("higher_order.")) return Family::Control;
  }
  std::string_view base = base_name(*op);
  if (auto found = by_base_name().find(base); found != by_base_name().end()) return found->second;
  const OpRecord* record = op->kind == OpKind::Torch ? find_record(op) : nullptr;
  if (record) {
    if (record->random) return Family::Random;
    if (record->pointwise.body) return Family::Pointwise;
    if (record->expensive) return Family::Matmul;
    if (record->side_effect) return Family::Control;
  }
  const Schema* schema = op->kind == OpKind::Torch ? find_schema(op) : nullptr;
  if (!schema) {
    const auto& overloads = find_overloads("aten." + std::string(base));
    if (!overloads.empty()) schema = overloads.front();
  }
  if (!schema) return Family::Other;
  if (schema->is_view) return Family::View;
  if (schema->nondeterministic_seeded) return Family::Random;
  return schema->pointwise ? Family::Pointwise : Family::Other;
}

}  // namespace partita

// torch.nn.functional.multi_head_attention_forward, which dynamo leaves in its graphs as one call.
#include <cmath>

#include "core/ops/schema/resolve_parts.h"

namespace partita {
namespace {

/// Builds the steps of the function. Each is an ATen expression over the parameters and the results of earlier steps,
/// all by name.
class MultiHeadAttention {
 public:
  MultiHeadAttention(Builder& b, NamedArgs& names) : b_(b), names_(names) {}

  Arg build() {
    check();
    if (!batched_) {
      for (const char* name : {"query", "key", "value"}) set(name, concat("unsqueeze(", name, ", 1)"));
      if (has("key_padding_mask")) set("key_padding_mask", "unsqueeze(key_padding_mask, 0)");
    }
    target_ = tensor("query").sizes[0], batch_ = tensor("query").sizes[1], width_ = tensor("query").sizes[2];
    name_sizes();
    prepare_masks();
    project();
    lengthen();
    merge_masks();
    return truth("need_weights") ? with_weights() : fused();
  }

 private:
  static std::string concat(std::string_view a, std::string_view b, std::string_view c) {
    return std::string(a) + std::string(b) + std::string(c);
  }
  const Arg* find(std::string_view name) const { return lookup(names_, name); }
  bool has(std::string_view name) const { return find(name) && !find(name)->is_none(); }
  bool truth(std::string_view name) const {
    if (find(name) && find(name)->node()) fail_unsupported(std::string(name) + " that is known only at run time");
    return find(name) && *find(name) == Arg(true);
  }
  const TensorMeta& tensor(std::string_view name) const { return b_.tensor(*find(name)); }
  Arg expression(std::string_view text) { return b_.expression(text, names_); }
  void bind(std::string_view name, Arg value) {
    if (Arg* old = lookup(names_, name))
      *old = std::move(value);
    else
      names_.emplace_back(name, std::move(value));
  }
  void set(std::string_view name, std::string_view text) { bind(name, expression(text)); }

  void check() {
    const std::size_t rank = tensor("query").dim();
    if (rank != 2 && rank != 3)
      fail("query should be unbatched 2D or batched 3D tensor but received " + std::to_string(rank) +
           "-D query tensor");
    batched_ = rank == 3;
    if (tensor("key").dim() != rank || tensor("value").dim() != rank)
      fail("expected key and value to be " + std::to_string(rank) + "-D like query");
    if (truth("is_causal") && !has("attn_mask")) fail("Need attn_mask if specifying the is_causal hint.");
    if (has("static_k") || has("static_v")) fail_unsupported("multi_head_attention_forward with static_k or static_v");
    if (has("bias_k") != has("bias_v")) fail("bias_k and bias_v must be given together");
    const auto* heads = find("num_heads")->get<std::int64_t>();
    if (!heads || *heads <= 0) fail("num_heads must be a positive number");
    heads_ = *heads;
  }

  /// Binds the sizes to names, since they may be symbols.
  void name_sizes() {
    const SymExpr head = sym_floordiv(width_, heads_);
    bind("L", b_.size(target_));
    bind("N", b_.size(batch_));
    bind("E", b_.size(width_));
    bind("D", b_.size(head));
    bind("NH", b_.size(batch_ * heads_));
    bind("LN", b_.size(target_ * batch_));
    bind("E2", b_.size(width_ * 2));
  }

  /// Turns a boolean mask, where true hides a position, into a term of the scores.
  void canonical(std::string_view name) {
    if (is_floating(tensor(name).dtype)) return;
    if (tensor(name).dtype != DType::Bool) fail(concat("only bool and floating types of ", name, " are supported"));
    bind("mask_dtype", Arg(tensor("query").dtype));
    set(name, concat("masked_fill_(zeros_like(", name, ", dtype=mask_dtype), ") + std::string(name) + ", -inf)");
  }

  void prepare_masks() {
    if (has("key_padding_mask")) canonical("key_padding_mask");
    if (truth("is_causal") && !has("key_padding_mask") && !truth("need_weights")) {
      bind("attn_mask", Arg());
      return;
    }
    if (has("attn_mask")) canonical("attn_mask");
    if (has("key_padding_mask")) bind("is_causal", Arg(false));
    if (has("attn_mask") && tensor("attn_mask").dim() == 2) set("attn_mask", "unsqueeze(attn_mask, 0)");
  }

  /// When query, key and value are the same tensor they are projected by one product. As _in_projection_packed, with
  /// its order of memory.
  void packed(std::string_view input, std::string_view weight, std::string_view bias, int parts,
              std::initializer_list<const char*> results) {
    set("proj", "linear(" + std::string(input) + ", " + std::string(weight) + ", " + std::string(bias) + ")");
    set("proj", "contiguous(squeeze(transpose(unsqueeze(unflatten(proj, -1, [" + std::to_string(parts) +
                    ", E]), 0), 0, -2), -2))");
    int i = 0;
    for (const char* result : results) set(result, "select(proj, 0, " + std::to_string(i++) + ")");
  }

  void project() {
    if (truth("use_separate_proj_weight")) {
      split_bias("chunk(in_proj_bias, 3)", {"b_q", "b_k", "b_v"});
      set("q", "linear(query, q_proj_weight, b_q)");
      set("k", "linear(key, k_proj_weight, b_k)");
      set("v", "linear(value, v_proj_weight, b_v)");
      return;
    }
    if (!has("in_proj_weight")) fail("use_separate_proj_weight is False but in_proj_weight is None");
    const bool same_kv = *find("key") == *find("value"), same_q = *find("query") == *find("key");
    if (same_kv && same_q) {
      packed("query", "in_proj_weight", "in_proj_bias", 3, {"q", "k", "v"});
    } else if (same_kv) {
      set("w", "split_with_sizes(in_proj_weight, [E, E2])");
      split_bias("split_with_sizes(in_proj_bias, [E, E2])", {"b_q", "b_kv"});
      set("q", "linear(query, w[0], b_q)");
      set("w_kv", "w[1]");
      packed("key", "w_kv", "b_kv", 2, {"k", "v"});
    } else {
      set("w", "chunk(in_proj_weight, 3)");
      split_bias("chunk(in_proj_bias, 3)", {"b_q", "b_k", "b_v"});
      set("q", "linear(query, w[0], b_q)");
      set("k", "linear(key, w[1], b_k)");
      set("v", "linear(value, w[2], b_v)");
    }
  }

  void split_bias(std::string_view how, std::initializer_list<const char*> results) {
    if (has("in_proj_bias")) set("b", how);
    int i = 0;
    for (const char* result : results)
      bind(result, has("in_proj_bias") ? expression("b[" + std::to_string(i++) + "]") : Arg());
  }

  void pad_masks() {
    for (const char* mask : {"attn_mask", "key_padding_mask"})
      if (has(mask)) set(mask, concat("constant_pad_nd(", mask, ", [0, 1], 0.0)"));
  }

  /// Moves the heads before the positions, and appends the rows that bias_k and add_zero_attn add to the keys.
  void lengthen() {
    if (has("bias_k")) {
      set("k", "cat([k, repeat(bias_k, [1, N, 1])])");
      set("v", "cat([v, repeat(bias_v, [1, N, 1])])");
      pad_masks();
    }
    bind("S", b_.size(tensor("k").sizes[0]));
    set("q", "transpose(view(q, [L, NH, D]), 0, 1)");
    set("k", "transpose(view(k, [S, NH, D]), 0, 1)");
    set("v", "transpose(view(v, [S, NH, D]), 0, 1)");
    if (truth("add_zero_attn")) {
      set("k", "cat([k, new_zeros(k, [NH, 1, D])], 1)");
      set("v", "cat([v, new_zeros(v, [NH, 1, D])], 1)");
      pad_masks();
    }
    bind("S", b_.size(tensor("k").sizes[1]));
    bind("H", Arg(heads_));
  }

  void merge_masks() {
    if (!has("key_padding_mask")) return;
    set("padding", "reshape(expand(view(key_padding_mask, [N, 1, 1, S]), [-1, H, -1, -1]), [NH, 1, S])");
    bind("attn_mask", has("attn_mask") ? expression("attn_mask + padding") : expression("padding"));
  }

  Arg dropout() { return truth("training") ? *find("dropout_p") : Arg(0.0); }
  bool drops() {
    const std::optional<Number> p = as_number(dropout());
    return !p || as_double(*p) > 0;
  }

  Arg output(std::string_view heads_together) {
    set("out", heads_together);
    set("out", "linear(out, out_proj_weight, out_proj_bias)");
    bind("O", b_.size(tensor("out").sizes[1]));
    set("out", "view(out, [L, N, O])");
    return batched_ ? *find("out") : expression("squeeze(out, 1)");
  }

  Arg with_weights() {
    if (!width_.is_int()) fail_unsupported("multi_head_attention_forward with weights and a symbolic width");
    const std::int64_t of_a_head = width_.as_int() / heads_;
    bind("scale", Arg(std::sqrt(1.0 / static_cast<double>(of_a_head))));
    set("scaled", "q * scale");
    bind("weights", has("attn_mask") ? expression("baddbmm(attn_mask, scaled, transpose(k, -2, -1))")
                                     : expression("bmm(scaled, transpose(k, -2, -1))"));
    set("weights", "softmax(weights, -1)");
    bind("p", dropout());
    if (drops()) set("weights", "dropout(weights, p, True)");
    const Arg out = output("reshape(transpose(bmm(weights, v), 0, 1), [LN, E])");
    set("weights", "view(weights, [N, H, L, S])");
    if (truth("average_attn_weights")) set("weights", "mean(weights, [1])");
    if (!batched_) set("weights", "squeeze(weights, 0)");
    return Arg::tuple({out, *find("weights")});
  }

  Arg fused() {
    if (has("attn_mask"))
      bind("attn_mask", tensor("attn_mask").sizes[0].is(1) ? expression("unsqueeze(attn_mask, 0)")
                                                           : expression("view(attn_mask, [N, H, -1, S])"));
    set("q", "view(q, [N, H, L, D])");
    set("k", "view(k, [N, H, S, D])");
    set("v", "view(v, [N, H, S, D])");
    bind("p", dropout());
    set("attended", "scaled_dot_product_attention(q, k, v, attn_mask, p, is_causal)");
    return Arg::tuple({output("reshape(permute(attended, [2, 0, 1, 3]), [LN, E])"), Arg()});
  }

  Builder& b_;
  NamedArgs& names_;
  bool batched_ = true;
  std::int64_t heads_ = 1;
  SymExpr target_, batch_, width_;
};

}  // namespace

Arg multi_head_attention_forward(Builder& build, NamedArgs& names) {
  return MultiHeadAttention(build, names).build();
}

}  // namespace partita

// Folds what scales and shifts a convolution's channels by constants, such as a batch norm in evaluation, into its
// weight and bias. The new values are computed in double and rounded once. Whether that is wanted is the user's choice
// (freezing), because products of rounded weights differ from rounded products.
#include <fmt/format.h>

#include "core/ops/facts/effects.h"
#include "core/ops/record/record.h"
#include "core/passes/channel_affine.h"
#include "core/passes/pass.h"
#include "core/passes/value_memory.h"

namespace partita {
namespace {

/// The arguments of a convolution with constant weights, in schema order.
struct Convolution {
  Args args;
  Node* weight = nullptr;
  bool transposed = false;
  std::int64_t groups = 1;
};

class WeightFolder {
 public:
  WeightFolder(Graph& graph, PassContext& context) : graph_(graph), context_(context), aliases_(graph) {}

  Result<bool> run() {
    bool changed = false;
    for (Node* node : graph_) {
      const auto convolution = constant_convolution(*node);
      if (!convolution) continue;
      TRY(const bool folded, fold(*node, *convolution));
      changed |= folded;
    }
    if (changed) graph_.eliminate_dead(has_effect);
    return changed;
  }

 private:
  const Tensor* known(const Node& node) const {
    if (!node.is(Op::get_attr()) || aliases_.mutated(node)) return nullptr;
    const auto found = graph_.attributes.find(node.target);
    return found == graph_.attributes.end() ? nullptr : &found->second;
  }

  std::optional<Convolution> constant_convolution(const Node& node) const {
    const OpRecord* record = node.op()->is_call() ? find_record(node.op()) : nullptr;
    if (!record || record->library != LibraryRoutine::Convolution) return std::nullopt;
    Convolution out{.args = bound_arguments(node)};
    const TensorMeta* meta = node.meta.tensor();
    if (out.args.size() != 9 || !meta || !out.args[1].node()) return std::nullopt;
    const auto* transposed = out.args[6].get<bool>();
    const auto* groups = out.args[8].get<std::int64_t>();
    out.weight = out.args[1].node();
    const Tensor* weight = known(*out.weight);
    if (!transposed || !groups || !weight || weight->dtype != meta->dtype || !is_floating(meta->dtype) ||
        weight->sizes.size() != meta->dim() || (out.args[2].node() && !known(*out.args[2].node())))
      return std::nullopt;
    out.transposed = *transposed;
    out.groups = *groups;
    return out;
  }

  /// Folds the readers of the convolution, one after the other.
  Result<bool> fold(Node& node, const Convolution& convolution) {
    std::vector<double> scale, shift;
    Node* last = &node;
    const KnownValue value = [this](const Node& n) { return known(n); };
    while (const auto affine = channel_affine(*last, value)) {
      if (!may_stand_for(node, *affine->result, aliases_)) break;
      if (last == &node) {
        scale.assign(affine->scale.size(), 1);
        shift = bias_of(convolution, affine->scale.size());
      }
      for (std::size_t c = 0; c < scale.size(); ++c) {
        scale[c] *= affine->scale[c];
        shift[c] = shift[c] * affine->scale[c] + affine->shift[c];
      }
      last = affine->result;
    }
    if (last == &node || !context_.may_rewrite("into weights", node)) return false;
    Args args = convolution.args;
    TRY(args[1], scaled_weight(node, convolution, scale));
    TRY(const Tensor bias, Tensor::empty(DType::Float64, {static_cast<std::int64_t>(shift.size())}));
    std::ranges::copy(shift, bias.as<double>());
    TRY(args[2], constant(node, "_folded_bias", bias, {1}));
    node.set_args(std::move(args), {});
    last->replace_all_uses_with(&node);
    return true;
  }

  std::vector<double> bias_of(const Convolution& convolution, std::size_t channels) const {
    std::vector<double> out(channels, 0);
    if (const Node* bias = convolution.args[2].node())
      for (std::size_t c = 0; c < channels; ++c) out[c] = known(*bias)->item_as_double(static_cast<std::int64_t>(c));
    return out;
  }

  /// The weight, times the scale of the channel that each element contributes to.
  Result<Node*> scaled_weight(Node& node, const Convolution& convolution, const std::vector<double>& scale) {
    const Tensor& weight = *known(*convolution.weight);
    TRY(const Tensor dense, weight.contiguous());
    const std::int64_t rows = weight.sizes[0], columns = weight.sizes[1];
    const std::int64_t element = rows * columns == 0 ? 0 : weight.numel() / (rows * columns);
    const auto scale_all = [&](const auto* from, auto* to) {
      for (std::int64_t i = 0; i < rows; ++i)
        for (std::int64_t j = 0; j < columns; ++j) {
          // A transposed convolution's weight is [inputs, outputs of a group].
          const std::int64_t channel = convolution.transposed ? i / (rows / convolution.groups) * columns + j : i;
          const double factor = scale[static_cast<std::size_t>(channel)];
          const std::int64_t at = (i * columns + j) * element;
          for (std::int64_t k = at; k < at + element; ++k)
            to[k] = static_cast<std::decay_t<decltype(*to)>>(static_cast<double>(from[k]) * factor);
        }
    };
    const Sizes strides = *concrete(convolution.weight->meta.tensor()->strides);
    if (weight.dtype == DType::Float32) {
      TRY(const Tensor scaled, Tensor::empty(weight.dtype, weight.sizes));
      scale_all(dense.as<float>(), scaled.as<float>());
      return constant(node, "_folded_weight", scaled, strides);
    }
    TRY(const Tensor wide, dense.to(DType::Float64));
    TRY(const Tensor own, wide.storage == dense.storage ? wide.clone() : Result<Tensor>(wide));
    scale_all(own.as<double>(), own.as<double>());
    return constant(node, "_folded_weight", own, strides);
  }

  /// A new constant before `node`, in its dtype and these strides.
  Result<Node*> constant(Node& node, std::string_view stem, Tensor value, const Sizes& strides) {
    const DType dtype = node.meta.tensor()->dtype;
    if (value.dtype != dtype || value.strides != strides) {
      const Tensor from = value;
      TRY(value, Tensor::empty_strided(dtype, from.sizes, strides));
      value.copy_from(from);
    }
    std::string name;
    for (int i = 0; name.empty() || graph_.attributes.contains(name); ++i) name = fmt::format("{}{}", stem, i);
    Node* made = graph_.create(Op::get_attr(), {}, {}, name, &node);
    made->target = name;
    made->origin = node.origin;
    TensorMeta meta = *node.meta.tensor();
    meta.sizes = {value.sizes.begin(), value.sizes.end()};
    meta.strides = {strides.begin(), strides.end()};
    made->meta = std::move(meta);
    graph_.attributes.emplace(name, value);
    aliases_.add(*made);
    return made;
  }

  Graph& graph_;
  PassContext& context_;
  Aliases aliases_;
};

}  // namespace

Result<bool> fold_into_weights(Graph& graph, PassContext& context) {
  return WeightFolder(graph, context).run();
}

}  // namespace partita

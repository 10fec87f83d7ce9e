#include "core/passes/channel_affine.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "core/ops/record/call.h"

namespace partita {
namespace {

const Op* batch_norm_op() {
  static const Op* const op = Op::torch("aten._native_batch_norm_legit_no_training.default");
  return op;
}

class Reader {
 public:
  Reader(const Node& value, const KnownValue& known)
      : value_(value), meta_(*value.meta.tensor()), known_(known), node_(*value.users()[0]) {
    const Schema* schema = find_schema(node_.op());
    auto bound = schema ? bind_arguments(*schema, node_.args(), node_.kwargs()) : Result<Args>(Diagnostic());
    if (bound) args_ = *std::move(bound);
    channels_ = meta_.sizes[1].is_int() ? meta_.sizes[1].as_int() : -1;
    out_.result = &node_;
  }

  std::optional<ChannelAffine> read() {
    static const std::unordered_map<const Op*, bool (Reader::*)()> readers = {
        {batch_norm_op(), &Reader::batch_norm},
        {Op::torch("aten.mul.Tensor"), &Reader::product},
        {Op::torch("aten.div.Tensor"), &Reader::quotient},
        {Op::torch("aten.add.Tensor"), &Reader::sum},
        {Op::torch("aten.sub.Tensor"), &Reader::difference},
    };
    const auto found = readers.find(node_.op());
    if (found == readers.end() || args_.empty() || channels_ < 0 || !(this->*found->second)()) return std::nullopt;
    const auto finite = [](double x) { return std::isfinite(x); };
    if (!std::ranges::all_of(out_.scale, finite) || !std::ranges::all_of(out_.shift, finite)) return std::nullopt;
    return std::move(out_);
  }

 private:
  using Numbers = std::optional<std::vector<double>>;

  Numbers all(double x) const { return std::vector<double>(static_cast<std::size_t>(channels_), x); }

  static Numbers elements(const Tensor& t) {
    std::vector<double> out;
    for (std::int64_t i = 0; i < t.numel(); ++i) out.push_back(t.item_as_double(i));
    return out;
  }

  /// A vector of the channels' parameters; `none` stands for one that is left out.
  Numbers vector(const Arg& arg, std::optional<double> none) const {
    if (arg.is_none() && none) return all(*none);
    const Tensor* t = arg.node() ? known_(*arg.node()) : nullptr;
    if (!t || t->sizes != Sizes{channels_}) return std::nullopt;
    return elements(*t);
  }

  /// A number, or a tensor that broadcasts along all dimensions but the channels'.
  Numbers operand(const Arg& arg) const {
    if (const auto number = as_number(arg)) {
      if (std::holds_alternative<std::complex<double>>(*number)) return std::nullopt;
      return all(as_double(*number));
    }
    const Tensor* t = arg.node() ? known_(*arg.node()) : nullptr;
    if (!t || is_complex(t->dtype) || t->sizes.size() > meta_.sizes.size()) return std::nullopt;
    const std::size_t before = meta_.sizes.size() - t->sizes.size();
    for (std::size_t d = 0; d < t->sizes.size(); ++d)
      if (t->sizes[d] != 1 && (d + before != 1 || t->sizes[d] != channels_)) return std::nullopt;
    return t->numel() == 1 ? all(t->item_as_double()) : elements(*t);
  }

  /// The operand beside `value`, at `second` of the arguments.
  Numbers beside(bool commutes) const {
    if (args_[0].node() == &value_) return args_[1].node() == &value_ ? std::nullopt : operand(args_[1]);
    return commutes ? operand(args_[0]) : std::nullopt;
  }

  /// (x - mean) / sqrt(var + eps) * weight + bias
  bool batch_norm() {
    const auto norm = batch_norm_of(value_);
    if (!norm) return false;
    const auto weight = vector(norm->weight, 1), bias = vector(norm->bias, 0), mean = vector(norm->mean, {}),
               var = vector(norm->var, {});
    const auto eps = as_number(norm->eps);
    if (!weight || !bias || !mean || !var || !eps) return false;
    out_.result = norm->result;
    for (std::size_t c = 0; c < mean->size(); ++c) {
      out_.scale.push_back((*weight)[c] / std::sqrt((*var)[c] + as_double(*eps)));
      out_.shift.push_back((*bias)[c] - (*mean)[c] * out_.scale[c]);
    }
    return true;
  }

  bool product() {
    const Numbers factors = beside(true);
    if (!factors) return false;
    out_.scale = *factors;
    out_.shift = *all(0);
    return true;
  }

  bool quotient() {
    const Numbers divisors = beside(false);
    if (!divisors) return false;
    for (double x : *divisors) out_.scale.push_back(1 / x);
    out_.shift = *all(0);
    return true;
  }

  bool add(double sign) {
    const auto alpha = as_number(args_[2]);
    const bool first = args_[0].node() == &value_;
    const Numbers terms = beside(alpha && as_double(*alpha) == 1 && sign == 1);
    if (!terms || !alpha) return false;
    out_.scale = *all(1);
    for (double x : *terms) out_.shift.push_back(first ? sign * as_double(*alpha) * x : x);
    return true;
  }
  bool sum() { return add(1); }
  bool difference() { return add(-1); }

  const Node& value_;
  const TensorMeta& meta_;
  const KnownValue& known_;
  Node& node_;
  Args args_;
  std::int64_t channels_ = -1;
  ChannelAffine out_;
};

}  // namespace

std::optional<BatchNorm> batch_norm_of(const Node& value) {
  const Node* norm = value.users().size() == 1 ? value.users()[0] : nullptr;
  if (!norm || norm->op() != batch_norm_op() || norm->users().size() != 1) return std::nullopt;
  Node* result = norm->users()[0];
  const auto* index = result->is(Op::getitem()) ? result->args()[1].get<std::int64_t>() : nullptr;
  const Schema* schema = find_schema(norm->op());
  auto args = schema ? bind_arguments(*schema, norm->args(), norm->kwargs()) : Result<Args>(Diagnostic());
  if (!index || *index != 0 || !args || args->size() != 7 || (*args)[0].node() != &value) return std::nullopt;
  const Args& a = *args;
  return BatchNorm{result, a[1], a[2], a[3], a[4], a[6]};
}

std::optional<ChannelAffine> channel_affine(const Node& value, const KnownValue& known) {
  if (value.users().size() != 1 || !value.meta.tensor() || value.meta.tensor()->dim() < 2) return std::nullopt;
  return Reader(value, known).read();
}

}  // namespace partita

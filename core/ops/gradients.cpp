#include "core/ops/gradients.h"

#include "core/base/check.h"
namespace partita {

Node* tensor_node(const FakeCall& call, std::string_view name) {
  Node* node = call.arg(name).node();
  if (!node) fail(std::string(name) + " is not a tensor");
  return node;
}

Arg output_mask(const GradCall& call, std::initializer_list<std::string_view> names) {
  std::vector<Arg> items;
  for (std::string_view name : names) items.emplace_back(call.want(name));
  return Arg::list(std::move(items));
}

void take_results(const GradCall& call, GradientSlots& slots, Node* results,
                  std::initializer_list<std::string_view> names) {
  std::int64_t i = 0;
  for (std::string_view name : names) {
    if (call.want(name)) slots[name] = call.build.getitem(results, i);
    ++i;
  }
}

Node* multiply_unless_one(Builder& build, Node* grad, const Arg& factor) {
  const auto* integer = factor.get<std::int64_t>();
  const auto* real = factor.get<double>();
  const auto* boolean = factor.get<bool>();
  if ((integer && *integer == 1) || (real && *real == 1.0) || (boolean && *boolean)) return grad;
  return build.call("aten.mul.Scalar", {grad, factor});
}

Arg conjugate(const Arg& number) {
  const auto* z = number.get<std::complex<double>>();
  return z ? Arg(std::conj(*z)) : number;
}

Node* conj_if_complex(Builder& build, Node* x) {
  return is_complex(Builder::tensor(x).dtype) ? build.call("aten._conj.default", {x}) : x;
}

}  // namespace partita

#include "codegen/program/extern.h"

namespace partita::codegen {
namespace {

std::optional<double> number_of(const Arg& a) {
  if (auto* i = a.get<std::int64_t>()) return static_cast<double>(*i);
  if (auto* d = a.get<double>()) return *d;
  if (auto* b = a.get<bool>()) return *b ? 1.0 : 0.0;
  return std::nullopt;
}

}  // namespace

std::optional<ConcreteView> concrete_view(const schedule::PlanView& view) {
  auto sizes = concrete(view.sizes), strides = concrete(view.strides);
  if (!sizes || !strides || !view.offset.is_int()) return std::nullopt;
  return ConcreteView{view.buffer, view.dtype, std::move(*sizes), std::move(*strides), view.offset.as_int()};
}

ConcreteView with_height(ConcreteView v) {
  if (v.sizes.size() != 3) return v;
  v.sizes.insert(v.sizes.begin() + 2, 1);
  v.strides.insert(v.strides.begin() + 2, v.strides[2] * v.sizes[3]);
  return v;
}

std::optional<ConcreteView> ExternContext::view(std::size_t i) const {
  auto* v = std::get_if<schedule::PlanView>(&call.args[i]);
  return v ? concrete_view(*v) : std::nullopt;
}

std::optional<double> ExternContext::number(std::size_t i) const {
  auto* a = std::get_if<Arg>(&call.args[i]);
  return a ? number_of(*a) : std::nullopt;
}

std::optional<Sizes> ExternContext::integers(std::size_t i) const {
  auto* a = std::get_if<Arg>(&call.args[i]);
  auto* list = a ? a->get<ArgList>() : nullptr;
  if (!list) return std::nullopt;
  Sizes out;
  for (const Arg& item : list->items) {
    auto* n = item.get<std::int64_t>();
    auto* flag = item.get<bool>();
    if (!n && !flag) return std::nullopt;
    out.push_back(n ? *n : *flag);
  }
  return out;
}

}  // namespace partita::codegen

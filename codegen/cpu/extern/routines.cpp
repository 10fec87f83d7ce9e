#include <algorithm>

#include "codegen/cpu/extern/in_floats.h"
#include "codegen/program/extern.h"

namespace partita::codegen {
namespace {

struct Row {
  LibraryRoutine routine;
  PrepareFunction prepare;
  bool by_onednn = true, takes_halves = false;
};
constexpr Row rows[] = {
    {LibraryRoutine::Matmul, prepare_matmul},
    {LibraryRoutine::AddMatmul, prepare_addmm},
    {LibraryRoutine::Convolution, prepare_convolution},
    {LibraryRoutine::ConvolutionBackward, prepare_convolution_backward},
    {.routine = LibraryRoutine::Attention, .prepare = prepare_attention, .by_onednn = false, .takes_halves = true},
    {.routine = LibraryRoutine::AttentionBackward,
     .prepare = prepare_attention_backward,
     .by_onednn = false,
     .takes_halves = true},
    {LibraryRoutine::GroupedMatmul, prepare_grouped_product, false},
};

std::optional<double> number_of(const Arg& a) {
  if (auto* i = a.get<std::int64_t>()) return static_cast<double>(*i);
  if (auto* d = a.get<double>()) return *d;
  if (auto* b = a.get<bool>()) return *b ? 1.0 : 0.0;
  return std::nullopt;
}

}  // namespace

RegisterWork register_work(const ClampedSum& work, const ConcreteView& out, std::byte* const* buffers) {
  RegisterWork made;
  if (work.added >= 0) made.added = reinterpret_cast<const float*>(buffers[work.added]) + out.offset;
  made.low = static_cast<float>(work.low);
  made.high = static_cast<float>(work.high);
  constexpr ClampedSum unbounded;
  made.clamps = work.low != unbounded.low || work.high != unbounded.high;
  return made;
}

std::vector<LibraryRoutine> library_routines() {
  std::vector<LibraryRoutine> routines;
  for (const Row& row : rows) routines.push_back(row.routine);
  return routines;
}

bool needs_onednn(LibraryRoutine routine) {
  return std::ranges::any_of(rows, [&](const Row& row) { return row.routine == routine && row.by_onednn; });
}

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

Prepared prepare_library(const ExternContext& context, std::string& why_not) {
  for (const Row& row : rows) {
    if (context.routine != row.routine) continue;
    const bool in_floats = belongs_in_floats(context.call) && !row.takes_halves;
    Prepared p;
    if (in_floats) p = prepare_in_floats(context, row.prepare, why_not);
    if (!p.step) p = row.prepare(context, why_not);
    if (!p.step && !in_floats && !row.takes_halves) p = prepare_in_floats(context, row.prepare, why_not);
    if (!p.step) continue;
    why_not.clear();  // of attempts before
    return p;
  }
  return {};
}

}  // namespace partita::codegen

#include "codegen/cpu/extern/routines.h"

#include <algorithm>

#include "codegen/cpu/extern/in_floats.h"
#include "core/base/mapped.h"

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
  return mapped(rows, &Row::routine);
}

bool needs_onednn(LibraryRoutine routine) {
  return std::ranges::any_of(rows, [&](const Row& row) { return row.routine == routine && row.by_onednn; });
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

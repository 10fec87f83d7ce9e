#include "core/sym/term_budget.h"

#include <fmt/format.h>

#include "core/base/config.h"
#include "core/base/raise.h"

namespace partita {
namespace {

constexpr std::size_t terms_per_byte = 4;

thread_local std::size_t* left = nullptr;

}  // namespace

TermBudget::TermBudget(std::size_t text_bytes) {
  if (left) return;
  if (__builtin_mul_overflow(text_bytes, terms_per_byte, &left_) ||
      __builtin_add_overflow(left_, config().graph_limit, &left_))
    left_ = SIZE_MAX;
  left = &left_;
  outermost_ = true;
}

TermBudget::~TermBudget() {
  if (outermost_) left = nullptr;
}

void TermBudget::spend(std::size_t terms) {
  if (terms > (left ? *left : config().graph_limit))
    throw Raise{input_error("sym.too_large",
                            fmt::format("the symbolic sizes have too many terms, the limit is {}; raise it with "
                                        "--graph-limit",
                                        config().graph_limit))};
  if (left) *left -= terms;
}

}  // namespace partita

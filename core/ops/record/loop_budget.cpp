#include "core/ops/record/loop_budget.h"

#include <utility>

#include <fmt/format.h>

#include "core/base/config.h"
#include "core/ops/record/call.h"

namespace partita {
namespace {

thread_local LoopBudget* current = nullptr;

}  // namespace

LoopBudget::LoopBudget()
    : left_(static_cast<std::int64_t>(config().loop_limit)), outer_(std::exchange(current, this)) {}

LoopBudget::~LoopBudget() {
  current = outer_;
}

void LoopBudget::spend(std::int64_t iterations) {
  if (!current || iterations <= 0) return;
  if (iterations > current->left_)
    throw Raise{
        input_error("ops.turns", fmt::format("a number of the call asks for more than {} iterations of a loop; use "
                                             "a smaller one, or raise the limit with --loop-limit",
                                             config().loop_limit))};
  current->left_ -= iterations;
}

}  // namespace partita

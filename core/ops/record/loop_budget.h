#pragma once
#include <cstdint>

namespace partita {

/// While it lives, loops of its thread whose length is a number of the call (the degree of a polynomial, not a size)
/// may take the configuration's loop_limit of iterations in all. One within another has iterations of its own.
class LoopBudget {
 public:
  LoopBudget();
  ~LoopBudget();
  LoopBudget(const LoopBudget&) = delete;
  LoopBudget& operator=(const LoopBudget&) = delete;

  /// Takes iterations. Fails (ops.turns) when there are not so many left. Without a budget all are allowed.
  static void spend(std::int64_t iterations);

 private:
  std::int64_t left_;
  LoopBudget* outer_;
};

}  // namespace partita

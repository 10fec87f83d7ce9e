#pragma once
#include <cstddef>

namespace partita {

/// While it lives, the thread may make symbolic expressions of the configuration's graph_limit of terms in all, and of
/// 4 more for each byte of the text they are read from. Arithmetic raises sym.too_large beyond that, because
/// products of sums grow exponentially with their text. One within another shares the outer one's terms.
class TermBudget {
 public:
  explicit TermBudget(std::size_t text_bytes);
  ~TermBudget();
  TermBudget(const TermBudget&) = delete;
  TermBudget& operator=(const TermBudget&) = delete;

  /// Takes the terms of a new expression. Without a budget, one expression may have all terms of the limit.
  static void spend(std::size_t terms);

 private:
  std::size_t left_ = 0;
  bool outermost_ = false;
};

}  // namespace partita

#pragma once
// As attention_kernel.h, this header brings no code of its own.

namespace partita::codegen {

/// What a kernel makes of results before it stores them: min(max(x + added, low), high). NaN stays NaN.
struct RegisterWork {
  const float* added = nullptr;  ///< what is added to result i is added[i]; null: nothing
  bool clamps = false;
  float low = 0, high = 0;
};

}  // namespace partita::codegen

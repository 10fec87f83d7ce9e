#pragma once
#include <optional>
#include <string_view>
#include <vector>

#include "codegen/cuda/matrix/contraction.h"

namespace partita::codegen {

/// The functions that attention's kernels consist of.
enum class AttentionPart : unsigned char { Forward, OfQueries, OfKeys };

/// The text of one, in parts, and words in it beside those of all of attention's functions. A block has 128 threads.
struct AttentionText {
  int rows = 0;  ///< of queries or keys, that a block computes
  std::vector<std::string_view> bodies;
  PatternWords words;
};
/// For tensor cores, of a dtype that they take; nullopt where rows of this width need more registers or shared memory
/// than a block has.
std::optional<AttentionText> tensor_attention(AttentionPart part, DType dtype, std::int64_t width);

}  // namespace partita::codegen

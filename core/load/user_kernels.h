#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace partita {

/// A kernel of the user's own, in Triton, whose code a repro script has before it calls kernel_side_table.add_kernel.
struct UserKernel {
  std::size_t index = 0;           ///< kernel_idx of its calls
  std::string name;                ///< of its function, "add_kernel_0"
  std::size_t begin = 0, end = 0;  ///< of its code in the text, with what it needs: constants, other functions
  int line = 1;                    ///< of the first line of the code, 1-based
};
/// In the order of their indices. Reads the text as it is; nothing is executed.
std::vector<UserKernel> find_user_kernels(std::string_view text);

}  // namespace partita

#pragma once
// The memory that inductor's wrapper holds from line to line, as its code makes tensors and lets go of them.
#include <string>
#include <vector>

#include "core/load/output_code.h"

namespace partita {

/// One tensor's memory.
struct WrapperStorage {
  std::string name;  ///< the first variable that it is in: "buf0", "primals_3"
  std::string node;  ///< of the post-grad graph; empty: not known
  double bytes = 0;  ///< by the graph's hints where sizes are symbolic
  int made = 0;      ///< the line that makes it, from 1; of an input the line that takes it
  int freed = 0;     ///< the line that lets go of it; of what is returned, the line of the return
  bool is_input = false;
  bool returned = false;
};

struct WrapperMemory {
  std::vector<WrapperStorage> storages;
  std::vector<int> inputs;    ///< the storage of each input, in order; -1: a number
  std::vector<int> returned;  ///< the storage of each result; -1: a number or None
  /// Calls whose results have a size that neither the code nor the graph tells; they count as nothing.
  std::vector<std::string> unknown;
};

/// Reads the one function of the wrapper. `post_grad` has the sizes of inputs and of what operators return. What a
/// kernel or a library takes for itself while it runs is not in the code. Error load.wrapper for code without such a
/// function, or with several (branches, graph partitions, C++ wrappers).
Result<WrapperMemory> read_wrapper_memory(const InductorCode& code, const Graph& post_grad);

}  // namespace partita

#pragma once
#include <string_view>
#include <vector>

#include "core/load/output_code.h"

namespace partita {

/// The operator that a call in the wrapper runs, as a profile names it: "aten::mm" of extern_kernels.mm, aten.mm.out
/// and torch.ops.aten.mm.default. Of a kernel with code of its own, its name.
std::string called_operator(const InductorKernel& kernel);

/// Finds the nodes of kernels that neither mappings nor comments tell, by the values that the wrapper hands from call
/// to call: inductor writes no comments at C++ kernels, and no mappings for a backward that is compiled when it first
/// runs. What the graph takes and returns, and what calls of operators take and give, are known nodes; a kernel
/// computes what lies between those that it reads and writes. Kernels where that does not come out even are left as
/// they are. A call of an operator is given its own node where its comments name only the nodes around.
void link_by_flow(std::string_view text, const Graph& post_grad, std::vector<InductorKernel>& kernels);

/// "a", "f(b, c)", "out=d" of "a, f(b, c), out=d)...", up to the bracket that closes them or the end.
std::vector<std::string_view> call_arguments(std::string_view text);

/// The variable that an argument is, or is another view of: "buf0" of "reinterpret_tensor(buf0, (2, 3), (3, 1), 0)".
std::string_view variable_of(std::string_view argument);

/// What is before "args" where a function of the wrapper takes its inputs: "a, b" of "a, b = args"; empty elsewhere.
std::string_view taken_inputs(std::string_view line);

}  // namespace partita

#pragma once
// The routines of libraries on a CPU: oneDNN's and our own.
#include <string>
#include <vector>

#include "codegen/cpu/extern/register_work.h"
#include "codegen/program/extern.h"

namespace partita::codegen {

/// How a kernel does the work on the results that begin with the first element of `out`.
RegisterWork register_work(const ClampedSum& work, const ConcreteView& out, std::byte* const* buffers);

/// Prepares a library routine for the call; the step is null if none takes it. `why_not` says why a library that has
/// the operator does not; empty otherwise.
Prepared prepare_library(const ExternContext& context, std::string& why_not);
/// Prepares a library routine, else the operator record's eval. `why_not` also says why sub graphs are interpreted.
Result<Prepared> prepare_extern(const ExternContext& context, std::string& why_not);

/// The routines of the libraries that prepare_library() knows.
std::vector<LibraryRoutine> library_routines();
/// Is the routine oneDNN's?
bool needs_onednn(LibraryRoutine routine);

/// Prepares one library routine. The step is null if the routine does not cover the case; `why_not` gives the reason.
using PrepareFunction = Prepared (*)(const ExternContext& context, std::string& why_not);
Prepared prepare_matmul(const ExternContext& context, std::string& why_not);  ///< mm, bmm
Prepared prepare_addmm(const ExternContext& context, std::string& why_not);   ///< addmm, baddbmm
Prepared prepare_convolution(const ExternContext& context, std::string& why_not);
Prepared prepare_convolution_backward(const ExternContext& context, std::string& why_not);
/// Flash attention: all scores of a block of queries are in cache, and none in memory. Dropout is left to the
/// operator's evaluation.
Prepared prepare_attention(const ExternContext& context, std::string& why_not);
Prepared prepare_grouped_product(const ExternContext& context, std::string& why_not);
Prepared prepare_attention_backward(const ExternContext& context, std::string& why_not);

}  // namespace partita::codegen

#pragma once
#include <functional>
#include <string>
#include <vector>

#include "core/compare/op_cases.h"
#include "core/load/safetensors.h"
#include "core/load/session.h"

namespace partita {

/// Runs a graph as the verb `run` does: an IO file in, an OUT file out.
using RunFile = std::function<Result<TensorFile>(const Artefact& artefact, const TensorFile& io, bool train)>;

/// Is the file the case.json of an AOTAutograd case (the graph before functionalisation in dynamo.py beside it)?
bool is_aot_case(const std::string& path);

/// Runs a case and compares with eager PyTorch: outputs (values, dtypes, sizes, strides), inputs after the call, who
/// shares memory with whom, and with `train` the gradients. Numbers outside the tolerance may be right by
/// `run_in_double` (judge_by_baseline). Random cases are compared by mean and deviation.
CaseResult check_aot_case(const std::string& json_path, bool train, const RunFile& run, const RunFile& run_in_double);

/// Compares the graphs and the metadata that AOT makes for the case with PyTorch's, which are beside it: a result of
/// kind "aot_metadata" and one of kind "aot_graphs". Empty for a case without them.
std::vector<CaseResult> check_aot_graphs(const std::string& json_path);

}  // namespace partita

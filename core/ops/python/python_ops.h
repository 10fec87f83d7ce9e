#pragma once
// Python-level calls that stay in ATen graphs: getitem on tuples and arithmetic on symbolic sizes.
#include "core/ops/record/record.h"

namespace partita {

/// The meta and the value of such a call, as infer() and evaluate() give those of ATen's. Errors: ops.unknown,
/// ops.arguments.
Result<Meta> infer_python(const Op* op, const Args& args, const Kwargs& kwargs, ShapeEnv& shapes, const Node* node);
Result<Value> evaluate_python(const Op* op, std::vector<Value> args, std::vector<std::pair<std::string, Value>> kwargs,
                              const Node* node);

/// The position that an index, which may count from the end or be a node of a known value, means among n results.
Result<std::size_t> getitem_position(const Arg& index, std::size_t n);

/// Is the number of the node, which has a meta, a bool of Python? Type promotion minds it.
bool gives_bool(const Node& number);

/// Python's own arithmetic, which infer() and evaluate() know on numbers.
bool is_python_arithmetic(std::string_view name);

}  // namespace partita

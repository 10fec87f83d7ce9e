#pragma once
// The parts of resolve(): calls by schema, indexing, Python functions of torch.nn.functional.
#include <span>

#include "core/ops/record/call.h"

namespace partita {

/// Calls aten.NAME as Python's argument parser would: with NumPy's keyword names, sizes as separate ints, `self` under
/// the name `input`, and the keywords that Python's bindings of factory functions add. `of_torch_ops`: as torch.ops
/// would, which takes numbers for dtypes.
Arg call_by_schema(Builder& build, std::string_view base, Args args, Kwargs kwargs, bool of_torch_ops = false);

/// Does Python's parser make tensors of numbers for the operator aten.NAME? As should_allow_numbers_as_tensors in
/// torch/csrc/utils/python_arg_parser.cpp, without lerp, whose overload for a number Python tries first.
bool numbers_are_tensors(std::string_view base);

/// x[index] and x[index] = value; the latter returns x.
Arg get_item(Builder& build, Node* x, const Arg& index);
Arg set_item(Builder& build, Node* x, const Arg& index, const Arg& value);
/// A constant of the graph, lifted, as PyTorch writes it.
Node* constant_tensor(Builder& build, Tensor value);
/// A literal number or a symbolic integer as a 0-dim tensor.
Node* number_as_tensor(Builder& build, const Arg& number, DType dtype);

/// Calls a function that is written in Python (python_functions.def); nullopt when there is none of that name.
std::optional<Arg> call_python_function(Builder& build, std::string_view name, const Args& args, const Kwargs& kwargs);
/// Tensor methods and attributes that are not ATen operators: x.float(), x.to(...), x.size(), x.T.
std::optional<Arg> call_method(Builder& build, std::string_view name, const Args& args, const Kwargs& kwargs);
Arg get_attribute(Builder& build, const Arg& object, std::string_view name);

/// A Python function's parameters, bound.
using NamedArgs = std::vector<std::pair<std::string, Arg>>;
/// Null when there is no parameter of that name.
Arg* lookup(NamedArgs& names, std::string_view key);
Arg& value_of(NamedArgs& names, std::string_view key);
/// The node of a tensor parameter. Fails when it is not a tensor.
Node* node_of(NamedArgs& names, std::string_view key);
void refuse_unless_none(NamedArgs& names, std::string_view function, std::initializer_list<std::string_view> keys);
/// A number for each of `rank` dimensions; None stays None.
Arg repeated(const Arg& arg, std::size_t rank);

/// A function for a row of python_functions.def with an empty expression: what it does cannot be written as one.
struct PythonSpecial {
  std::string_view name;
  Arg (*build)(Builder&, NamedArgs&);
};
std::span<const PythonSpecial> nn_specials();      ///< python_nn.cpp
std::span<const PythonSpecial> linalg_specials();  ///< python_linalg.cpp
std::span<const PythonSpecial> masked_specials();  ///< python_masked.cpp
std::span<const PythonSpecial> window_specials();  ///< python_windows.cpp
/// torch.nn.functional.multi_head_attention_forward (python_attention.cpp): (output, weights or None).
Arg multi_head_attention_forward(Builder& build, NamedArgs& names);

Arg torch_tensor(Builder& build, NamedArgs& names);  ///< torch.tensor (constant_tensor.cpp)
/// The dtype that "torch.LongTensor" and its like are named for; float32 for "torch.Tensor".
std::optional<DType> legacy_dtype(std::string_view name);
/// torch.LongTensor(...) and x.new(...): of a list of numbers, of sizes, or of a tensor, whose memory it shows.
Arg legacy_tensor(Builder& build, DType dtype, const Args& args, const Kwargs& kwargs);

/// Of auto_functionalized and auto_functionalized_v2 (resolve_functionalized.cpp): clones of what is written, the call
/// on them, and the tuple of its results and of the clones. Error ops.unknown: the operator has no schema.
Arg call_auto_functionalized(Builder& build, const Node& node);
bool is_flex_attention(const Op* op);
/// higher_order.flex_attention and flex_attention_backward (flex_attention.cpp): the tuple of its results.
Arg flex_attention(Builder& build, const Node& call);
bool is_associative_scan(const Op* op);
/// higher_order.associative_scan(combine_fn, xs, additional_inputs) (associative_scan.cpp): the list of its results,
/// by a scan of the second and later rows that begins with the first.
Arg associative_scan(Builder& build, const Node& call);

bool is_tensor(const Arg& arg);
/// A literal int or a node that holds a symbolic integer.
bool is_int_like(const Arg& arg);
bool is_ellipsis(const Arg& arg);

}  // namespace partita

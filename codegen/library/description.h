#pragma once
// What a library says of its model: plain data that `partita compile` writes and the runtime reads.
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/result.h"
#include "core/tensor/dtype.h"

namespace partita::codegen {

/// A tensor or number, and what is known of it before a run. Sizes are the text of expressions: "64", "2*s0".
struct LibraryValue {
  enum class Kind : std::uint8_t { Tensor, Number, None };
  std::string name;
  Kind kind = Kind::Tensor;
  DType dtype = DType::Float32;  ///< of a number: int64, float64 or bool
  std::vector<std::string> sizes, strides;
  std::string number;  ///< of a symbolic number: its expression
};

struct LibraryWeight {
  LibraryValue value;
  std::uint64_t offset = 0;  ///< in bytes, among the weights in the library
  bool written = false;      ///< runs change it
};

/// Where the value of a placeholder comes from. Nothing: it is not read, or a number that follows from the sizes.
/// Folded: a result of the constants' graph.
struct LibraryArgument {
  enum class From : std::uint8_t { Input, Weight, Nothing, Folded };
  From from = From::Nothing;
  std::uint64_t index = 0;
  std::string number = {};  ///< of a symbolic number: its expression
};

/// A part of a graph. Graphs are cut at calls whose results' sizes only values decide (schedule::split_at_values),
/// which are parts of their own. The values that parts take are numbered: the graph's inputs, then what each part
/// returns.
struct LibraryPart {
  std::vector<std::uint64_t> inputs;
  std::uint64_t results = 0;
  /// codegen::graph_bytes() of what is interpreted where there is no code, or none for some sizes; empty: nothing is.
  std::string graph;
  std::vector<std::string> numbers;                ///< by input: the expression of a symbolic number, else empty
  std::map<std::string, std::uint64_t> constants;  ///< weights that the part reads as constants, by name
  /// By code of the part: the small sizes that it has as numbers. Others are at least 2; the first has no such size.
  std::vector<std::map<std::string, std::int64_t>> fixed;
};

struct LibraryDescription {
  bool trains = false;
  int threads = 1;
  std::vector<LibraryValue> inputs, outputs, gradients;
  std::vector<LibraryWeight> weights;
  std::string weights_file;                    ///< beside the library; empty: the weights are in it
  std::vector<LibraryArgument> arguments;      ///< by placeholder of the forward
  std::vector<LibraryPart> forward, backward;  ///< in the order in which they run; the last returns the results
  /// What depends on weights only (AotGraphs::constants): a graph that is run when the weights are loaded.
  std::vector<LibraryPart> constants;
  std::vector<std::uint64_t> constant_inputs;  ///< the weights that it takes
  std::uint64_t folded = 0;                    ///< how many results it has

  // The forward returns results, then saved tensors, then saved numbers. The backward takes the saved numbers, the
  // saved tensors, and tangents.
  std::vector<std::pair<std::uint64_t, std::uint64_t>> written;  ///< a result, and the placeholder that becomes it
  std::vector<std::uint64_t> output_result;                      ///< by output: the result
  std::uint64_t results = 0;                                     ///< before the saved values
  std::uint64_t saved = 0, saved_numbers = 0;
  std::vector<std::uint64_t> tangent_of;       ///< by tangent: the result
  std::vector<std::uint64_t> gradient_result;  ///< by gradient: the result of the backward

  struct Range {
    std::int64_t low = 0, high = 0;
  };
  std::map<std::string, Range> symbols;  ///< the values for which the model was made
};

std::string description_bytes(LibraryDescription description);
/// Error library.damaged for other bytes.
Result<LibraryDescription> read_description(std::string_view bytes);

}  // namespace partita::codegen

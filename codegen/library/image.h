#pragma once
// What `partita compile` puts into a library beside its kernels. The library is linked from assembly that lays this out
// (link.cpp) and from the runtime, which reads it.
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/program/extern.h"
#include "core/ir/graph.h"
#include "core/tensor/value.h"

namespace partita::codegen {

struct LibraryBytes {
  const char* data;
  std::uint64_t size;
  std::string_view text() const { return {data, size}; }
};
struct LibraryFunction {
  const char* name;  ///< as the program's kernels name it
  void* address;
};
/// One part of a graph, compiled for one instruction set and for some sizes (LibraryPart::fixed).
struct LibraryPartCode {
  LibraryBytes program;  ///< program_bytes()
  const LibraryFunction* functions;
  std::uint64_t function_count;
};
struct LibraryPartCodes {
  const LibraryPartCode* codes;
  std::uint64_t count;  ///< 0: the part is interpreted
};
struct LibraryGraph {
  const LibraryPartCodes* parts;
  std::uint64_t count;  ///< 0: there is no such graph
};
struct LibraryCode {
  const char* isa;
  LibraryGraph forward, backward, constants;
};
struct LibraryImage {
  LibraryBytes description;  ///< description.h
  LibraryBytes weights;      ///< each at its LibraryWeight::offset; empty: they are in a file
  const LibraryCode* code;   ///< from the least instruction set to the most
  std::uint64_t code_count;
  Result<Prepared> (*prepare)(const ExternContext& context, std::string& why_not);
  /// Interprets a part; null in a library without the operators' evaluations.
  Result<std::vector<Value>> (*interpret)(const Graph& graph, std::vector<Value> inputs, int threads,
                                          const std::shared_ptr<Generator>& generator);
};

}  // namespace partita::codegen

extern "C" __attribute__((visibility("hidden"))) const partita::codegen::LibraryImage partita_image;

#pragma once
// What `partita compile` puts into a library beside its kernels. The library is linked from assembly that lays this out
// (link.cpp) and from the runtime, which reads it.
#include <cstdint>
#include <string_view>

#include "codegen/cpu/extern/extern.h"

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
/// One graph, compiled for one instruction set and for some sizes (LibraryGraphFacts::fixed).
struct LibraryGraph {
  LibraryBytes program;  ///< program_bytes()
  const LibraryFunction* functions;
  std::uint64_t function_count;
};
struct LibraryGraphs {
  const LibraryGraph* graphs;
  std::uint64_t count;  ///< 0: there is no such graph
};
struct LibraryCode {
  const char* isa;
  LibraryGraphs forward, backward, constants;
};
struct LibraryImage {
  LibraryBytes description;  ///< description.h
  LibraryBytes weights;      ///< each at its LibraryWeight::offset; empty: they are in a file
  const LibraryCode* code;   ///< from the least instruction set to the most
  std::uint64_t code_count;
  Result<Prepared> (*prepare)(const ExternContext& context, std::string& why_not);
};

}  // namespace partita::codegen

extern "C" __attribute__((visibility("hidden"))) const partita::codegen::LibraryImage partita_image;

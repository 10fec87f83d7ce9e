#pragma once
// What `partita compile` has made of a library so far.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/cpu/cpu_target.h"
#include "codegen/library/description.h"
#include "codegen/library/library.h"
#include "codegen/library/link_library.h"
#include "core/tensor/tensor.h"

namespace partita::codegen {

struct LibraryDraft {
  const LibraryOptions& options;
  const std::string folder;  ///< for files that are linked
  LibraryDescription description = {};
  LibraryReport report = {};
  std::vector<Tensor> weights = {};       ///< by LibraryDescription::weights
  std::vector<InstructionSet> sets = {};  ///< to make code for
  std::vector<LinkCode> code = {};        ///< one for each
  std::vector<std::string> objects = {};

  std::string file(std::string_view name) const { return folder + "/" + std::string(name); }
  /// The number of a weight; equal views of one memory are one weight.
  std::uint64_t weight(const std::string& name, const Tensor& tensor);
  /// Notes that runs write the forward's placeholder.
  void note_written(std::size_t placeholder);
};

}  // namespace partita::codegen

#pragma once
// Constants of a graph in an entry of a cache. What the given graph has too is kept by its name there, since the key
// holds its values; what compiling made is kept with its values.
#include <map>
#include <optional>
#include <string>

#include "core/base/archive.h"
#include "core/ir/archive_meta.h"
#include "core/tensor/tensor.h"

namespace partita {

struct StoredConstants {
  struct Made {
    DType dtype = DType::Float32;
    Sizes sizes, strides;
    std::string bytes;  ///< of all that sizes and strides reach
  };
  std::map<std::string, std::string> given;  ///< name in the given graph
  std::map<std::string, Made> made;
};
void fields(auto& a, StoredConstants::Made& m) {
  a(m.dtype, m.sizes, m.strides, m.bytes);
}
void fields(auto& a, StoredConstants& c) {
  a(c.given, c.made);
}

/// Error cache.constants when those that compiling made are too large to be kept.
Result<StoredConstants> store_constants(const std::map<std::string, Tensor>& needed,
                                        const std::map<std::string, Tensor>& given);
/// Nullopt when the entry is damaged.
std::optional<std::map<std::string, Tensor>> constants_of(const StoredConstants& stored,
                                                          const std::map<std::string, Tensor>& given);

}  // namespace partita

#pragma once
#include <map>
#include <string>

#include "core/base/result.h"
#include "core/tensor/tensor.h"

namespace partita {

/// "Lies in the memory of `key`, `offset` elements in."
struct SharedMemory {
  std::string key;
  std::int64_t offset = 0;
  bool operator==(const SharedMemory&) const = default;
};

/// A safetensors file with the conventions of Partita's IO and OUT files in `__metadata__`: strides, complex,
/// requires_grad, storages, alias. Strides, complex dtypes and requires_grad are the tensors' own fields here.
struct TensorFile {
  std::map<std::string, Tensor> tensors;
  /// Tensors that are views of a `storage.K` tensor; after reading they share its Storage.
  std::map<std::string, SharedMemory> storages;
  /// In OUT: outputs that alias an input or another output.
  std::map<std::string, SharedMemory> aliases;
  /// Entries of `__metadata__` that are none of ours.
  std::map<std::string, std::string> metadata;

  const Tensor* find(const std::string& key) const {
    auto it = tensors.find(key);
    return it == tensors.end() ? nullptr : &it->second;
  }
};

/// Every tensor owns aligned memory, except those in `storages`. Errors load.safetensors.*.
Result<TensorFile> read_safetensors(const std::string& path);
Status write_safetensors(const std::string& path, const TensorFile& file);

/// Complex values over a contiguous real tensor whose last dimension of 2 holds (re, im): how files store them.
Result<Tensor> view_as_complex(const Tensor& real);

}  // namespace partita

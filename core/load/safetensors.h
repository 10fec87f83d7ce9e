#pragma once
#include <map>
#include <string>

#include "core/base/result.h"
#include "core/tensor/tensor.h"

namespace partita {

/// The tensor lies in the memory of `key`, at an offset of `offset` elements.
struct SharedMemory {
  std::string key;
  std::int64_t offset = 0;
  bool operator==(const SharedMemory&) const = default;
};

/// A safetensors file with the conventions of Partita's IO and OUT files in `__metadata__`: strides, complex,
/// requires_grad, storages, alias, and dtypes, the torch names of dtypes that are stored as bits. Strides, dtypes and
/// requires_grad are the tensors' own fields here.
struct TensorFile {
  std::map<std::string, Tensor> tensors;
  /// Tensors that are views of a `storage.K` tensor, whose Storage they share after reading.
  std::map<std::string, SharedMemory> storages;
  /// In an OUT file: outputs that alias an input or another output.
  std::map<std::string, SharedMemory> aliases;
  /// Tensors that were not read, since their dtypes are unknown here, with the names of those.
  std::map<std::string, std::string> unread;
  /// Of a recording: values that were not kept, and results that no other run repeats, with the reason.
  std::map<std::string, std::string> left_out;
  /// Other entries of `__metadata__`.
  std::map<std::string, std::string> metadata;

  const Tensor* find(const std::string& key) const {
    auto it = tensors.find(key);
    return it == tensors.end() ? nullptr : &it->second;
  }
};

/// Reads a file. Every tensor owns aligned memory, except those in `storages`. Errors load.safetensors.*.
Result<TensorFile> read_safetensors(const std::string& path);
/// Reads a file of values, which may be of a recording (codegen/python/partita/record/values.py): values that lie in
/// another file of its folder are read from there, and left_out is filled. Errors load.safetensors.*; load.recording.
Result<TensorFile> read_recorded_values(const std::string& path);
Status write_safetensors(const std::string& path, const TensorFile& file);

/// Views a contiguous real tensor with a last dimension of 2 as complex (re, im), the form in which files store complex
/// values.
Result<Tensor> view_as_complex(const Tensor& real);

}  // namespace partita

#pragma once
#include <string>
#include <utility>
#include <vector>

#include "core/tensor/tensor.h"

namespace partita {

/// Writes what torch.save writes: a state_dict when `names` are given (an OrderedDict), else a list of tensors. Every
/// tensor gets a storage of its own. torch.load reads it, with weights_only too. Errors file.write and, for dtypes that
/// torch.save has no storage type for, load.torch_save.dtype.
Status save_state_dict(const std::string& path, const std::vector<std::pair<std::string, Tensor>>& tensors);
Status save_tensor_list(const std::string& path, const std::vector<Tensor>& tensors);

}  // namespace partita

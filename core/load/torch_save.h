#pragma once
#include <string>
#include <utility>
#include <vector>

#include "core/tensor/tensor.h"

namespace partita {

/// Writes a torch.save file: named tensors as an OrderedDict (a state_dict), or a list of tensors. Every tensor gets a
/// storage of its own. torch.load reads it, also with weights_only. Errors: file.write; load.torch_save.dtype for
/// dtypes without a torch.save storage type.
Status save_state_dict(const std::string& path, const std::vector<std::pair<std::string, Tensor>>& tensors);
Status save_tensor_list(const std::string& path, const std::vector<Tensor>& tensors);

}  // namespace partita

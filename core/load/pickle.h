#pragma once
// Reads Python pickles without Python. A fixed list of globals is admitted, and no code of the pickle ever runs.
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/base/result.h"
#include "core/ir/meta.h"
#include "core/tensor/tensor.h"
#include "core/tensor/value.h"

namespace partita {

struct PickleValue;
using PickleItems = std::vector<const PickleValue*>;

struct PickleList {
  enum Kind : unsigned char { List, Tuple, Set } kind = List;
  PickleItems items;
};
struct PickleDict {
  std::vector<std::pair<const PickleValue*, const PickleValue*>> items;
};
/// A class or function that the pickle only names: torch.Tensor, torch.FloatStorage.
struct PickleGlobal {
  std::string name;
};

/// One object of a pickle. Objects may be shared; their addresses identify them.
struct PickleValue {
  std::variant<std::monostate, bool, std::int64_t, double, std::complex<double>, std::string, PickleList, PickleDict,
               PickleGlobal, Tensor, DType, Device, Layout, MemoryFormat>
      v;

  template <class T>
  const T* get() const {
    return std::get_if<T>(&v);
  }
  bool is_none() const { return v.index() == 0; }
};

/// A pickle that was read. It owns all its objects, including cycles.
struct Pickle {
  std::vector<std::unique_ptr<PickleValue>> objects;
  const PickleValue* root = nullptr;
};

/// The storage type that torch.save names for a dtype, "FloatStorage"; empty for dtypes without one.
std::string_view torch_storage_name(DType t);

/// Returns the bytes of a storage, by its key in torch.save's format.
using StorageSource = std::function<Result<std::shared_ptr<Storage>>(const std::string& key)>;

/// Errors load.pickle: the pickle is damaged or too large, or a global is not admitted (the message names it). A pickle
/// with tensors needs `storages`.
Result<Pickle> read_pickle(std::string_view bytes, const StorageSource& storages = nullptr);

/// Reads a torch.save file: a zip archive with a pickle and its tensors.
Result<Pickle> read_torch_save(std::string_view bytes, std::shared_ptr<const void> owner);

/// Converts to a run-time value. A dict becomes the list of its values. Error when nesting or size exceeds a limit.
Result<Value> to_value(const PickleValue& value);
/// The leaves of nested lists, tuples and dicts, in pytree order.
Result<std::vector<Value>> pytree_leaves(const PickleValue& value);
/// Reads a graph_dumper `.input`, a flat list of (type, shape, stride, dtype, device), as metas.
Result<std::vector<Meta>> read_dumped_inputs(std::string_view bytes);
/// Writes a `.input`, as torch._functorch's debugging tools read it. A number becomes (int,); its value is lost.
Result<std::string> write_dumped_inputs(const std::vector<Meta>& inputs);
/// A text for people with one line per value: "[0]: tensor f32[8, 32]".
std::string describe(const Pickle& pickle);

/// Writes a torch.save file: named tensors as an OrderedDict (a state_dict), or a list of tensors. Every tensor gets a
/// storage of its own. torch.load reads it, also with weights_only. Errors: file.write; load.torch_save.dtype for
/// dtypes without a torch.save storage type.
Status save_state_dict(const std::string& path, const std::vector<std::pair<std::string, Tensor>>& tensors);
Status save_tensor_list(const std::string& path, const std::vector<Tensor>& tensors);

}  // namespace partita

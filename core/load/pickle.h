#pragma once
// Python pickles, read without Python: a fixed list of globals is admitted, nothing is ever called.
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/base/result.h"
#include "core/ir/meta.h"
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
/// A class or function that is only named: torch.Tensor, torch.FloatStorage.
struct PickleGlobal {
  std::string name;
};

/// One object of a pickle. Objects may be shared; addresses identify them.
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

/// A read pickle: owns all its objects, cycles included.
struct Pickle {
  std::vector<std::unique_ptr<PickleValue>> objects;
  const PickleValue* root = nullptr;
};

/// Gives the bytes behind a storage key of torch.save.
using StorageSource = std::function<Result<std::shared_ptr<Storage>>(const std::string& key)>;

/// Errors load.pickle: damaged, too large, or a global that is not admitted (named in the message). Tensors need
/// `storages`.
Result<Pickle> read_pickle(std::string_view bytes, const StorageSource& storages = nullptr);

/// A torch.save file: the pickle of the zip archive with its tensors.
Result<Pickle> read_torch_save(std::string_view bytes, std::shared_ptr<const void> owner);

/// As a run-time value; dicts become their values in order. Error when it is nested deeper or larger than sane.
Result<Value> to_value(const PickleValue& value);
/// The leaves of nested lists, tuples and dicts, in pytree order.
Result<std::vector<Value>> pytree_leaves(const PickleValue& value);
/// A graph_dumper `.input`: the flat list of (type, shape, stride, dtype, device) as metas.
Result<std::vector<Meta>> read_dumped_inputs(std::string_view bytes);
/// The same, written: what torch._functorch's debugging tools read back. A number is (int,): its value is not kept.
Result<std::string> write_dumped_inputs(const std::vector<Meta>& inputs);
/// One line a value, for people: "[0]: tensor f32[8, 32]".
std::string describe(const Pickle& pickle);

}  // namespace partita

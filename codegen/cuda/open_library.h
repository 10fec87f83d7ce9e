#pragma once
// Libraries of NVIDIA's, which are opened at run time and whose functions are found by name.
#include <initializer_list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dlfcn.h>

#include "codegen/cuda/compile_cuda.h"
#include "codegen/cuda/driver.h"
#include "core/base/result.h"

namespace partita::codegen {

/// The functions of an opened library, by their names: `int (*create)(void** handle) = library.find("cudnnCreate");`
class LibraryFunctions {
 public:
  /// An address as a pointer to any kind of function.
  struct Function {
    void* at;
    template <class R, class... Arguments>
    using Pointer = R (*)(Arguments...);
    template <class R, class... Arguments>
    operator Pointer<R, Arguments...>() const {
      return reinterpret_cast<R (*)(Arguments...)>(at);
    }
  };

  explicit LibraryFunctions(void* library) : library_(library) {}
  Function find(const std::string& name) {
    void* const at = ::dlsym(library_, name.c_str());
    if (!at) missing_ = name;
    return {at};
  }
  const std::string& missing() const { return missing_; }  ///< the last that was not found; empty: all were

 private:
  void* library_;
  std::string missing_;
};

/// The library at the first of cuda_library_paths() that has all functions that `Api::library` was asked for. It stays
/// open. Null: there is none. `Api::path` says where it is.
template <class Api>
const Api* open_cuda_library(const std::string& name, std::initializer_list<std::string_view> versions) {
  static std::mutex mutex;
  static std::map<std::string, std::unique_ptr<Api>> opened;  // null: no such library
  const std::lock_guard lock(mutex);
  for (const std::string& path : cuda_library_paths(name, versions)) {
    const auto [entry, fresh] = opened.try_emplace(path);
    if (fresh)
      if (void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {
        auto api = std::make_unique<Api>(LibraryFunctions(library));
        api->path = path;
        if (api->library.missing().empty()) entry->second = std::move(api);
      }
    if (entry->second) return entry->second.get();
  }
  return nullptr;
}

/// What the calls of a device share of a library, while there are any, or as long as a device that stays open. Errors
/// are those of `Handle::make`.
template <class Handle, class Api>
Result<std::shared_ptr<Handle>> handle_of(const std::shared_ptr<CudaDevice>& device, const Api& api) {
  static std::mutex mutex;
  static std::map<std::pair<const CudaDevice*, const Api*>, std::weak_ptr<Handle>> handles;
  const std::lock_guard lock(mutex);
  std::weak_ptr<Handle>& known = handles[{device.get(), &api}];
  if (auto handle = known.lock()) return handle;
  TRY(std::shared_ptr<Handle> made, Handle::make(device, api));
  known = made;
  static auto* const kept = new std::vector<std::shared_ptr<Handle>>;  // never destroyed: the driver may end before
  if (device->stays_open()) kept->push_back(made);
  return made;
}

}  // namespace partita::codegen

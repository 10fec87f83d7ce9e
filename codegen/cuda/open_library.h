#pragma once
// Libraries of NVIDIA's, which are opened at run time and whose functions are found by name.
#include <initializer_list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <dlfcn.h>

#include "codegen/cuda/compile.h"
#include "codegen/cuda/driver.h"
#include "core/base/result.h"

namespace partita::codegen {

class LibraryFunctions {
 public:
  explicit LibraryFunctions(void* library) : library_(library) {}
  template <class F>
  void find(const char* name, F& function) {
    function = reinterpret_cast<std::remove_reference_t<F>>(::dlsym(library_, name));
    whole_ = whole_ && function;
  }
  bool whole() const { return whole_; }  ///< were all found?

 private:
  void* library_;
  bool whole_ = true;
};

/// The library at the first of cuda_library_paths() that has all functions that `Api::find_in` asks for. It stays open.
/// Null: there is none. `Api::path` says where it is.
template <class Api>
const Api* open_cuda_library(const std::string& name, std::initializer_list<std::string_view> versions) {
  static std::mutex mutex;
  static std::map<std::string, std::unique_ptr<Api>> opened;  // null: no such library
  const std::lock_guard lock(mutex);
  for (const std::string& path : cuda_library_paths(name, versions)) {
    const auto [entry, fresh] = opened.try_emplace(path);
    if (fresh)
      if (void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {
        LibraryFunctions functions(library);
        auto api = std::make_unique<Api>();
        api->path = path;
        api->find_in(functions);
        if (functions.whole()) entry->second = std::move(api);
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

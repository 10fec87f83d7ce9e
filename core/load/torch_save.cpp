#include "core/load/torch_save.h"

#include <memory>

#include <fmt/format.h>
#include <zip.h>

#include "core/load/pickle.h"
#include "core/load/pickle_writer.h"

namespace partita {
namespace {

void ordered_dict(PickleWriter& to) {
  to.global("collections", "OrderedDict");
  to.raw(")R");
}

void write_tensor(PickleWriter& to, const Tensor& t, std::size_t key, std::int64_t elements) {
  to.global("torch._utils", "_rebuild_tensor_v2");
  to.raw("((");
  to.string("storage");
  to.global("torch", torch_storage_name(t.dtype));
  to.string(std::to_string(key));
  to.string("cpu");
  to.number(elements);
  to.raw("tQ");
  to.number(0);
  to.numbers(t.sizes);
  to.numbers(t.strides);
  to.raw("\x89");
  ordered_dict(to);
  to.raw("tR");
}

struct Entry {
  std::string name, bytes;
};

struct DiscardZip {
  void operator()(zip_t* z) const { zip_discard(z); }
};

Status write_archive(const std::string& path, const std::vector<Entry>& entries) {
  const auto failed = [&](const std::string& why) {
    return input_error("file.write", fmt::format("cannot be written ({}); give a folder that can", why),
                       Where{.file = path});
  };
  int code = 0;
  std::unique_ptr<zip_t, DiscardZip> archive(zip_open(path.c_str(), ZIP_CREATE | ZIP_TRUNCATE, &code));
  if (!archive) {
    zip_error_t error;
    zip_error_init_with_code(&error, code);
    const std::string why = zip_error_strerror(&error);
    zip_error_fini(&error);
    return failed(why);
  }
  for (const Entry& e : entries) {
    zip_source_t* source = zip_source_buffer(archive.get(), e.bytes.data(), e.bytes.size(), 0);
    if (!source) return failed(zip_strerror(archive.get()));
    const zip_int64_t index = zip_file_add(archive.get(), ("archive/" + e.name).c_str(), source, ZIP_FL_ENC_UTF_8);
    if (index < 0) {
      zip_source_free(source);
      return failed(zip_strerror(archive.get()));
    }
    zip_set_file_compression(archive.get(), static_cast<zip_uint64_t>(index), ZIP_CM_STORE, 0);
  }
  if (zip_close(archive.get()) != 0) return failed(zip_strerror(archive.get()));
  (void)archive.release();  // zip_close freed it
  return {};
}

/// Copies the tensor to a storage of its own, with the same strides.
Result<Tensor> with_own_storage(const Tensor& t) {
  if (torch_storage_name(t.dtype).empty())
    return unsupported("load.torch_save.dtype", fmt::format("torch.save of {} is not supported", torch_name(t.dtype)));
  TRY(Tensor own, Tensor::empty_strided(t.dtype, t.sizes, t.strides));
  own.copy_from(t);
  return own;
}

Status save(const std::string& path, const std::vector<std::string>* names, const std::vector<Tensor>& tensors) {
  PickleWriter pickle;
  std::vector<Entry> entries{{"data.pkl", {}}, {"byteorder", "little"}};
  if (names)
    ordered_dict(pickle);
  else
    pickle.raw("]");
  pickle.raw("(");
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    TRY(const Tensor own, with_own_storage(tensors[i]));
    TRY(const std::int64_t elements, reach(own.sizes, own.strides));
    if (names) pickle.string((*names)[i]);
    write_tensor(pickle, own, i, elements);
    const auto bytes = static_cast<std::size_t>(elements) * itemsize(own.dtype);
    entries.push_back({fmt::format("data/{}", i), std::string(reinterpret_cast<const char*>(own.data()), bytes)});
  }
  pickle.raw(names ? "u" : "e");
  entries[0].bytes = pickle.finish();
  entries.push_back({"version", "3\n"});
  return write_archive(path, entries);
}

}  // namespace

Status save_state_dict(const std::string& path, const std::vector<std::pair<std::string, Tensor>>& tensors) {
  std::vector<std::string> names;
  std::vector<Tensor> values;
  for (const auto& [name, tensor] : tensors) {
    names.push_back(name);
    values.push_back(tensor);
  }
  return save(path, &names, values);
}

Status save_tensor_list(const std::string& path, const std::vector<Tensor>& tensors) {
  return save(path, nullptr, tensors);
}

}  // namespace partita

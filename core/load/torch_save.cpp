#include <memory>

#include <fmt/format.h>
#include <zip.h>

#include "core/base/output.h"
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

/// The bytes of a zip archive with these entries; an empty string where libzip has no memory for it.
std::string archive_bytes(const std::vector<Entry>& entries) {
  const std::unique_ptr<zip_source_t, void (*)(zip_source_t*)> made(zip_source_buffer_create(nullptr, 0, 0, nullptr),
                                                                    zip_source_free);
  if (!made) return {};
  std::unique_ptr<zip_t, void (*)(zip_t*)> archive(zip_open_from_source(made.get(), ZIP_TRUNCATE, nullptr),
                                                   zip_discard);
  if (!archive) return {};
  zip_source_keep(made.get());  // the archive has a reference of its own
  for (const Entry& e : entries) {
    zip_source_t* source = zip_source_buffer(archive.get(), e.bytes.data(), e.bytes.size(), 0);
    if (!source) return {};
    const zip_int64_t index = zip_file_add(archive.get(), ("archive/" + e.name).c_str(), source, ZIP_FL_ENC_UTF_8);
    if (index < 0) {
      zip_source_free(source);
      return {};
    }
    zip_set_file_compression(archive.get(), static_cast<zip_uint64_t>(index), ZIP_CM_STORE, 0);
  }
  if (zip_close(archive.get()) != 0) return {};
  (void)archive.release();  // zip_close freed it
  zip_stat_t status;
  if (zip_source_stat(made.get(), &status) != 0 || zip_source_open(made.get()) != 0) return {};
  std::string bytes(status.size, '\0');
  const zip_int64_t read = zip_source_read(made.get(), bytes.data(), bytes.size());
  zip_source_close(made.get());
  return read == static_cast<zip_int64_t>(bytes.size()) ? bytes : std::string();
}

Status write_archive(const std::string& path, const std::vector<Entry>& entries) {
  const std::string bytes = archive_bytes(entries);
  if (bytes.empty()) return input_error("file.write", "the archive does not fit into memory", {.file = path});
  return write_file(path, bytes);
}

/// Copies the tensor to a storage of its own, with the same strides.
Result<Tensor> with_own_storage(const Tensor& t) {
  if (torch_storage_name(t.dtype).empty())
    return unsupported("load.torch_save.dtype", fmt::format("torch.save of {} is not supported", torch_name(t.dtype)));
  TRY(Tensor own, Tensor::empty_strided(t.dtype, t.sizes, t.strides));
  own.copy_from(t);
  return own;
}

Status save(const std::string& path, bool names, const std::vector<std::pair<std::string, Tensor>>& tensors) {
  PickleWriter pickle;
  std::vector<Entry> entries{{"data.pkl", {}}, {"byteorder", "little"}};
  if (names)
    ordered_dict(pickle);
  else
    pickle.raw("]");
  pickle.raw("(");
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    TRY(const Tensor own, with_own_storage(tensors[i].second));
    TRY(const std::int64_t elements, reach(own.sizes, own.strides));
    if (names) pickle.string(tensors[i].first);
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
  return save(path, true, tensors);
}

Status save_tensor_list(const std::string& path, const std::vector<Tensor>& tensors) {
  std::vector<std::pair<std::string, Tensor>> without_names;
  for (const Tensor& t : tensors) without_names.emplace_back("", t);
  return save(path, false, without_names);
}

}  // namespace partita

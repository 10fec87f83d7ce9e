// What pickles are converted to: values, the leaves of a pytree, dumped inputs. Also writes dumped inputs.
#include <fmt/format.h>

#include "core/base/assign.h"
#include "core/ir/extent.h"
#include "core/load/pickle.h"
#include "core/load/pickle_writer.h"
#include "core/load/zip.h"

namespace partita {
namespace {

constexpr int max_depth = 200;
constexpr std::size_t max_visited = 1'000'000;  ///< a small pickle with shared objects can be a huge tree

Diagnostic too_large() {
  return input_error("load.pickle", "a pickle whose values are nested too deeply or shared too often");
}

/// The value of a leaf; nullopt for containers.
std::optional<Value> leaf(const PickleValue& value) {
  return std::visit(
      [](const auto& v) -> std::optional<Value> {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, PickleList> || std::is_same_v<T, PickleDict>)
          return std::nullopt;
        else if constexpr (std::is_same_v<T, std::monostate>)
          return Value();
        else if constexpr (std::is_same_v<T, PickleGlobal>)
          return Value(v.name);
        else
          return Value(v);
      },
      value.v);
}

PickleItems children(const PickleValue& value) {
  if (auto* list = value.get<PickleList>()) return list->items;
  PickleItems out;
  if (auto* dict = value.get<PickleDict>())
    for (const auto& [key, item] : dict->items) out.push_back(item);
  return out;
}

Result<Value> convert(const PickleValue& value, int depth, std::size_t& visited) {
  if (depth > max_depth || ++visited > max_visited) return too_large();
  if (auto v = leaf(value)) return *std::move(v);
  ValueList out;
  for (const PickleValue* item : children(value))
    TRY_DO(assign(out.emplace_back(), convert(*item, depth + 1, visited)));
  return Value(std::move(out));
}

Status flatten(const PickleValue& value, int depth, std::size_t& visited, std::vector<Value>& out) {
  if (depth > max_depth || ++visited > max_visited) return too_large();
  if (auto v = leaf(value)) {
    // None is a pytree node without leaves.
    if (!v->is_none()) out.push_back(*std::move(v));
    return {};
  }
  for (const PickleValue* item : children(value)) TRY_DO(flatten(*item, depth + 1, visited, out));
  return {};
}

std::string describe_value(const PickleValue& value) {
  if (auto* t = value.get<Tensor>())
    return fmt::format("tensor {}[{}]", short_name(t->dtype), fmt::join(t->sizes, ", "));
  if (auto* s = value.get<std::string>()) return fmt::format("'{}'", s->substr(0, 100));
  if (auto* i = value.get<std::int64_t>()) return fmt::format("{}", *i);
  if (auto* d = value.get<double>()) return fmt::format("{}", *d);
  if (auto* b = value.get<bool>()) return *b ? "True" : "False";
  if (auto* g = value.get<PickleGlobal>()) return g->name;
  if (auto* t = value.get<DType>()) return fmt::format("torch.{}", torch_name(*t));
  if (auto* d = value.get<Device>()) return d->str();
  if (auto* c = value.get<std::complex<double>>()) return fmt::format("({}+{}j)", c->real(), c->imag());
  if (value.get<Layout>() || value.get<MemoryFormat>()) return "layout";
  return "None";
}

void describe(const PickleValue& value, const std::string& path, int depth, std::size_t& lines, std::string& out) {
  if (depth > 20 || ++lines > 10'000) return;
  if (auto* list = value.get<PickleList>()) {
    for (std::size_t i = 0; i < list->items.size(); ++i)
      describe(*list->items[i], fmt::format("{}[{}]", path, i), depth + 1, lines, out);
  } else if (auto* dict = value.get<PickleDict>()) {
    for (const auto& [key, item] : dict->items)
      describe(*item, fmt::format("{}[{}]", path, describe_value(*key)), depth + 1, lines, out);
  } else {
    out += fmt::format("{}: {}\n", path.empty() ? "value" : path, describe_value(value));
  }
}

Result<SymList> integers(const PickleValue& value) {
  auto* list = value.get<PickleList>();
  SymList out;
  if (list)
    for (const PickleValue* item : list->items)
      if (auto* n = item->get<std::int64_t>()) out.push_back(*n);
  if (!list || out.size() != list->items.size())
    return input_error("load.pickle", "sizes and strides must be tuples of integers");
  return out;
}

/// Reads (torch.Tensor, shape, stride, dtype, device), or a number.
Result<Meta> dumped_input(const PickleValue& value) {
  if (auto* i = value.get<std::int64_t>()) return Meta(SymExpr(*i));
  auto* entry = value.get<PickleList>();
  if (!entry) return Meta();
  if (entry->items.size() < 5) {
    // (int, value) is a symbolic size and its example value.
    if (entry->items.size() == 2)
      if (auto* i = entry->items[1]->get<std::int64_t>()) return Meta(SymExpr(*i));
    return Meta();
  }
  TensorMeta t;
  TRY(t.sizes, integers(*entry->items[1]));
  TRY(t.strides, integers(*entry->items[2]));
  auto* dtype = entry->items[3]->get<DType>();
  auto* device = entry->items[4]->get<Device>();
  if (!dtype || !device || t.sizes.size() != t.strides.size())
    return input_error("load.pickle", "an input is not a tuple (type, shape, stride, dtype, device)");
  t.dtype = *dtype;
  t.device = *device;
  TRY_DO(check_extent(t));
  return Meta(std::move(t));
}

}  // namespace

Result<Value> to_value(const PickleValue& value) {
  std::size_t visited = 0;
  return convert(value, 0, visited);
}

Result<std::vector<Value>> pytree_leaves(const PickleValue& value) {
  std::vector<Value> out;
  std::size_t visited = 0;
  TRY_DO(flatten(value, 0, visited, out));
  return out;
}

std::string describe(const Pickle& pickle) {
  std::string out;
  std::size_t lines = 0;
  if (pickle.root) describe(*pickle.root, "", 0, lines, out);
  return out.empty() ? "empty\n" : out;
}

Result<Pickle> read_torch_save(std::string_view bytes, std::shared_ptr<const void> owner) {
  TRY(ZipArchive zip, ZipArchive::open(bytes, std::move(owner)));
  std::string root = zip.root();
  std::string prefix = root.empty() ? "" : root + "/";
  if (!zip.has(prefix + "data.pkl"))
    return input_error("load.torch_save", "an archive without data.pkl; torch.save writes one");
  if (zip.has(prefix + "byteorder")) {
    TRY(std::string order, zip.read(prefix + "byteorder"));
    if (order != "little") return unsupported("load.torch_save", "a torch.save file of a big-endian machine");
  }
  TRY(std::string pickle, zip.read(prefix + "data.pkl"));
  return read_pickle(pickle, [&](const std::string& key) { return zip.read_storage(prefix + "data/" + key); });
}

Result<std::vector<Meta>> read_dumped_inputs(std::string_view bytes) {
  TRY(Pickle pickle, read_pickle(bytes));
  auto* list = pickle.root->get<PickleList>();
  if (!list) return input_error("load.pickle", "dumped inputs must be a list");
  std::vector<Meta> out;
  for (const PickleValue* item : list->items) TRY_DO(assign(out.emplace_back(), dumped_input(*item)));
  return out;
}

Result<std::string> write_dumped_inputs(const std::vector<Meta>& inputs) {
  PickleWriter w;
  w.raw("](");
  for (const Meta& meta : inputs) {
    if (const SymExpr* e = meta.sym(); e && e->is_int()) {
      w.raw("(");
      w.global("builtins", "int");
      w.raw("t");
      continue;
    }
    const TensorMeta* t = meta.tensor();
    auto sizes = t ? concrete(t->sizes) : std::nullopt;
    auto strides = t ? concrete(t->strides) : std::nullopt;
    if (!sizes || !strides)
      return unsupported("load.pickle", "an input without plain sizes cannot be written as .input");
    w.raw("(");
    w.global("torch", "Tensor");
    w.global("torch", "Size");
    w.numbers(*sizes);
    w.raw("\x85R");
    w.numbers(*strides);
    w.global("torch", torch_name(t->dtype));
    w.global("torch", "device");
    w.string(t->device.str());
    w.raw("\x85Rt");
  }
  w.raw("e");
  return w.finish();
}

}  // namespace partita

// The pickle machine: a stack, a memo, opcodes, and a table of the globals that are admitted. Tensors are made over
// storages by their keys. What is made of objects afterwards is in pickle_values.cpp.
#include "core/load/pickle.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <unordered_map>

#include <fmt/format.h>

#include "core/base/assign.h"
#include "core/base/python_text.h"

namespace partita {
namespace {

constexpr std::size_t max_objects = 4'000'000;
constexpr std::size_t max_copied = 20'000'000;  ///< limit of list entries that calls copy: a few bytes can ask for a
                                                ///< million
constexpr std::size_t max_strides = 64;

Diagnostic bad_pickle(std::string message) {
  return input_error("load.pickle", "not a readable pickle: " + message);
}

/// The opcodes that are read, by the names of CPython's pickletools.
enum class Opcode : unsigned char {
  Proto = 0x80,
  Frame = 0x95,
  Mark = '(',
  Pop = '0',
  PopMark = '1',
  Dup = '2',
  None = 'N',
  NewTrue = 0x88,
  NewFalse = 0x89,
  BinInt = 'J',
  BinInt1 = 'K',
  BinInt2 = 'M',
  Long1 = 0x8a,
  BinFloat = 'G',
  ShortBinString = 'U',
  ShortBinBytes = 'C',
  ShortBinUnicode = 0x8c,
  BinString = 'T',
  BinBytes = 'B',
  BinUnicode = 'X',
  BinUnicode8 = 0x8d,
  BinBytes8 = 0x8e,
  EmptyList = ']',
  EmptyTuple = ')',
  EmptyDict = '}',
  EmptySet = 0x8f,
  Tuple1 = 0x85,
  Tuple2 = 0x86,
  Tuple3 = 0x87,
  Tuple = 't',
  List = 'l',
  FrozenSet = 0x91,
  Dict = 'd',
  Append = 'a',
  Appends = 'e',
  AddItems = 0x90,
  SetItem = 's',
  SetItems = 'u',
  BinGet = 'h',
  LongBinGet = 'j',
  BinPut = 'q',
  LongBinPut = 'r',
  Memoize = 0x94,
  Global = 'c',
  StackGlobal = 0x93,
  Reduce = 'R',
  NewObj = 0x81,
  Build = 'b',
  BinPersId = 'Q',
};

/// What a global does when it is called (REDUCE), or what it denotes when it is not.
enum class Callable : unsigned char {
  None,
  Dict,
  Size,
  RebuildTensor,
  RebuildTensorOfDtype,
  RebuildSubclass,
  RebuildParameter,
  Unread,
  Device,
  Complex,
  Set,
  DType,
  MemoryFormat,
  Layout
};

struct GlobalRow {
  std::string_view name;
  Callable call;
};
/// Admitted globals that stand for nothing when they are called: Callable::None.
constexpr std::string_view plain_globals[] = {"torch.Tensor",
                                              "torch.SymInt",
                                              "torch.nn.parameter.Parameter",
                                              "torch.nn.parameter.Buffer",
                                              "torch._subclasses.fake_tensor.FakeTensor",
                                              "torch._utils._rebuild_wrapper_subclass",
                                              "torch.per_tensor_affine",
                                              "torch.per_channel_affine",
                                              "torch.per_channel_affine_float_qparams",
                                              "builtins.int",
                                              "builtins.float",
                                              "builtins.bool",
                                              "builtins.str",
                                              "builtins.NoneType"};
/// All other admitted globals besides torch dtypes and storage types. Every other global is refused by name.
constexpr GlobalRow globals[] = {
    {"collections.OrderedDict", Callable::Dict},
    {"torch.Size", Callable::Size},
    {"torch.device", Callable::Device},
    {"torch._utils._rebuild_tensor_v2", Callable::RebuildTensor},
    {"torch._utils._rebuild_tensor_v3", Callable::RebuildTensorOfDtype},
    {"torch._utils._rebuild_parameter", Callable::RebuildParameter},
    {"torch._tensor._rebuild_from_type_v2", Callable::RebuildSubclass},
    {"torch._utils._rebuild_qtensor", Callable::Unread},
    {"torch.serialization._get_layout", Callable::Layout},
    {"torch._prims_common._get_layout", Callable::Layout},
    {"builtins.complex", Callable::Complex},
    {"builtins.set", Callable::Set},
    {"builtins.frozenset", Callable::Set},
};

/// Classes of torchao's quantized tensors and of what they hold besides tensors. Objects of them stay names.
bool is_of_torchao(std::string_view global) {
  return global.starts_with("torchao.");
}

struct StorageRow {
  std::string_view name;
  DType dtype;
};
constexpr std::size_t saved_storage_types = 12;  // the first of the table: torch.save names these
constexpr StorageRow storage_types[] = {{"torch.FloatStorage", DType::Float32},
                                        {"torch.DoubleStorage", DType::Float64},
                                        {"torch.HalfStorage", DType::Float16},
                                        {"torch.BFloat16Storage", DType::BFloat16},
                                        {"torch.LongStorage", DType::Int64},
                                        {"torch.IntStorage", DType::Int32},
                                        {"torch.ShortStorage", DType::Int16},
                                        {"torch.CharStorage", DType::Int8},
                                        {"torch.ByteStorage", DType::UInt8},
                                        {"torch.BoolStorage", DType::Bool},
                                        {"torch.ComplexFloatStorage", DType::Complex64},
                                        {"torch.ComplexDoubleStorage", DType::Complex128},
                                        {"torch.UInt16Storage", DType::UInt16},
                                        {"torch.UInt32Storage", DType::UInt32},
                                        {"torch.UInt64Storage", DType::UInt64},
                                        {"torch.storage.UntypedStorage", DType::UInt8},
                                        {"torch.Float8_e4m3fnStorage", DType::Float8E4M3FN},
                                        {"torch.Float8_e5m2Storage", DType::Float8E5M2}};

/// What stands for a tensor whose dtype is unknown here, or that is quantized. Everything else in the file is read.
constexpr std::string_view unread_tensor = "a tensor of an unknown dtype";

/// Is it named as torch's dtypes and storages are? Of those that are unknown here the name is kept.
bool is_named_as_dtype(std::string_view name) {
  for (const std::string_view stem : {"float", "bfloat", "int", "uint", "qint", "quint", "bits", "complex", "bool"})
    if (name.starts_with(stem) && name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == name.npos)
      return true;
  return name.ends_with("Storage") && is_identifier(name);
}

std::optional<Callable> find_global(std::string_view name) {
  if (std::ranges::find(plain_globals, name) != std::end(plain_globals)) return Callable::None;
  const auto* row = std::ranges::find(globals, name, &GlobalRow::name);
  return row == std::end(globals) ? std::nullopt : std::optional(row->call);
}

std::optional<DType> storage_dtype(std::string_view name) {
  const auto* row = std::ranges::find(storage_types, name, &StorageRow::name);
  return row == std::end(storage_types) ? std::nullopt : std::optional(row->dtype);
}

class Machine {
 public:
  Machine(std::string_view bytes, const StorageSource& storages) : bytes_(bytes), storages_(storages) {}

  Result<Pickle> run() {
    for (;;) {
      if (at_ >= bytes_.size()) return bad_pickle("it ends without STOP; is it truncated?");
      auto op = static_cast<unsigned char>(bytes_[at_++]);
      if (op == '.') break;
      TRY_DO(step(op));
      if (out_.objects.size() > max_objects) return bad_pickle("too many objects");
    }
    if (stack_.size() != 1 || !stack_[0]) return bad_pickle("STOP without exactly one value");
    out_.root = stack_[0];
    return std::move(out_);
  }

 private:
  using Object = PickleValue*;  ///< on the stack, null is a mark

  Object make(auto value) {
    out_.objects.push_back(std::make_unique<PickleValue>(PickleValue{std::move(value)}));
    return out_.objects.back().get();
  }
  Status push(auto value) {
    stack_.push_back(make(std::move(value)));
    return {};
  }

  Result<std::string_view> take(std::uint64_t n) {
    if (n > bytes_.size() - at_) return bad_pickle("an item reaches beyond the end; is it truncated?");
    std::string_view out = bytes_.substr(at_, n);
    at_ += n;
    return out;
  }
  template <class T>
  Result<T> little() {
    TRY(std::string_view raw, take(sizeof(T)));
    T value;
    std::memcpy(&value, raw.data(), sizeof(T));
    return value;
  }
  Result<std::string_view> line() {
    std::size_t end = bytes_.find('\n', at_);
    if (end == std::string_view::npos) return bad_pickle("an unterminated line");
    std::string_view out = bytes_.substr(at_, end - at_);
    at_ = end + 1;
    return out;
  }
  Result<Object> pop() {
    if (stack_.empty() || !stack_.back()) return bad_pickle("the stack is empty");
    Object o = stack_.back();
    stack_.pop_back();
    return o;
  }
  Result<std::vector<Object>> pop_to_mark() {
    std::size_t i = stack_.size();
    while (i > 0 && stack_[i - 1]) --i;
    if (i == 0) return bad_pickle("no mark on the stack");
    std::vector<Object> out(stack_.begin() + static_cast<std::ptrdiff_t>(i), stack_.end());
    stack_.resize(i - 1);
    return out;
  }
  Result<Object> top() {
    if (stack_.empty() || !stack_.back()) return bad_pickle("the stack is empty");
    return stack_.back();
  }

  /// Reads an unsigned integer and hands it on.
  template <class T>
  Status with(Status (Machine::*next)(std::uint64_t)) {
    TRY(const T n, little<T>());
    return (this->*next)(n);
  }
  template <class T>
  Status integer() {
    TRY(const T v, little<T>());
    return push(static_cast<std::int64_t>(v));
  }

  Status text(std::uint64_t n) {
    TRY(std::string_view s, take(n));
    return push(std::string(s));
  }

  Status tuple(std::size_t n) {
    PickleList list{PickleList::Tuple, {}};
    list.items.resize(n);
    for (std::size_t i = n; i > 0; --i) TRY_DO(assign(list.items[i - 1], pop()));
    return push(std::move(list));
  }

  Status append(Object to, std::span<const Object> items) {
    auto* list = std::get_if<PickleList>(&to->v);
    if (!list || list->kind == PickleList::Tuple) return bad_pickle("items for an object that is not a list");
    list->items.insert(list->items.end(), items.begin(), items.end());
    return {};
  }

  Status set_items(Object to, std::span<const Object> items) {
    auto* dict = std::get_if<PickleDict>(&to->v);
    if (!dict || items.size() % 2 != 0) return bad_pickle("entries for an object that is not a dict");
    for (std::size_t i = 0; i < items.size(); i += 2) dict->items.emplace_back(items[i], items[i + 1]);
    return {};
  }

  Status get(std::uint64_t key) {
    auto it = memo_.find(key);
    if (it == memo_.end()) return bad_pickle(fmt::format("memo {} is not set", key));
    stack_.push_back(it->second);
    return {};
  }
  Status put(std::uint64_t key) {
    TRY(memo_[key], top());
    return {};
  }

  Status global(std::string_view module, std::string_view name) {
    std::string full = fmt::format("{}.{}", module, name);
    if (module == "torch") {
      if (auto dtype = dtype_from_torch(name)) return push(*dtype);
      if (!find_global(full) && is_named_as_dtype(name)) return push(PickleGlobal{std::move(full)});
    }
    if (!find_global(full) && !storage_dtype(full) && !is_of_torchao(full))
      return input_error(
          "load.pickle.global",
          fmt::format("pickle asks for {}, which is not on the list of harmless types; refused", full.substr(0, 200)));
    return push(PickleGlobal{std::move(full)});
  }

  Status big_integer(std::uint64_t n) {
    TRY(std::string_view raw, take(n));
    if (n > 9 || (n == 9 && raw[8] != 0)) return bad_pickle("an integer beyond 64 bits");
    std::uint64_t value = n > 0 && (raw[n - 1] & 0x80) ? ~std::uint64_t{0} : 0;
    std::memcpy(&value, raw.data(), std::min<std::uint64_t>(n, 8));
    return push(static_cast<std::int64_t>(value));
  }

  Status step(unsigned char op) {
    const auto opcode = static_cast<Opcode>(op);
    switch (opcode) {
      case Opcode::Proto:
        return skip(1);
      case Opcode::Frame:
        return skip(8);
      case Opcode::Mark:
        stack_.push_back(nullptr);
        return {};
      case Opcode::Pop:
        if (stack_.empty()) return bad_pickle("the stack is empty");
        stack_.pop_back();  // a mark too
        return {};
      case Opcode::PopMark:
        TRY_DO(pop_to_mark());
        return {};
      case Opcode::Dup: {
        TRY(stack_.emplace_back(), top());
        return {};
      }
      case Opcode::None:
        return push(std::monostate());
      case Opcode::NewTrue:
        return push(true);
      case Opcode::NewFalse:
        return push(false);
      case Opcode::BinInt:
        return integer<std::int32_t>();
      case Opcode::BinInt1:
        return integer<std::uint8_t>();
      case Opcode::BinInt2:
        return integer<std::uint16_t>();
      case Opcode::Long1:
        return with<std::uint8_t>(&Machine::big_integer);
      case Opcode::BinFloat: {
        TRY(const auto bits, little<std::uint64_t>());
        return push(std::bit_cast<double>(__builtin_bswap64(bits)));
      }
      case Opcode::ShortBinString:
      case Opcode::ShortBinBytes:
      case Opcode::ShortBinUnicode:
        return with<std::uint8_t>(&Machine::text);
      case Opcode::BinString:
      case Opcode::BinBytes:
      case Opcode::BinUnicode:
        return with<std::uint32_t>(&Machine::text);
      case Opcode::BinUnicode8:
      case Opcode::BinBytes8:
        return with<std::uint64_t>(&Machine::text);
      case Opcode::BinGet:
        return with<std::uint8_t>(&Machine::get);
      case Opcode::LongBinGet:
        return with<std::uint32_t>(&Machine::get);
      case Opcode::BinPut:
        return with<std::uint8_t>(&Machine::put);
      case Opcode::LongBinPut:
        return with<std::uint32_t>(&Machine::put);
      case Opcode::Memoize:
        return put(memo_.size());
      case Opcode::Global: {
        TRY(std::string_view module, line());
        TRY(std::string_view name, line());
        return global(module, name);
      }
      case Opcode::StackGlobal: {
        TRY(Object name, pop());
        TRY(Object module, pop());
        if (!name->get<std::string>() || !module->get<std::string>()) return bad_pickle("a global without a name");
        return global(*module->get<std::string>(), *name->get<std::string>());
      }
      case Opcode::Reduce:
      case Opcode::NewObj:
        return reduce();
      case Opcode::Build:
        return build();
      case Opcode::BinPersId:
        return persistent();
      default:
        return container_step(opcode);
    }
  }

  /// Makes lists, tuples, sets and dicts, and fills them.
  Status container_step(Opcode opcode) {
    switch (opcode) {
      case Opcode::EmptyList:
        return push(PickleList{});
      case Opcode::EmptyTuple:
        return push(PickleList{PickleList::Tuple, {}});
      case Opcode::EmptyDict:
        return push(PickleDict{});
      case Opcode::EmptySet:
        return push(PickleList{PickleList::Set, {}});
      case Opcode::Tuple1:
        return tuple(1);
      case Opcode::Tuple2:
        return tuple(2);
      case Opcode::Tuple3:
        return tuple(3);
      case Opcode::Tuple:
      case Opcode::List:
      case Opcode::FrozenSet: {
        TRY(auto items, pop_to_mark());
        PickleList list{opcode == Opcode::Tuple  ? PickleList::Tuple
                        : opcode == Opcode::List ? PickleList::List
                                                 : PickleList::Set,
                        {items.begin(), items.end()}};
        return push(std::move(list));
      }
      case Opcode::Dict: {
        TRY(auto items, pop_to_mark());
        Object dict = make(PickleDict{});
        stack_.push_back(dict);
        return set_items(dict, items);
      }
      case Opcode::Append: {
        TRY(Object item, pop());
        TRY(Object list, top());
        return append(list, std::span<const Object>(&item, 1));
      }
      case Opcode::Appends:
      case Opcode::AddItems: {
        TRY(auto items, pop_to_mark());
        TRY(Object list, top());
        return append(list, items);
      }
      case Opcode::SetItem: {
        TRY(Object value, pop());
        TRY(Object key, pop());
        TRY(Object dict, top());
        Object pair[] = {key, value};
        return set_items(dict, pair);
      }
      case Opcode::SetItems: {
        TRY(auto items, pop_to_mark());
        TRY(Object dict, top());
        return set_items(dict, items);
      }
      default:
        return bad_pickle(fmt::format("opcode 0x{:02x} is not admitted", static_cast<unsigned char>(opcode)));
    }
  }

  Status skip(std::uint64_t n) {
    TRY_DO(take(n));
    return {};
  }

  /// Drops the state (_metadata) that torch sets on an OrderedDict, and that of objects that stay names. State of other
  /// objects is refused.
  Status build() {
    TRY(Object state, pop());
    TRY(Object object, top());
    if (auto* name = object->get<PickleGlobal>(); name && is_of_torchao(name->name)) return {};
    if (!object->get<PickleDict>() || (!state->get<PickleDict>() && !state->get<PickleList>()))
      return bad_pickle("state for an object that takes none");
    return {};
  }

  static const PickleItems* tuple_of(const PickleValue* value) {
    auto* list = value ? value->get<PickleList>() : nullptr;
    return list ? &list->items : nullptr;
  }

  static Result<Sizes> sizes(const PickleValue* value) {
    const PickleItems* items = tuple_of(value);
    if (!items || items->size() > max_strides) return bad_pickle("a size that is not a tuple of integers");
    Sizes out;
    for (const PickleValue* item : *items) {
      auto* n = item->get<std::int64_t>();
      if (!n) return bad_pickle("a size that is not a tuple of integers");
      out.push_back(*n);
    }
    return out;
  }

  Status reduce() {
    TRY(Object args_object, pop());
    TRY(Object callable, pop());
    const PickleItems* args = tuple_of(args_object);
    auto* function = callable->get<PickleGlobal>();
    if (!function || !args) return bad_pickle("a call of an object that is not a function");
    if (is_of_torchao(function->name)) return push(*function);
    const Callable call = find_global(function->name).value_or(Callable::None);
    if (const PickleItems* given = args->empty() ? nullptr : tuple_of((*args)[0]);
        given && (copied_ += given->size()) > max_copied)
      return bad_pickle("calls that copy too many list entries");
    auto string_arg = [&](std::size_t i) { return i < args->size() ? (*args)[i]->get<std::string>() : nullptr; };
    switch (call) {
      case Callable::Dict: {
        Object dict = make(PickleDict{});
        stack_.push_back(dict);
        const PickleItems* pairs = args->empty() ? nullptr : tuple_of((*args)[0]);
        if (!pairs) return {};
        for (const PickleValue* pair : *pairs) {
          const PickleItems* entry = tuple_of(pair);
          if (!entry || entry->size() != 2) return bad_pickle("a dict of items that are not pairs");
          std::get<PickleDict>(dict->v).items.emplace_back((*entry)[0], (*entry)[1]);
        }
        return {};
      }
      case Callable::Size:
      case Callable::Set: {
        const PickleItems* items = args->empty() ? nullptr : tuple_of((*args)[0]);
        return push(
            PickleList{call == Callable::Set ? PickleList::Set : PickleList::Tuple, items ? *items : PickleItems{}});
      }
      case Callable::Device: {
        const std::string* text = string_arg(0);
        auto device = text ? Device::parse(*text) : std::nullopt;
        if (!device) return bad_pickle("torch.device of an unknown device");
        if (args->size() > 1)
          if (auto* index = (*args)[1]->get<std::int64_t>()) device->index = static_cast<int>(*index);
        return push(*device);
      }
      case Callable::Complex: {
        auto part = [&](std::size_t i) {
          return i < args->size() && (*args)[i]->get<double>() ? *(*args)[i]->get<double>() : 0.0;
        };
        return push(std::complex<double>(part(0), part(1)));
      }
      case Callable::Layout: {
        const std::string* text = string_arg(0);
        if (!text || *text != "torch.strided")
          return unsupported("load.pickle", "a pickle with a layout other than torch.strided");
        return push(Layout::Strided);
      }
      case Callable::RebuildTensor:
      case Callable::RebuildTensorOfDtype:
        return rebuild_tensor(*args, call == Callable::RebuildTensorOfDtype);
      case Callable::RebuildSubclass:
        return rebuild_subclass(*args);
      case Callable::Unread:
        return push(PickleGlobal{std::string(unread_tensor)});
      case Callable::RebuildParameter: {
        if (is_unread(*args, 0)) return push(*(*args)[0]->get<PickleGlobal>());
        if (args->empty() || !(*args)[0]->get<Tensor>()) return bad_pickle("a parameter without data");
        Tensor t = *(*args)[0]->get<Tensor>();
        t.requires_grad = args->size() > 1 && (*args)[1]->get<bool>() && *(*args)[1]->get<bool>();
        return push(std::move(t));
      }
      default:
        return bad_pickle(fmt::format("a call of {}", function->name));
    }
  }

  /// (function, type, its arguments, state): a tensor that consists of others, as a dict of its attributes.
  Status rebuild_subclass(const PickleItems& args) {
    auto* function = args.size() == 4 ? args[0]->get<PickleGlobal>() : nullptr;
    if (!function || function->name != "torch._utils._rebuild_wrapper_subclass")
      return bad_pickle("a tensor of a type that does not wrap other tensors");
    const PickleItems* with_slots = tuple_of(args[3]);
    const PickleValue* state = with_slots && !with_slots->empty() ? with_slots->front() : args[3];
    if (!state->get<PickleDict>()) return bad_pickle("a tensor that wraps others without a dict of them");
    return push(*state->get<PickleDict>());
  }

  static bool is_unread(const PickleItems& args, std::size_t i) {
    return i < args.size() && args[i]->get<PickleGlobal>();
  }

  /// (storage, offset, size, stride, requires_grad, hooks), and the dtype, if it is not that of the storage.
  Status rebuild_tensor(const PickleItems& args, bool has_dtype) {
    if (is_unread(args, 0) || (has_dtype && is_unread(args, 6))) return push(PickleGlobal{std::string(unread_tensor)});
    auto* storage = args.size() >= 5 ? args[0]->get<Tensor>() : nullptr;
    auto* offset = storage ? args[1]->get<std::int64_t>() : nullptr;
    if (!offset) return bad_pickle("a tensor without storage");
    Tensor t = *storage;
    if (has_dtype) {
      auto* dtype = args.size() >= 7 ? args[6]->get<DType>() : nullptr;
      if (!dtype) return bad_pickle("a tensor without dtype");
      t.dtype = *dtype;
    }
    TRY(t.sizes, sizes(args[2]));
    TRY(t.strides, sizes(args[3]));
    t.offset = *offset;
    TRY(const bool within, within_storage(t));
    if (!within) return bad_pickle("a tensor reaches beyond its storage");
    auto* grad = args[4]->get<bool>();
    t.requires_grad = grad && *grad;
    return push(std::move(t));
  }

  /// Reads ('storage', type, key, location, count) and pushes a flat tensor over the storage.
  Status persistent() {
    TRY(Object id, pop());
    const PickleItems* items = tuple_of(id);
    if (!items || items->size() < 5 || !(*items)[0]->get<std::string>() ||
        *(*items)[0]->get<std::string>() != "storage")
      return bad_pickle("a persistent id that is not a storage");
    auto* type = (*items)[1]->get<PickleGlobal>();
    auto* key = (*items)[2]->get<std::string>();
    auto dtype = type ? storage_dtype(type->name) : std::nullopt;
    if (!type || !key) return bad_pickle("a storage of an unknown type");
    if (!dtype) return push(PickleGlobal{type->name});
    if (!storages_) return bad_pickle("tensors in a pickle that has no storages");
    auto& storage = storage_by_key_[*key];
    if (!storage) TRY_DO(assign(storage, storages_(*key)));
    return push(Tensor{storage, *dtype, {static_cast<std::int64_t>(storage->bytes() / itemsize(*dtype))}, {1}});
  }

  std::string_view bytes_;
  const StorageSource& storages_;
  std::size_t at_ = 0;
  std::size_t copied_ = 0;
  Pickle out_;
  std::vector<Object> stack_;
  std::unordered_map<std::uint64_t, Object> memo_;
  std::unordered_map<std::string, std::shared_ptr<Storage>> storage_by_key_;
};

}  // namespace

std::string_view torch_storage_name(DType t) {
  for (const StorageRow& row : std::span(storage_types).first(saved_storage_types))
    if (row.dtype == t) return row.name.substr(std::string_view("torch.").size());
  return {};
}

Result<Pickle> read_pickle(std::string_view bytes, const StorageSource& storages) {
  return Machine(bytes, storages).run();
}

}  // namespace partita

#pragma once
// A compact binary form of plain data. A type says its fields once, in a function that both directions call:
//   void fields(auto& archive, Point& p) { archive(p.x, p.y); }
// What is read may be damaged: sizes are held against the bytes that are left, numbers of choices against their count,
// and nesting against a limit; a reader that met something else reads zeros and is not complete().
#include <bit>
#include <complex>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "core/base/raise.h"

namespace partita {

class ArchiveWriter {
 public:
  static constexpr bool reads = false;
  std::string bytes;
  void* context = nullptr;  ///< what the caller's types need besides the value

  template <class... T>
  void operator()(T&... values) {
    (one(values), ...);
  }
  /// A value of an enum with `count` values, numbered from 0.
  void choice(auto value, std::size_t) { number(static_cast<std::uint64_t>(value)); }
  void number(std::uint64_t n) {
    for (; n >= 0x80; n >>= 7) bytes += static_cast<char>(n | 0x80);
    bytes += static_cast<char>(n);
  }
  void raw(std::string_view text) {
    number(text.size());
    bytes += text;
  }

 private:
  template <class T>
  void one(T& value) {
    if constexpr (std::is_same_v<T, bool>) {
      bytes += static_cast<char>(value);
    } else if constexpr (std::signed_integral<T>) {
      const auto wide = static_cast<std::int64_t>(value);
      number((static_cast<std::uint64_t>(wide) << 1) ^ static_cast<std::uint64_t>(wide >> 63));
    } else if constexpr (std::unsigned_integral<T>) {
      number(value);
    } else if constexpr (std::is_same_v<T, double>) {
      bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
    } else if constexpr (std::is_same_v<T, std::string>) {
      raw(value);
    } else {
      fields(*this, value);
    }
  }
  template <class T>
  void one(std::vector<T>& list) {
    number(list.size());
    for (std::size_t i = 0; i < list.size(); ++i) {
      if constexpr (std::is_same_v<T, bool>)
        bytes += static_cast<char>(list[i]);
      else
        one(list[i]);
    }
  }
  template <class T>
  void one(std::optional<T>& value) {
    bytes += static_cast<char>(value.has_value());
    if (value) one(*value);
  }
  template <class K, class V>
  void one(std::map<K, V>& map) {
    number(map.size());
    for (auto& [key, value] : map) {
      K copy = key;
      (*this)(copy, value);
    }
  }
  template <class K, class V>
  void one(std::pair<K, V>& pair) {
    (*this)(pair.first, pair.second);
  }
};

class ArchiveReader {
 public:
  static constexpr bool reads = true;
  explicit ArchiveReader(std::string_view bytes) : left_(bytes) {}
  void* context = nullptr;  ///< what the caller's types need besides the bytes

  template <class... T>
  void operator()(T&... values) {
    (one(values), ...);
  }
  template <class E>
  void choice(E& value, std::size_t count) {
    std::uint64_t n = number();
    if (n >= count) fail(), n = 0;
    value = static_cast<E>(n);
  }
  std::uint64_t number() {
    std::uint64_t n = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<unsigned char>(take(1).empty() ? 0 : last_);
      n |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if (!(byte & 0x80)) return n;
    }
    fail();
    return 0;
  }
  std::string_view raw() { return take(length()); }
  void fail() {
    failed_ = true;
    left_ = {};
  }
  bool failed() const { return failed_; }
  /// Everything was read, and nothing was wrong.
  bool complete() const { return !failed_ && left_.empty(); }

 private:
  static constexpr int most_nested = 64;

  std::string_view take(std::size_t n) {
    if (n > left_.size()) {
      fail();
      return {};
    }
    const std::string_view taken = left_.substr(0, n);
    if (n > 0) last_ = taken[0];
    left_.remove_prefix(n);
    return taken;
  }
  /// A number of items, each of which has at least one byte.
  std::size_t length() {
    const std::uint64_t n = number();
    if (n <= left_.size()) return n;
    fail();
    return 0;
  }
  template <class T>
  void one(T& value) {
    if constexpr (std::is_same_v<T, bool>) {
      choice(value, 2);
    } else if constexpr (std::signed_integral<T>) {
      const std::uint64_t n = number();
      const auto wide = static_cast<std::int64_t>((n >> 1) ^ (~(n & 1) + 1));
      if (!std::in_range<T>(wide)) fail();
      value = static_cast<T>(wide);
    } else if constexpr (std::unsigned_integral<T>) {
      const std::uint64_t n = number();
      if (!std::in_range<T>(n)) fail();
      value = static_cast<T>(n);
    } else if constexpr (std::is_same_v<T, double>) {
      const std::string_view from = take(sizeof value);
      if (from.size() == sizeof value) std::memcpy(&value, from.data(), sizeof value);
    } else if constexpr (std::is_same_v<T, std::string>) {
      value = raw();
    } else {
      if (++nested_ > most_nested) fail();
      if (!failed_) fields(*this, value);
      --nested_;
    }
  }
  template <class T>
  void one(std::vector<T>& list) {
    list.clear();
    for (std::size_t n = length(); n > 0 && !failed_; --n) {
      T item{};
      one(item);
      list.push_back(std::move(item));
    }
  }
  template <class T>
  void one(std::optional<T>& value) {
    bool has = false;
    one(has);
    value.reset();
    if (has) one(value.emplace());
  }
  template <class K, class V>
  void one(std::map<K, V>& map) {
    map.clear();
    for (std::size_t n = length(); n > 0 && !failed_; --n) {
      K key{};
      V value{};
      (*this)(key, value);
      map.insert_or_assign(std::move(key), std::move(value));
    }
  }
  template <class K, class V>
  void one(std::pair<K, V>& pair) {
    (*this)(pair.first, pair.second);
  }

  std::string_view left_;
  char last_ = 0;
  int nested_ = 0;
  bool failed_ = false;
};

/// Reads or writes a variant: its index, then the alternative.
template <class A, class... T>
void variant(A& a, std::variant<T...>& v) {
  std::size_t index = v.index();
  a.choice(index, sizeof...(T));
  if constexpr (A::reads) {
    using Make = std::variant<T...> (*)();
    static constexpr Make make[] = {[] { return std::variant<T...>(std::in_place_type<T>); }...};
    v = make[index]();
  }
  std::visit(
      [&](auto& value) {
        if constexpr (!std::is_same_v<std::decay_t<decltype(value)>, std::monostate>) a(value);
      },
      v);
}

void fields(auto& a, std::complex<double>& c) {
  double real = c.real(), imaginary = c.imag();
  a(real, imaginary);
  c = {real, imaginary};
}

/// The value in this form, behind a heading that tells which type it is. Errors: what a type's fields() raises for what
/// has no such form. `context`: what the types need besides the value.
Result<std::string> to_bytes(std::string_view heading, auto value, void* context = nullptr) {
  return catch_raised<std::string>([&] {
    ArchiveWriter writer;
    writer.bytes = heading;
    writer.context = context;
    writer(value);
    return std::move(writer.bytes);
  });
}

/// Nullopt for bytes that to_bytes() did not make with this heading. `context`: see ArchiveReader.
template <class T>
std::optional<T> from_bytes(std::string_view heading, std::string_view bytes, void* context = nullptr) {
  if (!bytes.starts_with(heading)) return std::nullopt;
  ArchiveReader reader(bytes.substr(heading.size()));
  reader.context = context;
  std::optional<T> value(std::in_place);
  reader(*value);
  return reader.complete() ? std::move(value) : std::nullopt;
}
/// Error process.message.
inline Diagnostic unreadable_message() {
  return {Fault::Internal, "process.message", "a message of another process cannot be read"};
}
/// The same of what another process of this program says. Error process.message.
template <class T>
Result<T> read_message(std::string_view heading, std::string_view bytes, void* context = nullptr) {
  if (auto value = from_bytes<T>(heading, bytes, context)) return *std::move(value);
  return unreadable_message();
}

}  // namespace partita

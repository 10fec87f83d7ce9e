#pragma once
// Plain values in a string, for messages between two processes of this program.
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace partita {

class Packer {
 public:
  template <class T>
    requires std::is_trivially_copyable_v<T> && (!std::is_convertible_v<T, std::string_view>)
  void put(const T& value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void put(std::string_view text) {
    put(text.size());
    bytes_ += text;
  }
  template <class T>
  void put(const std::vector<T>& list) {
    put(list.size());
    for (const T& item : list) put(item);
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

/// Reads what a Packer wrote, in the same order. Reading past the end gives zeros, and ok() is then false.
class Unpacker {
 public:
  explicit Unpacker(std::string_view bytes) : bytes_(bytes) {}

  template <class T>
    requires std::is_trivially_copyable_v<T>
  T get() {
    T value{};
    const std::string_view from = cut(sizeof value);
    if (ok_) std::memcpy(static_cast<void*>(&value), from.data(), sizeof value);
    return value;
  }
  std::string text() { return std::string(cut(get<std::size_t>())); }
  /// The length of a list whose items take a byte at least.
  std::size_t count() {
    const auto n = get<std::size_t>();
    if (n > bytes_.size()) ok_ = false;
    return ok_ ? n : 0;
  }
  template <class T>
  std::vector<T> list() {
    std::vector<T> out(count());
    for (T& item : out) {
      if constexpr (std::is_same_v<T, std::string>)
        item = text();
      else
        item = get<T>();
    }
    return out;
  }
  bool ok() const { return ok_; }

 private:
  std::string_view cut(std::size_t n) {
    if (n > bytes_.size()) ok_ = false;
    if (!ok_) return {};
    const std::string_view out = bytes_.substr(0, n);
    bytes_.remove_prefix(n);
    return out;
  }

  std::string_view bytes_;
  bool ok_ = true;
};

}  // namespace partita

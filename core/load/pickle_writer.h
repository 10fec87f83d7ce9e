#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "core/tensor/tensor.h"

namespace partita {

/// Writes a pickle of protocol 2 without memo, which torch's weights_only unpickler admits.
class PickleWriter {
 public:
  void raw(std::string_view bytes) { out_ += bytes; }
  void global(std::string_view module, std::string_view name) {
    out_.append("c").append(module).append("\n").append(name).append("\n");
  }
  void string(std::string_view s) {
    const auto n = static_cast<std::uint32_t>(s.size());
    out_ += 'X';
    out_.append(reinterpret_cast<const char*>(&n), sizeof n);
    out_ += s;
  }
  void number(std::int64_t v) {
    out_ += "\x8a\x08";
    out_.append(reinterpret_cast<const char*>(&v), sizeof v);
  }
  /// As a tuple.
  void numbers(const Sizes& list) {
    out_ += '(';
    for (const std::int64_t v : list) number(v);
    out_ += 't';
  }
  std::string finish() { return std::move(out_ += '.'); }

 private:
  std::string out_ = "\x80\x02";
};

}  // namespace partita

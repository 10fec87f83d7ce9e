#include "core/ir/op.h"

#include <map>
#include <memory>
#include <mutex>

namespace partita {

const Op* Op::get(OpKind kind, std::string_view name) {
  static std::mutex mutex;
  static std::map<std::pair<OpKind, std::string>, std::unique_ptr<Op>, std::less<>> table;
  std::lock_guard lock(mutex);
  auto& op = table[{kind, std::string(name)}];
  if (!op) op = std::make_unique<Op>(Op{kind, std::string(name)});
  return op.get();
}

const Op* Op::torch(std::string_view name, std::string_view meaning_hash, const UserOperator* meaning) {
  static std::mutex mutex;
  static std::map<std::pair<std::string, std::string>, std::unique_ptr<Op>> table;
  std::lock_guard lock(mutex);
  auto& op = table[{std::string(name), std::string(meaning_hash)}];
  if (!op) op = std::make_unique<Op>(Op{OpKind::Torch, std::string(name), std::string(meaning_hash), meaning});
  return op.get();
}

const Op* Op::placeholder() {
  static const Op* op = get(OpKind::Placeholder, "placeholder");
  return op;
}

const Op* Op::get_attr() {
  static const Op* op = get(OpKind::GetAttr, "get_attr");
  return op;
}

const Op* Op::output() {
  static const Op* op = get(OpKind::Output, "output");
  return op;
}

const Op* Op::getitem() {
  static const Op* op = get(OpKind::Function, "_operator.getitem");
  return op;
}

std::string_view Op::brief() const {
  std::string_view text = name;
  if (kind == OpKind::Torch) {
    std::size_t first = text.find('.');
    if (first == std::string_view::npos) return text;
    std::size_t second = text.find('.', first + 1);
    return text.substr(first + 1, second == std::string_view::npos ? second : second - first - 1);
  }
  if (kind == OpKind::Function) return text.substr(text.rfind('.') + 1);
  return text;
}

}  // namespace partita

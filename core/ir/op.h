#pragma once
#include <string>
#include <string_view>

namespace partita {

enum class OpKind : unsigned char {
  Placeholder,
  GetAttr,
  Output,
  Torch,     ///< torch.ops.NAMESPACE.NAME.OVERLOAD; name without "torch.ops.": "aten.add.Tensor", "higher_order.cond"
  Function,  ///< any other Python callable, by its printed name: "torch.nn.functional.dropout", "_operator.add"
  Method,    ///< a method of the first argument: "view"
};

struct UserOperator;

/// What a node does. Ops are interned: equal ops are the same object, so compare pointers. They live as long as the
/// process.
struct Op {
  OpKind kind;
  std::string name;
  /// A hash of the texts by which the user says what it computes (core/ops/record/user_operator.h), and what was made
  /// of them; empty and null: there are none. The same name with other texts is another operator.
  std::string meaning_hash = {};
  const UserOperator* meaning = nullptr;

  /// The one object of that kind and name without a meaning of the user's.
  static const Op* get(OpKind kind, std::string_view name);
  /// The one object of that name and hash. The first `meaning` that is given stays; it must live as long.
  static const Op* torch(std::string_view name, std::string_view meaning_hash, const UserOperator* meaning);
  static const Op* torch(std::string_view name) { return get(OpKind::Torch, name); }
  /// The operators of nodes that call nothing, by FX's names.
  static const Op* placeholder();
  static const Op* get_attr();
  static const Op* output();
  static const Op* getitem();  ///< _operator.getitem

  /// Is it a torch operator of the library, "aten"?
  bool of_library(std::string_view library) const {
    return kind == OpKind::Torch && name.starts_with(library) && name.size() > library.size() &&
           name[library.size()] == '.';
  }
  bool is_call() const { return kind >= OpKind::Torch; }
  /// The field's short form: "add" for aten.add.Tensor, "view" for the method.
  std::string_view brief() const;
};

}  // namespace partita

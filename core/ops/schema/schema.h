#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/ir/arg.h"
#include "core/ir/op.h"

namespace partita {

enum class SchemaType : unsigned char {
  Tensor,
  Int,
  SymInt,
  Float,
  Bool,
  SymBool,
  Scalar,
  Str,
  Dtype,
  Device,
  Layout,
  MemoryFormat,
  Dimname,
  Generator,
  Stream,
  Other,
};

struct SchemaArg {
  std::string name;
  SchemaType type = SchemaType::Other;
  bool is_list = false;  ///< Tensor[], int[2], SymInt[]?
  int list_size = 0;     ///< int[2]: a single int stands for the list; 0: no such rule
  bool is_optional = false;
  bool items_optional = false;  ///< Tensor?[]
  bool keyword_only = false;
  bool has_default = false;
  Arg default_value;
  std::string alias_set;  ///< "a" of Tensor(a!); empty: no alias
  bool is_write = false;  ///< Tensor(a!)
};

/// One overload, as native_functions.yaml writes it.
struct Schema {
  std::string name;  ///< "aten.add.Tensor"
  std::string base;  ///< "aten.add"
  std::vector<SchemaArg> args;
  std::vector<SchemaArg> returns;
  bool composite_implicit = false;  ///< CompositeImplicitAutograd: decomposes before autograd
  bool is_view = false;
  bool is_mutable = false;
  bool nondeterministic_seeded = false;
  bool pointwise = false;
  bool core = false;
  const UserOperator* meaning = nullptr;  ///< the user's texts say what it computes

  int index_of(std::string_view arg_name) const;  ///< -1 when there is none
};

/// Reads "aten::add.Tensor(Tensor self, ...) -> Tensor". Error ops.schema: not so written.
Result<Schema> parse_schema(std::string_view text);

/// The schema of an overload in PyTorch 2.13's table (core/ops/schema/schemas.txt, linked into the program), or that of
/// the operator's meaning; null when unknown.
const Schema* find_schema(const Op* op);
const Schema* find_schema(std::string_view name);  ///< "aten.add.Tensor"
/// All overloads of "aten.add", in the table's order; empty when unknown.
const std::vector<const Schema*>& find_overloads(std::string_view base);

/// A node's or call's arguments in schema order, with defaults filled in. Error ops.arguments when they do not fit the
/// schema.
Result<Args> bind_arguments(const Schema& schema, const Args& args, const Kwargs& kwargs);

}  // namespace partita

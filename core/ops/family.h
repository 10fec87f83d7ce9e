#pragma once
#include <string_view>

#include "core/ir/op.h"

namespace partita {

/// What an operator is about, for colours, legends and the coverage page. It never decides semantics.
#define PARTITA_FAMILIES(V)   \
  V(Input, "input")           \
  V(Matmul, "matmul")         \
  V(Pointwise, "pointwise")   \
  V(Reduction, "reduction")   \
  V(View, "view")             \
  V(Index, "index")           \
  V(Random, "random")         \
  V(Collective, "collective") \
  V(Control, "control")       \
  V(Other, "other")

enum class Family : unsigned char {
#define V(name, text) name,
  PARTITA_FAMILIES(V)
#undef V
};

/// By the schema's tags and the record, else by the overload's base name. A torch-level call has the family of the ATen
/// operator with its name.
Family family_of(const Op* op);
std::string_view family_name(Family family);

}  // namespace partita

#pragma once
#include <string_view>

#include "core/ir/op.h"

namespace partita {

/// What an operator is about: for colours, legends and the coverage page. Never decides semantics.
#define PARTITA_FAMILY_NAMES(V) \
  V(Input, "input")             \
  V(Matmul, "matmul")           \
  V(Pointwise, "pointwise")     \
  V(Reduction, "reduction")     \
  V(View, "view")               \
  V(Index, "index")             \
  V(Random, "random")           \
  V(Collective, "collective")   \
  V(Control, "control")         \
  V(Other, "other")

enum class Family : unsigned char {
#define V(name, text) name,
  PARTITA_FAMILY_NAMES(V)
#undef V
};

/// From the schema's tags and the record, then by the overload's base name; torch-level calls by their ATen namesake.
Family family_of(const Op* op);
std::string_view family_name(Family family);

}  // namespace partita

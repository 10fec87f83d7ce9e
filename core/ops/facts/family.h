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

struct OpRecord;
/// From the record, or that of another overload; torch-level calls by their ATen namesake.
Family family_of(const Op* op);
/// What a record's facts and its schema's tags tell; Other when they do not.
Family derived_family(const OpRecord& record);
std::string_view family_name(Family family);

}  // namespace partita

#pragma once
#include <span>

#include "core/ops/record/record.h"

namespace partita {

/// An operator that decomposes to a program (CompositeImplicitAutograd): statements in the IR's expression syntax over
/// the operator's arguments by name, "low = slice(y, dim, 0, -1); high = slice(y, dim, 1); high - low". A statement may
/// name its value; the last value is the result. Nodes come in the order of the text, so a program has separate
/// statements where PyTorch's order is not from left to right.
struct CompositeRow {
  std::string_view name, program;
};

/// Adds a record for each row. The rows' text must live as long as the table.
void add_composites(OpTable& table, std::span<const CompositeRow> rows);

/// Runs a program over named arguments.
Arg build_program(Builder& build, std::string_view program, std::vector<std::pair<std::string, Arg>> names);
/// Runs a program over the call's arguments and `more`, which hide arguments of the same name.
Arg build_program(DecomposeCall& call, std::string_view program, std::vector<std::pair<std::string, Arg>> more = {});

}  // namespace partita

#pragma once
#include <span>

#include "core/ops/record.h"

namespace partita {

/// An operator that is a program of others (CompositeImplicitAutograd): statements of the IR's expression syntax over
/// the operator's arguments by name, "low = slice(y, dim, 0, -1); high = slice(y, dim, 1); high - low". A statement
/// may name its value; the last is the result. The nodes come in the order of the text, so where PyTorch's order is
/// another than left to right, statements say so.
struct CompositeRow {
  std::string_view name, program;
};

/// A record for each row, whose text must live as long as the table.
void add_composites(OpTable& table, std::span<const CompositeRow> rows);

/// Runs a program over named arguments.
Arg run_program(Builder& build, std::string_view program, std::vector<std::pair<std::string, Arg>> names);
/// Runs a program over the call's arguments and `more`, which come first.
Arg run_program(DecomposeCall& call, std::string_view program, std::vector<std::pair<std::string, Arg>> more = {});

}  // namespace partita

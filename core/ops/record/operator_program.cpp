#include "core/ops/record/operator_program.h"

#include <cctype>

#include "core/base/text.h"

namespace partita {
namespace {

using Names = std::vector<std::pair<std::string, Arg>>;

/// Removes "name =" from the front of a statement and returns the name; empty when the statement has none.
std::string_view take_name(std::string_view& statement) {
  std::size_t end = 0;
  while (end < statement.size() && (std::isalnum(static_cast<unsigned char>(statement[end])) || statement[end] == '_'))
    ++end;
  std::string_view name = statement.substr(0, end), rest = trimmed(statement.substr(end));
  if (name.empty() || !rest.starts_with("=")) return {};
  statement = trimmed(rest.substr(1));
  return name;
}

}  // namespace

Arg build_program(DecomposeCall& call, std::string_view program, Names names) {
  for (std::size_t i = 0; i < call.args.size(); ++i) names.emplace_back(call.schema.args[i].name, call.args[i]);
  return build_program(call.build, program, std::move(names));
}

Arg build_program(Builder& build, std::string_view program, Names names) {
  Arg value;
  while (!program.empty()) {
    std::size_t end = program.find(';');
    std::string_view statement = trimmed(program.substr(0, end));
    program = end == std::string_view::npos ? std::string_view() : program.substr(end + 1);
    std::string_view name = take_name(statement);
    value = build.expression(statement, names);
    if (!name.empty()) names.emplace(names.begin(), name, value);
  }
  return value;
}

void add_composites(OpTable& table, std::span<const CompositeRow> rows) {
  for (const CompositeRow& row : rows) table.add(row.name, {.program = row.program});
}

}  // namespace partita

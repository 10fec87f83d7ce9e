#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "app/cli/command.h"
#include "app/tasks/missing_operators.h"
#include "core/base/mapped.h"
#include "core/ops/facts/aspects.h"
#include "core/ops/facts/autocast.h"
#include "core/ops/record/record.h"

namespace partita::cli {
namespace {

struct OpsVerbOptions {
  std::string name;
  std::string missing;
  bool fields = false;
  bool json = false;
};

/// How many members an aggregate has: the most initialisers it takes.
struct Anything {
  template <class T>
  operator T() const;
};
template <class T, class... Given>
consteval std::size_t member_count() {
  if constexpr (requires { T{Given()..., Anything()}; })
    return member_count<T, Given..., Anything>();
  else
    return sizeof...(Given);
}

using Json = nlohmann::ordered_json;

// What a field of a record looks like; null when it is not set.
template <class Result, class... Arguments>
Json shown(Result (*function)(Arguments...)) {
  return function ? Json("own") : Json();
}
Json shown(bool flag) {
  return flag ? Json(true) : Json();
}
Json shown(unsigned number) {
  return number ? Json(number) : Json();
}
Json shown(std::string_view text) {
  return text.empty() ? Json() : Json(text);
}
Json shown(Family family) {
  return family_name(family);
}
Json shown(LibraryRoutine routine) {
  return shown(library_routine_names[static_cast<std::size_t>(routine)]);
}
Json shown(Kept kept) {
  constexpr std::string_view names[] = {"", "half_types", "checked_values", "core_aten"};
  static_assert(std::size(names) == static_cast<std::size_t>(Kept::CoreAten) + 1);
  return shown(names[static_cast<std::size_t>(kept)]);
}
Json shown(Role role) {
  constexpr std::string_view names[] = {"",           "pads",        "concatenates",  "splits",
                                        "linear",     "converts",    "copies_second", "uninitialised",
                                        "whole_view", "other_sizes", "views_storage"};
  static_assert(std::size(names) == static_cast<std::size_t>(Role::ViewsStorage) + 1);
  return shown(names[static_cast<std::size_t>(role)]);
}
Json shown(CollectivePart part) {
  constexpr std::string_view names[] = {"", "starts", "waits"};
  static_assert(std::size(names) == static_cast<std::size_t>(CollectivePart::Waits) + 1);
  return shown(names[static_cast<std::size_t>(part)]);
}
Json shown(ElementChange change) {
  return change == ElementChange::Conjugate ? Json("conjugate") : Json();
}
Json shown(const std::vector<Derivative>& formulas) {
  Json out;
  for (const Derivative& d : formulas) out[std::string(d.input)] = d.formula;
  return out;
}
Json shown(const SpectralResults& r) {
  if (!r.known()) return {};
  static_assert(member_count<SpectralResults>() == 5);
  return {{"left", r.left},
          {"values", r.values},
          {"right", r.right},
          {"right_is_adjoint", r.right_is_adjoint},
          {"orthogonal", r.orthogonal}};
}
Json shown(const Pointwise& p) {
  if (!p.body) return {};
  constexpr const char* promotions[] = {"default",     "no_op_math",       "int_to_float",
                                        "always_bool", "complex_to_float", "bool_to_long"};
  static_assert(member_count<Pointwise>() == 7);
  return {{"body", shown(p.body)},
          {"promotion", promotions[static_cast<std::size_t>(p.promotion)]},
          {"inputs", p.inputs},
          {"condition", shown(p.condition)},
          {"exact_numbers", p.exact_numbers},
          {"row_major", p.row_major},
          {"promotion_of", shown(p.promotion_of)}};
}
Json shown(const Schema* schema) {
  return {{"name", schema->name},
          {"arguments", mapped(schema->args, &SchemaArg::name)},
          {"results", schema->returns.size()},
          {"autocast", shown(autocast_policy(*schema))}};
}

struct Field {
  std::string_view name, says;
  Json (*value)(const OpRecord&);
};
#define FIELD(part, name, says) {#name, says, [](const OpRecord& r) { return shown(r.part name); }},
#define RECORD(name, says, ...) FIELD(, name, says)
#define AUTOGRAD(name, says, ...) FIELD(autograd., name, says)
#define COST(name, says, ...) FIELD(cost., name, says)
#define PRECISION(name, says, ...) FIELD(precision., name, says)
#define VIEWS(name, says, ...) FIELD(views., name, says)
constexpr Field fields[] = {
#include "core/ops/record/record_fields.def"
    FIELD(, family, "what it is about, for colours and legends")  //
    FIELD(, schema, "PyTorch's schema")};
#undef FIELD

// In the place of a part its members are printed.
#define PART(name, says, ...) +member_count<__VA_ARGS__>() - 1
constexpr std::size_t members_of_parts = 0
#include "core/ops/record/record_fields.def"
    ;
static_assert(std::size(fields) == member_count<OpRecord>() + members_of_parts, "a field of OpRecord is not printed");

/// "aten.amax.default", "aten.amax" and "amax" name aten.amax.default.
bool fits(std::string_view name, std::string_view wanted) {
  auto begins = [&](std::string_view text) {
    return text.starts_with(wanted) && (text.size() == wanted.size() || text[wanted.size()] == '.');
  };
  return wanted.empty() || begins(name) || begins(name.substr(name.find('.') + 1));
}

std::string field_text(const Json& value) {
  if (value.is_null()) return "-";
  return value.is_string() ? value.get<std::string>() : value.dump();
}

/// What would give an operator a meaning, in words.
std::vector<std::string> ways_of(const MissingOperator& row) {
  std::vector<std::string> out;
  if (row.pytorch_decomposes)
    out.push_back(
        "a decomposition of PyTorch's own: trace the program again, or export it after "
        "ExportedProgram.run_decompositions()");
  if (!row.files.empty()) {
    std::string files = "--operators FOLDER with " + row.files[0];
    if (row.files.size() > 1) files += fmt::format(" (and {} for a gradient of its own)", row.files[1]);
    out.push_back(std::move(files));
  }
  if (!row.registers.empty())
    out.push_back(row.module.empty()
                      ? fmt::format("--python-import of the module that registers {}", row.registers)
                      : fmt::format("--python-import {}, which registers {}", row.module, row.registers));
  if (row.missing == Missing::Code)
    out.push_back("--python-import of a module that enters the kernel into PyTorch's kernel_side_table");
  if (out.empty()) out.push_back("none");
  return out;
}

Json missing_json(const std::string& path, const MissingOperators& found) {
  Json missing = Json::array(), given = Json::object(), unread = Json::array();
  for (const MissingOperator& row : found.missing) {
    Json ways = Json::array();
    if (row.pytorch_decomposes) ways.push_back({{"way", "decomposition"}});
    if (!row.files.empty()) ways.push_back({{"way", "operators"}, {"files", row.files}});
    if (!row.registers.empty())
      ways.push_back({{"way", "python_import"}, {"namespace", row.registers}, {"module", shown(row.module)}});
    if (row.missing == Missing::Code) ways.push_back({{"way", "kernel_side_table"}});
    missing.push_back({{"name", row.name},
                       {"why", text_of(row.missing)},
                       {"calls", row.calls},
                       {"graphs", row.graphs},
                       {"lines", row.lines},
                       {"ways", ways}});
  }
  for (const auto& [name, file] : found.given) given[name] = file;
  for (const auto& [id, error] : found.unread) unread.push_back({{"id", id}, {"error", error.line()}});
  return {{"path", path}, {"graphs", found.graphs}, {"missing", missing}, {"given", given}, {"unread", unread}};
}

void print_missing(const MissingOperators& found) {
  constexpr std::size_t most_lines = 5;
  for (const MissingOperator& row : found.missing) {
    fmt::print("{}  {}, {} call{} in {} graph{}\n", without_control(row.name), text_of(row.missing), row.calls,
               row.calls == 1 ? "" : "s", row.graphs.size(), row.graphs.size() == 1 ? "" : "s");
    for (const std::string& way : ways_of(row)) fmt::print("  way    {}\n", without_control(way));
    for (const auto& [id, calls] : row.graphs) fmt::print("  graph  {} ({})\n", without_control(id), calls);
    for (std::size_t i = 0; i < std::min(row.lines.size(), most_lines); ++i)
      fmt::print("  line   {}\n", without_control(row.lines[i]));
    if (row.lines.size() > most_lines) fmt::print("  line   and {} more\n", row.lines.size() - most_lines);
  }
  for (const auto& [name, file] : found.given)
    fmt::print("{}  has its meaning from {}\n", without_control(name), without_control(file));
  fmt::print("{} operator{} of {} graph{} {} missing\n", found.missing.size(), found.missing.size() == 1 ? "" : "s",
             found.graphs, found.graphs == 1 ? "" : "s", found.missing.size() == 1 ? "is" : "are");
}

Result<int> missing(const OpsVerbOptions& o) {
  TRY(const Loaded loaded, load(o.missing));
  TRY(const MissingOperators found, find_missing(loaded));
  if (o.json)
    fmt::print("{}\n", missing_json(o.missing, found).dump(1, ' ', false, Json::error_handler_t::replace));
  else
    print_missing(found);
  for (const auto& [id, error] : found.unread) fmt::print(stderr, "partita: warning: {}\n", error.line());
  return 0;
}

Result<int> run(const OpsVerbOptions& o) {
  if (!o.missing.empty()) return missing(o);
  if (o.fields) {
    for (const Field& f : fields) fmt::print("{:<28} {}\n", f.name, f.says);
    return 0;
  }
  Json rows = Json::array();
  std::string text;
  for (const OpRecord* r : ops().all()) {
    if (!fits(r->schema->name, o.name)) continue;
    Json row = {{"name", r->schema->name}};
    std::string line = fmt::format("{:<48}", r->schema->name);
    for (const OpAspect& a : op_aspects()) {
      const std::string_view state = a.state(*r);
      row[std::string(a.name)] = state;
      line += fmt::format(" {:<10}", state.empty() ? "-" : state);
    }
    const std::vector<std::string_view> tags = op_tags(*r);
    row["tags"] = tags;
    line += fmt::format("{}{}", tags.empty() ? "" : " ", fmt::join(tags, " "));
    text += line + "\n";
    if (!o.name.empty())
      for (const Field& f : fields) {
        row["fields"][f.name] = f.value(*r);
        text += fmt::format("  {:<28} {}\n", f.name, field_text(row["fields"][f.name]));
      }
    rows.push_back(std::move(row));
  }
  if (rows.empty() && !o.name.empty()) {
    const bool known =
        find_schema(o.name) || !find_overloads(o.name).empty() || !find_overloads("aten." + o.name).empty();
    return unsupported("ops.unknown",
                       fmt::format("{} has no record{}", o.name,
                                   known ? ", though PyTorch has the operator" : " and PyTorch has no such operator"));
  }
  if (o.json) {
    fmt::print("{}\n", rows.dump(1));
  } else {
    std::string head = fmt::format("{:<48}", "operator");
    for (const OpAspect& a : op_aspects()) head += fmt::format(" {:<10}", a.name);
    fmt::print("{}\n{}{} operators\n", head, text, rows.size());
  }
  return 0;
}

}  // namespace

extern const Command ops_command = {
    "ops", "What each operator has: a table of the records, or every field of one", [](CLI::App& app) -> Action {
      auto o = std::make_shared<OpsVerbOptions>();
      CLI::Option* name = app.add_option(
          "name", o->name,
          "an overload or an operator (aten.add, add), with every field of its record; or nothing for all");
      CLI::Option* json = app.add_flag("--json", o->json, "one JSON document");
      CLI::Option* fields =
          app.add_flag("--fields", o->fields, "only the names of a record's fields, and what each says");
      fields->excludes(json);
      app.add_option("--missing", o->missing,
                     "a file or folder: the operators of its graphs that have no record, and what would give each a "
                     "meaning")
          ->excludes(name)
          ->excludes(fields);
      return [o] { return run(*o); };
    }};

}  // namespace partita::cli

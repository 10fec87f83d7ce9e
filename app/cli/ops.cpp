#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/cli/command.h"
#include "core/ops/record.h"

namespace partita::cli {
namespace {

struct Options {
  std::string name;
  bool json = false;
};

/// The columns of the table: what a record can have, either given or derived.
struct Aspect {
  const char* name;
  const char* (*state)(const OpRecord&);  ///< "own", "derived", or "" for none
};

const char* own(bool has, bool derived) {
  return has ? "own" : derived ? "derived" : "";
}

constexpr Aspect aspects[] = {
    {"fake", [](const OpRecord& r) { return own(r.fake, r.pointwise.body || r.decompose); }},
    {"eval", [](const OpRecord& r) { return own(r.eval, r.pointwise.body || r.decompose); }},
    {"decompose", [](const OpRecord& r) { return own(r.decompose, false); }},
    {"compile", [](const OpRecord& r) { return own(r.compile_decompose, false); }},
    {"derivative",
     [](const OpRecord& r) {
       return r.not_differentiable ? "none" : own(r.gradient || !r.derivative.empty(), r.decompose);
     }},
    {"lower", [](const OpRecord& r) { return own(r.lower, r.pointwise.body || r.decompose || r.compile_decompose); }},
};

struct Tag {
  const char* name;
  bool (*has)(const OpRecord&);
};
constexpr Tag tags[] = {
    {"expensive", [](const OpRecord& r) { return r.expensive; }},
    {"random", [](const OpRecord& r) { return r.random || r.schema->nondeterministic_seeded; }},
    {"side_effect", [](const OpRecord& r) { return r.side_effect; }},
    {"pointwise", [](const OpRecord& r) { return r.pointwise.body != nullptr; }},
    {"view", [](const OpRecord& r) { return r.schema->is_view; }},
    {"mutable", [](const OpRecord& r) { return r.schema->is_mutable; }},
};

bool fits(std::string_view name, std::string_view wanted) {
  return wanted.empty() || name == wanted || (name.starts_with(wanted) && name[wanted.size()] == '.') ||
         (name.size() > 5 && name.substr(5).starts_with(wanted) &&
          (name.size() == 5 + wanted.size() || name[5 + wanted.size()] == '.'));
}

Result<int> run(const Options& o) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  std::string text;
  for (const OpRecord* r : ops().all()) {
    if (!fits(r->schema->name, o.name)) continue;
    nlohmann::ordered_json row = {{"name", r->schema->name}};
    std::string line = fmt::format("{:<48}", r->schema->name);
    for (const Aspect& a : aspects) {
      row[a.name] = a.state(*r);
      line += fmt::format(" {:<10}", *a.state(*r) ? a.state(*r) : "-");
    }
    row["tags"] = nlohmann::ordered_json::array();
    for (const Tag& t : tags)
      if (t.has(*r)) {
        row["tags"].push_back(t.name);
        line += fmt::format(" {}", t.name);
      }
    rows.push_back(std::move(row));
    text += line + "\n";
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
    for (const Aspect& a : aspects) head += fmt::format(" {:<10}", a.name);
    fmt::print("{}\n{}{} operators\n", head, text, rows.size());
  }
  return 0;
}

}  // namespace

extern const Command ops_command;
const Command ops_command = {"ops", "What each operator has: a table of the records", [](CLI::App& app) -> Action {
                               auto o = std::make_shared<Options>();
                               app.add_option("name", o->name,
                                              "an overload, an operator (aten.add, add), or nothing for all");
                               app.add_flag("--json", o->json, "one JSON document");
                               return [o] { return run(*o); };
                             }};

}  // namespace partita::cli

// The verb store: lists, shows, explains, verifies, clears and exports the rows of the store's file. With --recompile
// `verify` compiles stored graphs again and compares programs and machine code.
#include "core/store/store.h"

#include <charconv>
#include <span>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/cli/command.h"
#include "codegen/backends.h"
#include "codegen/stored_graph.h"
#include "core/base/build_id.h"
#include "core/compare/changes.h"
#include "core/load/fx_text.h"
#include "core/store/code_store.h"
#include "core/store/graph_entry.h"

namespace partita::cli {
namespace {

constexpr const char* checks_table = "checks/";

struct StoreVerbOptions {
  std::string id, other, file;
  std::size_t recompile = 0;
  bool json = false;
};

Result<int> stats(const StoreVerbOptions& o) {
  TRY(StoreFile store, StoreFile::open(StoreFile::default_file()));
  TRY(const StoreStats s, store.stats());
  if (o.json) {
    const nlohmann::ordered_json j = {{"file", s.file},         {"file_bytes", s.file_bytes},
                                      {"compiled", s.compiled}, {"compiled_bytes", s.compiled_bytes},
                                      {"hits", s.hits},         {"runs", s.runs},
                                      {"checks", s.checks},     {"snapshots", s.snapshots}};
    fmt::print("{}\n", j.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
    return 0;
  }
  fmt::print(
      "{} ({} bytes)\ncompiled  {:>8}, {} bytes, found again {} times\nruns      {:>8}\nchecks    {:>8}\nsnapshots "
      "{:>8}\n",
      s.file, s.file_bytes, s.compiled, s.compiled_bytes, s.hits, s.runs, s.checks, s.snapshots);
  return 0;
}

Result<int> list(const StoreVerbOptions& o) {
  TRY(StoreFile store, StoreFile::open(StoreFile::default_file()));
  TRY(const std::vector<StoreEntry> rows, store.list());
  nlohmann::ordered_json document = nlohmann::ordered_json::array();
  for (const StoreEntry& e : rows) {
    const std::string id = fmt::format("{}/{}", e.table, e.id);
    if (o.json)
      document.push_back({{"id", id}, {"at", e.at}, {"title", e.title}, {"bytes", e.bytes}});
    else
      fmt::print("{:<16}{:%F %T}  {:>10}  {}\n", id, fmt::localtime(static_cast<std::time_t>(e.at)), e.bytes, e.title);
  }
  if (o.json) fmt::print("{}\n", document.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
  return 0;
}

Result<int> show(const StoreVerbOptions& o) {
  TRY(StoreFile store, StoreFile::open(StoreFile::default_file()));
  TRY(const std::string text, store.show(o.id));
  std::fputs(text.c_str(), stdout);
  return 0;
}

void print_document(const nlohmann::ordered_json& document) {
  fmt::print("{}\n", document.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

Result<Report> stored_report(StoreFile& store, std::string_view id) {
  std::int64_t number = 0;
  id.remove_prefix(std::string_view(checks_table).size());
  if (const auto read = std::from_chars(id.data(), id.data() + id.size(), number);
      id.empty() || read.ec != std::errc() || read.ptr != id.data() + id.size())
    return input_error("store.id", fmt::format("{}{} is no row; partita store list shows them", checks_table, id));
  TRY(const std::string json, store.check_report(number));
  return Report::from_json(json);
}

std::string side_text(const Difference* d) {
  if (!d) return "-";
  if (!d->died.empty()) return "died";
  if (!d->layout.empty()) return d->layout.front();
  return fmt::format("{} {:.3g}", d->ok() ? (d->rounding ? "rounding" : "ok") : "DIFFERS", d->max_abs);
}

/// Two comparisons row by row; those of which nothing changed are counted.
Result<int> explain_checks(const StoreVerbOptions& o) {
  TRY(StoreFile store, StoreFile::open(StoreFile::default_file()));
  TRY(const Report a, stored_report(store, o.id));
  TRY(const Report b, stored_report(store, o.other));
  const std::vector<ChangedRow> rows = changed_rows(a, b);
  const auto same = std::ranges::count(rows, RowChange::Same, &ChangedRow::change);
  if (o.json) {
    nlohmann::ordered_json out = nlohmann::ordered_json::array();
    for (const ChangedRow& row : rows) {
      if (row.change == RowChange::Same) continue;
      out.push_back({{"name", row.any().name}, {"change", row.text}});
      if (row.a) out.back()["a"] = side_text(row.a);
      if (row.b) out.back()["b"] = side_text(row.b);
    }
    print_document({{"a", o.id}, {"b", o.other}, {"rows", out}, {"same", same}});
    return 0;
  }
  fmt::print("A  {}: {} against {}\nB  {}: {} against {}\n", o.id, a.found_name, a.expected_name, o.other, b.found_name,
             b.expected_name);
  for (const ChangedRow& row : rows)
    if (row.change != RowChange::Same)
      fmt::print("{:<24}{:<20}  A: {:<16}  B: {}\n", row.any().name, row.text, side_text(row.a), side_text(row.b));
  fmt::print("{} rows as before\n", same);
  return 0;
}

Result<int> explain(const StoreVerbOptions& o) {
  if (o.id.starts_with(checks_table) && o.other.starts_with(checks_table)) return explain_checks(o);
  TRY(StoreFile store, StoreFile::open(StoreFile::default_file()));
  TRY(const EntryDifference found, explain_entries(store, o.id, o.other));
  if (o.json) {
    nlohmann::ordered_json differs = nlohmann::ordered_json::array();
    for (const KeyDifference& d : found.parts) differs.push_back({{"part", d.part}, {"lines", d.lines}});
    print_document({{"a", found.a}, {"b", found.b}, {"differs", std::move(differs)}});
    return 0;
  }
  if (o.other.empty()) fmt::print("nearest before it: {}\n", found.a);
  if (found.parts.empty()) fmt::print("the keys are equal\n");
  for (const KeyDifference& d : found.parts) {
    fmt::print("{}\n", d.part);
    for (const std::string& line : d.lines) fmt::print("  {}\n", line);
  }
  return 0;
}

enum class Recompiled : unsigned char { Same, Other, OtherBuild, Impossible };

/// Compiles the graph of an entry once more and compares programs and machine code. It is impossible for a graph that
/// its text does not wholly describe (constants, symbols).
Result<Recompiled> recompile(StoreFile& store, const std::string& id) {
  TRY(const CompiledObject object, store.compiled(id));
  const auto entry = read_entry(object.bytes);
  if (!entry) return Recompiled::Other;
  std::map<std::string, std::string> parts(entry->parts.begin(), entry->parts.end());
  if (parts["program"] != build_id()) return Recompiled::OtherBuild;
  auto stored = read_stored_graph(entry->payload);
  if (!stored) return Recompiled::Other;
  auto graph = parse_fx_text(parts["graph"]);
  Config config;
  if (!graph || !read_config_text(config, parts["configuration"], id)) return Recompiled::Impossible;
  const std::vector<Node*> placeholders = (*graph)->placeholders();
  for (std::size_t i = 0; i < placeholders.size() && i < stored->placeholders.size(); ++i) {
    placeholders[i]->meta = stored->placeholders[i].meta;
    placeholders[i]->target = stored->placeholders[i].target;
    placeholders[i]->note = stored->placeholders[i].note;
  }
  TRY_DO(set_value(config, "fresh_cache", "true"));
  const ConfigScope scope(config);
  const auto fresh = std::make_shared<CodeStore>();
  const BackendOptions how{.fixed_parameters = parts["compiler"].ends_with("fixed parameters true\n"), .store = fresh};
  if (const auto compiled = default_compiler().make(how)(**graph); !compiled) return Recompiled::Impossible;
  const auto found = find_entry(*fresh, fxgraph_cache, entry->parts, object.graph_name);
  if (!found) return Recompiled::Impossible;
  if (*found != entry->payload) return Recompiled::Other;
  CodeStore own;
  for (const StoredGraph::Variant& v : stored->variants)
    if (const auto code = own.find(v.code); code && code != fresh->find(v.code)) return Recompiled::Other;
  return Recompiled::Same;
}

Result<int> verify(const StoreVerbOptions& o) {
  TRY(StoreFile store, StoreFile::open(StoreFile::default_file()));
  TRY(std::vector<std::string> problems, store.verify());
  for (const std::string& p : problems) fmt::print("{}\n", p);
  const std::size_t damages = problems.size();
  std::size_t compared = 0, of_other_builds = 0;
  if (o.recompile > 0 && damages == 0) {
    TRY(const std::vector<StoreEntry> rows, store.list());
    for (const StoreEntry& row : rows) {
      if (compared == o.recompile) break;
      if (row.table != "compiled" || !row.title.ends_with(fxgraph_cache)) continue;
      const std::string id = fmt::format("{}/{}", row.table, row.id);
      TRY(const Recompiled result, recompile(store, id));
      of_other_builds += result == Recompiled::OtherBuild;
      compared += result == Recompiled::Same || result == Recompiled::Other;
      if (result == Recompiled::Other) problems.push_back(id + ": compiled again, the graph gives other code");
    }
  }
  for (const std::string& p : std::span(problems).subspan(damages)) fmt::print("{}\n", p);
  if (o.recompile > 0 && damages == 0) fmt::print("{} graphs compiled again\n", compared);
  if (of_other_builds > 0)
    fmt::print("{} graph(s) left out: another build of partita compiled them\n", of_other_builds);
  fmt::print("{} problems\n", problems.size());
  return problems.empty() ? 0 : 1;
}

Result<int> clear(const StoreVerbOptions&) {
  TRY(StoreFile store, StoreFile::open(StoreFile::default_file()));
  TRY_DO(store.clear());
  return 0;
}

Result<int> export_copy(const StoreVerbOptions& o) {
  TRY(StoreFile store, StoreFile::open(StoreFile::default_file()));
  TRY_DO(store.export_to(o.file));
  return 0;
}

}  // namespace

extern const Command store_command = {
    "store", "What is remembered between runs: compiled code, runs, checks, snapshots", [](CLI::App& app) -> Action {
      auto o = std::make_shared<StoreVerbOptions>();
      auto chosen = std::make_shared<Result<int> (*)(const StoreVerbOptions&)>(nullptr);
      const auto verb = [&](const char* name, const char* summary, Result<int> (*run)(const StoreVerbOptions&)) {
        CLI::App* sub = app.add_subcommand(name, summary);
        sub->callback([chosen, run] { *chosen = run; });
        return sub;
      };
      verb("stats", "sizes and counts", stats)->add_flag("--json", o->json, "one JSON document");
      verb("list", "every row, newest first", list)->add_flag("--json", o->json, "one JSON document");
      verb("show", "one row", show)->add_option("id", o->id, "TABLE/NUMBER, as list shows it")->required();
      CLI::App* explains = verb("explain",
                                "where two rows differ: keys of whole graphs down to the line, or comparisons "
                                "(checks/A checks/B) node by node",
                                explain);
      explains->add_option("a", o->id, "compiled/NUMBER or checks/NUMBER, as list shows it")->required();
      explains->add_option("b", o->other, "the other; left out: the nearest graph that was there when A was made");
      explains->add_flag("--json", o->json, "one JSON document");
      verb("verify", "read everything; exit 1 when something is damaged", verify)
          ->add_option("--recompile", o->recompile, "also compile so many stored graphs again, and compare");
      verb("clear", "forget everything", clear);
      verb("export", "copy into one file", export_copy)->add_option("file", o->file)->required();
      app.require_subcommand(1);
      return [o, chosen] { return (*chosen)(*o); };
    }};

}  // namespace partita::cli

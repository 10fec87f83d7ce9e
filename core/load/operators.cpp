// Reads the folder of --operators: finds the texts by their names, reads each, orders them so that what a text calls
// is made before it, and gives graphs the operators that come of it.
#include "core/load/operators.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <mutex>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/base/config.h"
#include "core/base/hash.h"
#include "core/base/memory.h"
#include "core/load/file.h"
#include "core/load/fx_text.h"
#include "core/ops/record/user_operator.h"
#include "core/ops/schema/resolve.h"
#include "core/sym/term_budget.h"

namespace partita {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t most_files = 10'000;
constexpr std::string_view backward_suffix = ".backward";

Diagnostic wrong(const std::string& file, std::string what) {
  return input_error("ops.meaning", std::move(what), Where{.file = file});
}

struct Text {
  std::string file, content;
  std::unique_ptr<Graph> graph;
};
struct Texts {
  Text forward, backward;  ///< without a file where there is none
};

bool is_identifier(std::string_view word) {
  return !word.empty() && !std::isdigit(static_cast<unsigned char>(word[0])) &&
         std::ranges::all_of(word, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; });
}

/// The parts of "mylib.scale_add.default".
std::vector<std::string> parts_of(const std::string& name) {
  std::vector<std::string> out;
  std::size_t begin = 0;
  for (std::size_t dot = name.find('.'); dot != std::string::npos; dot = name.find('.', begin)) {
    out.push_back(name.substr(begin, dot - begin));
    begin = dot + 1;
  }
  out.push_back(name.substr(begin));
  return out;
}

Result<Text> read_text(const fs::path& path) {
  Text text{.file = path.string(), .content = {}, .graph = {}};
  TRY(const auto bytes, FileBytes::open(text.file));
  text.content = bytes->text();
  const TermBudget budget(text.content.size());
  TRY(text.graph, parse_fx_text(text.content, text.file));
  return text;
}

/// Puts a file's text where its name says.
Status take(const fs::path& path, std::map<std::string, Texts, std::less<>>& found) {
  const std::string stem = path.stem().string();
  std::vector<std::string> parts = parts_of(stem);
  const bool backward = parts.size() == 4 && stem.ends_with(backward_suffix);
  if (backward) parts.pop_back();
  if (parts.size() != 3 || !std::ranges::all_of(parts, is_identifier))
    return wrong(path.string(),
                 "its name is no operator's; name it NAMESPACE.NAME.OVERLOAD.py, like mylib.scale_add.default.py, or "
                 "NAMESPACE.NAME.OVERLOAD.backward.py");
  const std::string name = fmt::format("{}", fmt::join(parts, "."));
  if (find_record(Op::torch(name)))
    return wrong(path.string(),
                 fmt::format("Partita knows {} already (`partita ops {}`); remove the file", name, name));
  Texts& texts = found[name];
  TRY((backward ? texts.backward : texts.forward), read_text(path));
  return {};
}

/// The regular .py files of a folder, by name.
Result<std::vector<fs::path>> files_of(const std::string& folder) {
  std::error_code error;
  std::vector<fs::path> out;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const fs::path& path = it->path();
    if (path.extension() != ".py" || path.filename().string().starts_with('.')) continue;
    if (!fs::is_regular_file(it->symlink_status()))
      return wrong(path.string(), "it is no file of this folder; put the text itself here");
    if (out.size() == most_files) return wrong(folder, fmt::format("it has more than {} files", most_files));
    out.push_back(path);
  }
  if (error)
    return input_error("ops.meaning",
                       fmt::format("the folder of --operators cannot be read ({}); name a folder with a file for each "
                                   "operator",
                                   error.message()),
                       Where{.file = folder});
  std::ranges::sort(out);
  return out;
}

/// The operator of the table that a call means; the overload may be left out where there is one, or a default.
const std::string* meant(const auto& table, const std::string& name) {
  if (const auto it = table.find(name); it != table.end()) return &it->first;
  if (std::ranges::count(name, '.') != 1) return nullptr;
  const std::string* only = nullptr;
  std::size_t overloads = 0;
  for (auto it = table.lower_bound(name + "."); it != table.end() && it->first.starts_with(name + "."); ++it) {
    if (it->first.ends_with(".default")) return &it->first;
    only = &it->first;
    ++overloads;
  }
  return overloads == 1 ? only : nullptr;
}

void give(Graph& graph, const UserOperators& table) {
  for (Node* node : graph) {
    const Op* op = node->op();
    if (op->kind != OpKind::Torch || op->meaning) continue;
    if (const std::string* name = meant(table, op->name)) {
      node->set_op(table.find(*name)->second);
    } else if (const Op* called = auto_functionalized(*node)) {
      const auto it = table.find(called->name);
      if (it != table.end()) node->set_op(Op::torch(op->name, it->second->meaning_hash, it->second->meaning));
    }
  }
  for (auto& [name, child] : graph.children) give(*child, table);
}

/// Makes the operators of texts, each after those that it calls.
class Making {
 public:
  explicit Making(std::map<std::string, Texts, std::less<>> texts) : texts_(std::move(texts)) {}

  Result<UserOperators> operator()() {
    for (const auto& [name, texts] : texts_)
      if (texts.forward.file.empty())
        return wrong(texts.backward.file,
                     fmt::format("there is no {}.py beside it, which says what the operator computes", name));
    for (const auto& [name, texts] : texts_) TRY_DO(make(name));
    return std::move(made_);
  }

 private:
  /// Calls of a text, by the operator of the table that each means.
  std::vector<std::string> called(const Text& text) const {
    std::vector<std::string> out;
    if (text.graph)
      for (const Node* node : *text.graph)
        if (node->op()->kind == OpKind::Torch)
          if (const std::string* name = meant(texts_, node->op()->name)) out.push_back(*name);
    return out;
  }

  Status make(const std::string& name) {
    if (made_.contains(name)) return {};
    Texts& texts = texts_.at(name);
    if (const auto first = std::ranges::find(open_, name); first != open_.end())
      return wrong(texts.forward.file,
                   fmt::format("{} is said by a circle of texts ({}, {}); say one of them by other operators", name,
                               fmt::join(first, open_.end(), ", "), name));
    if (open_.size() > most_nested)
      return wrong(texts.forward.file, fmt::format("it is the {}th text that calls another one", open_.size()));
    open_.push_back(name);
    std::string hash;
    std::size_t nodes = 0;
    for (const Text* text : {&texts.forward, &texts.backward}) {
      add_part(hash, text->content);
      if (text->graph) nodes += text->graph->size();
      for (const std::string& other : called(*text)) {
        TRY_DO(make(other));
        add_part(hash, made_.at(other)->meaning_hash);
        nodes += nodes_.at(other);
        if (nodes > config().graph_limit) return wrong(texts.forward.file, "it stands for " + too_many_nodes());
      }
      if (text->graph) give(*text->graph, made_);
    }
    open_.pop_back();
    nodes_[name] = nodes;
    TRY(made_[name], user_operator({.name = name,
                                    .hash = content_hash(hash),
                                    .forward = std::move(texts.forward.graph),
                                    .backward = std::move(texts.backward.graph),
                                    .file = texts.forward.file,
                                    .backward_file = texts.backward.file,
                                    .text = texts.forward.content,
                                    .backward_text = texts.backward.content}));
    return {};
  }

  static constexpr std::size_t most_nested = 100;

  std::map<std::string, Texts, std::less<>> texts_;
  UserOperators made_;
  std::map<std::string, std::size_t> nodes_;  ///< that a call becomes, with those of the texts that it calls
  std::vector<std::string> open_;             ///< being made, each for the one before it
};

Result<UserOperators> read(const std::vector<fs::path>& files) {
  std::map<std::string, Texts, std::less<>> found;
  for (const fs::path& path : files) TRY_DO(take(path, found));
  return Making(std::move(found))();
}

/// What changes when a file does.
std::string stamp_of(const std::vector<fs::path>& files) {
  std::string stamp;
  for (const fs::path& path : files) {
    std::error_code ignored;
    add_part(stamp, path.string());
    stamp += fmt::format("{} {}\n", fs::file_size(path, ignored),
                         fs::last_write_time(path, ignored).time_since_epoch().count());
  }
  return stamp;
}

}  // namespace

Result<std::shared_ptr<const UserOperators>> read_operators(const std::string& folder) {
  struct Kept {
    std::string stamp;
    std::shared_ptr<const UserOperators> table;
  };
  static std::mutex mutex;
  static std::map<std::string, Kept> kept;
  TRY(const std::vector<fs::path> files, files_of(folder));
  std::string stamp = stamp_of(files);
  const std::lock_guard lock(mutex);
  Kept& known = kept[folder];
  if (known.table && known.stamp == stamp) return known.table;
  TRY(UserOperators table, read(files));
  known = {std::move(stamp), std::make_shared<const UserOperators>(std::move(table))};
  return known.table;
}

Status give_meanings(Graph& graph) {
  const std::string& folder = config().operators;
  if (folder.empty()) return {};
  TRY(const std::shared_ptr<const UserOperators> table, read_operators(folder));
  give(graph, *table);
  return {};
}

}  // namespace partita

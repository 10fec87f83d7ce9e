#include "app/tasks/missing_operators.h"

#include <algorithm>

#include "core/ir/place.h"
#include "core/ops/facts/control.h"
#include "core/ops/record/user_operator.h"
#include "core/ops/schema/resolve.h"

namespace partita {
namespace {

/// Modules that register a namespace when they are imported, as their projects document.
constexpr std::pair<std::string_view, std::string_view> registering[] = {
    {"torchao", "torchao"},
    {"torchvision", "torchvision"},
    {"torchaudio", "torchaudio"},
    {"xformers", "xformers.ops"},
    {"fbgemm", "fbgemm_gpu"},
    {"flash_attn", "flash_attn"},
    {"quantized_decomposed", "torch.ao.quantization.fx._decomposed"},
};

bool computes(const OpRecord& record) {
  return record.eval || record.pointwise.body || record.decompose || record.compile_decompose;
}

std::optional<Missing> missing_of(const Op* op) {
  if (is_kernel(op)) return Missing::Code;
  if (op->kind != OpKind::Torch || is_control(op) || is_taken_apart(op)) return {};
  if (const OpRecord* record = find_record(op))
    return computes(*record) ? std::nullopt : std::optional(Missing::Evaluation);
  // Written without its overload, it is resolved to one of them.
  for (const Schema* overload : find_overloads(op->name))
    if (find_record(Op::torch(overload->name))) return {};
  return Missing::Record;
}

MissingOperator describe(const Op* op, Missing missing) {
  MissingOperator out{.name = op->name, .missing = missing};
  const std::string& name = op->name;
  const Schema* schema = find_schema(op);
  out.pytorch_decomposes = schema && schema->composite_implicit;
  const std::size_t dots = static_cast<std::size_t>(std::ranges::count(name, '.'));
  // Higher-order operators take functions and sub graphs, which a text has not.
  if (op->of_library("higher_order") || dots == 0 || dots > 2) return out;
  const std::string overload = dots == 2 ? name : name + ".default";
  if (missing == Missing::Record) {
    out.files = {overload + ".py"};
    if (!schema || !schema->is_mutable) out.files.push_back(overload + ".backward.py");
  }
  if (schema) return out;  // the interpreters ask Python only for what PyTorch's table lacks
  out.registers = name.substr(0, name.find('.'));
  const auto known = std::ranges::find(registering, std::string_view(out.registers),
                                       &std::pair<std::string_view, std::string_view>::first);
  if (known != std::end(registering)) out.module = known->second;
  return out;
}

/// The operators that a call calls: its own, and those that higher-order operators (auto_functionalized, with_effects)
/// are given.
std::vector<const Op*> called_by(const Node& node) {
  constexpr std::string_view torch_ops = "torch.ops.";
  std::vector<const Op*> out;
  if (!is_auto_functionalized(node.op())) out.push_back(node.op());
  for (const Arg& arg : node.args())
    if (const ArgName* name = arg.get<ArgName>(); name && name->text.starts_with(torch_ops))
      out.push_back(Op::torch(std::string_view(name->text).substr(torch_ops.size())));
  return out;
}

class Search {
 public:
  void look(const Graph& graph, const std::string& id) {
    for (const Node* node : graph) {
      if (!node->op()->is_call()) continue;
      if (const UserOperator* given = node->op()->meaning) {
        found.given.emplace(given->schema.name, given->file);
        continue;
      }
      for (const Op* op : called_by(*node))
        if (const std::optional<Missing> missing = missing_of(op)) add(*node, op, *missing, id);
    }
    for (const auto& [name, child] : graph.children) look(*child, id);
  }

  MissingOperators finish() && {
    for (auto& [name, row] : rows_) found.missing.push_back(std::move(row));
    std::ranges::stable_sort(found.missing, std::greater(), &MissingOperator::calls);
    return std::move(found);
  }

  MissingOperators found;

 private:
  void add(const Node& node, const Op* op, Missing missing, const std::string& id) {
    const auto [it, fresh] = rows_.try_emplace(op->name);
    MissingOperator& row = it->second;
    if (fresh) row = describe(op, missing);
    ++row.calls;
    ++row.graphs[id];
    if (std::string line = origin_text(node); !line.empty() && std::ranges::find(row.lines, line) == row.lines.end())
      row.lines.push_back(std::move(line));
  }

  std::map<std::string, MissingOperator> rows_;
};

}  // namespace

std::string_view text_of(Missing missing) {
  constexpr std::string_view texts[] = {"no record", "no evaluation", "its kernel's code is not in the graph"};
  return texts[static_cast<std::size_t>(missing)];
}

Result<MissingOperators> find_missing(const Loaded& loaded) {
  Search search;
  for (const Artefact& artefact : loaded.artefacts) {
    if (!artefact.is_graph()) continue;
    auto graph = artefact.graph();
    if (!graph) {
      search.found.unread.emplace_back(artefact.id, std::move(graph).error());
      continue;
    }
    ++search.found.graphs;
    search.look(**graph, artefact.id);
  }
  if (search.found.graphs == 0) {
    if (!search.found.unread.empty()) return search.found.unread.back().second;
    TRY_DO(loaded.pick({}));  // says what the file is instead
  }
  return std::move(search).finish();
}

}  // namespace partita

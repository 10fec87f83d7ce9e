#include "core/interp/debug_interpreter.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/interp/aten_calls.h"
#include "core/ir/place.h"
#include "core/tensor/significant_strides.h"

namespace partita {
namespace {

using Strings = std::vector<std::string>;
Strings strings(const Sizes& list) {
  Strings items;
  for (std::int64_t i : list) items.push_back(std::to_string(i));
  return items;
}
Strings strings(const SymList& list) {
  Strings items;
  for (SymExpr e : list) items.push_back(e.str());
  return items;
}
std::string python_tuple(const Strings& items) {
  return items.size() == 1 ? fmt::format("({},)", items[0]) : fmt::format("({})", fmt::join(items, ", "));
}
std::string torch_size(const Strings& items) {
  return fmt::format("torch.Size([{}])", fmt::join(items, ", "));
}

class Checker {
 public:
  Checker(SymbolMap symbols, std::vector<MetaMismatch>& out) : symbols_(std::move(symbols)), out_(out) {}

  void check(const Node& node, const Value& value) {
    leaf_ = 0;
    check(node, node.meta, value);
  }

 private:
  void check(const Node& node, const Meta& meta, const Value& value) {
    if (const MetaTuple* tuple = meta.tuple()) {
      const auto* list = value.get<ValueList>();
      const std::size_t count = list ? list->size() : 1;
      if (count != tuple->items.size())
        return report(node, "count", std::to_string(tuple->items.size()), std::to_string(count));
      for (std::size_t i = 0; i < count; ++i) check(node, tuple->items[i], list ? (*list)[i] : value);
      return;
    }
    if (const TensorMeta* t = meta.tensor())
      if (const auto* found = value.get<Tensor>()) check(node, *t, *found);
    if (const SymExpr* e = meta.sym()) check(node, *e, value);
    ++leaf_;
  }

  void check(const Node& node, SymExpr expected, const Value& value) {
    const auto* n = value.get<std::int64_t>();
    if (n && !symbols_.bind(expected, *n))
      report(node, "value", fmt::format("{} aka {}", expected.str(), *symbols_.value(expected)), std::to_string(*n));
  }

  void check(const Node& node, const TensorMeta& meta, const Tensor& found) {
    if (meta.dtype != found.dtype)
      return report(node, "dtype", fmt::format("torch.{}", torch_name(meta.dtype)),
                    fmt::format("torch.{}", torch_name(found.dtype)));
    bool same = meta.sizes.size() == found.sizes.size();
    for (std::size_t d = 0; same && d < meta.sizes.size(); ++d) same = symbols_.bind(meta.sizes[d], found.sizes[d]);
    if (!same)
      return report(node, "sizes", fmt::format("{} aka {}", torch_size(strings(meta.sizes)), with_values(meta.sizes)),
                    torch_size(strings(found.sizes)));
    auto bind = [&](SymExpr expected, std::int64_t stride) { return symbols_.bind(expected, stride); };
    if (meta.strides_known && !same_significant_strides(found.sizes, meta.strides, found.strides, bind))
      report(node, "strides", fmt::format("{} aka {}", python_tuple(strings(meta.strides)), with_values(meta.strides)),
             python_tuple(strings(found.strides)));
  }

  std::string with_values(const SymList& list) const {
    Strings items;
    for (SymExpr e : list) {
      const auto v = symbols_.value(e);
      items.push_back(v ? std::to_string(*v) : e.str());
    }
    return python_tuple(items);
  }

  void report(const Node& node, std::string what, std::string expected, std::string found) {
    out_.push_back({node.graph().name, node.name(), origin_text(node), leaf_, std::move(what), std::move(expected),
                    std::move(found), symbols_.str()});
  }

  SymbolMap symbols_;
  std::vector<MetaMismatch>& out_;
  int leaf_ = 0;
};

}  // namespace

std::string MetaMismatch::message() const {
  if (what == "count") return fmt::format("{} != {}", expected, found);
  return fmt::format("output {} where {}: {} != {}", output, symbols, expected, found);
}

Result<DebugRun> debug_interpret(const Graph& graph, std::vector<Value> inputs, const InterpOptions& options) {
  std::unique_ptr<Graph> resolved;
  if (has_torch_calls(graph)) {
    TRY(resolved, with_aten_calls(graph));
  }
  const Graph& running = resolved ? *resolved : graph;
  TRY(SymbolMap symbols, bind_symbols(running, inputs));
  DebugRun run;
  Checker checker(std::move(symbols), run.mismatches);
  InterpOptions watched = options;
  watched.check_inputs = false;  // an input that does not match its annotation is reported as a mismatch
  watched.observer = [&](const Node& node, const Value& value) -> Status {
    checker.check(node, value);
    return options.observer ? options.observer(node, value) : Status();
  };
  TRY(run.outputs, interpret(running, std::move(inputs), watched));
  return run;
}

Diagnostic mismatch_error(const std::vector<MetaMismatch>& mismatches) {
  const MetaMismatch& first = mismatches.front();
  Diagnostic error{Fault::Differs, "interp.meta", first.message(),
                   Where{.file = {}, .line = 0, .graph = first.graph, .node = first.node, .origin = first.origin}};
  if (mismatches.size() > 1) error.message += fmt::format("; {} more mismatches follow", mismatches.size() - 1);
  for (std::size_t i = 1; i < mismatches.size(); ++i) {
    const MetaMismatch& m = mismatches[i];
    error.notes.push_back(
        fmt::format("node {}: {}{}", m.node, m.message(), m.origin.empty() ? "" : fmt::format(" (from {})", m.origin)));
  }
  return error;
}

}  // namespace partita

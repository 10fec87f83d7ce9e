#include "core/load/wrapper_memory.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>

#include "core/base/text.h"
#include "core/load/output_flow.h"
#include "core/ops/facts/shared_memory.h"

namespace partita {
namespace {

using Names = std::vector<std::string_view>;

/// "buf7" and "del buf3" of "buf7 = buf3; del buf3  # reuse".
Names statements_of(std::string_view line) {
  Names out;
  line = trimmed(line.substr(0, line.find("  # ")));
  while (!line.empty() && !line.starts_with("#")) {
    const std::size_t end = std::min(line.find("; "), line.size());
    out.push_back(trimmed(line.substr(0, end)));
    line.remove_prefix(std::min(end + 2, line.size()));
  }
  return out;
}

std::string_view unbracketed(std::string_view text) {
  return text.starts_with("(") && text.ends_with(")") ? text.substr(1, text.size() - 2) : text;
}

class MemoryReader {
 public:
  MemoryReader(const InductorCode& code, const Graph& graph) : code_(code), graph_(graph) {
    for (const InductorKernel& k : code.kernels) call_at_.emplace(k.call, &k);
  }

  Result<WrapperMemory> read() {
    const std::vector<std::string_view> lines = lines_of(code_.text);
    const auto functions = std::ranges::count_if(lines, [](auto line) { return !taken_inputs(line).empty(); });
    if (functions != 1)
      return unsupported("load.wrapper",
                         functions == 0 ? "its memory is read from a Python wrapper that takes `args`; there is none"
                                        : "its wrapper has several functions, as of branches or partitions");
    for (std::size_t i = 0; i < lines.size() && !done_; ++i) {
      line_ = static_cast<int>(i) + 1;
      if (const std::string_view taken = taken_inputs(trimmed(lines[i])); !taken.empty())
        take_inputs(taken);
      else if (inside_)
        for (const std::string_view statement : statements_of(lines[i])) read_statement(statement);
    }
    if (!done_) return unsupported("load.wrapper", "the wrapper's function has no return; its text is cut off");
    return std::move(out_);
  }

 private:
  using Held = std::vector<int>;  ///< the storages of a variable; several of a tuple

  int new_storage(std::string_view name, double bytes, const Node* node) {
    out_.storages.push_back(
        {.name = std::string(name), .node = node ? std::string(node->name()) : "", .bytes = bytes, .made = line_});
    holders_.push_back(0);
    return static_cast<int>(out_.storages.size()) - 1;
  }

  void take_inputs(std::string_view names) {
    inside_ = true;
    for (const std::string_view name : call_arguments(names)) {
      const Node* node = graph_.find(name);
      const auto bytes = node && !node->meta.sym() ? bytes_of_meta(node->meta) : std::nullopt;
      if (!bytes) {
        out_.inputs.push_back(-1);
        continue;
      }
      const int storage = new_storage(name, *bytes, node);
      out_.storages.back().is_input = true;
      out_.inputs.push_back(storage);
      assign(name, {storage});
    }
  }

  void assign(std::string_view name, Held held) {
    for (const int s : held) ++holders_[static_cast<std::size_t>(s)];
    release(name);
    variables_[name] = std::move(held);
  }

  void release(std::string_view name) {
    const auto found = variables_.find(name);
    if (found == variables_.end()) return;
    for (const int s : found->second)
      if (--holders_[static_cast<std::size_t>(s)] == 0) out_.storages[static_cast<std::size_t>(s)].freed = line_;
    variables_.erase(found);
  }

  void read_statement(std::string_view text) {
    constexpr std::string_view lets_go = "del ", gives = "return (";
    if (text.starts_with(lets_go)) {
      for (const std::string_view name : call_arguments(text.substr(lets_go.size()))) release(name);
    } else if (text.starts_with(gives)) {
      give(call_arguments(text.substr(gives.size())));
    } else if (const std::size_t is = text.find(" = "); is != std::string_view::npos && is < text.find('(')) {
      read_assignment(trimmed(text.substr(0, is)), trimmed(text.substr(is + 3)));
    }
  }

  void give(const Names& results) {
    for (const std::string_view result : results) {
      const auto held = variables_.find(variable_of(result));
      const int storage = held == variables_.end() || held->second.empty() ? -1 : held->second.front();
      out_.returned.push_back(storage);
      if (storage >= 0) out_.storages[static_cast<std::size_t>(storage)].returned = true;
    }
    for (WrapperStorage& s : out_.storages)
      if (s.freed == 0) s.freed = line_;
    done_ = true;
  }

  void read_assignment(std::string_view name, std::string_view value) {
    if (const auto same = variables_.find(variable_of(value)); same != variables_.end()) {
      assign(name, Held(same->second));
    } else if (const auto item = item_of(value)) {
      assign(name, {*item});
    } else if (value.starts_with("empty_strided")) {
      const auto bytes = bytes_of_code(call_arguments(value.substr(value.find('(') + 1)));
      if (!bytes) out_.unknown.emplace_back(value);
      assign(name, {new_storage(name, bytes.value_or(0), nullptr)});
    } else if (const auto call = call_at_.find(line_); call != call_at_.end()) {
      assign(name, results_of(name, *call->second, call_arguments(value.substr(value.find('(') + 1))));
    }
  }

  /// The storage of "buf23[1]".
  std::optional<int> item_of(std::string_view value) const {
    const std::size_t open = value.find('[');
    if (open == std::string_view::npos || !value.ends_with("]")) return std::nullopt;
    const auto tuple = variables_.find(value.substr(0, open));
    std::size_t i = 0;
    const std::string_view number = value.substr(open + 1, value.size() - open - 2);
    const auto read = std::from_chars(number.data(), number.data() + number.size(), i);
    if (tuple == variables_.end() || read.ec != std::errc() || i >= tuple->second.size()) return std::nullopt;
    return tuple->second[i];
  }

  /// What a call of an operator or a library returns: its arguments' memory, or its own.
  Held results_of(std::string_view name, const InductorKernel& kernel, const Names& arguments) {
    const Node* node = node_of(kernel);
    const bool in_place = called_operator(kernel).ends_with('_');
    if ((in_place || (node && is_view(*node))) && !arguments.empty())
      if (const auto first = variables_.find(variable_of(arguments.front())); first != variables_.end())
        return first->second;
    Held held;
    if (node)
      for (const Meta* meta : metas_of(*node))
        held.push_back(new_storage(name, meta ? bytes_of_meta(*meta).value_or(0) : 0, node));
    if (held.empty()) {
      out_.unknown.push_back(kernel.name);
      held.push_back(new_storage(name, 0, node));
    }
    return held;
  }

  /// The node that a call of an operator is, among those that its comments and mappings name.
  const Node* node_of(const InductorKernel& kernel) {
    const std::string name = called_operator(kernel);
    const std::string_view wanted = std::string_view(name).substr(std::min(name.find("::") + 2, name.size()));
    const auto fits = [&](const Node* node) {
      if (!node || !node->op()->is_call() || calls_.contains(node)) return false;
      const std::string_view brief = node->op()->brief();
      return brief.substr(0, brief.find('.')) == wanted;
    };
    for (const std::string& named : kernel.nodes)
      if (const Node* node = graph_.find(named); fits(node)) return *calls_.insert(node).first;
    for (const Node* node : graph_)
      if (fits(node)) return *calls_.insert(node).first;
    return nullptr;
  }

  /// The metas of a call's results; of several, those that the graph names. Null: not known.
  static std::vector<const Meta*> metas_of(const Node& node) {
    std::vector<const Meta*> out;
    if (const MetaTuple* tuple = node.meta.tuple()) {
      for (const Meta& item : tuple->items) out.push_back(&item);
    } else if (node.meta.known()) {
      out.push_back(&node.meta);
    } else {
      for (const Node* user : node.users()) {
        const std::int64_t* i =
            user->is(Op::getitem()) && user->args().size() > 1 ? user->args()[1].get<std::int64_t>() : nullptr;
        if (!i || *i < 0) continue;
        if (out.size() <= static_cast<std::size_t>(*i)) out.resize(static_cast<std::size_t>(*i) + 1);
        out[static_cast<std::size_t>(*i)] = &user->meta;
      }
    }
    return out;
  }

  std::optional<double> extent(const std::vector<SymExpr>& sizes, const std::vector<SymExpr>& strides) const {
    double last = 0;
    for (std::size_t d = 0; d < sizes.size(); ++d) {
      const auto size = graph_.shapes->hint(sizes[d]), stride = graph_.shapes->hint(strides[d]);
      if (!size || !stride) return std::nullopt;
      if (*size == 0) return 0;
      last += static_cast<double>(*size - 1) * static_cast<double>(*stride);
    }
    return last + 1;
  }

  std::optional<double> bytes_of_meta(const Meta& meta) const {
    const TensorMeta* t = meta.tensor();
    if (!t) return std::nullopt;
    const auto elements = extent({t->sizes.begin(), t->sizes.end()}, {t->strides.begin(), t->strides.end()});
    if (!elements) return std::nullopt;
    return *elements * static_cast<double>(itemsize(t->dtype));
  }

  /// Of "(2, s77)", "(s77, 1)", "torch.float32".
  std::optional<double> bytes_of_code(const Names& arguments) const {
    if (arguments.size() < 3) return std::nullopt;
    constexpr std::string_view torch = "torch.";
    const std::size_t at = arguments[2].find(torch);
    const auto dtype =
        at == std::string_view::npos ? std::nullopt : dtype_from_torch(arguments[2].substr(at + torch.size()));
    const auto sizes = numbers(arguments[0]), strides = numbers(arguments[1]);
    if (!dtype || !sizes || !strides || sizes->size() != strides->size()) return std::nullopt;
    const auto elements = extent(*sizes, *strides);
    if (!elements) return std::nullopt;
    return *elements * static_cast<double>(itemsize(*dtype));
  }

  static std::optional<std::vector<SymExpr>> numbers(std::string_view tuple) {
    std::vector<SymExpr> out;
    for (const std::string_view item : call_arguments(unbracketed(tuple))) {
      auto e = SymExpr::parse(item);
      if (!e) return std::nullopt;
      out.push_back(*e);
    }
    return out;
  }

  const InductorCode& code_;
  const Graph& graph_;
  std::unordered_map<int, const InductorKernel*> call_at_;  ///< by line
  std::map<std::string_view, Held> variables_;
  std::vector<int> holders_;  ///< of each storage: how many variables hold it
  std::set<const Node*> calls_;
  WrapperMemory out_;
  int line_ = 0;
  bool inside_ = false, done_ = false;
};

}  // namespace

Result<WrapperMemory> read_wrapper_memory(const InductorCode& code, const Graph& post_grad) {
  return MemoryReader(code, post_grad).read();
}

}  // namespace partita

#include "core/load/output_flow.h"

#include <algorithm>
#include <set>
#include <unordered_map>
#include <utility>

#include "core/base/text.h"
#include "core/ops/facts/shared_memory.h"

namespace partita {
namespace {

using Names = std::vector<std::string_view>;

/// "mm" of what is called.
std::string operator_of(const InductorKernel& kernel) {
  const std::string name = called_operator(kernel);
  return name.substr(std::min(name.find("::") + 2, name.size()));
}

class Flow {
 public:
  Flow(std::string_view text, const Graph& graph, std::vector<InductorKernel>& kernels)
      : lines_(lines_of(text)),
        graph_(graph),
        kernels_(kernels),
        calls_(kernels.size()),
        operator_known_(kernels.size()) {}

  void link() {
    // Code with functions of its own, as of branches or partitions, has more inputs and results than the graph's.
    if (std::ranges::count_if(lines_, [](std::string_view line) { return !taken_inputs(line).empty(); }) != 1) return;
    read();
    const std::vector<Arg> outputs = graph_.outputs();
    for (std::size_t i = 0; i < returned_.size() && i < outputs.size(); ++i)
      if (const Node* node = outputs[i].node()) know(returned_[i], memory_of(node));
    // What one call gives may tell the next.
    constexpr int most_rounds = 8;
    bool more = true;
    for (int round = 0; round < most_rounds && std::exchange(more, false); ++round)
      for (std::size_t k = 0; k < kernels_.size(); ++k) more |= know_operator(k);
    for (std::size_t k = 0; k < kernels_.size(); ++k)
      if (kernels_[k].language != "call" && kernels_[k].nodes.empty() && kernels_[k].sources.empty()) link_kernel(k);
  }

 private:
  struct Call {
    std::vector<int> reads, writes;  ///< values
  };
  struct Value {
    const Node* node = nullptr;  ///< null: not known
    int tuple = -1, item = 0;    ///< of a value with several
  };

  int new_value(const Node* node = nullptr) {
    values_.push_back({node, -1, 0});
    return static_cast<int>(values_.size()) - 1;
  }
  void know(int value, const Node* node) {
    if (value >= 0 && !values_[static_cast<std::size_t>(value)].node)
      values_[static_cast<std::size_t>(value)].node = node;
  }
  int value_of(std::string_view argument) {
    const auto found = variables_.find(variable_of(argument));
    return found == variables_.end() ? -1 : found->second;
  }

  void read() {
    std::unordered_map<int, std::size_t> at_line;
    for (std::size_t k = 0; k < kernels_.size(); ++k) at_line.emplace(kernels_[k].call, k);
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      const std::string_view line = trimmed(lines_[i]);
      constexpr std::string_view result = "return (";
      if (const auto k = at_line.find(static_cast<int>(i) + 1); k != at_line.end())
        read_call(k->second, line);
      else if (const std::string_view taken = taken_inputs(line); !taken.empty())
        for (const std::string_view name : call_arguments(taken)) variables_[name] = new_value(graph_.find(name));
      else if (line.starts_with(result) && returned_.empty() && !variables_.empty())
        for (const std::string_view item : call_arguments(line.substr(result.size())))
          returned_.push_back(value_of(item));
      else if (const std::size_t is = line.find(" = "); is != std::string_view::npos && !line.starts_with("#"))
        read_assignment(line.substr(0, is), line.substr(is + 3));
    }
  }

  void read_assignment(std::string_view name, std::string_view value) {
    value = trimmed(value.substr(0, value.find("; del ")));
    if (!name.starts_with("buf")) return;
    if (const int same = value_of(value); same >= 0) {
      variables_[name] = same;
      return;
    }
    const std::size_t item = value.find('[');
    const int made = new_value();
    if (item != std::string_view::npos)
      if (const auto tuple = variables_.find(value.substr(0, item)); tuple != variables_.end()) {
        values_[static_cast<std::size_t>(made)].tuple = tuple->second;
        values_[static_cast<std::size_t>(made)].item = std::atoi(std::string(value.substr(item + 1)).c_str());
      }
    variables_[name] = made;
  }

  void read_call(std::size_t k, std::string_view line) {
    Call& call = calls_[k];
    const std::size_t is = line.find(" = "), open = line.find('(');
    if (open == std::string_view::npos) return;
    const Names arguments = call_arguments(line.substr(open + 1));
    if (kernels_[k].language != "call") {
      const std::vector<std::string> parameters = parameters_of(kernels_[k]);
      for (std::size_t i = 0; i < arguments.size() && i < parameters.size(); ++i) {
        const std::string& parameter = parameters[i];
        const bool both = parameter.starts_with("in_out_ptr"), in = parameter.starts_with("in_ptr");
        if (both || in) call.reads.push_back(value_of(arguments[i]));
        if (!in && (both || parameter.starts_with("out_ptr"))) write(call, variable_of(arguments[i]));
      }
      return;
    }
    constexpr std::string_view out = "out=";
    for (const std::string_view argument : arguments) {
      if (argument.starts_with(out))
        write(call, variable_of(argument.substr(out.size())));
      else if (const int value = value_of(argument); value >= 0)
        call.reads.push_back(value);
    }
    if (is != std::string_view::npos && is < open) write(call, line.substr(0, is));
    if (operator_of(kernels_[k]).ends_with('_') && !arguments.empty()) write(call, variable_of(arguments.front()));
  }

  void write(Call& call, std::string_view variable) {
    const int value = new_value();
    variables_[variable] = value;
    call.writes.push_back(value);
  }

  /// The names of a kernel's parameters, in order.
  std::vector<std::string> parameters_of(const InductorKernel& kernel) const {
    std::string head;
    for (int i = kernel.begin; i >= 1 && i <= kernel.end && i <= static_cast<int>(lines_.size()); ++i) {
      const std::string_view line = lines_[static_cast<std::size_t>(i - 1)];
      const bool begins =
          (line.find("void") != std::string_view::npos && line.find("kernel(") != std::string_view::npos) ||
          (trimmed(line).starts_with("def ") && line.find("_ptr") != std::string_view::npos);
      if (head.empty() && !begins) continue;
      head += head.empty() ? line.substr(line.find('(') + 1) : line;
      if (line.find(')') != std::string_view::npos) break;
    }
    std::vector<std::string> out;
    for (std::string_view parameter : call_arguments(head)) {
      parameter = parameter.substr(0, parameter.find(" :"));
      const std::size_t name = parameter.find_last_of(" *&");
      out.emplace_back(name == std::string_view::npos ? parameter : parameter.substr(name + 1));
    }
    return out;
  }

  std::vector<const Node*> tensors_of(const Node& node) const {
    std::vector<const Node*> out;
    for (const Node* input : node.inputs())
      if (!input->meta.sym()) out.push_back(memory_of(input));
    return out;
  }

  /// How well a node fits a call of its operator: by the values that it is known to take, and by the nodes that the
  /// call's comments name. 0: nothing speaks for it, or something against it.
  std::size_t fit_of(const Node& node, std::size_t k, const std::set<std::string_view>& named) const {
    std::size_t score = named.contains(node.name()) ? 1000 : 0;
    for (const Node* input : node.inputs()) score += named.contains(input->name());
    for (const Node* user : node.users()) score += named.contains(user->name());
    const std::vector<int>& reads = calls_[k].reads;
    const std::vector<const Node*> tensors = tensors_of(node);
    if (tensors.size() != reads.size()) return score;
    for (std::size_t i = 0; i < reads.size(); ++i) {
      const Node* known = values_[static_cast<std::size_t>(reads[i])].node;
      if (known && known != tensors[i]) return 0;
      if (known) score += 10;
    }
    return score;
  }

  /// The node that a call of an operator is; null where several may be it.
  const Node* node_of_operator(std::size_t k) const {
    std::string wanted = operator_of(kernels_[k]);
    if (wanted.ends_with('_')) wanted.pop_back();  // in place, where the graph has values
    const std::set<std::string_view> named(kernels_[k].nodes.begin(), kernels_[k].nodes.end());
    const Node* best = nullptr;
    std::size_t most = 0, ties = 0;
    for (const Node* node : graph_) {
      if (!node->op()->is_call() || operators_.contains(node)) continue;
      const std::string_view name = node->op()->brief();
      if (name.substr(0, name.find('.')) != wanted) continue;
      const std::size_t score = fit_of(*node, k, named);
      if (score == 0 || score < most) continue;
      ties = score == most ? ties + 1 : 0;
      best = node;
      most = score;
    }
    return ties == 0 ? best : nullptr;
  }

  /// False where its node is not known, or was before.
  bool know_operator(std::size_t k) {
    if (kernels_[k].language != "call" || operator_known_[k]) return false;
    const Node* node = node_of_operator(k);
    if (!node) return false;
    operator_known_[k] = true;
    operators_.insert(node);
    if (std::ranges::find(kernels_[k].nodes, node->name()) == kernels_[k].nodes.end())
      kernels_[k].nodes.push_back(node->name());
    if (kernels_[k].link < InductorKernel::Link::Comments) kernels_[k].link = InductorKernel::Link::Flow;
    const Call& call = calls_[k];
    const std::vector<const Node*> tensors = tensors_of(*node);
    if (tensors.size() == call.reads.size())
      for (std::size_t i = 0; i < tensors.size(); ++i) know(call.reads[i], tensors[i]);
    if (call.writes.size() != 1) return true;
    know(call.writes.front(), node);
    for (Value& value : values_) {
      if (value.tuple != call.writes.front()) continue;
      for (const Node* user : node->users())
        if (user->is(Op::getitem()) && user->args().size() > 1 && user->args()[1] == Arg(value.item))
          if (!value.node) value.node = user;
    }
    return true;
  }

  /// Adds what leads from what is read to a node; false when it comes from elsewhere.
  bool add_between(const Node* node, const std::set<const Node*>& reads, std::set<const Node*>& found) const {
    std::vector<const Node*> open{node};
    while (!open.empty()) {
      const Node* at = open.back();
      open.pop_back();
      if (found.contains(at) || (at != node && reads.contains(at))) continue;
      if (at->meta.sym()) continue;  // a size, which is no work
      const bool of_operator =
          operators_.contains(at) || (at->is(Op::getitem()) && operators_.contains(at->inputs()[0]));
      if (at->is_placeholder() || of_operator) return false;
      found.insert(at);
      for (const Node* input : at->inputs()) open.push_back(input);
    }
    return true;
  }

  void link_kernel(std::size_t k) {
    std::set<const Node*> reads, found;
    for (const int value : calls_[k].reads)
      if (value >= 0 && values_[static_cast<std::size_t>(value)].node)
        reads.insert(values_[static_cast<std::size_t>(value)].node);
    for (const int written : calls_[k].writes) {
      const Value& value = values_[static_cast<std::size_t>(written)];
      if (value.node && !add_between(value.node, reads, found)) return;
    }
    if (found.empty()) return;
    for (const Node* node : graph_)
      if (found.contains(node)) kernels_[k].nodes.push_back(node->name());
    kernels_[k].link = InductorKernel::Link::Flow;
  }

  std::vector<std::string_view> lines_;
  const Graph& graph_;
  std::vector<InductorKernel>& kernels_;
  std::vector<Call> calls_;
  std::vector<bool> operator_known_;
  std::vector<Value> values_;
  std::unordered_map<std::string_view, int> variables_;
  std::vector<int> returned_;
  std::set<const Node*> operators_;  ///< nodes that are calls of the wrapper
};

}  // namespace

std::string called_operator(const InductorKernel& kernel) {
  const std::string_view name = kernel.name;
  if (kernel.language != "call") return kernel.name;
  const auto first = [](std::string_view dotted) { return dotted.substr(0, dotted.find('.')); };
  const auto after = [&](std::string_view prefix) { return name.substr(prefix.size()); };
  constexpr std::string_view external = "extern_kernels.", aten = "aten.", ops = "torch.ops.", own = "inductor_ops.";
  if (name == "extern_kernels.bias_addmm") return "aten::addmm";  // which it calls with a bias of one dimension
  if (name.starts_with(external)) return "aten::" + std::string(after(external));
  if (name.starts_with(aten)) return "aten::" + std::string(first(after(aten)));
  if (name.starts_with(own)) return "inductor::" + std::string(first(after(own)));
  if (!name.starts_with(ops)) return kernel.name;
  const std::string_view library = first(after(ops)), rest = after(ops).substr(library.size());
  return std::string(library) + "::" + std::string(rest.empty() ? rest : first(rest.substr(1)));
}

void link_by_flow(std::string_view text, const Graph& post_grad, std::vector<InductorKernel>& kernels) {
  Flow(text, post_grad, kernels).link();
}

std::vector<std::string_view> call_arguments(std::string_view text) {
  std::vector<std::string_view> out;
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    const char c = i < text.size() ? text[i] : ')';
    const bool closes = i == text.size() || ((c == ')' || c == ']' || c == '}') && depth-- == 0);
    depth += c == '(' || c == '[' || c == '{';
    if (!closes && !(c == ',' && depth == 0)) continue;
    if (const std::string_view item = trimmed(text.substr(begin, i - begin)); !item.empty()) out.push_back(item);
    begin = i + 1;
    if (closes) break;
  }
  return out;
}

std::string_view variable_of(std::string_view argument) {
  constexpr std::string_view view = "reinterpret_tensor(";
  while (argument.starts_with(view)) {
    const std::vector<std::string_view> inner = call_arguments(argument.substr(view.size()));
    if (inner.empty()) return {};
    argument = inner.front();
  }
  return argument;
}

std::string_view taken_inputs(std::string_view line) {
  constexpr std::string_view takes = " = args";
  return line.ends_with(takes) ? line.substr(0, line.size() - takes.size()) : std::string_view();
}

}  // namespace partita

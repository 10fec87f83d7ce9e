#include "app/tasks/profile_match.h"

#include <algorithm>
#include <cstdint>
#include <optional>

#include <nlohmann/json.hpp>

#include "core/load/output_flow.h"

namespace partita {
namespace {

using Match = ProfiledCall::Match;

/// "cpp_fused_gelu_0" of "graph_12_cpp_fused_gelu_0".
std::string_view without_graph(std::string_view name) {
  constexpr std::string_view graph = "graph_";
  if (!name.starts_with(graph)) return name;
  const std::size_t end = name.find_first_not_of("0123456789", graph.size());
  return end == std::string_view::npos || end == graph.size() || name[end] != '_' ? name : name.substr(end + 1);
}

/// "mm" of aten.mm.default.
std::string_view overload_packet(const Node& node) {
  const std::string_view name = node.op()->brief();
  return name.substr(0, name.find('.'));
}

/// What a wrapper does for itself: memory for results, and other views of it.
bool is_housekeeping(std::string_view name) {
  return name.starts_with("aten::empty") || name == "aten::as_strided" || name == "aten::view" ||
         name == "inductor::_reinterpret_tensor";
}

/// As many pairs of equal numbers in order as possible: for each of `a`, its partner in `b` or -1.
std::vector<int> in_order(const std::vector<int>& a, const std::vector<int>& b) {
  std::vector<int> partner(a.size(), -1);
  constexpr std::size_t most_cells = 16'000'000;
  const std::size_t width = b.size() + 1;
  if ((a.size() + 1) * width > most_cells) {
    std::size_t at = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
      const auto found = std::find(b.begin() + static_cast<std::ptrdiff_t>(at), b.end(), a[i]);
      if (a[i] < 0 || found == b.end()) continue;
      partner[i] = static_cast<int>(found - b.begin());
      at = static_cast<std::size_t>(partner[i]) + 1;
    }
    return partner;
  }
  std::vector<std::uint32_t> best((a.size() + 1) * width, 0);  // of a[i..] and b[j..]
  for (std::size_t i = a.size(); i-- > 0;)
    for (std::size_t j = b.size(); j-- > 0;)
      best[i * width + j] = a[i] >= 0 && a[i] == b[j] ? best[(i + 1) * width + j + 1] + 1
                                                      : std::max(best[(i + 1) * width + j], best[i * width + j + 1]);
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    if (a[i] >= 0 && a[i] == b[j]) {
      partner[i++] = static_cast<int>(j++);
    } else if (best[(i + 1) * width + j] >= best[i * width + j + 1]) {
      ++i;
    } else {
      ++j;
    }
  }
  return partner;
}

/// Events between two that were matched, with one library call between these, are that call.
void match_by_place(const std::vector<std::string>& events, const std::vector<InductorKernel>& kernels,
                    std::vector<MatchedEvent>& out) {
  const int count = static_cast<int>(kernels.size());
  for (std::size_t i = 0; i < events.size(); ++i) {
    if (out[i].kernel >= 0) continue;
    std::size_t end = i;
    while (end < events.size() && out[end].kernel < 0) ++end;
    const int before = i > 0 ? out[i - 1].kernel : -1, after = end < events.size() ? out[end].kernel : count;
    if (after - before == 2 && kernels[static_cast<std::size_t>(before + 1)].language == "call")
      for (std::size_t e = i; e < end; ++e)
        if (!is_housekeeping(events[e])) out[e] = {before + 1, Match::Place};
    i = end;
  }
}

using ProfiledSizes = std::vector<std::vector<std::int64_t>>;

/// Of the tensors that a node takes, without scalars; nullopt where they are not known, or symbols.
std::optional<ProfiledSizes> input_sizes(const Node& node) {
  ProfiledSizes out;
  for (const Node* input : node.inputs()) {
    const TensorMeta* tensor = input->meta.tensor();
    if (input->meta.sym()) continue;
    if (!tensor) return std::nullopt;
    std::vector<std::int64_t> sizes;
    for (const SymExpr& size : tensor->sizes) {
      if (!size.is_int()) return std::nullopt;
      sizes.push_back(size.as_int());
    }
    if (!sizes.empty()) out.push_back(std::move(sizes));
  }
  return out;
}

/// "[[64,64],[64,192],[],[]]"; lists within lists, of lists of tensors, are not known.
std::optional<ProfiledSizes> profiled_sizes(const std::string& dims) {
  const auto parsed = nlohmann::json::parse(dims, nullptr, false);
  if (!parsed.is_array()) return std::nullopt;
  ProfiledSizes out;
  for (const auto& of : parsed) {
    if (!of.is_array()) return std::nullopt;
    std::vector<std::int64_t> sizes;
    for (const auto& size : of) {
      if (!size.is_number_integer()) return std::nullopt;
      sizes.push_back(size.get<std::int64_t>());
    }
    if (!sizes.empty()) out.push_back(std::move(sizes));
  }
  return out;
}

}  // namespace

bool sizes_agree(const Graph& graph, const std::vector<std::string>& nodes, const std::string& operation,
                 const std::string& dims) {
  const auto found = profiled_sizes(dims);
  if (!found || found->empty()) return true;
  bool compared = false;
  for (const std::string& name : nodes) {
    const Node* node = graph.find(name);
    if (!node || !node->op()->is_call() || !operation.ends_with("::" + std::string(overload_packet(*node)))) continue;
    const auto wanted = input_sizes(*node);
    if (!wanted) return true;
    compared = true;
    // A result that is given, out=, comes last.
    if (wanted->size() <= found->size() && std::equal(wanted->begin(), wanted->end(), found->begin())) return true;
  }
  return !compared;
}

std::vector<MatchedEvent> match_events(const std::vector<std::string>& events,
                                       const std::vector<InductorKernel>& kernels) {
  std::vector<std::string> names;
  std::vector<int> of_kernel, of_event;
  for (const InductorKernel& kernel : kernels) {
    const std::string name = called_operator(kernel);
    const auto known = std::ranges::find(names, name);
    of_kernel.push_back(static_cast<int>(known - names.begin()));
    if (known == names.end()) names.push_back(name);
  }
  for (const std::string& event : events) {
    const auto known = std::ranges::find(names, without_graph(event));
    of_event.push_back(known == names.end() ? -1 : static_cast<int>(known - names.begin()));
  }
  std::vector<MatchedEvent> out(events.size());
  const std::vector<int> partners = in_order(of_event, of_kernel);
  for (std::size_t i = 0; i < events.size(); ++i)
    if (partners[i] >= 0) out[i] = {partners[i], Match::Order};
  match_by_place(events, kernels, out);
  for (std::size_t i = 0; i < events.size(); ++i) {
    if (out[i].kernel >= 0 || of_event[i] < 0 || std::ranges::count(of_kernel, of_event[i]) != 1) continue;
    out[i] = {static_cast<int>(std::ranges::find(of_kernel, of_event[i]) - of_kernel.begin()), Match::Name};
  }
  return out;
}

}  // namespace partita

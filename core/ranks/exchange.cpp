#include "core/ranks/exchange.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/ranks/job.h"

namespace partita {
namespace {

using Kind = Collective::Kind;

const char* name_of(Kind kind) {
  static constexpr const char* names[] = {"all_reduce", "all_gather", "reduce_scatter", "all_to_all",
                                          "broadcast",  "send",       "receive"};
  return names[static_cast<std::size_t>(kind)];
}

/// What goes over the wire: of a receive, what comes.
const std::vector<Tensor>& tensors_of(const Collective& c) {
  return c.kind == Kind::Receive ? c.outputs : c.inputs;
}

/// A type of which the members' splits are one each, where the call names none: equal parts of the first dimension.
Sizes splits_or_equal(const Sizes& splits, const Tensor& t, std::size_t members) {
  if (!splits.empty()) return splits;
  const std::int64_t rows = t.sizes.empty() ? 0 : t.sizes.front();
  return Sizes(members, rows / static_cast<std::int64_t>(members));
}

/// Rows of an AllToAll: all but the first dimension must be the same on all members.
Sizes row_sizes(const Tensor& t) {
  return t.sizes.empty() ? Sizes() : Sizes(t.sizes.begin() + 1, t.sizes.end());
}

/// What one part alone has wrong for a group of so many members.
std::string wrong_alone(const Collective& c, std::size_t members) {
  const auto n = static_cast<std::int64_t>(members);
  if (is_point_to_point(c)) return {};
  if (c.group_size != 0 && c.group_size != n)
    return fmt::format("the group size differs: a call says {}, and the group has {} ranks", c.group_size, n);
  if (c.kind == Kind::AllToAll) {
    for (const auto* splits : {&c.input_splits, &c.output_splits})
      if (!splits->empty() && static_cast<std::int64_t>(splits->size()) != n)
        return fmt::format("a call has {} split sizes, and the group has {} ranks", splits->size(), n);
    const auto sums = [](const Sizes& splits, const Tensor& t) {
      const std::int64_t rows = t.sizes.empty() ? 0 : t.sizes.front();
      return splits.empty() || std::accumulate(splits.begin(), splits.end(), std::int64_t{0}) == rows;
    };
    if (!sums(c.input_splits, c.inputs.front()) || !sums(c.output_splits, c.outputs.front()))
      return "the split sizes of a call do not sum to its rows";
  }
  const bool divides = c.kind == Kind::ReduceScatter || (c.kind == Kind::AllToAll && c.input_splits.empty());
  for (const Tensor& t : c.inputs)
    if (divides && (t.sizes.empty() || t.sizes.front() % n != 0))
      return fmt::format("the first dimension of a tensor of sizes [{}] cannot be divided among {} ranks",
                         fmt::join(t.sizes, ", "), n);
  return {};
}

/// What differs between two parts of one exchange.
std::string differs(const Collective& a, const Collective& b) {
  const bool between_two = is_point_to_point(a) && is_point_to_point(b);
  if (!between_two && a.kind != b.kind) return "the collectives differ";
  if (a.reduce_op != b.reduce_op) return "the reductions differ";
  const auto &x = tensors_of(a), &y = tensors_of(b);
  if (x.size() != y.size()) return "the numbers of tensors differ";
  if (!std::ranges::equal(x, y, {}, &Tensor::dtype, &Tensor::dtype)) return "the dtypes differ";
  const auto sizes = [rows_only = a.kind == Kind::AllToAll](const Tensor& t) {
    return rows_only ? row_sizes(t) : t.sizes;
  };
  if (!std::ranges::equal(x, y, {}, sizes, sizes)) return "the sizes differ";
  if (!between_two && a.root != b.root) return "the roots differ";
  return {};
}

/// Each member must take from each other one what that one sends it.
std::string differing_splits(const Exchange& e) {
  const std::size_t n = e.members.size();
  for (std::size_t from = 0; from < n; ++from)
    for (std::size_t to = 0; to < n; ++to) {
      if (!e.parts[from] || !e.parts[to]) continue;
      const std::int64_t sent = splits_or_equal(e.parts[from]->input_splits, e.parts[from]->inputs.front(), n)[to];
      const std::int64_t taken = splits_or_equal(e.parts[to]->output_splits, e.parts[to]->outputs.front(), n)[from];
      if (sent != taken)
        return fmt::format("the split sizes differ: rank {} sends {} rows to rank {}, which takes {}", e.members[from],
                           sent, e.members[to], taken);
    }
  return {};
}

}  // namespace

std::string text(const Collective& c) {
  std::vector<std::string> parts;
  if (!c.reduce_op.empty()) parts.push_back(c.reduce_op);
  for (const Tensor& t : tensors_of(c))
    parts.push_back(fmt::format("{}[{}]", short_name(t.dtype), fmt::join(t.sizes, ", ")));
  if (c.kind == Kind::Broadcast) parts.push_back(fmt::format("from rank {}", c.root));
  if (c.kind == Kind::Send) parts.push_back(fmt::format("to rank {}", c.root));
  if (c.kind == Kind::Receive) parts.push_back(fmt::format("from rank {}", c.root));
  if (is_point_to_point(c) && c.tag != 0) parts.push_back(fmt::format("tag {}", c.tag));
  if (!c.input_splits.empty()) parts.push_back(fmt::format("sends [{}] rows", fmt::join(c.input_splits, ", ")));
  if (!c.output_splits.empty()) parts.push_back(fmt::format("takes [{}] rows", fmt::join(c.output_splits, ", ")));
  if (c.group_size != 0) parts.push_back(fmt::format("{} ranks", c.group_size));
  return fmt::format("{}({})", name_of(c.kind), fmt::join(parts, ", "));
}

std::string mismatch(const Exchange& exchange) {
  const Collective* first = nullptr;
  for (const auto& part : exchange.parts) {
    if (!part) continue;
    if (std::string why = first ? differs(*first, *part) : std::string(); !why.empty()) return why;
    if (!first) first = &*part;
  }
  for (const auto& part : exchange.parts)
    if (std::string why = part ? wrong_alone(*part, exchange.members.size()) : std::string(); !why.empty()) return why;
  if (!first) return {};
  if (first->kind == Kind::Broadcast && std::ranges::find(exchange.members, first->root) == exchange.members.end())
    return fmt::format("the root, rank {}, is not in the group", first->root);
  return first->kind == Kind::AllToAll ? differing_splits(exchange) : std::string();
}

}  // namespace partita

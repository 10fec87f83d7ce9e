// Views: where each dimension of the argument goes (_view_ops.py). A view that would have to move a sharded dimension's
// elements between ranks is refused there, and here.
#include <algorithm>

#include <fmt/format.h>

#include "core/dtensor/rules.h"

namespace partita {
namespace {

/// The placements by a map from dimensions of the argument to those of the result; -1: it has no place there.
PlacedPlan mapped(const PlacedCall& c, const std::vector<int>& to) {
  const Placements& own = c.inputs.at(0).placements;
  Placements out = own;
  for (Placement& p : out) {
    if (!p.is_shard()) continue;
    if (to.at(static_cast<std::size_t>(p.dim)) < 0)
      fail_unsupported(fmt::format("a view that takes the sharded dimension {} apart", p.dim));
    p.dim = to[static_cast<std::size_t>(p.dim)];
  }
  return {{own}, std::vector(c.outputs.size(), out)};
}

std::vector<int> identity(std::size_t rank, int shift = 0) {
  std::vector<int> to;
  for (std::size_t d = 0; d < rank; ++d) to.push_back(static_cast<int>(d) + shift);
  return to;
}

PlacedPlan transpose_both(const PlacedCall& c) {
  std::vector<int> to = identity(c.inputs.at(0).whole.dim());
  std::ranges::reverse(to);
  return mapped(c, to);
}

PlacedPlan transpose(const PlacedCall& c) {
  std::vector<int> to = identity(c.inputs.at(0).whole.dim());
  if (to.empty()) return mapped(c, to);
  std::swap(to[static_cast<std::size_t>(c.dim_argument("dim0", to.size()))],
            to[static_cast<std::size_t>(c.dim_argument("dim1", to.size()))]);
  return mapped(c, to);
}

PlacedPlan permute(const PlacedCall& c) {
  const std::size_t rank = c.inputs.at(0).whole.dim();
  std::vector<int> to(rank);
  const Sizes dims = c.integers("dims");
  for (std::size_t out = 0; out < dims.size(); ++out) {
    const std::int64_t from = dims[out] < 0 ? dims[out] + static_cast<std::int64_t>(rank) : dims[out];
    to.at(static_cast<std::size_t>(from)) = static_cast<int>(out);
  }
  return mapped(c, to);
}

PlacedPlan unsqueeze(const PlacedCall& c) {
  const std::size_t rank = c.inputs.at(0).whole.dim();
  const std::int64_t dim = c.dim_argument("dim", rank + 1);
  std::vector<int> to = identity(rank);
  for (int& d : to) d += d >= dim;
  return mapped(c, to);
}

/// The dimensions that a squeeze takes away: only those that are 1 in the whole tensor, not those of which a rank has
/// one element.
std::vector<bool> squeezed_dims(const PlacedCall& c) {
  const TensorMeta& input = c.inputs.at(0).whole;
  const auto rank = static_cast<std::int64_t>(input.dim());
  std::vector<bool> goes(input.dim(), c.schema.index_of("dim") < 0);
  if (c.schema.index_of("dim") >= 0)
    for (const std::int64_t d : c.integers("dim")) goes.at(static_cast<std::size_t>(d < 0 ? d + rank : d)) = true;
  for (std::size_t d = 0; d < input.dim(); ++d) goes[d] = goes[d] && input.sizes[d].is(1);
  return goes;
}

PlacedPlan squeeze(const PlacedCall& c) {
  std::vector<int> to;
  int next = 0;
  for (const bool goes : squeezed_dims(c)) to.push_back(goes ? -1 : next++);
  return mapped(c, to);
}

Node* squeezed(Builder& build, const PlacedCall& c, const PlacedPlan&, const Args& bound) {
  std::vector<Arg> dims;
  const std::vector<bool> goes = squeezed_dims(c);
  for (std::size_t d = 0; d < goes.size(); ++d)
    if (goes[d]) dims.emplace_back(static_cast<std::int64_t>(d));
  return build.call("aten.squeeze.dims", {bound[0], Arg::list(std::move(dims))});
}

PlacedPlan expand(const PlacedCall& c) {
  const std::size_t rank = c.inputs.at(0).whole.dim(), out = c.outputs.at(0)->dim();
  return mapped(c, identity(rank, static_cast<int>(out) - static_cast<int>(rank)));
}

/// Neighbouring dimensions of the argument, and those of the result that have the same elements. Where one side has a 1
/// that the other has not, it is alone.
struct Group {
  std::vector<std::size_t> from, to;
};

std::vector<Group> groups(const Sizes& from, const Sizes& to) {
  std::vector<Group> out;
  std::size_t i = 0, j = 0;
  while (i < from.size() || j < to.size()) {
    Group group;
    std::int64_t f = 1, t = 1;
    if (i < from.size()) f = from[i], group.from.push_back(i++);
    if (j < to.size()) t = to[j], group.to.push_back(j++);
    if (f == 1 && t != 1) {
      if (!group.to.empty()) --j;
      group.to.clear();
    } else if (f != 1 && t == 1) {
      if (!group.from.empty()) --i;
      group.from.clear();
    } else {
      while (f != t) {
        if (i < from.size() && (j >= to.size() || t % f == 0 || t > f))
          f *= from[i], group.from.push_back(i++);
        else if (j < to.size())
          t *= to[j], group.to.push_back(j++);
        else
          break;
      }
    }
    out.push_back(std::move(group));
  }
  return out;
}

/// A view of sharded dimensions, mesh dimension by mesh dimension.
class View {
 public:
  explicit View(const PlacedCall& c)
      : mesh_(c.mesh),
        from_(plain_sizes(c.inputs.at(0).whole)),
        to_(plain_sizes(*c.outputs.at(0))),
        groups_(groups(from_, to_)),
        local_(from_),
        own_(c.inputs[0].placements) {
    if (std::ranges::count(from_, 0) > 0) fail_unsupported("a view of a DTensor without elements");
  }

  PlacedPlan plan() {
    Placements out = own_;
    for (std::size_t m = 0; m < own_.size(); ++m) {
      if (!own_[m].is_shard()) continue;
      const auto d = static_cast<std::size_t>(own_[m].dim);
      const auto group =
          std::ranges::find_if(groups_, [&](const Group& g) { return std::ranges::find(g.from, d) != g.from.end(); });
      if (group == groups_.end()) fail_unsupported("a view of a sharded dimension of size 1");
      const auto placement = own_[m].is_strided() ? of_pieces(*group, m) : of_whole(*group, m);
      out[m] = placement.value_or(Placement());
      if (!placement) own_[m] = Placement();
      local_[d] /= placement ? mesh_.sizes[m] : 1;
    }
    return {{own_}, {out}};
  }

 private:
  /// The result's dimensions of a group, without ones beside others.
  std::vector<std::size_t> wide(const Group& group) const {
    if (group.to.size() == 1) return group.to;
    std::vector<std::size_t> out;
    for (const std::size_t k : group.to)
      if (to_[k] != 1) out.push_back(k);
    if (out.empty()) fail_unsupported("a view that takes a sharded dimension away");
    return out;
  }

  /// Where shards go that are one piece each; nullopt: the dimension must be whole before.
  std::optional<Placement> of_whole(const Group& group, std::size_t m) const {
    const auto d = static_cast<std::size_t>(own_[m].dim);
    const std::vector<std::size_t> out = wide(group);
    const std::int64_t ranks = mesh_.sizes[m];
    const bool splits = group.to.size() > 1;
    if (splits && group.from.front() != d) return std::nullopt;
    if (group.from.back() != d && local_[d] % ranks != 0)
      fail_unsupported("a view that flattens shards of different sizes");
    if (splits && to_[out[0]] % ranks != 0)
      fail_unsupported(fmt::format("a view that splits dimension {} into parts that its {} shards cut", d, ranks));
    std::int64_t pieces = 1;
    for (const std::size_t before : group.from) {
      if (before == d) break;
      pieces *= local_[before];
    }
    if (pieces != 1 && local_[d] % ranks != 0) fail_unsupported("a view that flattens shards of different sizes");
    return Placement::shard(static_cast<int>(out[0]), pieces);
  }

  /// Where shards in pieces go: where the view splits the dimension into as many, they are one piece each again.
  std::optional<Placement> of_pieces(const Group& group, std::size_t m) const {
    const std::vector<std::size_t> out = wide(group);
    if (group.from.size() > 1) fail_unsupported("a view that flattens shards in pieces (_StridedShard)");
    if (group.to.size() == 1) return Placement::shard(static_cast<int>(out[0]), own_[m].pieces);
    std::int64_t before = 1;
    for (std::size_t i = 0; i < m; ++i)
      if (own_[i].is_shard(own_[m].dim)) before *= mesh_.sizes[i];
    std::int64_t outer = 1;
    for (const std::size_t k : out) {
      const bool fits = outer % before == 0 && outer / before == own_[m].pieces && to_[k] % mesh_.sizes[m] == 0;
      if (fits) return Placement::shard(static_cast<int>(k));
      outer *= to_[k];
    }
    fail_unsupported("a view that splits shards in pieces (_StridedShard) otherwise than they lie");
  }

  const Mesh& mesh_;
  const Sizes from_, to_;
  const std::vector<Group> groups_;
  Sizes local_;  ///< of the argument, on ranks that share all mesh dimensions that are still to come
  Placements own_;
};

PlacedPlan view(const PlacedCall& c) {
  return View(c).plan();
}

}  // namespace

const std::vector<RuleRow>& view_rules() {
  static const std::vector<RuleRow> rows = {
      {"aten.t.default", {.decide = transpose_both}},
      {"aten.transpose.int", {.decide = transpose}},
      {"aten.permute.default", {.decide = permute}},
      {"aten.unsqueeze.default", {.decide = unsqueeze}},
      {"aten.squeeze.default", {.decide = squeeze, .build = squeezed}},
      {"aten.squeeze.dim", {.decide = squeeze, .build = squeezed}},
      {"aten.squeeze.dims", {.decide = squeeze, .build = squeezed}},
      {"aten.expand.default", {.decide = expand, .sizes = "size"}},
      {"aten.view.default", {.decide = view, .sizes = "size"}},
      {"aten._unsafe_view.default", {.decide = view, .sizes = "size"}},
      {"aten.reshape.default", {.decide = view, .sizes = "shape"}},
  };
  return rows;
}

}  // namespace partita

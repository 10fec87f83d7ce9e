// Reads and prints placements and annotations; cuts sizes into shards.
#include "core/dtensor/placement.h"

#include <algorithm>
#include <charconv>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace partita {
namespace {

/// A text that is read from its begin on.
struct Cursor {
  std::string_view rest;

  bool take(std::string_view word) {
    if (!rest.starts_with(word)) return false;
    rest.remove_prefix(word.size());
    return true;
  }
  std::optional<std::int64_t> number() {
    std::int64_t n = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), n);
    if (error != std::errc()) return std::nullopt;
    rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
    return n;
  }
  /// What is before the bracket that closes the one just taken; takes that, too.
  std::optional<std::string_view> to_close() {
    int depth = 1;
    for (std::size_t i = 0; i < rest.size(); ++i) {
      if (rest[i] == '(') ++depth;
      if (rest[i] != ')' || --depth > 0) continue;
      const std::string_view inside = rest.substr(0, i);
      rest.remove_prefix(i + 1);
      return inside;
    }
    return std::nullopt;
  }
};

std::optional<Placement> take_placement(Cursor& at) {
  if (at.take("S(")) {
    const auto dim = at.number();
    if (!dim || *dim < 0 || *dim > 64 || !at.take(")")) return std::nullopt;
    return Placement::shard(static_cast<int>(*dim));
  }
  if (at.take("_S(")) {
    const auto dim = at.number();
    const auto pieces = at.take(", ") ? at.number() : std::nullopt;
    if (!dim || *dim < 0 || *dim > 64 || !pieces || *pieces < 1 || !at.take(")")) return std::nullopt;
    return Placement::shard(static_cast<int>(*dim), *pieces);
  }
  if (at.take("P(")) {
    const auto reduce = at.to_close();
    return reduce ? std::optional(Placement::partial(*reduce)) : std::nullopt;
  }
  if (at.take("MaskP(")) return at.to_close() ? std::optional(Placement::partial(masked_rows)) : std::nullopt;
  return at.take("R") ? std::optional(Placement()) : std::nullopt;
}

constexpr std::string_view annotation_begin = "DTensor(";

}  // namespace

std::string text(const Placements& placements) {
  std::string out;
  for (const Placement& p : placements)
    out += p.is_strided()   ? fmt::format("_S({}, {})", p.dim, p.pieces)
           : p.is_shard()   ? fmt::format("S({})", p.dim)
           : p.is_partial() ? fmt::format("P({})", p.reduce)
                            : std::string("R");
  return out;
}

Result<Placements> parse_placements(std::string_view text) {
  const auto refused = [&](const char* why) {
    return unsupported("dtensor.placement", fmt::format("the placements {} {}", text, why));
  };
  Placements out;
  std::vector<std::int64_t> turns;  // of the shards of each tensor dimension, in the order of mesh dimensions
  for (Cursor at{text}; !at.rest.empty();) {
    const auto placement = take_placement(at);
    if (!placement) return refused("are not Shard, Replicate or Partial");
    if (at.take("[")) {
      const auto turn = at.number();
      if (!turn || !at.take("]")) return refused("cannot be read");
      const auto before = std::ranges::count_if(out, [&](const Placement& p) { return p == *placement; });
      if (*turn != before) return refused("have their shards in another order than that of the mesh dimensions");
    }
    out.push_back(*placement);
  }
  if (out.empty()) return refused("are none");
  return out;
}

std::string text(const DTensorMeta& meta) {
  return fmt::format("{}{}, {})", annotation_begin, annotation(meta.whole), text(meta.placements));
}

bool is_dtensor(const Meta& meta) {
  const auto* opaque = std::get_if<OpaqueMeta>(&meta.v);
  return opaque && opaque->text.starts_with(annotation_begin);
}

Result<std::optional<DTensorMeta>> dtensor_meta(const Meta& meta) {
  if (!is_dtensor(meta)) return std::optional<DTensorMeta>();
  const std::string& whole = std::get<OpaqueMeta>(meta.v).text;
  std::string_view text = whole;
  text.remove_prefix(annotation_begin.size());
  if (text.ends_with(')')) text.remove_suffix(1);
  // The tensor's own text has commas, too: the placements are what follows the first one behind which there is a
  // tensor.
  for (std::size_t comma = text.find(", "); comma != text.npos; comma = text.find(", ", comma + 1)) {
    const auto tensor = parse_annotation(text.substr(0, comma));
    if (!tensor || !tensor->tensor()) continue;
    if (!concrete(tensor->tensor()->sizes))
      return unsupported("dtensor.dynamic", fmt::format("{} has symbolic sizes", whole));
    TRY(Placements placements, parse_placements(text.substr(comma + 2)));
    for (const Placement& p : placements)
      if (p.is_shard() && static_cast<std::size_t>(p.dim) >= tensor->tensor()->dim())
        return input_error("dtensor.placement", fmt::format("{} shards a dimension that it does not have", whole));
    return std::optional(DTensorMeta{*tensor->tensor(), std::move(placements)});
  }
  return unsupported("dtensor.placement", fmt::format("{} cannot be read as a DTensor", whole));
}

std::int64_t Mesh::coordinate(std::size_t dim) const {
  std::int64_t inner = 1;
  for (std::size_t i = dim + 1; i < sizes.size(); ++i) inner *= sizes[i];
  return rank / inner % sizes[dim];
}

std::string Mesh::group(std::size_t dim) const {
  if (sizes.size() == 1) return "0";
  std::int64_t inner = 1;
  for (std::size_t i = dim + 1; i < sizes.size(); ++i) inner *= sizes[i];
  const std::int64_t first = rank - coordinate(dim) * inner;
  Sizes members;
  for (std::int64_t i = 0; i < sizes[dim]; ++i) members.push_back(first + i * inner);
  return fmt::format("[{}]", fmt::join(members, ", "));
}

std::string text(const Mesh& mesh) {
  return fmt::format("{}@{}", fmt::join(mesh.sizes, ","), mesh.rank);
}

Status check_mesh(const Sizes& sizes) {
  constexpr std::size_t most_dims = 8;  // each mesh dimension multiplies the placements that are weighed
  constexpr std::int64_t most_ranks = 1 << 20;
  std::int64_t left = most_ranks;
  for (const std::int64_t size : sizes) left /= std::max<std::int64_t>(size, 1);
  if (sizes.size() <= most_dims && left > 0) return {};
  return input_error("dtensor.mesh", fmt::format("a mesh of {} dimensions with {} ranks; at most {} dimensions and {} "
                                                 "ranks are followed",
                                                 sizes.size(), fmt::join(sizes, " by "), most_dims, most_ranks));
}

Result<Mesh> parse_mesh(std::string_view text) {
  Mesh mesh;
  Cursor at{text};
  do {
    const auto size = at.number();
    if (!size || *size < 1) return input_error("dtensor.mesh", fmt::format("no mesh: {}", text));
    mesh.sizes.push_back(*size);
  } while (at.take(","));
  TRY_DO(check_mesh(mesh.sizes));
  const auto rank = at.take("@") ? at.number() : std::nullopt;
  if (!rank || *rank < 0 || *rank > 1 << 20 || !at.rest.empty())
    return input_error("dtensor.mesh", fmt::format("no mesh: {}", text));
  mesh.rank = static_cast<int>(*rank);
  return mesh;
}

Part part_of(std::int64_t size, std::int64_t parts, std::int64_t coordinate) {
  const std::int64_t full = (size + parts - 1) / parts;
  const std::int64_t begin = std::min(size, full * coordinate);
  return {begin, std::min(size, begin + full) - begin};
}

Sizes plain_sizes(const TensorMeta& meta) {
  Sizes out;
  for (const SymExpr& e : meta.sizes) out.push_back(e.as_int());
  return out;
}

TensorMeta local_meta(const TensorMeta& whole, const Placements& placements, const Mesh& mesh) {
  Sizes sizes = plain_sizes(whole);
  for (std::size_t i = 0; i < placements.size(); ++i)
    if (placements[i].is_shard()) {
      std::int64_t& size = sizes[static_cast<std::size_t>(placements[i].dim)];
      size = part_of(size, mesh.sizes[i], mesh.coordinate(i)).size;
    }
  TensorMeta out = whole;
  out.sizes = SymList(sizes.begin(), sizes.end());
  out.strides = contiguous_strides(out.sizes);
  out.offset = 0;
  if (!whole.strides_known || !concrete(whole.strides)) return out;
  // Innermost first: by the whole's strides, of equal ones the later dimension.
  std::vector<std::size_t> order(sizes.size());
  std::iota(order.rbegin(), order.rend(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t d) { return whole.strides[d].as_int(); });
  std::int64_t stride = 1;
  for (const std::size_t d : order) {
    out.strides[d] = stride;
    stride *= std::max<std::int64_t>(sizes[d], 1);
  }
  return out;
}

}  // namespace partita

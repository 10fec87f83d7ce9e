#pragma once
// How the ranks of a device mesh hold a DTensor, and the meshes.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/ir/meta.h"
#include "core/tensor/tensor.h"

namespace partita {

/// What the ranks of one mesh dimension hold of a tensor: all of it, a part of a dimension each, or values that give
/// the tensor once they are reduced.
struct Placement {
  enum class Kind : unsigned char { Replicate, Shard, Partial };

  Kind kind = Kind::Replicate;
  int dim = 0;              ///< Shard: the tensor's dimension, from 0
  std::string reduce = {};  ///< Partial: "sum", "avg", ...; masked_rows
  /// Shard: the dimension is that many equal pieces, of each of which a rank has a part (_StridedShard), as where a
  /// view flattened a sharded dimension into one before it; 1: a rank's part is one piece.
  std::int64_t pieces = 1;

  static Placement shard(int dim, std::int64_t pieces = 1) { return {Kind::Shard, dim, {}, pieces}; }
  static Placement partial(std::string_view reduce) { return {Kind::Partial, 0, std::string(reduce)}; }
  bool is_shard() const { return kind == Kind::Shard; }
  bool is_strided() const { return is_shard() && pieces != 1; }
  bool is_shard(int of) const { return is_shard() && dim == of; }
  bool is_partial() const { return kind == Kind::Partial; }
  bool is_replicate() const { return kind == Kind::Replicate; }
  bool operator==(const Placement&) const = default;
};
using Placements = std::vector<Placement>;  ///< one for each mesh dimension

/// The reduction of what an embedding gives whose rows are sharded (MaskPartial): a sum, in which a rank that does not
/// have a row has zeros.
constexpr std::string_view masked_rows = "masked rows";

std::string text(const Placements& placements);  ///< "S(0)", "RP(sum)", "_S(0, 2)"
/// Reads "S(0)R", also with the order of shards that PyTorch prints: "S(0)[0]S(0)[1]". Error dtensor.placement: it is
/// something else, or shards in another order.
Result<Placements> parse_placements(std::string_view text);

/// The annotation of a DTensor: DTensor(f32[4, 128][128, 1]cpu, S(1)).
struct DTensorMeta {
  TensorMeta whole;  ///< of the whole tensor
  Placements placements;
};
/// Nullopt: the meta is not that of a DTensor. Error dtensor.placement, dtensor.dynamic (a size is a symbol).
Result<std::optional<DTensorMeta>> dtensor_meta(const Meta& meta);
std::string text(const DTensorMeta& meta);
/// Is it the annotation of a DTensor, readable or not?
bool is_dtensor(const Meta& meta);

/// A device mesh, seen from one of its ranks. It has all ranks of the job, in order.
struct Mesh {
  Sizes sizes;
  int rank = 0;

  std::size_t dims() const { return sizes.size(); }
  std::int64_t coordinate(std::size_t dim) const;
  /// The group of the ranks that differ from this one in the mesh dimension only: "0" is the world, others list theirs.
  std::string group(std::size_t dim) const;
  bool operator==(const Mesh&) const = default;
};
/// Is it a mesh that is followed: of at most 8 dimensions, of at most 2^20 ranks? A size of 0 is not known yet. Error
/// dtensor.mesh.
Status check_mesh(const Sizes& sizes);
std::string text(const Mesh& mesh);              ///< "2,2@3": rank 3 of a mesh of 2 by 2
Result<Mesh> parse_mesh(std::string_view text);  ///< as text() writes it. Error dtensor.mesh

/// The shard of the coordinate when a dimension of that size is cut into `parts` as torch.chunk does: where it begins,
/// and its size, which may be 0.
struct Part {
  std::int64_t begin = 0, size = 0;
};
Part part_of(std::int64_t size, std::int64_t parts, std::int64_t coordinate);
/// What the mesh's rank has of a tensor. Dense, in the order of the whole's strides.
TensorMeta local_meta(const TensorMeta& whole, const Placements& placements, const Mesh& mesh);

Sizes plain_sizes(const TensorMeta& meta);  ///< precondition: they are numbers

}  // namespace partita

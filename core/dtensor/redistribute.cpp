// As torch/distributed/tensor/placement_types.py: what is sent is padded to equal shards, gathered and scattered along
// the first dimension, and exchanged by an all_to_all, or on a CPU, whose gloo has none, by a gather.
#include <fmt/format.h>

#include "core/dtensor/choose.h"

namespace partita {
namespace {

/// One step, seen from a rank.
struct Exchange {
  Builder& b;
  const Mesh& mesh;
  const RedistributeStep& step;

  std::int64_t ranks() const { return mesh.sizes[step.mesh_dim]; }
  std::int64_t coordinate() const { return mesh.coordinate(step.mesh_dim); }
  std::string group() const { return mesh.group(step.mesh_dim); }

  static std::int64_t size(const Node* x, std::int64_t dim) {
    return Builder::tensor(Arg(const_cast<Node*>(x))).sizes[static_cast<std::size_t>(dim)].as_int();
  }
  Node* slice(Node* x, std::int64_t dim, std::int64_t begin, std::int64_t end) const {
    return b.call("aten.slice.Tensor", {x, dim, begin, end});
  }
  Node* cat(const std::vector<Node*>& parts, std::int64_t dim) const {
    std::vector<Arg> items(parts.begin(), parts.end());
    return b.call("aten.cat.default", {Arg::list(std::move(items)), dim});
  }
  Node* dense(Node* x) const {
    return is_dense(x) ? x : b.call("aten.clone.default", {x}, {{"memory_format", MemoryFormat::Contiguous}});
  }
  static bool is_dense(Node* x) {
    const TensorMeta& meta = Builder::tensor(x);
    return meta.strides == contiguous_strides(meta.sizes);
  }
  Node* wait(Node* started) const { return b.call("_c10d_functional.wait_tensor.default", {started}); }

  /// With zeros at the end of the dimension, up to that size.
  Node* padded(Node* x, std::int64_t dim, std::int64_t to) const {
    const std::int64_t missing = to - size(x, dim);
    if (missing == 0) return x;
    const auto rank = static_cast<std::int64_t>(Builder::tensor(x).dim());
    std::vector<Arg> pads(static_cast<std::size_t>(2 * (rank - dim)), Arg(0));
    pads.back() = missing;
    return b.call("aten.constant_pad_nd.default", {x, Arg::list(std::move(pads)), 0.0});
  }
  Node* cut(Node* x, std::int64_t dim, std::int64_t to) const { return size(x, dim) == to ? x : slice(x, dim, 0, to); }
  /// The parts of a dimension whose size the number of ranks divides.
  std::vector<Node*> chunks(Node* x, std::int64_t dim) const {
    const std::int64_t part = size(x, dim) / ranks();
    std::vector<Node*> out;
    for (std::int64_t i = 0; i < ranks(); ++i) out.push_back(slice(x, dim, i * part, (i + 1) * part));
    return out;
  }
  std::int64_t logical(std::int64_t dim) const { return step.logical[static_cast<std::size_t>(dim)]; }
  std::int64_t full_part(std::int64_t dim) const { return (logical(dim) + ranks() - 1) / ranks(); }

  Node* gathered(Node* x, std::int64_t dim) const {
    x = dense(padded(x, dim, full_part(dim)));
    Node* all = wait(b.call("_c10d_functional.all_gather_into_tensor.default", {x, ranks(), group()}));
    if (dim != 0) all = cat(chunks(all, 0), dim);
    return dense(cut(all, dim, logical(dim)));
  }

  Node* reduced(Node* x, const std::string& op) const {
    return wait(b.call("_c10d_functional.all_reduce.default", {x, op, group()}));
  }

  /// The sizes of the tensor to scatter are its own: those that the ranks have together along other mesh dimensions.
  Node* scattered(Node* x, const std::string& op, std::int64_t dim) const {
    const std::int64_t all = size(x, dim);
    if (all % ranks() != 0) {
      const std::int64_t full = (all + ranks() - 1) / ranks();
      std::vector<Node*> parts;
      for (std::int64_t i = 0; i < ranks(); ++i) {
        const Part part = part_of(all, ranks(), i);
        parts.push_back(padded(slice(x, dim, part.begin, part.begin + part.size), dim, full));
      }
      x = cat(parts, dim);
    }
    if (dim != 0) x = cat(chunks(x, dim), 0);
    Node* own = wait(b.call("_c10d_functional.reduce_scatter_tensor.default", {dense(x), op, ranks(), group()}));
    return cut(own, dim, part_of(all, ranks(), coordinate()).size);
  }

  Node* part(Node* x, std::int64_t dim) const {
    const Part own = part_of(size(x, dim), ranks(), coordinate());
    Node* view = slice(x, dim, own.begin, own.begin + own.size);
    return b.call("aten.clone.default", {view});
  }

  Node* moved(Node* x, std::int64_t from, std::int64_t to) const {
    const std::int64_t parts = full_part(to);
    x = padded(dense(padded(x, from, full_part(from))), to, parts * ranks());
    if (Builder::tensor(x).device.type == DeviceType::Cpu) {
      Node* all = wait(b.call("_c10d_functional.all_gather_into_tensor.default", {dense(x), ranks(), group()}));
      if (from != 0) all = cat(chunks(all, 0), from);
      x = dense(slice(all, to, coordinate() * parts, (coordinate() + 1) * parts));
    } else {
      Node* sent = dense(cat(chunks(x, to), 0));
      const std::int64_t rows = size(sent, 0) / ranks();
      const Arg equal = Arg::list(std::vector<Arg>(static_cast<std::size_t>(ranks()), Arg(rows)));
      Node* got = wait(b.call("_c10d_functional.all_to_all_single.default", {sent, equal, equal, group()}));
      x = dense(cat(chunks(got, 0), from));
    }
    x = cut(x, from, logical(from));
    return cut(x, to, part_of(logical(to), ranks(), coordinate()).size);
  }

  Node* divided(Node* x, const std::string& reduce) const {
    if (reduce == "avg" || reduce == "min" || reduce == "max") return x;
    const DType dtype = Builder::tensor(x).dtype;
    if (reduce != "sum" || !(is_floating(dtype) || is_complex(dtype)))
      fail_unsupported(fmt::format("a replicated tensor made Partial({}) in {}", reduce, torch_name(dtype)));
    return b.call("aten.div.Tensor", {x, ranks()});
  }

  Node* done(Node* x) const {
    const std::string op = step.from.reduce == masked_rows ? "sum" : step.from.reduce;
    const bool to_shard = step.to.is_shard();
    if (step.from.is_strided() || step.to.is_strided())
      fail_unsupported(fmt::format("redistribution from {} to {}", text({step.from}), text({step.to})));
    if (ranks() == 1) return x;
    if (step.from.is_partial() && !step.to.is_partial())
      return to_shard ? scattered(x, op, step.to.dim) : reduced(x, op);
    if (step.from.is_shard() && step.to.is_replicate()) return gathered(x, step.from.dim);
    if (step.from.is_shard() && to_shard) return moved(x, step.from.dim, step.to.dim);
    if (step.from.is_replicate() && to_shard) return part(x, step.to.dim);
    if (step.from.is_replicate()) return divided(x, step.to.reduce);
    fail_unsupported(fmt::format("redistribution from {} to {}", text({step.from}), text({step.to})));
  }
};

}  // namespace

Node* redistribute(Builder& build, Node* local, const TensorMeta& whole, const Placements& from, const Placements& to,
                   const Mesh& mesh) {
  for (const RedistributeStep& step : redistribute_steps(plain_sizes(whole), from, to, mesh))
    local = Exchange{build, mesh, step}.done(local);
  return local;
}

}  // namespace partita

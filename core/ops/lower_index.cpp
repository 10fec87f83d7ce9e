#include "core/ops/lowerings.h"
#include "core/ops/promote.h"

namespace partita::loops {
namespace {

using Write = Definition::Write;

/// How indices that are read from memory are brought into the range of a dimension.
struct Reach {
  Bound bound;
  bool checked = true;  ///< an index out of range is an error; else it is clamped, and its element is not used

  Reach(const LowerCall& call, std::size_t dim, std::int64_t size, bool wraps, bool checked = true)
      : bound{call.to.origin, "dimension " + std::to_string(dim), size, wraps}, checked(checked) {
    // The call stays a call, which reports an index that is out of range.
    if (size == 0) fail_unsupported("indices into a dimension of size 0");
  }

  /// The index as an expression. Its value is always in range, so a kernel never touches memory outside of the tensor.
  SymExpr position(Body& body, const LoweredTensor& index, const Index& at) const {
    ScalarBuilder& b = body.b;
    Scalar i = b.cast(body.read(index, at), DType::Int64);
    Scalar zero = b.constant_int(DType::Int64, 0);
    if (bound.wraps) i = b.where(b.Lt(i, zero), b.Add(i, b.constant_int(DType::Int64, bound.size)), i);
    if (checked) return body.indirect(b.within(i, bound), bound.size);
    return body.indirect(b.Max(b.Min(i, b.constant_int(DType::Int64, bound.size - 1)), zero), bound.size);
  }
};

LoweredTensor integer_index(LowerCall& call, std::string_view name) {
  LoweredTensor index = call.in(name);
  if (!is_integral(index.dtype)) fail_unsupported("an index of " + std::string(torch_name(index.dtype)));
  return index;
}

/// self[indices]: maps an index of the result to one of self. By NumPy's rule the indexed dimensions take the place of
/// the first one when they are adjacent, else they come first.
struct Advanced {
  LoweredTensor self;
  /// By dimension of self, broadcast to one size; invalid for a dimension taken whole.
  std::vector<LoweredTensor> indices;
  std::vector<Reach> reaches;  ///< of the valid indices
  Sizes common;
  std::size_t front = 0;  ///< the number of the result's dimensions before the indexed ones
  Sizes sizes;            ///< of the result

  Advanced(LowerCall& call, std::string_view name, bool checked = true)
      : self(call.in("self")), indices(call.ins(name)) {
    indices.resize(self.dim());
    for (const LoweredTensor& t : indices)
      if (t.valid()) {
        if (!is_integral(t.dtype) || t.dtype == DType::UInt8)
          fail_unsupported("an index of " + std::string(torch_name(t.dtype)));
        common = broadcast_sizes(common, t.sizes);
      }
    std::size_t first = 0, last = 0, count = 0;
    for (std::size_t d = 0; d < indices.size(); ++d)
      if (indices[d].valid()) {
        if (count++ == 0) first = d;
        last = d;
        indices[d] = call.to.expand(indices[d], common);
        reaches.emplace_back(call, d, self.sizes[d], true, checked);
      }
    front = count > 0 && last - first + 1 == count ? first : 0;
    for (std::size_t d = 0; d < indices.size(); ++d)
      if (!indices[d].valid()) sizes.push_back(self.sizes[d]);
    sizes.insert(sizes.begin() + static_cast<std::ptrdiff_t>(front), common.begin(), common.end());
  }

  Index source(Body& body, const Index& i) const {
    auto begin = i.begin() + static_cast<std::ptrdiff_t>(front);
    Index within(begin, begin + static_cast<std::ptrdiff_t>(common.size())), at;
    std::size_t next = 0, reach = 0;
    for (std::size_t d = 0; d < indices.size(); ++d) {
      if (indices[d].valid()) {
        at.push_back(reaches[reach++].position(body, indices[d], within));
        continue;
      }
      at.push_back(i[next < front ? next : next + common.size()]);
      ++next;
    }
    return at;
  }
};

Write whole(const LoweredTensor& t) {
  return {t.sizes, [t](Body& body, const Index& i) { return body.read(t, i); },
          [](Body&, const Index& i) { return i; }};
}

/// `self` with values written (or added) at the indices; where `mask` is valid and false, 0 is written instead.
void give_put(LowerCall& call, const LoweredTensor& mask, bool accumulate) {
  auto put = std::make_shared<Advanced>(call, "indices", !mask.valid());
  LoweredTensor values = call.to.expand(call.to.cast(call.in("values"), put->self.dtype), put->sizes);
  LoweredTensor keep = mask.valid() ? call.to.expand(mask, put->sizes) : mask;
  Write write{put->sizes,
              [=](Body& body, const Index& i) {
                Scalar v = body.read(values, i);
                return keep.valid() ? body.b.where(body.read(keep, i), v, body.b.constant(values.dtype, 0)) : v;
              },
              [put](Body& body, const Index& i) { return put->source(body, i); }, accumulate, true};
  call.give(call.to.writes(put->self.dtype, put->self.sizes, {whole(put->self), std::move(write)}));
}

/// Half types accumulate in float32 and are rounded once, as in PyTorch's kernel.
void give_scatter(LowerCall& call, ElementFunction value, bool accumulate) {
  LoweredTensor self = call.in("self"), index = integer_index(call, "index");
  if (const DType wide = arithmetic_dtype(self.dtype); accumulate && wide != self.dtype) {
    self = call.to.cast(self, wide);
    value = [value, wide](Body& body, const Index& i) { return body.b.cast(value(body, i), wide); };
  }
  std::vector<Write> writes{whole(self)};
  if (index.numel() > 0) {
    if (index.dim() == 0 || index.dim() != self.dim()) fail_unsupported("scatter with a 0-dim tensor");
    std::size_t dim = call.dim("dim", self.dim());
    Reach reach(call, dim, self.sizes[dim], false);
    writes.push_back({index.sizes, std::move(value),
                      [=](Body& body, const Index& i) {
                        Index at = i;
                        at[dim] = reach.position(body, index, i);
                        return at;
                      },
                      accumulate, true});
  }
  call.give(call.to.writes(self.dtype, self.sizes, std::move(writes)));
}

ElementFunction source_value(LowerCall& call) {
  LoweredTensor src = call.in("src");
  return [src, dtype = call.out().dtype](Body& body, const Index& i) { return body.b.cast(body.read(src, i), dtype); };
}

}  // namespace

Status lower_embedding(LowerCall& call) {
  LoweredTensor weight = call.in("weight"), indices = integer_index(call, "indices");
  Reach reach(call, 0, weight.sizes[0], false);
  call.give(call.to.map(weight.dtype, call.out_sizes(), [=](Body& body, const Index& i) {
    Index at(i.begin(), i.end() - 1);
    return body.read(weight, {reach.position(body, indices, at), i.back()});
  }));
  return {};
}

Status lower_embedding_backward(LowerCall& call) {
  LoweredTensor grad = call.in("grad_output"), indices = integer_index(call, "indices");
  // The indices may have any rank; each stands for one row of the gradient.
  indices = call.to.reshape(indices, {indices.numel()});
  grad = call.to.reshape(grad, {indices.numel(), call.out_sizes()[1]});
  if (call.boolean("scale_grad_by_freq")) fail_unsupported("gradients scaled by frequency");
  std::int64_t rows = call.integer("num_weights"), padding = call.integer("padding_idx");
  Reach reach(call, 0, rows, false);
  LoweredTensor zero = call.to.constant(grad.dtype, call.out_sizes(), 0);
  Write add{grad.sizes,
            [=](Body& body, const Index& i) {
              Scalar g = body.read(grad, i);
              if (padding < 0) return g;
              Scalar index = body.b.cast(body.read(indices, Index(i.begin(), i.end() - 1)), DType::Int64);
              return body.b.where(body.b.Eq(index, body.b.constant_int(DType::Int64, padding)),
                                  body.b.constant(grad.dtype, 0), g);
            },
            [=](Body& body, const Index& i) {
              return Index{reach.position(body, indices, Index(i.begin(), i.end() - 1)), i.back()};
            },
            true, true};
  call.give(call.to.writes(grad.dtype, zero.sizes, {whole(zero), std::move(add)}));
  return {};
}

Status lower_index_select(LowerCall& call) {
  LoweredTensor self = call.in("self"), index = integer_index(call, "index");
  if (self.dim() == 0) fail_unsupported("index_select of a 0-dim tensor");
  std::size_t dim = call.dim("dim", self.dim());
  Reach reach(call, dim, self.sizes[dim], false);
  call.give(call.to.map(self.dtype, call.out_sizes(), [=](Body& body, const Index& i) {
    Index at = i;
    at[dim] = reach.position(body, index, index.dim() == 0 ? Index() : Index{i[dim]});
    return body.read(self, at);
  }));
  return {};
}

Status lower_gather(LowerCall& call) {
  LoweredTensor self = call.in("self"), index = integer_index(call, "index");
  if (index.numel() == 0) {  // an empty index may have any rank
    call.give(call.to.constant(self.dtype, index.sizes, 0));
    return {};
  }
  if (index.dim() == 0 || index.dim() != self.dim()) fail_unsupported("gather with a 0-dim tensor");
  std::size_t dim = call.dim("dim", self.dim());
  Reach reach(call, dim, self.sizes[dim], false);
  call.give(call.to.map(self.dtype, index.sizes, [=](Body& body, const Index& i) {
    Index at = i;
    at[dim] = reach.position(body, index, i);
    return body.read(self, at);
  }));
  return {};
}

Status lower_index(LowerCall& call) {
  auto taken = std::make_shared<Advanced>(call, "indices");
  call.give(call.to.map(taken->self.dtype, taken->sizes, [taken](Body& body, const Index& i) {
    return body.read(taken->self, taken->source(body, i));
  }));
  return {};
}

Status lower_masked_index(LowerCall& call) {
  auto taken = std::make_shared<Advanced>(call, "indices", false);
  LoweredTensor mask = call.to.expand(call.to.cast(call.in("mask"), DType::Bool), taken->sizes);
  double fill = as_double(call.number("fill"));
  call.give(call.to.map(taken->self.dtype, taken->sizes, [=](Body& body, const Index& i) {
    Scalar v = body.read(taken->self, taken->source(body, i));
    return body.b.where(body.read(mask, i), v, body.b.constant(taken->self.dtype, fill));
  }));
  return {};
}

Status lower_index_put(LowerCall& call) {
  return give_put(call, {}, call.boolean("accumulate")), Status();
}
Status lower_masked_index_put(LowerCall& call) {
  return give_put(call, call.to.cast(call.in("mask"), DType::Bool), true), Status();
}

Status lower_scatter(LowerCall& call) {
  if (call.schema.index_of("src") >= 0) return give_scatter(call, source_value(call), false), Status();
  double value = as_double(call.number("value"));
  give_scatter(
      call, [value, dtype = call.out().dtype](Body& body, const Index&) { return body.b.constant(dtype, value); },
      false);
  return {};
}

Status lower_scatter_add(LowerCall& call) {
  return give_scatter(call, source_value(call), true), Status();
}

}  // namespace partita::loops

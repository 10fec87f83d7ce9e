#include <algorithm>

#include "core/ops/families/lower_place.h"
#include "core/ops/families/view_parts.h"
#include "core/ops/record/lower_call.h"
#include "core/ops/record/promote.h"

namespace partita::loops {
namespace {

/// A view whose index differs from the result's in dimension `dim`, where it is start + step * i.
LoweredTensor narrow(Lowering& to, const LoweredTensor& t, std::size_t dim, SymExpr start, SymExpr size,
                     std::int64_t step = 1) {
  SymList sizes = t.sizes;
  sizes[dim] = size;
  return to.view(t, sizes, [=](Body&, const Index& i) {
    Index at = i;
    at[dim] = i[dim] * step + start;
    return at;
  });
}

LoweredTensor permuted(Lowering& to, const LoweredTensor& t, const std::vector<std::size_t>& order) {
  SymList sizes;
  for (std::size_t d : order) sizes.push_back(t.sizes[d]);
  return to.view(t, sizes, [order](Body&, const Index& i) {
    Index at(i.size(), 0);
    for (std::size_t d = 0; d < order.size(); ++d) at[order[d]] = i[d];
    return at;
  });
}

void give_parts(LowerCall& call, const LoweredTensor& self, std::size_t dim, const SymList& parts) {
  SymExpr start = 0;
  for (SymExpr size : parts) {
    call.give(narrow(call.to, self, dim, start, size));
    start = start + size;
  }
}

}  // namespace

void lower_alias(LowerCall& call) {
  LoweredTensor self = call.in(call.schema.args[0].name);
  call.give(call.to.view(self, self.sizes, [](Body&, const Index& i) { return i; }));
}

void lower_reshape(LowerCall& call) {
  call.give(call.in("self"));
}

void lower_expand(LowerCall& call) {
  call.give(call.to.expand(call.in("self"), call.out_sizes()));
}

void lower_permute(LowerCall& call) {
  LoweredTensor self = call.in("self");
  std::vector<std::size_t> order;
  for (std::int64_t d : call.integers("dims")) order.push_back(wrap_dim(d, self.dim()));
  call.give(permuted(call.to, self, order));
}

void lower_t(LowerCall& call) {
  LoweredTensor self = call.in("self");
  call.give(self.dim() < 2 ? self : permuted(call.to, self, {1, 0}));
}

void lower_transpose(LowerCall& call) {
  LoweredTensor self = call.in("self");
  if (self.dim() == 0) return call.give(self);
  std::vector<std::size_t> order(self.dim());
  for (std::size_t d = 0; d < order.size(); ++d) order[d] = d;
  std::swap(order[call.dim("dim0", self.dim())], order[call.dim("dim1", self.dim())]);
  call.give(permuted(call.to, self, order));
}

void lower_select(LowerCall& call) {
  LoweredTensor self = call.in("self");
  std::size_t dim = call.dim("dim", self.dim());
  SymExpr index = call.sym("index");
  if (call.test(sym_lt(index, 0), "a place from the end")) index = index + self.sizes[dim];
  call.give(narrow(call.to, self, dim, index, 1));
}

void lower_slice(LowerCall& call) {
  LoweredTensor self = call.in("self");
  std::size_t dim = call.dim("dim", self.dim());
  const SymExpr start = slice_place(call, "start", 0, self.sizes[dim]);
  call.give(narrow(call.to, self, dim, start, call.out_sizes()[dim], call.integer("step")));
}

void lower_split(LowerCall& call) {
  LoweredTensor self = call.in("self");
  std::size_t dim = call.dim("dim", self.dim());
  const SymExpr each = call.sym("split_size"), size = self.sizes[dim];
  SymList parts;
  SymExpr start = 0;
  while (parts.empty() || call.test(sym_lt(start, size), "the number of parts")) {
    parts.push_back(call.test(sym_le(each, size - start), "a whole part") ? each : size - start);
    start = start + each;
  }
  give_parts(call, self, dim, parts);
}

void lower_split_sizes(LowerCall& call) {
  LoweredTensor self = call.in("self");
  give_parts(call, self, call.dim("dim", self.dim()), call.to.plain(call.syms("split_sizes")));
}

void lower_unbind(LowerCall& call) {
  LoweredTensor self = call.in("self");
  std::size_t dim = call.dim("dim", self.dim());
  give_parts(call, self, dim, SymList(static_cast<std::size_t>(call.to.number(self.sizes[dim])), 1));
}

/// Only a row-major tensor is lowered. For others the strides of `self` would have to be inverted.
void lower_as_strided(LowerCall& call) {
  LoweredTensor self = call.in("self");
  const TensorMeta& meta = call.tensor("self");
  const SymExpr offset = call.has("storage_offset") ? call.sym("storage_offset") : meta.offset;
  if (!is_contiguous(call, meta.sizes, meta.strides) || !meta.offset.is(0))
    fail_unsupported("as_strided of a tensor that is not row-major");
  const SymList strides = call.syms("stride"), sizes = call.out_sizes();
  SymExpr reached = offset + 1;
  bool possible = !call.test(sym_lt(offset, 0), "a place within the tensor");
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    possible = possible && !call.test(sym_lt(strides[d], 0), "strides from the start to the end");
    reached = reached + (sizes[d] - 1) * strides[d];
  }
  if (product(sizes).is(0)) reached = offset;
  // Whether the storage reaches further than the tensor is known only to the call.
  if (!possible || !call.test(sym_le(reached, self.numel()), "elements within the tensor"))
    fail_unsupported("as_strided past the elements of its tensor");
  call.give(call.to.view(self, call.out_sizes(), [=, from = self.sizes](Body& body, const Index& i) {
    return body.math.delinearize(body.math.element(i, strides) + offset, from);
  }));
}

void lower_diagonal(LowerCall& call) {
  LoweredTensor self = call.in("self");
  std::size_t dim1 = call.dim("dim1", self.dim()), dim2 = call.dim("dim2", self.dim());
  // Beyond the matrix all diagonals are empty.
  const std::int64_t offset = std::max(call.integer("offset"), -INT64_MAX);
  call.give(call.to.view(self, call.out_sizes(), [=](Body&, const Index& i) {
    Index at;
    std::size_t next = 0;
    for (std::size_t d = 0; d <= i.size(); ++d) {
      if (d == dim1)
        at.push_back(i.back() + (offset < 0 ? -offset : 0));
      else if (d == dim2)
        at.push_back(i.back() + (offset > 0 ? offset : 0));
      else
        at.push_back(i[next++]);
    }
    return at;
  }));
}

}  // namespace partita::loops

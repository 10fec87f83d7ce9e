// x[indices] and assignments to it: index, index_put, and their variants that skip checks or take a mask.
#include "core/ops/families/indexing.h"
#include "core/ops/families/lower_index.h"
#include "core/ops/record/evaluate.h"
#include "core/ops/record/layout.h"
#include "core/ops/record/promote.h"
#include "core/ops/record/record.h"

namespace partita {
namespace {
using namespace loops;

/// self[indices]: maps an index of the result to one of self. By NumPy's rule the indexed dimensions take the place of
/// the first one when they are adjacent, else they come first.
struct Advanced {
  LoweredTensor self;
  /// By dimension of self, broadcast to one size; invalid for a dimension taken whole.
  std::vector<LoweredTensor> indices;
  std::vector<Reach> reaches;  ///< of the valid indices
  SymList common;
  std::size_t front = 0;  ///< the number of the result's dimensions before the indexed ones
  SymList sizes;          ///< of the result

  Advanced(LowerCall& call, std::string_view name, bool checked = true)
      : self(call.in("self")), indices(call.ins(name)) {
    indices.resize(self.dim());
    for (const LoweredTensor& t : indices)
      if (t.valid()) {
        if (!is_integral(t.dtype) || t.dtype == DType::UInt8)
          fail_unsupported("an index of " + std::string(torch_name(t.dtype)));
        common = call.to.broadcast(common, t.sizes);
      }
    std::size_t first = 0, last = 0, count = 0;
    for (std::size_t d = 0; d < indices.size(); ++d)
      if (indices[d].valid()) {
        if (count++ == 0) first = d;
        last = d;
        indices[d] = call.to.expand(indices[d], common);
        reaches.emplace_back(call, indices[d], d, self.sizes[d], true, checked);
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
        at.push_back(reaches[reach++].position(body, within));
        continue;
      }
      at.push_back(i[next < front ? next : next + common.size()]);
      ++next;
    }
    return at;
  }
};

/// `self` with the values written to the indices, or added there; where `mask` is valid and false, 0 is.
void give_put(LowerCall& call, const LoweredTensor& mask, bool accumulate) {
  const auto at = std::make_shared<Advanced>(call, "indices", !mask.valid());
  const LoweredTensor values = call.to.expand(call.in("values"), at->sizes);
  const LoweredTensor keep = mask.valid() ? call.to.expand(mask, at->sizes) : mask;
  const Put put{at->sizes,
                [=](Body& body, const Index& i) {
                  Scalar v = body.read(values, i);
                  return keep.valid() ? body.b.where(body.read(keep, i), v, body.b.constant(values.dtype, 0)) : v;
                },
                [at](Body& body, const Index& i) { return at->source(body, i); }};
  call.give(accumulate ? combined(call, at->self, put, {ScalarOp::Add}) : replaced(call, at->self, put));
}

void lower_index(LowerCall& call) {
  auto taken = std::make_shared<Advanced>(call, "indices");
  call.give(call.to.map(taken->self.dtype, taken->sizes, [taken](Body& body, const Index& i) {
    return body.read(taken->self, taken->source(body, i));
  }));
}

void lower_masked_index(LowerCall& call) {
  auto taken = std::make_shared<Advanced>(call, "indices", false);
  LoweredTensor mask = call.to.expand(call.to.cast(call.in("mask"), DType::Bool), taken->sizes);
  const ElementFunction fill = number_value(call, "fill", taken->self.dtype);
  call.give(call.to.map(taken->self.dtype, taken->sizes, [=](Body& body, const Index& i) {
    Scalar v = body.read(taken->self, taken->source(body, i));
    return body.b.where(body.read(mask, i), v, fill(body, i));
  }));
}

void lower_index_put(LowerCall& call) {
  give_put(call, {}, call.boolean("accumulate"));
}

void lower_masked_index_put(LowerCall& call) {
  give_put(call, call.to.cast(call.in("mask"), DType::Bool), true);
}

/// Sizes of the index for each dimension of self, nullopt where a dimension is not indexed. A boolean mask becomes one
/// index of unknown length for each dimension that it covers.
std::vector<std::optional<SymList>> index_sizes(FakeCall& c, const TensorMeta& self) {
  std::vector<std::optional<SymList>> out;
  const std::vector<const TensorMeta*> indices = c.tensors("indices");
  for (std::size_t i = 0; i < indices.size(); ++i) {
    const TensorMeta* index = indices[i];
    if (!index) {
      out.emplace_back();
      continue;
    }
    if (index->dtype != DType::Bool && index->dtype != DType::UInt8) {
      if (!is_integral(index->dtype)) fail("tensors used as indices must be long, int, byte or bool tensors");
      out.emplace_back(index->sizes);
      continue;
    }
    const SymExpr count = selected_by(c, c.arg("indices").get<ArgList>()->items[i]);
    for (std::size_t d = 0; d < index->dim(); ++d) out.emplace_back(SymList{count});
  }
  if (out.size() > self.dim())
    fail("too many indices for tensor of dimension " + std::to_string(self.dim()) + " (got " +
         std::to_string(out.size()) + ")");
  out.resize(self.dim());
  return out;
}

TensorMeta indexed(FakeCall& c, const TensorMeta& self) {
  auto indices = index_sizes(c, self);
  std::vector<SymList> given;
  int runs = 0;
  for (std::size_t d = 0; d < indices.size(); ++d) {
    if (!indices[d]) continue;
    given.push_back(*indices[d]);
    if (d == 0 || !indices[d - 1]) ++runs;
  }
  if (given.empty()) fail("at least one index must be provided");
  SymList replacement = broadcast(c, given);
  // `strides` has 0 for the dimensions that the indices replace. Eager PyTorch lays the result out in the order of
  // these strides.
  SymList sizes, strides;
  auto replace = [&] {
    sizes.insert(sizes.end(), replacement.begin(), replacement.end());
    strides.resize(sizes.size(), 0);
  };
  bool replaced = runs > 1;
  if (replaced) replace();
  for (std::size_t d = 0; d < indices.size(); ++d) {
    if (!indices[d]) {
      sizes.push_back(self.sizes[d]);
      strides.push_back(self.strides[d]);
    } else if (!replaced) {
      replace();
      replaced = true;
    }
  }
  TensorMeta meta = new_like(self, sizes);
  if (self.numel().is(0)) return meta;
  TensorMeta restrided = meta;
  restrided.strides = strides;
  const TensorMeta* operands[] = {&restrided};
  meta.strides = elementwise_strides(c, sizes, operands);
  return meta;
}

/// Fails unless the argument broadcasts to the indexed part. Sizes that are known only at run time are checked by the
/// evaluation.
void check_broadcasts(FakeCall& c, const char* name, const SymList& sizes) {
  const SymList& own = c.tensor(name).sizes;
  if (!concrete(sizes) || !concrete(own)) return;
  const SymList both[] = {sizes, own};
  if (broadcast(c, both) != sizes)
    fail("shape mismatch: " + std::string(name) + " cannot be broadcast to the indexing result");
}

Meta fake_index(FakeCall& c) {
  return indexed(c, c.tensor("self"));
}
Meta fake_masked_index(FakeCall& c) {
  TensorMeta out = indexed(c, c.tensor("self"));
  check_broadcasts(c, "mask", out.sizes);
  return out;
}
Meta fake_index_put(FakeCall& c) {
  const DType own = c.tensor("self").dtype, given = c.tensor("values").dtype;
  if (own != given)
    fail("Index put requires the source and destination dtypes match, got " + std::string(torch_name(own)) +
         " for the destination and " + std::string(torch_name(given)) + " for the source.");
  // Whether a mask is among the indices. The number of its true elements is known only at run time.
  bool counted = false;
  for (const TensorMeta* index : c.tensors("indices"))
    counted |= index && (index->dtype == DType::Bool || index->dtype == DType::UInt8);
  if (!counted) {
    const SymList sizes = indexed(c, c.tensor("self")).sizes;
    check_broadcasts(c, "values", sizes);
    if (c.schema.index_of("mask") >= 0) check_broadcasts(c, "mask", sizes);
  }
  return like_preserving(c.tensor("self"), c.shapes);
}

/// Evaluates the loops with the positions of true elements in the place of each mask among the indices.
Value eval_at_positions(EvalCall& c) {
  const Tensor& self = c.tensor("self");
  ValueList indices;
  for (const Tensor* t : c.tensors("indices")) {
    if (!t || (t->dtype != DType::Bool && t->dtype != DType::UInt8)) {
      indices.push_back(t ? Value(*t) : Value());
      continue;
    }
    const Tensor positions = kernels::nonzero(*t);
    for (std::size_t d = 0; d < t->sizes.size(); ++d) {
      const std::size_t at = indices.size();
      if (at >= self.sizes.size() || t->sizes[d] != self.sizes[at])
        fail("The shape of the mask at index " + std::to_string(d) +
             " does not match the shape of the indexed tensor at index " + std::to_string(at));
      indices.emplace_back(positions.view_as({positions.sizes[0]}, {positions.strides[0]},
                                             positions.offset + static_cast<std::int64_t>(d)));
    }
  }
  std::vector<Value> args = c.args;
  args[static_cast<std::size_t>(c.schema.index_of("indices"))] = std::move(indices);
  EvalCall call(c.schema, std::move(args), c.context);
  return eval_by_loops(call);
}

Meta fake_index_put_(FakeCall& c) {
  fake_index_put(c);
  return c.tensor("self");
}

/// Writes into self's own storage.
Value eval_index_put_(EvalCall& c) {
  Tensor self = c.tensor("self");
  self.copy_from(*unwrap(evaluate(Op::torch("aten.index_put.default"), c.args, {}, c.context)).get<Tensor>());
  return self;
}

}  // namespace

void register_advanced_index(OpTable& t) {
  t.default_family = Family::Index;
  t.add_without_record({"setitem"});
  t.add("aten.index.Tensor", fake_index, eval_at_positions,
        {{"self", "aten.index_put.default(zeros_of(self, grad), indices, grad, True)"}},
        {.lower = lower_index, .cost = {.recomputable = true}, .from_any_device = "indices"});
  t.add("aten._unsafe_index.Tensor", fake_index, eval_at_positions,
        {{"self", "aten._unsafe_index_put.default(zeros_of(self, grad), indices, grad, True)"}},
        {.lower = lower_index, .from_any_device = "indices"});
  t.add("aten.index_put.default", fake_index_put, eval_at_positions,
        {{"self", "grad if accumulate else aten.index_put.default(grad, indices, zeros_like(values))"},
         {"values", "aten.index.Tensor(grad, indices)"}},
        {.lower = lower_index_put, .from_any_device = "indices"});
  t.add("aten._unsafe_index_put.default", fake_index_put, eval_at_positions,
        {{"self", "grad if accumulate else aten._unsafe_index_put.default(grad, indices, zeros_like(values))"},
         {"values", "aten._unsafe_index.Tensor(grad, indices)"}},
        {.lower = lower_index_put, .from_any_device = "indices"});
  t.add("aten._unsafe_masked_index.default", fake_masked_index, eval_at_positions,
        {{"self", "aten._unsafe_masked_index_put_accumulate.default(zeros_of(self, grad), mask, indices, grad)"}},
        {.lower = lower_masked_index, .from_any_device = "indices"});
  t.add("aten._unsafe_masked_index_put_accumulate.default", fake_index_put, eval_at_positions,
        {{"self", "grad"}, {"values", "aten._unsafe_masked_index.default(grad, mask, indices, 0)"}},
        {.lower = lower_masked_index_put, .from_any_device = "indices"});
  t.add("aten.index_put_.default", {.fake = fake_index_put_, .eval = eval_index_put_, .from_any_device = "indices"});
}

}  // namespace partita

// bilinear, and _trilinear, the product of three tensors that it is made of.

#include "core/ops/kernels/accumulate_type.h"
#include "core/ops/kernels/outputs.h"
#include "core/ops/kernels/wrapping.h"
#include "core/ops/record/gradients.h"
#include "core/ops/record/guards.h"
#include "core/ops/record/layout.h"
#include "core/ops/record/promote.h"
#include "core/ops/record/record.h"

namespace partita {

namespace {

/// The operands of _trilinear in one index space; an operand has stride 0 along dimensions in which it is expanded.
/// Precondition: fake_trilinear has checked the arguments.
struct Trilinear {
  Sizes sizes, strides[3];
  std::vector<bool> summed;

  Trilinear(const EvalCall& c, const Tensor (&operands)[3]) {
    constexpr const char* expands[] = {"expand1", "expand2", "expand3"};
    const std::int64_t rank = operands[0].dim() + static_cast<std::int64_t>(c.integers("expand1").size());
    sizes.assign(static_cast<std::size_t>(rank), 1);
    for (std::size_t k = 0; k < 3; ++k) {
      std::vector<bool> expanded = marked(c.integers(expands[k]), rank);
      std::size_t d = 0;
      for (std::size_t i = 0; i < sizes.size(); ++i) {
        strides[k].push_back(0);
        if (expanded[i]) continue;
        if (operands[k].sizes[d] != 1) {
          sizes[i] = operands[k].sizes[d];
          strides[k][i] = operands[k].strides[d];
        }
        ++d;
      }
    }
    summed = marked(c.integers("sumdim"), rank);
  }

  static std::vector<bool> marked(const Sizes& dims, std::int64_t rank) {
    std::vector<bool> marks(static_cast<std::size_t>(rank), false);
    for (std::int64_t d : dims) {
      auto mark = marks.begin() + wrap_dim(d, rank);
      if (rank == 0) fail("_trilinear: dims are given for operands that have no dimensions");
      if (*mark) fail("dim " + std::to_string(mark - marks.begin()) + " appears multiple times in the list of dims");
      *mark = true;
    }
    return marks;
  }

  struct Place {
    std::int64_t at[3] = {0, 0, 0};  ///< element offsets in the operands
  };
  /// Calls f(place) for every index of the dimensions marked in `in`, starting at `from`.
  void each(const std::vector<bool>& in, Place from, auto f, std::size_t d = 0) const {
    while (d < sizes.size() && !in[d]) ++d;
    if (d == sizes.size()) return f(from);
    for (std::int64_t i = 0; i < sizes[d]; ++i) {
      each(in, from, f, d + 1);
      for (std::size_t k = 0; k < 3; ++k) from.at[k] += strides[k][d];
    }
  }
};

/// Sizes broadcast. PyTorch takes the length of a result dimension, and the number of steps along the unrolled one,
/// from the last operand that has the dimension; a call where that is not the broadcast size is refused.
Meta fake_trilinear(FakeCall& c) {
  const TensorMeta& first = c.tensor("i1");
  const std::size_t rank = first.dim() + c.integers("expand1").size();
  const std::int64_t unrolled = c.integer("unroll_dim");
  if (unrolled < 0 || unrolled >= static_cast<std::int64_t>(rank))
    fail("unroll_dim must be in [0," + std::to_string(static_cast<std::int64_t>(rank) - 1) + "]");
  std::vector<SymList> operands;
  SymList declared(rank, 0);
  for (const auto& [name, expand] :
       {std::pair("i1", "expand1"), std::pair("i2", "expand2"), std::pair("i3", "expand3")}) {
    const TensorMeta& operand = c.tensor(name);
    if (operand.dtype != first.dtype)
      fail("_trilinear: expected operands of one dtype, but got " + std::string(torch_name(first.dtype)) + " and " +
           std::string(torch_name(operand.dtype)));
    const Sizes dims = c.integers(expand);
    if (operand.dim() + dims.size() != rank)
      fail("_trilinear: the operands and their expanded dimensions do not fit together");
    const std::vector<bool> expanded = Trilinear::marked(dims, static_cast<std::int64_t>(rank));
    SymList& sizes = operands.emplace_back(rank, 1);
    for (std::size_t i = 0, d = 0; i < rank; ++i)
      if (!expanded[i]) declared[i] = sizes[i] = operand.sizes[d++];
  }
  const SymList sizes = broadcast(c, operands);
  const std::vector<bool> summed = Trilinear::marked(c.integers("sumdim"), static_cast<std::int64_t>(rank));
  SymList kept;
  for (std::size_t i = 0; i < rank; ++i) {
    if ((!summed[i] || static_cast<std::int64_t>(i) == unrolled) &&
        !checked(c, sym_eq(declared[i], sizes[i]), "_trilinear sizes"))
      fail("_trilinear: the last operand has size " + declared[i].str() + " at dimension " + std::to_string(i) +
           ", the others " + sizes[i].str());
    if (!summed[i]) kept.push_back(sizes[i]);
  }
  return new_like(first, kept);
}

Value eval_trilinear(EvalCall& c) {
  using namespace kernels;
  const DType dtype = evaluation_dtype(c.tensor("i1").dtype);
  const Tensor operands[] = {load(c.tensor("i1"), dtype), load(c.tensor("i2"), dtype), load(c.tensor("i3"), dtype)};
  const Trilinear t(c, operands);
  Tensor y = zeros_for(c, fake_trilinear, accumulate_dtype(dtype));
  std::vector<bool> kept = t.summed;
  kept.flip();
  dispatch_compute(dtype, "_trilinear", [&]<class T>() {
    using Sum = AccumulateType<T>;
    const T *a = operands[0].as<T>(), *b = operands[1].as<T>(), *v = operands[2].as<T>();
    Sum* to = y.as<Sum>();
    t.each(kept, {}, [&](const Trilinear::Place& result) {
      t.each(t.summed, result, [&](const Trilinear::Place& p) {
        const Sum product = wrapping_product(Sum(a[p.at[0]]), Sum(b[p.at[1]]));
        *to = wrapping_sum(*to, wrapping_product(product, Sum(v[p.at[2]])));
      });
      ++to;
    });
  });
  return y;
}

/// The sum over `sumdim` of i1 * i2 * i3, after each was unsqueezed at the dimensions in its `expand` argument.
Arg decompose_trilinear(DecomposeCall& c) {
  Builder& b = c.build;
  auto operand = [&](const char* name, const char* expand) {
    Node* x = to_dtype(b, c.arg(name), opmath_dtype(c.tensor(name).dtype));
    const auto rank = static_cast<std::int64_t>(b.tensor(x).dim() + c.integers(expand).size());
    const std::vector<bool> expanded = Trilinear::marked(c.integers(expand), rank);
    for (std::int64_t dim = 0; dim < rank; ++dim)
      if (expanded[static_cast<std::size_t>(dim)]) x = b.call("aten.unsqueeze.default", {x, dim});
    return x;
  };
  Node *first = operand("i1", "expand1"), *second = operand("i2", "expand2"), *third = operand("i3", "expand3");
  Node* x = b.call("aten.mul.Tensor", {b.call("aten.mul.Tensor", {first, second}), third});
  DType dtype = c.tensor("i1").dtype;
  // An empty sumdim leaves the product as it is; aten.sum with an empty list would sum everything.
  if (!c.integers("sumdim").empty()) {
    Kwargs kwargs;
    if (!is_floating(dtype)) kwargs.emplace_back("dtype", dtype);
    x = b.call("aten.sum.dim_IntList", {x, c.arg("sumdim")}, std::move(kwargs));
  }
  return to_dtype(b, x, dtype);
}

Arg decompose_bilinear(DecomposeCall& c) {
  Builder& b = c.build;
  const TensorMeta &x = c.tensor("input1"), &y = c.tensor("input2"), &weight = c.tensor("weight");
  if (x.dim() == 0 || x.dim() != y.dim())
    fail("bilinear(): input dimensions do not match: got " + std::to_string(x.dim()) + " and " +
         std::to_string(y.dim()));
  if (weight.dim() != 3) fail("bilinear(): weight must have 3 dimensions, got " + std::to_string(weight.dim()));
  for (std::size_t d = 0; d + 1 < x.dim(); ++d)
    if (!checked(c, sym_eq(x.sizes[d], y.sizes[d]), "bilinear batch"))
      fail("bilinear(): input batch dimensions do not match at dim " + std::to_string(d) + ": got " + x.sizes[d].str() +
           " and " + y.sizes[d].str());
  if (!checked(c, sym_and(sym_eq(x.sizes.back(), weight.sizes[1]), sym_eq(y.sizes.back(), weight.sizes[2])),
               "bilinear weight"))
    fail("bilinear(): input sizes do not match weight size: got " + x.sizes.back().str() + " and " +
         y.sizes.back().str() + " but expected " + weight.sizes[1].str() + " and " + weight.sizes[2].str());
  if (c.has("bias") &&
      (c.tensor("bias").dim() == 0 || !checked(c, sym_eq(c.tensor("bias").sizes[0], weight.sizes[0]), "bilinear bias")))
    fail("bilinear(): bias size does not match weight size");
  auto flat = [&](const char* name) {
    return b.call("aten.reshape.default", {c.arg(name), b.sizes({-1, c.tensor(name).sizes.back()})});
  };
  Node *first = flat("input1"), *second = flat("input2");
  Node* result = b.call("aten._trilinear.default", {first, c.arg("weight"), second, Arg::list({1, 3}), Arg::list({0}),
                                                    Arg::list({1, 2}), Arg::list({2, 3})});
  SymList sizes(x.sizes.begin(), x.sizes.end() - 1);
  sizes.push_back(weight.sizes[0]);
  result = b.call("aten.reshape.default", {result, b.sizes(sizes)});
  return c.has("bias") ? b.call("aten.add.Tensor", {result, c.arg("bias")}) : result;
}

}  // namespace

void register_bilinear(OpTable& t) {
  t.default_family = Family::Matmul;
  t.add("aten._trilinear.default", fake_trilinear, eval_trilinear,
        {{"i1", "_trilinear(grad, i2, i3, sumdim, expand2, expand3, expand1)"},
         {"i2", "_trilinear(i1, grad, i3, expand1, sumdim, expand3, expand2)"},
         {"i3", "_trilinear(i1, i2, grad, expand1, expand2, sumdim, expand3)"}},
        {.compile_decompose = decompose_trilinear, .kept = Kept::HalfTypes});
  t.add("aten.bilinear.default", {.decompose = decompose_bilinear});
}

}  // namespace partita

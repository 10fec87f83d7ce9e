// Dimensions are merged where every operand allows it. Leaves are copied into blocks, or used where they lie; each
// operation is one C++ loop over a block.
#include "core/loops/block_loop.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include <fmt/format.h>

#include "core/base/progress.h"
#include "core/loops/scalar_eval.h"
#include "core/loops/scalar_math.h"
#include "core/tensor/convert.h"
#include "core/tensor/word.h"

namespace partita::loops {
namespace {

using std::int64_t;

constexpr int64_t block = 512;

/// Fills a block with a constant.
void fill(std::byte* out, const ScalarNode& node) {
  dispatch(node.dtype, [&]<class T>() {
    const bool whole = is_integral(node.dtype) || node.dtype == DType::Bool;
    std::fill_n(reinterpret_cast<T*>(out), block, whole ? convert<T>(node.integer) : convert<T>(node.real));
  });
}

template <class T>
T combined(ScalarOp op, T a, T b) {
  if (op == ScalarOp::Add) return scalar_add(a, b);
  if (op == ScalarOp::Mul) return scalar_mul(a, b);
  if constexpr (Ordered<T>) {
    if (op == ScalarOp::Min) return scalar_min(a, b);
    if (op == ScalarOp::Max) return scalar_max(a, b);
  }
  if constexpr (Integer<T>) {
    if (op == ScalarOp::BitAnd) return static_cast<T>(a & b);
    if (op == ScalarOp::BitOr) return static_cast<T>(a | b);
  }
  CHECK(false, "no reduction by " + std::string(name(op)));
}

template <class T>
void combine(ScalarOp op, void* to, int64_t stride, const void* values, int64_t n) {
  constexpr bool half = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;
  using Wide = std::conditional_t<half, float, Computed<T>>;
  T* at = static_cast<T*>(to);
  const T* v = static_cast<const T*>(values);
  const auto wide = [](T x) -> Wide {
    if constexpr (half)
      return convert<float>(x);
    else
      return x;
  };
  for (int64_t i = 0; i < n; ++i) {
    T& element = at[i * stride];
    if constexpr (half)
      element = convert<T>(combined<Wide>(op, wide(element), wide(v[i])));
    else
      element = combined<Wide>(op, wide(element), wide(v[i]));
  }
}

/// Is every place of the nest within the tensor's memory?
bool stays_within(const Tensor& t, const Sizes& sizes, const Progression& at) {
  if (numel(sizes) == 0) return true;
  int64_t low = t.offset + at.first, high = low;
  for (std::size_t d = 0; d < sizes.size(); ++d) (at.strides[d] < 0 ? low : high) += at.strides[d] * (sizes[d] - 1);
  const auto room = static_cast<int64_t>(t.storage->bytes() / itemsize(t.dtype));
  return low >= 0 && high < room;
}

}  // namespace

CombineKernel combine_kernel(DType dtype) {
  return dispatch(dtype, []<class T>() -> CombineKernel { return combine<T>; });
}

/// The dimensions that are left, and each operand's strides in them: leaves', then results'.
struct BlockLoop::Nest {
  Sizes sizes;
  std::vector<Sizes> strides;

  Nest(const Sizes& whole, const std::vector<const Sizes*>& operands, const Sizes* lead) : strides(operands.size()) {
    std::vector<std::size_t> order;
    for (std::size_t d = 0; d < whole.size(); ++d)
      if (whole[d] != 1) order.push_back(d);
    if (lead) std::ranges::stable_sort(order, std::greater(), [&](std::size_t d) { return (*lead)[d]; });
    for (const std::size_t d : order) {
      bool joins = !sizes.empty();
      for (std::size_t i = 0; joins && i < strides.size(); ++i)
        joins = strides[i].back() == (*operands[i])[d] * whole[d];
      if (joins)
        sizes.back() *= whole[d];
      else
        sizes.push_back(whole[d]);
      for (std::size_t i = 0; i < strides.size(); ++i) {
        if (joins)
          strides[i].back() = (*operands[i])[d];
        else
          strides[i].push_back((*operands[i])[d]);
      }
    }
    if (!sizes.empty()) return;
    sizes.push_back(1);
    for (Sizes& s : strides) s.push_back(1);
  }
};

/// A position in a nest that advances block by block.
class BlockLoop::Cursor {
 public:
  explicit Cursor(const Nest& nest) : nest_(nest), index_(nest.sizes.size(), 0) {}

  /// Calls run(element offset, stride, count, done before) for each strided run among one operand's next n elements.
  void runs(std::size_t operand, int64_t n, auto run) const {
    const Sizes& strides = nest_.strides[operand];
    Sizes at = index_;
    int64_t offset = 0;
    for (std::size_t d = 0; d < at.size(); ++d) offset += at[d] * strides[d];
    std::size_t inner = at.size() - 1;
    for (int64_t done = 0; done < n;) {
      int64_t count = std::min(n - done, nest_.sizes[inner] - at[inner]);
      run(offset, strides[inner], count, done);
      done += count;
      offset += count * strides[inner];
      at[inner] += count;
      for (std::size_t d = inner; d > 0 && at[d] == nest_.sizes[d]; --d) {
        offset += strides[d - 1] - at[d] * strides[d];
        at[d] = 0;
        ++at[d - 1];
      }
    }
  }

  void advance(int64_t n) {
    for (std::size_t d = index_.size(); d-- > 0 && n > 0;) {
      index_[d] += n;
      n = d > 0 ? index_[d] / nest_.sizes[d] : 0;
      if (d > 0) index_[d] %= nest_.sizes[d];
    }
  }

 private:
  const Nest& nest_;
  Sizes index_;
};

struct BlockLoop::Step {
  const ScalarNode* node;
  NodeKernel kernel;  ///< null: a Load or Within
  std::size_t out;
};

void BlockLoop::load(int node, const Tensor& from, Progression at) {
  CHECK(from.dtype == body_.nodes()[static_cast<std::size_t>(node)].dtype, "a load of another dtype");
  CHECK(stays_within(from, sizes_, at), "a load beyond a tensor");
  leaves_.push_back({node, from, std::move(at)});
}

void BlockLoop::count(int node, Progression number) {
  leaves_.push_back({node, {}, std::move(number)});
}

void BlockLoop::store(Scalar value, const Tensor& to, Progression at, ScalarOp combine) {
  CHECK(stays_within(to, sizes_, at), "a store beyond a tensor");
  results_.push_back({value, to, std::move(at), {}, combine});
}

void BlockLoop::scatter(Scalar value, const Tensor& to, Scalar element, ScalarOp combine) {
  results_.push_back({value, to, {Sizes(sizes_.size(), 0), 0}, element, combine});
}

std::vector<bool> BlockLoop::needed() const {
  const auto& nodes = body_.nodes();
  std::vector<bool> needed(nodes.size(), false);
  for (const Result& r : results_)
    for (Scalar s : {r.value, r.element})
      if (s.id >= 0) needed[static_cast<std::size_t>(s.id)] = true;
  for (std::size_t i = nodes.size(); i-- > 0;) {
    // An index into one element is checked, though its value is not read.
    if (nodes[i].op == ScalarOp::Within) needed[i] = true;
    for (Scalar s : nodes[i].args)
      if (needed[i] && s.id >= 0) needed[static_cast<std::size_t>(s.id)] = true;
  }
  return needed;
}

const Tensor& BlockLoop::gathered(int slot) const {
  const auto it = std::ranges::find(gathered_, slot, &std::pair<int, Tensor>::first);
  CHECK(it != gathered_.end(), "a load from an unknown slot");
  return it->second;
}

/// Makes the leaf's next n values.
void BlockLoop::take(const Leaf& leaf, std::size_t operand, const Nest& nest, const Cursor& cursor, int64_t at,
                     int64_t n) {
  const auto node = static_cast<std::size_t>(leaf.node);
  if (!leaf.from.storage) {
    auto* into = reinterpret_cast<int64_t*>(memory_[node].get());
    cursor.runs(operand, n, [&](auto offset, auto stride, auto count, auto done) {
      for (int64_t i = 0; i < count; ++i) into[done + i] = leaf.at.first + offset + i * stride;
    });
    return;
  }
  with_word(itemsize(leaf.from.dtype), [&]<class Word>(Word) {
    const Word* first = leaf.from.as<Word>() + leaf.at.first;
    if (nest.sizes.size() == 1 && nest.strides[operand][0] == 1) {
      values_[node] = first + at;
      return;
    }
    Word* to = reinterpret_cast<Word*>(memory_[node].get());
    cursor.runs(operand, n, [&](auto offset, auto stride, auto count, auto done) {
      const Word* from = first + offset;
      Word* into = to + done;
      for (int64_t i = 0; i < count; ++i) into[i] = from[i * stride];
    });
  });
}

void BlockLoop::compute(const Step& step, int64_t n) {
  const ScalarNode& node = *step.node;
  const void* args[3] = {};
  for (int a = 0; a < 3; ++a)
    if (node.args[a].id >= 0) args[a] = values_[static_cast<std::size_t>(node.args[a].id)];
  std::byte* out = memory_[step.out].get();
  if (step.kernel) return step.kernel(out, args, n);
  const auto* positions = static_cast<const int64_t*>(args[0]);
  if (node.op == ScalarOp::Within) {
    for (int64_t i = 0; i < n; ++i)
      if (positions[i] < 0 || positions[i] >= node.index.as_int())
        throw Raise{out_of_bounds(body_.bounds()[static_cast<std::size_t>(node.slot)], positions[i])};
    std::memcpy(out, positions, static_cast<std::size_t>(n) * sizeof(int64_t));
    return;
  }
  const Tensor& from = gathered(node.slot);
  const int64_t first = from.offset, room = static_cast<int64_t>(from.storage->bytes() / itemsize(from.dtype));
  with_word(itemsize(from.dtype), [&]<class Word>(Word) {
    const Word* elements = from.as<Word>();
    Word* to = reinterpret_cast<Word*>(out);
    for (int64_t i = 0; i < n; ++i) {
      CHECK(first + positions[i] >= 0 && first + positions[i] < room, "a load beyond a tensor");
      to[i] = elements[positions[i]];
    }
  });
}

void BlockLoop::give(const Result& result, std::size_t operand, const Cursor& cursor, int64_t n) {
  const void* source = values_[static_cast<std::size_t>(result.value.id)];
  const bool combines = result.combine != ScalarOp::Const;
  const CombineKernel kernel = combines ? combine_kernel(result.to.dtype) : nullptr;
  with_word(itemsize(result.to.dtype), [&]<class Word>(Word) {
    const Word* from = static_cast<const Word*>(source);
    Word* to = result.to.as<Word>();
    if (result.element.id >= 0) {
      const auto* elements = static_cast<const int64_t*>(values_[static_cast<std::size_t>(result.element.id)]);
      const auto room = static_cast<int64_t>(result.to.storage->bytes() / itemsize(result.to.dtype));
      for (int64_t i = 0; i < n; ++i) {
        CHECK(result.to.offset + elements[i] >= 0 && result.to.offset + elements[i] < room, "a store beyond a tensor");
        if (combines)
          kernel(result.combine, to + elements[i], 0, from + i, 1);
        else
          to[elements[i]] = from[i];
      }
      return;
    }
    cursor.runs(operand, n, [&](auto offset, auto stride, auto count, auto done) {
      Word* into = to + result.at.first + offset;
      if (combines) return kernel(result.combine, into, stride, from + done, count);
      for (int64_t i = 0; i < count; ++i) into[i * stride] = from[done + i];
    });
  });
}

Status BlockLoop::run(bool in_order) {
  const int64_t total = numel(sizes_);
  if (total == 0) return {};
  const auto& nodes = body_.nodes();
  const std::vector<bool> needed = this->needed();
  std::erase_if(leaves_, [&](const Leaf& leaf) { return !needed[static_cast<std::size_t>(leaf.node)]; });
  std::vector<const Sizes*> operands;
  for (const Leaf& leaf : leaves_) operands.push_back(&leaf.at.strides);
  for (const Result& r : results_) operands.push_back(&r.at.strides);
  const Nest nest(sizes_, operands, in_order ? nullptr : &results_[0].at.strides);

  std::vector<bool> is_leaf(nodes.size(), false);
  for (const Leaf& leaf : leaves_) is_leaf[static_cast<std::size_t>(leaf.node)] = true;
  memory_.resize(nodes.size());
  values_.resize(nodes.size());
  std::vector<Step> steps;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (!needed[i]) continue;
    const ScalarNode& node = nodes[i];
    memory_[i].reset(new std::byte[block * itemsize(node.dtype)]());
    values_[i] = memory_[i].get();
    if (is_leaf[i]) continue;
    if (node.op == ScalarOp::Const) {
      fill(memory_[i].get(), node);
      continue;
    }
    CHECK(node.args[0].id >= 0, "a leaf of a body that is not declared");
    const bool indexed = node.op == ScalarOp::Load || node.op == ScalarOp::Within;
    steps.push_back({&node, indexed ? nullptr : node_kernel(body_, node), i});
    if (!indexed && !steps.back().kernel) return no_operation(body_, node);
  }

  Cursor cursor(nest);
  return catch_raised<void>([&]() -> Status {
    for (int64_t at = 0; at < total; at += block) {
      StopsLoops::check();
      const int64_t n = std::min(block, total - at);
      for (std::size_t i = 0; i < leaves_.size(); ++i) take(leaves_[i], i, nest, cursor, at, n);
      for (const Step& step : steps) compute(step, n);
      for (std::size_t i = 0; i < results_.size(); ++i) give(results_[i], leaves_.size() + i, cursor, n);
      cursor.advance(n);
    }
    return {};
  });
}

}  // namespace partita::loops

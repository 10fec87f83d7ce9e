// Evaluates scalar bodies on tensors, node by node on blocks of 512 elements, with a C++ loop for each row of
// scalar_ops.def and each dtype. Dimensions are sorted by the first output's strides and merged.
#include "core/loops/scalar_eval.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include <fmt/format.h>

#include "core/base/progress.h"
#include "core/loops/scalar_math.h"
#include "core/tensor/convert.h"
#include "core/tensor/word.h"

namespace partita::loops {
namespace {

constexpr std::int64_t block = 512;

using Kernel = NodeKernel;

template <ScalarOp op, class T>
struct Row {
  static constexpr Kernel kernel() { return nullptr; }
};
#define SCALAR_OP(name, arity, result, weight, evaluation, ...)                                                   \
  template <class T>                                                                                              \
    requires requires(T a, T b, T c) { evaluation; }                                                              \
  struct Row<ScalarOp::name, T> {                                                                                 \
    static void run(void* out, const void* const* args, std::int64_t n) {                                         \
      using Out = decltype([](T a, T b, T c) { return (void)a, (void)b, (void)c, (evaluation); }(T(), T(), T())); \
      auto* to = static_cast<Stored<Out>*>(out);                                                                  \
      const Stored<T>* from[3] = {static_cast<const Stored<T>*>(args[0]), static_cast<const Stored<T>*>(args[1]), \
                                  static_cast<const Stored<T>*>(args[2])};                                        \
      for (std::int64_t i = 0; i < n; ++i) {                                                                      \
        T a = from[0][i];                                                                                         \
        [[maybe_unused]] T b = arity > 1 ? T(from[1][i]) : T();                                                   \
        [[maybe_unused]] T c = arity > 2 ? T(from[2][i]) : T();                                                   \
        to[i] = evaluation;                                                                                       \
      }                                                                                                           \
    }                                                                                                             \
    static constexpr Kernel kernel() {                                                                            \
      return run;                                                                                                 \
    }                                                                                                             \
  };
#include "core/loops/scalar_ops.def"
#undef SCALAR_OP

template <class T>
Kernel arithmetic(ScalarOp op) {
  switch (op) {
#define SCALAR_OP(name, ...) \
  case ScalarOp::name:       \
    return Row<ScalarOp::name, T>::kernel();
#include "core/loops/scalar_ops.def"
#undef SCALAR_OP
    default:
      return nullptr;
  }
}

template <class To, class From>
void cast(void* out, const void* const* args, std::int64_t n) {
  const From* from = static_cast<const From*>(args[0]);
  To* to = static_cast<To*>(out);
  for (std::int64_t i = 0; i < n; ++i) to[i] = convert<To>(from[i]);
}

template <class Word>
void select(void* out, const void* const* args, std::int64_t n) {
  const StoredBool* condition = static_cast<const StoredBool*>(args[0]);
  const Word *yes = static_cast<const Word*>(args[1]), *no = static_cast<const Word*>(args[2]);
  Word* to = static_cast<Word*>(out);
  for (std::int64_t i = 0; i < n; ++i) to[i] = condition[i] ? yes[i] : no[i];
}

template <std::size_t bytes>
void move(void* out, const void* const* args, std::int64_t n) {
  std::memcpy(out, args[0], static_cast<std::size_t>(n) * bytes);
}

/// Fills a block with a constant node's value.
void fill(std::byte* out, const ScalarNode& node, std::int64_t value) {
  dispatch(node.dtype, [&]<class T>() {
    bool whole = node.op == ScalarOp::Index || is_integral(node.dtype) || node.dtype == DType::Bool;
    std::fill_n(reinterpret_cast<T*>(out), block, whole ? convert<T>(value) : convert<T>(node.real));
  });
}

/// The iteration space. Dims are sorted by the first output's strides and merged where every operand allows it.
struct Space {
  Sizes sizes;
  std::vector<Sizes> strides;  ///< per operand: inputs, then outputs; in elements

  Space(std::span<const Tensor> inputs, std::span<const Tensor> outputs) {
    const Tensor& first = outputs[0];
    std::size_t rank = first.sizes.size();
    auto add = [&](const Tensor& t) {
      Sizes s(rank, 0);
      for (std::size_t i = 0; i < t.sizes.size(); ++i) {
        std::size_t d = rank - t.sizes.size() + i;
        CHECK(t.sizes[i] == first.sizes[d] || t.sizes[i] == 1, "operand does not broadcast to the output");
        if (t.sizes[i] != 1) s[d] = t.strides[i];
      }
      strides.push_back(std::move(s));
    };
    for (const Tensor& t : inputs) add(t);
    for (const Tensor& t : outputs) add(t);
    const Sizes& lead = strides[inputs.size()];
    std::vector<std::size_t> order;
    for (std::size_t d = 0; d < rank; ++d)
      if (first.sizes[d] != 1) order.push_back(d);
    std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return lead[a] > lead[b]; });
    std::vector<Sizes> merged(strides.size());
    for (std::size_t d : order) {
      bool joins = !sizes.empty();
      for (std::size_t i = 0; joins && i < strides.size(); ++i)
        joins = merged[i].back() == strides[i][d] * first.sizes[d];
      if (joins)
        sizes.back() *= first.sizes[d];
      else
        sizes.push_back(first.sizes[d]);
      for (std::size_t i = 0; i < strides.size(); ++i) {
        if (joins)
          merged[i].back() = strides[i][d];
        else
          merged[i].push_back(strides[i][d]);
      }
    }
    if (sizes.empty()) {
      sizes.push_back(1);
      for (Sizes& s : merged) s.push_back(1);
    }
    strides = std::move(merged);
  }
};

/// A position in a Space that advances block by block.
class Cursor {
 public:
  explicit Cursor(const Space& space) : space_(space), index_(space.sizes.size(), 0) {}

  /// Calls run(element offset, stride, count, done before) for each strided run among one operand's next n elements.
  template <class Run>
  void runs(std::size_t operand, std::int64_t n, Run run) const {
    const Sizes& strides = space_.strides[operand];
    Sizes at = index_;
    std::int64_t offset = 0;
    for (std::size_t d = 0; d < at.size(); ++d) offset += at[d] * strides[d];
    std::size_t inner = at.size() - 1;
    for (std::int64_t done = 0; done < n;) {
      std::int64_t count = std::min(n - done, space_.sizes[inner] - at[inner]);
      run(offset, strides[inner], count, done);
      done += count;
      offset += count * strides[inner];
      at[inner] += count;
      for (std::size_t d = inner; d > 0 && at[d] == space_.sizes[d]; --d) {
        offset += strides[d - 1] - at[d] * strides[d];
        at[d] = 0;
        ++at[d - 1];
      }
    }
  }

  void advance(std::int64_t n) {
    for (std::size_t d = index_.size(); d-- > 0 && n > 0;) {
      index_[d] += n;
      n = d > 0 ? index_[d] / space_.sizes[d] : 0;
      if (d > 0) index_[d] %= space_.sizes[d];
    }
  }

 private:
  const Space& space_;
  Sizes index_;
};

struct Step {
  Kernel kernel = nullptr;
  std::size_t out = 0;
  std::size_t args[3] = {0, 0, 0};
};

}  // namespace

NodeKernel node_kernel(const ScalarBuilder& body, const ScalarNode& node) {
  switch (node.op) {
    case ScalarOp::Where:
      return with_word(itemsize(node.dtype), []<class Word>(Word) -> Kernel { return select<Word>; });
    case ScalarOp::Bitcast:
      return with_word(itemsize(node.dtype), []<class Word>(Word) -> Kernel { return move<sizeof(Word)>; });
    case ScalarOp::Cast:
      if (!has_arithmetic(node.dtype) || !has_arithmetic(body.dtype(node.args[0]))) return nullptr;
      return dispatch(node.dtype, [&]<class To>() {
        return dispatch(body.dtype(node.args[0]), []<class From>() -> Kernel { return cast<To, From>; });
      });
    default: {
      DType t = body.dtype(node.args[0]);
      if (!has_arithmetic(t) || t == DType::Float16 || t == DType::BFloat16) return nullptr;
      return dispatch(t, [&]<class T>() -> Kernel {
        if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>)
          return nullptr;
        else
          return arithmetic<Computed<T>>(node.op);
      });
    }
  }
}

namespace {

Diagnostic no_operation(const ScalarBuilder& body, const ScalarNode& node) {
  return unsupported("ops.dtype", fmt::format("no {} of {}", name(node.op), torch_name(body.dtype(node.args[0]))));
}

}  // namespace

Status check_operations(const ScalarBuilder& body) {
  for (const ScalarNode& node : body.nodes()) {
    if (node.args[0].id >= 0 && !node_kernel(body, node)) return no_operation(body, node);
  }
  return {};
}

Status evaluate(const ScalarBuilder& body, std::span<const Scalar> results, std::span<const Tensor> inputs,
                std::span<const Tensor> outputs) {
  std::int64_t total = outputs[0].numel();
  if (total == 0) return {};
  Space space(inputs, outputs);
  const auto& nodes = body.nodes();

  std::vector<bool> needed(nodes.size(), false);
  for (Scalar s : results) needed[static_cast<std::size_t>(s.id)] = true;
  for (std::size_t i = nodes.size(); i-- > 0;)
    if (needed[i])
      for (Scalar s : nodes[i].args)
        if (s.id >= 0) needed[static_cast<std::size_t>(s.id)] = true;

  std::vector<std::unique_ptr<std::byte[]>> memory(nodes.size());
  std::vector<const void*> values(nodes.size(), nullptr);
  std::vector<std::pair<std::size_t, std::size_t>> loads;  // node, slot
  std::vector<Step> steps;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (!needed[i]) continue;
    const ScalarNode& node = nodes[i];
    memory[i].reset(new std::byte[block * itemsize(node.dtype)]());
    values[i] = memory[i].get();
    switch (node.op) {
      case ScalarOp::Const:
        fill(memory[i].get(), node, node.integer);
        break;
      case ScalarOp::Index: {
        auto value = node.index.evaluate([](const std::string&) { return std::optional<std::int64_t>(); });
        CHECK(value, "a body that is evaluated has no loop variables: " + node.index.str());
        fill(memory[i].get(), node, static_cast<std::int64_t>(*value));
        break;
      }
      case ScalarOp::Input: {
        auto slot = static_cast<std::size_t>(node.slot);
        CHECK(slot < inputs.size() && inputs[slot].dtype == node.dtype, "input slot of a body");
        loads.emplace_back(i, slot);
        break;
      }
      case ScalarOp::Load:
      case ScalarOp::Within:
        CHECK(false, "a body that is evaluated reads its inputs by slot");
      default: {
        Step step{node_kernel(body, node), i};
        if (!step.kernel) return no_operation(body, node);
        for (int a = 0; a < 3; ++a)
          if (node.args[a].id >= 0) step.args[a] = static_cast<std::size_t>(node.args[a].id);
        steps.push_back(step);
      }
    }
  }

  Cursor cursor(space);
  return catch_raised<void>([&]() -> Status {
    for (std::int64_t at = 0; at < total; at += block) {
      StopsLoops::check();
      std::int64_t n = std::min(block, total - at);
      for (auto [node, slot] : loads) {
        const Tensor& t = inputs[slot];
        std::byte* to = memory[node].get();
        if (space.sizes.size() == 1 && space.strides[slot][0] == 1) {
          values[node] = t.data() + at * static_cast<std::int64_t>(itemsize(t.dtype));
          continue;
        }
        with_word(itemsize(t.dtype), [&]<class Word>(Word) {
          cursor.runs(slot, n, [&](auto offset, auto stride, auto count, auto done) {
            const Word* from = t.as<Word>() + offset;
            Word* into = reinterpret_cast<Word*>(to) + done;
            for (std::int64_t i = 0; i < count; ++i) into[i] = from[i * stride];
          });
        });
      }
      for (const Step& step : steps) {
        const void* args[3] = {values[step.args[0]], values[step.args[1]], values[step.args[2]]};
        step.kernel(memory[step.out].get(), args, n);
      }
      for (std::size_t o = 0; o < outputs.size(); ++o) {
        const Tensor& t = outputs[o];
        const void* source = values[static_cast<std::size_t>(results[o].id)];
        with_word(itemsize(t.dtype), [&]<class Word>(Word) {
          cursor.runs(inputs.size() + o, n, [&](auto offset, auto stride, auto count, auto done) {
            Word* into = t.as<Word>() + offset;
            const Word* from = static_cast<const Word*>(source) + done;
            for (std::int64_t i = 0; i < count; ++i) into[i * stride] = from[i];
          });
        });
      }
      cursor.advance(n);
    }
    return {};
  });
}

}  // namespace partita::loops

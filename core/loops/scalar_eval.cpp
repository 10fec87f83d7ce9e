// A C++ loop for each row of scalar_ops.def and each dtype; BlockLoop runs them on blocks of elements.
#include "core/loops/scalar_eval.h"

#include <cstring>

#include <fmt/format.h>

#include "core/loops/block_loop.h"
#include "core/loops/scalar_math.h"
#include "core/tensor/convert.h"
#include "core/tensor/word.h"

namespace partita::loops {
namespace {

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

/// The strides with which a tensor is read in a nest of these sizes.
Sizes broadcast_strides(const Tensor& t, const Sizes& sizes) {
  Sizes strides(sizes.size(), 0);
  for (std::size_t i = 0; i < t.sizes.size(); ++i) {
    const std::size_t d = sizes.size() - t.sizes.size() + i;
    CHECK(t.sizes[i] == sizes[d] || t.sizes[i] == 1, "operand does not broadcast to the output");
    if (t.sizes[i] != 1) strides[d] = t.strides[i];
  }
  return strides;
}

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

Diagnostic no_operation(const ScalarBuilder& body, const ScalarNode& node) {
  return unsupported("ops.dtype", fmt::format("no {} of {}", name(node.op), torch_name(body.dtype(node.args[0]))));
}

Status check_operations(const ScalarBuilder& body) {
  for (const ScalarNode& node : body.nodes()) {
    if (node.args[0].id >= 0 && !node_kernel(body, node)) return no_operation(body, node);
  }
  return {};
}

Status evaluate(const ScalarBuilder& body, std::span<const Scalar> results, std::span<const Tensor> inputs,
                std::span<const Tensor> outputs) {
  const Sizes& sizes = outputs[0].sizes;
  BlockLoop loop(body, sizes);
  for (std::size_t i = 0; i < body.nodes().size(); ++i) {
    const ScalarNode& node = body.nodes()[i];
    const int id = static_cast<int>(i);
    if (node.op == ScalarOp::Input) {
      const Tensor& t = inputs[static_cast<std::size_t>(node.slot)];
      loop.load(id, t, {broadcast_strides(t, sizes)});
    } else if (node.op == ScalarOp::Index) {
      const auto value = node.index.evaluate([](const std::string&) { return std::optional<std::int64_t>(); });
      CHECK(value, "a body that is evaluated has no loop variables: " + node.index.str());
      loop.count(id, {Sizes(sizes.size(), 0), static_cast<std::int64_t>(*value)});
    }
  }
  for (std::size_t o = 0; o < outputs.size(); ++o)
    loop.store(results[o], outputs[o], {broadcast_strides(outputs[o], sizes)});
  return loop.run(false);
}

}  // namespace partita::loops

#include "codegen/host/runtime.h"

#include <vector>

#include "core/loops/scalar_math.h"

namespace partita::codegen {
namespace {

using loops::ScalarOp;
using namespace loops;

// For each row its evaluation for a dtype, which compiles for the dtypes that it exists for.
#define SCALAR_OP(name, arity, result, weight, evaluation, ...)                                                \
  template <class T>                                                                                           \
  struct name##Evaluation {                                                                                    \
    template <class A>                                                                                         \
    static auto at([[maybe_unused]] A a, [[maybe_unused]] A b, [[maybe_unused]] A c) -> decltype(evaluation) { \
      return evaluation;                                                                                       \
    }                                                                                                          \
  };
#include "core/loops/scalar_ops.def"
#undef SCALAR_OP

template <class Evaluation, class T>
constexpr bool exists = requires(T a) { Evaluation::at(a, a, a); };

template <class Evaluation, class T>
T evaluate(T a, T b, T c) {
  if constexpr (exists<Evaluation, T>)
    return static_cast<T>(Evaluation::at(a, b, c));
  else
    __builtin_trap();
}

}  // namespace

#define PARTITA_HIDDEN extern "C" __attribute__((visibility("hidden")))
// Compiled code calls them by these names, whether it is linked into this process or into a library.
#define PARTITA_FUNCTION_1(name, T, dtype)            \
  PARTITA_HIDDEN T partita_##name##_##dtype(T a) {    \
    return evaluate<name##Evaluation<T>, T>(a, a, a); \
  }
#define PARTITA_FUNCTION_2(name, T, dtype)              \
  PARTITA_HIDDEN T partita_##name##_##dtype(T a, T b) { \
    return evaluate<name##Evaluation<T>, T>(a, b, a);   \
  }
#define PARTITA_FUNCTION_3(name, T, dtype)                   \
  PARTITA_HIDDEN T partita_##name##_##dtype(T a, T b, T c) { \
    return evaluate<name##Evaluation<T>, T>(a, b, c);        \
  }
#define PARTITA_ALL_DTYPES(function, name)                                                                        \
  function(name, float, f32) function(name, double, f64) function(name, std::uint8_t, u8)                         \
      function(name, std::int8_t, i8) function(name, std::uint16_t, u16) function(name, std::int16_t, i16)        \
          function(name, std::uint32_t, u32) function(name, std::int32_t, i32) function(name, std::uint64_t, u64) \
              function(name, std::int64_t, i64)
#define SCALAR_OP(name, arity, ...) PARTITA_ALL_DTYPES(PARTITA_FUNCTION_##arity, name)
#include "core/loops/scalar_ops.def"
#undef SCALAR_OP

PARTITA_HIDDEN void partita_report_fault(KernelFault* fault, std::int64_t which, std::int64_t position) {
  if (fault->met.exchange(true)) return;
  fault->which = which;
  fault->position = position;
}

std::string runtime_symbol(ScalarOp op, DType dtype) {
  return "partita_" + std::string(loops::name(op)) + "_" + std::string(short_name(dtype));
}

std::span<const RuntimeFunction> runtime_functions() {
  static const std::vector<RuntimeFunction> table = [] {
    std::vector<RuntimeFunction> t;
    t.push_back({report_fault_symbol, reinterpret_cast<void*>(partita_report_fault)});
#define PARTITA_ROW(name, T, dtype)             \
  if constexpr (exists<name##Evaluation<T>, T>) \
    t.push_back({"partita_" #name "_" #dtype, reinterpret_cast<void*>(partita_##name##_##dtype)});
#define SCALAR_OP(name, arity, ...) PARTITA_ALL_DTYPES(PARTITA_ROW, name)
#include "core/loops/scalar_ops.def"
#undef SCALAR_OP
    return t;
  }();
  return table;
}

}  // namespace partita::codegen

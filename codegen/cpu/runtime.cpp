#include "codegen/cpu/runtime.h"

#include <type_traits>
#include <vector>

#include "core/loops/scalar_math.h"

namespace partita::codegen {
namespace {

using loops::ScalarOp;

template <class T, int arity, class F>
void* address_of(F) {
  // A lambda without captures has no state, so a new object of its type can be called.
  if constexpr (arity == 1)
    return reinterpret_cast<void*>(+[](T a) -> T { return static_cast<T>(F{}(a, a, a)); });
  else if constexpr (arity == 2)
    return reinterpret_cast<void*>(+[](T a, T b) -> T { return static_cast<T>(F{}(a, b, a)); });
  else
    return reinterpret_cast<void*>(+[](T a, T b, T c) -> T { return static_cast<T>(F{}(a, b, c)); });
}

template <class T>
void add_rows(DType dtype, std::vector<RuntimeFunction>& table) {
  using namespace loops;
#define SCALAR_OP(name, arity, result, weight, evaluation, ...)                                                      \
  {                                                                                                                  \
    auto f = []([[maybe_unused]] auto a, [[maybe_unused]] auto b, [[maybe_unused]] auto c) -> decltype(evaluation) { \
      return evaluation;                                                                                             \
    };                                                                                                               \
    if constexpr (std::is_invocable_v<decltype(f), T, T, T>)                                                         \
      table.push_back({runtime_symbol(ScalarOp::name, dtype), address_of<T, arity>(f)});                             \
  }
#include "core/loops/scalar_ops.def"
#undef SCALAR_OP
}

void report_fault(KernelFault* fault, std::int64_t which, std::int64_t position) {
  if (fault->met.exchange(true)) return;
  fault->which = which;
  fault->position = position;
}

}  // namespace

std::string runtime_symbol(ScalarOp op, DType dtype) {
  return "partita_" + std::string(loops::name(op)) + "_" + std::string(short_name(dtype));
}

std::span<const RuntimeFunction> runtime_functions() {
  static const std::vector<RuntimeFunction> table = [] {
    std::vector<RuntimeFunction> t;
    t.push_back({report_fault_symbol, reinterpret_cast<void*>(report_fault)});
    add_rows<float>(DType::Float32, t);
    add_rows<double>(DType::Float64, t);
    add_rows<std::uint8_t>(DType::UInt8, t);
    add_rows<std::int8_t>(DType::Int8, t);
    add_rows<std::uint16_t>(DType::UInt16, t);
    add_rows<std::int16_t>(DType::Int16, t);
    add_rows<std::uint32_t>(DType::UInt32, t);
    add_rows<std::int32_t>(DType::Int32, t);
    add_rows<std::uint64_t>(DType::UInt64, t);
    add_rows<std::int64_t>(DType::Int64, t);
    return t;
  }();
  return table;
}

}  // namespace partita::codegen

#pragma once

#include <string_view>

namespace partita {

/// A function of Python's operator module and the operator that stands for it in printed code.
struct PythonOperator {
  std::string_view symbol, function;
  int precedence = 0;  ///< of binary operators: a higher one binds tighter
};
inline constexpr PythonOperator binary_operators[] = {
    {"<", "lt", 1},        {"<=", "le", 1}, {">", "gt", 1},     {">=", "ge", 1},  {"==", "eq", 1},
    {"!=", "ne", 1},       {"|", "or_", 2}, {"^", "xor", 3},    {"&", "and_", 4}, {"<<", "lshift", 5},
    {">>", "rshift", 5},   {"+", "add", 6}, {"-", "sub", 6},    {"*", "mul", 7},  {"/", "truediv", 7},
    {"//", "floordiv", 7}, {"%", "mod", 7}, {"@", "matmul", 7}, {"**", "pow", 9}};
inline constexpr int unary_precedence = 8;
inline constexpr PythonOperator in_place_operators[] = {
    {"+=", "iadd"},     {"-=", "isub"},  {"*=", "imul"},   {"/=", "itruediv"}, {"//=", "ifloordiv"},
    {"%=", "imod"},     {"&=", "iand"},  {"|=", "ior"},    {"^=", "ixor"},     {"<<=", "ilshift"},
    {">>=", "irshift"}, {"**=", "ipow"}, {"@=", "imatmul"}};

}  // namespace partita

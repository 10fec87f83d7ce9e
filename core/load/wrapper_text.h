#pragma once
// Statements of the Python wrapper in inductor's output code.
#include <string_view>
#include <vector>

namespace partita {

/// "a", "f(b, c)", "out=d" of "a, f(b, c), out=d)...", up to the bracket that closes them or the end.
std::vector<std::string_view> call_arguments(std::string_view text);

/// The variable that an argument is, or is another view of: "buf0" of "reinterpret_tensor(buf0, (2, 3), (3, 1), 0)".
std::string_view variable_of(std::string_view argument);

/// What is before "args" where a function of the wrapper takes its inputs: "a, b" of "a, b = args"; empty elsewhere.
std::string_view taken_inputs(std::string_view line);

}  // namespace partita

#pragma once
// Numbers as people read them: the command line, the window and reports write them alike.
#include <cstdint>
#include <string>
#include <string_view>

namespace partita {

std::string bytes_text(double bytes);      ///< "512 B", "10.2 KiB", "3.40 MiB"
std::string seconds_text(double seconds);  ///< three digits and a unit: "1.23 ms", "0.81 s"
std::string error_text(double error);      ///< "3.1e-6"; "0" for none, "nan"
std::string amount_text(double n);         ///< three digits and a unit: "182 k", "1.2 G"
/// "1 node", "42 nodes". `plural`: where it is not the singular and an s.
std::string count_text(std::int64_t n, std::string_view singular, std::string_view plural = {});

}  // namespace partita

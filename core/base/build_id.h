#pragma once
#include <string>

namespace partita {

/// Identifies the machine code of this very program, or of libpartita.so where the code is in that: the linker's build
/// ID, in hexadecimal. What is stored of a compilation is found by it, because any part of the compiler may decide what
/// comes out. Empty: the linker gave none, and nothing can be kept.
const std::string& build_id();

}  // namespace partita

#pragma once
// What sources need that are compiled once for each instruction set (codegen/CMakeLists.txt): its vectors and its name.

#ifdef __AVX512F__
#define PARTITA_SET "avx512"
#define PARTITA_OF_SET(name) name##_avx512
#include "codegen/cpu/extern/lanes_avx512.inc"
#else
#define PARTITA_SET "avx2"
#define PARTITA_OF_SET(name) name##_avx2
#include "codegen/cpu/extern/lanes_avx2.inc"
#endif

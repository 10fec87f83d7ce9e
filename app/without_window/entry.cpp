#include "app/program.h"
#include "codegen/python/partita_compiler.h"

extern "C" __attribute__((visibility("default"))) int partita_compiler_main(int argc, char** argv) {
  return partita::run_program(argc, argv);
}

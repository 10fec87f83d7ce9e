// The command line of the Python package, which shares the package's library.
#include "codegen/python/partita_compiler.h"

int main(int argc, char** argv) {
  return partita_compiler_main(argc, argv);
}

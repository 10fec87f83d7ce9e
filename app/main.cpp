#include "app/program.h"

int main(int argc, char** argv) {
  return partita::run_program(argc, argv);
}

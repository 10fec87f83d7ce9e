#pragma once

namespace partita {

/// What main() does: reads the words of the command line, runs a verb, and returns the exit code.
int run_program(int argc, char** argv);

}  // namespace partita

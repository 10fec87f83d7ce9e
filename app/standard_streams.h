#pragma once
// The name - on the command line: standard input as a file, and standard output.
#include <optional>
#include <string>

#include "core/base/result.h"
#include "core/base/scratch.h"

namespace CLI {
class Validator;
}

namespace partita {

/// Keeps standard input in a file of its own, since loaders go to and fro in what they read. Its path lives as long as
/// the folder. Errors: cli.input.
class StandardInput {
 public:
  Result<std::string> keep();

 private:
  std::optional<ScratchFolder> folder_;
};

/// What the store remembers of a file that a verb read: - for standard input, whose scratch file does not stay.
std::string remembered_path(const std::string& path);

/// For options that name a file or a folder to write: refuses what cannot be written, before any work is done for it.
CLI::Validator output_file();
CLI::Validator output_folder();

}  // namespace partita

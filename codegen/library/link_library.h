#pragma once
#include <string>
#include <vector>

#include "codegen/library/image.h"
#include "core/base/result.h"

namespace partita::codegen {

/// The code of a part of a graph, for some sizes, on disk.
struct LinkPartCode {
  std::string program;                 ///< the file of its bytes
  std::string prefix;                  ///< of its functions' symbols
  std::vector<std::string> functions;  ///< names, without prefix
};
using LinkGraph = std::vector<std::vector<LinkPartCode>>;  ///< by part; no code: it is interpreted
struct LinkCode {
  std::string isa;
  LinkGraph forward, backward, constants;  ///< no parts: there is no such graph
};
struct LinkRequest {
  std::string folder;                ///< for files in between
  std::vector<LinkCode> code;        ///< from the least instruction set to the most
  std::vector<std::string> objects;  ///< files with the functions
  std::string description, weights;  ///< files; weights may be empty: they are not in the library
  bool evaluations = false;          ///< take in the operators' evaluations
  std::string output;
};

/// Links a library with the machine's linker. Errors: compile.linker when there is none or it fails, compile.runtime
/// when the runtime is not beside this program.
Status link_library(const LinkRequest& request);

/// The text of partita_model.h.
std::string_view library_header();

}  // namespace partita::codegen

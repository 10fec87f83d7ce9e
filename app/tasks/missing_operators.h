#pragma once
// What a file needs that Partita does not have: operators without a record or without an evaluation.
#include <map>
#include <string>
#include <vector>

#include "core/load/session.h"

namespace partita {

/// Why calls of an operator cannot be run.
enum class Missing : unsigned char {
  Record,      ///< nothing is known of it
  Evaluation,  ///< there is a record, which does not say what it computes
  Code,        ///< it runs a kernel of the user's own, which the graph names by its number
};
std::string_view text_of(Missing missing);  ///< "no record"

/// An operator that graphs call, and what would give it a meaning.
struct MissingOperator {
  std::string name;  ///< "mylib.scale_add.default"
  Missing missing = Missing::Record;
  std::size_t calls = 0;
  std::map<std::string, std::size_t> graphs;  ///< calls by the graph's id
  std::vector<std::string> lines;             ///< of the user's program, "FILE:LINE in FUNCTION", each once
  /// PyTorch takes it apart itself, before graphs are made of it, if the program is traced again that far.
  bool pytorch_decomposes = false;
  std::vector<std::string> files;  ///< for --operators; empty: a text cannot say it
  std::string registers;           ///< the namespace that a module of --python-import registers; empty: none does
  std::string module;              ///< one that is known to; empty: it is the user's own
};

struct MissingOperators {
  std::vector<MissingOperator> missing;      ///< by calls, most first
  std::map<std::string, std::string> given;  ///< operators that --operators gives a meaning, with the file
  std::vector<std::pair<std::string, Diagnostic>> unread;  ///< graphs that cannot be read, by id
  std::size_t graphs = 0;                                  ///< that were looked at
};

/// Looks through all graphs of what was loaded. Error: that of the last graph where none can be read.
Result<MissingOperators> find_missing(const Loaded& loaded);

}  // namespace partita

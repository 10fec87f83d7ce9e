#pragma once
#include <string>
#include <utility>
#include <vector>

#include "core/load/session.h"

namespace partita {

/// What one compilation left: the records of a compile id in a log, or the files of a folder.
struct Compilation {
  std::string key;   ///< "0/0", "rank 2 0/0" where a run has several logs, a folder; empty for what belongs to none
  std::string name;  ///< of the function that was compiled, "forward"; empty when it is not known
  std::string code;  ///< and where it is: "forward model.py:12"
  std::vector<const Artefact*> artefacts;

  const Artefact* record(std::string_view name) const;  ///< the first record of that name; null: there is none
  std::vector<const Artefact*> graphs() const;          ///< the artefacts that hold one
};

/// One of the things that are compared: a file, a folder, or the log of one rank.
struct Run {
  std::string name;
  std::string path;                       ///< that was opened
  std::vector<Compilation> compilations;  ///< in the order of the log; the one without a key first
};

/// One run for each of several things that were opened; of a single folder, one for each log in it. Points into them.
std::vector<Run> runs_of(const std::vector<const Loaded*>& opened);

/// The compilations that are the same in all runs: [row][run], null where a run has none. By compile id and function,
/// else by function, else, where that is not known, by compile id.
std::vector<std::vector<const Compilation*>> match_compilations(const std::vector<Run>& runs);

/// What a compilation's texts say of an aspect: name and value. Equal names are one fact with several values.
using Facts = std::vector<std::pair<std::string, std::string>>;

/// Where dynamo broke the graph, and why; why it compiled again.
Facts break_facts(const Compilation& c);
Facts recompilation_facts(const Compilation& c);
Facts option_facts(const Compilation& c);  ///< of dynamo, AOTAutograd and the compiler; the version of PyTorch
Facts guard_facts(const Compilation& c);   ///< by kind and what is guarded, without addresses
Facts kernel_facts(const Compilation& c);  ///< how often the output code calls each
Facts cache_facts(const Compilation& c);   ///< "hit", "miss" or "bypass" of each cache
Facts time_facts(const Compilation& c);    ///< seconds, as the metrics have them

}  // namespace partita

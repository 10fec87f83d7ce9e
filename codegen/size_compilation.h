#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/ir/graph.h"

namespace partita {

/// A compilation of a graph with symbolic sizes, for sizes that none of its code took so far.
struct SizeCompilation {
  enum class Kind : unsigned char {
    Symbolic,     ///< code for all sizes that keep the guards
    Fixed,        ///< code for these sizes only
    Interpreted,  ///< no code: the graph is interpreted for these sizes
  };
  struct Broken {
    Guard guard;
    std::string advice;  ///< what would end it
  };
  /// Code that there was, and why it was not taken.
  struct Tried {
    int number = 1;              ///< of the compilation
    std::vector<Broken> broken;  ///< all of its guards that these sizes break
  };

  std::string graph;
  int number = 1;  ///< among the compilations of this graph
  std::map<std::string, std::int64_t> sizes;
  std::vector<Guard> guards;                  ///< of the code; those of a fixed size are equations
  std::map<std::string, std::int64_t> fixed;  ///< sizes that the code has as numbers, as 0 and 1 always are
  Kind kind = Kind::Symbolic;
  std::string why_not;  ///< why there is no symbolic code
  std::vector<Tried> tried;
};

/// What ends recompilations for this guard: the size of which input to mark, or which line of the model to change.
std::string advice_for(const Guard& guard, const Graph& graph);

/// For people, in several lines: what was compiled, for which sizes it is, and why earlier code was not taken.
std::string text(const SizeCompilation& c);
std::string json(const SizeCompilation& c);

void fields(auto& a, SizeCompilation::Broken& b) {
  a(b.guard, b.advice);
}
void fields(auto& a, SizeCompilation::Tried& t) {
  a(t.number, t.broken);
}
void fields(auto& a, SizeCompilation& c) {
  a.choice(c.kind, 3);
  a(c.graph, c.number, c.sizes, c.guards, c.fixed, c.why_not, c.tried);
}

}  // namespace partita

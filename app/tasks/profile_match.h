#pragma once
// Which call of inductor's output code each event of a profile is.
#include <string>
#include <vector>

#include "app/tasks/joined_profile.h"

namespace partita {

struct MatchedEvent {
  int kernel = -1;  ///< in the calls of the output code; -1: none
  ProfiledCall::Match match = ProfiledCall::Match::None;
};

/// `events`: the names of what one run of the code called, in turn. The calls of the code run in their order, so that
/// as many as possible are matched in order; a call that the profile lacks is left out. Of the others, an event whose
/// name only one call has is that call again (of a loop), and events between two calls that have one library call
/// between them are that (which may be several operators).
std::vector<MatchedEvent> match_events(const std::vector<std::string>& events,
                                       const std::vector<InductorKernel>& kernels);

/// Can a call with inputs of these sizes ("Input Dims" of the profile) be the call of an operator by one of these
/// nodes? True as well where either is not known.
bool sizes_agree(const Graph& graph, const std::vector<std::string>& nodes, const std::string& operation,
                 const std::string& dims);

}  // namespace partita

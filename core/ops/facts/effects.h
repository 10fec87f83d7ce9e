#pragma once
#include "core/ir/graph.h"

namespace partita {

/// Does a call of it draw from the run's generator?
bool draws(const Op* op);
/// Does it take part in an exchange with the other ranks of a job?
bool is_collective(const Op* op);
/// Does it start one, which fills its results later?
bool starts_collective(const Op* op);

/// Does running this node do more than give its value: write memory, draw random numbers, exchange values with other
/// ranks, raise, print? Calls we know nothing of do; a call of sub graphs does when one of their calls does.
bool has_effect(const Node& node);

}  // namespace partita

#pragma once
// When each step of compiling ran, by the chromium_event records of logs.
#include <string>
#include <vector>

#include "core/load/session.h"

namespace partita {

struct TimelineSpan {
  std::string name, about;  ///< "inductor_compile", "fn_name: ..."
  std::string compilation;  ///< "0/0"; empty: of none
  std::string record;       ///< id of the artefact that says it
  double begin = 0;         ///< seconds since the first event of all
  double seconds = 0;       ///< with the steps in it
  double self_seconds = 0;  ///< without them
  int track = 0, lane = 0;  ///< steps of a track that overlap are in different lanes, an outer one above those in it
  bool ended = true;        ///< false: its end is not in the log
  bool instant = false;     ///< an event without a length
};

/// The steps of one rank, or of one of its threads.
struct TimelineTrack {
  std::string name;
  int lanes = 0;
  double busy_seconds = 0;  ///< in any step
};

/// All occurrences of a step.
struct TimelineStep {
  std::string name;
  int count = 0;
  double seconds = 0, self_seconds = 0;  ///< a step within one of the same name is not counted twice
  int longest = 0;                       ///< index of the longest occurrence
};

struct Timeline {
  std::vector<TimelineTrack> tracks;
  std::vector<TimelineSpan> spans;  ///< by beginning, an outer step before those in it
  std::vector<TimelineStep> steps;  ///< by time of their own, the most first
  double seconds = 0;               ///< from the first event to the end of the last

  /// "10 s of compiling; most of it, 5 s, in compile". Time of several ranks is that of the longest and the shortest.
  std::string summary() const;
};

/// Of everything that was opened: a track for each log and thread that has events.
Timeline make_timeline(const Loaded& loaded);

/// Does a file with these records have events?
bool has_timeline(const Artefact& artefact);

}  // namespace partita

#pragma once
#include "app/tasks/queries.h"

namespace partita {

// Questions about a trace log; words are not needed.
/// Of compiling; with a profile, of the program's own run.
Result<QueryAnswer> compile_times_of(const QuerySubject& subject, const std::vector<std::string>& words);
/// A row for each line that broke a graph, with the graphs that ended there.
Result<QueryAnswer> breaks_of(const QuerySubject& subject, const std::vector<std::string>& words);
/// A row for each recompilation, by the line of its function, with the guards of earlier code that failed.
Result<QueryAnswer> recompilations_of(const QuerySubject& subject, const std::vector<std::string>& words);
Result<QueryAnswer> caches_of(const QuerySubject& subject, const std::vector<std::string>& words);
Result<QueryAnswer> guards_of(const QuerySubject& subject, const std::vector<std::string>& words);

}  // namespace partita

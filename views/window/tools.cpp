#include "views/window/tools.h"

#include <algorithm>

namespace partita::views {

Runner WorkbenchTools::Backend::runner(const Progress& progress) const {
  return [compile = make(progress)](const Graph& graph, std::vector<Value> inputs) -> Result<std::vector<Value>> {
    TRY(CompiledFn run, compile(graph));
    return run(std::move(inputs));
  };
}

const WorkbenchTools::Backend* WorkbenchTools::find_backend(const QString& name) const {
  auto found = std::ranges::find(backends, name, &Backend::name);
  return found == backends.end() ? nullptr : &*found;
}

QStringList WorkbenchTools::backend_names() const {
  QStringList names;
  for (const Backend& backend : backends) names << backend.name;
  return names;
}

}  // namespace partita::views

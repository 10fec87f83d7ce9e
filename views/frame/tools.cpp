#include "views/frame/tools.h"

#include <algorithm>

#include "core/aot/run_compiled.h"
#include "views/look/format.h"

namespace partita::views {

Runner WorkbenchTools::BackendChoice::runner(const Progress& progress) const {
  return [compile = make(progress), any = takes_any_graph](const Graph& graph, std::vector<Value> inputs) {
    return run_graph(graph, std::move(inputs), compile, any);
  };
}

const WorkbenchTools::BackendChoice* WorkbenchTools::find_backend(const QString& name) const {
  auto found = std::ranges::find(backends, name, &BackendChoice::name);
  return found == backends.end() ? nullptr : &*found;
}

QStringList WorkbenchTools::backend_names() const {
  return texts(backends, &BackendChoice::name);
}

}  // namespace partita::views

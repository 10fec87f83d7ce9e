#include "codegen/worker.h"

#include "app/cli/command.h"
#include "app/tasks/plant.h"

namespace partita::cli {
namespace {

Result<CompileFn> make_compiler(const std::string& name, const std::string& plant, const BackendOptions& options) {
  TRY(const Backend* backend, find_backend(name));
  CompileFn compile = backend->make(options);
  if (plant.empty()) return compile;
  TRY(const auto fault, parse_plant(plant));
  return planted(std::move(compile), fault.first, fault.second);
}

Result<int> serve() {
  TRY_DO(serve_as_worker(worker_socket, make_compiler));
  return 0;
}

}  // namespace

extern const Command worker_command = {"worker", "Compiles and runs graphs for another partita, which starts it",
                                       [](CLI::App& app) -> Action {
                                         app.group("");  // not in --help: people do not call it
                                         return serve;
                                       }};

}  // namespace partita::cli

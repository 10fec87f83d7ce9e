#include "codegen/save_args.h"

#include <cstdio>
#include <filesystem>
#include <mutex>

#include <fmt/format.h>

#include "core/aot/saved_case.h"
#include "core/base/text.h"

namespace partita {
namespace {

namespace fs = std::filesystem;

Diagnostic failed(const std::string& what, const fs::path& folder, const std::error_code& why) {
  return input_error("save_args.write", fmt::format("{}: {}", what, why.message()), Where{.file = folder.string()});
}

/// Makes graph_N for the first N that is free, so that processes may share the folder.
Result<fs::path> new_folder(const fs::path& parent) {
  std::error_code why;
  fs::create_directories(parent, why);
  if (why) return failed("the folder cannot be created", parent, why);
  for (int n = 0;; ++n) {
    const fs::path folder = parent / fmt::format("graph_{}", n);
    if (fs::create_directory(folder, why)) return folder;
    if (why) return failed("the folder cannot be created", folder, why);
  }
}

Status save(const Graph& graph, std::vector<Value> inputs, const fs::path& parent) {
  TRY(const fs::path folder, new_folder(parent));
  const std::unique_ptr<Graph> read = plain_copy(graph);
  std::size_t i = inputs.size();
  const std::vector<Node*> placeholders = read->placeholders();
  while (i-- > 0) {
    if (i >= placeholders.size() || !placeholders[i]->users().empty() || !inputs[i].is_none()) continue;
    read->erase(placeholders[i]);
    inputs.erase(inputs.begin() + static_cast<std::ptrdiff_t>(i));
  }
  TRY_DO(write_case(*read, inputs, folder.string()));
  std::fprintf(stderr, "partita: graph and inputs saved; run them by: partita run %s --inputs %s\n",
               shell_word((folder / "graph.py").string()).c_str(),
               shell_word((folder / "inputs.safetensors").string()).c_str());
  return {};
}

}  // namespace

CompileFn saving_args(CompileFn compile, const std::string& folder) {
  return [compile = std::move(compile), folder](const Graph& graph) -> Result<CompiledFn> {
    TRY(const CompiledFn run, compile(graph));
    const auto saved = std::make_shared<std::once_flag>();
    const std::shared_ptr<const Graph> kept = graph.clone();
    return CompiledFn([run, saved, kept, folder](std::vector<Value> inputs) -> Result<std::vector<Value>> {
      Status done;
      std::call_once(*saved, [&] { done = save(*kept, inputs, folder); });
      if (!done) return std::move(done).error();
      return run(std::move(inputs));
    });
  };
}

}  // namespace partita

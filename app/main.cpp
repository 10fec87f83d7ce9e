#include <cstdio>

#include "app/cli/command.h"
#include "core/base/memory.h"
#include "core/ops/catch_raised.h"

namespace {

int complain(const partita::Diagnostic& error) {
  std::fprintf(stderr, "partita: %s\n", error.line().c_str());
  for (const std::string& note : error.notes) std::fprintf(stderr, "  %s\n", note.c_str());
  return error.exit_code();
}

}  // namespace

int main(int argc, char** argv) {
  using namespace partita;
  CLI::App app{"Partita: a workbench for PyTorch graphs. Without a verb it opens the window."};
  app.set_version_flag("--version", "partita " PARTITA_VERSION);
  app.require_subcommand(0, 1);
  app.footer(
      "Exit codes: 0 done; 1 a comparison or check differs or fails; 2 bad input or usage; 3 not supported; "
      "4 a bug of Partita; 5 stopped on request.");
  app.add_option_function<std::size_t>("--memory-limit", set_memory_limit,
                                       "bytes of tensors that may be held at one time")
      ->transform(CLI::AsSizeValue(false))
      ->default_str("the machine's memory");
  cli::Action chosen;
  for (const cli::Command* command : cli::commands()) {
    CLI::App* sub = app.add_subcommand(command->name, command->summary);
    cli::Action action = command->add(*sub);
    sub->callback([&chosen, action] { chosen = action; });
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& done) {
    return app.exit(done);
  } catch (const CLI::ParseError& error) {
    return complain(input_error("cli.usage", std::string(error.what()) + "; see partita --help"));
  }
  if (!chosen) chosen = cli::open_window;
  Result<int> code = catch_raised<int>(chosen);
  return code ? *code : complain(code.error());
}

#include "app/program.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <new>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "app/cli/command.h"
#include "app/config_options.h"
#include "app/standard_streams.h"
#include "app/version.h"
#include "core/base/raise.h"
#include "core/load/trace_writer.h"

using namespace partita;

namespace {

int complain(const Diagnostic& error) {
  std::fprintf(stderr, "partita: %s\n", error.line().c_str());
  for (const std::string& note : error.notes) std::fprintf(stderr, "  %s\n", note.c_str());
  return error.exit_code();
}

int run(int argc, char** argv) {
  CLI::App app{"Partita: a workbench for PyTorch graphs. Without a verb it opens the window."};
  app.set_version_flag("--version", fmt::format("partita {} ({}{})", version(), build_kind(), cli::about_window));
  app.require_subcommand(0, 1);
  app.footer(
      "Exit codes: 0 done; 1 a comparison or check differs or fails; 2 bad input or usage; 3 not supported; "
      "4 a bug of Partita; 5 stopped on request.\n"
      "A file named - is standard input, and behind -o standard output.\n"
      "`partita config` lists what --config takes: the store of compiled code (store), a team's cache of it "
      "(team_cache), the trace (trace; also TORCH_TRACE), ...");
  app.fallthrough();  // options of the program may stand behind the verb
  add_config_options(app);
  cli::Action chosen;
  for (const cli::Command* command : cli::commands()) {
    CLI::App* sub = app.add_subcommand(command->name, command->summary);
    cli::Action action = command->add(*sub);
    sub->callback([&chosen, action] { chosen = action; });
  }
  const auto is_verb = [&](const std::string& word) {
    return std::ranges::any_of(cli::commands(), [&](const cli::Command* command) { return command->name == word; });
  };
  std::vector<char*> words(argv, argv + argc);
  static char open[] = "open";  // `partita FILE` opens it
  if (argc > 1 && *argv[1] != '-' && !is_verb(argv[1]) && std::filesystem::exists(argv[1]))
    words.insert(words.begin() + 1, open);
  // `-` is standard input where a file is read; what is written takes it as standard output.
  StandardInput input;
  std::string standard_input;
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::string_view word = words[i], before = words[i - 1];
    if (word == "--" && std::ranges::any_of(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(i),
                                            [](std::string_view w) { return w == "record"; }))
      break;  // the rest is the command line of another program
    constexpr std::string_view outputs[] = {"-o",           "--output", "--compiler-folder",
                                            "--screenshot", "--events", "--trace"};
    if (word != "-" || std::ranges::find(outputs, before) != std::end(outputs)) continue;
    auto kept = input.keep();
    if (!kept) return complain(kept.error());
    standard_input = *std::move(kept);
    words[i] = standard_input.data();
  }
  try {
    app.parse(static_cast<int>(words.size()), words.data());
  } catch (const CLI::Success& done) {
    return app.exit(done);
  } catch (const CLI::ParseError& error) {
    return complain(input_error("cli.usage", std::string(error.what()) + "; see partita --help"));
  }
  if (const Status configured = apply_config_options(); !configured) return complain(configured.error());
  if (!chosen) chosen = cli::open_window;
  Result<int> code = catch_raised<int>(chosen);
  return code ? *code : complain(code.error());
}

/// Both streams at once: CLI11 writes its help to std::cout.
bool output_written() {
  return std::cout.flush().good() && std::fflush(stdout) == 0 && !std::ferror(stdout);
}

Diagnostic output_lost(const std::string& why) {
  return input_error("cli.output", fmt::format("the output cannot be written: {}", why));
}

/// Standard streams that are closed would give their numbers to the next files that are opened, into which messages
/// would go. What stands in for them takes no output, so that lost output is still noticed.
void occupy_standard_streams() {
  for (int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(fd, F_GETFD) < 0 && errno == EBADF && ::open("/dev/null", O_RDONLY) < 0) return;
}

std::string reason(const std::system_error& error) {
  if (error.code() == std::errc::resource_unavailable_try_again)
    return fmt::format("no more threads or processes can be started ({}); raise the limit (ulimit -u)", error.what());
  return error.what();
}

}  // namespace

int partita::run_program(int argc, char** argv) {
  occupy_standard_streams();
  clean_up_on_signals();
  std::signal(SIGXFSZ, SIG_IGN);  // a file beyond the limit (ulimit -f) is an error of write(), as a full disk is
  try {
    const int code = run(argc, argv);
    if (!output_written()) return complain(output_lost(std::strerror(errno)));
    constexpr int bad_input = 2;  // as for other output that cannot be written
    return code == 0 && trace::failed() ? bad_input : code;
  } catch (const std::bad_alloc&) {
    return complain(
        input_error("memory.exhausted", "the memory does not suffice; close other programs or take a smaller graph"));
  } catch (const std::system_error& error) {
    // fmt's message when stdout takes no more, std::thread's when there are too many.
    return complain(output_written() ? input_error("system", reason(error)) : output_lost(error.code().message()));
  } catch (const std::exception& error) {
    return complain(Diagnostic{Fault::Internal, "exception", fmt::format("internal error: {}", error.what())});
  }
}

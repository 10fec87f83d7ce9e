#include <QApplication>
#include <QElapsedTimer>
#include <QPixmap>
#include <QSettings>
#include <QStandardPaths>
#include <QTemporaryDir>
#include <QTimer>
#include <cstdio>
#include <filesystem>
#include <regex>

#include "app/cli/command.h"
#include "app/compilers.h"
#include "app/workbench.h"
#include "app/workbench_tools.h"
#include "views/look/style.h"

namespace partita::cli {
namespace {

struct Options {
  std::vector<std::string> paths;
  std::string screenshot, size = "1440x900", theme, select, view, graph, overlay, plant, compiler;
  double scale = 1, after = 0;
};

// Qt aborts when it finds no display; a missing one is the user's to mend.
Status check_display() {
  if (qEnvironmentVariableIsSet("QT_QPA_PLATFORM") || qEnvironmentVariableIsSet("DISPLAY") ||
      qEnvironmentVariableIsSet("WAYLAND_DISPLAY"))
    return {};
  return input_error("window.display",
                     "no display: neither DISPLAY nor WAYLAND_DISPLAY is set; use a headless verb (partita --help)");
}

// What was asked for and is not there, once all is open.
Status check_asked(const Workbench& bench, const Options& options) {
  const views::Document* shown = bench.current();
  if (!options.graph.empty() && (!shown || shown->id.toStdString() != options.graph))
    return input_error("open.graph", "no graph '" + options.graph + "'; partita list FILE names them");
  if (!options.select.empty() && (!shown || !shown->graph || !shown->graph->find(options.select)))
    return input_error("open.select", "no node '" + options.select + "' in the graph on the screen");
  return {};
}

// Shows everything asked for, takes the picture once no job runs, and leaves.
Result<int> take_screenshot(QApplication& app, Workbench& bench, const Options& options) {
  std::optional<Diagnostic> failed;
  auto fail = [&](const Diagnostic& problem) {
    if (!failed) failed = problem;
    app.quit();
  };
  QObject::connect(&bench, &Workbench::failed, &app, fail);
  auto size = QString::fromStdString(options.size).split('x');
  bench.window().resize(size[0].toInt(), size[1].toInt());
  if (!options.theme.empty())
    bench.window().set_theme_choice(options.theme == "dark" ? views::ThemeChoice::Dark : views::ThemeChoice::Light);
  bench.window().show();
  bool asked = false;
  QTimer poll;
  QElapsedTimer clock;
  clock.start();
  int quiet = 0;
  QObject::connect(&poll, &QTimer::timeout, &app, [&] {
    constexpr int kLimitSeconds = 300;
    if (clock.elapsed() > kLimitSeconds * 1000)
      return fail(Diagnostic{Fault::Internal, "open.busy",
                             "the window was still busy after " + std::to_string(kLimitSeconds) + " s"});
    quiet = bench.jobs().idle() ? quiet + 1 : 0;
    bool late = asked && options.after > 0 && static_cast<double>(clock.elapsed()) > options.after * 1000;
    if (quiet < 3 && !late) return;
    if (!asked) {
      asked = true;
      quiet = 0;
      clock.restart();
      if (Status there = check_asked(bench, options); !there) return fail(there.error());
      if (!options.select.empty()) bench.selection().select_node(QString::fromStdString(options.select));
      if (!options.view.empty() && !bench.show_view(QString::fromStdString(options.view)))
        return fail(input_error("open.view", "no view '" + options.view + "'; partita open --help names them"));
      if (!options.overlay.empty()) bench.show_overlay(QString::fromStdString(options.overlay));
      return;
    }
    if (!bench.window().grab().save(QString::fromStdString(options.screenshot)))
      return fail(input_error("open.screenshot", options.screenshot + ": cannot write the picture"));
    app.quit();
  });
  poll.start(30);
  app.exec();
  if (failed) return *std::move(failed);
  return 0;
}

Result<int> run(const Options& options) {
  TRY_DO(check_display());
  // The window says it itself; a picture of a window that says it is no success.
  for (const std::string& path : options.paths)
    if (!options.screenshot.empty() && !std::filesystem::exists(path))
      return input_error("open.missing", path + ": no such file or folder; give one that exists");
  if (!options.screenshot.empty() && options.scale != 1) qputenv("QT_SCALE_FACTOR", QByteArray::number(options.scale));
  // Without a window to be used, what Qt says about its platform is noise beside our one line.
  if (!options.screenshot.empty())
    qInstallMessageHandler([](QtMsgType type, const QMessageLogContext&, const QString& message) {
      if (type == QtFatalMsg) std::fprintf(stderr, "partita: %s\n", qPrintable(message));
    });
  int argc = 1;
  char name[] = "partita";
  char* argv[] = {name, nullptr};
  QApplication app(argc, argv);
  QApplication::setApplicationName("partita");
  QApplication::setOrganizationName("partita");
  QApplication::setStyle(new views::PlainStyle);
  QApplication::setFont(views::interface_font());
  // A screenshot is the same whatever was open before.
  QTemporaryDir fresh;
  if (!options.screenshot.empty()) {
    QSettings::setDefaultFormat(QSettings::IniFormat);
    QSettings::setPath(QSettings::IniFormat, QSettings::UserScope, fresh.path());
  }
  TRY(WorkbenchTools given, program_tools(options.plant, app.applicationFilePath().toStdString()));
  Workbench bench(std::move(given));
  if (!options.compiler.empty()) {
    TRY_DO(find_compiler(options.compiler));
    bench.runs()->choose(QString::fromStdString(options.compiler), false);
  }
  for (const std::string& path : options.paths) bench.open(QString::fromStdString(path));
  if (!options.graph.empty()) bench.show_when_loaded(QString::fromStdString(options.graph));
  if (!options.screenshot.empty()) return take_screenshot(app, bench, options);
  bench.window().restore_layout();
  bench.window().show();
  return app.exec();
}

Action add(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("paths", options->paths, "Files and folders to open");
  app.add_option("--graph", options->graph, "Id of the graph to show first, as partita list prints it");
  app.add_option("--screenshot", options->screenshot, "Write the window to a PNG and leave");
  app.add_option("--size", options->size, "Of the window for --screenshot, WIDTHxHEIGHT")
      ->check([](const std::string& text) {
        static const std::regex form("[1-9][0-9]{2,3}x[1-9][0-9]{2,3}");
        return std::regex_match(text, form) ? std::string() : "WIDTHxHEIGHT, each of three or four digits";
      });
  app.add_option("--theme", options->theme, "light or dark")->check(CLI::IsMember({"light", "dark"}));
  app.add_option("--scale", options->scale, "Device pixels per pixel for --screenshot")->check(CLI::Range(0.5, 4.0));
  app.add_option("--after", options->after,
                 "Seconds after which --screenshot does not wait any longer for what --view and --overlay started")
      ->check(CLI::PositiveNumber);
  app.add_option("--select", options->select, "Node to choose");
  app.add_option("--overlay", options->overlay, "Colour the picture by it; finds out what that takes")
      ->check(CLI::IsMember({"family", "bytes", "error", "time", "kernel", "module", "pass"}));
  app.add_option("--view", options->view, "graph, aot, passes, compare, values, history, coverage, minify or run");
  app.add_option("--compiler", options->compiler, "What Run and --view run take, as partita run --help names them");
  app.add_option(
      "--plant", options->plant,
      "OP:wrong, OP:crash or OP:hang: a backend more, planted, that compiles this operator by a wrong rule, to "
      "see what comparisons and the minifier find");
  return [options] { return run(*options); };
}

}  // namespace

Result<int> open_window() {
  return run({});
}

extern const Command open_command;
const Command open_command = {"open", "The window", add};

}  // namespace partita::cli

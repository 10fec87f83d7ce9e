// The verb open: sets up the application, opens the window, and shows what the options name, or takes a screenshot once
// no job runs. The window itself is in views.
#include <QApplication>
#include <QBuffer>
#include <QElapsedTimer>
#include <QFileInfo>
#include <QFontDatabase>
#include <QImageWriter>
#include <QPixmap>
#include <QSettings>
#include <QStandardPaths>
#include <QTemporaryDir>
#include <QTimer>
#include <cstdio>
#include <filesystem>
#include <regex>
#include <thread>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/cli/command.h"
#include "app/run_options.h"
#include "app/standard_streams.h"
#include "app/tasks/compilers.h"
#include "app/window_tools.h"
#include "core/base/output.h"
#include "core/base/scratch.h"
#include "views/compare/compare_controller.h"
#include "views/graph/graph_controller.h"
#include "views/look/format.h"
#include "views/look/style.h"
#include "views/look/theme.h"
#include "views/profile/profile_controller.h"
#include "views/run/run_controller.h"
#include "views/window/event_log.h"
#include "views/window/window_session.h"

namespace partita::cli {
namespace {

struct OpenVerbOptions {
  std::vector<std::string> paths, against;
  std::string screenshot, size = "1440x900", theme, select, view, graph, overlay, plant, compiler, events, profile,
                          steps;
  double scale = 1, after = 0;
};

// Without a display Qt aborts; this gives an error that the user can act on.
Status check_display() {
  if (qEnvironmentVariableIsSet("QT_QPA_PLATFORM") || qEnvironmentVariableIsSet("DISPLAY") ||
      qEnvironmentVariableIsSet("WAYLAND_DISPLAY"))
    return {};
  return input_error("window.display",
                     "no display: neither DISPLAY nor WAYLAND_DISPLAY is set; use a headless verb (partita --help)");
}

// Shows what the options ask for; an error when it is not there. To be called once all files are open.
Status show_asked(views::Session& bench, const OpenVerbOptions& options) {
  const views::Document* shown = bench.documents().current();
  if (!options.graph.empty() && (!shown || shown->id.toStdString() != options.graph))
    return input_error("open.graph", "no graph '" + options.graph + "'; partita list FILE names them");
  if (!options.select.empty() && (!shown || !shown->graph || !shown->graph->find(options.select)))
    return input_error("open.select", "no node '" + options.select + "' in the graph on the screen");
  if (!options.select.empty()) bench.selection().select_node(QString::fromStdString(options.select));
  if (!options.view.empty() && !bench.views().show(QString::fromStdString(options.view)))
    return input_error("open.view", "no view '" + options.view + "' here; it needs a store");
  if (!options.overlay.empty())
    bench.views().get<views::GraphController>().show_overlay(QString::fromStdString(options.overlay));
  return {};
}

// The profile of the log that was opened; its page in front, unless something else is asked for.
void open_profile(views::Session& bench, const OpenVerbOptions& options) {
  auto& profiles = bench.views().get<views::ProfileController>();
  if (options.view.empty() && options.overlay.empty() && options.select.empty()) profiles.show();
  profiles.open(QString::fromStdString(options.profile), QString::fromStdString(options.steps));
}

/// By the ending; png for standard output.
std::string picture_format(const std::string& file) {
  if (file == "-") return "png";
  return QFileInfo(QString::fromStdString(file)).suffix().toLower().toStdString();
}

Status check_picture_file(const std::string& file) {
  const QList<QByteArray> formats = QImageWriter::supportedImageFormats();
  if (!formats.contains(QByteArray::fromStdString(picture_format(file))))
    return input_error("open.screenshot", file + ": no picture has this ending; name a file that ends with .png");
  TRY_DO(output_place(file));
  return {};
}

Status write_picture(QWidget& window, const std::string& file) {
  QByteArray bytes;
  QBuffer buffer(&bytes);
  buffer.open(QIODevice::WriteOnly);
  if (!window.grab().save(&buffer, picture_format(file).c_str()))
    return input_error("open.screenshot", file + ": the picture cannot be made; name a file that ends with .png");
  return write_file(file, bytes.toStdString());
}

// Shows what the options ask for, takes the picture once no job runs, and ends.
Result<int> take_screenshot(QApplication& app, views::Session& bench, const OpenVerbOptions& options) {
  std::optional<Diagnostic> failed;
  auto fail = [&](const Diagnostic& problem) {
    if (!failed) failed = problem;
    app.quit();
  };
  QObject::connect(&bench, &views::Session::failed, &app, fail);
  auto size = QString::fromStdString(options.size).split('x');
  bench.window().resize(size[0].toInt(), size[1].toInt());
  bench.window().show();
  bool asked = false, profile_asked = options.profile.empty();
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
    if (!profile_asked) {
      profile_asked = true;
      quiet = 0;
      return open_profile(bench, options);
    }
    if (!asked) {
      asked = true;
      quiet = 0;
      clock.restart();
      if (Status there = show_asked(bench, options); !there) fail(there.error());
      return;
    }
    if (const Status written = write_picture(bench.window(), options.screenshot); !written) fail(written.error());
    app.quit();
  });
  poll.start(30);
  app.exec();
  if (failed) return *std::move(failed);
  return 0;
}

Status check_paths(const OpenVerbOptions& options) {
  // The window itself reports missing files; a screenshot of such a report would not be a success.
  for (const std::string& path : options.paths)
    if (!options.screenshot.empty() && !std::filesystem::exists(path))
      return input_error("open.missing", path + ": no such file or folder; give one that exists");
  if (!options.profile.empty() && options.paths.empty())
    return input_error("cli.usage", "--profile belongs to a log; give the path that TORCH_TRACE wrote, too");
  return {};
}

/// The name, the fonts and the style of the program's windows.
Status set_up_application() {
  const QFont font = views::interface_font();  // may add the fonts that the program carries
  if (QFontDatabase::families().isEmpty())
    return input_error(
        "window.fonts",
        "no font is installed, so that no text could be shown; install fonts-inter and fonts-jetbrains-mono");
  QApplication::setApplicationName("partita");
  QApplication::setOrganizationName("partita");
  QApplication::setStyle(new views::PlainStyle);
  QApplication::setFont(font);
  QApplication::setWindowIcon(views::program_icon());
  QGuiApplication::setDesktopFileName("partita");  // by which desktops find the icon and name of its windows
  return {};
}

Result<int> run(const OpenVerbOptions& options) {
  TRY_DO(check_display());
  // Qt only warns when no thread can be started, and jobs would wait for ever. This raises what main reports.
  std::thread([] {}).join();
  TRY_DO(check_paths(options));
  if (!options.screenshot.empty() && options.scale != 1) qputenv("QT_SCALE_FACTOR", QByteArray::number(options.scale));
  // For a screenshot, Qt's messages about its platform do not matter to the user.
  if (!options.screenshot.empty())
    qInstallMessageHandler([](QtMsgType type, const QMessageLogContext&, const QString& message) {
      if (type == QtFatalMsg) std::fprintf(stderr, "partita: %s\n", qPrintable(message));
    });
  int argc = 1;
  char name[] = "partita";
  char* argv[] = {name, nullptr};
  views::WatchedApplication app(argc, argv);
  TRY_DO(set_up_application());
  if (!options.screenshot.empty()) TRY_DO(check_picture_file(options.screenshot));
  // A screenshot must not depend on what was open before.
  std::optional<QTemporaryDir> fresh;
  if (!options.screenshot.empty()) {
    fresh.emplace();
    QSettings::setDefaultFormat(QSettings::IniFormat);
    QSettings::setPath(QSettings::IniFormat, QSettings::UserScope, fresh->path());
  }
  TRY(views::WorkbenchTools given, program_tools(options.plant, app.applicationFilePath().toStdString()));
  views::Session bench(std::move(given), views::texts(options.paths), QString::fromStdString(options.graph));
  if (!options.compiler.empty()) {
    TRY_DO(find_compiler(options.compiler));
    bench.views().find<views::RunController>()->view()->choose(QString::fromStdString(options.compiler), false);
  }
  if (!options.against.empty())
    bench.views().get<views::CompareController>().view()->choose_columns(views::texts(options.against));
  if (!options.theme.empty())
    bench.window().use_theme(options.theme == "dark" ? views::ThemeChoice::Dark : views::ThemeChoice::Light);
  std::unique_ptr<views::EventLog> log;
  if (!options.events.empty()) {
    TRY(log, views::EventLog::open(QString::fromStdString(options.events)));
    log->watch(bench);
    app.set_log(log.get());
  }
  if (!options.screenshot.empty()) {
    TRY(const int code, take_screenshot(app, bench, options));
    if (log) TRY_DO(log->written());
    return code;
  }
  bench.window().restore_layout();
  bench.window().fit_screen();
  bench.window().show();
  bool asked = false, profile_asked = options.profile.empty();
  QObject::connect(&bench.jobs(), &views::JobTracker::changed, &app, [&] {
    if (!bench.jobs().idle() || !bench.documents().current()) return;
    if (!std::exchange(profile_asked, true)) return open_profile(bench, options);
    if (std::exchange(asked, true)) return;
    if (Status there = show_asked(bench, options); !there) bench.window().report(there.error());
  });
  const int code = app.exec();
  if (log) TRY_DO(log->written());
  // Work that does not look for a cancellation soon is left behind: who closes the window has nothing to wait for.
  constexpr int patience_ms = 100;
  if (!bench.jobs().stop_within(patience_ms)) end_now(code);
  return code;
}

// The names that --view or --overlay take.
std::vector<std::string> view_names() {
  std::vector<std::string> names;
  for (const views::ViewRow& row : views::view_rows()) names.emplace_back(row.name);
  return names;
}
std::vector<std::string> overlay_names() {
  std::vector<std::string> names;
  for (views::OverlayKind kind : views::overlay_kinds())
    names.push_back(views::overlay_name(kind).toLower().split(' ').last().toStdString());
  return names;
}

Action add_open(CLI::App& app) {
  auto options = std::make_shared<OpenVerbOptions>();
  app.add_option("paths", options->paths, "Files and folders to open");
  app.add_option("--graph", options->graph, "Id of the graph to show first, as partita list prints it");
  app.add_option("--screenshot", options->screenshot, "Write a picture of the window to a PNG file and end");
  app.add_option("--size", options->size, "Size of the window for --screenshot, WIDTHxHEIGHT")
      ->check([](const std::string& text) {
        static const std::regex form("[1-9][0-9]{2,3}x[1-9][0-9]{2,3}");
        return std::regex_match(text, form) ? std::string() : "WIDTHxHEIGHT, each of three or four digits";
      });
  app.add_option("--theme", options->theme, "light or dark")->check(CLI::IsMember({"light", "dark"}));
  app.add_option("--scale", options->scale, "Device pixels per pixel for --screenshot")->check(CLI::Range(0.5, 4.0));
  app.add_option("--after", options->after,
                 "Seconds after which --screenshot does not wait any longer for what --view and --overlay started")
      ->check(CLI::PositiveNumber);
  app.add_option("--select", options->select, "Node to select");
  app.add_option("--overlay", options->overlay, "What the picture is coloured by; found out when it is not known")
      ->check(CLI::IsMember(overlay_names()));
  app.add_option("--view", options->view, "View to begin with: " + fmt::format("{}", fmt::join(view_names(), ", ")))
      ->check([](const std::string& name) {
        const auto names = view_names();
        return std::ranges::find(names, name) != names.end() ? std::string() : "there is no view '" + name + "'";
      });
  add_profile_options(app, options->profile, options->steps);
  app.add_option("--compiler", options->compiler, "The compiler of the view run, by its name in partita run --help");
  app.add_option("--against", options->against,
                 "A column of the views compare and values, as partita compare takes it; given once for each")
      ->expected(1)
      ->take_all();
  app.add_option(
      "--plant", options->plant,
      "OP:wrong, OP:crash or OP:hang: adds a backend named planted that compiles this operator by a wrong rule, as the "
      "compilers of the view run then do, to see what comparisons and the minifier find");
  app.add_option("--events", options->events,
                 "Write what the window does to this file, as JSON, one object a line; for tests from outside")
      ->check(output_file());
  return [options] { return run(*options); };
}

}  // namespace

const char* const about_window = "";

Result<int> open_window() {
  return run(OpenVerbOptions{});
}

extern const Command open_command = {"open", "The window", add_open};

}  // namespace partita::cli

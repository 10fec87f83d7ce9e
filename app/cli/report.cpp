#include "app/tasks/report.h"

#include "app/cli/command.h"
#include "app/progress_line.h"
#include "app/report_drawing.h"
#include "app/run_options.h"
#include "app/standard_streams.h"
#include "core/base/output.h"

namespace partita::cli {
namespace {

struct ReportVerbOptions {
  ReportRequest request;
  std::string output;
};

Result<int> run(ReportVerbOptions o) {
  ProgressLine line;
  o.request.run.progress = &line.progress();
  o.request.picture = report_graph;
  TRY(const ReportContent content, report_content(o.request));
  line.clear();
  if (o.output.ends_with(".pdf")) {
    TRY(const std::string pdf, report_pdf(content));
    TRY_DO(write_file(o.output, pdf));
  } else {
    TRY_DO(write_file(o.output, report_page(content)));
  }
  return 0;
}

}  // namespace

extern const Command report_command = {
    "report", "One HTML page to send: graphs, cut, passes, kernels, comparison", [](CLI::App& app) -> Action {
      auto o = std::make_shared<ReportVerbOptions>();
      add_run_options(app, o->request.run);
      add_worker_options(app, o->request.run);
      app.add_option("--repro", o->request.repro, "folder that `partita minify -o` wrote, to put its files in");
      app.add_option("-o,--output", o->output,
                     "file to write: FILE.html, which needs no other file and no network, or FILE.pdf, which has the "
                     "summary and the tables")
          ->required()
          ->check(output_file());
      return [o] { return run(*o); };
    }};

}  // namespace partita::cli

// Workbench: what the picture can be coloured by, the memory budget, and Graphviz.
#include <QFileDialog>
#include <QFileInfo>

#include "app/workbench.h"
#include "app/workbench_measure.h"
#include "core/load/file.h"
#include "views/look/format.h"

namespace partita {

using views::OverlayKind;
using views::text;

namespace {

struct Measured {
  std::unordered_map<std::string, double> seconds;
  Result<std::unordered_map<std::string, std::string>> kernels;
};

}  // namespace

void Workbench::wire_measures() {
  window_.add_command("Graph", tr("Time the nodes and plan the kernels"), QKeySequence("Ctrl+T"),
                      [this] { measure(compare_->request().inputs); });
  auto* slider = window_.picture_bar()->budget();
  auto step = [slider](int by) { return [slider, by] { slider->setValue(slider->value() + by); }; };
  window_.add_command("Graph", tr("Smaller memory budget"), QKeySequence("Ctrl+["), step(-1));
  window_.add_command("Graph", tr("Larger memory budget"), QKeySequence("Ctrl+]"), step(1));
  connect(slider, &views::BudgetSlider::budget_chosen, this, &Workbench::set_budget);
  tell_overlays();
}

void Workbench::measure(const QString& inputs) {
  if (!current_ || !current_->graph) return;
  auto graph = current_->graph;
  auto artefact = current_->artefact;
  QString key = current_->key;
  jobs_.start<Measured>(
      tr("Time the nodes of %1").arg(current_->title), "measure:" + key, this,
      [=, inputs_of = tools_.inputs](const Progress& progress) -> Result<Measured> {
        progress.at(-1, "inputs");
        auto copy = graph->clone();
        TRY(std::vector<Value> values, inputs_of(*copy, artefact, inputs));
        TRY(auto seconds, time_nodes(*copy, values, progress));
        progress.at(-1, "planning kernels");
        return Measured{std::move(seconds), kernels_of_nodes(*graph)};
      },
      [this, key](Result<Measured> measured) {
        if (!measured) return report(measured.error());
        auto of = documents_.find(key);
        if (of == documents_.end()) return;
        Document& document = *of->second;
        for (const auto& [node, seconds] : measured->seconds) document.facts[node].seconds = seconds;
        if (measured->kernels)
          for (const auto& [node, kernel] : *measured->kernels) document.facts[node].kernel = kernel;
        document.no_kernels = measured->kernels ? QString() : text(measured->kernels.error().line());
        if (!document.no_kernels.isEmpty()) window_.log(tr("No kernels: %1").arg(document.no_kernels), true);
        if (current_ != &document) return;
        window_.graph()->set_facts(document.facts);
        tell_overlays();
      });
}

void Workbench::tell_overlays() {
  bool error = false, seconds = false, kernel = false, pass = false;
  if (current_)
    for (const auto& [node, facts] : current_->facts) {
      error |= facts.error >= 0;
      seconds |= facts.seconds >= 0;
      kernel |= !facts.kernel.empty();
      pass |= !facts.pass.empty();
    }
  window_.set_overlay_known(OverlayKind::Error, error, tr("Not compared yet: Graph > Run and compare (Ctrl+R)"));
  window_.set_overlay_known(OverlayKind::Time, seconds,
                            tr("Not timed yet: Graph > Time the nodes and plan the kernels (Ctrl+T)"));
  bool refused = current_ && !current_->no_kernels.isEmpty();
  window_.set_overlay_known(OverlayKind::Kernel, kernel,
                            refused ? tr("The compiler has no plan for this graph: %1").arg(current_->no_kernels)
                                    : tr("Not planned yet: Graph > Time the nodes and plan the kernels (Ctrl+T)"));
  bool ran = current_ && film_of_ == current_->key && passes_->film() != nullptr;
  window_.set_overlay_known(OverlayKind::Pass, pass,
                            ran ? tr("No pass changed a node of this graph")
                                : tr("The passes have not run yet: Graph > Run the passes (Ctrl+P)"));
  if (wanted_overlay_ && window_.overlay_action(*wanted_overlay_)->isEnabled())
    window_.set_overlay(*std::exchange(wanted_overlay_, {}));
  // An overlay of another document that this one has no data for would be a blank picture.
  if (!window_.overlay_action(window_.graph()->overlay())->isEnabled()) window_.set_overlay(OverlayKind::None);
}

bool Workbench::show_overlay(const QString& name) {
  for (OverlayKind kind : {OverlayKind::None, OverlayKind::Bytes, OverlayKind::Error, OverlayKind::Time,
                           OverlayKind::Kernel, OverlayKind::Module, OverlayKind::Pass}) {
    if (!views::overlay_name(kind).startsWith(name, Qt::CaseInsensitive) &&
        !views::overlay_name(kind).endsWith(name, Qt::CaseInsensitive))
      continue;
    if (window_.overlay_action(kind)->isEnabled()) {
      window_.set_overlay(kind);
      return true;
    }
    wanted_overlay_ = kind;
    if (kind == OverlayKind::Error) compare(compare_->request());
    if (kind == OverlayKind::Pass) run_passes();
    if (kind == OverlayKind::Time || kind == OverlayKind::Kernel) measure(compare_->request().inputs);
    return true;
  }
  return false;
}

void Workbench::set_budget(double budget) {
  if (!current_ || !current_->cut || current_->memory_budget == budget) return;
  current_->memory_budget = budget;
  render(*current_);
}

void Workbench::ask_budget_curve(Document& document) {
  if (!document.cut || document.budget_asked == document.pins) return;
  document.budget_asked = document.pins;
  QString key = document.key;
  jobs_.start<std::vector<BudgetPoint>>(
      tr("Memory budgets of %1").arg(document.title), "budget:" + key, this,
      [graph = document.graph, options = views::partition_options(document)](const Progress& progress) {
        return budget_curve(*graph, options, views::BudgetSlider::kSteps + 1, &progress);
      },
      [this, key](Result<std::vector<BudgetPoint>> curve) {
        if (!curve) return report(curve.error());
        auto of = documents_.find(key);
        if (of == documents_.end()) return;
        of->second->budget = *std::move(curve);
        if (current_ == of->second.get()) window_.picture_bar()->budget()->set_curve(current_->budget);
      });
}

void Workbench::ask_graphviz_path() {
  if (!current_ || !current_->graph) return;
  auto* dialog = new QFileDialog(&window_, tr("Export through Graphviz"));
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->setAcceptMode(QFileDialog::AcceptSave);
  dialog->setNameFilters({"SVG (*.svg)", "PDF (*.pdf)", "PNG (*.png)", tr("Graphviz source (*.dot)")});
  dialog->setDefaultSuffix("svg");
  dialog->selectFile(current_->title.simplified().replace(' ', '_').replace('/', '_') + ".svg");
  connect(dialog, &QFileDialog::fileSelected, this, &Workbench::export_graphviz);
  dialog->open();
}

void Workbench::export_graphviz(const QString& path) {
  if (!current_ || !current_->graph || !tools_.graphviz) return;
  QString format = QFileInfo(path).suffix().toLower();
  jobs_.start<std::string>(
      tr("Export %1 through Graphviz").arg(QFileInfo(path).fileName()), {}, this,
      [graph = current_->graph, format, path, draw = tools_.graphviz](const Progress& progress) -> Result<std::string> {
        TRY(std::string bytes, draw(*graph, format.toStdString(), progress));
        TRY_DO(write_file(path.toStdString(), bytes));
        return path.toStdString();
      },
      [this](Result<std::string> done) {
        if (!done) return report(done.error());
        window_.log(tr("Wrote %1").arg(text(*done)));
      });
}

}  // namespace partita

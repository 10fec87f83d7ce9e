// Commands of the picture and its bar: overlays and the jobs that find out what they show, sizes of symbols, export as
// picture, by Graphviz or as a report. Scenes are made by the workbench.
#include "views/graph/graph_controller.h"

#include <QAction>
#include <QDialog>
#include <QDialogButtonBox>
#include <QFileInfo>
#include <QFormLayout>
#include <QIntValidator>
#include <QLineEdit>
#include <QSettings>
#include <QUrl>
#include <algorithm>
#include <limits>
#include <set>

#include "core/base/output.h"
#include "views/frame/workbench.h"
#include "views/look/arrange.h"
#include "views/look/format.h"
#include "views/picture/picture_export.h"

namespace partita::views {

namespace {

std::set<std::string> symbols_of(const Graph& graph) {
  std::set<std::string> symbols;
  for (const Node* node : graph.placeholders())
    if (const TensorMeta* tensor = node->meta.tensor())
      for (const SymExpr& size : tensor->sizes)
        for (const std::string& symbol : size.symbols()) symbols.insert(symbol);
  return symbols;
}

QString kept_hints_of(const Document& document) {
  return "hints/" + QString::fromLatin1(QUrl::toPercentEncoding(document.key));
}

}  // namespace

extern const MakeView make_graph_view = make_view<GraphController>;

GraphController::GraphController(Workbench& bench) : WidgetController(bench), bar_(new PictureBar(&bench.window())) {
  bar_->hide();
  bench.window().set_page_bar(bar_);
  connect(&bench.window(), &Window::page_changed, this, &GraphController::arrange_bar);
  connect(view_, &GraphView::node_chosen, &bench.selection(), &Selection::select_node);
  connect(view_, &GraphView::pin_asked, &bench.pins(), &PinHistory::pin);
  connect(view_, &GraphView::fold_asked, &bench.drawing(), &Drawing::fold);
  connect(view_, &GraphView::card_changed, this, [this] { bar_->set_modules(view_->module_path()); });
  connect(bar_, &PictureBar::module_chosen, view_, &GraphView::ask_fold_of);
  const auto stop_waiting = [this] { view_->set_busy({}); };
  connect(&bench.documents(), &Documents::failed, this, stop_waiting);
  connect(&bench.drawing(), &Drawing::failed, this, stop_waiting);
  add_commands();
}

void GraphController::add_commands() {
  Window& window = bench_.window();
  window.add_command("Graph", tr("The picture"), QKeySequence("Ctrl+G"), [this] { show(); });
  if (bench_.tools().measure)
    window.add_command("Graph", tr("Time the nodes and plan the kernels"), QKeySequence("Ctrl+T"), [this] {
      wanted_overlay_ = OverlayKind::Time;  // else nothing would be seen of the result
      measure(bench_.views().inputs());
    });
  bench_.offer(window.add_command("Graph", tr("Sizes of symbols…"), {}, [this] { ask_hints(); }), tr("Sizes"),
               [](const Document& document) { return document.graph && !symbols_of(*document.graph).empty(); });
  window.add_command("View", tr("Fit the picture"), {}, [this] { view_->fit(); });
  window.add_command("View/Show", tr("Show the whole picture"), {}, [this] { view_->fit(true); });
  window.add_command("View", tr("Zoom to the selection"), {}, [this] { view_->zoom_to_selection(); });
  window.add_command("View", tr("Fold all modules"), QKeySequence("Ctrl+0"),
                     [this] { bench_.drawing().fold_all(true); });
  window.add_command("View", tr("Unfold everything"), QKeySequence("Ctrl+9"),
                     [this] { bench_.drawing().fold_all(false); });
  for (OverlayKind kind : overlay_kinds()) {
    overlays_[kind] = window.add_command("View/Colour by", tr("Colour by %1").arg(overlay_name(kind).toLower()),
                                         QKeySequence(QString("Alt+%1").arg(static_cast<int>(kind) + 1)),
                                         [this, kind] { set_overlay(kind); });
    overlays_[kind]->setEnabled(overlay_known(kind, {}));
    bar_->add_overlay(kind, overlays_[kind]);
  }
  for (const char* format : {"svg", "png", "pdf"}) {
    QAction* action = window.add_command("File", tr("Export the picture as %1…").arg(QString(format).toUpper()), {},
                                         [this, format] { export_picture(format); });
    if (format == QString("svg"))
      bench_.offer(action, tr("Export"), [](const Document& document) { return document.scene != nullptr; });
  }
  if (bench_.tools().graphviz)
    window.add_command("File", tr("Export through Graphviz…"), {}, [this] { ask_graphviz_path(); });
  if (bench_.tools().report)
    window.add_command("File", tr("Write a report…"), {}, [this] {
      if (bench_.documents().current())
        ask_path(tr("Write a report"), "html", {tr("Page (*.html)"), "PDF (*.pdf)"},
                 [this](const QString& path) { write_report(path); });
    });
}

void GraphController::wait_for(const Document& document) {
  view_->set_scene(nullptr);
  if (document.kind == ArtefactKind::Text) return;
  view_->set_busy(tr("Drawing %1").arg(document.title));
  raise();
}

void GraphController::set_document(const Document& document) {
  step_shown_ = false;
  bool same = view_->scene() && document.graph && view_->scene()->picture.graph == document.graph;
  view_->set_pins(document.pins);
  view_->set_facts(document.facts);
  view_->set_notes(document.notes);
  view_->set_changes({});
  if (!same) wanted_overlay_.reset();
  view_->set_scene(document.scene, same);
  if (document.graph && document.graph->shapes) {
    const auto known = document.graph->shapes->hints();
    std::map<std::string, std::int64_t> kept;
    for (const auto& [symbol, size] : QSettings().value(kept_hints_of(document)).toMap().asKeyValueRange())
      if (!known.contains(symbol.toStdString())) kept[symbol.toStdString()] = size.toLongLong();
    if (!kept.empty()) set_hints(kept);
  }
  arrange_bar();
  refresh_overlays();
}

void GraphController::show() {
  raise();
  if (step_shown_) bench_.screen().show(QString(bench_.documents().current()->key));
}

void GraphController::ask_hints() {
  const Document* document = bench_.documents().current_graph();
  if (!document || !document->graph->shapes) return;
  const auto known = document->graph->shapes->hints();
  auto* dialog = new QDialog(&bench_.window());
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->setWindowTitle(tr("Sizes of symbols"));
  auto* form = new QFormLayout(dialog);
  std::map<std::string, QLineEdit*> fields;
  for (const std::string& symbol : symbols_of(*document->graph)) {
    auto* field = fields[symbol] = new QLineEdit;
    field->setValidator(new QIntValidator(1, std::numeric_limits<int>::max(), field));
    field->setPlaceholderText(tr("not known"));
    if (const auto hint = known.find(symbol); hint != known.end()) field->setText(QString::number(hint->second));
    form->addRow(text(symbol), field);
  }
  auto* buttons = new QDialogButtonBox(QDialogButtonBox::Ok | QDialogButtonBox::Cancel);
  form->addRow(buttons);
  connect(buttons, &QDialogButtonBox::rejected, dialog, &QDialog::reject);
  connect(buttons, &QDialogButtonBox::accepted, dialog, [this, dialog, fields] {
    std::map<std::string, std::int64_t> hints;
    for (const auto& [symbol, field] : fields)
      if (!field->text().isEmpty()) hints[symbol] = field->text().toLongLong();
    dialog->accept();
    set_hints(hints);
  });
  dialog->open();
}

void GraphController::set_hints(const std::map<std::string, std::int64_t>& hints) {
  Document* document = bench_.documents().current_graph();
  if (!document || !document->graph->shapes) return;
  QVariantMap kept = QSettings().value(kept_hints_of(*document)).toMap();
  for (const auto& [symbol, size] : hints) {
    document->graph->shapes->set_hint(symbol, size);
    kept[text(symbol)] = static_cast<qlonglong>(size);
  }
  QSettings().setValue(kept_hints_of(*document), kept);
  document->budget.clear();
  document->budget_asked.reset();
  document->bytes_before.reset();
  bench_.drawing().render(*document, true);
}

void GraphController::show_step(std::shared_ptr<const Scene> scene, std::unordered_map<std::string, Change> changes,
                                Facts facts, std::vector<Ghost> removed) {
  step_shown_ = true;
  raise();
  arrange_bar();
  view_->set_changes(changes);
  view_->set_facts(std::move(facts));
  view_->set_scene(std::move(scene), true);
  view_->set_ghosts(std::move(removed));
}

void GraphController::facts_changed(const Document& document) {
  view_->set_facts(document.facts);
  view_->set_notes(document.notes);
  refresh_overlays();
}

std::optional<int> GraphController::search(const QString& needle) {
  view_->set_search(needle);
  return std::nullopt;
}

// Colours are for the picture alone, the memory budget also for other pages that show the cut.
void GraphController::arrange_bar() {
  const bool joint = bench_.documents().current() && bench_.documents().current()->cut && !step_shown_;
  bool cut_shown = on_screen();
  bench_.views().each([&](const Controller& view) { cut_shown |= view.shows_cut() && view.on_screen(); });
  bar_->set_budget_visible(joint);
  bar_->set_colours_visible(on_screen());
  bar_->setVisible(on_screen() || (joint && cut_shown));
}

void GraphController::set_overlay(OverlayKind kind) {
  view_->set_overlay(kind);
  bar_->set_overlay(kind);
}

void GraphController::refresh_overlays() {
  const Document* document = bench_.documents().current();
  bench_.views().each([&](Controller& view) {
    for (const OverlaySource& source : view.overlays()) {
      const bool known = document && std::ranges::any_of(document->facts, [&](const auto& fact) {
                           return overlay_known(source.kind, fact.second);
                         });
      QAction* action = overlays_.at(source.kind);
      action->setEnabled(known);
      action->setToolTip(known ? QString() : source.hint);
    }
  });
  if (wanted_overlay_ && overlay_action(*wanted_overlay_)->isEnabled())
    set_overlay(*std::exchange(wanted_overlay_, {}));
  // An overlay of another document that this one has no data for would be a blank picture.
  if (!overlay_action(view_->overlay())->isEnabled()) set_overlay(OverlayKind::None);
}

bool GraphController::show_overlay(const QString& name) {
  const std::optional<OverlayKind> kind = overlay_of(name);
  if (!kind) return false;
  if (overlay_action(*kind)->isEnabled()) {
    set_overlay(*kind);
    return true;
  }
  wanted_overlay_ = *kind;
  bench_.views().each([&](Controller& view) {
    for (const OverlaySource& source : view.overlays())
      if (source.kind == *kind) source.start();
  });
  return true;
}

std::vector<Controller::OverlaySource> GraphController::overlays() {
  const Document* document = bench_.documents().current();
  const bool refused = document && !document->no_kernels.isEmpty();
  const QString how = tr("Graph > Time the nodes and plan the kernels (Ctrl+T)");
  return {{OverlayKind::Time, [this] { measure(bench_.views().inputs()); },
           tr("Not timed yet: %1, or File > Open a profile… for the times of your own run").arg(how)},
          {OverlayKind::Kernel, [this] { measure(bench_.views().inputs()); },
           refused ? tr("The compiler has no plan for this graph: %1").arg(document->no_kernels)
                   : tr("Not planned yet: %1").arg(how)}};
}

void GraphController::measure(const QString& io) {
  const Document* document = bench_.documents().current_graph();
  if (!document || !bench_.tools().measure) return;
  QString key = document->key;
  bench_.jobs().start<NodeMeasures>(
      tr("Time the nodes of %1").arg(document->title), "measure:" + key, this,
      [graph = document->graph, artefact = document->artefact, io, inputs_of = bench_.tools().inputs,
       measure = bench_.tools().measure](const Progress& progress) -> Result<NodeMeasures> {
        progress.at(-1, "inputs");
        auto copy = graph->clone();
        TRY(std::vector<Value> inputs, inputs_of(*copy, artefact, io));
        return measure(*graph, inputs, progress);
      },
      [this, key](Result<NodeMeasures> measured) {
        if (!measured) {
          wanted_overlay_.reset();
          return bench_.window().report(measured.error());
        }
        Document* of = bench_.documents().find(key);
        if (!of) return;
        for (auto& [node, facts] : of->facts) facts.forget_times();  // of a profile
        for (const auto& [node, seconds] : measured->seconds) of->facts[node].seconds = seconds;
        if (measured->kernels)
          for (const auto& [node, kernel] : *measured->kernels) of->facts[node].kernel = kernel;
        of->no_kernels = measured->kernels ? QString() : text(measured->kernels.error().line());
        if (!of->no_kernels.isEmpty()) bench_.window().log(tr("No kernels: %1").arg(of->no_kernels), true);
        bench_.screen().facts_changed(*of);
      });
}

// Asks for the file to write the current document to, with this ending at first.
void GraphController::ask_path(const QString& title, const QString& suffix, const QStringList& filters,
                               std::function<void(const QString&)> chosen) {
  const QString name = file_name_of(bench_.documents().current()->title) + "." + suffix;
  auto* dialog = save_dialog(&bench_.window(), title, name, this, std::move(chosen));
  dialog->setNameFilters(filters);
  dialog->setDefaultSuffix(suffix);
  dialog->open();
}

void GraphController::write(const QString& job, const QString& path,
                            std::function<Result<std::string>(const Progress&)> make) {
  bench_.jobs().start<std::string>(
      job.arg(QFileInfo(path).fileName()), {}, this,
      [path, make = std::move(make)](const Progress& progress) -> Result<std::string> {
        TRY(std::string bytes, make(progress));
        TRY_DO(write_file(path.toStdString(), bytes));
        return path.toStdString();
      },
      [this](Result<std::string> done) {
        if (!done) return bench_.window().report(done.error());
        bench_.window().tell(tr("Wrote %1").arg(text(*done)));
      });
}

void GraphController::export_picture(const QString& format) {
  if (!bench_.documents().current() || !bench_.documents().current()->scene) return;
  ask_path(tr("Export the picture"), format, {QString("%1 (*.%2)").arg(format.toUpper(), format)},
           [this](const QString& path) { write_picture(path); });
}

void GraphController::write_picture(const QString& path) {
  if (!bench_.documents().current() || !bench_.documents().current()->scene) return;
  write(tr("Export %1"), path,
        [scene = bench_.documents().current()->scene, format = QFileInfo(path).suffix().toLower(),
         theme = &bench_.window().theme()](const Progress&) -> Result<std::string> {
          TRY(QByteArray bytes, export_scene(*scene, format, *theme));
          return bytes.toStdString();
        });
}

void GraphController::ask_graphviz_path() {
  if (!bench_.documents().current_graph()) return;
  ask_path(tr("Export through Graphviz"), "svg",
           {"SVG (*.svg)", "PDF (*.pdf)", "PNG (*.png)", tr("Graphviz source (*.dot)")},
           [this](const QString& path) { export_graphviz(path); });
}

void GraphController::export_graphviz(const QString& path) {
  const Document* document = bench_.documents().current_graph();
  if (!document || !bench_.tools().graphviz) return;
  write(tr("Export %1 through Graphviz"), path,
        [graph = document->graph, format = QFileInfo(path).suffix().toLower().toStdString(),
         draw = bench_.tools().graphviz](const Progress& progress) { return draw(*graph, format, progress); });
}

void GraphController::write_report(const QString& path) {
  const Document* document = bench_.documents().current();
  if (!document || !bench_.tools().report) return;
  write(tr("Report %1"), path,
        [of = document->path, id = document->graph ? document->id : QString(), inputs = bench_.views().inputs(),
         pdf = QFileInfo(path).suffix().toLower() == "pdf",
         make = bench_.tools().report](const Progress& progress) { return make(of, id, inputs, pdf, progress); });
}

}  // namespace partita::views

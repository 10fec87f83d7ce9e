// Workbench: from a document to the screen, and what users do to what is on it.
#include <QDir>
#include <QFileDialog>
#include <QFileInfo>
#include <QHeaderView>
#include <QTreeView>

#include "app/workbench.h"
#include "views/graph/export.h"
#include "views/look/format.h"

namespace partita {

using views::Pin;
using views::Rendering;
using views::Spot;
using views::text;

void Workbench::show(const QString& key) {
  auto found = documents_.find(key);
  if (found == documents_.end()) return;
  Document& document = *found->second;
  current_ = &document;
  if (document.code) return put_on_screen(document);
  window_.graph()->set_scene(nullptr);
  window_.code()->set_document(nullptr);
  window_.inspector()->show_node(nullptr, {}, nullptr);
  if (document.kind == ArtefactKind::Text) {
    window_.text()->set_document(nullptr);
    window_.show_page(window_.text());
  } else {
    window_.graph()->set_busy(tr("Drawing %1").arg(document.title));
    window_.show_page(window_.graph());
  }
  render(document);
}

void Workbench::render(Document& document) {
  // A copy: the document may change while the job works.
  auto copy = std::make_shared<Document>(document);
  QString key = document.key;
  jobs_.start<Rendering>(
      tr("Draw %1").arg(document.title), "draw:" + key, this,
      [copy, width = text_width_](const Progress& progress) { return views::render(*copy, width, progress); },
      [this, key](Result<Rendering> result) {
        if (!result) {
          window_.graph()->set_busy({});
          report(result.error());
          Q_EMIT failed(result.error());
          return;
        }
        set_rendering(key, *std::move(result));
      });
}

void Workbench::set_rendering(const QString& key, Rendering rendering) {
  auto found = documents_.find(key);
  if (found == documents_.end()) return;
  Document& document = *found->second;
  if (document.cut && rendering.cut) document.bytes_before = document.cut->activation_bytes;
  document.graph = std::move(rendering.graph);
  document.code = std::move(rendering.code);
  document.scene = std::move(rendering.scene);
  document.cut = std::move(rendering.cut);
  if (rendering.cut_problem) window_.log(text(rendering.cut_problem->line()), true);
  if (current_ == &document) put_on_screen(document);
}

void Workbench::put_on_screen(Document& document) {
  auto* graph = window_.graph();
  bool same = graph->scene() && document.graph && graph->scene()->picture.graph == document.graph;
  QString title = QFileInfo(document.path).fileName() + "  ›  " + document.title;
  window_.set_breadcrumb(title);
  // A text has the middle to itself; beside a picture the code goes with it.
  bool is_text = document.scene == nullptr;
  auto* pane = is_text ? window_.text() : window_.code();
  if (pane->document() != document.code.get()) pane->set_document(document.code);
  if (is_text) window_.code()->set_document(nullptr);
  graph->set_pins(document.pins);
  graph->set_facts(document.facts);
  if (document.scene) {
    graph->set_changes({});
    graph->set_scene(document.scene, same);
    if (window_.page() == window_.empty_page() || window_.page() == window_.text()) window_.show_page(graph);
  } else {
    graph->set_scene(nullptr);
    window_.show_page(window_.text());
  }
  window_.tree()->setCurrentIndex(tree_.find(document.key));
  QString node = selection_.spot().document == document.key ? selection_.spot().node : QString();
  if (selection_.spot().document != document.key)
    selection_.select({document.key, {}});
  else
    select_in_views(selection_.spot());
  // The inputs that lie beside an archive are meant for it.
  QString io = QFileInfo(document.path).dir().filePath("io.safetensors");
  bool whole_program = document.artefact.program != nullptr && !document.id.isEmpty();
  set_inputs(whole_program && QFileInfo::exists(io) ? io : QString());
  if (film_of_ != document.key && passes_->film()) {
    film_of_.clear();
    passes_->set_film(nullptr);
  }
  if (window_.page() == aot_) show_aot();
  tell_cut(document);
  tell_overlays();
  window_.picture_bar()->budget()->set_curve(document.budget);
  window_.picture_bar()->budget()->set_budget(document.memory_budget);
  window_.set_joint(document.cut != nullptr);
  ask_budget_curve(document);
  Q_EMIT shown(document.key);
}

void Workbench::set_inputs(const QString& path) {
  for (views::InputsBox* box : {compare_->inputs(), run_->inputs(), minify_->inputs()}) box->set_path(path);
}

bool Workbench::show_view(const QString& name) {
  if (name == "graph") {
    window_.show_page(window_.graph());
  } else if (name == "aot") {
    show_aot();
  } else if (name == "passes") {
    run_passes();
  } else if (name == "compare") {
    compare(compare_->request());
  } else if (name == "values") {
    QString row = compare_->table()->current_node();
    if (row.isEmpty()) row = selection_.spot().node;
    if (!row.isEmpty()) {
      look_at(row);
    } else {  // the worst of what is about to be compared
      values_wanted_ = true;
      window_.show_page(tensor_);
      compare(compare_->request());
    }
  } else if (name == "history" && !tools_.store_file.empty()) {
    window_.show_bottom(tr("History"));
    read_history();
  } else if (name == "minify" && tools_.minifier) {
    minify(minify_->request());
  } else if (name == "run" && tools_.run) {
    window_.show_bottom(tr("Run"));
    if (!run_->wants_folder()) run_program(run_->request());
  } else if (name == "coverage") {
    if (coverage_->model()->rowCount() == 0) coverage_->set_rows(views::coverage_rows());
    window_.show_page(coverage_);
  } else {
    return false;
  }
  return true;
}

void Workbench::tell_cut(const Document& document) {
  if (!document.cut) {
    std::int64_t nodes = document.graph ? static_cast<std::int64_t>(document.graph->size()) : 0;
    int lines = document.code ? document.code->line_count() : 0;
    return window_.set_status(document.graph ? views::count_text(nodes, "node") : views::count_text(lines, "line"), {});
  }
  const views::Cut& cut = *document.cut;
  QString left = tr("%1 saved, %2; %3 recomputed")
                     .arg(cut.saved.size())
                     .arg(views::bytes_text(cut.activation_bytes))
                     .arg(cut.recomputed.size());
  if (document.bytes_before && *document.bytes_before != cut.activation_bytes) {
    std::int64_t delta = cut.activation_bytes - *document.bytes_before;
    left += tr(" (%1%2 by the last change)").arg(delta > 0 ? "+" : "").arg(views::bytes_text(delta));
  }
  window_.set_status(left, tr("%1 of inputs kept").arg(views::bytes_text(cut.input_bytes)));
}

void Workbench::select_in_views(const Spot& spot) {
  if (current_ == nullptr || spot.document != current_->key) {
    if (documents_.contains(spot.document)) show(spot.document);
    return;
  }
  window_.graph()->select(spot.node);
  passes_->select(spot.node);
  compare_->select(spot.node);
  aot_->select(spot.node);
  window_.code()->select(spot.node);
  auto facts = current_->facts.find(spot.node.toStdString());
  window_.inspector()->show_node(current_, spot.node, facts == current_->facts.end() ? nullptr : &facts->second);
}

void Workbench::pin(const QString& node, Pin pin) {
  if (!current_ || !current_->cut) return;
  if (pin == Pin::None) {
    if (current_->pins.erase(node.toStdString()) == 0) return;
  } else {
    current_->pins[node.toStdString()] = pin;
  }
  render(*current_);
}

void Workbench::fold(const QString& frame_key) {
  if (!current_) return;
  std::string key = frame_key.toStdString();
  if (current_->folded.erase(key) == 0) current_->folded.insert(key);
  render(*current_);
}

void Workbench::export_picture(const QString& format) {
  if (!current_ || !current_->scene) return;
  auto* dialog = new QFileDialog(&window_, tr("Export the picture"));
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->setAcceptMode(QFileDialog::AcceptSave);
  dialog->setDefaultSuffix(format);
  dialog->selectFile(current_->title.simplified().replace(' ', '_').replace('/', '_') + "." + format);
  auto scene = current_->scene;
  connect(dialog, &QFileDialog::fileSelected, this, [this, scene, format](const QString& path) {
    const views::Theme* theme = &window_.theme();
    jobs_.start<std::string>(
        tr("Export %1").arg(QFileInfo(path).fileName()), {}, this,
        [scene, format, path, theme](const Progress&) -> Result<std::string> {
          TRY(QByteArray bytes, views::export_scene(*scene, format, *theme));
          TRY_DO(write_file(path.toStdString(), {bytes.constData(), static_cast<std::size_t>(bytes.size())}));
          return path.toStdString();
        },
        [this](Result<std::string> done) {
          if (!done) return report(done.error());
          window_.log(tr("Wrote %1").arg(text(*done)));
        });
  });
  dialog->open();
}

}  // namespace partita

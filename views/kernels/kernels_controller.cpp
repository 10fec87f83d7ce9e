#include "views/kernels/kernels_controller.h"

#include "views/frame/workbench.h"
#include "views/look/format.h"

namespace partita::views {
namespace {

using Lists = std::vector<std::shared_ptr<const KernelList>>;
using Code = std::vector<Result<std::optional<loops::LinkedText>>>;

const StackFrame* source_of(const Document* document, const QString& node) {
  const Node* found = document && document->graph ? document->graph->find(node.toStdString()) : nullptr;
  if (!found || !found->origin || found->origin->of_user().file.empty()) return nullptr;
  return &found->origin->of_user();
}

}  // namespace

extern const MakeView make_kernels_view = make_view<KernelsController, &WorkbenchTools::kernels>;

KernelsController::KernelsController(Workbench& bench) : WidgetController(bench) {
  bench.window().use_alone(view_);
  connect(view_, &KernelsView::asked, this, &KernelsController::plan);
  connect(view_, &KernelsView::inductor_asked, this, &KernelsController::find_inductor);
  connect(view_, &KernelsView::code_asked, this, &KernelsController::write_code);
  connect(view_, &KernelsView::node_chosen, this, &KernelsController::choose);
  // A job that was cancelled leaves what was there before.
  connect(&bench.jobs(), &JobTracker::finished, this, [this](int id) {
    if (id == job_) view_->say(planned_ ? note_ : tr("cancelled"));
  });
  bench.window().add_command("Graph", tr("Kernels"), QKeySequence("Ctrl+Shift+K"), [this] { go(); });
}

void KernelsController::show() {
  raise();
  if (!planned_ && !bench_.jobs().running(job_)) plan(false);
}

QStringList KernelsController::command() const {
  if (!on_screen()) return {};
  const KernelRequest request = view_->request();
  QStringList words{"kernels"};
  if (measured_) words << inputs_words(text(request.inputs));
  if (request.train) words << "--train";
  return words;
}

void KernelsController::wait_for(const Document& document) {
  if (std::exchange(shown_, document.key) == document.key) return;
  planned_ = false;
  job_ = 0;
  view_->clear();
}

void KernelsController::set_document(const Document& document) {
  wait_for(document);
  if (on_screen() && document.graph) show();
}

void KernelsController::select(const QString& node) {
  if (!choosing_) view_->select(node, source_of(bench_.documents().current(), node));
}

void KernelsController::plan(bool measure) {
  const Document* document = bench_.documents().current_graph();
  if (!document) return;
  KernelRequest request = view_->request();
  request.measure = measure;
  request.path = document->path.toStdString();
  request.id = document->id.toStdString();
  view_->say(measure ? tr("measuring…") : tr("planning…"));
  job_ = bench_.jobs().start<Lists>(
      measure ? tr("Measure the kernels of %1").arg(document->title)
              : tr("Plan the kernels of %1").arg(document->title),
      "kernels", this,
      [artefact = document->artefact, request, kernels = bench_.tools().kernels,
       forms = bench_.tools().kernel_forms](const Progress& progress) -> Result<Lists> {
        TRY(std::vector<PlannedGraph> graphs, kernels(artefact, request, progress));
        Lists lists;
        for (PlannedGraph& graph : graphs)
          lists.push_back(std::make_shared<const KernelList>(planned_kernels(std::move(graph), forms)));
        return lists;
      },
      [this, measure, key = document->key](Result<Lists> lists) {
        take(key, measure, std::move(lists), tr("there are no kernels"));
      });
}

void KernelsController::find_inductor() {
  const Document* document = bench_.documents().current();
  if (!document) return;
  view_->say(tr("reading…"));
  job_ = bench_.jobs().start<Lists>(
      tr("Read inductor's kernels in %1").arg(bench_.documents().title_of(document->path)), "kernels", this,
      [path = document->path.toStdString(),
       group = document->artefact.group](const Progress& progress) -> Result<Lists> {
        auto loaded = std::make_shared<Loaded>();
        TRY(*loaded, load(path, &progress));
        Lists lists;
        for (InductorCode& code : inductor_code(*loaded))
          if (group.empty() || code.code->group == group)
            lists.push_back(std::make_shared<const KernelList>(inductor_kernels(loaded, std::move(code))));
        return lists;
      },
      [this, key = document->key](Result<Lists> lists) {
        take(key, false, std::move(lists), tr("this file has no output code of inductor"));
      });
}

void KernelsController::take(const QString& key, bool measured, Result<Lists> lists, const QString& none) {
  if (shown_ != key) return;
  job_ = 0;
  if (!lists) {
    note_.clear();
    planned_ = true;  // asked again only by the user
    view_->clear();
    return bench_.window().report(lists.error());
  }
  planned_ = true;
  measured_ = measured;
  std::size_t steps = 0;
  double seconds = 0;
  for (const auto& list : *lists) {
    steps += list->report.rows.size();
    for (const auto& row : list->report.rows) seconds += row.seconds.value_or(0);
  }
  QString note = lists->empty() ? none : count_text(static_cast<std::int64_t>(steps), "step");
  if (seconds > 0) note += tr(", %1").arg(seconds_text(seconds));
  note_ = note;
  view_->set_lists(*std::move(lists), note);
  if (const QString chosen = bench_.selection().spot().node; !chosen.isEmpty()) select(chosen);
}

void KernelsController::write_code(int step) {
  const auto list = view_->list();
  if (!list) return;
  bench_.jobs().start<Code>(
      tr("Code of step %1").arg(step), "kernel code", this,
      [list, step](const Progress& progress) -> Result<Code> {
        Code code;
        for (int form = 0; form < list->forms.size(); ++form) {
          TRY_DO(partita::step(&progress, -1, "code"));
          code.push_back(list->code(form, static_cast<std::size_t>(step)));
        }
        return code;
      },
      [this, list, step](Result<Code> code) {
        if (view_->list() != list || view_->step() != step) return;
        if (!code) return bench_.window().report(code.error());
        for (std::size_t form = 0; form < code->size(); ++form) view_->set_code(static_cast<int>(form), (*code)[form]);
      });
}

/// Selects a node of the plan's graph: the one of that name on the screen, else one from the same line.
void KernelsController::choose(const QString& node) {
  const Document* document = bench_.documents().current_graph();
  const auto list = view_->list();
  if (!document || !list) return;
  choosing_ = true;
  if (document->graph->find(node.toStdString())) {
    bench_.selection().select_node(node);
  } else if (const StackFrame* from = list->source(node.toStdString())) {
    for (const Node* other : *document->graph) {
      const StackFrame* frame = source_of(document, text(other->name()));
      if (!frame || frame->file != from->file || frame->line != from->line) continue;
      bench_.selection().select_node(text(other->name()));
      break;
    }
  }
  choosing_ = false;
}

}  // namespace partita::views

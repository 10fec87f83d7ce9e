#include "views/profile/profile_controller.h"

#include <algorithm>

#include "views/frame/workbench.h"
#include "views/look/arrange.h"
#include "views/look/format.h"
#include "views/table/table_panel.h"

namespace partita::views {
namespace {

bool is_in(const NodeFacts& facts, const std::string& call) {
  return std::ranges::any_of(facts.kernel_times, [&](const auto& kernel) { return kernel.first == call; });
}

}  // namespace

extern const MakeView make_profile_view = make_view<ProfileController>;

ProfileController::ProfileController(Workbench& bench) : WidgetController(bench) {
  view_->set_note(tr("The times of your own run: open the log that TORCH_TRACE wrote, then its profile"));
  connect(view_, &ProfileView::open_asked, this, &ProfileController::ask_file);
  connect(view_, &ProfileView::call_chosen, this, &ProfileController::choose);
  connect(view_, &ProfileView::call_activated, this, &ProfileController::go_to);
  connect(view_, &ProfileView::steps_changed, this, [this] {
    if (!run_) return;
    rows_ = profile_calls(run_->log, view_->strip()->chosen());
    timed_.clear();
    if (const Document* document = bench_.documents().current()) time_nodes(*document);
  });
  connect(&bench.documents(), &Documents::closed, this, [this](const QString& path) {
    if (path != path_) return;
    path_.clear();
    run_ = nullptr;
    rows_.clear();
    view_->set_note(tr("The log of the profile was closed"));
  });
  bench.window().use_alone(view_);
  bench.window().add_command("File", tr("Open a profile…"), QKeySequence("Ctrl+Shift+P"), [this] { ask_file(); });
}

void ProfileController::show() {
  raise();
  view_->strip()->setFocus();
}

QStringList ProfileController::command() const {
  if (!on_screen() || !run_) return {};
  QStringList words{"kernels", "--profile", shell_word(profile_)};
  const StepRange steps = view_->strip()->chosen();
  if (steps.to - steps.from < run_->log.profile->steps.size())
    words << "--steps" << QString("%1-%2").arg(steps.from + 1).arg(steps.to);
  return words;
}

void ProfileController::ask_file() {
  if (!bench_.documents().current())
    return bench_.window().tell(tr("First open the log that TORCH_TRACE wrote in the run that was profiled"));
  const auto chosen = [this](const QString& file) {
    raise();
    open(file);
  };
  auto* dialog = file_dialog(&bench_.window(), tr("Open a profile of torch.profiler"), this, chosen);
  dialog->setFileMode(QFileDialog::ExistingFile);
  dialog->setNameFilters({tr("Chrome traces (*.json *.json.gz)"), tr("All files (*)")});
  dialog->open();
}

void ProfileController::open(const QString& profile, const QString& steps) {
  const Document* document = bench_.documents().current();
  if (!document) return;
  if (!run_) view_->set_note(tr("reading…"));
  using Read = std::pair<std::shared_ptr<const MeasuredRun>, StepRange>;
  bench_.jobs().start<Read>(
      tr("Profile of %1").arg(bench_.documents().title_of(document->path)), "profile", this,
      [path = document->path.toStdString(), file = profile.toStdString(),
       words = steps.toStdString()](const Progress& progress) -> Result<Read> {
        auto loaded = std::make_shared<Loaded>();
        TRY(*loaded, load(path, &progress));
        TRY(ProfiledLog log, profiled(*loaded, file, &progress));
        TRY(const StepRange chosen, steps_of(*log.profile, words));
        return Read(std::make_shared<const MeasuredRun>(MeasuredRun{std::move(loaded), std::move(log)}), chosen);
      },
      [this, path = document->path, profile](Result<Read> read) {
        if (!read) {
          if (!run_) view_->set_note(tr("The profile could not be joined to this file"));
          return bench_.window().report(read.error());
        }
        take(path, profile, read->first, read->second);
      });
}

void ProfileController::take(const QString& path, const QString& profile, std::shared_ptr<const MeasuredRun> run,
                             StepRange steps) {
  path_ = path;
  profile_ = profile;
  run_ = std::move(run);
  timed_.clear();
  view_->set_run(run_);
  view_->strip()->choose(steps);
  rows_ = profile_calls(run_->log, steps);
  bench_.window().name_page(view_, file_title(profile));
  for (const std::string& note : run_->log.notes) bench_.window().log(text(note));
  if (const Document* document = bench_.documents().current()) time_nodes(*document);
}

void ProfileController::time_nodes(const Document& document) {
  if (!run_ || document.path != path_ || !document.graph || document.id.isEmpty() || timed_.contains(document.key))
    return;
  timed_.insert(document.key);
  using Times = std::unordered_map<std::string, NodeTime>;
  bench_.jobs().start<Times>(
      tr("Times of %1").arg(document.title), "profile:" + document.key, this,
      [run = run_, artefact = document.artefact, graph = document.graph, steps = view_->strip()->chosen()](
          const Progress&) -> Result<Times> { return node_times(run->log, artefact, *graph, steps); },
      [this, key = document.key](Result<Times> times) {
        Document* of = bench_.documents().find(key);
        if (!times) timed_.erase(key);
        if (!times || !of) return;
        for (auto& [name, facts] : of->facts)
          if (!facts.kernel_times.empty()) facts.forget_times();
        for (const auto& [name, time] : *times) {
          NodeFacts& facts = of->facts[name];
          facts.forget_times();
          for (const NodeTime::Part& part : time.parts) facts.add_kernel(part.kernel, part.seconds);
        }
        bench_.screen().facts_changed(*of);
      });
}

const ProfileRow* ProfileController::row_at(int row) const {
  return row >= 0 && static_cast<std::size_t>(row) < rows_.size() ? &rows_[static_cast<std::size_t>(row)] : nullptr;
}

void ProfileController::choose(int row) {
  const ProfileRow* of = row_at(row);
  const Document* document = bench_.documents().current_graph();
  if (!of || !document || document->path != path_ || choosing_) return;
  choosing_ = true;
  const std::string call = call_id(*of->graph, *of->call);
  for (const std::string& node : of->call->nodes) {
    const auto facts = document->facts.find(node);
    if (facts == document->facts.end() || !is_in(facts->second, call)) continue;
    bench_.selection().select_node(text(node));
    break;
  }
  choosing_ = false;
}

/// Marks the call that computes the node of the document on the screen.
void ProfileController::select(const QString& node) {
  const Document* document = bench_.documents().current_graph();
  if (!run_ || !document || document->path != path_ || choosing_) return;
  const auto facts = document->facts.find(node.toStdString());
  if (facts == document->facts.end()) return;
  choosing_ = true;
  for (std::size_t row = 0; row < rows_.size(); ++row)
    if (is_in(facts->second, call_id(*rows_[row].graph, *rows_[row].call))) {
      view_->table()->set_current_row(static_cast<int>(row));
      break;
    }
  choosing_ = false;
}

/// To the graph that the kernels were made of, where its nodes are coloured by the time.
void ProfileController::go_to(int row) {
  const ProfileRow* of = row_at(row);
  if (!of || of->graph->codes.empty()) return;
  const InductorCode& code = run_->log.codes[of->graph->codes.front()];
  if (!code.post_grad) return bench_.window().tell(tr("The log has no graph of this code"));
  const QString key = path_ + "#" + text(code.post_grad->id);
  if (!bench_.documents().find(key)) return;
  bench_.window().close_page();
  bench_.screen().show(key);
  if (!of->call->nodes.empty()) bench_.selection().select_node(text(of->call->nodes.back()));
}

}  // namespace partita::views

#include "views/frame/drawing.h"

#include <algorithm>

#include "views/frame/window.h"
#include "views/look/format.h"
#include "views/picture/paint.h"
#include "views/picture/sizes.h"

namespace partita::views {

Drawing::Drawing(Documents& documents, JobTracker& jobs, Window& window)
    : documents_(documents),
      jobs_(jobs),
      window_(window),
      text_width_(measured_text_width(card_title_font(), card_detail_font())) {
  connect(&jobs_, &JobTracker::finished, this, &Drawing::end);
}

// The page without what frames a picture. A window that was never shown has the size of its first layout only then.
QSizeF Drawing::room_for_pictures() const {
  constexpr QSizeF kFrame(4, 52), kUsual(616, 652);
  return window_.isVisible() ? QSizeF(window_.page()->parentWidget()->size()) - kFrame : kUsual;
}

void Drawing::render(Document& document, bool new_layout) {
  // A copy: the document may change while the job works.
  auto copy = std::make_shared<Document>(document);
  if (new_layout) copy->scene.reset();
  QString key = document.key;
  const int job = jobs_.start<Rendering>(
      tr("Draw %1").arg(documents_.place_of(document)), "draw:" + key, this,
      [copy, width = text_width_, room = room_for_pictures()](const Progress& progress) {
        return views::render(*copy, width, room, progress);
      },
      [this, key](Result<Rendering> result) {
        std::erase_if(draws_, [&](const auto& draw) { return draw.second == key; });
        if (result) return set_rendering(key, *std::move(result));
        give_up(key, result.error());
      });
  draws_[job] = key;
}

void Drawing::set_rendering(const QString& key, Rendering rendering) {
  Document* drawn = documents_.find(key);
  if (!drawn) return;
  Document& document = *drawn;
  if (document.cut && rendering.cut) document.bytes_before = document.cut->activation_bytes;
  document.graph = std::move(rendering.graph);
  document.code = std::move(rendering.code);
  document.scene = std::move(rendering.scene);
  document.cut = std::move(rendering.cut);
  document.folded = std::move(rendering.folded);
  document.folding = Folding::Asked;
  document.drawn = document;
  document.read.reset();
  if (rendering.cut_problem) window_.log(text(rendering.cut_problem->line()), true);
  Q_EMIT this->drawn(key);
  if (rendering.graph_problem) fail(*rendering.graph_problem);
}

void Drawing::give_up(const QString& key, const Diagnostic& why) {
  Document* document = documents_.find(key);
  const bool of_pins = why.code == "partition.pin";
  if (document && document->code) {
    go_back(key);
    if (of_pins) return Q_EMIT pins_refused(why);
  } else if (document && of_pins) {  // kept from when the file was another
    document->pins.clear();
    render(*document);
  }
  fail(why);
}

// A drawing that was cancelled leaves what was there before.
void Drawing::end(int job) {
  const auto draw = draws_.find(job);
  if (draw == draws_.end()) return;
  const QString key = draw->second;
  draws_.erase(draw);
  if (std::ranges::find(draws_, key, &decltype(draws_)::value_type::second) == draws_.end()) go_back(key);
}

void Drawing::go_back(const QString& key) {
  Document* of = documents_.find(key);
  if (!of) return;
  if (of->code) static_cast<Choices&>(*of) = of->drawn;
  Q_EMIT not_drawn(key);
}

void Drawing::fail(const Diagnostic& problem) {
  window_.report(problem);
  Q_EMIT failed(problem);
}

void Drawing::fold(const QString& frame_key) {
  Document* current = documents_.current();
  if (!current) return;
  std::string key = frame_key.toStdString();
  current->folding = Folding::Asked;
  if (current->folded.erase(key) == 0) current->folded.insert(key);
  render(*current, true);
}

void Drawing::fold_all(bool folded) {
  Document* current = documents_.current_graph();
  if (!current) return;
  current->folded.clear();
  current->folding = folded ? Folding::Overview : Folding::Asked;
  render(*current, true);
}

}  // namespace partita::views

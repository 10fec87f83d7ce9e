#include "views/frame/screen.h"

#include <QDir>
#include <QFileInfo>

#include "views/frame/window.h"
#include "views/look/format.h"
#include "views/picture/sizes.h"
#include "views/session/kept_state.h"

namespace partita::views {

Screen::Screen(Documents& documents, Drawing& drawing, Selection& selection, Views& views, Window& window)
    : documents_(documents), drawing_(drawing), selection_(selection), views_(views), window_(window) {
  connect(&documents_, &Documents::show_asked, this,
          [this](const QString& key) { key.isEmpty() ? show_nothing() : show(key); });
  connect(&drawing_, &Drawing::drawn, this, [this](const QString& key) {
    if (Document* current = documents_.current(); current && current->key == key) put_on_screen(*current);
  });
  connect(&drawing_, &Drawing::not_drawn, this, &Screen::go_back);
  connect(&selection_, &Selection::changed, this, &Screen::select);
}

void Screen::show(const QString& key) {
  Document* chosen = documents_.find(key);
  if (!chosen) return;
  documents_.set_current(chosen);
  step_.reset();
  if (chosen->code) return put_on_screen(*chosen);
  restore_state(*chosen);
  const bool nothing_shown = window_.page() == window_.empty_page();
  window_.set_breadcrumb(documents_.place_of(*chosen));
  window_.set_status({}, {});
  views_.each([&](Controller& view) { view.wait_for(*chosen); });
  if (nothing_shown) window_.page()->setFocus();
  drawing_.render(*chosen);
}

void Screen::show_step(const QString& step, std::shared_ptr<const Graph> graph, Facts facts) {
  const Document& of = *documents_.current();
  auto shown = std::make_unique<Document>();
  shown->path = of.path;
  shown->title = of.title + Documents::kStep + step;
  shown->kind = of.kind;
  shown->notes = of.notes;
  shown->graph = std::move(graph);
  shown->facts = std::move(facts);
  step_ = std::move(shown);
  window_.set_breadcrumb(documents_.place_of(of) + Documents::kStep + step);
  views_.each([&](Controller& view) { view.set_step(*step_); });
  select(selection_.spot());
}

void Screen::put_on_screen(Document& document) {
  shown_ = document.key;
  step_.reset();
  window_.set_breadcrumb(documents_.place_of(document));
  Q_EMIT showing(&document);
  if (document.scene && window_.page() == window_.empty_page()) views_.show("graph");
  views_.each([&](Controller& view) { view.set_document(document); });
  if (selection_.spot().document != document.key)
    selection_.select({document.key, document.graph && document.graph->find(document.chosen.toStdString())
                                         ? document.chosen
                                         : QString()});
  else
    select(selection_.spot());
  // An io.safetensors file beside an archive holds the inputs of its program, and of the joint graph made of it.
  QString io = QFileInfo(document.path).dir().filePath("io.safetensors");
  views_.set_inputs(document.artefact.program && QFileInfo::exists(io) ? io : QString());
  show_status(document);
  Q_EMIT shown(document.key);
}

void Screen::go_back(const QString& key) {
  Document* current = documents_.current();
  if (!current || current->key != key) return;
  if (current->code) return put_on_screen(*current);
  if (documents_.find(shown_)) return show(shown_);
  show_nothing();
}

void Screen::show_nothing() {
  documents_.set_current(nullptr);
  step_.reset();
  selection_.select({});
  views_.each([](Controller& view) { view.wait_for({}); });
  Q_EMIT showing(nullptr);
  window_.set_breadcrumb({});
  window_.set_status({}, {});
  window_.show_view(window_.empty_page());
}

void Screen::facts_changed(const Document& document) {
  if (documents_.current() == &document) views_.each([&](Controller& view) { view.facts_changed(document); });
}

void Screen::show_status(const Document& document) {
  if (!document.cut) {
    std::int64_t nodes = document.graph ? static_cast<std::int64_t>(document.graph->size()) : 0;
    int lines = document.code ? document.code->line_count() : 0;
    return window_.set_status(document.graph ? count_text(nodes, "node") : count_text(lines, "line"), {});
  }
  const CutSummary& cut = *document.cut;
  const UnknownBytes& unknown = document.scene->picture.unknown;
  QString left =
      tr("%1 saved, %2; %3 recomputed").arg(unknown.values).arg(size_text(unknown.saved)).arg(cut.recomputed.size());
  if (unknown.of.empty() && document.bytes_before && *document.bytes_before != cut.activation_bytes) {
    std::int64_t delta = cut.activation_bytes - *document.bytes_before;
    left += tr(" (%1%2 by the last change)").arg(delta > 0 ? "+" : "").arg(bytes_text(delta));
  }
  window_.set_status(left, kept_inputs_text(unknown));
}

void Screen::select(const Spot& spot) {
  Document* current = documents_.current();
  if (current == nullptr || spot.document != current->key) return show(spot.document);
  current->chosen = spot.node;
  views_.each([&](Controller& view) { view.select(spot.node); });
}

}  // namespace partita::views

#include "views/notes/notes_view.h"

#include <QLineEdit>

#include "views/look/arrange.h"
#include "views/look/format.h"
#include "views/session/document.h"

namespace partita::views {

std::vector<Row> note_rows(const Document& document) {
  std::vector<Row> rows;
  if (!document.graph || document.notes.empty()) return rows;
  for (const Node* node : *document.graph) {
    const auto note = document.notes.find(node->name());
    if (note == document.notes.end()) continue;
    rows.push_back(
        {text(node->name()),
         {Cell(text(node->name())), note->second.isEmpty() ? Cell("bookmarked", Tone::Dim) : Cell(note->second),
          Cell(node->op()->is_call() ? text(node->op()->name) : QString(), Tone::Dim),
          Cell(node->origin ? text(node->origin->of_user().code) : QString(), Tone::Dim)}});
  }
  return rows;
}

NotesView::NotesView(QWidget* parent) : TablePanel({tr("Node"), tr("Note"), tr("Operator"), tr("From")}, parent) {
  view()->setAccessibleName(tr("Notes"));
  field_ = new QLineEdit;
  field_->setAccessibleName(tr("Note at the chosen node"));
  field_->setMaxLength(4000);
  const auto keep = [this] {
    if (node_.isEmpty() || field_->text() == kept_) return;
    kept_ = field_->text();
    Q_EMIT note_written(node_, kept_);
  };
  connect(field_, &QLineEdit::editingFinished, this, keep);
  remove_ = button_of(tr("Remove"), this, [this] { Q_EMIT note_removed(node_); }, tr("Remove the note (Ctrl+D)"));
  bar()->addWidget(field_, 3);
  bar()->addWidget(remove_);
  show_node({}, nullptr);
}

void NotesView::show_node(const QString& node, const QString* note) {
  const QString kept = note ? *note : QString();
  if (node == node_ && kept == kept_ && remove_->isEnabled() == (note != nullptr)) return;  // while it is being written
  node_ = node;
  kept_ = kept;
  field_->setText(kept);
  field_->setEnabled(!node.isEmpty());
  field_->setPlaceholderText(node.isEmpty() ? tr("Choose a node to note something at it") : tr("Note at %1").arg(node));
  remove_->setEnabled(note != nullptr);
}

void NotesView::write() {
  field_->setFocus();
  field_->selectAll();
}

}  // namespace partita::views

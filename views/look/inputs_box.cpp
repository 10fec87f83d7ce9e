#include "views/look/inputs_box.h"

#include <QFileInfo>

#include "views/look/arrange.h"

namespace partita::views {

InputsBox::InputsBox(QWidget* parent) : QWidget(parent) {
  auto* row = new QHBoxLayout(this);
  row->setContentsMargins(0, 0, 0, 0);
  row->setSpacing(8);
  label_ = styled_label("dim");
  add_all(row, {button_of(tr("Inputs…"), this, &InputsBox::ask), label_});
  set_path({});
}

void InputsBox::set_path(const QString& path) {
  path_ = path;
  // The width of a panel must not follow the name of a file.
  constexpr int kWidest = 100;
  label_->setText(path.isEmpty()
                      ? tr("samples")
                      : label_->fontMetrics().elidedText(QFileInfo(path).fileName(), Qt::ElideMiddle, kWidest));
  label_->setToolTip(path.isEmpty() ? tr("The file's own samples; made up where it has none") : path);
}

void InputsBox::ask() {
  auto* dialog = file_dialog(this, tr("Inputs"), this, &InputsBox::chosen);
  dialog->setNameFilters({tr("Tensors (*.safetensors *.input)"), tr("All files (*)")});
  dialog->open();
}

}  // namespace partita::views

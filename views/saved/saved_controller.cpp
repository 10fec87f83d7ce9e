#include "views/saved/saved_controller.h"

#include "views/aot/aot_view.h"
#include "views/frame/workbench.h"
#include "views/look/format.h"
#include "views/picture/sizes.h"

namespace partita::views {
namespace {

// The call whose result a value shows: through views, and through picking one of several results.
const Node& computed_by(const Node& node) {
  const Node* at = &node;
  while (at->op()->is_call() && !at->inputs().empty() && (at->is(Op::getitem()) || family_of(at->op()) == Family::View))
    at = at->inputs().front();
  return *at;
}

// What computing a value again would take, by the family of the operator that computes it.
Cell cost_of(const Node& node) {
  const Node& call = computed_by(node);
  const Family family = family_of(call.op());
  const QString name = text(family_name(family));
  if (node.is_placeholder()) return Cell("kept by the caller", Tone::Dim);
  if (call.is_placeholder()) return Cell("cheap: view of an input", Tone::Warn);
  if (family == Family::View || family == Family::Pointwise) return Cell("cheap: " + name, Tone::Warn);
  if (family == Family::Random) return Cell("not possible: " + name, Tone::Dim);
  return Cell(&call == &node ? name : QString("%1, by %2").arg(name, text(call.name())));
}

}  // namespace

std::vector<Row> saved_value_rows(const CutSummary& cut, const Graph& graph, const UnknownBytes& unknown) {
  std::vector<Row> rows = saved_rows(cut, unknown);
  for (Row& row : rows) {
    const Node* node = graph.find(row.node.toStdString());
    // What is computed again keeps its place among the sizes. Its size is in brackets: it is not kept.
    if (Cell& bytes = row.cells[1]; node && bytes.text.isEmpty()) {
      ByteSum size;
      size.add(node->meta, graph.shapes.get());
      bytes = Cell("(" + size_text(size) + ")", static_cast<double>(size.known), Tone::Dim);
    }
    row.cells.insert(row.cells.begin() + 2, node ? Cell(text(shape_text(node->meta))) : Cell());
    row.cells.insert(row.cells.begin() + 3, node ? cost_of(*node) : Cell());
    row.cells.push_back(node && node->origin ? Cell(text(node->origin->of_user().code), Tone::Dim) : Cell());
  }
  return rows;
}

SavedTable::SavedTable(QWidget* parent)
    : TablePanel({tr("Value"), tr("Bytes"), tr("Shape"), tr("To compute again"), tr("How"), tr("Why"), tr("From")},
                 parent) {
  sort_by(1, Qt::DescendingOrder);
}

extern const MakeView make_saved_view = make_view<SavedController>;

SavedController::SavedController(Workbench& bench) : WidgetController(bench) {
  view_->setObjectName("saved");
  view_->view()->setAccessibleName(tr("Saved values"));
  connect(view_, &TablePanel::node_chosen, &bench.selection(), &Selection::select_node);
  bench.offer(bench.window().add_command("Graph", tr("Saved values"), QKeySequence("Ctrl+Shift+S"), [this] { go(); }),
              tr("Saved"), [](const Document& document) { return document.cut != nullptr; });
}

void SavedController::set_document(const Document& document) {
  view_->set_rows(document.cut ? saved_value_rows(*document.cut, *document.graph, document.scene->picture.unknown)
                               : std::vector<Row>());
}

}  // namespace partita::views

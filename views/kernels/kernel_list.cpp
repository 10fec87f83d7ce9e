#include "views/kernels/kernel_list.h"

#include <QFileInfo>
#include <algorithm>

#include "core/base/text.h"
#include "views/look/format.h"

namespace partita::views {
namespace {

using schedule::KernelRow;

Cell bytes_cell(double bytes) {
  return Cell(bytes_text(static_cast<std::int64_t>(bytes)), bytes, bytes > 0 ? Tone::Plain : Tone::Dim);
}

QString amount(double n) {
  return n > 0 ? amount_text(n) : QString("-");
}

QString place_text(const StackFrame& frame) {
  return QString("%1:%2").arg(QFileInfo(text(frame.file)).fileName()).arg(frame.line);
}

QString escaped(const std::string& utf8) {
  return text(utf8).toHtmlEscaped();
}

}  // namespace

const StackFrame* KernelList::source(const std::string& node) const {
  const Node* found = graph ? graph->find(node) : nullptr;
  if (!found || !found->origin || found->origin->of_user().file.empty()) return nullptr;
  return &found->origin->of_user();
}

std::optional<std::size_t> KernelList::step_of(const QString& node, const StackFrame* from) const {
  const std::string name = node.toStdString();
  for (std::size_t s = 0; s < report.rows.size(); ++s)
    if (std::ranges::find(report.rows[s].origins, name) != report.rows[s].origins.end()) return s;
  if (!from) return std::nullopt;
  for (std::size_t s = 0; s < report.rows.size(); ++s)
    for (const std::string& origin : report.rows[s].origins)
      if (const StackFrame* frame = source(origin); frame && frame->file == from->file && frame->line == from->line)
        return s;
  return std::nullopt;
}

QStringList kernel_columns() {
  return {"Step", "Time", "Of the limit", "Kind", "Name", "Read", "Written", "Arithmetic", "Nodes", "From"};
}

std::vector<Row> kernel_rows(const KernelList& list) {
  std::vector<Row> rows;
  for (std::size_t s = 0; s < list.report.rows.size(); ++s) {
    const KernelRow& row = list.report.rows[s];
    Row out{row.origins.empty() ? QString() : text(row.origins.back()), {}};
    out.cells.emplace_back(QString::number(s), static_cast<double>(s), Tone::Dim);
    out.cells.push_back(row.seconds ? Cell(seconds_text(*row.seconds), *row.seconds) : Cell());
    const auto share = list.report.share(row);
    const bool cached = list.report.in_cache(row);
    out.cells.push_back(share ? Cell(QString("%1 %%2").arg(100 * *share, 0, 'f', 0).arg(cached ? ", in cache" : ""),
                                     *share, *share < 0.25 && !cached ? Tone::Warn : Tone::Plain)
                              : Cell());
    out.cells.emplace_back(row.library.empty() ? text(name(row.kind)) : text(row.library),
                           row.kind == KernelRow::Kind::Evaluation ? Tone::Warn : Tone::Plain);
    out.cells.emplace_back(text(row.name));
    out.cells.push_back(bytes_cell(row.read));
    out.cells.push_back(bytes_cell(row.written));
    out.cells.emplace_back(amount(row.operations), row.operations, row.operations > 0 ? Tone::Plain : Tone::Dim);
    out.cells.emplace_back(QString::number(row.origins.size()), static_cast<double>(row.origins.size()));
    const StackFrame* frame = row.origins.empty() ? nullptr : list.source(row.origins.back());
    out.cells.push_back(frame ? Cell(place_text(*frame) + "  " + text(frame->code), Tone::Dim) : Cell());
    rows.push_back(std::move(out));
  }
  return rows;
}

QString kernel_details(const KernelList& list, std::size_t step) {
  if (step >= list.report.rows.size()) return {};
  const KernelRow& row = list.report.rows[step];
  QString out = QString("<b>%1</b> computes ").arg(escaped(row.name));
  QStringList nodes;
  for (const std::string& origin : row.origins) {
    const StackFrame* frame = list.source(origin);
    nodes << (frame ? QString("%1 (%2)").arg(escaped(origin), place_text(*frame).toHtmlEscaped()) : escaped(origin));
  }
  out += nodes.isEmpty() ? QString("nothing that is known by name") : nodes.join(", ");
  if (!row.why_not.empty()) out += QString("<br>No library does it: %1").arg(escaped(row.why_not));
  for (const KernelRow::Neighbour& n : row.apart) {
    if (n.step >= list.report.rows.size()) continue;
    out += QString("<br>%1 step %2, %3: %4")
               .arg(n.reads ? "Reads" : "Is read by")
               .arg(n.step)
               .arg(escaped(list.report.rows[n.step].name), escaped(n.why));
  }
  return out;
}

KernelList planned_kernels(PlannedGraph planned, std::shared_ptr<const std::vector<KernelForm>> forms) {
  const auto graph = std::make_shared<const PlannedGraph>(std::move(planned));
  KernelList list;
  list.name = text(graph->report.graph);
  list.report = graph->report;
  list.graph = graph->planned.first;
  if (!forms) return list;
  for (const KernelForm& form : *forms) list.forms << text(form.title);
  list.code = [graph, forms](int form, std::size_t step) {
    return (*forms)[static_cast<std::size_t>(form)].text(graph->planned.second, step);
  };
  return list;
}

KernelList inductor_kernels(std::shared_ptr<const Loaded> loaded, InductorCode code) {
  KernelList list;
  list.name = text(code.code->title);
  list.report.graph = code.code->id;
  list.forms = {QObject::tr("code by inductor")};
  if (code.post_grad)
    if (auto graph = code.post_grad->graph()) list.graph = *std::move(graph);
  for (const InductorKernel& k : code.kernels) {
    KernelRow row;
    row.kind = k.language == "call" ? KernelRow::Kind::Library : KernelRow::Kind::Kernel;
    row.name = k.name;
    if (k.language != "call") row.library = k.language;
    row.origins = k.nodes.empty() ? k.sources : k.nodes;
    list.report.rows.push_back(std::move(row));
  }
  list.note = QObject::tr("%1 links to nodes found, %2 missed").arg(code.found).arg(code.missed);
  const auto shared = std::make_shared<const InductorCode>(std::move(code));
  list.code = [shared, loaded](int, std::size_t step) -> Result<std::optional<loops::LinkedText>> {
    if (step >= shared->kernels.size()) return std::optional<loops::LinkedText>();
    loops::LinkedText out;
    const std::string code = shared->code_of(shared->kernels[step]);
    for (const std::string_view line : lines_of(code)) out.add(line);
    return std::optional(std::move(out));
  };
  return list;
}

}  // namespace partita::views

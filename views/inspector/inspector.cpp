// Collects what is known of a node, a folded module or the whole graph as labelled rows, and renders them as HTML with
// links to other nodes. The widget adds buttons that pin the value.
#include "views/inspector/inspector.h"

#include <QEvent>
#include <QTextBrowser>
#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "core/ir/print.h"
#include "core/partition/cost.h"
#include "views/look/arrange.h"
#include "views/look/format.h"
#include "views/picture/sizes.h"

namespace partita::views {
namespace {

QString escaped(std::string_view s) {
  return text(s).toHtmlEscaped();
}
QString link_to(const std::string& node) {
  return QString("<a href=\"node:%1\">%1</a>").arg(escaped(node));
}
QString link(const Node& node) {
  return link_to(node.name());
}

QString links(std::vector<const Node*> nodes) {
  constexpr std::size_t kMost = 24;
  QStringList parts;
  std::vector<const Node*> seen;
  for (const Node* node : nodes) {
    if (std::find(seen.begin(), seen.end(), node) != seen.end()) continue;
    seen.push_back(node);
    if (seen.size() <= kMost) parts << link(*node);
  }
  QString joined = parts.join(", ");
  if (seen.size() > kMost) joined += QString(" and %1 more").arg(seen.size() - kMost);
  return joined;
}

QString code(const QString& html) {
  return "<code>" + html + "</code>";
}

QString frame_html(const StackFrame& frame) {
  return escaped(frame.file.substr(frame.file.find_last_of('/') + 1)) + ":" + QString::number(frame.line) +
         (frame.function.empty() ? "" : " in " + escaped(frame.function)) +
         (frame.code.empty() ? "" : "<br>" + code(escaped(frame.code)));
}

void add_memory_rows(const Document& document, const Node& node, NodeAccount& account) {
  const Node* owner = memory_owner(&node);
  if (owner != &node) account.rows.push_back({"view of", links({owner})});
  if (!document.scene) return;
  const MemoryUses& memories = *document.scene->picture.memories;
  const auto found = memories.find(owner);
  if (found == memories.end()) return;
  const auto& [writers, views] = found->second;
  if (!writers.empty()) account.rows.push_back({"written by", links(writers)});
  if (owner == &node && !views.empty()) account.rows.push_back({"views", links(views)});
}

void add_cut_rows(const Document& document, const Node& node, NodeAccount& account) {
  if (!document.cut) return;
  const std::string& name = node.name();
  for (const SavedValue& value : document.cut->saved) {
    if (value.name != name) continue;
    QString why = value.why.empty() ? QString() : ": " + escaped(value.why);
    account.rows.push_back({"saved", value.is_input
                                         ? "an input, kept by the caller anyway" + why
                                         : size_text(value, document.scene->picture.unknown) + " for backward" + why});
  }
  const auto& again = document.cut->recomputed;
  if (std::find(again.begin(), again.end(), name) != again.end()) {
    const QString bytes = size_text(node.meta, node.graph().shapes.get());
    account.rows.push_back(
        {"recomputed", account.pin == Pin::Recompute ? "pinned" : "cheaper than keeping " + bytes.toHtmlEscaped()});
  }
}

/// How many calls there are of each family, the most first.
QString calls_text(const std::vector<const Node*>& nodes) {
  std::map<QString, int> families;
  for (const Node* node : nodes)
    if (node->op()->is_call()) ++families[text(family_name(family_of(node->op())))];
  std::vector<std::pair<int, QString>> most;
  for (const auto& [family, count] : families) most.emplace_back(count, family);
  std::ranges::sort(most, std::greater<>());
  QStringList parts;
  for (const auto& [count, family] : most) parts << QString("%1 %2").arg(count).arg(family.toHtmlEscaped());
  return parts.join(", ");
}

/// The largest of these values with their sizes, as links.
QString largest_text(const Document& document, std::vector<const SavedValue*> saved) {
  constexpr std::size_t kMost = 8;
  std::ranges::stable_sort(saved, std::greater(), &SavedValue::bytes);
  QStringList largest;
  for (std::size_t i = 0; i < std::min(saved.size(), kMost); ++i)
    largest << link_to(saved[i]->name) + "  " + size_text(*saved[i], document.scene->picture.unknown);
  if (saved.size() > kMost) largest << QObject::tr("and %1 more").arg(saved.size() - kMost);
  return largest.join("<br>");
}

QString time_text(const NodeFacts& facts) {
  const QString seconds = seconds_text(facts.seconds);
  if (facts.kernel_times.empty()) return seconds + " in the interpreter";
  if (facts.kernel_times.size() == 1)
    return QString("%1 in your run, the whole of %2").arg(seconds, text(facts.kernel_times.front().first));
  return QString("%1 in your run, in %2").arg(seconds, count_text(std::ssize(facts.kernel_times), "kernel"));
}

}  // namespace

NodeAccount account_of(const Document& document, const Node& node, const NodeFacts* facts) {
  NodeAccount account;
  account.title = text(node.name());
  account.subtitle = node.op()->is_call()    ? text(node.op()->name)
                     : node.is_output()      ? QString("output")
                     : node.is_placeholder() ? QString("placeholder")
                                             : QString("attribute");
  if (auto found = document.pins.find(node.name()); found != document.pins.end()) account.pin = found->second;
  const Pin other = account.pin == Pin::Save ? Pin::Recompute : Pin::Save;
  account.why_no_pin = why_not_pinned(document, text(node.name()), other);

  if (QString meta = text(annotation(node.meta)); !meta.isEmpty())
    account.rows.push_back({"value", code(meta.toHtmlEscaped())});
  if (const MetaTuple* tuple = node.meta.tuple())
    for (std::size_t i = 0; i < tuple->items.size(); ++i)
      account.rows.push_back({QString("value[%1]").arg(i), code(escaped(annotation(tuple->items[i])))});
  if (node.meta.tensor() || node.meta.tuple())
    account.rows.push_back({"size", size_text(node.meta, node.graph().shapes.get()).toHtmlEscaped()});
  if (const SymExpr operations = symbolic_operations_of(node); !operations.is(0))
    account.rows.push_back({"operations", operations_text(operations).toHtmlEscaped()});
  if (const TensorMeta* tensor = node.meta.tensor()) {
    if (tensor->requires_grad) account.rows.push_back({"gradient", "required"});
    if (!tensor->offset.is(0)) account.rows.push_back({"offset", code(escaped(tensor->offset.str()))});
    if (tensor->storage_id >= 0) account.rows.push_back({"storage", QString::number(tensor->storage_id)});
  }
  add_memory_rows(document, node, account);
  add_cut_rows(document, node, account);
  if (account.pin != Pin::None) account.rows.push_back({"pin", account.pin == Pin::Save ? "save" : "recompute"});
  if (facts) {
    if (facts->error >= 0)
      account.rows.push_back(
          {"error", error_text(facts->error) +
                        (facts->tolerance >= 0 ? " (tolerance " + error_text(facts->tolerance) + ")" : "") +
                        (facts->inherited_from.empty() ? "" : ", after " + link_to(facts->inherited_from))});
    if (facts->seconds >= 0) account.rows.push_back({"time", time_text(*facts).toHtmlEscaped()});
    if (!facts->kernel.empty()) account.rows.push_back({"kernel", code(escaped(facts->kernel))});
    if (!facts->pass.empty()) account.rows.push_back({"made by", escaped(facts->pass)});
  }
  if (const auto note = document.notes.find(node.name()); note != document.notes.end())
    account.rows.push_back({"note", note->second.isEmpty() ? "bookmarked" : note->second.toHtmlEscaped()});
  if (!node.target.empty()) account.rows.push_back({"target", code(escaped(node.target))});
  if (!node.note.empty()) account.rows.push_back({"role", escaped(node.note)});
  if (node.origin && !node.origin->file.empty()) {
    account.rows.push_back({"from", frame_html(node.origin->of_user())});
    if (node.origin->caller) account.rows.push_back({"in the library", frame_html(*node.origin)});
  }
  if (node.origin && !node.origin->modules.empty()) account.rows.push_back({"module", escaped(node.origin->modules)});
  auto inputs = node.inputs();
  if (!inputs.empty()) account.rows.push_back({"reads", links({inputs.begin(), inputs.end()})});
  std::vector<const Node*> users(node.users().begin(), node.users().end());
  std::sort(users.begin(), users.end(), [](const Node* a, const Node* b) { return a->id() < b->id(); });
  account.rows.push_back({"used by", users.empty() ? "no node" : links(users)});
  if (node.op()->is_call()) {
    PrintOptions options{.annotations = false, .origins = false, .deletions = false};
    account.rows.push_back({"call", code(escaped(print(node, options)))});
  }
  return account;
}

NodeAccount account_of(const Document& document, const Picture& picture, int frame) {
  const Frame& module = picture.frames[static_cast<std::size_t>(frame)];
  const auto inside = [&](const Node& node) {
    int at = picture.frame_of[node.id()];
    while (at >= 0 && at != frame) at = picture.frames[static_cast<std::size_t>(at)].parent;
    return at == frame;
  };
  NodeAccount account;
  account.title = text(module.label);
  account.subtitle = QObject::tr("folded; Enter shows what is in it");
  account.why_no_pin = why_not_pinned(document, {}, Pin::Save);
  std::vector<const Node*> nodes, reads, users;
  double error = -1;
  NodeFacts times;
  for (const Node* node : *picture.graph) {
    if (!inside(*node)) continue;
    nodes.push_back(node);
    std::ranges::copy_if(node->inputs(), std::back_inserter(reads), [&](const Node* in) { return !inside(*in); });
    std::ranges::copy_if(node->users(), std::back_inserter(users), [&](const Node* user) { return !inside(*user); });
    if (const auto facts = document.facts.find(node->name()); facts != document.facts.end()) {
      times.add_times(facts->second);
      error = std::max(error, facts->second.error);
    }
  }
  std::ranges::sort(users, {}, &Node::id);
  account.rows.push_back({"nodes", count_text(static_cast<std::int64_t>(nodes.size()), "node")});
  account.rows.push_back({"size", size_text(module.bytes).toHtmlEscaped()});
  account.rows.push_back({"calls", calls_text(nodes)});
  if (document.cut) {
    std::vector<const SavedValue*> saved;
    for (const SavedValue& value : document.cut->saved)
      if (const Node* node = picture.graph->find(value.name); node && inside(*node)) saved.push_back(&value);
    if (!saved.empty()) account.rows.push_back({"saved", largest_text(document, std::move(saved))});
  }
  if (error >= 0) account.rows.push_back({"largest error", error_text(error)});
  if (times.seconds >= 0) account.rows.push_back({"time", time_text(times).toHtmlEscaped()});
  if (!nodes.empty() && nodes.front()->origin && !nodes.front()->origin->file.empty())
    account.rows.push_back({"from", frame_html(nodes.front()->origin->of_user())});
  account.rows.push_back({"begins with", nodes.empty() ? QString() : link(*nodes.front())});
  if (!reads.empty()) account.rows.push_back({"reads", links(std::move(reads))});
  account.rows.push_back({"used by", users.empty() ? "no node" : links(std::move(users))});
  return account;
}

NodeAccount account_of(const Document& document) {
  const Graph& graph = *document.graph;
  NodeAccount account;
  account.title = document.title;
  account.subtitle = text(kind_name(document.kind));
  account.why_no_pin = why_not_pinned(document, {}, Pin::Save);
  std::vector<const Node*> calls;
  ByteSum inputs;
  for (const Node* node : graph) {
    if (node->is_placeholder()) inputs.add(node->meta, graph.shapes.get());
    if (node->op()->is_call()) calls.push_back(node);
  }
  account.rows.push_back({"file", escaped(document.path.toStdString())});
  account.rows.push_back({"nodes", QString("%1, %2").arg(count_text(static_cast<std::int64_t>(graph.size()), "node"),
                                                         count_text(static_cast<std::int64_t>(calls.size()), "call"))});
  const std::vector<Node*> placeholders = graph.placeholders();
  const auto unknown_inputs =
      std::ranges::count_if(placeholders, [](const Node* input) { return !input->meta.known(); });
  QString bytes = size_text(inputs);
  if (unknown_inputs > 0)  // of a print or plain code, all of them
    bytes = std::cmp_equal(unknown_inputs, placeholders.size())
                ? QString("of unknown size")
                : QString("%1 and %2 of unknown size").arg(bytes).arg(unknown_inputs);
  account.rows.push_back({"inputs", QString("%1, %2").arg(placeholders.size()).arg(bytes)});
  account.rows.push_back({"outputs", QString::number(graph.outputs().size())});
  account.rows.push_back({"calls", calls_text(calls)});
  for (const auto& [name, what] : document.wrappers)
    account.rows.push_back({"wrapper", code(name.toHtmlEscaped()) + "<br>" + what.toHtmlEscaped()});
  if (!document.cut) return account;
  const CutSummary& cut = *document.cut;
  const UnknownBytes& unknown = document.scene->picture.unknown;
  account.rows.push_back({"saved", QString("%1 for backward, %2; %3")
                                       .arg(unknown.values)
                                       .arg(size_text(unknown.saved), kept_inputs_text(unknown))});
  QString recomputed = count_text(static_cast<std::int64_t>(cut.recomputed.size()), "node");
  recomputed += ", " + operations_text(cut.recomputed_operations).toHtmlEscaped() + " operations";
  account.rows.push_back({"recomputed", recomputed});
  std::vector<const SavedValue*> saved;
  for (const SavedValue& value : cut.saved)
    if (!value.is_input && graph.find(value.name)) saved.push_back(&value);
  if (!saved.empty()) account.rows.push_back({"largest saved", largest_text(document, std::move(saved))});
  return account;
}

QString account_html(const NodeAccount& account, const Theme& theme) {
  QString html = QString(
                     "<style>a{color:%1;text-decoration:none} td{padding:2px 12px 2px 0} .l{color:%2} "
                     "code{font-family:'%3'}</style>")
                     .arg(theme.accent.name(), theme.dim.name(), code_font().family());
  html += QString(
              "<div style='font-size:14pt;font-weight:600'>%1</div><div style='color:%2'><code>%3</code></div><table "
              "style='margin-top:6px'>")
              .arg(account.title.toHtmlEscaped(), theme.dim.name(), account.subtitle.toHtmlEscaped());
  for (const auto& row : account.rows)
    html += QString("<tr><td class='l'>%1</td><td>%2</td></tr>").arg(row.label, row.html);
  return html + "</table>";
}

Inspector::Inspector(QWidget* parent) : QWidget(parent) {
  auto* layout = plain_column(this);
  page_ = new QTextBrowser;
  page_->setOpenLinks(false);
  page_->setFrameShape(QFrame::NoFrame);
  page_->setAccessibleName(tr("Chosen node"));
  page_->document()->setDocumentMargin(12);
  layout->addWidget(page_, 1);
  auto* buttons = new QHBoxLayout;
  buttons->setContentsMargins(12, 8, 12, 8);
  buttons->setSpacing(8);
  const auto pin = [this](Pin to) { return [this, to] { Q_EMIT pin_asked(account_.title, to); }; };
  save_ = button_of(tr("Save"), this, pin(Pin::Save), tr("Keep this value for the backward (S)"));
  recompute_ =
      button_of(tr("Recompute"), this, pin(Pin::Recompute), tr("Compute this value again in the backward (R)"));
  release_ = button_of(tr("Release"), this, pin(Pin::None), tr("Let the partitioner choose (U)"));
  constexpr int kLeast = 48;  // in half of a laptop's screen
  for (auto* button : {save_, recompute_, release_}) {
    button->setAccessibleDescription(button->toolTip());
    button->setMinimumWidth(kLeast);
  }
  add_all(buttons, {save_, recompute_, release_});
  buttons->addStretch();
  layout->addLayout(buttons);
  connect(page_, &QTextBrowser::anchorClicked, this, [this](const QUrl& url) {
    if (url.scheme() == "node") Q_EMIT node_chosen(url.path());
  });
  refresh();
}

void Inspector::show_node(const Document* document, const QString& name, const NodeFacts* facts) {
  const Node* node =
      document && document->graph && !name.isEmpty() ? document->graph->find(name.toStdString()) : nullptr;
  account_ = node                          ? account_of(*document, *node, facts)
             : document && document->graph ? account_of(*document)
                                           : NodeAccount{};
  refresh();
}

void Inspector::show_module(const Document& document, const Picture& picture, int frame) {
  account_ = account_of(document, picture, frame);
  refresh();
}

void Inspector::changeEvent(QEvent* event) {
  if (event->type() == QEvent::StyleChange) refresh();
  QWidget::changeEvent(event);
}

void Inspector::refresh() {
  if (account_.title.isEmpty()) {
    page_->setHtml(QString("<p style='color:%1'>%2</p>")
                       .arg(Theme::current().dim.name(), tr("Choose a node in the picture or in the code.")));
  } else {
    page_->setHtml(account_html(account_, Theme::current()));
  }
  const bool can_pin = !account_.title.isEmpty() && account_.why_no_pin.isEmpty();
  save_->setEnabled(can_pin && account_.pin != Pin::Save);
  recompute_->setEnabled(can_pin && account_.pin != Pin::Recompute);
  release_->setEnabled(can_pin && account_.pin != Pin::None);
  for (auto* button : {save_, recompute_, release_})
    button->setToolTip(can_pin ? button->accessibleDescription() : account_.why_no_pin);
}

}  // namespace partita::views

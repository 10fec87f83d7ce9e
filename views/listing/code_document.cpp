#include "views/listing/code_document.h"

#include <algorithm>

#include "views/picture/frames.h"

namespace partita::views {
namespace {

// The name a statement binds: "  relu: "f32[..]" = ..." or "  relu = ..."; empty when it binds none.
QStringView bound_name(QStringView line) {
  qsizetype begin = 0;
  while (begin < line.size() && line[begin] == ' ') ++begin;
  qsizetype end = begin;
  while (end < line.size() && (line[end].isLetterOrNumber() || line[end] == '_')) ++end;
  if (end == begin || end == line.size()) return {};
  QStringView rest = line.sliced(end);
  if (rest.startsWith(u": \"") || rest.startsWith(u" = ")) return line.sliced(begin, end - begin);
  return {};
}

// Texts that are no graph are shown as they are.
QString shown(QStringView line, bool is_graph) {
  if (!is_graph) return line.toString();
  qsizetype indent = 0;
  while (indent < line.size() && line[indent] == ' ') ++indent;
  QString drawn = QString(indent / 2, ' ') + line.sliced(indent).toString();
  constexpr QStringView kFile = u"File: /";
  if (qsizetype file = drawn.trimmed().startsWith('#') ? drawn.indexOf(kFile) : -1; file >= 0) {
    const qsizetype path = file + kFile.size() - 1, end = drawn.indexOf(u':', path);
    const qsizetype name = drawn.lastIndexOf(u'/', end < 0 ? -1 : end - drawn.size()) + 1;
    if (name > path + 1) drawn.replace(path, name - path, QString::fromUtf8("…/"));
  }
  return drawn;
}

}  // namespace

CodeDocument::CodeDocument(QString text, const Graph* graph) : text_(std::move(text)), is_graph_(graph != nullptr) {
  for (qsizetype begin = 0; begin <= text_.size();) {
    qsizetype end = text_.indexOf('\n', begin);
    if (end < 0) end = text_.size();
    if (begin == text_.size() && !begins_.empty()) break;  // the newline that ends the text
    begins_.push_back(static_cast<int>(begin));
    longest_ = std::max(longest_, static_cast<int>(shown(QStringView(text_).sliced(begin, end - begin), graph).size()));
    begin = end + 1;
  }
  node_at_.resize(begins_.size());
  family_at_.resize(begins_.size());
  if (!graph) return;
  auto bind = [&](const Node* node, int line) {
    auto [found, fresh] = line_of_.try_emplace(node->name(), line);
    if (!fresh || node_at_[line]) return;
    node_at_[line] = &found->first;
    if (node->op()->is_call()) family_at_[line] = family_of(node->op());
  };
  for (int i = 0; i < line_count(); ++i) {
    QStringView line = this->line(i);
    if (QStringView name = bound_name(line); !name.isEmpty()) {
      if (const Node* node = graph->find(name.toString().toStdString())) bind(node, i);
    } else if (line.trimmed().startsWith(u"def forward(")) {
      for (const Node* node : graph->placeholders())
        if (!line_of_.contains(node->name()) && line.contains(QString::fromStdString(node->name()))) bind(node, i);
    } else if (line.trimmed().startsWith(u"return ") && graph->output() &&
               !line_of_.contains(graph->output()->name())) {
      bind(graph->output(), i);
    }
  }
  // Joint graphs declare many inputs on one line.
  for (const Node* node : graph->placeholders()) {
    if (line_of_.contains(node->name())) continue;
    int line = find(QString::fromStdString(node->name()) + ":", 0);
    if (line >= 0) line_of_.try_emplace(node->name(), line);
  }
  find_sections(*graph);
}

// The outermost modules; one that holds most of the graph is divided into its own.
void CodeDocument::find_sections(const Graph& graph) {
  std::vector<int> frame_of;
  const std::vector<Frame> frames = make_frames(graph, [](const Node&) { return Side::Forward; }, {}, frame_of);
  std::vector<char> divided(frames.size());
  const auto is_outermost = [&](int f) { return frames[f].parent < 0 || divided[frames[f].parent]; };
  for (std::size_t f = 0; f < frames.size(); ++f)  // parents come before children
    divided[f] = is_outermost(static_cast<int>(f)) && static_cast<std::size_t>(frames[f].nodes) * 5 > graph.size() * 2;
  std::vector<CodeSection> by_frame(frames.size(), {-1, -1, {}});
  for (const Node* node : graph) {
    const auto line = line_of_.find(node->name());
    int frame = frame_of[node->id()];
    while (frame >= 0 && !is_outermost(frame)) frame = frames[frame].parent;
    if (frame < 0 || divided[frame] || line == line_of_.end()) continue;
    CodeSection& section = by_frame[frame];
    if (section.begin < 0) section.begin = line->second;
    section.end = line->second + 1;
  }
  for (std::size_t f = 0; f < frames.size(); ++f) {
    CodeSection section = by_frame[f];
    if (section.begin < 0) continue;
    section.label = QString::fromStdString(frames[f].label);
    while (section.begin > 0 && line(section.begin - 1).trimmed().startsWith('#')) --section.begin;
    if (section.end - section.begin > 1 && (sections_.empty() || sections_.back().end <= section.begin))
      sections_.push_back(std::move(section));
  }
}

QStringView CodeDocument::line(int index) const {
  qsizetype begin = begins_[index];
  qsizetype end = index + 1 < line_count() ? begins_[index + 1] - 1 : text_.size();
  if (end > begin && text_[end - 1] == '\n') --end;
  return QStringView(text_).sliced(begin, end - begin);
}

QString CodeDocument::shown_line(int index) const {
  return shown(line(index), is_graph_);
}

int CodeDocument::line_of(const QString& node) const {
  auto found = line_of_.find(node.toStdString());
  return found == line_of_.end() ? -1 : found->second;
}

std::optional<Family> CodeDocument::family_at(int line) const {
  return line < 0 || line >= line_count() ? std::nullopt : family_at_[line];
}

QString CodeDocument::node_at(int line) const {
  return line >= 0 && line < line_count() && node_at_[line] ? QString::fromStdString(*node_at_[line]) : QString();
}

int CodeDocument::find(const QString& needle, int from, bool backwards) const {
  if (needle.isEmpty() || line_count() == 0) return -1;
  for (int k = 0; k < line_count(); ++k) {
    int i = (from + (backwards ? -k : k) % line_count() + line_count()) % line_count();
    if (line(i).contains(needle, Qt::CaseInsensitive)) return i;
  }
  return -1;
}

int CodeDocument::count(const QString& needle) const {
  int n = 0;
  for (int i = 0; i < line_count() && !needle.isEmpty(); ++i) n += line(i).contains(needle, Qt::CaseInsensitive);
  return n;
}

}  // namespace partita::views

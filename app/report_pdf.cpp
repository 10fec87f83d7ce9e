// The report as PDF: tables in HTML, made of the report's JSON, which a QTextDocument lays out on A4 pages. Graphs are
// listed, not drawn.
#include <QAbstractTextDocumentLayout>
#include <QBuffer>
#include <QPainter>
#include <QPdfWriter>
#include <QTextDocument>
#include <algorithm>

#include <fmt/format.h>

#include "app/offscreen.h"
#include "app/report_drawing.h"
#include "views/look/format.h"
#include "views/look/theme.h"

namespace partita {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t most_rows = 60;  // of a table; the page and the verbs have all

/// Tables as the little HTML that a QTextDocument reads.
class Tables {
 public:
  explicit Tables(const ReportContent& content) : data_(content.data) {
    heading("Partita: " + content.path.substr(content.path.find_last_of('/') + 1), "h1");
    begin({});
    for (const auto& [name, text] : content.summary) add({name, text});
    end();
    graphs();
    saved();
    passes();
    kernels();
    comparison();
    facts();
    steps();
    times();
  }
  const std::string& html() const { return html_; }

 private:
  static std::string bytes(const Json& n) {
    return views::bytes_text(static_cast<std::int64_t>(n.get<double>())).toStdString();
  }
  static std::string error(const Json& e) {  // a text where JSON has no number
    return e.is_string() ? e.get<std::string>() : views::error_text(e.get<double>()).toStdString();
  }
  static std::string seconds(double s) { return views::seconds_text(s).toStdString(); }

  void heading(const std::string& text, const char* tag = "h2") {
    html_ += fmt::format("<{}>{}</{}>\n", tag, html_text(text), tag);
  }
  void begin(const std::vector<std::string>& columns) {
    rows_ = 0;
    html_ += "<table cellspacing=\"0\" cellpadding=\"3\" width=\"100%\">\n";
    if (columns.empty()) return;
    html_ += "<tr>";
    for (const std::string& column : columns) html_ += fmt::format("<th align=\"left\">{}</th>", html_text(column));
    html_ += "</tr>\n";
  }
  void add(const std::vector<std::string>& cells) {
    if (++rows_ > most_rows) return;
    html_ += "<tr>";
    for (const std::string& cell : cells) html_ += fmt::format("<td>{}</td>", html_text(cell));
    html_ += "</tr>\n";
  }
  void end() {
    html_ += "</table>\n";
    if (rows_ > most_rows) html_ += fmt::format("<p>and {} more</p>\n", rows_ - most_rows);
  }

  void graphs() {
    if (data_["graphs"].empty()) return;
    heading("Graphs");
    begin({"Graph", "Nodes"});
    for (const Json& graph : data_["graphs"])
      add({graph.at("title").get<std::string>(), fmt::format("{}", graph.at("nodes").get<std::size_t>())});
    end();
  }

  void saved() {
    if (!data_.contains("cut")) return;
    heading("Saved for the backward, the largest first");
    std::vector<const Json*> values;
    for (const Json& value : data_["cut"]["saved"]) values.push_back(&value);
    std::ranges::stable_sort(values, std::greater(), [](const Json* v) { return v->at("bytes").get<double>(); });
    begin({"Value", "Bytes", "Why"});
    for (const Json* v : values)
      add({v->at("name").get<std::string>() + (v->at("is_input").get<bool>() ? " (an input)" : ""),
           bytes(v->at("bytes")), v->at("why").get<std::string>()});
    end();
  }

  void passes() {
    if (!data_.contains("passes")) return;
    heading("Passes that changed something");
    begin({"Pass", "Stage", "Graph", "Nodes", "Time"});
    for (const Json& pass : data_["passes"])
      if (pass.contains("diff"))
        add({pass.at("pass").get<std::string>(), pass.at("stage").get<std::string>(),
             pass.at("graph").get<std::string>(),
             fmt::format("{} to {}", pass.at("before").get<std::size_t>(), pass.at("after").get<std::size_t>()),
             seconds(pass.at("ms").get<double>() * 1e-3)});
    end();
  }

  void kernels() {
    if (!data_.contains("kernels")) return;
    for (const Json& list : data_["kernels"]) {
      heading("Kernels: " + list.at("graph").get<std::string>());
      begin({"Step", "What", "Kind", "Read and written", "Operations"});
      for (const Json& step : list.at("steps"))
        add({fmt::format("{}", step.at("step").get<std::size_t>()), step.at("name").get<std::string>(),
             step.at("kind").get<std::string>(),
             bytes(Json(step.at("read_bytes").get<double>() + step.at("written_bytes").get<double>())),
             views::amount_text(step.at("operations").get<double>()).toStdString()});
      end();
    }
  }

  void comparison() {
    if (!data_.contains("comparison")) return;
    for (const Json& report : data_["comparison"]) {
      heading(fmt::format("{} against {}", report.at("found").get<std::string>(),
                          report.at("expected").get<std::string>()));
      begin({"Value", "Verdict", "Largest error", "Relative"});
      for (const bool ok : {false, true})
        for (const Json& row : report.at("rows"))
          if (const std::string what = row.at("what").get<std::string>(); row.at("ok").get<bool>() == ok)
            add({row.at("name").get<std::string>(), (ok ? "agrees" : "differs") + (what.empty() ? what : ": " + what),
                 error(row.at("max_abs")), error(row.at("max_rel"))});
      end();
    }
  }

  void facts() {
    if (!data_.contains("facts")) return;
    for (const Json& facts : data_["facts"]) {
      heading(facts.at("title").get<std::string>());
      begin({"Compilation", "Of", "What", "Why"});
      for (const Json& row : facts.at("rows")) add(row.get<std::vector<std::string>>());
      end();
    }
  }

  void steps() {
    if (!data_.contains("steps")) return;
    heading("Steps of compiling");
    begin({"Step", "Its own", "With what is in it", "Times"});
    for (const Json& step : data_["steps"])
      add({step[0].get<std::string>(), seconds(step[1].get<double>()), seconds(step[2].get<double>()),
           fmt::format("{}", step[3].get<int>())});
    end();
  }

  void times() {
    if (!data_.contains("compile_times")) return;
    heading("Times of compiling");
    begin({"Compilation", "What", "Time"});
    for (const Json& row : data_["compile_times"])
      add({row.at("id").get<std::string>(), row.at("what").get<std::string>(),
           seconds(row.at("seconds").get<double>())});
    end();
  }

  const Json& data_;
  std::string html_;
  std::size_t rows_ = 0;
};

}  // namespace

Result<std::string> report_pdf(const ReportContent& content) {
  const Offscreen offscreen;
  constexpr int points_per_inch = 72, margin = 40, footer = 24;
  QByteArray bytes;
  QBuffer buffer(&bytes);
  buffer.open(QIODevice::WriteOnly);
  QPdfWriter pdf(&buffer);
  pdf.setResolution(points_per_inch);
  pdf.setPageSize(QPageSize(QPageSize::A4));
  pdf.setPageMargins(QMarginsF(0, 0, 0, 0));
  pdf.setTitle(QString::fromStdString("Partita: " + content.path.substr(content.path.find_last_of('/') + 1)));
  const QSizeF page = pdf.pageLayout().fullRectPoints().size();
  const QRectF body(margin, margin, page.width() - 2 * margin, page.height() - 2 * margin - footer);

  QTextDocument document;
  document.documentLayout()->setPaintDevice(&pdf);
  QFont font = views::interface_font();
  font.setPointSizeF(8.5);
  document.setDefaultFont(font);
  document.setDocumentMargin(0);
  document.setDefaultStyleSheet(
      "h1 { font-size: 15pt; } h2 { font-size: 11pt; margin-top: 12px; } th { color: #5f6773; } td, th { "
      "border-bottom: 1px solid #d8dbe0; }");
  document.setHtml(QString::fromStdString(Tables(content).html()));
  document.setPageSize(body.size());

  QPainter painter(&pdf);
  const int pages = document.pageCount();
  for (int i = 0; i < pages; ++i) {
    if (i > 0) pdf.newPage();
    painter.save();
    painter.translate(body.x(), body.y() - i * body.height());
    document.drawContents(&painter, QRectF(0, i * body.height(), body.width(), body.height()));
    painter.restore();
    painter.setFont(font);
    painter.setPen(views::Theme::light().dim);
    painter.drawText(QRectF(margin, page.height() - margin, body.width(), footer), Qt::AlignRight,
                     QString("%1 / %2").arg(i + 1).arg(pages));
  }
  if (!painter.end()) return unsupported("report.pdf", "the PDF could not be written; write a page, FILE.html");
  return std::string(bytes.constData(), static_cast<std::size_t>(bytes.size()));
}

}  // namespace partita

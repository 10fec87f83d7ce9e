#pragma once
#include <QWidget>

#include "core/compare/compare.h"
#include "core/store/graph_entry.h"
#include "core/store/store.h"
#include "views/table/table_panel.h"

namespace partita::views {

class ElidedLabel;

/// A check or a run of the past, or an entry of a cache of whole graphs, which a compilation that missed has made.
struct PastWork {
  enum class Kind : unsigned char { Check, Run, Entry } kind = Kind::Check;
  std::int64_t id = 0, at = 0;
  QString path, graph, what;  ///< what: the kind of a check, backend and options of a run, or the cache
  QString outcome;
  bool ok = true;
  double milliseconds = -1;  ///< of a run
};
/// Newest first.
std::vector<PastWork> past_work(const std::vector<StoredCheck>& checks, const std::vector<StoredRun>& runs,
                                const std::vector<StoredEntry>& entries);
std::vector<Row> past_rows(const std::vector<PastWork>& past);

/// The newest check and the one before it of the same graph: the two that are compared first. Fewer than two when there
/// are none.
std::vector<int> newest_pair(const std::vector<PastWork>& past);

/// Two reports node by node, in this order: broken, fixed, worse, better, on one side only, the rest. `b` may be null:
/// the rows of `a` alone.
std::vector<Row> side_by_side(const Report& a, const Report* b);
/// Two runs, one row per property.
std::vector<Row> side_by_side(const PastWork& a, const PastWork* b);

/// Where the keys of two entries differ, a row a line.
std::vector<Row> side_by_side(const EntryDifference& entries);

/// Lists checks, runs and cache entries of the past, and shows two of them side by side. Asks by signals for what it
/// shows.
class HistoryView : public QWidget {
  Q_OBJECT

 public:
  explicit HistoryView(QWidget* parent = nullptr);
  /// Newest first; chooses newest_pair().
  void set_past(std::vector<PastWork> past);
  /// The reports that reports_asked asked for; the second may be missing.
  void set_reports(const std::vector<Report>& reports);
  void set_explanation(const EntryDifference& entries);
  void set_note(const QString& text);
  TablePanel* past() { return past_table_; }
  TablePanel* beside() { return beside_; }

 Q_SIGNALS:
  void refresh_asked();
  void reports_asked(std::vector<std::int64_t> checks);
  /// Asks how the keys of two entries differ; `a` empty: b's and that of the nearest entry before it.
  void explanation_asked(std::string a, std::string b);
  void node_chosen(QString node);

 private:
  void choose();
  void show_beside(std::vector<Row> rows);  ///< and only the columns that say something

  std::vector<PastWork> past_;
  TablePanel *past_table_, *beside_;
  ElidedLabel* note_;
};

}  // namespace partita::views

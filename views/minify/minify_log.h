#pragma once
// The record of a minification, without widgets.
#include <QString>
#include <deque>
#include <vector>

#include "core/minify/repro.h"
#include "views/table/table_model.h"

namespace partita::views {

/// "2 of 1,717 calls still fail: values at float32"
QString outcome_text(const minify::MinifyResult& reduced);
/// Guilty pass or kernel, tries and time, a line each.
QString details_text(const minify::MinifyResult& reduced, const minify::Culprit& culprit);

class MinifyLog {
 public:
  static constexpr std::size_t kMostKept = 300;
  struct Point {
    double seconds = 0;
    std::size_t calls = 0;
  };

  void clear();
  void add(const minify::Event& step);
  bool empty() const { return recent_.empty(); }
  const minify::Event& last() const { return recent_.back(); }
  const std::vector<Point>& curve() const { return curve_; }  ///< a point for each time the graph became smaller
  std::vector<Row> rows() const;                              ///< the newest tries, newest first
  QString headline() const;                                   ///< "12 of 1,717 calls"
  QString line() const;                                       ///< strategy, tries, tries a second, time

 private:
  std::deque<minify::Event> recent_;
  std::vector<Point> curve_;
};

}  // namespace partita::views

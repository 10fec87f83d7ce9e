#pragma once
// The record of a minification, without widgets.
#include <QString>
#include <deque>
#include <memory>
#include <vector>

#include "core/ir/graph.h"
#include "views/table/table_model.h"

namespace partita::views {

/// One try, and the state of the minification after it.
struct MinifyStep {
  QString strategy, tried;
  bool fails = false;  ///< in the way that is looked for, so that the minification goes on from it
  bool remembered = false;
  std::int64_t tries = 0, recalled = 0;
  std::int64_t calls = 0, start_calls = 0;  ///< of the smallest graph that fails, and of the first
  double seconds = 0, tries_per_second = 0;
  std::shared_ptr<const Graph> graph;  ///< the smallest that fails
};

/// The result of a minification.
struct MinifyOutcome {
  QString failure;       ///< "values at float32"
  QString pass, kernel;  ///< the guilty ones; empty: not known
  std::int64_t calls = 0, start_calls = 0, tries = 0;
  double seconds = 0;
  std::shared_ptr<const Graph> graph;
  std::int64_t recalled = 0;  ///< known from an earlier run
};
QString outcome_text(const MinifyOutcome& outcome);  ///< "2 of 1,717 calls still fail: values at float32"
QString details_text(const MinifyOutcome& outcome);  ///< guilty pass or kernel, tries and time, a line each

class MinifyLog {
 public:
  static constexpr std::size_t kMostKept = 300;
  struct Point {
    double seconds = 0;
    std::int64_t calls = 0;
  };

  void clear();
  void add(const MinifyStep& step);
  bool empty() const { return recent_.empty(); }
  const MinifyStep& last() const { return recent_.back(); }
  const std::vector<Point>& curve() const { return curve_; }  ///< a point for each time the graph became smaller
  std::vector<Row> rows() const;                              ///< the newest tries, newest first
  QString headline() const;                                   ///< "12 of 1,717 calls"
  QString line() const;                                       ///< strategy, tries, tries a second, time

 private:
  std::deque<MinifyStep> recent_;
  std::vector<Point> curve_;
};

}  // namespace partita::views

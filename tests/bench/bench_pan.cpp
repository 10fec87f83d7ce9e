// Dragging the picture of 50,000 nodes: processor time for each frame, which at 60 frames a second is at most 16.7 ms.
//   QT_QPA_PLATFORM=offscreen build/release/tests/bench_pan [NODES]
#include <QApplication>
#include <QMouseEvent>
#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <vector>

#include <fmt/format.h>

#include "tests/views/graphs.h"
#include "views/picture/graph_view.h"

using namespace partita;
using namespace partita::views;

namespace {

void send(GraphView& view, QEvent::Type type, QPointF at) {
  QMouseEvent event(type, at, view.mapToGlobal(at), Qt::LeftButton, Qt::LeftButton, Qt::NoModifier);
  QApplication::sendEvent(&view, &event);
}

/// Milliseconds of each frame of a drag across the view.
std::vector<double> drag(GraphView& view, QPointF by) {
  constexpr int frames = 120;
  std::vector<double> times;
  QPointF at(700, 400);
  send(view, QEvent::MouseButtonPress, at);
  for (int i = 0; i < frames; ++i) {
    const std::clock_t start = std::clock();
    // There and back, so that the picture does not run out.
    at += i % 60 < 30 ? by : -by;
    send(view, QEvent::MouseMove, at);
    QApplication::processEvents();  // paints
    times.push_back(1e3 * static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
  }
  send(view, QEvent::MouseButtonRelease, at);
  std::ranges::sort(times);
  return times;
}

}  // namespace

int main(int argc, char** argv) {
  QApplication app(argc, argv);
  const int nodes = argc > 1 ? std::atoi(argv[1]) : 50'000;
  constexpr int nodes_a_layer = 12;
  const auto graph = tests::joint_graph(nodes / nodes_a_layer);
  PictureOptions options;
  options.text_width = measured_text_width(card_title_font(), card_detail_font());
  GraphView view;
  view.resize(1440, 900);
  view.set_scene(make_scene(graph, options));
  view.show();
  QApplication::processEvents();
  fmt::print("{} nodes\n", graph->size());
  for (const bool whole : {false, true}) {
    view.fit(whole);
    for (const QPointF by : {QPointF(0, 23), QPointF(17, 0), QPointF(-13, 19)}) {
      const std::vector<double> times = drag(view, by);
      fmt::print("{} by ({}, {}): {:.2f} ms a frame, the slowest {:.2f} ms\n", whole ? "whole, drag" : "readable, drag",
                 by.x(), by.y(), times[times.size() / 2], times.back());
    }
  }
  view.fit();
  for (const double factor : {1.2, 0.8}) {
    std::vector<double> times;
    for (int i = 0; i < 40; ++i) {
      const std::clock_t start = std::clock();
      view.zoom_by(factor, {700, 400});
      QApplication::processEvents();
      times.push_back(1e3 * static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
    }
    std::ranges::sort(times);
    fmt::print("zoom by {}: {:.2f} ms a frame, the slowest {:.2f} ms\n", factor, times[times.size() / 2], times.back());
  }
}

#pragma once
// What all views of the window have in common.
#include <QObject>
#include <QStringList>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "views/picture/overlay.h"

class QWidget;

namespace partita::views {

class InputsBox;
class Workbench;
struct Document;

/// One view of the window: it has a widget, and asks core for what the widget shows, as jobs. The workbench calls it
/// when something changes; what a view does not need it leaves out.
class Controller : public QObject {
 public:
  explicit Controller(Workbench& bench) : bench_(bench) {}

  virtual QWidget* widget() const = 0;
  /// Brings the view to the front (`--view NAME`) and starts what it needs to have something to show.
  virtual void show() { raise(); }

  /// This document is chosen and must be drawn first: what is shown of the one before has to go.
  virtual void wait_for(const Document&) {}
  /// The current document came to the screen, or was drawn anew.
  virtual void set_document(const Document&) {}
  /// A pass step of the current document came to the screen: a document of its own, without a cut.
  virtual void set_step(const Document&) {}
  /// Runs or passes found out something about nodes of the current document, or its notes changed.
  virtual void facts_changed(const Document&) {}
  /// A node of the current document; empty: none.
  virtual void select(const QString&) {}
  /// Marks what contains this text. How many lines do, when the view holds the text that is being read.
  virtual std::optional<int> search(const QString&) { return std::nullopt; }
  /// Goes to the next hit; false when the view does not hold the text that is being read.
  virtual bool find_next(bool) { return false; }

  /// Where the user chooses inputs; all views have the same ones.
  virtual InputsBox* inputs() { return nullptr; }
  /// A page that shows the cut, so that the memory budget is offered below it.
  virtual bool shows_cut() const { return false; }
  /// Colourings of the picture that this view can find out.
  struct OverlaySource {
    OverlayKind kind;
    std::function<void()> start;
    QString hint;  ///< how to find it out, or why that is not possible
  };
  virtual std::vector<OverlaySource> overlays() { return {}; }
  /// The verb and the options, without path and graph, that do what is on the screen, as words for a shell. Empty when
  /// the view does not stand for what is on the screen.
  virtual QStringList command() const { return {}; }
  /// The files that this verb reads, where it is not about the graph on the screen.
  virtual QStringList command_files() const { return {}; }

  void raise();            ///< to the front, without starting anything
  void go();               ///< what its command does: shows the view and gives it the keyboard
  bool on_screen() const;  ///< its page or tab is the one in front

 protected:
  Workbench& bench_;
};

/// Null when the program gives nothing for the view to work with.
using MakeView = std::unique_ptr<Controller> (*)(Workbench& bench);

QWidget* window_of(Workbench& bench);

/// A controller of a widget of class W, whose selection and inputs it hands on as far as W has them.
template <class W>
class WidgetController : public Controller {
 public:
  /// The window is the widget's parent at once: sizes depend on its style sheet.
  explicit WidgetController(Workbench& bench) : Controller(bench), view_(new W(window_of(bench))) {}
  W* view() const { return view_; }
  QWidget* widget() const override { return view_; }
  void select(const QString& node) override {
    if constexpr (requires { view_->select(node); })
      view_->select(node);
    else if constexpr (requires { view_->select_node(node); })
      view_->select_node(node);
  }
  InputsBox* inputs() override {
    if constexpr (requires { view_->inputs(); }) return view_->inputs();
    return nullptr;
  }

 protected:
  W* const view_;
};

}  // namespace partita::views

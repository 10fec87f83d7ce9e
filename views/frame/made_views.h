#pragma once
#include <QString>
#include <memory>
#include <vector>

#include "core/base/check.h"
#include "views/frame/controller.h"

namespace partita::views {

/// The views that were made, in the order of their table.
class Views {
 public:
  /// `name`: of `--view`.
  void add(const QString& name, std::unique_ptr<Controller> view) { views_.push_back({name, std::move(view)}); }

  /// The view of this class; null when the program does not offer it.
  template <class T>
  T* find() const {
    for (const Named& named : views_)
      if (auto* found = dynamic_cast<T*>(named.view.get())) return found;
    return nullptr;
  }
  /// The same, for views that are always offered.
  template <class T>
  T& get() const {
    T* found = find<T>();
    CHECK(found != nullptr, "no such view");
    return *found;
  }
  /// Calls `f` with each view, in the order of the table.
  void each(const auto& f) const {
    for (const Named& named : views_) f(*named.view);
  }

  /// Brings the view of this name to the front and starts what it needs to have something to show. False when there is
  /// no such view.
  bool show(const QString& name) const;

  const QString& inputs() const { return inputs_; }  ///< empty: the archive's samples, else made up
  void set_inputs(const QString& path);              ///< the IO file of all views

 private:
  struct Named {
    QString name;
    std::unique_ptr<Controller> view;
  };
  std::vector<Named> views_;
  QString inputs_;
};

}  // namespace partita::views

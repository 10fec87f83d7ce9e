#pragma once
#include "views/frame/controller.h"
#include "views/kernels/kernels_view.h"

namespace partita::views {

/// Plans and measures the program on the screen, and finds what inductor made of it.
class KernelsController : public WidgetController<KernelsView> {
 public:
  explicit KernelsController(Workbench& bench);

  void show() override;
  QStringList command() const override;
  void wait_for(const Document& document) override;
  void set_document(const Document& document) override;
  void select(const QString& node) override;

  void plan(bool measure);
  void find_inductor();

 private:
  void take(const QString& key, bool measured, Result<std::vector<std::shared_ptr<const KernelList>>> lists,
            const QString& none);
  void write_code(int step);
  void choose(const QString& node);

  QString shown_;          ///< key of the document on the screen
  bool planned_ = false;   ///< there are lists of it
  QString note_;           ///< what is said of them
  int job_ = 0;            ///< that makes them
  bool measured_ = false;  ///< with times
  bool choosing_ = false;  ///< the selection comes from the view
};

}  // namespace partita::views

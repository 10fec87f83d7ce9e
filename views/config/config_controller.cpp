#include "views/config/config_view.h"
#include "views/frame/workbench.h"

namespace partita::views {
namespace {

class ConfigController : public WidgetController<ConfigView> {
 public:
  explicit ConfigController(Workbench& bench) : WidgetController(bench) {
    bench.window().add_command("View", tr("Configuration"), {}, [this] { show(); });
  }
  void show() override {
    view_->set_rows(config_rows(config()));
    raise();
  }
};

}  // namespace

extern const MakeView make_config_view = make_view<ConfigController>;

}  // namespace partita::views

#include "app/own_picture.h"

#include "app/offscreen.h"
#include "views/picture/picture_export.h"

namespace partita {

Result<std::string> own_picture(const Graph& graph, const std::string& format) {
  const Offscreen offscreen;
  const auto scene = views::make_scene(graph.clone(), {});
  TRY(const QByteArray bytes, views::export_scene(*scene, QString::fromStdString(format), views::Theme::light()));
  return bytes.toStdString();
}

}  // namespace partita

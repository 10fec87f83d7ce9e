#include "app/report_drawing.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/base/text.h"
#include "core/ir/print.h"
#include "views/picture/scene.h"

namespace partita {
namespace {

/// A graph's code, and the line of each node.
struct ReportCode {
  explicit ReportCode(const Graph& graph) {
    const std::string printed = print(graph);
    const std::vector<Node*> placeholders = graph.placeholders();
    int line = 0;
    for (const std::string_view text_of_line : lines_of(printed)) add(graph, placeholders, text_of_line, line++);
  }

  int line_of(const std::string& node) const {
    const auto found = lines.find(node);
    return found == lines.end() ? -1 : found->second;
  }

  std::string text;
  std::map<std::string, int> lines;

 private:
  void add(const Graph& graph, const std::vector<Node*>& placeholders, std::string_view line, int number) {
    const std::size_t indent = std::min(line.find_first_not_of(' '), line.size());
    const std::string_view words = line.substr(indent);
    text.append(indent / 2, ' ').append(words).append("\n");
    if (words.starts_with("return ") && graph.output()) {
      lines.try_emplace(graph.output()->name(), number);
    } else if (const Node* node = graph.find(words.substr(0, words.find_first_of(": =")))) {
      lines.try_emplace(node->name(), number);
    }
    for (const Node* node : placeholders)  // several may stand on one line
      if (!lines.contains(node->name()) && line.find(node->name() + ":") != std::string_view::npos)
        lines.try_emplace(node->name(), number);
  }
};

}  // namespace

nlohmann::ordered_json report_graph(std::shared_ptr<const Graph> graph, const std::string& id, const std::string& title,
                                    const Notes& notes) {
  using Json = nlohmann::ordered_json;
  const ReportCode code(*graph);
  const std::shared_ptr<const views::Scene> scene = views::make_scene(graph, {});
  const views::Picture& picture = scene->picture;
  const views::PictureLayout& layout = scene->layout;
  const auto whole = [](float x) { return static_cast<int>(std::lround(x)); };

  Json cards = Json::array(), links = Json::array(), frames = Json::array(), sources = Json::object();
  for (std::size_t i = 0; i < picture.cards.size(); ++i) {
    const views::Card& c = picture.cards[i];
    const views::Box& box = layout.boxes[i];
    const std::string name = c.node ? c.node->name() : c.key;
    cards.push_back({whole(box.x), whole(box.y), whole(box.w), whole(box.h), c.title, c.detail,
                     static_cast<int>(c.family), (c.again ? 1 : 0) | (c.returned ? 2 : 0), c.frame, name,
                     code.line_of(name)});
    if (c.node && c.node->origin && c.node->origin->of_user().line > 0) {
      const StackFrame& from = c.node->origin->of_user();
      sources[name] = fmt::format("{}:{} {}", from.file, from.line, from.code);
    }
  }
  for (std::size_t i = 0; i < picture.links.size(); ++i) {
    const views::Route& route = layout.routes[i];
    Json points = Json::array();
    for (std::uint32_t p = route.begin; p < route.begin + route.count; ++p) {
      points.push_back(whole(layout.points[p].x));
      points.push_back(whole(layout.points[p].y));
    }
    links.push_back({picture.links[i].from, picture.links[i].to, static_cast<int>(route.kind), points});
  }
  for (const views::Frame& f : picture.frames) frames.push_back({f.label, f.parent, f.nodes});
  const views::Box& bounds = layout.bounds;
  Json out = {{"id", id},
              {"title", title},
              {"nodes", graph->size()},
              {"joint", picture.joint},
              {"bounds", {whole(bounds.x), whole(bounds.y), whole(bounds.w), whole(bounds.h)}},
              {"cards", cards},
              {"links", links},
              {"frames", frames},
              {"sources", sources},
              {"notes", notes},
              {"code", code.text}};
  if (layout.cut_right > layout.cut_left) out["cut"] = {whole(layout.cut_left), whole(layout.cut_right)};
  return out;
}

}  // namespace partita

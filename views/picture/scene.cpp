#include "views/picture/scene.h"

#include <algorithm>
#include <cmath>

namespace partita::views {

std::shared_ptr<const Scene> make_scene(std::shared_ptr<const Graph> graph, const PictureOptions& options,
                                        const Scene* before) {
  auto scene = std::make_shared<Scene>();
  scene->picture = make_picture(std::move(graph), options);
  const Picture& picture = scene->picture;
  scene->layout = before ? lay_out(picture, before->picture, before->layout) : lay_out(picture);
  const PictureLayout& layout = scene->layout;
  scene->out_links = link_index(picture, &Link::from);
  scene->in_links = link_index(picture, &Link::to);

  int low = 0, high = 0;
  for (int row : layout.rows) low = std::min(low, row), high = std::max(high, row);
  scene->first_row_ = low;
  scene->row_cards_.resize(high - low + 1);
  scene->row_links_.resize(high - low + 1);
  for (std::size_t i = 0; i < picture.cards.size(); ++i)
    scene->row_cards_[layout.rows[i] - low].push_back(static_cast<int>(i));
  for (auto& row : scene->row_cards_)
    std::sort(row.begin(), row.end(), [&](int a, int b) { return layout.boxes[a].x < layout.boxes[b].x; });
  for (std::size_t i = 0; i < picture.links.size(); ++i) {
    if (layout.routes[i].kind == RouteKind::Stub) continue;
    int a = layout.rows[picture.links[i].from], b = layout.rows[picture.links[i].to];
    for (int row = std::min(a, b); row <= std::max(a, b); ++row)
      scene->row_links_[row - low].push_back(static_cast<int>(i));
  }

  scene->cut_y.assign(picture.cards.size(), 0);
  for (const auto& row : scene->row_cards_) {
    std::vector<int> crossing;
    for (int card : row)
      if (scene->crosses(card)) crossing.push_back(card);
    float pitch =
        std::min(16.0F, PictureLayout::kPitch / static_cast<float>(std::max<std::size_t>(1, crossing.size())));
    for (std::size_t k = 0; k < crossing.size(); ++k)
      scene->cut_y[crossing[k]] = layout.boxes[crossing[k]].center_y() +
                                  (static_cast<float>(k) - static_cast<float>(crossing.size() - 1) / 2) * pitch;
  }
  return scene;
}

bool Scene::crosses(int card) const {
  if (picture.cards[card].side != Side::Forward || !picture.joint) return false;
  if (!picture.cards[card].saved.empty()) return true;
  if (picture.cut_known) return false;
  auto links = links_from(card);
  return std::any_of(links.begin(), links.end(),
                     [&](int link) { return picture.cards[picture.links[link].to].side == Side::Backward; });
}

int Scene::row_of(float y) const {
  return static_cast<int>(
             std::floor((y + (PictureLayout::kPitch - PictureLayout::kCardHeight) / 2) / PictureLayout::kPitch)) -
         first_row_;
}

int Scene::card_at(float x, float y) const {
  int row = row_of(y);
  if (row < 0 || row >= std::ssize(row_cards_)) return -1;
  const auto& cards = row_cards_[row];
  auto found = std::upper_bound(cards.begin(), cards.end(), x, [&](float v, int c) { return v < layout.boxes[c].x; });
  if (found == cards.begin()) return -1;
  const Box& box = layout.boxes[*--found];
  return x <= box.right() && y >= box.y && y <= box.bottom() ? *found : -1;
}

Box Scene::bracket_box(const Bracket& bracket) const {
  return {bracket.x, bracket.top, PictureLayout::kBracketLane, bracket.bottom - bracket.top};
}

int Scene::bracket_at(float x, float y) const {
  for (std::size_t i = 0; i < layout.brackets.size(); ++i) {
    Box box = bracket_box(layout.brackets[i]);
    if (x >= box.x && x < box.right() && y >= box.y && y <= box.bottom()) return static_cast<int>(i);
  }
  return -1;
}

void Scene::visible(const Box& area, std::vector<int>& cards, std::vector<int>& links) const {
  cards.clear();
  links.clear();
  int rows = static_cast<int>(row_cards_.size());
  int first = std::clamp(row_of(area.y) - 1, 0, rows), last = std::clamp(row_of(area.bottom()) + 2, 0, rows);
  for (int row = first; row < last; ++row) {
    for (int card : row_cards_[row]) {
      const Box& box = layout.boxes[card];
      if (box.x < area.right() && box.right() > area.x) cards.push_back(card);
    }
    links.insert(links.end(), row_links_[row].begin(), row_links_[row].end());
  }
  std::sort(links.begin(), links.end());
  links.erase(std::unique(links.begin(), links.end()), links.end());
}

}  // namespace partita::views

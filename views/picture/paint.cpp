// Paints the visible part of a scene at the zoom's level of detail: links, ribbons of saved values through the cut,
// cards or blocks, labels of far ends, brackets. The selection and its links come on top.
#include "views/picture/paint.h"

#include <QFontMetricsF>
#include <QPainterPath>
#include <array>
#include <cmath>

#include "views/look/plot.h"
#include "views/look/ramp.h"
#include "views/picture/sizes.h"

namespace partita::views {
namespace {

QRectF rect(const Box& box) {
  return {box.x, box.y, box.w, box.h};
}
QColor with_alpha(QColor colour, int alpha) {
  colour.setAlpha(alpha);
  return colour;
}

QPen cosmetic(const QColor& colour, double width, Qt::PenStyle style = Qt::SolidLine) {
  QPen pen(colour, width, style);
  pen.setCosmetic(true);
  return pen;
}

// Appends a curve between two points that begins and ends vertically, or a straight line when the bend would be too
// small to see.
void curve(QVector<QLineF>& lines, QPointF a, QPointF b, bool bend) {
  if (!bend || std::abs(a.x() - b.x()) < 1) {
    lines.append(QLineF(a, b));
    return;
  }
  double middle = (a.y() + b.y()) / 2;
  QPointF last = a;
  constexpr int kSteps = 10;
  for (int k = 1; k <= kSteps; ++k) {
    double t = static_cast<double>(k) / kSteps, u = 1 - t;
    double x = u * u * u * a.x() + 3 * u * u * t * a.x() + 3 * u * t * t * b.x() + t * t * t * b.x();
    double y = u * u * u * a.y() + 3 * u * u * t * middle + 3 * u * t * t * middle + t * t * t * b.y();
    lines.append(QLineF(last, {x, y}));
    last = {x, y};
  }
}

void append_route(QVector<QLineF>& lines, const Scene& scene, int link, bool bend) {
  const Route& route = scene.layout.routes[link];
  for (std::uint32_t k = 1; k < route.count; ++k) {
    const Point &a = scene.layout.points[route.begin + k - 1], &b = scene.layout.points[route.begin + k];
    curve(lines, {a.x, a.y}, {b.x, b.y}, bend);
  }
}

double ribbon_width(std::int64_t bytes) {
  return std::clamp(1.0 + 0.9 * std::log2(1.0 + static_cast<double>(bytes) / 64), 1.5, 14.0);
}

// Inputs are kept by the caller anyway: they count only where nothing else crosses.
ByteSum crossing_bytes(const Scene& scene, int card) {
  const Picture& picture = scene.picture;
  ByteSum values, inputs;
  for (int index : picture.cards[card].saved) {
    const SavedValue& value = picture.saved[index];
    ByteSum& sum = value.is_input ? inputs : values;
    if (const auto unknown = picture.unknown.of.find(value.name); unknown != picture.unknown.of.end())
      sum.unknown = sum.unknown + unknown->second;
    else
      sum.known += value.bytes;
  }
  return values.known > 0 || !values.unknown.is(0) ? values : inputs;
}

QPainterPath sideways(QPointF a, QPointF b) {
  QPainterPath path(a);
  double middle = (a.x() + b.x()) / 2;
  path.cubicTo({middle, a.y()}, {middle, b.y()}, b);
  return path;
}

// The path of a saved value: from its card into the cut, and out of it to each reader that is near.
QPainterPath trunk(const Scene& scene, int card) {
  const Box& box = scene.layout.boxes[card];
  return sideways({box.right(), box.center_y()}, {scene.layout.cut_left, scene.cut_y[card]});
}
QPainterPath branch(const Scene& scene, int card, int reader) {
  const Box& box = scene.layout.boxes[reader];
  return sideways({scene.layout.cut_right, scene.cut_y[card]}, {box.x, box.center_y()});
}

struct Brush {
  QPainter& painter;
  const Scene& scene;
  const PaintState& state;
  QRectF area;
  double zoom;
  Detail detail = detail_at(zoom);
  const Theme& theme = *state.theme;

  QColor hue(int card) const {
    if (!overlaid()) return theme.family(scene.picture.cards[card].family);
    const QColor& colour = state.overlay->colours[card];
    return colour.isValid() ? colour : theme.line;
  }
  bool overlaid() const { return state.overlay && state.overlay->kind != OverlayKind::None; }

  void halves() {
    painter.fillRect(area, theme.paper);
    const PictureLayout& layout = scene.layout;
    if (!scene.picture.joint) return;
    painter.fillRect(QRectF(area.left(), area.top(), layout.cut_left - area.left(), area.height()), theme.forward);
    painter.fillRect(QRectF(layout.cut_right, area.top(), area.right() - layout.cut_right, area.height()),
                     theme.backward);
    painter.setPen(cosmetic(theme.line, 1));
    painter.drawLine(QPointF(layout.cut_left, area.top()), QPointF(layout.cut_left, area.bottom()));
    painter.drawLine(QPointF(layout.cut_right, area.top()), QPointF(layout.cut_right, area.bottom()));
  }

  void lines(const std::vector<int>& links) {
    QVector<QLineF> lines;
    lines.reserve(static_cast<int>(links.size()) * (detail == Detail::Blocks ? 2 : 12));
    for (int link : links)
      if (scene.layout.routes[link].kind == RouteKind::Line) append_route(lines, scene, link, detail != Detail::Blocks);
    QColor colour = theme.link;
    if (detail == Detail::Blocks) colour.setAlpha(170);
    use(painter, cosmetic(colour, detail == Detail::Full ? 1.3 : 1));
    painter.drawLines(lines);
  }

  void ribbons(const std::vector<int>& links) {
    if (!scene.picture.joint) return;
    for (int link : links) {
      if (scene.layout.routes[link].kind != RouteKind::Crossing) continue;
      const Link& l = scene.picture.links[link];
      if (scene.crosses(l.from)) ribbon(l.from, l.to);
    }
  }
  void use_ribbon(int card) {
    const double width = ribbon_width(crossing_bytes(scene, card).known);
    use(painter, QPen(with_alpha(theme.accent, theme.dark ? 80 : 60), width, Qt::SolidLine, Qt::FlatCap));
  }
  void ribbon(int card, int reader) {
    use_ribbon(card);
    painter.drawPath(branch(scene, card, reader));
  }
  void draw_trunk(int card) {
    painter.drawPath(trunk(scene, card));
    painter.drawLine(QPointF(scene.layout.cut_left, scene.cut_y[card]),
                     QPointF(scene.layout.cut_right, scene.cut_y[card]));
  }
  void trunk_of(int card) {
    use_ribbon(card);
    draw_trunk(card);
  }
  void cut_label(int card) {
    if (detail == Detail::Blocks) return;
    QRectF box(scene.layout.cut_left, scene.cut_y[card] - 8, PictureLayout::kCutWidth, 16);
    QFontMetricsF metrics(state.detail_font);
    const QString label = metrics.elidedText(size_text(crossing_bytes(scene, card)), Qt::ElideRight, box.width() - 14);
    QRectF chip(box.center().x() - metrics.horizontalAdvance(label) / 2 - 5, box.top() + 1,
                metrics.horizontalAdvance(label) + 10, 14);
    bool pinned = !state.pins.empty() && state.pins[card] != Pin::None;
    use(painter, pinned ? cosmetic(theme.accent, 1.5) : cosmetic(theme.line, 1), theme.paper);
    painter.drawRoundedRect(chip, 7, 7);
    painter.setPen(theme.ink);
    painter.setFont(state.detail_font);
    painter.drawText(chip, Qt::AlignCenter, label);
  }

  void block(int index) {
    const Card& card = scene.picture.cards[index];
    QRectF box = rect(scene.layout.boxes[index]);
    double least = 1.5 / zoom;
    if (box.height() < least) box.setHeight(least);
    if (card.again) {
      use(painter, cosmetic(hue(index), 1), theme.paper);
      painter.drawRect(box);
    } else {
      painter.fillRect(box, hue(index));
    }
  }

  void card(int index) {
    const Card& card = scene.picture.cards[index];
    QRectF box = rect(scene.layout.boxes[index]);
    QColor colour = hue(index);
    Change change = state.changes.empty() ? Change::None : state.changes[index];
    bool input = card.family == Family::Input;
    double radius = input ? box.height() / 2 : 5;

    QPen border = cosmetic(theme.dark ? theme.line.lighter(125) : theme.line.darker(108), 1);
    if (card.again) border = cosmetic(colour, 1.3, Qt::DashLine);
    if (change == Change::Added) border = cosmetic(theme.added, 2);
    if (change == Change::Changed) border = cosmetic(theme.changed, 2);
    if (change == Change::Removed) border = cosmetic(theme.removed, 2);
    use(painter, border, card.again ? theme.paper : overlaid() ? colour : theme.raised);
    painter.drawRoundedRect(box, radius, radius);
    if (card.node == nullptr) {  // a folded frame: a second edge behind it shows that there is more inside
      painter.setBrush(Qt::NoBrush);
      painter.drawLine(QPointF(box.left() + 5, box.bottom() + 2.5), QPointF(box.right() - 5, box.bottom() + 2.5));
    }
    if (!overlaid() && !input && !card.again) {
      QPainterPath clip;
      clip.addRoundedRect(box, radius, radius);
      QPainterPath bar;
      bar.addRect(QRectF(box.left(), box.top(), card.minor ? 3 : 4, box.height()));
      painter.fillPath(clip.intersected(bar), colour);
    }
    texts(index, card, box);
    marks(index, card, box);
  }

  void texts(int index, const Card& card, const QRectF& box) {
    QColor ink = theme.ink, dim = theme.dim;
    if (overlaid() && state.overlay->colours[index].isValid() && !card.again) {
      QColor fill = state.overlay->colours[index];
      ink = ink_on(fill);
      dim = ink;
    }
    QRectF inner = box.adjusted(10, 0, -8, 0);
    painter.setFont(state.title_font);
    bool one_line = card.minor || card.detail.empty() || detail == Detail::Titles;
    if (card.minor) {
      painter.setFont(state.detail_font);
      painter.setPen(card.family == Family::Input ? ink : dim);
      painter.drawText(inner, Qt::AlignVCenter | Qt::AlignLeft, text(card.title));
      if (!card.detail.empty() && detail == Detail::Full) {
        painter.setPen(dim);
        painter.drawText(inner, Qt::AlignVCenter | Qt::AlignRight, text(card.detail));
      }
      return;
    }
    painter.setPen(ink);
    if (one_line) {
      painter.drawText(inner, Qt::AlignVCenter | Qt::AlignLeft, text(card.title));
      return;
    }
    painter.drawText(inner.adjusted(0, 3, 0, 0), Qt::AlignTop | Qt::AlignLeft, text(card.title));
    painter.setFont(state.detail_font);
    painter.setPen(dim);
    painter.drawText(inner.adjusted(0, 0, 0, -3), Qt::AlignBottom | Qt::AlignLeft, text(card.detail));
  }

  void marks(int index, const Card& card, const QRectF& box) {
    QPointF corner(box.right(), box.top());
    auto badge = [&](const QColor& colour, const QString& letter) {
      QRectF circle(corner.x() - 8, corner.y() - 7, 15, 15);
      use(painter, Qt::NoPen, colour);
      painter.drawEllipse(circle);
      painter.setPen(theme.paper);
      painter.setFont(state.detail_font);
      painter.drawText(circle, Qt::AlignCenter, letter);
      corner.rx() -= 17;
    };
    if (!state.pins.empty() && state.pins[index] == Pin::Save) badge(theme.accent, "S");
    if (!state.pins.empty() && state.pins[index] == Pin::Recompute) badge(theme.output_link, "R");
    if (!state.noted.empty() && state.noted[index]) badge(theme.dim, "*");
    if (card.again) badge(theme.dim, QString::fromUtf8("↻"));
    if (char mark = overlaid() ? state.overlay->marks[index] : 0)
      badge(mark == 'N' ? nan_colour(theme) : mark == '!' ? theme.bad : theme.dim, QString(QChar(mark)));
    if (card.returned) {  // an arrow out of the graph
      double y = card.side == Side::Forward ? box.bottom() : box.top();
      double d = card.side == Side::Forward ? 6 : -6;
      double x = box.right() - 12;
      use(painter, Qt::NoPen, theme.dim);
      painter.drawPolygon(QPolygonF({{x - 4, y + d * 0.2}, {x + 4, y + d * 0.2}, {x, y + d}}));
    }
    if (!state.found.empty() && state.found[index]) {
      use(painter, cosmetic(theme.warn, 2));
      painter.drawRoundedRect(box.adjusted(-3, -3, 3, 3), 7, 7);
    }
  }

  void stubs(int index) {
    if (detail != Detail::Full) return;
    painter.setFont(state.detail_font);
    for (const StubLabel& label : stub_labels(scene, index, state.detail_font)) {
      painter.setPen(theme.far_link);
      painter.drawText(label.box, Qt::AlignVCenter | Qt::AlignLeft, label.text);
    }
  }

  void ghosts() {
    const QPen pen = cosmetic(with_alpha(theme.removed, 150), 1.3, Qt::DotLine);
    painter.setFont(state.detail_font);
    for (const Ghost& ghost : state.ghosts) {
      QRectF box = rect(ghost.box);
      if (!box.intersects(area)) continue;
      use(painter, pen);
      painter.drawRoundedRect(box, 5, 5);
      if (detail == Detail::Blocks) continue;
      painter.setPen(with_alpha(theme.removed, 190));
      painter.drawText(box, Qt::AlignCenter, ghost.title);
    }
  }

  void brackets() {
    double pixel = 1 / zoom;
    painter.setFont(state.detail_font);
    QFontMetricsF metrics(state.detail_font);
    for (const Bracket& bracket : scene.layout.brackets) {
      Box box = scene.bracket_box(bracket);
      if (box.y > area.bottom() || box.bottom() < area.top() || box.h * zoom < 3) continue;
      const Frame& frame = scene.picture.frames[bracket.frame];
      bool forward = frame.side == Side::Forward;
      double x = forward ? box.right() - 3 : box.x + 3;
      double tick = forward ? 4 : -4;
      painter.setPen(cosmetic(theme.dark ? theme.line.lighter(150) : theme.line.darker(125), 1));
      QVector<QLineF> lines{{x, box.y + pixel, x, box.bottom() - pixel},
                            {x, box.y + pixel, x + tick, box.y + pixel},
                            {x, box.bottom() - pixel, x + tick, box.bottom() - pixel}};
      painter.drawLines(lines);
      if (detail == Detail::Blocks) continue;
      // The label runs along the bracket, within the part that is on the screen.
      double top = std::max<double>(box.y, area.top()), bottom = std::min<double>(box.bottom(), area.bottom());
      double room = bottom - top - 8;
      if (room < 24) continue;
      QString label = metrics.elidedText(text(frame.label), Qt::ElideRight, room);
      painter.save();
      painter.translate(forward ? x - 2 : x + 2, (top + bottom) / 2);
      painter.rotate(forward ? -90 : 90);
      painter.setPen(theme.dim);
      painter.drawText(QRectF(-room / 2, -14, room, 13), Qt::AlignCenter, label);
      painter.restore();
    }
  }
};

// The cards at the other ends of links that are far.
std::vector<int> far_ends(const Scene& scene, std::span<const int> links, bool outgoing) {
  std::vector<int> ends;
  for (int link : links) {
    if (scene.layout.routes[link].kind != RouteKind::Stub) continue;
    const Link& l = scene.picture.links[link];
    ends.push_back(outgoing ? l.to : l.from);
  }
  return ends;
}

}  // namespace

QFont card_title_font() {
  QFont font = interface_font();
  font.setPixelSize(13);
  font.setWeight(QFont::Medium);
  return font;
}

QFont card_detail_font() {
  QFont font = interface_font();
  font.setPixelSize(11);
  return font;
}

TextWidth measured_text_width(const QFont& title_font, const QFont& detail_font) {
  std::array<std::array<float, 128>, 2> widths{};
  const QFont* fonts[] = {&detail_font, &title_font};
  for (int f = 0; f < 2; ++f) {
    QFontMetricsF metrics(*fonts[f]);
    for (int c = 32; c < 128; ++c) widths[f][c] = static_cast<float>(metrics.horizontalAdvance(QChar(c)));
  }
  return [widths](std::string_view text, bool title) {
    float sum = 0;
    for (unsigned char c : text) sum += c < 128 ? widths[title][c] : widths[title]['m'] / 2;
    return sum;
  };
}

Detail detail_at(double zoom) {
  if (zoom < 0.4) return Detail::Blocks;
  return zoom < 0.62 ? Detail::Titles : Detail::Full;
}

std::vector<StubLabel> stub_labels(const Scene& scene, int card, const QFont& font) {
  std::vector<StubLabel> labels;
  QFontMetricsF metrics(font);
  const Box& box = scene.layout.boxes[card];
  bool forward = scene.picture.cards[card].side == Side::Forward;
  for (bool outgoing : {false, true}) {
    const auto ends = far_ends(scene, outgoing ? scene.links_from(card) : scene.links_to(card), outgoing);
    if (ends.empty()) continue;
    const Card& other = scene.picture.cards[ends.front()];
    QString name = text(other.node ? other.node->name() : other.title);
    QString label = (outgoing ? QString::fromUtf8("→ ") : QString::fromUtf8("← ")) + name;
    int more = static_cast<int>(ends.size()) - 1;
    if (more > 0) label += QString(" +%1").arg(more);
    double width = metrics.horizontalAdvance(label) + 2;
    // Links leave a card in the direction of flow: below it in the forward, above it in the backward.
    bool below = outgoing == forward;
    double y = below ? box.bottom() + 1 : box.y - 12;
    labels.push_back({QRectF(box.x + 4, y, width, 12), ends.front(), more, label});
  }
  return labels;
}

void paint_base(QPainter& painter, const Scene& scene, const PaintState& state, const QRectF& area, double zoom) {
  painter.setRenderHint(QPainter::Antialiasing, true);
  painter.setRenderHint(QPainter::TextAntialiasing, true);
  Brush brush{painter, scene, state, area, zoom};
  std::vector<int> cards, links;
  Box box{static_cast<float>(area.left()), static_cast<float>(area.top()), static_cast<float>(area.width()),
          static_cast<float>(area.height())};
  scene.visible(box, cards, links);
  brush.halves();
  brush.lines(links);
  brush.ribbons(links);
  // Links into the cut may begin at cards left of the area.
  std::vector<int> row_cards, ignored;
  if (scene.picture.joint) {
    scene.visible({scene.layout.forward_left, box.y, scene.layout.cut_right - scene.layout.forward_left, box.h},
                  row_cards, ignored);
    for (int card : row_cards)
      if (scene.crosses(card)) brush.trunk_of(card);
  }
  if (brush.detail == Detail::Blocks) {
    painter.setRenderHint(QPainter::Antialiasing, false);
    for (int card : cards) brush.block(card);
    painter.setRenderHint(QPainter::Antialiasing, true);
  } else {
    for (int card : cards) brush.card(card);
    for (int card : cards) brush.stubs(card);
  }
  for (int card : row_cards)
    if (scene.crosses(card)) brush.cut_label(card);
  brush.ghosts();
  brush.brackets();
}

void paint_selection(QPainter& painter, const Scene& scene, const PaintState& state, const QRectF& area, double zoom) {
  painter.setRenderHint(QPainter::Antialiasing, true);
  Brush brush{painter, scene, state, area, zoom};
  const Theme& theme = *state.theme;
  auto outline = [&](int card, const QColor& colour, double width) {
    use(painter, cosmetic(colour, width));
    double pad = 1.5 / zoom;
    QRectF box = rect(scene.layout.boxes[card]).adjusted(-pad, -pad, pad, pad);
    painter.drawRoundedRect(box, 6, 6);
  };
  if (state.hovered >= 0 && state.hovered != state.selected) outline(state.hovered, theme.dim, 1);
  if (state.selected < 0) return;
  for (bool outgoing : {false, true}) {
    QColor colour = outgoing ? theme.output_link : theme.input_link;
    QVector<QLineF> lines;
    std::vector<int> others;
    for (int link : outgoing ? scene.links_from(state.selected) : scene.links_to(state.selected)) {
      const Link& l = scene.picture.links[link];
      RouteKind kind = scene.layout.routes[link].kind;
      others.push_back(outgoing ? l.to : l.from);
      if (kind == RouteKind::Line) append_route(lines, scene, link, brush.detail != Detail::Blocks);
      if (kind == RouteKind::Crossing) {
        use(painter, cosmetic(colour, 2));
        brush.draw_trunk(l.from);
        painter.drawPath(branch(scene, l.from, l.to));
      }
    }
    painter.setPen(cosmetic(colour, 2));
    painter.drawLines(lines);
    for (int other : others) {
      if (brush.detail != Detail::Blocks) brush.card(other);
      outline(other, colour, 1.5);
    }
  }
  // The two cards of a recomputed value.
  const Card& chosen = scene.picture.cards[state.selected];
  if (chosen.node) {
    int other = chosen.again ? scene.picture.card_of[chosen.node->id()]
                             : scene.picture.card_by_key("again:" + chosen.node->name());
    if (other >= 0) {
      int first = chosen.again ? other : state.selected, second = chosen.again ? state.selected : other;
      const Box &a = scene.layout.boxes[first], &b = scene.layout.boxes[second];
      use(painter, cosmetic(theme.dim, 1.5, Qt::DotLine));
      painter.drawPath(sideways({a.right(), a.center_y()}, {b.x, b.center_y()}));
      outline(other, theme.dim, 1.5);
    }
  }
  if (brush.detail != Detail::Blocks) brush.card(state.selected);
  if (scene.crosses(state.selected)) brush.cut_label(state.selected);
  outline(state.selected, theme.accent, 2.5);
}

void paint_scene(QPainter& painter, const Scene& scene, const PaintState& state, const QRectF& area, double zoom) {
  paint_base(painter, scene, state, area, zoom);
  paint_selection(painter, scene, state, area, zoom);
}

}  // namespace partita::views

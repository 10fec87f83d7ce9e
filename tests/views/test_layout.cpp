#include <QTest>
#include <algorithm>
#include <map>

#include "tests/views/graphs.h"
#include "views/picture/frames.h"
#include "views/picture/scene.h"

using namespace partita;
using namespace partita::views;
using partita::tests::joint_graph;

namespace {

int overlaps(const views::PictureLayout& layout) {
  std::vector<Box> boxes = layout.boxes;
  std::sort(boxes.begin(), boxes.end(), [](const Box& a, const Box& b) { return a.y != b.y ? a.y < b.y : a.x < b.x; });
  int count = 0;
  for (std::size_t i = 0; i < boxes.size(); ++i)
    for (std::size_t k = i + 1; k < boxes.size() && boxes[k].y < boxes[i].bottom(); ++k)
      count += boxes[k].x < boxes[i].right() && boxes[i].x < boxes[k].right();
  return count;
}

// The overview in which the forward has at most this many cards.
std::unordered_set<std::string> overview_of(const std::shared_ptr<Graph>& graph, int most) {
  return overview_folds(make_picture(graph), [&](const std::unordered_set<std::string>& folded) {
    PictureOptions options;
    options.folded = folded;
    const Picture picture = make_picture(graph, options);
    return std::ranges::count(picture.cards, Side::Forward, &Card::side) <= most;
  });
}

}  // namespace

class TestLayout : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void cards_do_not_overlap() {
    for (int layers : {1, 3, 40}) QCOMPARE(overlaps(lay_out(make_picture(joint_graph(layers)))), 0);
  }

  /// Around the stack stands a bracket, and one for each block of it, which is nearer.
  void brackets_stand_beside_their_cards() {
    const Picture picture = make_picture(joint_graph(6));
    const views::PictureLayout layout = lay_out(picture);
    QVERIFY2(layout.brackets.size() >= 2, qPrintable(QString::number(layout.brackets.size())));
    for (const Bracket& bracket : layout.brackets) {
      const bool forward = picture.frames[bracket.frame].side == Side::Forward;
      const float right = bracket.x + views::PictureLayout::kBracketLane;
      float nearest = 1e6F;
      for (std::size_t i = 0; i < layout.boxes.size(); ++i) {
        const Box& box = layout.boxes[i];
        if (picture.cards[i].side != picture.frames[bracket.frame].side || box.bottom() <= bracket.top ||
            box.y >= bracket.bottom)
          continue;
        QVERIFY(forward ? right <= box.x : bracket.x >= box.right());
        nearest = std::min(nearest, forward ? box.x - right : bracket.x - box.right());
      }
      QVERIFY2(nearest < 90, qPrintable(QString::number(nearest)));  // other brackets and lines come between
      for (const Bracket& other : layout.brackets)
        if (&other != &bracket && other.top < bracket.bottom && bracket.top < other.bottom)
          QVERIFY(other.x >= right || other.x + views::PictureLayout::kBracketLane <= bracket.x);
    }
  }

  void forward_runs_down_and_backward_up() {
    Picture picture = make_picture(joint_graph(20));
    views::PictureLayout layout = lay_out(picture);
    for (const Link& link : picture.links) {
      if (picture.cards[link.from].side != picture.cards[link.to].side) continue;
      int rows = layout.rows[link.to] - layout.rows[link.from];
      if (picture.cards[link.from].side == Side::Forward) QVERIFY(rows > 0);
      if (picture.cards[link.from].side == Side::Backward) QVERIFY(rows < 0);
    }
  }

  void backward_lies_beside_its_forward() {
    auto graph = joint_graph(60);
    Picture picture = make_picture(graph);
    views::PictureLayout layout = lay_out(picture);
    QVERIFY(picture.joint);
    int far = 0, crossing = 0;
    for (std::size_t i = 0; i < picture.links.size(); ++i) {
      const Link& link = picture.links[i];
      if (picture.cards[link.from].side == picture.cards[link.to].side) continue;
      ++crossing;
      far += std::abs(layout.rows[link.to] - layout.rows[link.from]) > 6;
    }
    QCOMPARE(crossing, 60 * 3);  // the linear's result, its transposed weight, its input
    QCOMPARE(far, 0);
    for (std::size_t i = 0; i < picture.cards.size(); ++i)
      QCOMPARE(layout.boxes[i].right() <= layout.cut_left, picture.cards[i].side == Side::Forward);
  }

  void chains_are_straight() {
    auto graph = std::make_shared<Graph>("chain");
    Node* x = graph->placeholder("x", tests::f32(2, 2));
    for (int i = 0; i < 30; ++i) {
      x = graph->create(Op::torch("aten.relu.default"), {x});
      x->meta = tests::f32(2, 2);
    }
    graph->set_output(x);
    Picture picture = make_picture(graph);
    views::PictureLayout layout = lay_out(picture);
    for (std::size_t i = 2; i < layout.boxes.size(); ++i)
      QCOMPARE(layout.boxes[i].center_x(), layout.boxes[1].center_x());
  }

  void unchanged_cards_stay() {
    auto graph = joint_graph(12);
    Picture before = make_picture(graph);
    views::PictureLayout before_layout = lay_out(before);
    auto changed = graph->clone();
    Node* gelu = changed->find("gelu_5");
    Node* relu = changed->create(Op::torch("aten.relu.default"), {gelu}, {}, "relu", gelu->next());
    relu->meta = gelu->meta;
    for (Node* user : std::vector<Node*>(gelu->users()))
      if (user != relu) user->replace_input(gelu, relu);
    std::shared_ptr<const Graph> after_graph = std::move(changed);
    Picture after = make_picture(after_graph);
    views::PictureLayout layout = lay_out(after, before, before_layout);
    int moved = 0;
    for (std::size_t i = 0; i < after.cards.size(); ++i) {
      int old = before.card_by_key(after.cards[i].key);
      if (old < 0) continue;
      moved += layout.boxes[i].x != before_layout.boxes[old].x || layout.boxes[i].y != before_layout.boxes[old].y;
    }
    QCOMPARE(moved, 0);
    QCOMPARE(after.cards.size(), before.cards.size() + 1);
    QCOMPARE(overlaps(layout), 0);
  }

  void folding_makes_one_card() {
    auto graph = joint_graph(6);
    Picture open = make_picture(graph);
    auto frame =
        std::find_if(open.frames.begin(), open.frames.end(), [](const Frame& f) { return f.label == "blocks.2"; });
    if (frame == open.frames.end())
      frame = std::find_if(open.frames.begin(), open.frames.end(),
                           [](const Frame& f) { return f.key.starts_with("blocks.2"); });
    QVERIFY(frame != open.frames.end());
    PictureOptions options;
    options.folded = {frame->key};
    Picture folded = make_picture(graph, options);
    QCOMPARE(folded.cards.size(), open.cards.size() - 5);  // four cards and two parameters became one
    int card = folded.card_by_key("frame:" + frame->key);
    QVERIFY(card >= 0);
    QCOMPARE(folded.cards[card].nodes, 4);
    QCOMPARE(overlaps(lay_out(folded)), 0);
  }

  void large_graphs_have_an_overview() {
    auto graph = joint_graph(100);
    PictureOptions options;
    const std::unordered_set<std::string> folds = overview_of(graph, 20);
    options.folded = folds;
    Picture picture = make_picture(graph, options);
    int forward = 0;
    for (const Card& card : picture.cards) forward += card.side == Side::Forward && card.family != Family::Input;
    QCOMPARE(forward, 1);  // the stack; its inputs are inside, but for the first
    int stack = picture.card_by_key("frame:blocks#0");
    QVERIFY(stack >= 0);
    QVERIFY2(picture.cards[stack].detail.starts_with("400 nodes, "), picture.cards[stack].detail.c_str());
    QVERIFY(!folds.contains("blocks/blocks.7#0"));  // opening the stack shows its blocks, of four nodes each
    QCOMPARE(picture.nodes_on[0], 400 + 201);
    QCOMPARE(overlaps(lay_out(picture)), 0);
  }

  void layers_of_a_stack_open_together() {
    auto graph = joint_graph(12);
    PictureOptions options;
    options.folded = overview_of(graph, 14);
    const Picture picture = make_picture(graph, options);
    for (int i = 0; i < 12; ++i) QVERIFY(picture.card_by_key("frame:blocks/blocks." + std::to_string(i) + "#0") >= 0);
    // A layer that holds nothing but an mlp is the mlp.
    QVERIFY(std::ranges::none_of(picture.frames, [](const Frame& frame) { return frame.label == "mlp"; }));
  }

  void an_overview_has_no_cards_for_inputs_of_one_card() {
    auto graph = std::make_shared<Graph>("plain");
    graph->shapes = std::make_shared<ShapeEnv>();
    Node *x = graph->placeholder("x", tests::f32(8, 8)), *scale = graph->placeholder("scale", tests::f32(8, 8)),
         *unread = graph->placeholder("unread", tests::f32(8, 8)), *last = x;
    const auto in_module = [](Node* node, const char* modules) {
      auto origin = std::make_shared<Origin>();
      origin->modules = modules;
      node->origin = origin;
      return node;
    };
    for (const char* modules : {"first", "first", "first", "first", "second", "second"})
      last = in_module(graph->create(Op::torch("aten.relu.default"), {last}), modules);
    Node* scaled = in_module(graph->create(Op::torch("aten.mul.Tensor"), {last, scale}, {}, "scaled"), "third");
    graph->set_output(Arg::list({Arg(scaled)}));
    const auto folded = [&](std::unordered_set<std::string> keys) {
      PictureOptions options;
      options.folded = std::move(keys);
      return make_picture(graph, options);
    };
    for (const auto& keys : {std::unordered_set<std::string>{}, {"second#0"}}) {  // most is open
      const Picture open = folded(keys);
      for (const char* name : {"x", "scale", "unread"}) QVERIFY2(open.card_by_key(name) >= 0, name);
    }
    const Picture overview = folded({"first#0"});
    QCOMPARE(overview.card_of[unread->id()], -1);
    for (const auto& [input, reader] : {std::pair(x, "frame:first#0"), {scale, "scaled"}}) {
      QCOMPARE(overview.card_by_key(input->name()), -1);
      QCOMPARE(overview.card_of[input->id()], overview.card_by_key(reader));
    }
  }

  void recomputed_values_are_where_they_are_first_read() {
    auto graph = joint_graph(4);
    // Two modules of the backward read what is computed again.
    Node* reader = graph->create(Op::torch("aten.mul.Tensor"), {graph->find("mm"), graph->find("addmm")}, {}, "reader",
                                 graph->output());
    reader->meta = tests::f32(8, 64);
    bool second = false;
    for (Node* node : *graph) {
      if (!node->op()->is_call() || node->origin) continue;
      auto origin = std::make_shared<Origin>();
      second = second || node == reader->previous();
      origin->modules = second ? "second" : "first";
      node->origin = origin;
    }
    CutSummary cut;
    cut.recomputed = {"gelu", "addmm"};
    PictureOptions options;
    options.cut = &cut;
    const Picture open = make_picture(graph, options);
    QCOMPARE(open.card_by_key("again:gelu"), -1);  // the backward does not read it
    QVERIFY(open.card_by_key("again:addmm") >= 0);
    for (const Frame& frame : open.frames)
      if (frame.side == Side::Backward) options.folded.insert(frame.key);
    QCOMPARE(options.folded.size(), std::size_t{2});
    const Picture picture = make_picture(graph, options);
    QCOMPARE(picture.card_by_key("again:addmm"), -1);
    QCOMPARE(picture.recomputed, 2);
    const Link between{picture.card_by_key("frame:first|b#0"), picture.card_by_key("frame:second|b#0")};
    QVERIFY(std::ranges::count(picture.links, between) == 1);
    // A tangent has a card, but not in an overview where one card reads it.
    QVERIFY(picture.card_by_key("tangents_1") >= 0);
    for (const Frame& frame : open.frames) options.folded.insert(frame.key);
    QCOMPARE(make_picture(graph, options).card_by_key("tangents_1"), -1);
  }

  void a_backward_that_hands_an_input_on_has_no_cut() {
    auto graph = std::make_shared<Graph>();
    Node* saved = graph->placeholder("relu");
    Node* mesh = graph->placeholder("primals_2");
    Node* tangent = graph->placeholder("tangents_1");
    Node* grad = graph->create(Op::torch("aten.mul.Tensor"), {tangent, saved}, {});
    graph->set_output(Arg::list({grad, mesh}));
    QVERIFY(!make_picture(graph).joint);
  }

  void two_layers_are_blocks() {
    auto graph = joint_graph(6);
    std::size_t next = 0;
    for (Node* node : *graph) {
      if (!node->op()->is_call()) continue;
      auto origin = std::make_shared<Origin>();
      origin->file = "two.py";
      // 24 nodes of the forward: two lines, twice a layer of ten, two lines.
      origin->line = node->origin
                         ? (next < 2 || next > 21 ? 100 + static_cast<int>(next) : 1 + static_cast<int>(next - 2) % 10)
                         : 200;
      next += node->origin != nullptr;
      node->origin = origin;
    }
    const Picture picture = make_picture(graph);
    std::vector<int> nodes;
    for (const Frame& frame : picture.frames)
      if (frame.label.starts_with("block ") && frame.side == Side::Forward) nodes.push_back(frame.nodes);
    QCOMPARE(nodes, (std::vector<int>{10, 10}));
  }

  void repeated_lines_are_blocks() {
    auto graph = joint_graph(30);
    int line = 0;
    for (Node* node : *graph) {  // three lines a layer, and no module paths, as in FX text
      if (!node->origin) continue;
      auto origin = std::make_shared<Origin>(*node->origin);
      origin->modules.clear();
      origin->line =
          node->op()->name == "aten.t.default" || node->op()->name == "aten.addmm.default" ? 1 : 2 + line++ % 2;
      node->origin = origin;
    }
    Picture picture = make_picture(graph);
    auto labelled = [&](const std::string& label) {
      return std::ranges::count_if(picture.frames, [&](const Frame& f) { return f.label == label; });
    };
    QCOMPARE(labelled("30 blocks"), 1);
    QCOMPARE(labelled("block 1"), 1);
    QCOMPARE(labelled("block 30"), 1);
  }

  void what_repeats_after_the_layers_is_a_stack_of_its_own() {
    auto graph = joint_graph(36);
    int next = 0;
    for (Node* node : *graph) {
      if (!node->origin) continue;
      auto origin = std::make_shared<Origin>(*node->origin);
      origin->modules.clear();
      origin->line = next % 4 + (next < 24 * 4 ? 1 : 11);  // 24 layers, and 12 times four other lines
      ++next;
      node->origin = origin;
    }
    std::map<std::string, int> nodes;
    for (const Frame& frame : make_picture(graph).frames) nodes[frame.label] += frame.nodes;
    QCOMPARE(nodes["24 blocks"], 24 * 4);
    QCOMPARE(nodes["12 repeats"], 12 * 4);
    QCOMPARE(nodes["repeat 12"], 4);
  }

  void recomputed_values_stand_in_the_backward() {
    auto graph = joint_graph(4);
    PartitionOptions pins;
    pins.recompute = {"gelu_1"};
    auto partition = partita::partition(*graph, pins);
    QVERIFY2(bool(partition), partition ? "" : partition.error().line().c_str());
    CutSummary cut = CutSummary::of(*partition);
    PictureOptions options;
    options.cut = &cut;
    Picture picture = make_picture(graph, options);
    QCOMPARE(picture.saved.size(), cut.saved.size());
    int again = 0;
    for (const Card& card : picture.cards) again += card.again;
    QCOMPARE(again, static_cast<int>(cut.recomputed.size()));
    for (const Link& link : picture.links)  // edges across the cut are saved values
      if (picture.cards[link.from].side != picture.cards[link.to].side)
        QVERIFY(!picture.cards[link.from].saved.empty());
  }

  void cards_are_found_where_they_are_drawn() {
    auto scene = make_scene(joint_graph(30), {});
    for (std::size_t i = 0; i < scene->picture.cards.size(); ++i) {
      const Box& box = scene->layout.boxes[i];
      QCOMPARE(scene->card_at(box.center_x(), box.center_y()), static_cast<int>(i));
    }
    QCOMPARE(scene->card_at(-1e5F, 0), -1);
  }
};

QTEST_MAIN(TestLayout)
#include "test_layout.moc"

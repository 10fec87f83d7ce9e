// Makes a picture: frames, which card stands for each node, cards of the forward, of recomputed values and of the
// backward, links, saved values. Nodes in folded frames have no cards, nor inputs that only those read.
#include "views/picture/picture.h"

#include <algorithm>
#include <limits>
#include <ranges>

#include <fmt/format.h>

#include "core/partition/joint_parts.h"
#include "core/partition/partition.h"
#include "views/picture/frames.h"

namespace partita::views {
namespace {

constexpr float kPadding = 10;  // left and right of a card's text

bool is_input(const Node& node) {
  return !node.op()->is_call() && !node.is_output();
}

// A getitem that only picks one of its producer's results, as opposed to indexing a tensor in a dynamo graph.
bool picks_result(const Node& node) {
  if (node.op() != Op::getitem() || node.args().empty()) return false;
  const Node* producer = node.args()[0].node();
  return producer && !producer->meta.tensor() && !producer->is_placeholder();
}

// By node, whether it belongs to the backward: no output of the forward needs it. Empty when nothing depends on a
// tangent.
std::vector<bool> backward_nodes(const Graph& graph, const CutSummary* cut) {
  std::vector<bool> depends(graph.id_limit());
  bool any = false;
  for (const Node* node : graph) {
    bool d = is_tangent(*node);
    for (const Node* in : node->inputs()) d = d || depends[in->id()];
    depends[node->id()] = d;
    any = any || d;
  }
  if (!any) return {};
  std::vector<bool> backward(graph.id_limit());
  if (cut && !cut->backward.empty()) {
    for (const Node* node : graph) backward[node->id()] = is_tangent(*node) || cut->backward.contains(node->name());
    return backward;
  }
  // A backward graph has tangents too, but computes no output that a forward would have. An input that it hands on,
  // such as a device mesh, is none.
  std::vector<Arg> outputs = graph.outputs();
  const bool handed_on_too = is_joint(graph);
  if (std::none_of(outputs.begin(), outputs.end(), [&](const Arg& out) {
        return out.node() && !depends[out.node()->id()] && (handed_on_too || out.node()->op()->is_call());
      }))
    return {};
  std::vector<bool> forward(graph.id_limit());
  for (const Arg& out : outputs)
    if (const Node* node = out.node(); node && !depends[node->id()]) forward[node->id()] = true;
  for (const Node* node = graph.last(); node; node = node->previous()) {
    if (node->is_output()) continue;
    if (node->is_placeholder() && !depends[node->id()]) forward[node->id()] = true;
    if (forward[node->id()])
      for (const Node* in : node->inputs()) forward[in->id()] = true;
    backward[node->id()] = !forward[node->id()];
  }
  return backward;
}

void measure(Card& card, const TextWidth& width) {
  float title = width(card.title, true);
  float detail = card.detail.empty() ? 0 : width(card.detail, false);
  card.width = 2 * kPadding + (card.minor ? title + (detail > 0 ? detail + 6 : 0) : std::max(title, detail));
  card.width = std::max(card.width, card.minor ? 28.0F : 56.0F);
}

// Names of parameters in dynamo graphs have up to a hundred characters; they differ at their end.
std::string shortened(const std::string& name) {
  constexpr std::size_t kLongest = 28;
  if (name.size() <= kLongest) return name;
  return "…" + name.substr(name.size() - (kLongest - 2));
}

// Empty: an expression too long for a card.
std::string card_size(const ByteSum& bytes) {
  if (!bytes.unknown.is(0)) {
    constexpr std::size_t kLongest = 16;
    const std::string expression = (bytes.unknown + SymExpr(bytes.known)).str();
    return expression.size() <= kLongest ? expression + " B" : std::string();
  }
  static constexpr const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes.known);
  int unit = 0;
  while (value >= 1023.5 && unit < 4) value /= 1024, ++unit;
  return fmt::format("{:.{}f} {}", value, unit == 0 || value >= 9.95 ? 0 : 1, units[unit]);
}

Card card_of_node(const Node& node, const TextWidth& width) {
  Card card;
  card.node = &node;
  card.key = node.name();
  card.family = family_of(node.op());
  card.minor = is_input(node) || card.family == Family::View;
  card.title =
      shortened(is_input(node) ? (node.target.empty() ? node.name() : node.target) : std::string(node.op()->brief()));
  if (!card.minor || is_input(node)) card.detail = shape_text(node.meta);
  card.bytes.add(node.meta, node.graph().shapes.get());
  measure(card, width);
  return card;
}

// What happens to the memory of an input, and which results are views of one.
std::string memory_text(const MemoryUses& memories, const Node& node) {
  if (is_input(node)) {
    const auto found = memories.find(&node);
    return found == memories.end() || found->second.writers.empty() ? "" : "written";
  }
  const bool returned = std::ranges::any_of(node.users(), [](const Node* user) { return user->is_output(); });
  const Node* owner = returned ? memory_owner(&node) : &node;
  return owner != &node && is_input(*owner)
             ? "view of " + shortened(owner->target.empty() ? owner->name() : owner->target)
             : std::string();
}

/// Makes a picture step by step.
class PictureMaker {
 public:
  PictureMaker(std::shared_ptr<const Graph> graph, const PictureOptions& options)
      : graph_(*graph),
        options_(options),
        backward_(backward_nodes(*graph, options.cut)),
        reader_home_(graph->id_limit(), -1),
        again_home_(graph->id_limit(), -1),
        again_of_(graph->id_limit(), -1),
        only_reader_(graph->id_limit()),
        not_drawn_(graph->id_limit()) {
    picture_.card_of.assign(graph->id_limit(), -1);
    picture_.joint = !backward_.empty();
    picture_.cut_known = options.cut != nullptr && picture_.joint;
    picture_.graph = std::move(graph);
    if (picture_.cut_known) again_.insert(options.cut->recomputed.begin(), options.cut->recomputed.end());
  }

  Picture make() {
    add_frames();
    find_homes();
    add_side(Side::Forward);
    if (!again_.empty()) add_recomputed();
    if (picture_.joint) add_side(Side::Backward);
    share_cards();
    add_links();
    add_saved();
    return std::move(picture_);
  }

 private:
  Side side_of(const Node& node) const {
    return picture_.joint && backward_[node.id()] ? Side::Backward : Side::Forward;
  }
  bool is_again(const Node& node) const {
    return again_.contains(node.name()) && side_of(node) == Side::Forward && !is_input(node);
  }
  /// The outermost folded frame around a node, which stands for it.
  int folded_frame(const Node& node) const {
    int outermost = -1;
    for (int frame = picture_.frame_of[node.id()]; frame >= 0; frame = picture_.frames[frame].parent)
      if (picture_.frames[frame].folded) outermost = frame;
    return outermost;
  }

  void add_frames() {
    if (options_.like) {
      picture_.frames = options_.like->frames;
      picture_.memories = options_.like->memories;
      picture_.frame_of = options_.like->frame_of;
      for (Frame& frame : picture_.frames) frame.folded = options_.folded.contains(frame.key);
    } else {
      picture_.memories = std::make_shared<MemoryUses>(memory_uses(graph_));
      const auto side = [this](const Node& node) { return side_of(node); };
      picture_.frames = make_frames(graph_, side, options_.folded, picture_.frame_of);
    }
  }

  /// Is most of the forward folded?
  bool is_overview() const {
    int calls = 0, folded = 0;
    for (const Node* node : graph_)
      if (node->op()->is_call() && side_of(*node) == Side::Forward) {
        ++calls;
        folded += folded_frame(*node) >= 0;
      }
    return folded * 2 >= calls;
  }

  /// A call of the backward that reads no value of the backward, and is in no folded frame.
  bool is_loose(const Node& node) const {
    return node.op()->is_call() && side_of(node) == Side::Backward && folded_frame(node) < 0 &&
           std::ranges::none_of(node.inputs(), [&](const Node* in) { return side_of(*in) == Side::Backward; });
  }

  /// Inputs that only a folded frame of their side reads have no cards, nor have those that only one card reads in an
  /// overview, in which most of the forward is folded. Nor has what the first reader of, in the backward, is in a
  /// folded frame: recomputed values, and what the backward computes of forward values alone.
  void find_homes() {
    const bool folds = std::ranges::any_of(picture_.frames, &Frame::folded), overview = folds && is_overview();
    if (!folds && again_.empty()) return;
    constexpr int kNever = std::numeric_limits<int>::max();
    std::vector<const Node*> nodes;
    std::vector<int> position(graph_.id_limit()), first_read(graph_.id_limit(), kNever);
    for (const Node* node : graph_) {
      position[node->id()] = static_cast<int>(nodes.size());
      nodes.push_back(node);
    }
    // The frame of the first reader in the backward, directly or through what is computed for that reader.
    auto home = [&](const Node& node) {
      int& first = first_read[node.id()];
      for (const Node* user : node.users()) {
        const bool in_backward = side_of(*user) == Side::Backward;
        if (in_backward ? is_loose(*user) : is_again(*user))
          first = std::min(first, first_read[user->id()]);
        else if (in_backward && !user->is_output())
          first = std::min(first, position[user->id()]);
      }
      return first == kNever ? -1 : folded_frame(*nodes[first]);
    };
    for (const Node* node : std::views::reverse(nodes)) {
      if (is_loose(*node)) {
        reader_home_[node->id()] = home(*node);
        if (reader_home_[node->id()] < 0) first_read[node->id()] = position[node->id()];  // has a card
      } else if (is_again(*node)) {
        again_home_[node->id()] = home(*node);
        not_drawn_[node->id()] = first_read[node->id()] == kNever;
      } else if (folds && is_input(*node) && (overview || !is_tangent(*node))) {
        not_drawn_[node->id()] = overview && node->users().empty();
        only_reader_[node->id()] = only_reader(*node, overview);
      }
    }
    for (const Node* node : graph_) again_home_[node->id()] = again_home_[producer_of(node)->id()];
  }

  /// A reader of an input, if all readers on its side have one card, which is to stand for the input too.
  const Node* only_reader(const Node& input, bool overview) const {
    const auto place = [&](const Node& user) {  // stands for its card
      const int frame = folded_frame(user);
      return frame >= 0 ? frame : -1 - static_cast<int>(producer_of(&user)->id());
    };
    const Node* reader = nullptr;
    for (const Node* user : input.users()) {
      if (side_of(*user) != side_of(input) || (overview && user->is_output())) continue;
      if (user->is_output() || (reader && place(*reader) != place(*user))) return nullptr;
      reader = user;
    }
    return reader && (overview || place(*reader) >= 0) ? reader : nullptr;
  }

  void add_side(Side side) {
    for (const Node* node : graph_) {
      if (node->is_output() || side_of(*node) != side) continue;
      ++picture_.nodes_on[static_cast<int>(side)];
      if (const Node* producer = producer_of(node); producer != node) {
        join_producer(*node, *producer);
        continue;
      }
      if (not_drawn_[node->id()] || only_reader_[node->id()]) continue;
      if (reader_home_[node->id()] >= 0) continue;  // its card would stand before what its frame reads
      const int frame = folded_frame(*node);
      picture_.card_of[node->id()] = frame < 0 ? add_node(*node, side) : card_of_frame(frame, side);
    }
  }

  /// One of several results is on the card of the call that gives them.
  void join_producer(const Node& node, const Node& producer) {
    if (reader_home_[producer.id()] >= 0) {
      reader_home_[node.id()] = reader_home_[producer.id()];
      return;
    }
    int owner = picture_.card_of[node.id()] = picture_.card_of[producer.id()];
    Card& card = picture_.cards[owner];
    // A tuple's shape is known by its first result when the text has no annotation for the tuple itself.
    if (card.node == &producer && card.detail.empty() && !card.minor) {
      card.detail = shape_text(node.meta);
      if (producer.users().size() > 1) card.detail += " +" + std::to_string(producer.users().size() - 1);
      measure(card, options_.text_width);
    }
    if (card.node == &producer && !producer.meta.known()) card.bytes.add(node.meta, graph_.shapes.get());
  }

  int add_node(const Node& node, Side side) {
    Card card = card_of_node(node, options_.text_width);
    if (const std::string memory = memory_text(*picture_.memories, node); !memory.empty()) {
      card.detail += (card.detail.empty() ? "" : "  ") + memory;
      measure(card, options_.text_width);
    }
    card.side = side;
    card.frame = picture_.frame_of[node.id()];
    return picture_.add(std::move(card));
  }

  int card_of_frame(int frame, Side side) {
    auto [found, fresh] = card_of_frame_.try_emplace(frame, 0);
    if (!fresh) return found->second;
    Card card;
    const Frame& f = picture_.frames[frame];
    card.key = "frame:" + f.key;
    card.title = shortened(f.label.substr(0, f.label.find("  ")));  // without the code of a line
    card.detail = std::to_string(f.nodes) + " nodes";
    if (const std::string size = card_size(f.bytes); !size.empty()) card.detail += ", " + size;
    card.nodes = f.nodes;
    card.bytes = f.bytes;
    card.side = side;
    card.frame = frame;
    measure(card, options_.text_width);
    return found->second = picture_.add(std::move(card));
  }

  /// Cards in the backward for what it computes again.
  void add_recomputed() {
    for (const Node* node : graph_) {
      if (!is_again(*node)) continue;
      ++picture_.recomputed;
      if (again_home_[node->id()] >= 0) continue;
      if (const Node* producer = producer_of(node); producer != node && again_of_[producer->id()] >= 0) {
        again_of_[node->id()] = again_of_[producer->id()];
        continue;
      }
      if (not_drawn_[node->id()]) continue;
      Card card = card_of_node(*node, options_.text_width);
      card.key = "again:" + node->name();
      card.side = Side::Backward;
      card.again = true;
      again_of_[node->id()] = picture_.add(std::move(card));
    }
  }

  /// What has no card of its own is on that of its frame or its only reader.
  void share_cards() {
    for (const Node* node : graph_)
      for (auto [home, card] : {std::pair(&again_home_, &again_of_), std::pair(&reader_home_, &picture_.card_of)})
        if (const auto found = card_of_frame_.find((*home)[node->id()]); found != card_of_frame_.end())
          (*card)[node->id()] = found->second;
    for (const Node* node : graph_)
      if (const Node* reader = only_reader_[node->id()]) picture_.card_of[node->id()] = picture_.card_of[reader->id()];
  }

  void add_links() {
    // The card from which a reader on this side takes `in`.
    auto source = [&](const Node* in, bool in_backward) {
      if (in_backward && again_of_[in->id()] >= 0) return again_of_[in->id()];
      return picture_.card_of[in->id()];
    };
    std::vector<Link>& links = picture_.links;
    auto link = [&](int from, int to) {
      if (from >= 0 && to >= 0 && from != to) links.push_back({from, to});
    };
    for (const Node* node : graph_) {
      if (node->is_output()) {
        for (const Node* in : node->inputs())
          if (int card = picture_.card_of[in->id()]; card >= 0) picture_.cards[card].returned = true;
        continue;
      }
      if (producer_of(node) != node) continue;
      const bool in_backward = side_of(*node) == Side::Backward;
      for (const Node* in : node->inputs()) {
        link(source(in, in_backward), picture_.card_of[node->id()]);
        if (again_of_[node->id()] >= 0) link(source(in, true), again_of_[node->id()]);
      }
    }
    const auto ends = [](const Link& l) { return std::pair(l.from, l.to); };
    std::ranges::sort(links, {}, ends);
    const auto repeated = std::ranges::unique(links, {}, ends);
    links.erase(repeated.begin(), repeated.end());
  }

  /// The values that cross from the forward to the backward: the cut's, or all where it is not known.
  void add_saved() {
    if (picture_.cut_known) {
      picture_.saved = options_.cut->saved;
    } else if (picture_.joint) {
      for (const Node* node : graph_) {
        if (node->is_output() || backward_[node->id()]) continue;
        const bool crosses = std::ranges::any_of(node->users(), [&](const Node* user) {
          return !user->is_output() && backward_[user->id()] && producer_of(user) == user;
        });
        if (!crosses) continue;
        ByteSum bytes;
        bytes.add(node->meta, graph_.shapes.get());
        picture_.saved.push_back({node->name(), bytes.known, is_input(*node)});
      }
    }
    picture_.unknown = unknown_bytes(graph_, picture_.saved);
    for (std::size_t i = 0; i < picture_.saved.size(); ++i) {
      const Node* node = graph_.find(picture_.saved[i].name);
      if (int card = node ? picture_.card_of[node->id()] : -1; card >= 0)
        picture_.cards[card].saved.push_back(static_cast<int>(i));
    }
  }

  const Graph& graph_;
  const PictureOptions& options_;
  Picture picture_;
  std::unordered_set<std::string> again_;  // names of what the backward computes again
  std::unordered_map<int, int> card_of_frame_;
  // By node; -1, or null: none.
  std::vector<bool> backward_;            // empty when the graph is not joint
  std::vector<int> reader_home_;          // the folded frame, in the backward, on whose card the node is
  std::vector<int> again_home_;           // the same of its recomputed value
  std::vector<int> again_of_;             // the card of its recomputed value
  std::vector<const Node*> only_reader_;  // has the card on which the input is
  std::vector<bool> not_drawn_;           // what nothing reads: recomputed values, inputs in an overview
};

}  // namespace

const Node* producer_of(const Node* node) {
  while (picks_result(*node)) node = node->args()[0].node();
  return node;
}

float estimated_text_width(std::string_view text, bool title) {
  return static_cast<float>(text.size()) * (title ? 7.0F : 6.2F);
}

CutSummary CutSummary::of(const Partition& partition) {
  CutSummary cut{partition.saved,       partition.recomputed,           {}, partition.activation_bytes,
                 partition.input_bytes, partition.recomputed_operations};
  cut.memory_budget = partition.memory_budget;
  for (const Node* node : *partition.backward)
    if (node->op()->is_call() && !partition.forward->find(node->name())) cut.backward.insert(node->name());
  return cut;
}

void ByteSum::add(const Meta& meta, const ShapeEnv* shapes) {
  if (const TensorMeta* tensor = meta.tensor()) {
    const SymExpr bytes = byte_size(*tensor);
    const auto hint = bytes.is_int() ? std::optional(bytes.as_int()) : shapes ? shapes->hint(bytes) : std::nullopt;
    if (hint)
      known += *hint;
    else
      unknown = unknown + bytes;
  }
  if (const MetaTuple* tuple = meta.tuple())
    for (const Meta& item : tuple->items) add(item, shapes);
}

UnknownBytes unknown_bytes(const Graph& graph, const std::vector<SavedValue>& saved) {
  UnknownBytes bytes;
  for (const SavedValue& value : saved) {
    const Node* node = graph.find(value.name);
    ByteSum size;
    if (node) size.add(node->meta, graph.shapes.get());
    ++(value.is_input ? bytes.kept_inputs : bytes.values);
    ByteSum& sum = value.is_input ? bytes.inputs : bytes.saved;
    if (size.unknown.is(0)) {
      sum.known += value.bytes;
      continue;
    }
    sum.unknown = sum.unknown + size.unknown;
    sum.known += size.known;
    bytes.of.emplace(value.name, size.unknown + SymExpr(size.known));
  }
  return bytes;
}

int Picture::add(Card card) {
  const int index = static_cast<int>(cards.size());
  by_key_.emplace(card.key, index);
  cards.push_back(std::move(card));
  return index;
}

int Picture::card_by_key(const std::string& key) const {
  auto found = by_key_.find(key);
  return found == by_key_.end() ? -1 : found->second;
}

std::string shape_text(const Meta& meta) {
  if (const TensorMeta* tensor = meta.tensor()) {
    std::string text(short_name(tensor->dtype));
    text += '[';
    for (std::size_t i = 0; i < tensor->sizes.size(); ++i) text += (i ? ", " : "") + tensor->sizes[i].str();
    return text + ']';
  }
  if (const MetaTuple* tuple = meta.tuple()) {
    if (tuple->items.empty()) return "()";
    std::string text = shape_text(tuple->items[0]);
    if (tuple->items.size() > 1) text += " +" + std::to_string(tuple->items.size() - 1);
    return text;
  }
  return annotation(meta);
}

Picture make_picture(std::shared_ptr<const Graph> graph, const PictureOptions& options) {
  return PictureMaker(std::move(graph), options).make();
}

}  // namespace partita::views

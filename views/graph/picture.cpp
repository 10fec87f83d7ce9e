#include "views/graph/picture.h"

#include <algorithm>
#include <limits>
#include <ranges>

#include <fmt/format.h>

#include "core/partition/joint_parts.h"
#include "core/partition/partition.h"
#include "views/graph/frames.h"

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

Picture make_picture(std::shared_ptr<const Graph> shared, const PictureOptions& options) {
  const Graph& graph = *shared;
  Picture picture;
  picture.graph = shared;
  picture.card_of.assign(graph.id_limit(), -1);
  std::vector<bool> backward = backward_nodes(graph, options.cut);
  picture.joint = !backward.empty();
  picture.cut_known = options.cut != nullptr && picture.joint;
  auto side_of = [&](const Node& node) {
    return picture.joint && backward[node.id()] ? Side::Backward : Side::Forward;
  };

  std::vector<int>& frame_of = picture.frame_of;
  if (options.like) {
    picture.frames = options.like->frames;
    picture.memories = options.like->memories;
    frame_of = options.like->frame_of;
    for (Frame& frame : picture.frames) frame.folded = options.folded.contains(frame.key);
  } else {
    picture.memories = std::make_shared<MemoryUses>(memory_uses(graph));
    picture.frames = make_frames(graph, side_of, options.folded, frame_of);
  }
  auto folded_frame = [&](int frame) {
    int outermost = -1;
    for (; frame >= 0; frame = picture.frames[frame].parent)
      if (picture.frames[frame].folded) outermost = frame;
    return outermost;
  };

  std::unordered_set<std::string> again;
  if (picture.cut_known) again.insert(options.cut->recomputed.begin(), options.cut->recomputed.end());

  // Inputs that only a folded frame of their side reads have no cards, nor have those that only one card reads in an
  // overview, in which most of the forward is folded. Nor has what the first reader of, in the backward, is in a folded
  // frame: recomputed values, and what the backward computes of forward values alone.
  std::vector<int> reader_home(graph.id_limit(), -1), again_home(graph.id_limit(), -1);
  std::vector<const Node*> only_reader(graph.id_limit());
  std::vector<bool> not_drawn(graph.id_limit());  // what nothing reads: recomputed values, inputs in an overview
  int calls = 0, folded_calls = 0;                // of the forward
  for (const Node* node : graph)
    if (node->op()->is_call() && side_of(*node) == Side::Forward) {
      ++calls;
      folded_calls += folded_frame(frame_of[node->id()]) >= 0;
    }
  const bool folds = std::ranges::any_of(picture.frames, &Frame::folded), overview = folds && folded_calls * 2 >= calls;
  auto is_again = [&](const Node& node) {
    return again.contains(node.name()) && side_of(node) == Side::Forward && !is_input(node);
  };
  if (folds || !again.empty()) {
    constexpr int kNever = std::numeric_limits<int>::max();
    std::vector<const Node*> nodes;
    std::vector<int> turn(graph.id_limit()), first_read(graph.id_limit(), kNever);
    for (const Node* node : graph) {
      turn[node->id()] = static_cast<int>(nodes.size());
      nodes.push_back(node);
    }
    auto is_loose = [&](const Node& node) {
      return node.op()->is_call() && side_of(node) == Side::Backward && folded_frame(frame_of[node.id()]) < 0 &&
             std::ranges::none_of(node.inputs(), [&](const Node* in) { return side_of(*in) == Side::Backward; });
    };
    // The frame of the first reader in the backward, directly or through what is computed for that reader.
    auto home = [&](const Node& node) {
      int& first = first_read[node.id()];
      for (const Node* user : node.users()) {
        const bool in_backward = side_of(*user) == Side::Backward;
        if (in_backward ? is_loose(*user) : is_again(*user))
          first = std::min(first, first_read[user->id()]);
        else if (in_backward && !user->is_output())
          first = std::min(first, turn[user->id()]);
      }
      return first == kNever ? -1 : folded_frame(frame_of[nodes[first]->id()]);
    };
    for (const Node* node : std::views::reverse(nodes)) {
      if (is_loose(*node)) {
        reader_home[node->id()] = home(*node);
        if (reader_home[node->id()] < 0) first_read[node->id()] = turn[node->id()];  // has a card
      } else if (is_again(*node)) {
        again_home[node->id()] = home(*node);
        not_drawn[node->id()] = first_read[node->id()] == kNever;
      } else if (folds && is_input(*node) && (overview || !is_tangent(*node))) {
        not_drawn[node->id()] = overview && node->users().empty();
        const auto place = [&](const Node& user) {  // stands for its card
          const int frame = folded_frame(frame_of[user.id()]);
          return frame >= 0 ? frame : -1 - static_cast<int>(producer_of(&user)->id());
        };
        const Node* reader = nullptr;
        bool one = true;
        for (const Node* user : node->users()) {
          if (side_of(*user) != side_of(*node) || (overview && user->is_output())) continue;
          one = one && !user->is_output() && (!reader || place(*reader) == place(*user));
          reader = user;
        }
        if (one && reader && (overview || place(*reader) >= 0)) only_reader[node->id()] = reader;
      }
    }
    for (const Node* node : graph) again_home[node->id()] = again_home[producer_of(node)->id()];
  }

  std::vector<int> again_of(graph.id_limit(), -1);
  std::unordered_map<int, int> card_of_frame;
  auto add = [&](Card card) {
    int index = static_cast<int>(picture.cards.size());
    picture.by_key_.emplace(card.key, index);
    picture.cards.push_back(std::move(card));
    return index;
  };
  auto add_side = [&](Side side) {
    for (const Node* node : graph) {
      if (node->is_output() || side_of(*node) != side) continue;
      ++picture.nodes_on[static_cast<int>(side)];
      if (const Node* producer = producer_of(node); producer != node) {
        if (reader_home[producer->id()] >= 0) {
          reader_home[node->id()] = reader_home[producer->id()];
          continue;
        }
        int owner = picture.card_of[node->id()] = picture.card_of[producer->id()];
        Card& card = picture.cards[owner];
        // A tuple's shape is known by its first result when the text has no annotation for the tuple itself.
        if (card.node == producer && card.detail.empty() && !card.minor) {
          card.detail = shape_text(node->meta);
          if (producer->users().size() > 1) card.detail += " +" + std::to_string(producer->users().size() - 1);
          measure(card, options.text_width);
        }
        if (card.node == producer && !producer->meta.known()) card.bytes.add(node->meta, graph.shapes.get());
        continue;
      }
      if (not_drawn[node->id()] || only_reader[node->id()]) continue;
      if (reader_home[node->id()] >= 0) continue;  // its card would stand before what its frame reads
      int frame = folded_frame(frame_of[node->id()]);
      if (frame < 0) {
        Card card = card_of_node(*node, options.text_width);
        if (const std::string memory = memory_text(*picture.memories, *node); !memory.empty()) {
          card.detail += (card.detail.empty() ? "" : "  ") + memory;
          measure(card, options.text_width);
        }
        card.side = side;
        card.frame = frame_of[node->id()];
        picture.card_of[node->id()] = add(std::move(card));
        continue;
      }
      auto [found, fresh] = card_of_frame.try_emplace(frame, 0);
      if (fresh) {
        Card card;
        const Frame& f = picture.frames[frame];
        card.key = "frame:" + f.key;
        card.title = shortened(f.label.substr(0, f.label.find("  ")));  // without the code of a line
        card.detail = std::to_string(f.nodes) + " nodes";
        if (const std::string size = card_size(f.bytes); !size.empty()) card.detail += ", " + size;
        card.nodes = f.nodes;
        card.bytes = f.bytes;
        card.side = side;
        card.frame = frame;
        measure(card, options.text_width);
        found->second = add(std::move(card));
      }
      picture.card_of[node->id()] = found->second;
    }
  };
  add_side(Side::Forward);
  for (const Node* node : graph) {
    if (again.empty()) break;
    if (!is_again(*node)) continue;
    ++picture.recomputed;
    if (again_home[node->id()] >= 0) continue;
    if (const Node* producer = producer_of(node); producer != node && again_of[producer->id()] >= 0) {
      again_of[node->id()] = again_of[producer->id()];
      continue;
    }
    if (not_drawn[node->id()]) continue;
    Card card = card_of_node(*node, options.text_width);
    card.key = "again:" + node->name();
    card.side = Side::Backward;
    card.again = true;
    again_of[node->id()] = add(std::move(card));
  }
  if (picture.joint) add_side(Side::Backward);
  for (const Node* node : graph)
    for (auto [home, card] : {std::pair(&again_home, &again_of), std::pair(&reader_home, &picture.card_of)})
      if (const auto found = card_of_frame.find((*home)[node->id()]); found != card_of_frame.end())
        (*card)[node->id()] = found->second;
  for (const Node* node : graph)
    if (const Node* reader = only_reader[node->id()]) picture.card_of[node->id()] = picture.card_of[reader->id()];

  // The card from which a reader on this side takes `in`.
  auto source = [&](const Node* in, bool in_backward) {
    if (in_backward && again_of[in->id()] >= 0) return again_of[in->id()];
    return picture.card_of[in->id()];
  };
  auto link = [&](int from, int to) {
    if (from >= 0 && to >= 0 && from != to) picture.links.push_back({from, to});
  };
  for (const Node* node : graph) {
    if (node->is_output()) {
      for (const Node* in : node->inputs())
        if (int card = picture.card_of[in->id()]; card >= 0) picture.cards[card].returned = true;
      continue;
    }
    if (producer_of(node) != node) continue;
    bool in_backward = side_of(*node) == Side::Backward;
    for (const Node* in : node->inputs()) {
      link(source(in, in_backward), picture.card_of[node->id()]);
      if (again_of[node->id()] >= 0) link(source(in, true), again_of[node->id()]);
    }
  }
  std::sort(picture.links.begin(), picture.links.end(),
            [](Link a, Link b) { return std::pair(a.from, a.to) < std::pair(b.from, b.to); });
  picture.links.erase(std::unique(picture.links.begin(), picture.links.end()), picture.links.end());

  if (picture.cut_known) {
    picture.saved = options.cut->saved;
  } else if (picture.joint) {
    for (const Node* node : graph) {
      if (node->is_output() || backward[node->id()]) continue;
      bool crosses = std::any_of(node->users().begin(), node->users().end(), [&](const Node* user) {
        return !user->is_output() && backward[user->id()] && producer_of(user) == user;
      });
      if (!crosses) continue;
      ByteSum bytes;
      bytes.add(node->meta, graph.shapes.get());
      picture.saved.push_back({node->name(), bytes.known, is_input(*node)});
    }
  }
  picture.unknown = unknown_bytes(graph, picture.saved);
  for (std::size_t i = 0; i < picture.saved.size(); ++i) {
    const Node* node = graph.find(picture.saved[i].name);
    if (int card = node ? picture.card_of[node->id()] : -1; card >= 0)
      picture.cards[card].saved.push_back(static_cast<int>(i));
  }
  return picture;
}

}  // namespace partita::views

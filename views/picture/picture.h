#pragma once
// What is drawn of a graph, without its places: cards, links, frames. Without Qt; made on a worker thread.
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "core/ir/graph.h"
#include "core/ops/facts/alias.h"
#include "core/ops/facts/family.h"
#include "core/partition/partition.h"

namespace partita::views {

enum class Side : unsigned char { Forward, Backward };

/// How a joint graph was cut into forward and backward: a Partition without its graphs.
struct CutSummary {
  std::vector<SavedValue> saved;
  std::vector<std::string> recomputed;       ///< names
  std::unordered_set<std::string> backward;  ///< nodes that only the backward computes
  std::int64_t activation_bytes = 0, input_bytes = 0;
  SymExpr recomputed_operations = 0;
  double memory_budget = 1;  ///< under which it was cut

  static CutSummary of(const Partition& partition);
};

/// The bytes of values together. What depends on a symbol without a hint stays an expression.
struct ByteSum {
  std::int64_t known = 0;
  SymExpr unknown;

  void add(const Meta& meta, const ShapeEnv* shapes);
};

struct Card {
  const Node* node = nullptr;  ///< null for a folded frame
  std::string key;             ///< the same in every pass: node name, "again:NAME", "frame:PATH"
  std::string title, detail;   ///< "addmm", "f32[8, 64]"
  Family family = Family::Other;
  Side side = Side::Forward;
  bool minor = false;      ///< views, constants, parameters: drawn small
  bool again = false;      ///< a value computed a second time in the backward
  bool returned = false;   ///< among the graph's outputs
  int frame = -1;          ///< innermost frame, index into Picture::frames
  std::vector<int> saved;  ///< its values that are saved for the backward: indices into Picture::saved
  int nodes = 1;           ///< calls it stands for
  ByteSum bytes;
  float width = 0;
};

struct Link {
  int from = 0, to = 0;
  bool operator==(const Link&) const = default;
};

/// A run of neighbouring nodes from one module (or file, or source line). It can be folded into one card.
struct Frame {
  std::string path;   ///< of the module, the same in all runs
  std::string key;    ///< "PATH#n" where n counts the runs; "PATH|b#n" in the backward
  std::string label;  ///< last part of the path, or the source line
  int parent = -1;
  int depth = 0;
  Side side = Side::Forward;
  int nodes = 0;
  ByteSum bytes;
  bool folded = false;
};

/// Width of a text in the card's font, in pixels at 100 %.
using TextWidth = std::function<float(std::string_view text, bool title)>;
float estimated_text_width(std::string_view text, bool title);

struct PictureOptions {
  const CutSummary* cut = nullptr;  ///< null: for a joint graph, the cut between what depends on tangents and the rest
  std::unordered_set<std::string> folded;  ///< keys of frames
  TextWidth text_width = estimated_text_width;
  const struct Picture* like = nullptr;  ///< of the same graph and cut: its frames are taken over, to save time
};

/// How many values are saved, and their bytes: where nobody knows a size, the partitioner counts made-up ones.
struct UnknownBytes {
  std::int64_t values = 0, kept_inputs = 0;     ///< that are not inputs, and that are
  std::unordered_map<std::string, SymExpr> of;  ///< by name of the value; others are as SavedValue says
  ByteSum saved, inputs;                        ///< of values that are not inputs, and of those that are
};
UnknownBytes unknown_bytes(const Graph& graph, const std::vector<SavedValue>& saved);

struct Picture {
  std::shared_ptr<const Graph> graph;
  /// In execution order, recomputed ones after the forward's. A folded frame has one card, which also stands for the
  /// inputs and recomputed values that only it reads.
  std::vector<Card> cards;
  std::vector<Link> links;  ///< no repeats
  std::vector<Frame> frames;
  std::vector<SavedValue> saved;
  UnknownBytes unknown;
  std::shared_ptr<const MemoryUses> memories;
  std::vector<int> card_of;   ///< by Node::id; -1: not drawn (output)
  std::vector<int> frame_of;  ///< by Node::id: the innermost frame, folded or not; -1: none
  bool joint = false;         ///< has a backward
  bool cut_known = false;     ///< a partitioner decided what is saved and recomputed
  int nodes_on[2] = {0, 0};   ///< of the forward, of the backward
  int recomputed = 0;         ///< nodes that the backward computes again

  int add(Card card);                             ///< its index
  int card_by_key(const std::string& key) const;  ///< -1 when there is none

 private:
  std::unordered_map<std::string, int> by_key_;
};

Picture make_picture(std::shared_ptr<const Graph> graph, const PictureOptions& options = {});

/// The call that computes a value: the tuple's where a getitem picks one of its results, otherwise the node itself.
const Node* producer_of(const Node* node);
/// "f32[8, 64]"; of a tuple its first tensor and the number of others.
std::string shape_text(const Meta& meta);

}  // namespace partita::views

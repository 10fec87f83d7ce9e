#include "views/graph/frames.h"

#include <algorithm>
#include <cctype>
#include <string_view>

namespace partita::views {
namespace {

using Path = std::vector<std::string>;

// "transformer.h.0.attn" -> transformer, h, h.0, attn: the index of a list stays with the list's name.
Path module_path(const std::string& modules) {
  Path parts;
  std::string list;
  for (std::size_t begin = 0; begin < modules.size();) {
    std::size_t end = std::min(modules.find('.', begin), modules.size());
    std::string part = modules.substr(begin, end - begin);
    bool number =
        !part.empty() && std::all_of(part.begin(), part.end(), [](unsigned char c) { return std::isdigit(c); });
    if (number && !list.empty()) {
      parts.push_back(list += "." + part);
    } else if (!part.empty()) {
      parts.push_back(list = std::move(part));
    }
    begin = end + 1;
  }
  return parts;
}

Path path_of(const Node& node) {
  if (!node.origin) return {};
  if (!node.origin->modules.empty()) return module_path(node.origin->modules);
  if (node.origin->file.empty()) return {};
  std::string file = node.origin->file.substr(node.origin->file.find_last_of('/') + 1);
  const std::string& code = node.origin->code.empty() ? node.origin->function : node.origin->code;
  std::string line = file + ":" + std::to_string(node.origin->line) + "  " + code;
  return {std::move(file), std::move(line)};
}

struct Run {
  std::size_t begin = 0;  ///< index of its first node
  const std::string* line = nullptr;
};

// Where the blocks of a stack of equal layers begin, as indices into `runs`, and where the last one ends. Most lines of
// a stack run once per layer, so that the most common number of runs is the number of layers. Empty: there is no stack.
std::vector<std::size_t> find_blocks(const std::vector<Run>& runs) {
  constexpr int kLeastBlocks = 3, kLeastLines = 3;
  std::unordered_map<std::string_view, int> count;
  for (const Run& run : runs) ++count[*run.line];
  std::unordered_map<int, int> lines;  // by how often they run
  for (const auto& [line, n] : count)
    if (n >= kLeastBlocks) ++lines[n];
  int blocks = 0;
  for (const auto& [n, how_many] : lines)
    if (how_many >= kLeastLines && (blocks == 0 || std::pair(how_many, n) > std::pair(lines[blocks], blocks)))
      blocks = n;
  if (blocks == 0) return {};
  auto in_stack = [&](const Run& run) { return count[*run.line] % blocks == 0; };
  auto first = std::ranges::find_if(runs, [&](const Run& run) { return count[*run.line] == blocks; });
  auto last = std::find_if(runs.rbegin(), runs.rend(), in_stack).base();
  if (std::count_if(first, last, in_stack) * 3 < (last - first) * 2) return {};  // lines between them are not a layer's
  std::vector<std::size_t> begins;
  for (auto run = first; run != last; ++run)
    if (*run->line == *first->line) begins.push_back(static_cast<std::size_t>(run - runs.begin()));
  // Lines before the first that runs once per layer belong to the layer as long as they stand there in every block.
  const auto same_before = [&] {
    return begins[0] > 0 && std::ranges::all_of(begins, [&](std::size_t begin) {
             return *runs[begin - 1].line == *runs[begins[0] - 1].line;
           });
  };
  while (same_before())
    for (std::size_t& begin : begins) --begin;
  begins.push_back(static_cast<std::size_t>(last - runs.begin()));
  return begins;
}

// Replaces the file by stack and block in the paths of lines that repeat.
void name_blocks(std::vector<Path>& paths, bool backward) {
  std::vector<Run> runs;
  const std::string* before = nullptr;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    if (paths[i].empty()) continue;
    const std::string& line = paths[i].back();
    if (!before || *before != line) runs.push_back({i, &line});
    before = &line;
  }
  const std::vector<std::size_t> begins = find_blocks(runs);
  if (begins.empty()) return;
  const std::size_t blocks = begins.size() - 1;
  for (std::size_t k = 0; k < blocks; ++k) {
    const std::size_t end = begins[k + 1] < runs.size() ? runs[begins[k + 1]].begin : paths.size();
    const std::string name = "block " + std::to_string(backward ? blocks - k : k + 1);
    for (std::size_t i = runs[begins[k]].begin; i < end; ++i)
      if (!paths[i].empty()) paths[i] = {std::to_string(blocks) + " blocks", name, std::move(paths[i].back())};
  }
}

// Drops frames of a single node, which belongs to the parent, and those that hold all of their side in a few parts.
void drop_useless(std::vector<Frame>& frames, std::vector<int>& frame_of) {
  constexpr int kFew = 16;
  int all[2] = {0, 0};
  std::vector<int> parts(frames.size());
  for (const Frame& frame : frames) {
    if (frame.parent < 0) all[static_cast<int>(frame.side)] += frame.nodes;
    if (frame.parent >= 0) ++parts[frame.parent];
  }
  std::vector<int> target(frames.size());
  std::vector<Frame> kept;
  for (std::size_t i = 0; i < frames.size(); ++i) {  // parents come before children
    Frame& frame = frames[i];
    int parent = frame.parent < 0 ? -1 : target[frame.parent];
    const bool holds_all = parent < 0 && frame.nodes == all[static_cast<int>(frame.side)] && parts[i] <= kFew;
    if (frame.nodes < 2 || holds_all) {
      target[i] = parent;
      continue;
    }
    frame.parent = parent;
    frame.depth = parent < 0 ? 0 : kept[parent].depth + 1;
    target[i] = static_cast<int>(kept.size());
    kept.push_back(std::move(frame));
  }
  for (int& frame : frame_of)
    if (frame >= 0) frame = target[frame];
  frames = std::move(kept);
}

}  // namespace

std::vector<Frame> make_frames(const Graph& graph, const std::function<Side(const Node&)>& side_of,
                               const std::unordered_set<std::string>& folded, std::vector<int>& frame_of) {
  std::vector<Frame> frames;
  frame_of.assign(graph.id_limit(), -1);
  std::unordered_map<std::string, int> runs;
  for (Side side : {Side::Forward, Side::Backward}) {
    std::vector<const Node*> nodes;
    std::vector<Path> paths;
    bool modules = false;
    for (const Node* node : graph) {
      if (!node->op()->is_call() || side_of(*node) != side) continue;
      nodes.push_back(node);
      paths.push_back(path_of(*node));
      modules = modules || (node->origin && !node->origin->modules.empty());
    }
    if (!modules) name_blocks(paths, side == Side::Backward);
    std::vector<int> open;  // frames of the current run, outermost first
    Path open_path;         // their parts
    for (std::size_t n = 0; n < nodes.size(); ++n) {
      const Node* node = nodes[n];
      const Path& path = paths[n];
      if (!path.empty()) {
        std::size_t common = 0;
        while (common < path.size() && common < open.size() && path[common] == open_path[common]) ++common;
        open.resize(common);
        open_path.resize(common);
        std::string full = open.empty() ? std::string() : frames[open.back()].path;
        for (std::size_t i = common; i < path.size(); ++i) {
          full += (i ? "/" : "") + path[i];
          Frame frame;
          frame.path = full;
          frame.key = full + (side == Side::Backward ? "|b" : "");
          frame.key += "#" + std::to_string(runs[frame.key]++);
          frame.label = path[i];
          frame.parent = open.empty() ? -1 : open.back();
          frame.side = side;
          frame.folded = folded.contains(frame.key);
          open.push_back(static_cast<int>(frames.size()));
          open_path.push_back(path[i]);
          frames.push_back(std::move(frame));
        }
      }
      if (open.empty()) continue;
      frame_of[node->id()] = open.back();
      for (int f : open) {
        ++frames[f].nodes;
        frames[f].bytes += hinted_bytes(node->meta, graph.shapes.get());
      }
    }
  }
  drop_useless(frames, frame_of);
  return frames;
}

std::unordered_set<std::string> overview_folds(const Picture& open, int most) {
  constexpr int kOpenAtOnce = 60;  ///< nodes; smaller frames show all of them when the one around them is opened
  const std::size_t count = open.frames.size();
  std::vector<int> parts(count);  // cards that opening a frame shows
  int shown[2] = {0, 0};
  for (const Card& card : open.cards) {
    if (card.family == Family::Input || card.again) continue;
    ++(card.frame >= 0 ? parts[card.frame] : shown[static_cast<int>(card.side)]);
  }
  for (std::size_t f = 0; f < count; ++f) {
    const Frame& frame = open.frames[f];
    ++(frame.parent >= 0 ? parts[frame.parent] : shown[static_cast<int>(frame.side)]);
  }
  std::vector<bool> opened(count), seen(count);
  for (std::size_t f = 0; f < count; ++f) seen[f] = open.frames[f].parent < 0;
  while (true) {
    int best = -1;
    for (std::size_t f = 0; f < count; ++f) {
      const Frame& frame = open.frames[f];
      if (!seen[f] || opened[f] || shown[static_cast<int>(frame.side)] + parts[f] - 1 > most) continue;
      if (best < 0 || frame.nodes > open.frames[best].nodes) best = static_cast<int>(f);
    }
    if (best < 0) break;
    opened[best] = true;
    shown[static_cast<int>(open.frames[best].side)] += parts[best] - 1;
    for (std::size_t f = 0; f < count; ++f)
      if (open.frames[f].parent == best) seen[f] = true;
  }
  std::unordered_set<std::string> folds;
  for (std::size_t f = 0; f < count; ++f)
    if (!opened[f] && (seen[f] || open.frames[f].nodes > kOpenAtOnce)) folds.insert(open.frames[f].key);
  return folds;
}

}  // namespace partita::views

#include "views/graph/frames.h"

#include <algorithm>
#include <cctype>

namespace partita::views {
namespace {

// "transformer.h.0.attn" -> transformer, h.0, attn: the index of a list stays with the list's name.
std::vector<std::string> module_path(const std::string& modules) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin < modules.size();) {
    std::size_t end = std::min(modules.find('.', begin), modules.size());
    std::string part = modules.substr(begin, end - begin);
    bool number =
        !part.empty() && std::all_of(part.begin(), part.end(), [](unsigned char c) { return std::isdigit(c); });
    if (number && !parts.empty()) {
      parts.back() += "." + part;
    } else if (!part.empty()) {
      parts.push_back(std::move(part));
    }
    begin = end + 1;
  }
  return parts;
}

std::vector<std::string> path_of(const Node& node) {
  if (!node.origin) return {};
  if (!node.origin->modules.empty()) return module_path(node.origin->modules);
  if (node.origin->file.empty()) return {};
  std::string file = node.origin->file.substr(node.origin->file.find_last_of('/') + 1);
  std::string code = node.origin->code.empty() ? node.origin->function : node.origin->code;
  return {file + ":" + std::to_string(node.origin->line) + "  " + code};
}

// Drops frames of a single node: their node belongs to the parent.
void drop_single(std::vector<Frame>& frames, std::vector<int>& frame_of) {
  std::vector<int> target(frames.size());
  std::vector<Frame> kept;
  for (std::size_t i = 0; i < frames.size(); ++i) {  // parents come before children
    Frame& frame = frames[i];
    int parent = frame.parent < 0 ? -1 : target[frame.parent];
    if (frame.nodes < 2) {
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
    std::vector<int> open;               // frames of the current run, outermost first
    std::vector<std::string> open_path;  // their parts
    for (const Node* node : graph) {
      if (!node->op()->is_call() || side_of(*node) != side) continue;
      std::vector<std::string> path = path_of(*node);
      if (!path.empty()) {
        std::size_t common = 0;
        while (common < path.size() && common < open.size() && path[common] == open_path[common]) ++common;
        open.resize(common);
        open_path.resize(common);
        for (std::size_t i = common; i < path.size(); ++i) {
          std::string full;
          for (std::size_t k = 0; k <= i; ++k) full += (k ? "/" : "") + path[k];
          if (side == Side::Backward) full += "|b";
          Frame frame;
          frame.key = full + "#" + std::to_string(runs[full]++);
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
  drop_single(frames, frame_of);
  return frames;
}

}  // namespace partita::views

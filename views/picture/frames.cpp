// Frames from module paths, else from source lines: blocks of a stack are found by how often and at what distances
// lines repeat. The overview opens the largest kind of frame as long as the picture fits.
#include "views/picture/frames.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <string_view>

#include "core/partition/joint_parts.h"

namespace partita::views {
namespace {

constexpr int kLeastBlocks = 3, kLeastLines = 3, kLeastLinesOfTwo = 8;

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

std::string file_name(const Origin& origin) {
  return origin.file.substr(origin.file.find_last_of('/') + 1);
}

std::string line_of(const Origin& origin) {
  return file_name(origin) + ":" + std::to_string(origin.line) + "  " +
         (origin.code.empty() ? origin.function : origin.code);
}

Path path_of(const Node& node) {
  if (!node.origin) return {};
  if (!node.origin->modules.empty()) return module_path(node.origin->modules);
  if (node.origin->file.empty()) return {};
  return {file_name(*node.origin), line_of(*node.origin)};
}

std::string without_numbers(std::string path) {
  std::erase_if(path, [](unsigned char c) { return std::isdigit(c); });
  return path;
}

struct Run {
  std::size_t begin = 0;  ///< index of its first node
  const std::string* line = nullptr;
};

// Where the blocks of a stack of equal layers begin, as indices into `runs`, and where the last one ends. Empty: there
// is no stack. Most lines of a stack run once per layer, so that the most common number of runs is the number of
// layers; where lines return after equal distances too, that is the length of a layer.
std::vector<std::size_t> find_blocks(const std::vector<Run>& runs) {
  std::unordered_map<std::string_view, std::vector<std::size_t>> places;  // of each line
  for (std::size_t i = 0; i < runs.size(); ++i) places[*runs[i].line].push_back(i);
  // How many lines there are by how often they run, and by their distance where all are equal.
  std::map<std::pair<std::size_t, std::size_t>, int> lines, regular;
  const auto distance = [](const std::vector<std::size_t>& at) -> std::size_t {
    for (std::size_t k = 2; k < at.size(); ++k)
      if (at[k] - at[k - 1] != at[1] - at[0]) return 0;
    return at.size() > 1 ? at[1] - at[0] : 0;
  };
  for (const auto& [line, at] : places) {
    if (at.size() >= kLeastBlocks) ++lines[{at.size(), 0}];
    if (const std::size_t every = distance(at)) ++regular[{at.size(), every}];
  }
  std::erase_if(regular,
                [](const auto& r) { return r.second < (r.first.first == 2 ? kLeastLinesOfTwo : kLeastLines); });
  std::erase_if(lines, [](const auto& l) { return l.second < kLeastLines; });
  const auto& found = regular.empty() ? lines : regular;
  if (found.empty()) return {};
  const auto [blocks, every] =
      std::ranges::max_element(found, {}, [](const auto& f) { return std::pair(f.second, f.first.first); })->first;
  const auto of_layer = [&](const Run& run) {
    const std::vector<std::size_t>& at = places[*run.line];
    return at.size() == blocks && (every == 0 || distance(at) == every);
  };
  const auto first = std::ranges::find_if(runs, of_layer);
  const auto in_stack = [&](const Run& run) { return places[*run.line].size() % blocks == 0; };
  auto last = std::find_if(runs.rbegin(), runs.rend(), in_stack).base();
  std::vector<std::size_t> begins = places[*first->line];
  if (std::count_if(first, last, in_stack) * 3 < (last - first) * 2) return {};  // lines between them are not a layer's
  // Lines before the first that runs once per layer belong to the layer as long as they stand there in every block.
  const auto same_before = [&] {
    return begins[0] > 0 && std::ranges::all_of(begins, [&](std::size_t begin) {
             return *runs[begin - 1].line == *runs[begins[0] - 1].line;
           });
  };
  while (same_before())
    for (std::size_t& begin : begins) --begin;
  // The last block ends with the line with which the others end.
  std::size_t end = static_cast<std::size_t>(last - runs.begin());
  if (every > 0) {
    const std::vector<std::size_t>& ends = places[*runs[begins[1] - 1].line];
    const auto after = std::ranges::upper_bound(ends, begins.back() + every + every / 2);
    const bool found_end = after != ends.begin() && *std::prev(after) >= begins.back();
    end = std::min(end, found_end ? *std::prev(after) + 1 : begins.back() + every);
  }
  begins.push_back(end);
  return begins;
}

// Long runs of nodes from one line that stand beside modules, as the making of a mask does, get a frame of that line.
void name_lines_in_modules(const std::vector<const Node*>& nodes, std::vector<Path>& paths) {
  constexpr std::size_t kLong = 6;
  const auto same = [&](std::size_t a, std::size_t b) {
    const Origin *of_a = nodes[a]->origin.get(), *of_b = nodes[b]->origin.get();
    return paths[a] == paths[b] && of_a && of_b && of_a->line == of_b->line && of_a->file == of_b->file;
  };
  for (std::size_t begin = 0, end = 0; begin < nodes.size(); begin = end) {
    for (end = begin + 1; end < nodes.size() && same(begin, end);) ++end;
    if (end - begin < kLong || !nodes[begin]->origin || nodes[begin]->origin->file.empty()) continue;
    const std::string line = line_of(*nodes[begin]->origin);
    for (std::size_t i = begin; i < end; ++i) paths[i].push_back(line);
  }
}

// Replaces the file by stack and block in the paths of lines that repeat. `again`: what a backward computes once more
// does not tell where its blocks begin, since that may differ from block to block; it belongs to the one it stands in.
void name_blocks(std::vector<Path>& paths, bool backward, const std::vector<bool>& again) {
  std::vector<Run> runs;
  const std::string* before = nullptr;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    if (paths[i].empty() || again[i]) continue;
    const std::string& line = paths[i].back();
    if (!before || *before != line) runs.push_back({i, &line});
    before = &line;
  }
  // What a forward prepares for the backward of its layers stands after them, and repeats as they do.
  for (bool layers = true; !runs.empty(); layers = false) {
    const std::vector<std::size_t> begins = find_blocks(runs);
    if (begins.empty()) return;
    const std::size_t blocks = begins.size() - 1;
    const std::string stack = std::to_string(blocks) + (layers ? " blocks" : " repeats");
    for (std::size_t k = 0; k < blocks; ++k) {
      const std::size_t end = begins[k + 1] < runs.size() ? runs[begins[k + 1]].begin : paths.size();
      const std::string name =
          (layers ? "block " : "repeat ") + std::to_string(layers && backward ? blocks - k : k + 1);
      for (std::size_t i = runs[begins[k]].begin; i < end; ++i)
        if (!paths[i].empty()) paths[i] = {stack, name, std::move(paths[i].back())};
    }
    runs.erase(runs.begin(), runs.begin() + static_cast<std::ptrdiff_t>(begins.back()));
  }
}

// Drops frames of a single node, which belongs to the parent, those that hold all of their parent, and those that hold
// all of their side in a few parts.
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
    const bool all_of_parent = parent >= 0 && frame.nodes == kept[parent].nodes;
    if (frame.nodes < 2 || holds_all || all_of_parent) {
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

/// The calls of one side in the order of the graph, and the frames around each.
struct SideCalls {
  std::vector<const Node*> nodes;
  std::vector<Path> paths;
  std::vector<const Node*> late;  ///< of a joint graph's forward: those that stand among the backward
};

SideCalls calls_of(const Graph& graph, Side side, const std::function<Side(const Node&)>& side_of, bool two_sides,
                   bool backward_alone, const std::vector<bool>& of_tangents) {
  SideCalls calls;
  std::vector<bool> again;  // by node
  bool modules = false, backward_began = false;
  for (const Node* node : graph) {
    if (!node->op()->is_call()) continue;
    backward_began =
        backward_began || std::ranges::any_of(node->inputs(), [](const Node* in) { return is_tangent(*in); });
    if (side_of(*node) != side) continue;
    if (two_sides && side == Side::Forward && backward_began &&
        std::ranges::any_of(node->inputs(), [](const Node* in) { return in->op()->is_call(); })) {
      calls.late.push_back(node);
      continue;
    }
    calls.nodes.push_back(node);
    calls.paths.push_back(path_of(*node));
    again.push_back(backward_alone && !of_tangents[node->id()]);
    modules = modules || (node->origin && !node->origin->modules.empty());
  }
  if (modules)
    name_lines_in_modules(calls.nodes, calls.paths);
  else
    name_blocks(calls.paths, side == Side::Backward || backward_alone, again);
  return calls;
}

}  // namespace

std::vector<Frame> make_frames(const Graph& graph, const std::function<Side(const Node&)>& side_of,
                               const std::unordered_set<std::string>& folded, std::vector<int>& frame_of) {
  std::vector<Frame> frames;
  frame_of.assign(graph.id_limit(), -1);
  std::unordered_map<std::string, int> runs;
  std::unordered_map<int, std::pair<int, int>> lines;  // of frames of files: the first and the last
  const auto add_to = [&](int frame, const Node& node) {
    ++frames[frame].nodes;
    const Node* producer = producer_of(&node);
    if (producer == &node || !producer->meta.known()) frames[frame].bytes.add(node.meta, graph.shapes.get());
  };
  const bool two_sides =
      std::any_of(graph.begin(), graph.end(), [&](const Node* node) { return side_of(*node) == Side::Backward; });
  // A backward alone: all that depends on a tangent, and what is computed again for that.
  std::vector<bool> of_tangents(graph.id_limit());
  bool backward_alone = false;
  for (const Node* node : graph) {
    const bool needs_one = std::ranges::any_of(node->inputs(), [&](const Node* in) { return of_tangents[in->id()]; });
    of_tangents[node->id()] = is_tangent(*node) || needs_one;
    backward_alone = !two_sides && (backward_alone || needs_one);
  }
  for (Side side : {Side::Forward, Side::Backward}) {
    const auto [nodes, paths, late] = calls_of(graph, side, side_of, two_sides, backward_alone, of_tangents);
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
          if (i == 0 && path.size() == 2 && node->origin->modules.empty())
            lines[static_cast<int>(frames.size())] = {node->origin->line, node->origin->line};
          open.push_back(static_cast<int>(frames.size()));
          open_path.push_back(path[i]);
          frames.push_back(std::move(frame));
        }
      }
      if (open.empty()) continue;
      frame_of[node->id()] = open.back();
      const int line = node->origin ? node->origin->line : 0;
      for (int f : open) {
        if (const auto of_file = lines.find(f); of_file != lines.end()) {
          auto& [first, last] = of_file->second;
          first = std::min(first, line), last = std::max(last, line);
        }
        add_to(f, *node);
      }
    }
    // What of the forward stands among the backward can run as soon as its inputs are there.
    for (const Node* node : late) {
      int& home = frame_of[node->id()];
      for (const Node* in : node->inputs()) home = std::max(home, frame_of[in->id()]);
      for (int f = home; f >= 0; f = frames[f].parent) add_to(f, *node);
    }
  }
  for (const auto& [f, span] : lines) {
    frames[f].label += ":" + std::to_string(span.first);
    if (span.second > span.first) frames[f].label += "  to " + std::to_string(span.second);
  }
  drop_useless(frames, frame_of);
  return frames;
}

std::unordered_set<std::string> overview_folds(
    const Picture& open, const std::function<bool(const std::unordered_set<std::string>&)>& fits) {
  constexpr int kOpenAtOnce = 60;  ///< nodes; smaller frames show all of them when the one around them is opened
  constexpr int kMostTries = 12, kMostParts = 40;
  const std::size_t count = open.frames.size();
  std::map<std::string, std::vector<int>> kinds;
  for (std::size_t f = 0; f < count; ++f) kinds[without_numbers(open.frames[f].path)].push_back(static_cast<int>(f));
  std::vector<int> parts(count);  // cards that opening a frame shows
  for (const Card& card : open.cards)
    if (card.frame >= 0 && card.family != Family::Input && !card.again) ++parts[card.frame];
  for (const Frame& frame : open.frames)
    if (frame.parent >= 0) ++parts[frame.parent];
  std::vector<bool> opened(count);
  const auto seen = [&](int f) { return open.frames[f].parent < 0 || opened[open.frames[f].parent]; };
  const auto folds = [&] {
    std::unordered_set<std::string> keys;
    for (std::size_t f = 0; f < count; ++f)
      if (!opened[f] && (seen(static_cast<int>(f)) || open.frames[f].nodes > kOpenAtOnce))
        keys.insert(open.frames[f].key);
    return keys;
  };
  std::unordered_set<std::string> best = folds();
  fits(best);
  for (int tries = 0; tries < kMostTries; ++tries) {
    const std::vector<int>* largest = nullptr;
    int most = 0;
    for (auto& [kind, members] : kinds) {
      int nodes = 0, cards = 0;
      for (int f : members)
        if (seen(f) && !opened[f]) nodes += open.frames[f].nodes, cards += parts[f];
      if (cards > 2 * kMostParts || nodes <= most) continue;
      largest = &members, most = nodes;
    }
    if (!largest) break;
    std::vector<bool> before = opened;
    for (int f : *largest)
      if (open.frames[f].parent < 0 || before[open.frames[f].parent]) opened[f] = true;
    if (std::unordered_set<std::string> next = folds(); fits(next)) {
      best = std::move(next);
    } else {
      opened = std::move(before);
      std::erase_if(kinds, [&](const auto& kind) { return &kind.second == largest; });
    }
  }
  return best;
}

}  // namespace partita::views

// torch.cuda.memory._snapshot() is a dict of lists of dicts: segments with blocks, and events of each device.
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "core/load/sources.h"

namespace partita {
namespace {

constexpr std::size_t most_blocks = 50;

const PickleValue* entry(const PickleValue* dict, std::string_view key) {
  if (const auto* items = dict ? dict->get<PickleDict>() : nullptr)
    for (const auto& [name, value] : items->items)
      if (const auto* text = name->get<std::string>(); text && *text == key) return value;
  return nullptr;
}

std::int64_t number(const PickleValue* dict, std::string_view key) {
  const PickleValue* value = entry(dict, key);
  const auto* n = value ? value->get<std::int64_t>() : nullptr;
  return n ? *n : 0;
}

std::string text(const PickleValue* dict, std::string_view key) {
  const PickleValue* value = entry(dict, key);
  const auto* s = value ? value->get<std::string>() : nullptr;
  return s ? s->substr(0, 300) : std::string();
}

const PickleItems& items(const PickleValue* value) {
  static const PickleItems none;
  const auto* list = value ? value->get<PickleList>() : nullptr;
  return list ? list->items : none;
}

/// "  train.py:12 forward (node mm_1)" of the innermost frame of a program; frames carry nodes where PyTorch added
/// them.
std::string place_of(const PickleValue* of) {
  for (const PickleValue* frame : items(entry(of, "frames"))) {
    const std::string file = text(frame, "filename");
    if (file.empty() || file == "??" || file.ends_with(".cpp") || file.find("/torch/") != file.npos) continue;
    const std::string node = text(frame, "fx_node_name");
    return fmt::format("  {}:{} {}{}", file, number(frame, "line"), text(frame, "name"),
                       node.empty() ? "" : fmt::format(" (node {})", node));
  }
  return {};
}

struct Block {
  std::int64_t size = 0;
  std::string state, place;
};

std::string largest(std::vector<Block> blocks) {
  std::ranges::stable_sort(blocks, std::greater(), &Block::size);
  std::string out = fmt::format("{} blocks in use, the largest first\n", blocks.size());
  for (std::size_t i = 0; i < std::min(blocks.size(), most_blocks); ++i)
    out += fmt::format("{:>14} bytes  {}{}\n", blocks[i].size, blocks[i].state, blocks[i].place);
  if (blocks.size() > most_blocks) out += fmt::format("and {} more\n", blocks.size() - most_blocks);
  return out;
}

/// Of one device's events, how many of each kind, and the most that was allocated beyond what there was at the first.
std::string describe_events(std::size_t device, const PickleItems& events) {
  std::map<std::string, std::size_t> kinds;
  std::int64_t now = 0, most = 0;
  std::size_t at = 0;
  for (std::size_t i = 0; i < events.size(); ++i) {
    const std::string action = text(events[i], "action");
    ++kinds[action];
    if (action == "alloc") now += number(events[i], "size");
    if (action == "free_completed") now -= number(events[i], "size");
    if (now > most) most = now, at = i;
  }
  std::string out = fmt::format("device {}: {} events", device, events.size());
  for (const auto& [action, count] : kinds) out += fmt::format(", {} {}", count, action);
  return out + fmt::format("; at event {} {} bytes more were allocated than before the first\n", at, most);
}

}  // namespace

std::optional<std::string> describe_snapshot(const Pickle& pickle) {
  const PickleValue *segments = entry(pickle.root, "segments"), *traces = entry(pickle.root, "device_traces");
  if (!segments || !segments->get<PickleList>() || !traces || !traces->get<PickleList>()) return std::nullopt;
  std::int64_t total = 0, allocated = 0, active = 0;
  std::vector<Block> used;
  for (const PickleValue* segment : items(segments)) {
    total += number(segment, "total_size");
    allocated += number(segment, "allocated_size");
    active += number(segment, "active_size");
    for (const PickleValue* block : items(entry(segment, "blocks")))
      if (const std::string state = text(block, "state"); state != "inactive")
        used.push_back({number(block, "size"), state, place_of(block)});
  }
  std::string out = fmt::format("{} segments: {} bytes reserved, {} allocated, {} active\n", items(segments).size(),
                                total, allocated, active);
  out += largest(std::move(used));
  const PickleItems& devices = items(traces);
  for (std::size_t i = 0; i < devices.size(); ++i)
    if (!items(devices[i]).empty()) out += describe_events(i, items(devices[i]));
  return out;
}

}  // namespace partita

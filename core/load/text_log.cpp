// Reads what TORCH_LOGS=aot_graphs, output_code, recompiles... writes to stderr. Every line of a message has the same
// prefix, "I1121 08:22:00.675000 PID FILE:LINE] [0/0] [__aot_joint_graph] ", before which there is "[rank0]:" in a
// process of several. Messages of several processes may take turns; what has no prefix the program itself wrote.
#include <algorithm>
#include <array>
#include <deque>
#include <map>

#include <fmt/format.h>

#include "core/load/fx_text.h"
#include "core/load/sources.h"

namespace partita {
namespace {

constexpr std::size_t most_open = 16;  ///< messages that may take turns

struct LogLine {
  std::string_view prefix;      ///< all of it; empty if the line has none
  std::string_view rank;        ///< "rank0"
  std::string_view compile_id;  ///< "0/0"
  std::string_view channel;     ///< "aot_joint_graph"; empty for words to people
  std::string_view content;
};

bool is_glog(std::string_view head) {
  constexpr std::string_view pattern = "A0000 00:00:00.";
  if (head.size() < pattern.size()) return false;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char want = pattern[i], c = head[i];
    const bool fits = want == 'A' ? c >= 'A' && c <= 'Z' : want == '0' ? c >= '0' && c <= '9' : c == want;
    if (!fits) return false;
  }
  return true;
}

/// "[TEXT]" at the beginning, which is taken away with one blank behind it; empty if there is none.
std::string_view take_brackets(std::string_view& rest) {
  const std::size_t close = rest.starts_with('[') ? rest.find(']') : rest.npos;
  if (close == rest.npos) return {};
  const std::string_view out = rest.substr(1, close - 1);
  rest.remove_prefix(close + 1);
  if (rest.starts_with(' ')) rest.remove_prefix(1);
  return out;
}

LogLine split(std::string_view line) {
  LogLine out{.content = line};
  std::string_view rest = line.substr(std::min(line.find_first_not_of(' '), line.size()));
  if (rest.starts_with("[rank")) {
    out.rank = take_brackets(rest);
    if (rest.starts_with(':')) rest.remove_prefix(1);
  }
  const std::size_t place = is_glog(rest) ? rest.find("] ") : rest.npos;
  if (place == rest.npos) return {.content = line};
  rest.remove_prefix(place + 2);
  while (rest.starts_with('[')) {
    std::string_view after = rest;
    const std::string_view tag = take_brackets(after);
    const bool is_channel = tag.starts_with("__"), is_id = tag.find_first_not_of("0123456789/_!") == tag.npos;
    if (tag.empty() || !(is_channel || is_id)) break;
    (is_channel ? out.channel : out.compile_id) = is_channel ? tag.substr(2) : tag;
    rest = after;
    if (is_channel) break;
  }
  // The blank behind the channel is missing where nothing follows.
  out.prefix = line.substr(0, line.size() - rest.size());
  while (out.prefix.ends_with(' ')) out.prefix.remove_suffix(1);
  out.content = rest;
  return out;
}

/// What becomes of a channel's messages.
struct Channel {
  std::string_view name, record;  ///< the channel, and its texts' name, by which questions know them
  ArtefactKind kind;              ///< of its graphs, where their headings do not tell
  bool apart;                     ///< each message is a text of its own; else those of a compilation are one
};
constexpr Channel channels[] = {
    {"graph", "graph", ArtefactKind::Dynamo, true},
    {"graph_code", "graph_code", ArtefactKind::Dynamo, true},
    {"output_code", "output_code", ArtefactKind::Graph, true},
    {"recompiles", "recompile_reasons", ArtefactKind::Graph, true},
    {"graph_breaks", "dynamo_graph_break_reason", ArtefactKind::Graph, true},
};

Channel channel_of(std::string_view name) {
  for (const Channel& row : channels)
    if (row.name == name) return row;
  return {name, name.empty() ? "messages" : name, kind_of_name(name), false};
}

class TextLogReader {
 public:
  TextLogReader(std::shared_ptr<const FileBytes> bytes, const std::string& prefix, Loading& loading)
      : bytes_(std::move(bytes)), text_(bytes_->text()), prefix_(prefix), loading_(loading) {}

  Status read() {
    std::size_t next_report = 0;
    int number = 1;
    for (std::size_t at = 0; at < text_.size(); ++number) {
      if (at >= next_report) {
        TRY_DO(step(&loading_.progress, static_cast<double>(at) / static_cast<double>(text_.size()), "log"));
        next_report = at + (1 << 22);
      }
      const std::size_t end = std::min(text_.find('\n', at), text_.size() - 1) + 1;
      add_line(at, end, number);
      at = end;
    }
    while (!open_.empty()) close_first();
    for (auto& [key, message] : gathered_)
      add(Artefact::of_text(bytes_, std::move(message.pieces)), message, key.back());
    return {};
  }

 private:
  struct Message {
    LogLine head;
    int line = 1;
    std::vector<Artefact::Piece> pieces;
  };

  void add_line(std::size_t at, std::size_t end, int number) {
    std::string_view raw = text_.substr(at, end - at);
    while (raw.ends_with('\n') || raw.ends_with('\r')) raw.remove_suffix(1);
    const LogLine line = split(raw);
    auto message = std::ranges::find(open_, line.prefix, [](const Message& m) { return m.head.prefix; });
    if (message == open_.end()) {
      if (open_.size() == most_open) close_first();
      open_.push_back({line, number, {}});
      message = open_.end() - 1;
    }
    const std::size_t skipped = raw.size() - line.content.size();
    message->pieces.push_back({at + skipped, end - at - skipped, false});
  }

  void close_first() {
    Message message = std::move(open_.front());
    open_.pop_front();
    std::string text;
    for (const Artefact::Piece& piece : message.pieces) text += text_.substr(piece.begin, piece.size);
    const Channel channel = channel_of(message.head.channel);
    if (add_graphs(message, channel, text)) return;
    if (channel.apart && !text.starts_with("Output code written")) {
      add(Artefact::of_text(bytes_, std::move(message.pieces)), message, channel.record);
      return;
    }
    const std::string_view name = channel.apart                 ? "messages"
                                  : message.head.prefix.empty() ? "program_output"
                                                                : channel.record;
    std::array<std::string, 3> key = {std::string(message.head.rank), std::string(message.head.compile_id),
                                      std::string(name)};
    Message& all = gathered_.try_emplace(std::move(key), Message{message.head, message.line, {}}).first->second;
    all.pieces.insert(all.pieces.end(), message.pieces.begin(), message.pieces.end());
  }

  /// The graphs of a message; false if it has none. Behind a heading like " ===== Forward graph 0 =====".
  bool add_graphs(const Message& message, const Channel& channel, const std::string& text) {
    const std::vector<FxSection> graphs = find_fx_graphs(text);
    if (graphs.empty() || channel.name == "output_code") return false;
    for (const FxSection& section : graphs) {
      Artefact a = Artefact::of_string(section.text_of(text));
      std::string heading = text.substr(0, section.begin);
      std::ranges::transform(heading, heading.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? c + 32 : c; });
      a.kind = channel.kind;
      if (a.kind == ArtefactKind::Graph && heading.find("=====") != heading.npos) a.kind = kind_of_name(heading);
      Message placed = message;
      placed.line += section.line - 1;
      add(std::move(a), placed, message.head.prefix.empty() ? "program_output" : message.head.channel);
    }
    return true;
  }

  /// Ids are "rank_0/0_0.NAME".
  void add(Artefact a, const Message& message, std::string_view name) {
    const LogLine& head = message.head;
    a.where = {.file = bytes_->path(), .line = message.line};
    a.group = head.compile_id;
    std::string id(head.compile_id);
    std::ranges::replace(id, '/', '_');
    id += (id.empty() ? "" : ".") + std::string(name);
    if (!head.rank.empty()) {
      a.group = fmt::format("rank {} {}", head.rank.substr(4), head.compile_id);
      id = fmt::format("rank_{}/{}", head.rank.substr(4), id);
    }
    a.title = a.group.empty() ? std::string(name) : fmt::format("{} of {}", name, a.group);
    a.id = join_id(prefix_, id);
    loading_.add(std::move(a));
  }

  std::shared_ptr<const FileBytes> bytes_;
  std::string_view text_;
  std::string prefix_;
  Loading& loading_;
  std::deque<Message> open_;                                ///< whose lines may go on, oldest first
  std::map<std::array<std::string, 3>, Message> gathered_;  ///< by rank, compilation, name
};

}  // namespace

bool is_text_log(std::string_view text, std::string_view) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size() - 1);
    const LogLine line = split(text.substr(0, end));
    if (!line.channel.empty() || !line.compile_id.empty()) return true;
    text.remove_prefix(end + 1);
  }
  return false;
}

Status load_text_log(std::shared_ptr<const FileBytes> bytes, const std::string& prefix, Loading& loading) {
  return TextLogReader(std::move(bytes), prefix, loading).read();
}

}  // namespace partita

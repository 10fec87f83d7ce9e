// Reads what TORCH_LOGS=aot_graphs, aot_joint_graph, graph_code, post_grad_graphs... writes to stderr. Every line of a
// graph follows a prefix like "I1121 08:22:00.675000 PID FILE:LINE] [0/0] [__aot_joint_graph] ".
#include <fmt/format.h>

#include "core/load/sources.h"

namespace partita {
namespace {

struct LogLine {
  std::string_view compile_id;  ///< "0/0"
  std::string_view channel;     ///< "aot_joint_graph"
  std::string_view content;
};

/// Splits a line with a glog prefix. The channel is empty if the line has no prefix.
LogLine split(std::string_view line) {
  LogLine out;
  if (line.size() < 8 || line[0] < 'A' || line[0] > 'Z' || line[1] < '0' || line[1] > '9') return out;
  std::size_t at = line.find("] [");
  if (at == std::string_view::npos) return out;
  std::string_view rest = line.substr(at + 2);
  while (rest.starts_with("[")) {
    std::size_t close = rest.find(']');
    if (close == std::string_view::npos) return out;
    std::string_view tag = rest.substr(1, close - 1);
    rest.remove_prefix(close + 1);
    if (rest.starts_with(" ")) rest.remove_prefix(1);
    if (!tag.starts_with("__")) {
      out.compile_id = tag;
      continue;
    }
    out.channel = tag.substr(2);
    break;
  }
  out.content = rest;
  return out;
}

/// The class statement in "site-packages/torch/fx/_lazy_graph_module.py class inner_f(torch.nn.Module):".
std::string_view class_line(std::string_view content) {
  std::size_t at = content.find("class ");
  if (at == std::string_view::npos || !content.ends_with("(torch.nn.Module):")) return {};
  return content.substr(at);
}

}  // namespace

bool is_text_log(std::string_view text, std::string_view) {
  for (int i = 0; i < 200 && !text.empty(); ++i) {
    std::size_t end = std::min(text.find('\n'), text.size() - 1);
    if (!split(text.substr(0, end)).channel.empty()) return true;
    text.remove_prefix(end + 1);
  }
  return false;
}

Status load_text_log(std::shared_ptr<const FileBytes> bytes, const std::string& prefix, Loading& loading) {
  std::string_view text = bytes->text();
  std::string graph, channel, compile_id;
  int start = 0, number = 1;
  ArtefactKind heading = ArtefactKind::Graph;  // kind in the last heading, as " ===== Forward graph 0 ====="
  auto finish = [&] {
    if (graph.empty()) return;
    Artefact a = Artefact::of_string(std::move(graph));
    graph.clear();
    a.where = {.file = bytes->path(), .line = start};
    a.kind = kind_of_name(channel);
    if (a.kind == ArtefactKind::Graph) a.kind = heading;
    a.group = compile_id;
    a.title = fmt::format("{} of {}", channel, compile_id);
    std::string id = compile_id + (compile_id.empty() ? "" : ".") + channel;
    for (char& c : id)
      if (c == '/') c = '_';
    a.id = join_id(prefix, id);
    loading.add(std::move(a));
  };
  for (std::size_t at = 0; at < text.size(); ++number) {
    std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view raw = text.substr(at, end - at);
    if (raw.ends_with("\r")) raw.remove_suffix(1);
    at = end + 1;
    LogLine line = split(raw);
    if (std::string_view header = class_line(line.content);
        !line.channel.empty() && !header.empty() && line.content.find("    class ") != 0) {
      finish();
      channel = line.channel;
      compile_id = line.compile_id;
      start = number;
      graph = fmt::format("{}\n", header);
    } else if (line.content.starts_with(" ===== ")) {
      finish();
      std::string title(line.content);
      for (char& c : title) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
      heading = kind_of_name(title);
    } else if (!graph.empty()) {
      bool same = line.channel == channel && line.compile_id == compile_id;
      bool inside = same && (line.content.empty() || line.content.starts_with(" "));
      if (inside)
        graph += fmt::format("{}\n", line.content);
      else
        finish();
    }
  }
  finish();
  return {};
}

}  // namespace partita

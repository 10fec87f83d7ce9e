// Reads inductor's output code line by line: definitions of kernels, their calls, and comments that name nodes. Links
// calls to nodes by the log's provenance mappings, else by comments, and counts names that no graph has.
#include "core/load/output_code.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <unordered_map>

#include <nlohmann/json.hpp>

#include "core/base/text.h"
#include "core/load/output_flow.h"
#include "core/load/records.h"

namespace partita {
namespace {

using Json = nlohmann::json;
using Link = InductorKernel::Link;

/// The dotted name at the beginning of a text.
std::string_view dotted_name(std::string_view text) {
  std::size_t n = 0;
  while (n < text.size() && (std::isalnum(static_cast<unsigned char>(text[n])) || text[n] == '_' || text[n] == '.'))
    ++n;
  return text.substr(0, n);
}

class Reader {
 public:
  explicit Reader(std::string_view text) : lines_(lines_of(text)) {}

  std::vector<InductorKernel> read() {
    for (at_ = 0; at_ < lines_.size(); ++at_) {
      const std::string_view line = trimmed(lines_[at_]);
      if (line.starts_with("#"))
        comment(trimmed(line.substr(1)));
      else if (const std::size_t is = line.find(" = async_compile."); is != std::string_view::npos)
        definition(line.substr(0, is), line.substr(is + std::string_view(" = async_compile.").size()));
      else
        statement(line);
    }
    return std::move(kernels_);
  }

 private:
  /// What the comments before a statement say.
  struct Comments {
    std::vector<std::string> sources, nodes;
    std::string handle;
    bool any = false;
  };
  struct Definition {
    std::string_view name;
    std::string language;
    int begin = 0, end = 0;
    Comments comments;
  };

  void comment(std::string_view text) {
    constexpr std::string_view sorted = "Topologically Sorted Source Nodes: [", handle = "[Provenance debug handles] ";
    if (text.starts_with(sorted)) {
      const auto items = call_arguments(text.substr(sorted.size()));
      comments_.sources.assign(items.begin(), items.end());
      comments_.any = true;
    } else if (text.starts_with(handle)) {
      comments_.handle = text.substr(handle.size());
    } else if (text.starts_with("%")) {
      comments_.nodes.emplace_back(dotted_name(text.substr(1)));
      comments_.any = true;
    }
  }

  void definition(std::string_view name, std::string_view call) {
    Definition d{name, std::string(dotted_name(call)), static_cast<int>(at_) + 1, static_cast<int>(at_) + 1, comments_};
    d.language = d.language.starts_with("cpp") ? "cpp" : d.language.substr(0, d.language.find('.'));
    comments_ = {};
    // The code is a text in ''' ... '''.
    const std::size_t open = lines_[at_].find("'''");
    if (open != std::string_view::npos && lines_[at_].find("'''", open + 3) == std::string_view::npos) {
      while (at_ + 1 < lines_.size() && lines_[at_ + 1].find("'''") == std::string_view::npos) ++at_;
      if (at_ + 1 < lines_.size()) ++at_;
      d.end = static_cast<int>(at_) + 1;
    }
    definition_of_.insert_or_assign(d.name, definitions_.size());
    definitions_.push_back(std::move(d));
  }

  void statement(std::string_view line) {
    std::string_view callee = line;
    if (const std::size_t is = callee.find(" = "); is != std::string_view::npos && is < callee.find('('))
      callee = trimmed(callee.substr(is + 3));
    const std::string_view dotted = dotted_name(callee);
    if (!callee.substr(dotted.size()).starts_with("(") || dotted.empty()) {
      if (!line.empty() && !line.starts_with("stream")) comments_ = {};
      return;
    }
    std::string_view name = dotted;
    if (name.ends_with(".run")) name.remove_suffix(4);
    const auto known = definition_of_.find(name);
    const Definition* own = known == definition_of_.end() ? nullptr : &definitions_[known->second];
    const bool library = name.starts_with("extern_kernels.") || name.starts_with("aten.") ||
                         name.starts_with("torch.ops.") || name.starts_with("inductor_ops.");
    if (!own && !library) {
      // A stream or a buffer may be asked for between the comment and the call.
      if (!dotted.starts_with("get_raw_stream") && !dotted.starts_with("empty_strided")) comments_ = {};
      return;
    }
    InductorKernel k;
    k.name = own ? name : dotted;
    k.language = own ? own->language : "call";
    k.call = static_cast<int>(at_) + 1;
    k.handle = comments_.handle;
    Comments comments = std::exchange(comments_, {});
    if (own) {
      k.begin = own->begin;
      k.end = own->end;
      if (comments.sources.empty()) comments.sources = own->comments.sources;
      if (comments.nodes.empty()) comments.nodes = own->comments.nodes;
      comments.any |= own->comments.any;
    }
    k.sources = std::move(comments.sources);
    k.nodes = std::move(comments.nodes);
    if (comments.any && !(k.sources.empty() && k.nodes.empty())) k.link = Link::Comments;
    kernels_.push_back(std::move(k));
  }

  std::vector<std::string_view> lines_;
  std::size_t at_ = 0;
  Comments comments_;
  std::vector<Definition> definitions_;
  std::unordered_map<std::string_view, std::size_t> definition_of_;
  std::vector<InductorKernel> kernels_;
};

/// The frames in "  File \"zoo.py\", line 41, in forward\n    code\n".
void add_frames(std::string_view trace, std::vector<StackFrame>& frames) {
  const std::vector<std::string_view> lines = lines_of(trace);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::string_view line = trimmed(lines[i]);
    constexpr std::string_view file = "File \"", number = "\", line ";
    const std::size_t at = line.find(number);
    if (!line.starts_with(file) || at == std::string_view::npos) continue;
    StackFrame frame;
    frame.file = line.substr(file.size(), at - file.size());
    const std::string_view rest = line.substr(at + number.size());
    std::from_chars(rest.data(), rest.data() + rest.size(), frame.line);
    if (const std::size_t in = rest.find(" in "); in != std::string_view::npos) frame.function = rest.substr(in + 4);
    if (i + 1 < lines.size()) frame.code = trimmed(lines[i + 1]);
    if (std::ranges::find(frames, frame) == frames.end()) frames.push_back(std::move(frame));
  }
}

/// The strings of a JSON list; nothing when it is none.
std::vector<std::string> strings(const Json& list) {
  std::vector<std::string> out;
  if (list.is_array())
    for (const Json& item : list)
      if (item.is_string()) out.push_back(item.get<std::string>());
  return out;
}

/// Moves names that the graph does not have from `names` to `missed`, when there is a graph.
void keep_known(std::vector<std::string>& names, const Graph* graph, std::vector<std::string>& missed) {
  if (!graph) return;
  std::erase_if(names, [&](const std::string& name) {
    if (graph->find(name)) return false;
    missed.push_back(name);
    return true;
  });
}

/// Nodes of the backward are named themselves among the sources, since they come from no line of the program.
void find_own_nodes(InductorKernel& k, const Graph* pre, const Graph* post) {
  if (!pre || !post) return;
  std::erase_if(k.sources, [&](const std::string& name) {
    if (pre->find(name) || !post->find(name)) return false;
    if (std::ranges::find(k.nodes, name) == k.nodes.end()) k.nodes.push_back(name);
    return true;
  });
}

void link(InductorCode& code, const Json& mapping, const Json& traces) {
  const auto parsed = [](const Artefact* a) -> std::unique_ptr<Graph> {
    if (!a) return nullptr;
    auto graph = a->graph();
    if (!graph) return nullptr;
    return *std::move(graph);
  };
  const std::unique_ptr<Graph> post = parsed(code.post_grad), pre = parsed(code.pre_grad);
  const auto entry = [](const Json& object, const char* table, const std::string& key) {
    const auto found = object.find(table);
    return found != object.end() && found->contains(key) ? strings((*found)[key]) : std::vector<std::string>();
  };
  for (InductorKernel& k : code.kernels) {
    if (std::vector<std::string> nodes = entry(mapping, "cppCodeToPost", k.handle); !nodes.empty()) {
      k.nodes = std::move(nodes);
      k.link = Link::Mapping;
      std::set<std::string> sources;
      for (const std::string& node : k.nodes)
        for (std::string& source : entry(mapping, "postToPre", node)) sources.insert(std::move(source));
      k.sources.assign(sources.begin(), sources.end());
    }
    if (traces.contains(k.handle))
      for (const std::string& trace : strings(traces[k.handle])) add_frames(trace, k.frames);
    find_own_nodes(k, pre.get(), post.get());
    keep_known(k.nodes, post.get(), k.missed);
    keep_known(k.sources, pre.get(), k.missed);
  }
  if (post) link_by_flow(code.text, *post, code.kernels);
  for (InductorKernel& k : code.kernels) {
    if (post) std::ranges::stable_sort(k.nodes, {}, [&](const std::string& name) { return post->find(name)->id(); });
    if (k.nodes.empty() && k.sources.empty()) k.link = k.frames.empty() ? Link::None : Link::Lines;
    // Frames of the nodes, where no traces were logged.
    if (k.frames.empty())
      for (const auto& [names, graph] : {std::pair(&k.nodes, post.get()), std::pair(&k.sources, pre.get())})
        for (const std::string& name : *names)
          if (const Node* node = graph ? graph->find(name) : nullptr; node && node->origin && node->origin->line > 0)
            if (const StackFrame& frame = node->origin->of_user(); std::ranges::find(k.frames, frame) == k.frames.end())
              k.frames.push_back(frame);
    code.found += k.nodes.size() + k.sources.size();
    code.missed += k.missed.size() + (k.link == Link::None ? 1 : 0);
  }
}

Json parsed_json(const Artefact& a) {
  const auto text = a.text();
  return text ? Json::parse(*text, nullptr, false) : Json();
}

}  // namespace

std::string_view name(InductorKernel::Link link) {
  static constexpr std::string_view names[] = {"none", "lines", "comments", "flow", "mapping"};
  return names[static_cast<std::size_t>(link)];
}

std::string InductorCode::code_of(const InductorKernel& kernel) const {
  const std::vector<std::string_view> lines = lines_of(text);
  const int begin = kernel.begin > 0 ? kernel.begin : kernel.call, end = kernel.begin > 0 ? kernel.end : kernel.call;
  std::string out;
  for (int i = begin; i <= end && i <= static_cast<int>(lines.size()); ++i)
    out += std::string(lines[static_cast<std::size_t>(i - 1)]) + "\n";
  return out;
}

std::vector<InductorKernel> read_output_code(std::string_view text) {
  return Reader(text).read();
}

std::vector<InductorCode> inductor_code(const Loaded& loaded) {
  std::vector<InductorCode> out;
  const std::vector<Artefact>& all = loaded.artefacts;
  const auto is_code = [](const Artefact& a) {
    return record_name(a) == "inductor_output_code" || record_name(a) == "output_code";
  };
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!is_code(all[i])) continue;
    auto text = all[i].text();
    if (!text) continue;
    InductorCode code{.code = &all[i], .text = *std::move(text)};
    code.kernels = read_output_code(code.text);
    // A log has the graph before its code and the mappings after it; a folder has all of one graph together.
    Json mapping, traces;
    // Each rank has its own log, and a compilation of this name.
    const std::string_view log = log_of(all[i]);
    const auto of_group = [&](const Artefact& a) { return a.group == all[i].group && log_of(a) == log; };
    for (std::size_t j = 0; j < all.size(); ++j) {
      const Artefact& a = all[j];
      if (!of_group(a)) continue;
      if (a.kind == ArtefactKind::PostGrad && (j < i || !code.post_grad)) code.post_grad = &a;
      if (a.kind == ArtefactKind::Dynamo || a.kind == ArtefactKind::PreGrad)
        if (j < i || !code.pre_grad) code.pre_grad = &a;
    }
    for (std::size_t j = i + 1; j < all.size() && !(of_group(all[j]) && is_code(all[j])); ++j) {
      if (!of_group(all[j])) continue;
      if (record_name(all[j]) == "inductor_provenance_tracking_node_mappings") mapping = parsed_json(all[j]);
      if (record_name(all[j]) == "inductor_provenance_tracking_kernel_stack_traces") traces = parsed_json(all[j]);
      if (record_name(all[j]).starts_with("fx_graph_cache_") && code.key.empty())
        code.key = text_field(parsed_json(all[j]), "key");
    }
    link(code, mapping, traces);
    out.push_back(std::move(code));
  }
  return out;
}

}  // namespace partita

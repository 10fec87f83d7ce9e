// Gives each run of a profile the graph whose code ran, and each of its calls the call of that code.
#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/tasks/joined_profile.h"
#include "app/tasks/profile_match.h"
#include "core/base/mapped.h"
#include "core/base/number_text.h"
#include "core/load/output_flow.h"
#include "core/load/records.h"

namespace partita {
namespace {

using Kind = ProfiledCall::Kind;

std::unique_ptr<Graph> parsed(const Artefact* artefact) {
  if (!artefact) return nullptr;
  auto graph = artefact->graph();
  return graph ? *std::move(graph) : nullptr;
}

bool is_backward(const Graph& graph) {
  return std::ranges::any_of(graph.placeholders(), [](const Node* n) { return n->name().starts_with("tangents_"); });
}

bool has_symbols(const Graph& graph) {
  return std::ranges::any_of(graph.placeholders(), [](const Node* n) { return n->meta.sym() != nullptr; });
}

/// "a, b and 3 more".
std::string first_names(const std::vector<std::string>& names) {
  constexpr std::size_t most = 5;
  const auto end = names.begin() + static_cast<std::ptrdiff_t>(std::min(names.size(), most));
  std::string out = fmt::format("{}", fmt::join(names.begin(), end, ", "));
  if (names.size() > most) out += fmt::format(" and {} more", names.size() - most);
  return out;
}

class Join {
 public:
  Join(const Loaded& loaded, ProfiledLog& out) : loaded_(loaded), out_(out), profile_(*out.profile) {}

  /// Error profile.calls for more different calls in more steps than there is room for.
  Status join() {
    for (std::size_t c = 0; c < out_.codes.size(); ++c)
      if (!out_.codes[c].key.empty()) codes_of_[out_.codes[c].key].push_back(c);
    for (const Profile::Run& run : profile_.runs) {
      add(run);
      if (rows_ > most_rows_)
        return unsupported("profile.calls",
                           fmt::format("compiled graphs have more than {} different calls in {} steps; profile fewer",
                                       most_rows_, profile_.steps.size()),
                           {.file = profile_.path});
    }
    for (ProfiledGraph& graph : out_.graphs) finish(graph);
    tell();
    return {};
  }

 private:
  /// How a run of one sequence of calls belongs to a graph.
  struct Joined {
    std::size_t graph = 0;
    std::vector<std::size_t> calls;  ///< in ProfiledGraph::calls, by event
  };

  void add(const Profile::Run& run) {
    std::vector<std::uint32_t> key = {run.key, run.key == 0 ? run.compile_id : 0};
    for (std::size_t c = run.first; c < run.last; ++c) key.push_back(profile_.calls[c].name);
    auto known = joined_.find(key);
    if (known == joined_.end()) known = joined_.emplace(std::move(key), join_new(run)).first;
    const Joined& joined = known->second;
    ProfiledGraph& graph = out_.graphs[joined.graph];
    double total = 0, host = 0;
    for (std::size_t c = run.first; c < run.last; ++c) {
      const Profile::Call& event = profile_.calls[c];
      ProfiledCall& call = graph.calls[joined.calls[c - run.first]];
      const double seconds = 1e-9 * static_cast<double>(profile_.time_of(event));
      constexpr std::size_t enough_sizes = 16;
      if (event.dims != 0 && call.kind == Kind::Library)
        if (std::set<std::uint32_t>& seen = dims_[{joined.graph, call.kernel}]; seen.size() < enough_sizes)
          seen.insert(event.dims);
      call.seconds[run.step] += seconds;
      ++call.calls[run.step];
      total += seconds;
      host += 1e-9 * static_cast<double>(event.host);
    }
    const double length = 1e-9 * static_cast<double>(run.length);
    graph.seconds[run.step] += profile_.on_device ? total : length;
    ++graph.runs[run.step];
    wrappers_[joined.graph].seconds[run.step] += std::max(length - host, 0.0);
    ++wrappers_[joined.graph].calls[run.step];
  }

  std::vector<std::string> names_of(const Profile::Run& run) const {
    std::vector<std::string> names;
    for (std::size_t c = run.first; c < run.last; ++c) names.push_back(profile_.texts.text(profile_.calls[c].name));
    return names;
  }

  Joined join_new(const Profile::Run& run) {
    const std::vector<std::string> names = names_of(run);
    const std::vector<std::size_t> codes = run.key != 0 ? codes_of_key(run) : codes_without_key(run, names);
    std::vector<MatchedEvent> matches(names.size());
    if (!codes.empty()) matches = match_events(names, out_.codes[codes.front()].kernels);
    Joined joined{graph_of(profile_.texts.text(run.key), codes), {}};
    for (std::size_t i = 0; i < names.size(); ++i) joined.calls.push_back(call_of(joined.graph, matches[i], names[i]));
    return joined;
  }

  std::vector<std::size_t> codes_of_key(const Profile::Run& run) const {
    const auto found = codes_of_.find(profile_.texts.text(run.key));
    return found == codes_of_.end() ? std::vector<std::size_t>() : found->second;
  }

  /// Of the codes that no cache has, and that are of the region in which it ran, the one that its calls fit best.
  std::vector<std::size_t> codes_without_key(const Profile::Run& run, const std::vector<std::string>& names) {
    const std::string& region = profile_.texts.text(run.compile_id);
    std::vector<std::size_t> best;
    std::size_t most = 0;
    for (std::size_t c = 0; c < out_.codes.size(); ++c) {
      const InductorCode& code = out_.codes[c];
      // A compilation that began anew has the number of its attempt behind it: "0/0_1".
      const std::string& group = code.code->group;
      const bool of_region = region.empty() || group == region || group.starts_with(region + "_");
      if (!code.key.empty() || !of_region) continue;
      const auto matches = match_events(names, code.kernels);
      const auto fits = static_cast<std::size_t>(
          std::ranges::count_if(matches, [](const MatchedEvent& m) { return m.match == ProfiledCall::Match::Order; }));
      // Twice those that fit, less all there are: what is missing in either speaks against it.
      const std::size_t score = fits == 0 ? 0 : 1 + 4 * fits * names.size() / (names.size() + code.kernels.size());
      if (score > most) best.clear();
      if (score >= most && fits > 0) best.push_back(c);
      most = std::max(most, score);
    }
    if (best.size() > 1) unclear_.insert(best.begin(), best.end());
    return best;
  }

  std::size_t graph_of(const std::string& key, const std::vector<std::size_t>& codes) {
    const auto known =
        std::ranges::find_if(out_.graphs, [&](const ProfiledGraph& g) { return g.key == key && g.codes == codes; });
    if (known != out_.graphs.end()) return static_cast<std::size_t>(known - out_.graphs.begin());
    ProfiledGraph graph;
    graph.key = key;
    graph.codes = codes;
    graph.runs.resize(profile_.steps.size());
    graph.seconds.resize(profile_.steps.size());
    ++rows_;
    out_.graphs.push_back(std::move(graph));
    wrappers_.push_back(new_call(Kind::Wrapper, "wrapper"));
    return out_.graphs.size() - 1;
  }

  ProfiledCall new_call(Kind kind, std::string name) const {
    ProfiledCall call;
    call.kind = kind;
    call.name = std::move(name);
    call.seconds.resize(profile_.steps.size());
    call.calls.resize(profile_.steps.size());
    return call;
  }

  std::size_t call_of(std::size_t graph, const MatchedEvent& match, const std::string& name) {
    std::vector<ProfiledCall>& calls = out_.graphs[graph].calls;
    const auto known = std::ranges::find_if(calls, [&](const ProfiledCall& c) {
      return match.kernel >= 0 ? c.kernel == match.kernel : c.kernel < 0 && c.name == name;
    });
    if (known != calls.end()) return static_cast<std::size_t>(known - calls.begin());
    if (++rows_ > most_rows_ && !calls.empty()) return 0;  // join() ends with an error
    ProfiledCall call = new_call(Kind::Other, name);
    if (match.kernel >= 0) {
      const InductorKernel& kernel =
          out_.codes[out_.graphs[graph].codes.front()].kernels[static_cast<std::size_t>(match.kernel)];
      call.kind = kernel.language == "call" ? Kind::Library : Kind::Kernel;
      call.match = match.match;
      call.kernel = match.kernel;
      call.name = kernel.name;
      call.nodes = kernel.nodes;
      call.sources = kernel.sources;
      call.frames = kernel.frames;
    }
    calls.push_back(std::move(call));
    return calls.size() - 1;
  }

  /// Order, name, costs and what is missing, once all runs are there.
  void finish(ProfiledGraph& graph) {
    std::ranges::stable_sort(graph.calls, {},
                             [](const ProfiledCall& c) { return static_cast<unsigned>(c.kernel); });  // -1 last
    graph.calls.push_back(std::move(wrappers_[static_cast<std::size_t>(&graph - out_.graphs.data())]));
    if (graph.codes.empty()) {
      graph.name = graph.key.empty() ? "a graph that no cache knows" : graph.key;
      return;
    }
    const InductorCode& code = out_.codes[graph.codes.front()];
    const std::unique_ptr<Graph> post = parsed(code.post_grad);
    graph.name = name_of(code, post.get());
    if (graph.codes.size() > 1) {
      std::set<std::string> also;  // of other ranks it is the same compilation
      for (const std::size_t c : graph.codes)
        if (out_.codes[c].code->group != code.code->group) also.insert(out_.codes[c].code->group);
      if (!also.empty()) graph.name += fmt::format(" (and of {})", fmt::join(also, ", "));
    }
    const auto nodes = mapped(code.kernels, &InductorKernel::nodes);
    std::vector<std::optional<CallCost>> costs(nodes.size());
    if (post) costs = call_costs(*post, nodes);
    graph.assumed_sizes = post && has_symbols(*post);
    std::set<int> heard;
    for (ProfiledCall& call : graph.calls) {
      if (call.kernel >= 0) call.cost = costs[static_cast<std::size_t>(call.kernel)];
      if (post && call.kind == Kind::Library) check_sizes(graph, call, *post);
      heard.insert(call.kernel);
    }
    for (std::size_t k = 0; k < code.kernels.size(); ++k)
      if (!heard.contains(static_cast<int>(k))) graph.silent.push_back(code.kernels[k].name);
  }

  void check_sizes(const ProfiledGraph& graph, const ProfiledCall& call, const Graph& post) {
    const auto seen = dims_.find({static_cast<std::size_t>(&graph - out_.graphs.data()), call.kernel});
    if (seen == dims_.end() || call.match == ProfiledCall::Match::Place) return;
    const std::string operation =
        called_operator(out_.codes[graph.codes.front()].kernels[static_cast<std::size_t>(call.kernel)]);
    for (const std::uint32_t dims : seen->second)
      if (!sizes_agree(post, call.nodes, operation, profile_.texts.text(dims)))
        return other_sizes_.push_back(fmt::format("{} of {}", call.name, graph.name));
  }

  std::string name_of(const InductorCode& code, const Graph* post) const {
    const std::string of = code.code->group.empty() ? code.code->id : code.code->group;
    if (!post) return of;
    if (is_backward(*post)) return of + " backward";
    const bool trains = std::ranges::any_of(loaded_.artefacts, [&](const Artefact& a) {
      return a.kind == ArtefactKind::Backward && a.group == code.code->group && log_of(a) == log_of(*code.code);
    });
    return of + (trains ? " forward" : " inference");
  }

  void tell() {
    std::size_t unknown = 0;
    for (const ProfiledGraph& graph : out_.graphs) {
      unknown += graph.codes.empty();
      if (graph.silent.empty() || graph.codes.empty()) continue;
      const auto& kernels = out_.codes[graph.codes.front()].kernels;
      const auto is_own = [&](const std::string& name) {
        const auto k = std::ranges::find(kernels, name, &InductorKernel::name);
        return k != kernels.end() && k->language == "cpp";
      };
      const bool no_own = std::ranges::any_of(graph.silent, is_own) &&
                          std::ranges::none_of(graph.calls, [](const auto& c) { return c.kind == Kind::Kernel; });
      out_.notes.push_back(fmt::format(
          "{}: {} of its code did not show in the profile{}; what they took is the wrapper's", graph.name,
          count_text(static_cast<std::int64_t>(graph.silent.size()), "call"),
          no_own ? ", since C++ kernels are recorded only when TORCHINDUCTOR_CPP_ENABLE_KERNEL_PROFILE=1 was set while "
                   "they were compiled"
                 : " (" + first_names(graph.silent) + ")"));
    }
    if (unknown > 0)
      out_.notes.push_back(fmt::format("the log has no code of {} that ran; it is of another run, or incomplete",
                                       count_text(static_cast<std::int64_t>(unknown), "graph")));
    if (!other_sizes_.empty())
      out_.notes.push_back(
          fmt::format("{} took tensors of other sizes than their nodes ({}); the log may be of another run",
                      count_text(static_cast<std::int64_t>(other_sizes_.size()), "call"), first_names(other_sizes_)));
    if (!unclear_.empty())
      out_.notes.push_back("several graphs that the caches do not know have the same calls; their times are together");
  }

  const Loaded& loaded_;
  ProfiledLog& out_;
  const Profile& profile_;
  std::map<std::string, std::vector<std::size_t>> codes_of_;             ///< by key
  std::map<std::vector<std::uint32_t>, Joined> joined_;                  ///< by key, region and names of the calls
  std::vector<ProfiledCall> wrappers_;                                   ///< by graph
  std::map<std::pair<std::size_t, int>, std::set<std::uint32_t>> dims_;  ///< of library calls, by graph and kernel
  std::vector<std::string> other_sizes_;
  std::set<std::size_t> unclear_;
  std::size_t rows_ = 0;  ///< graphs and their calls
  /// Each has 12 bytes for a step.
  const std::size_t most_rows_ = std::min<std::size_t>(100'000, 40'000'000 / profile_.steps.size());
};

}  // namespace

Result<ProfiledLog> join_profile(const Loaded& loaded, std::shared_ptr<const Profile> profile) {
  ProfiledLog out;
  out.profile = std::move(profile);
  out.codes = inductor_code(loaded);
  if (out.codes.empty())
    return input_error("profile.no_code",
                       "has no output code of inductor, to which a profile could be joined; give the log that "
                       "TORCH_TRACE wrote in the run that was profiled",
                       {.file = loaded.path});
  for (const Diagnostic& note : out.profile->notes) out.notes.push_back(note.message);
  TRY_DO(Join(loaded, out).join());
  return out;
}

Result<ProfiledLog> profiled(const Loaded& loaded, const std::string& path, const Progress* progress) {
  TRY(std::shared_ptr<const Profile> profile, read_profile(path, progress));
  return join_profile(loaded, std::move(profile));
}

}  // namespace partita

// Minifies a graph with an oracle that costs almost nothing: it fails if the graph holds an operator. This measures the
// minifier itself; tests/bench/minify_beside_torch.py runs PyTorch's minifier beside it.
//   bench_minify GRAPH.py aten.tanh.default
#include <cstdio>

#include <fmt/format.h>

#include "core/load/session.h"
#include "core/minify/reduce_graph.h"
#include "core/minify/start.h"

using namespace partita;

namespace {

minify::Oracle holds(const Op* op) {
  minify::Oracle o;
  o.question = "holds " + op->name;
  o.judge = [op](const minify::Candidate& c, const Progress*) -> Result<minify::Verdict> {
    for (const Node* node : *c.graph)
      if (node->is(op)) return minify::Verdict(minify::Failure{"holds", {}, {}, {}});
    return minify::Verdict();
  };
  return o;
}

Result<minify::MinifyResult> run(const std::string& path, const Op* op) {
  TRY(const Loaded loaded, load(path));
  TRY(const Artefact* artefact, loaded.pick(""));
  TRY(minify::Start start, minify::make_start(*artefact, TensorFile(), 1, false));
  return minify::reduce(start.graph, std::move(start.inputs), holds(op), {.simplify = false});
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "bench_minify GRAPH.py OPERATOR\n");
    return 2;
  }
  const auto r = run(argv[1], Op::torch(argv[2]));
  if (!r) {
    std::fprintf(stderr, "%s\n", r.error().line().c_str());
    return r.error().exit_code();
  }
  fmt::print(
      "{{\"seconds\": {:.6f}, \"tries\": {}, \"nodes_tried\": {}, \"nodes_per_second\": {:.0f}, \"calls\": {}, "
      "\"start_calls\": {}}}\n",
      r->seconds, r->tries, r->nodes_tried, static_cast<double>(r->nodes_tried) / r->seconds, r->calls, r->start_calls);
  return 0;
}

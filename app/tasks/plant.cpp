#include "app/tasks/plant.h"

#include <csignal>
#include <thread>

#include <fmt/format.h>

#include "core/base/whereabouts.h"
#include "core/ops/schema/schema.h"

namespace partita {
namespace {

/// Makes every value of the operator one percent (integers: one, truths: the other) off, in sub graphs too.
void make_wrong(Graph& graph, const Op* op) {
  for (const auto& [target, child] : graph.children) make_wrong(*child, op);
  for (Node* node : graph) {
    const TensorMeta* t = node->is(op) ? node->meta.tensor() : nullptr;
    if (!t) continue;
    const bool floats = is_floating(t->dtype) || is_complex(t->dtype);
    Args args{Arg(node)};
    if (floats) args.emplace_back(1.01);
    if (!floats && t->dtype != DType::Bool) args.emplace_back(1);
    Node* wrong = graph.create(Op::torch(floats                    ? "aten.mul.Tensor"
                                         : t->dtype == DType::Bool ? "aten.logical_not.default"
                                                                   : "aten.add.Tensor"),
                               {}, {}, node->name() + "_wrong", node->next());
    wrong->meta = node->meta;
    node->replace_all_uses_with(wrong);
    wrong->set_args(std::move(args), {});
  }
}

void find_calls(const Graph& graph, const Op* op, std::vector<std::string>& found) {
  for (const Node* node : graph)
    if (node->is(op)) found.push_back(node->name());
  for (const auto& [target, child] : graph.children) find_calls(*child, op, found);
}

}  // namespace

Result<std::pair<const Op*, Plant>> parse_plant(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  const std::string kind = colon == std::string::npos ? "" : text.substr(colon + 1);
  const Op* op = Op::torch(text.substr(0, colon));
  if (!kind.empty() && !find_schema(op))
    return input_error(
        "cli.usage",
        fmt::format("there is no operator {} to plant a fault in; `partita ops` lists those there are", op->name));
  if (kind == "wrong") return std::pair(op, Plant::Wrong);
  if (kind == "crash") return std::pair(op, Plant::Crash);
  if (kind == "hang") return std::pair(op, Plant::Hang);
  return input_error("cli.usage",
                     fmt::format("--plant takes OP:wrong, OP:crash or OP:hang, as aten.tanh.default:wrong, "
                                 "and got {}",
                                 text));
}

std::string planted_side(const std::string& plant) {
  return fmt::format("{}+plant={}", default_compiler().name, plant);
}

CompileFn planted(CompileFn compile, const Op* op, Plant plant) {
  return [compile = std::move(compile), op, plant](const Graph& graph) -> Result<CompiledFn> {
    std::vector<std::string> found;
    find_calls(graph, op, found);
    if (found.empty()) return compile(graph);
    now_at("compiling " + op->name, found);
    if (plant == Plant::Crash) std::raise(SIGSEGV);
    while (plant == Plant::Hang) std::this_thread::sleep_for(std::chrono::seconds(1));
    const std::shared_ptr<Graph> wrong = graph.clone();
    make_wrong(*wrong, op);
    TRY(const CompiledFn run, compile(*wrong));
    return CompiledFn([wrong, run](std::vector<Value> inputs) { return run(std::move(inputs)); });
  };
}

void PlantWatch::see(const Graph& graph) {
  const auto plant = parse_plant(plant_);
  std::vector<std::string> found;
  if (plant) find_calls(graph, plant->first, found);
  if (!found.empty()) met_ = true;
}

std::shared_ptr<PlantWatch> plant_in(WorkerOptions& worker, const std::string& plant) {
  worker.plant = plant;
  const auto watch = std::make_shared<PlantWatch>(plant);
  worker.on_graph = [watch](const Graph& graph) { watch->see(graph); };
  return watch;
}

Status PlantWatch::met() const {
  if (met_) return {};
  return input_error("cli.plant", fmt::format("--plant {}: no graph that was compiled calls this operator, so nothing "
                                              "was planted; `aot --as-run` writes those graphs",
                                              plant_));
}

}  // namespace partita

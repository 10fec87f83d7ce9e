#include "codegen/driver.h"

#include <atomic>

#include <fmt/format.h>

#include "codegen/compiled_graph.h"
#include "codegen/cpu/kernel_forms.h"
#include "codegen/cuda/cuda_forms.h"
#include "codegen/cuda/driver.h"
#include "codegen/save_args.h"
#include "codegen/worker.h"
#include "core/aot/pipeline.h"
#include "core/base/build_id.h"
#include "core/ir/place.h"
#include "core/ops/record.h"

namespace partita {
namespace {

bool caches(const BackendOptions& options) {
  return options.store && !options.config.force_disable_caches && !build_id().empty();
}

/// The options, with the device that they ask for.
Result<BackendOptions> with_device(BackendOptions options) {
  if (options.on_device && !options.device) {
    TRY(options.device, codegen::CudaDevice::of_process());
  }
  return options;
}

/// PyTorch's checks of a device for a graph: a hint about TF32, and dtypes that older devices lack.
Status check_device(const Graph& graph, const BackendOptions& options) {
  const codegen::CudaArchitecture& architecture = options.device->architecture();
  const bool has_mma = architecture.name != "sm_75";
  bool multiplies = false;
  for (const Node* node : graph) {
    const TensorMeta* t = node->meta.tensor();
    if (!t) continue;
    if (!has_mma && (t->dtype == DType::BFloat16 || t->dtype == DType::Float16))
      return unsupported("cuda.dtype",
                         fmt::format("{} ({}) has no matrix instructions for {}", options.device->name(),
                                     architecture.name, torch_name(t->dtype)),
                         place_of(*node));
    const OpRecord* record = node->op() ? find_record(node->op()) : nullptr;
    const auto routine = record ? record->library : LibraryRoutine::None;
    multiplies |=
        (routine == LibraryRoutine::Matmul || routine == LibraryRoutine::AddMatmul) && t->dtype == DType::Float32;
  }
  static std::atomic<bool> told = false;
  if (multiplies && has_mma && !options.config.cuda_tf32 && !told.exchange(true))
    fmt::print(stderr,
               "TensorFloat32 tensor cores for float32 matrix multiplication available but not enabled; --config "
               "cuda_tf32=true for better performance\n");
  return {};
}

/// The graph must outlive the result.
Result<std::shared_ptr<CompiledGraph>> compiled_graph(const Graph& graph, const BackendOptions& options,
                                                      int stop_after) {
  const auto source = [&graph]() -> Result<std::unique_ptr<Graph>> { return graph.clone(); };
  auto made = std::make_shared<CompiledGraph>(graph.name, source, graph.attributes, options);
  const bool cached = stop_after < 0 && caches(options);
  TRY_DO(made->prepare(stop_after, cached ? cache_key(graph, options) : KeyParts()));
  return made;
}

/// Compiles with only the first `stop_after` passes; -1: all.
CompileFn compiler(const BackendOptions& options, int stop_after) {
  return [options, stop_after](const Graph& graph) {
    return trace::compiled([&]() -> Result<CompiledFn> {
      trace::input(graph, "aot_inference_graph");
      const trace::Stage timed("inductor_compile");
      TRY(const BackendOptions own, with_device(options));
      if (own.device) TRY_DO(check_device(graph, own));
      TRY(const auto compiled, compiled_graph(graph, own, stop_after));
      return CompiledFn([compiled](std::vector<Value> inputs) { return compiled->run(inputs); });
    });
  };
}

Result<StagedCompiler::Planned> planned(const Graph& graph, const BackendOptions& options) {
  std::unique_ptr<Graph> passed = graph.clone();
  TRY_DO(run_passes_until(*passed, options, -1));
  for (const Node* node : passed->placeholders())
    if (has_symbols(node->meta))
      return unsupported("backend.symbolic", "a plan is made for concrete sizes; this graph has symbolic ones",
                         place_of(*node));
  TRY(schedule::Plan plan, make_plan(*passed, {}, options));
  return StagedCompiler::Planned(std::move(passed), std::move(plan));
}

}  // namespace

CompileFn cpu_compiler(const BackendOptions& options) {
  if (!options.config.save_args.empty()) {
    BackendOptions inner = options;
    inner.config.save_args.clear();
    return saving_args(cpu_compiler(inner), options.config.save_args);
  }
  const bool emulated = options.kernels == DeviceType::Cuda && !options.on_device;
  if (options.worker) return compile_in_worker(options.on_device ? "cuda" : emulated ? "cuda-emulate" : "cpu", options);
  return compiler(options, -1);
}

Status place_on_device(std::vector<Value>& values) {
  TRY(const auto device, codegen::CudaDevice::of_process());
  return device->place(values);
}

std::shared_ptr<const GraphCache> cpu_cache(const BackendOptions& given) {
  if (given.worker || !caches(given) || !given.config.save_args.empty()) return nullptr;
  const auto found = with_device(given);
  if (!found) return nullptr;  // the compiler says why
  const BackendOptions& options = *found;
  return std::make_shared<GraphCache>(GraphCache{
      .store = options.store,
      .config = options.config,
      .compiler = compiler_text(options),
      .key = [options](const Graph& graph) { return key_of(cache_key(graph, options)); },
      .load = [options](const std::string& key, std::map<std::string, Tensor> constants,
                        GraphSource source) -> std::optional<CompiledFn> {
        auto entry = find_entry(*options.store, fxgraph_cache, key, "a compiled graph");
        auto made = std::make_shared<CompiledGraph>("", std::move(source), std::move(constants), options);
        const bool hit = entry && made->prepare_stored(*std::move(entry));
        cache_log().add({fxgraph_cache, hit ? CacheOutcome::Hit : CacheOutcome::Miss, made->name(), key, {}});
        if (!hit) return std::nullopt;
        return [made](std::vector<Value> inputs) { return made->run(inputs); };
      }});
}

StagedCompiler cpu_stages(const BackendOptions& options) {
  StagedCompiler staged;
  for (const Pass& p : passes_of(PassStage::PostGrad)) staged.passes.emplace_back(p.name);
  staged.with_passes = [options](int stop_after) { return compiler(options, stop_after); };
  staged.plan = [options](const Graph& graph) { return planned(graph, options); };
  staged.run_plan = [options](const schedule::Plan& plan, const std::map<std::string, Tensor>& constants,
                              const std::vector<Value>& inputs) -> Result<std::vector<Value>> {
    TRY(const BackendOptions own, with_device(options));
    const ConfigScope scope(own.config);
    TRY(const auto compiled, codegen::compile_cpu(plan, constants, {.device = own.device}));
    return compiled->run(inputs);
  };
  staged.forms = options.kernels == DeviceType::Cuda ? codegen::cuda_kernel_forms() : codegen::cpu_kernel_forms();
  staged.measure = [options](const StagedCompiler::Planned& planned, const std::vector<Value>& inputs,
                             double seconds) -> Result<StagedCompiler::Measured> {
    TRY(const BackendOptions own, with_device(options));
    const ConfigScope scope(own.config);
    return codegen::measure_cpu(planned, {.fixed_inputs = fixed_inputs(*planned.first, own), .device = own.device},
                                inputs, seconds);
  };
  return staged;
}

}  // namespace partita

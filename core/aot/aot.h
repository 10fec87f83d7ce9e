#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/aot/pipeline.h"
#include "core/aot/run_compiled.h"
#include "core/aot/split_constants.h"
#include "core/functionalize/functionalize.h"
#include "core/load/export_signature.h"
#include "core/partition/partition.h"
#include "core/tensor/value.h"

namespace partita {

/// What is decomposed after differentiation. Composites always are, before it.
enum class Decompositions : unsigned char {
  None,       ///< nothing, as AOTAutograd without a decomposition table
  Core,       ///< everything that the compiler has a decomposition for
  Functorch,  ///< torch._functorch.compilers.default_decompositions
};

Decompositions configured_decompositions();  ///< the configuration's

struct AotOptions {
  bool train = true;
  PartitionOptions partition = {};
  Decompositions decompositions = configured_decompositions();
  /// One entry per placeholder of the graph. Empty: parameters (by the archive's signature, else by their names in
  /// dynamo's text); for text without parameters, every floating input.
  std::vector<bool> requires_grad = {};
  std::vector<bool> is_leaf = {};  ///< as FunctionalizeOptions says
  /// true: the graph writes mutated inputs by copy_ at its end where autograd permits that, as PyTorch's compilers get
  /// it. false, or training with tangents_for_aliases: it returns their new values first, and the runtime epilogue
  /// (wrapper.h) writes them.
  bool keep_input_mutations = true;
  /// See JointOptions: for callers that run the graphs without PyTorch's runtime around them.
  bool tangents_for_aliases = false;
  /// Runs the pre-grad and joint passes. false: the graphs of AOTAutograd alone, as PyTorch's aot_function makes them.
  bool passes = true;
  PassNames disabled = configured_disabled();  ///< passes to leave out
  /// Runs the passes of a stage, e.g. to check them; empty: run_passes().
  std::function<Result<PipelineRun>(Graph& graph, std::span<const Pass> passes, PassContext& context,
                                    const PipelineOptions& options)>
      pass_runner = {};
  Stage until = Stage::Partition;                       ///< the last stage that runs
  bool snapshots = false;                               ///< keep the graph after each stage and pass
  bool pre_dispatch = false;                            ///< for inference; see to_aten
  bool effect_tokens = false;                           ///< chain effects by a token; see thread_effects
  bool functionalize_rng = config().functionalize_rng;  ///< random numbers by seed and offset; see functionalize_random
  bool freezing = config().freezing;                    ///< inference takes parameters as constants; see freezing.h
  /// Inference computes what depends on parameters only in a graph of its own: AotGraphs::constants.
  bool split_constants = false;
  /// Joint graphs get the layouts that compilers compute best, also for what the forward saves (prefer_channels_last).
  /// Unset: those of as_run() do. False for interpreters and CUDA's kernels: these give eager PyTorch's layouts.
  std::optional<bool> choose_layouts = {};
  bool pack_linears = false;  ///< see PassContext; for compilers of GPUs
  /// The graph's inputs, one per placeholder, for freezing. Empty: the archive's tensors.
  std::vector<Value> values = {};
};

/// What an input of the graph is to the user.
enum class InputRole : unsigned char { User, Parameter, Buffer, Constant, Symbol };
struct InputBinding {
  InputRole role = InputRole::User;
  std::string name;  ///< the path of a parameter, buffer or constant; else the placeholder's name
  bool requires_grad = false;
};

/// The graphs that AOTAutograd makes.
struct AotGraphs {
  std::unique_ptr<Graph> joint;  ///< the one that is partitioned; null for inference
  /// The forward and, for training, the backward. For inference the forward is the functional graph itself.
  Partition partition;
  ViewAndMutationMeta meta;
  std::vector<InputBinding>
      inputs;  ///< of the forward, without tokens, random seed and offset, and results of constants
  std::vector<std::size_t> tangent_of;  ///< for each tangent, its forward output; saved values come after these outputs
  bool train = false;                   ///< there is a backward
  std::size_t tokens = 0;               ///< so many first inputs and outputs of the forward are effect tokens
  /// The last two inputs of forward and backward are a random seed and offset. The last of the forward's outputs (not
  /// saved values) and of the backward's is the new offset.
  bool functional_rng = false;
  std::optional<ConstantsGraph> constants;  ///< what is run once, for further inputs of the forward
  std::vector<std::size_t> frozen;          ///< inputs that the forward has as attributes, and reads no more
  std::vector<StageRun> stages;             ///< what ran

  /// The forward's placeholders and outputs without tokens.
  std::vector<Node*> placeholders() const;
  std::vector<Arg> results() const;
  /// The backward's placeholders that are tangents.
  std::vector<Node*> tangents() const;
  /// The graph after a stage; null if it did not run or no snapshots were asked for.
  std::shared_ptr<const Graph> after(Stage stage) const;
  /// The joint graph (for inference the functional graph) as it was before the joint passes; null as for after().
  std::shared_ptr<const Graph> before_joint_passes() const;
};

/// Can the placeholder require grad? Floating and complex tensors can.
bool can_be_differentiated(const Node& placeholder);
/// Is it a parameter that the archive holds without requires_grad? These are differentiated only when asked for.
bool is_frozen(const ExportedProgram* program, const Node& placeholder);
/// What each placeholder is to the user, by the archive's signature or by its name in text, and whether `options` have
/// it differentiated.
std::vector<InputBinding> bind_inputs(const Graph& graph, const ExportedProgram* program, const AotOptions& options);

/// Runs the flow (pipeline.h) and returns what it made until the last stage. `graph`: dynamo text, exported or ATen
/// code. `program`: the archive's signature; null without one. A joint graph enters at the joint passes.
Result<AotGraphs> aot(const Graph& graph, const ExportedProgram* program, const AotOptions& options);

}  // namespace partita

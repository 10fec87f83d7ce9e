#pragma once
// The layers that AOTAutograd puts around compiled code. What a layer has to do for a graph is data, which its
// pre_compile finds out, changing the graph where needed; what it does in a run is its post_compile. A layer that has
// nothing to do for a graph is not in the list. Names are PyTorch's (torch/_functorch/_aot_autograd).
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "core/aot/aot.h"
#include "core/aot/graph_io.h"
#include "core/aot/run_compiled.h"
#include "core/interp/symbols.h"
#include "core/tensor/philox.h"

namespace partita {

/// A compiled function in PyTorch's boxed convention: it takes the values out of `inputs`, so that their memory can be
/// given back after their last use. Afterwards place i holds what input i has become if its sizes or strides changed
/// (t_, resize_), else nothing.
using BoxedFn = std::function<Result<std::vector<Value>>(std::vector<Value>& inputs)>;
BoxedFn boxed(CompiledFn function);

/// The sizes and strides that a graph was compiled for, by input: tells the symbols of a run.
struct InputShapes {
  struct Shape {
    SymList sizes, strides;
    std::optional<SymExpr> number;  ///< of an input that is a symbolic integer
    bool operator==(const Shape&) const = default;
  };
  std::vector<Shape> inputs;

  /// Without the graph's first `tokens` inputs.
  static InputShapes of(const Graph& graph, std::size_t tokens = 0);
  SymbolMap bind(const std::vector<Value>& values) const;
  bool operator==(const InputShapes&) const = default;
};

/// Tensor subclasses are passed and returned as their inner tensors (core/aot/expand_subclasses.h).
struct SubclassWrapper {
  static constexpr std::string_view name = "AOTDispatchSubclassWrapper";
  struct Item {
    std::string type = {};                     ///< the class; empty for a plain value
    std::vector<std::string> attributes = {};  ///< names of its inner tensors
    bool operator==(const Item&) const = default;
  };
  std::vector<Item> inputs, outputs;

  /// A subclass is a ValueList of its inner tensors. Who passes the inner tensors themselves gets those back.
  BoxedFn post_compile(BoxedFn inner) const;
  bool operator==(const SubclassWrapper&) const = default;
};

/// An input that is the very same tensor as an earlier one is passed once.
struct DedupeWrapper {
  static constexpr std::string_view name = "AOTDedupeWrapper";
  std::vector<std::size_t> at;  ///< by the caller's input: the input of the layer inside that it is

  /// Drops repeats of inputs from the graph; nullopt when there are none.
  static std::optional<DedupeWrapper> pre_compile(Graph& graph, GraphInputs& inputs);
  BoxedFn post_compile(BoxedFn inner) const;
  bool operator==(const DedupeWrapper&) const = default;
};

/// Do both show an element of one memory?
bool overlap(const Tensor& a, const Tensor& b);

/// Inputs that overlap, of which the graph writes one, become views (as_strided) of one input, the whole memory, in the
/// place of the first of them. So does an input whose memory as_strided shows beyond it.
struct SyntheticBaseWrapper {
  static constexpr std::string_view name = "AOTSyntheticBaseWrapper";
  struct View {
    std::size_t input = 0;  ///< the caller's
    Sizes sizes, strides;
    std::int64_t offset = 0;
    bool operator==(const View&) const = default;
  };
  std::vector<std::size_t> at;  ///< by the caller's input: the input of the layer inside that it is or lies in
  std::vector<View> views;      ///< inputs that lie in a base, as the graph was made for them
  /// Inputs in a base whose sizes or strides the graph changes. It returns them after the user's outputs.
  std::vector<std::size_t> returned;

  /// Sets the placeholders' storage_id too. Error aot.shared: a memory that cannot be one input, because its views have
  /// several dtypes or symbolic sizes.
  static Result<std::optional<SyntheticBaseWrapper>> pre_compile(Graph& graph, GraphInputs& inputs);
  /// The layer's runs have error aot.shared when inputs lie otherwise in memory than those it was made for.
  BoxedFn post_compile(BoxedFn inner) const;
  bool is_base(std::size_t inner) const;
  bool operator==(const SyntheticBaseWrapper&) const = default;
};

/// With verification on: an input that the graph was not differentiated for may not require grad.
struct DebugAssertWrapper {
  static constexpr std::string_view name = "DebugAssertWrapper";
  std::vector<bool> requires_grad;  ///< by input

  /// Nullopt when verification is off, or nothing is differentiated.
  static std::optional<DebugAssertWrapper> pre_compile(const AotGraphs& graphs);
  /// The layer's runs have error aot.debug_assert.
  BoxedFn post_compile(BoxedFn inner) const;
  bool operator==(const DebugAssertWrapper&) const = default;
};

/// The runtime epilogue: writes mutated inputs to their memory and makes outputs that alias inputs or other outputs
/// views of them.
struct RuntimeWrapper {
  static constexpr std::string_view name = "RuntimeWrapper";
  /// An input whose value after the run is a leading output of the layer inside.
  struct Mutated {
    std::size_t input = 0;
    bool data = false;
    /// Set if the input shows its memory in another way afterwards (t_): from where, and in which strides.
    std::optional<SymExpr> view_offset;
    SymList view_strides = {};
    bool storage = false;                       ///< it has other memory afterwards, as by set_
    std::optional<std::size_t> memory_of = {};  ///< that of this input
    bool operator==(const Mutated&) const = default;
  };
  struct Alias {
    std::size_t output = 0;  ///< of the user
    std::size_t input = 0;
    bool is_input = false;               ///< it is the input itself
    std::optional<SymExpr> view_offset;  ///< set if the output shows the input's memory as it is: from where
    SymList view_strides = {};           ///< and in which strides
    bool operator==(const Alias&) const = default;
  };
  /// An output that lies in the memory of another result of the layer inside.
  struct Shared {
    std::size_t output = 0;  ///< of the user
    std::size_t result = 0;  ///< counted from the user's first output
    SymExpr view_offset;     ///< from where the result begins, in elements of the output
    SymList view_strides = {};
    SymList strides = {};  ///< of the result, whose memory is that of its elements
    bool operator==(const Shared&) const = default;
  };
  /// An output that lies in a memory of which no result of the layer inside shows all.
  struct Part {
    std::size_t output = 0;  ///< of the user
    std::size_t memory = 0;  ///< the first output that lies in it
    SymExpr view_offset;     ///< from where the memory begins, in elements of the output
    SymList view_strides = {};
    bool operator==(const Part&) const = default;
  };
  std::vector<Mutated> mutated;
  std::vector<Alias> aliases;
  std::vector<Shared> shared;
  std::vector<Part> parts;
  std::size_t intermediate_bases = 0;  ///< last outputs of the layer inside, which the user does not get
  InputShapes shapes;

  /// Nullopt when results and inputs need nothing.
  static std::optional<RuntimeWrapper> pre_compile(const AotGraphs& graphs);
  /// For a graph that runs as it stands and returns first, as views, the inputs whose sizes or strides it changed.
  static std::optional<RuntimeWrapper> of_changed(const std::vector<std::size_t>& inputs);
  BoxedFn post_compile(BoxedFn inner) const;
  bool operator==(const RuntimeWrapper&) const = default;
};

/// What a run's caller gives and gets of its gradients.
struct Autograd {
  std::function<Result<CompiledFn>()> compile;  ///< the backward's; called once
  CompiledFn backward = {};                     ///< empty until it is compiled
  /// The tangents of the forward's outputs. Null: no gradients are wanted.
  std::function<Result<std::vector<Value>>(const std::vector<Value>& outputs)> tangents = {};
  std::vector<Value> gradients = {};  ///< of the last run

  /// Compiles it if that was not done yet; has its error.
  Status compile_backward();
};

/// Takes the saved values off the forward's results and runs the backward with them, before inputs are written, because
/// saved inputs must have their old values.
struct AutogradDispatchWrapper {
  static constexpr std::string_view name = "AOTDispatchAutograd";
  std::size_t outputs = 0;  ///< results of the forward before the saved values
  std::size_t saved = 0;    ///< tensors, then symbols
  std::size_t saved_symbols = 0;
  std::vector<std::size_t> tangent_of;  ///< by tangent: the result of the forward
  /// Inputs that are no leaves and get no gradient: autograd need not know of them.
  std::vector<std::size_t> detached;
  bool lazy_backward = false;  ///< the backward is compiled when it is first needed

  /// Nullopt without a backward.
  static std::optional<AutogradDispatchWrapper> pre_compile(const AotGraphs& graphs, bool lazy_backward);
  BoxedFn post_compile(BoxedFn inner, std::shared_ptr<Autograd> autograd) const;
  bool operator==(const AutogradDispatchWrapper&) const = default;
};

/// Outputs get the strides that the graph reports for them, where these are not row-major, whatever the backend gives.
struct FakifiedOutWrapper {
  static constexpr std::string_view name = "FakifiedOutWrapper";
  struct Output {
    std::size_t output = 0;
    SymList strides;
    bool operator==(const Output&) const = default;
  };
  std::vector<Output> outputs;
  InputShapes shapes;

  /// Nullopt when all outputs are row-major.
  static std::optional<FakifiedOutWrapper> pre_compile(const AotGraphs& graphs);
  BoxedFn post_compile(BoxedFn inner) const;
  bool operator==(const FakifiedOutWrapper&) const = default;
};

/// Passes empty tensors for the tokens that a graph takes first and returns first (core/functionalize/effect_tokens.h).
struct EffectTokensWrapper {
  static constexpr std::string_view name = "EffectTokensWrapper";
  std::size_t tokens = 0;

  /// Nullopt when there are no tokens.
  static std::optional<EffectTokensWrapper> pre_compile(const AotGraphs& graphs);
  BoxedFn post_compile(BoxedFn inner) const;
  bool operator==(const EffectTokensWrapper&) const = default;
};

/// Gives forward and backward the random seed and offset that they take as last inputs, and moves the offset to where
/// they say that it is afterwards.
struct FunctionalizedRngWrapper {
  static constexpr std::string_view name = "FunctionalizedRngRuntimeWrapper";
  std::size_t offset_output = 0;  ///< the forward's result that is the new offset
  std::optional<std::size_t> backward_offset_output;

  /// Nullopt when random numbers are not functionalised.
  static std::optional<FunctionalizedRngWrapper> pre_compile(const AotGraphs& graphs);
  BoxedFn post_compile(BoxedFn inner, std::shared_ptr<PhiloxState> state) const;
  CompiledFn post_compile_backward(CompiledFn inner, std::shared_ptr<PhiloxState> state) const;
  bool operator==(const FunctionalizedRngWrapper&) const = default;
};

using Wrapper =
    std::variant<SubclassWrapper, DedupeWrapper, SyntheticBaseWrapper, DebugAssertWrapper, RuntimeWrapper,
                 AutogradDispatchWrapper, EffectTokensWrapper, FakifiedOutWrapper, FunctionalizedRngWrapper>;
/// Outermost first.
using Wrappers = std::vector<Wrapper>;

/// The outer layers, which act before the graph is functionalised: changes the graph and its inputs. Without `bases`
/// (for interpreters, whose inputs share memory as the caller's) only repeated tensors are dropped.
Result<Wrappers> wrap_inputs(Graph& graph, GraphInputs& inputs, bool bases);
/// The inner layers.
Wrappers wrap_graphs(const AotGraphs& graphs, bool lazy_backward = false);
/// Puts the layers around compiled code. `autograd`: null without a backward. `random`: what functionalised random
/// numbers are drawn from; null without those.
BoxedFn post_compile(const Wrappers& wrappers, BoxedFn inner, std::shared_ptr<Autograd> autograd = nullptr,
                     std::shared_ptr<PhiloxState> random = nullptr);
/// Puts the layers around the compiled backward that it has besides AutogradDispatchWrapper.
CompiledFn post_compile_backward(const Wrappers& wrappers, CompiledFn backward, std::shared_ptr<PhiloxState> random);

/// By the caller's input: the graph's input that it is or lies in.
std::vector<std::size_t> places_of_inputs(const Wrappers& wrappers, std::size_t callers);

/// PyTorch's name of the layer: "AOTDedupeWrapper".
std::string_view name_of(const Wrapper& wrapper);
/// What it does for its graph, one line: "input 1 is input 0".
std::string summary(const Wrapper& wrapper);
nlohmann::ordered_json to_json(const Wrappers& wrappers);
/// Reads what to_json() wrote. Error aot.wrappers.
Result<Wrappers> read_wrappers(const std::string& text);

}  // namespace partita

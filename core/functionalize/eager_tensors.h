#pragma once
#include <vector>

#include "core/functionalize/functionalize.h"
#include "core/ops/facts/views.h"

namespace partita {

/// Memory of the eager program. `content` is its newest content, as a value of the functional graph.
struct EagerMemory {
  Node* content = nullptr;
  Node* first = nullptr;  ///< the content before any write, which lies as the memory does
  int version = 0;
  bool written_with_grad = false;
  bool seen_by_autograd = false;                     ///< a write has a derivative
  bool replaced = false;                             ///< by other memory, because resize_ needed more
  std::size_t input = static_cast<std::size_t>(-1);  ///< the input whose memory it was at first
  bool resized = false;                              ///< by inductor.resize_storage_bytes_
  bool freed = false;                                ///< and has no room for its elements now
};

/// A tensor object of the eager program: the view steps that lead from a memory to it, and its value at some version of
/// the memory.
struct EagerObject {
  std::size_t memory = 0;
  std::vector<ViewStep> steps;
  int version = 0;
  Node* value = nullptr;
  bool own_metadata_changed = false;
  std::size_t no_grad_from = static_cast<std::size_t>(-1);  ///< the first step that was taken under no_grad
  /// If set_ gave a tensor other memory: the step from which on it is that tensor, and the value whose gradient it
  /// still takes (null without one).
  std::size_t taken_at = static_cast<std::size_t>(-1);
  Node* stands_for = nullptr;
};

struct EagerTensors {
  static constexpr std::size_t npos = static_cast<std::size_t>(-1);
  std::vector<EagerMemory> memories;
  std::vector<EagerObject> objects;
  std::vector<std::size_t> object_of;  ///< by eager node id; npos if it is not a tensor

  std::size_t object_at(const Arg& eager) const { return eager.node() ? object_of[eager.node()->id()] : npos; }
};

/// Raises functionalize.mutation for a call such as _foreach_add_([a, b], [b, a]), which writes a before it reads it
/// for b: its functional variant would read the old a. `bound`: the call's arguments in the order of its schema.
void refuse_reads_between_writes(const EagerTensors& eager, const Node& call, const Schema& schema, const Args& bound);

/// Inference gives data-dependent sizes new unbacked symbols. If the graph was traced with real values, its
/// annotation has the numbers: keep those.
void keep_known_sizes(Node& made, const Meta& annotated);

/// Is the object a view that autograd does not connect with its base?
bool is_detached(const EagerObject& object);

/// Raises functionalize.mutation for a call that writes its argument, as its name tells, but not its schema.
void refuse_unknown_write(const Node& call);

/// Raises functionalize.storage for a tensor whose memory inductor.resize_storage_bytes_ has freed.
void refuse_freed(const EagerMemory& memory, const Node* value);

/// Refuses a view of the storage (as_strided) if the memory was written and its value does not lie as the memory does.
void refuse_moved_storage(const ViewStep& step, const EagerMemory& memory);

/// The steps by which a write to the object reaches its memory. A view of the storage (as_strided) that shows more than
/// the view it was taken of becomes one of the memory itself. Raises functionalize.view where it shows what lies
/// between the memory's elements, which has no value.
std::vector<ViewStep> steps_of_write(const EagerTensors& eager, const EagerObject& object, Builder& build);

/// Are both tensors of the same sizes and known strides that differ? Strides of dimensions of size 1 do not count.
bool lies_otherwise(const Node& a, const Node& b);

/// Gives written inputs among the call's arguments their memory's strides back where a functional variant dropped gaps
/// between elements. Returns whether there was one. `hidden`: see FunctionalGraph.
bool restore_gaps(EagerTensors& eager, const Node& call, Builder build, HiddenWrites& hidden);

/// Would calls that read the memory's newest content see its elements in another order than before the write? A
/// functional variant may lay its result out as it likes, where the in-place call keeps strides. Inputs are copied back
/// into their own memory, so there only the order of dimensions counts.
bool loses_layout(const EagerMemory& memory, const Node* before);

/// How the program treated input `i`, once all of it was interpreted. Raises functionalize.mutation for a written input
/// with elements that share a place in memory.
InputAliasInfo describe_input(const EagerTensors& eager, const Node& input, std::size_t i,
                              const FunctionalizeOptions& options, const FunctionalGraph& made);

/// Raises aot.metadata for an input that is written and then shows a part of its memory, if an output shows the rest.
void refuse_hidden_parts(const std::vector<Node*>& inputs, const ViewAndMutationMeta& meta);

/// How the user's outputs share memory with inputs and each other, and which contents of intermediate memories the
/// functional graph has to return for them.
struct OutputAliases {
  std::vector<OutputAliasInfo> outputs;
  std::vector<Node*> bases;
};
/// `user` are the eager graph's outputs, `values` their values in the functional graph, `needs` says by id which of its
/// nodes require grad.
OutputAliases classify_outputs(const EagerTensors& eager, const std::vector<Node*>& inputs,
                               const std::vector<Arg>& user, const std::vector<Arg>& values,
                               const std::vector<char>& needs, ShapeEnv& shapes);

}  // namespace partita

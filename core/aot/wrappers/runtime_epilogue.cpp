
#include "core/aot/wrapper.h"
#include "core/base/check.h"
#include "core/ir/place.h"
#include "core/ops/layout.h"
#include "core/ops/record.h"

namespace partita {
namespace {

/// The value of an input's memory at the end of the graph, as far as the graph tells: the input, what copy_ writes to
/// it, or what it returns for it. Null if it returns a view of it (t_).
const Node* content_of(const Node& input, const InputAliasInfo& info, const Node* returned) {
  if (!info.mutates_data) return &input;
  if (returned) return info.mutates_metadata ? nullptr : returned;
  for (const Node* n : input.users())
    if (const Schema* schema = find_schema(n->op()); schema && schema->is_mutable && n->args()[0].node() == &input)
      return n->args()[1].node();
  return nullptr;
}

/// How the user's program shows `input` in `node`: the views from `content` on are made of the input's own strides,
/// which the functional graph's values have no longer once they were written. Nullopt when the node is no view of the
/// input, or changes its elements: there is no conjugate bit, so a conjugated view is a new value. Raises aot.metadata
/// when it is the input itself (`changed`) and the graph does not tell.
std::optional<TensorMeta> shown_as(const Node* node, const Node& input, const Node* content, ShapeEnv& shapes,
                                   bool changed) {
  const TensorMeta* memory = input.meta.tensor();
  std::vector<const Node*> chain = {node};
  while (chain.back() && chain.back() != content && chain.back()->op()->is_call()) {
    const Node& n = *chain.back();
    const OpRecord* record = n.is(Op::getitem()) ? nullptr : find_record(n.op());
    if (record && record->element_change != ElementChange::None) return std::nullopt;
    if (!n.is(Op::getitem()) && (!record || !record->schema->is_view)) break;
    chain.push_back(n.args()[0].node());
  }
  const auto fits = [&](const Node* n) {
    const TensorMeta* t = n ? n->meta.tensor() : nullptr;
    return t && memory && t->sizes == memory->sizes;
  };
  const auto unknown_place = [&] {
    return Raise{unsupported("aot.metadata",
                             "input " + input.name() +
                                 " has gaps or transposed dimensions, is written, and is shown in other dimensions "
                                 "afterwards; pass a contiguous tensor",
                             place_of(input))};
  };
  if (content && chain.back() != content) return std::nullopt;
  if (!content && std::ranges::none_of(chain, fits)) {
    const TensorMeta* now = node->meta.tensor();
    // Only memory that has grown (resize_) is replaced by the new value.
    if (changed && memory && now && now->numel() == memory->numel() && !is_row_major(*memory)) throw unknown_place();
    return std::nullopt;
  }
  if (!content && std::ranges::count_if(chain, fits) > 1) {
    // Which of them lies in the input's place is not known: a view may have been written through its inverse.
    if (is_row_major(*memory) && node->meta.tensor()) return *node->meta.tensor();
    if (!changed) return std::nullopt;
    throw unknown_place();
  }
  while (!fits(chain.back())) {
    chain.pop_back();
    if (chain.empty()) return std::nullopt;
  }
  Graph scratch;
  Meta shown = *memory;
  shown.tensor()->offset = 0;
  for (std::size_t k = chain.size() - 1; k-- > 0;) {
    const Node& view = *chain[k];
    if (view.is(Op::getitem())) {
      const auto* item = view.args()[1].get<std::int64_t>();
      if (!item || !shown.tuple()) return std::nullopt;
      const Meta part = shown.tuple()->items.at(static_cast<std::size_t>(*item));
      shown = part;
      continue;
    }
    Args args = view.args();
    args[0] = scratch.placeholder("x", shown);
    Result<Meta> next = infer(view.op(), args, view.kwargs(), shapes);
    if (!next) return std::nullopt;
    shown = *std::move(next);
  }
  return shown.tensor() ? std::optional(*shown.tensor()) : std::nullopt;
}

/// Does the input have the strides that the graph was made for?
bool as_made_for(const InputShapes::Shape& made_for, const Tensor& input) {
  if (made_for.strides.size() != input.sizes.size()) return false;
  for (std::size_t d = 0; d < input.sizes.size(); ++d)
    if (input.sizes[d] > 1 && made_for.strides[d].is_int() && !made_for.strides[d].is(input.strides[d])) return false;
  return true;
}

/// Makes `shown`, which has the values of a view of `input`, that view.
std::optional<Tensor> view_of(const Tensor& input, const Tensor& shown, SymExpr view_offset,
                              const SymList& view_strides, const SymbolMap& symbols) {
  const auto offset = symbols.value(view_offset);
  Sizes strides;
  for (SymExpr s : view_strides)
    if (const auto stride = symbols.value(s)) strides.push_back(*stride);
  if (!offset || strides.size() != shown.sizes.size()) return std::nullopt;
  // The offset counts elements, whose size view_as_real changes.
  const auto from = static_cast<std::int64_t>(itemsize(input.dtype)),
             to = static_cast<std::int64_t>(itemsize(shown.dtype));
  return Tensor{input.storage, shown.dtype, shown.sizes, std::move(strides), input.offset * from / to + *offset};
}

/// One run's epilogue.
class Epilogue {
 public:
  /// Keeps those inputs that it needs after the run.
  Epilogue(const RuntimeWrapper& wrapper, const std::vector<Value>& inputs)
      : w_(wrapper), symbols_(wrapper.shapes.bind(inputs)), before_(inputs.size()), newest_(inputs.size(), nullptr) {
    for (const RuntimeWrapper::Mutated& m : w_.mutated) before_[m.input] = inputs[m.input];
    for (const RuntimeWrapper::Alias& a : w_.aliases) before_[a.input] = inputs[a.input];
    after_ = before_;
  }

  Result<std::vector<Value>> finish(const std::vector<Value>& values, std::vector<Value>& inputs) {
    const auto first = static_cast<std::ptrdiff_t>(w_.mutated.size());
    const auto last = static_cast<std::ptrdiff_t>(values.size() - w_.intermediate_bases);
    std::vector<Value> outputs(values.begin() + first, values.begin() + last);
    find_new_views(values);
    make_aliases(outputs);
    write(inputs);
    return outputs;
  }

 private:
  const Tensor* before(std::size_t input) const { return before_[input].get<Tensor>(); }

  /// t_ and similar operators only change how the input views its memory, which keeps its place.
  void find_new_views(const std::vector<Value>& values) {
    for (std::size_t k = 0; k < w_.mutated.size(); ++k) {
      const RuntimeWrapper::Mutated& m = w_.mutated[k];
      const Tensor *now = values[k].get<Tensor>(), *input = before(m.input);
      CHECK(now && input, "a mutated input is not a tensor");
      if (!m.data && now->storage == input->storage) {
        after_[m.input] = *now;
        continue;
      }
      const auto view = m.view_offset ? view_of(*input, *now, *m.view_offset, m.view_strides, symbols_) : std::nullopt;
      const Result<bool> within = view ? within_storage(*view) : Result<bool>(false);
      if (within && *within) {
        after_[m.input] = *view;
        if (m.data) written_.emplace_back(*view, *now);
      } else {
        newest_[m.input] = now;
      }
    }
  }

  void make_aliases(std::vector<Value>& outputs) {
    for (const RuntimeWrapper::Alias& a : w_.aliases) {
      const Tensor *shown = outputs[a.output].get<Tensor>(), *input = before(a.input), *now = newest_[a.input];
      if (!shown || !input || shown->storage == input->storage) continue;
      if (!as_made_for(w_.shapes.inputs[a.input], *input)) continue;
      // An input whose values and sizes both change is replaced, so the output cannot be a view of its memory.
      if (now && now->sizes != input->sizes) continue;
      if (a.is_input && shown->sizes == after_[a.input].get<Tensor>()->sizes) {
        outputs[a.output] = after_[a.input];
      } else if (a.view_offset) {
        if (const auto view = view_of(*input, *shown, *a.view_offset, a.view_strides, symbols_))
          outputs[a.output] = *view;
      }
    }
  }

  void write(std::vector<Value>& inputs) {
    for (const auto& [view, value] : written_) view.copy_from(value);
    for (const RuntimeWrapper::Mutated& m : w_.mutated) {
      const Tensor *now = newest_[m.input], *input = before(m.input);
      if (now && now->sizes == input->sizes)
        input->copy_from(*now);
      else
        inputs[m.input] = now ? Value(*now) : after_[m.input];
    }
  }

  const RuntimeWrapper& w_;
  const SymbolMap symbols_;
  std::vector<Value> before_, after_;
  std::vector<const Tensor*> newest_;               ///< new values of inputs, which lie elsewhere
  std::vector<std::pair<Tensor, Tensor>> written_;  ///< new views of inputs, and their values
};

}  // namespace

std::optional<RuntimeWrapper> RuntimeWrapper::pre_compile(const AotGraphs& graphs) {
  RuntimeWrapper w;
  const ViewAndMutationMeta& meta = graphs.meta;
  const Graph& forward = *graphs.partition.forward;
  const std::vector<Arg> returned = graphs.results();
  const std::vector<std::size_t> mutated = meta.mutated_runtime_inputs();
  const std::vector<Node*> placeholders = graphs.placeholders();
  const auto set_view = [&](auto& of, const Node* node, bool changed) {
    const auto at = std::ranges::find(mutated, of.input);
    const Node* new_value =
        at == mutated.end() ? nullptr : returned[static_cast<std::size_t>(at - mutated.begin())].node();
    const Node& input = *placeholders[of.input];
    const auto shown =
        shown_as(node, input, content_of(input, meta.inputs[of.input], new_value), *forward.shapes, changed);
    if (!shown) return;
    of.view_offset = shown->offset;
    of.view_strides = shown->strides;
  };
  for (std::size_t k = 0; k < mutated.size(); ++k) {
    const InputAliasInfo& info = meta.inputs[mutated[k]];
    w.mutated.push_back({mutated[k], info.mutates_data, std::nullopt});
    if (info.mutates_metadata) set_view(w.mutated.back(), returned[k].node(), true);
  }
  for (std::size_t i = 0; i < meta.outputs.size(); ++i) {
    const OutputAliasInfo& info = meta.outputs[i];
    const Node* node = returned[mutated.size() + i].node();
    if (!node || (info.type != OutputType::IsInput && info.type != OutputType::AliasOfInput)) continue;
    w.aliases.push_back({i, *info.base_idx, info.type == OutputType::IsInput, std::nullopt});
    set_view(w.aliases.back(), node, false);
  }
  w.intermediate_bases = meta.num_intermediate_bases;
  if (w.mutated.empty() && w.aliases.empty() && w.intermediate_bases == 0) return std::nullopt;
  w.shapes = InputShapes::of(forward, graphs.tokens);
  return w;
}

std::optional<RuntimeWrapper> RuntimeWrapper::of_changed(const std::vector<std::size_t>& inputs) {
  if (inputs.empty()) return std::nullopt;
  RuntimeWrapper w;
  for (std::size_t i : inputs) w.mutated.push_back({i, false, std::nullopt});
  return w;
}

BoxedFn RuntimeWrapper::post_compile(BoxedFn inner) const {
  return [w = *this, inner = std::move(inner)](std::vector<Value>& inputs) -> Result<std::vector<Value>> {
    Epilogue epilogue(w, inputs);
    TRY(const std::vector<Value> values, inner(inputs));
    return epilogue.finish(values, inputs);
  };
}

}  // namespace partita

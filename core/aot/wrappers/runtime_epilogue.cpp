// The runtime epilogue. After a run it finds the new views of inputs, makes outputs views of inputs and of results,
// copies parts of one memory together, and writes mutated inputs last.
#include <algorithm>
#include <map>
#include <set>

#include "core/aot/wrapper.h"
#include "core/base/check.h"
#include "core/tensor/significant_strides.h"

namespace partita {
namespace {

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
  auto strides = values_of(view_strides, symbols);
  if (!offset || !strides || strides->size() != shown.sizes.size()) return std::nullopt;
  // The offset counts elements, whose size view_as_real changes.
  const auto from = static_cast<std::int64_t>(itemsize(input.dtype)),
             to = static_cast<std::int64_t>(itemsize(shown.dtype));
  return Tensor{input.storage, shown.dtype, shown.sizes, *std::move(strides), input.offset * from / to + *offset};
}

/// One run's epilogue.
class Epilogue {
 public:
  /// Keeps those inputs that it needs after the run.
  Epilogue(const RuntimeWrapper& wrapper, const std::vector<Value>& inputs)
      : w_(wrapper), symbols_(wrapper.shapes.bind(inputs)), before_(inputs.size()), newest_(inputs.size(), nullptr) {
    for (const RuntimeWrapper::Mutated& m : w_.mutated) {
      before_[m.input] = inputs[m.input];
      if (m.memory_of) before_[*m.memory_of] = inputs[*m.memory_of];
      if (m.storage) taken_.insert(m.input);
    }
    for (const RuntimeWrapper::Alias& a : w_.aliases) before_[a.input] = inputs[a.input];
    after_ = before_;
  }

  Result<std::vector<Value>> finish(const std::vector<Value>& values, std::vector<Value>& inputs) {
    const auto first = static_cast<std::ptrdiff_t>(w_.mutated.size());
    const auto last = static_cast<std::ptrdiff_t>(values.size() - w_.intermediate_bases);
    std::vector<Value> outputs(values.begin() + first, values.begin() + last);
    find_new_views(values);
    make_aliases(outputs);
    share(outputs, values);
    TRY_DO(join(outputs));
    write(inputs, outputs);
    return outputs;
  }

 private:
  const Tensor* before(std::size_t input) const { return before_[input].get<Tensor>(); }

  /// t_ and similar operators only change how the input views its memory, which keeps its place.
  void find_new_views(const std::vector<Value>& values) {
    for (std::size_t k = 0; k < w_.mutated.size(); ++k) {
      const RuntimeWrapper::Mutated& m = w_.mutated[k];
      const Tensor *now = values[k].get<Tensor>(), *input = before(m.memory_of.value_or(m.input));
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
      if (a.is_input && taken_.contains(a.input)) {
        outputs[a.output] = now ? Value(*now) : after_[a.input];
        continue;
      }
      if (taken_.contains(a.input)) now = nullptr;  // a view of the memory that it had
      if (!shown || !input || shown->storage == input->storage) continue;
      if (!as_made_for(w_.shapes.inputs[a.input], *input)) continue;
      if (now && now->sizes != input->sizes) {  // it has other memory now
        if (a.is_input) outputs[a.output] = *now;
      } else if (a.is_input && shown->sizes == after_[a.input].get<Tensor>()->sizes) {
        outputs[a.output] = after_[a.input];
      } else if (a.view_offset) {
        if (const auto view = view_of(*input, *shown, *a.view_offset, a.view_strides, symbols_))
          outputs[a.output] = *view;
      }
    }
  }

  /// Makes outputs that lie in other results' memory views of them.
  void share(std::vector<Value>& outputs, const std::vector<Value>& values) const {
    for (const RuntimeWrapper::Shared& s : w_.shared) {
      const Tensor *shown = outputs[s.output].get<Tensor>(),
                   *whole = values[w_.mutated.size() + s.result].get<Tensor>();
      const auto strides = values_of(s.strides, symbols_);
      if (!shown || !whole || !strides || strides->size() != whole->sizes.size()) continue;
      if (!same_significant_strides(whole->sizes, *strides, whole->strides)) continue;
      const auto view = view_of(*whole, *shown, s.view_offset, s.view_strides, symbols_);
      const Result<bool> within = view ? within_storage(*view) : Result<bool>(false);
      if (within && *within) outputs[s.output] = *view;
    }
  }

  /// Copies the parts of each memory into one, and makes the outputs views of it.
  Status join(std::vector<Value>& outputs) const {
    std::map<std::size_t, std::vector<std::pair<std::size_t, Tensor>>> memories;
    for (const RuntimeWrapper::Part& p : w_.parts) {
      const Tensor* shown = outputs[p.output].get<Tensor>();
      const auto view = shown ? view_of(Tensor{}, *shown, p.view_offset, p.view_strides, symbols_) : std::nullopt;
      if (view) memories[p.memory].emplace_back(p.output, *view);
    }
    for (auto& [first, views] : memories) {
      std::size_t bytes = 0;
      for (const auto& [output, view] : views) {
        TRY(const std::int64_t elements, reach(view.sizes, view.strides));
        bytes = std::max(bytes, static_cast<std::size_t>(view.offset + elements) * itemsize(view.dtype));
      }
      TRY(const std::shared_ptr<Storage> memory, Storage::allocate(bytes));
      for (auto& [output, view] : views) {
        view.storage = memory;
        view.copy_from(*outputs[output].get<Tensor>());
        outputs[output] = view;
      }
    }
    return {};
  }

  void write(std::vector<Value>& inputs, const std::vector<Value>& outputs) {
    for (const auto& [view, value] : written_) view.copy_from(value);
    for (const RuntimeWrapper::Mutated& m : w_.mutated) {
      const Tensor *now = newest_[m.input], *input = before(m.input);
      const auto returned = std::ranges::find_if(
          w_.aliases, [&](const RuntimeWrapper::Alias& a) { return a.is_input && a.input == m.input; });
      if (m.storage && returned != w_.aliases.end())
        inputs[m.input] = outputs[returned->output];
      else if (now && !m.storage && now->sizes == input->sizes)
        input->copy_from(*now);
      else
        inputs[m.input] = now ? Value(*now) : after_[m.input];
    }
  }

  const RuntimeWrapper& w_;
  const SymbolMap symbols_;
  std::vector<Value> before_, after_;
  std::set<std::size_t> taken_;                     ///< inputs that have other memory now
  std::vector<const Tensor*> newest_;               ///< new values of inputs, which lie elsewhere
  std::vector<std::pair<Tensor, Tensor>> written_;  ///< new views of inputs, and their values
};

}  // namespace

std::optional<RuntimeWrapper> RuntimeWrapper::pre_compile(const AotGraphs& graphs) {
  RuntimeWrapper w;
  const ViewAndMutationMeta& meta = graphs.meta;
  const Graph& forward = *graphs.partition.forward;
  for (std::size_t i : meta.mutated_runtime_inputs()) {
    const InputAliasInfo& info = meta.inputs[i];
    w.mutated.push_back({.input = i,
                         .data = info.mutates_data,
                         .view_offset = std::nullopt,
                         .storage = info.mutates_storage,
                         .memory_of = info.memory_of});
    if (!info.shown) continue;
    w.mutated.back().view_offset = info.shown->offset;
    w.mutated.back().view_strides = info.shown->strides;
  }
  for (std::size_t i = 0; i < meta.outputs.size(); ++i) {
    const OutputAliasInfo& info = meta.outputs[i];
    const auto& place = info.place;
    const bool is_input = info.type == OutputType::IsInput;
    const auto of_itself = [&](std::size_t j) {
      return j < meta.outputs.size() && meta.outputs[j].place && meta.outputs[j].place->of == j;
    };
    const bool replaced = is_input && meta.inputs[*info.base_idx].mutates_storage;
    if (is_input && (replaced || !place)) w.aliases.push_back({i, *info.base_idx, true, std::nullopt});
    if (place && !place->in_input && of_itself(place->of))
      w.parts.push_back({i, place->of, place->shown.offset, place->shown.strides});
    else if (place && !place->in_input)
      w.shared.push_back({i, place->of, place->shown.offset, place->shown.strides, place->strides});
    else if (place && !replaced)
      w.aliases.push_back({i, place->of, is_input, place->shown.offset, place->shown.strides});
  }
  w.intermediate_bases = meta.num_intermediate_bases;
  if (w.mutated.empty() && w.aliases.empty() && w.shared.empty() && w.parts.empty() && w.intermediate_bases == 0)
    return std::nullopt;
  w.shapes = InputShapes::of(forward, graphs.tokens);
  return w;
}

std::optional<RuntimeWrapper> RuntimeWrapper::of_changed(const std::vector<std::size_t>& inputs) {
  if (inputs.empty()) return std::nullopt;
  RuntimeWrapper w;
  for (std::size_t i : inputs) w.mutated.push_back({.input = i, .view_offset = std::nullopt, .storage = true});
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

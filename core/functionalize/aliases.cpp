#include <algorithm>
#include <map>

#include "core/functionalize/eager_tensors.h"
#include "core/ir/place.h"

namespace partita {
namespace {

constexpr std::size_t npos = EagerTensors::npos;

/// Is there a dimension of several elements with stride 0, as expand makes?
bool repeats_elements(const TensorMeta& t) {
  for (std::size_t d = 0; t.strides_known && d < t.sizes.size(); ++d)
    if (t.strides[d].is(0) && !t.sizes[d].is(0) && !t.sizes[d].is(1)) return true;
  return false;
}

class Classifier {
 public:
  Classifier(const EagerTensors& eager, const std::vector<Node*>& inputs, const std::vector<Arg>& user,
             const std::vector<char>& needs)
      : eager_(eager), user_(user), needs_(needs) {
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (const std::size_t object = eager.object_of[inputs[i]->id()]; object != npos) {
        input_of_memory_.emplace(eager.objects[object].memory, i);
        input_of_object_.emplace(object, i);
      }
    for (const Arg& a : user)
      if (const std::size_t object = eager.object_at(a); object != npos) {
        const EagerObject& o = eager.objects[object];
        ++count_[o.memory];
        // Views that one call made together, as split does, are not counted.
        single_[o.memory] += std::ranges::none_of(o.steps, [](const ViewStep& s) { return s.part >= 0; });
      }
  }

  /// Sets type and base of output `i`.
  void classify(std::size_t i, OutputAliasInfo& info) {
    const std::size_t object = eager_.object_at(user_[i]);
    if (object == npos) return;
    const EagerObject& o = eager_.objects[object];
    const std::size_t count = count_[o.memory], single = single_[o.memory];
    if (const auto it = input_of_memory_.find(o.memory); it != input_of_memory_.end()) {
      if (info.requires_grad && single == 0) {
        // Views that one call makes together are not made again from their base.
        info.base_idx = it->second;
        return;
      }
      const auto same = input_of_object_.find(object);
      const bool is_input = same != input_of_object_.end();
      info.type = is_input ? OutputType::IsInput : OutputType::AliasOfInput;
      info.base_idx = is_input ? same->second : it->second;
      return;
    }
    Node* content = eager_.memories[o.memory].content;
    if (!o.steps.empty() && info.requires_grad && needs_[content->id()]) {
      if (count == 1 || single <= 1)
        info.type = OutputType::UnsafeViewAlias;
      else if (!take_base(info, o.memory, [](std::size_t, const EagerObject& base) { return base.steps.empty(); })) {
        const auto [it, fresh] = base_of_memory_.emplace(o.memory, bases.size());
        if (fresh) bases.push_back(content);
        info.type = fresh ? OutputType::AliasOfIntermediateSaveAsOutput : OutputType::AliasOfIntermediate;
        info.base_idx = it->second;
      }
    } else if (count > 1 && !info.requires_grad) {
      // y and y.detach() are both returned: the one without gradient is a view of the other.
      take_base(info, o.memory, [&](std::size_t j, const EagerObject& base) {
        return j != i && needs_[base.value->id()] && same_annotation(base.value->meta, o.value->meta);
      });
    }
  }

  std::vector<Node*> bases;

 private:
  /// Makes the first output that lies in `memory` and `suits` the base; false when there is none.
  template <typename Suits>
  bool take_base(OutputAliasInfo& info, std::size_t memory, Suits suits) const {
    for (std::size_t j = 0; j < user_.size(); ++j) {
      const std::size_t object = eager_.object_at(user_[j]);
      if (object == npos || eager_.objects[object].memory != memory || !suits(j, eager_.objects[object])) continue;
      info.type = OutputType::AliasOfIntermediateBaseIsUserOutput;
      info.base_idx = j;
      return true;
    }
    return false;
  }

  const EagerTensors& eager_;
  const std::vector<Arg>& user_;
  const std::vector<char>& needs_;
  std::map<std::size_t, std::size_t> input_of_memory_, input_of_object_, base_of_memory_;
  std::map<std::size_t, std::size_t> count_, single_;  ///< outputs in a memory
};

}  // namespace

void refuse_reads_between_writes(const EagerTensors& eager, const Node& call, const Schema& schema, const Args& bound) {
  const auto memory = [&](const Arg& a) {
    const std::size_t object = eager.object_at(a);
    return object == EagerTensors::npos ? object : eager.objects[object].memory;
  };
  for (std::size_t w = 0; w < bound.size(); ++w) {
    const auto* written = schema.args[w].is_write ? bound[w].get<ArgList>() : nullptr;
    for (std::size_t r = 0; written && r < bound.size(); ++r) {
      const auto* read = r == w ? nullptr : bound[r].get<ArgList>();
      for (std::size_t i = 0; read && i < written->items.size(); ++i)
        for (std::size_t j = i + 1; j < read->items.size(); ++j)
          if (const std::size_t of = memory(written->items[i]);
              of != EagerTensors::npos && of == memory(read->items[j]))
            throw Raise{unsupported("functionalize.mutation",
                                    call.op()->name + " reads a tensor of its list after it has written it",
                                    place_of(call))};
    }
  }
}

bool is_detached(const EagerObject& object) {
  return std::ranges::any_of(object.steps, [](const ViewStep& s) {
    const OpRecord* record = find_record(s.op);
    return record && record->not_differentiable;
  });
}

InputAliasInfo describe_input(const EagerTensors& eager, const Node& input, std::size_t i,
                              const FunctionalizeOptions& options, const HiddenWrites& hidden) {
  InputAliasInfo info;
  info.requires_grad = i < options.requires_grad.size() && options.requires_grad[i];
  const std::size_t object = eager.object_of[input.id()];
  if (object == npos) {
    info.is_leaf = info.mutations_hidden_from_autograd = false;
    return info;
  }
  const EagerObject& o = eager.objects[object];
  const EagerMemory& m = eager.memories[o.memory];
  info.mutates_data = m.version > 0;
  if (const TensorMeta* t = input.meta.tensor(); info.mutates_data && t && repeats_elements(*t))
    throw Raise{unsupported(
        "functionalize.mutation",
        "input " + input.name() + " is written, and several of its elements are one place in memory; pass a copy",
        place_of(input))};
  info.mutates_metadata = o.own_metadata_changed;
  info.mutations_under_no_grad = info.mutates_data && !m.written_with_grad;
  info.mutations_hidden_from_autograd = !info.mutates_data;
  // Writes that autograd does not see leave a leaf a leaf.
  const bool seen = info.mutates_data && m.written_with_grad && !hidden.contains(m.content);
  info.is_leaf = i < options.is_leaf.size() ? options.is_leaf[i] : !(info.requires_grad && seen);
  if (info.mutates_data || info.mutates_metadata) {
    const bool in_graph = options.keep_input_mutations && info.mutates_data && !info.mutates_metadata &&
                          (!info.requires_grad || info.mutations_under_no_grad);
    info.mutation_type = in_graph ? MutationType::MutatedInGraph : MutationType::MutatedOutGraph;
  }
  return info;
}

OutputAliases classify_outputs(const EagerTensors& eager, const std::vector<Node*>& inputs,
                               const std::vector<Arg>& user, const std::vector<Arg>& values,
                               const std::vector<char>& needs) {
  OutputAliases out;
  Classifier classifier(eager, inputs, user, needs);
  for (std::size_t i = 0; i < user.size(); ++i) {
    const Node* value = values[i].node();
    OutputAliasInfo& info = out.outputs.emplace_back();
    info.requires_grad = value && needs[value->id()];
    if (const TensorMeta* t = value ? value->meta.tensor() : nullptr)
      for (std::size_t d = 0; d < t->sizes.size(); ++d)
        if (!t->sizes[d].is_int()) info.dynamic_dims.push_back(d);
    classifier.classify(i, info);
  }
  out.bases = std::move(classifier.bases);
  return out;
}

}  // namespace partita

// Aliasing and mutation as functionalisation finds them: classifies outputs by PyTorch's OutputType, finds whose memory
// they lie in and where, describes mutated inputs, and refuses writes that no functional graph can do.
#include <algorithm>
#include <map>

#include "core/functionalize/eager_tensors.h"
#include "core/ir/place.h"
#include "core/ops/record/layout.h"
#include "core/tensor/significant_strides.h"

namespace partita {
namespace {

constexpr std::size_t npos = EagerTensors::npos;

/// Is there a dimension of several elements with stride 0, as expand makes?
bool repeats_elements(const TensorMeta& t) {
  for (std::size_t d = 0; t.strides_known && d < t.sizes.size(); ++d)
    if (t.strides[d].is(0) && !t.sizes[d].is(0) && !t.sizes[d].is(1)) return true;
  return false;
}

/// Are several elements one place in memory without a stride of 0, as as_strided can make them? The dimensions by their
/// strides, each must step over all that those before it reach. Takes guards for symbolic ones by their hints; false
/// where there are none.
bool elements_overlap(const TensorMeta& t, ShapeEnv& shapes) {
  if (!t.strides_known || is_row_major(t)) return false;
  struct Dim {
    std::int64_t hint;
    SymExpr stride, size;
  };
  std::vector<Dim> dims;
  for (std::size_t d = 0; d < t.sizes.size(); ++d) {
    const auto size = shapes.hint(t.sizes[d]), stride = shapes.hint(t.strides[d]);
    if (!size || !stride || *size == 0) return false;
    if (*size != 1) dims.push_back({*stride, t.strides[d], t.sizes[d]});
  }
  std::ranges::sort(dims, {}, &Dim::hint);
  SymExpr last = 0;
  for (const Dim& dim : dims) {
    const auto overlaps = shapes.evaluate(sym_le(dim.stride, last), "whether elements of a written input overlap");
    if (!overlaps || *overlaps) return true;
    last = last + dim.stride * (dim.size - 1);
  }
  return false;
}

/// How the object shows its memory, with an offset from where the memory's first tensor begins. Nullopt if it has
/// changed elements: there is no conjugate bit, so a conjugated view is a new value.
std::optional<TensorMeta> shown(const EagerTensors& eager, const EagerObject& object, ShapeEnv& shapes) {
  Meta now = eager.memories[object.memory].first->meta;
  if (!now.tensor()) return std::nullopt;
  now.tensor()->offset = 0;
  for (const ViewStep& step : object.steps) {
    const OpRecord* record = find_record(step.op);
    if (!now.tensor()->strides_known || !record || record->views.element_change != ElementChange::None)
      return std::nullopt;
    Graph scratch;
    const ViewArguments given = arguments(step, scratch.placeholder("x", now));
    Result<Meta> next = infer(step.op, given.args, given.kwargs, shapes);
    if (!next) return std::nullopt;
    now = *std::move(next);
    if (const MetaTuple* parts = now.tuple(); parts && step.part >= 0)
      now = Meta(parts->items.at(static_cast<std::size_t>(step.part)));
    if (!now.tensor()) return std::nullopt;
  }
  return now.tensor()->strides_known ? std::optional(*now.tensor()) : std::nullopt;
}

/// In bytes: from the first element to the end of the last.
SymExpr reach(const TensorMeta& t) {
  SymExpr last = 0;
  for (std::size_t d = 0; d < t.sizes.size(); ++d) last = last + (t.sizes[d] - 1) * t.strides[d];
  return (last + 1) * static_cast<std::int64_t>(itemsize(t.dtype));
}

bool views_storage(const ViewStep& step) {
  const OpRecord* record = find_record(step.op);
  return record && record->role == Role::ViewsStorage;
}

/// Does the view show each element of its memory once?
bool shows_all(const TensorMeta& view, const TensorMeta& memory) {
  const auto bytes = [](const TensorMeta& t) { return t.numel() * static_cast<std::int64_t>(itemsize(t.dtype)); };
  return view.offset.is(0) && bytes(view) == bytes(memory) && reach(view) == reach(memory) && !repeats_elements(view);
}

/// Is each element that `view` shows one of `memory`'s? Their offsets count from where the memory begins.
bool shows_elements_of(const TensorMeta& view, const TensorMeta& memory) {
  const auto size = concrete(memory.sizes), strides = concrete(memory.strides);
  const auto shown = concrete(view.sizes), shown_strides = concrete(view.strides);
  if (!size || !strides || !shown || !shown_strides || !view.offset.is_int()) return is_row_major(memory);
  if (view.numel().is(0)) return true;
  const auto end = view.offset.as_int() + unwrap(partita::reach(*shown, *shown_strides));
  const auto room = unwrap(partita::reach(*size, *strides));
  if (view.offset.as_int() < 0 || end > room) return false;
  if (room == memory.numel().as_int()) return true;
  std::vector<bool> is_element(static_cast<std::size_t>(room), false);
  const auto visit = [](const auto& sizes, const auto& by, std::int64_t at, const auto& each) {
    const auto go = [&](const auto& self, std::size_t d, std::int64_t place) -> bool {
      if (d == sizes.size()) return each(static_cast<std::size_t>(place));
      for (std::int64_t i = 0; i < sizes[d]; ++i)
        if (!self(self, d + 1, place + i * by[d])) return false;
      return true;
    };
    return go(go, 0, at);
  };
  visit(*size, *strides, 0, [&](std::size_t at) { return is_element[at] = true; });
  return visit(*shown, *shown_strides, view.offset.as_int(), [&](std::size_t at) { return is_element[at]; });
}

class Classifier {
 public:
  Classifier(const EagerTensors& eager, const std::vector<Node*>& inputs, const std::vector<Arg>& user,
             const std::vector<char>& needs)
      : eager_(eager), user_(user), needs_(needs) {
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (const std::size_t object = eager.object_of[inputs[i]->id()]; object != npos) {
        input_of_object_.emplace(object, i);
      }
    for (std::size_t m = 0; m < eager.memories.size(); ++m)
      if (eager.memories[m].input != npos) input_of_memory_.emplace(m, eager.memories[m].input);
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
      info.type = OutputType::AliasOfInput;
      info.base_idx = it->second;
    }
    if (const auto same = input_of_object_.find(object); same != input_of_object_.end()) {
      info.type = OutputType::IsInput;
      info.base_idx = same->second;
    }
    if (info.base_idx) return;
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

  /// Sets where outputs lie, once all are classified.
  void place(std::vector<OutputAliasInfo>& outputs, ShapeEnv& shapes) {
    std::vector<std::optional<TensorMeta>> seen(user_.size());
    std::map<std::size_t, std::pair<std::size_t, TensorMeta>> whole;  // by memory: a result that shows all of it
    std::map<std::size_t, std::size_t> seen_in, first;                // by memory: outputs; the first of them
    for (std::size_t i = 0; i < user_.size(); ++i) {
      const std::size_t object = eager_.object_at(user_[i]);
      if (object == npos) continue;
      const EagerObject& o = eager_.objects[object];
      const EagerMemory& m = eager_.memories[o.memory];
      const auto input = input_of_memory_.find(o.memory);
      if (m.replaced || (input == input_of_memory_.end() && count_[o.memory] < 2)) continue;
      seen[i] = shown(eager_, o, shapes);
      if (!seen[i]) continue;
      ++seen_in[o.memory];
      if (input != input_of_memory_.end())
        outputs[i].place = Place{true, input->second, *seen[i]};
      else if (shows_all(*seen[i], *m.first->meta.tensor()))
        whole.try_emplace(o.memory, i, *seen[i]);
    }
    for (const auto& [memory, base] : base_of_memory_) {
      TensorMeta first = *eager_.memories[memory].first->meta.tensor();
      first.offset = 0;
      whole.try_emplace(memory, user_.size() + base, std::move(first));
    }
    for (std::size_t i = 0; i < user_.size(); ++i) {
      if (!seen[i] || outputs[i].place) continue;
      const std::size_t memory = eager_.objects[eager_.object_at(user_[i])].memory;
      if (const auto base = whole.find(memory); base != whole.end()) {
        if (base->second.first != i)
          outputs[i].place = Place{false, base->second.first, *seen[i], base->second.second.strides};
      } else if (seen_in[memory] > 1) {
        outputs[i].place = Place{false, first.try_emplace(memory, i).first->second, *seen[i]};
      }
    }
  }

  std::vector<Node*> bases;

 private:
  /// Makes the first output that lies in `memory` and `suits` the base; false when there is none.
  bool take_base(OutputAliasInfo& info, std::size_t memory, auto suits) const {
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

void keep_known_sizes(Node& made, const Meta& annotated) {
  const TensorMeta *inferred = made.meta.tensor(), *known = annotated.tensor();
  if (!inferred || !known || inferred->dtype != known->dtype || inferred->dim() != known->dim()) return;
  if (concrete(inferred->sizes) || !concrete(known->sizes)) return;
  made.meta = annotated;
  if (!made.is(Op::getitem())) return;
  Node* tuple = made.args()[0].node();
  const auto* index = made.args()[1].get<std::int64_t>();
  auto* items = tuple ? std::get_if<MetaTuple>(&tuple->meta.v) : nullptr;
  if (items && index && *index >= 0 && static_cast<std::size_t>(*index) < items->items.size())
    items->items[static_cast<std::size_t>(*index)] = annotated;
}

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

void refuse_unknown_write(const Node& call) {
  const std::string& name = call.op()->name;
  const std::size_t end = name.rfind('.');
  if (end == std::string::npos || end < 2 || name[end - 1] != '_' || name[end - 2] == '_') return;  // not __and__
  throw Raise{unsupported("functionalize.mutation", name + " writes its argument by its name, and no schema says how",
                          place_of(call))};
}

void refuse_freed(const EagerMemory& memory, const Node* value) {
  if (!memory.freed) return;
  throw Raise{unsupported("functionalize.storage",
                          (value ? value->name() : std::string("a tensor")) +
                              " has no values: inductor.resize_storage_bytes_ freed its memory",
                          value ? place_of(*value) : Where{})};
}

void refuse_moved_storage(const ViewStep& step, const EagerMemory& memory) {
  if (!views_storage(step) || memory.content == memory.first) return;
  const TensorMeta &now = Builder::tensor(memory.content), &first = Builder::tensor(memory.first);
  const bool gaps = first.numel() * static_cast<std::int64_t>(itemsize(first.dtype)) != reach(first);
  if (gaps || now.strides != first.strides)
    fail_unsupported(step.op->name + " of a memory with gaps or transposed dimensions that was written");
}

std::vector<ViewStep> steps_of_write(const EagerTensors& eager, const EagerObject& object, Builder& build) {
  std::size_t last = object.steps.size();
  while (last > 0 && !views_storage(object.steps[last - 1])) --last;
  if (last == 0) return object.steps;
  const TensorMeta& memory = *eager.memories[object.memory].first->meta.tensor();
  EagerObject view = object;
  view.steps.resize(last);
  const std::optional<TensorMeta> now = shown(eager, view, *build.graph.shapes);
  view.steps.pop_back();
  const std::optional<TensorMeta> base = shown(eager, view, *build.graph.shapes);
  if (!now || !base || now->dtype != memory.dtype || !shows_elements_of(*now, memory))
    throw Raise{unsupported("functionalize.view", object.steps[last - 1].op->name +
                                                      " that shows what is no element of the tensor whose memory it "
                                                      "views is written; pass that memory as a row-major tensor")};
  if (shows_all(*base, memory)) return object.steps;
  std::vector<ViewStep> steps(object.steps.begin() + static_cast<std::ptrdiff_t>(last) - 1, object.steps.end());
  steps.front().args = {Arg(), build.sizes(now->sizes), build.sizes(now->strides), build.size(now->offset)};
  return steps;
}

bool lies_otherwise(const Node& a, const Node& b) {
  const TensorMeta *from = a.meta.tensor(), *to = b.meta.tensor();
  return from && to && from->sizes == to->sizes && from->strides_known && to->strides_known &&
         !same_significant_strides(to->sizes, from->strides, to->strides);
}

bool restore_gaps(EagerTensors& eager, const Node& call, Builder build, HiddenWrites& hidden) {
  bool restored = false;
  for (Node* input : call.inputs()) {
    const std::size_t object = eager.object_at(Arg(input));
    if (object == npos) continue;
    EagerMemory& memory = eager.memories[eager.objects[object].memory];
    if (!lies_otherwise(*memory.first, *memory.content)) continue;
    Node* const spread = build.call("aten.copy.default", {memory.first, memory.content});
    if (const auto it = hidden.find(memory.content); it != hidden.end()) hidden[spread] = it->second;
    memory.content = spread;
    ++memory.version;
    restored = true;
  }
  return restored;
}

bool loses_layout(const EagerMemory& memory, const Node* before) {
  if (!lies_otherwise(*before, *memory.content)) return false;
  const auto &from = *before->meta.tensor(), &to = *memory.content->meta.tensor();
  if (!memory.first->is_placeholder()) return true;
  const ShapeEnv& shapes = *memory.content->graph().shapes;
  return !same_significant_strides(to.sizes, like_preserving(from, shapes).strides,
                                   like_preserving(to, shapes).strides);
}

bool is_detached(const EagerObject& object) {
  return std::ranges::any_of(object.steps, [](const ViewStep& s) {
    const OpRecord* record = find_record(s.op);
    return record && record->autograd.not_differentiable;
  });
}

namespace {

/// An input that set_ gave other memory.
void describe_taken(const EagerTensors& eager, const Node& input, std::size_t i, ShapeEnv& shapes,
                    InputAliasInfo& info) {
  const EagerObject& o = eager.objects[eager.object_of[input.id()]];
  const EagerMemory& now = eager.memories[o.memory];
  const auto given = std::ranges::find(eager.memories, i, &EagerMemory::input);
  if (given->version > 0 && !given->freed)
    throw Raise{unsupported("functionalize.set",
                            "the memory that input " + input.name() +
                                " had before set_ is written; pass that memory as an input of its own",
                            place_of(input))};
  info.mutates_metadata = info.mutates_storage = true;
  info.resizes_storage = given->resized || now.resized;
  if (!now.freed) info.mutation_type = MutationType::MutatedOutGraph;
  if (now.freed || now.input == npos) return;
  info.memory_of = now.input;
  if (!now.replaced) info.shown = shown(eager, o, shapes);
}

}  // namespace

InputAliasInfo describe_input(const EagerTensors& eager, const Node& input, std::size_t i,
                              const FunctionalizeOptions& options, const FunctionalGraph& made) {
  InputAliasInfo info;
  info.requires_grad = i < options.requires_grad.size() && options.requires_grad[i];
  const std::size_t object = eager.object_of[input.id()];
  if (object == npos) {
    info.is_leaf = info.mutations_hidden_from_autograd = false;
    return info;
  }
  const EagerObject& o = eager.objects[object];
  const EagerMemory& m = eager.memories[o.memory];
  if (m.input != i) {
    describe_taken(eager, input, i, *made.graph->shapes, info);
    return info;
  }
  info.resizes_storage = m.resized;
  info.mutates_data = m.version > 0 && !m.freed;
  if (const TensorMeta* t = input.meta.tensor(); info.mutates_data && t && repeats_elements(*t))
    throw Raise{unsupported(
        "functionalize.mutation",
        "input " + input.name() + " is written, and several of its elements are one place in memory; pass a copy",
        place_of(input))};
  info.mutates_metadata = o.own_metadata_changed;
  if (info.mutates_metadata && !m.replaced) info.shown = shown(eager, o, *made.graph->shapes);
  info.seen_by_autograd = m.seen_by_autograd;
  info.mutations_under_no_grad = info.mutates_data && !m.written_with_grad;
  info.mutations_hidden_from_autograd = !info.mutates_data;
  // Writes that autograd does not see leave a leaf a leaf.
  const bool seen = info.mutates_data && m.written_with_grad && !made.hidden.contains(m.content);
  info.is_leaf = i < options.is_leaf.size() ? options.is_leaf[i] : !(info.requires_grad && seen);
  if (info.mutates_data || info.mutates_metadata) {
    // A kernel that reads and writes elements that overlap would read what it wrote.
    const bool in_graph = options.keep_input_mutations && info.mutates_data && !info.mutates_metadata &&
                          (!info.requires_grad || info.mutations_under_no_grad) &&
                          !(input.meta.tensor() && elements_overlap(*input.meta.tensor(), *made.graph->shapes));
    info.mutation_type = in_graph ? MutationType::MutatedInGraph : MutationType::MutatedOutGraph;
  }
  return info;
}

void refuse_hidden_parts(const std::vector<Node*>& inputs, const ViewAndMutationMeta& meta) {
  for (const OutputAliasInfo& o : meta.outputs) {
    if (!o.place || !o.place->in_input || o.type == OutputType::IsInput) continue;
    const InputAliasInfo& info = meta.inputs[o.place->of];
    const Node& input = *inputs[o.place->of];
    if (info.mutates_data && info.shown && !shows_all(*info.shown, *input.meta.tensor()))
      throw Raise{unsupported("aot.metadata",
                              "input " + input.name() +
                                  " is written and then shows a part of its memory, and an output shows another part; "
                                  "pass a copy",
                              place_of(input))};
  }
}

OutputAliases classify_outputs(const EagerTensors& eager, const std::vector<Node*>& inputs,
                               const std::vector<Arg>& user, const std::vector<Arg>& values,
                               const std::vector<char>& needs, ShapeEnv& shapes) {
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
  classifier.place(out.outputs, shapes);
  out.bases = std::move(classifier.bases);
  return out;
}

}  // namespace partita

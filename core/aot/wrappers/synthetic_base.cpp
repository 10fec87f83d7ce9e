// AOTSyntheticBaseWrapper: inputs that overlap, one of them written, become as_strided views of one flat input; so does
// an input whose memory as_strided shows beyond its elements. What overlaps is found from the values given.
#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "core/aot/wrapper.h"
#include "core/fake/propagate.h"
#include "core/functionalize/functionalize.h"
#include "core/functionalize/to_aten.h"
#include "core/ir/place.h"
#include "core/ops/facts/alias.h"
#include "core/ops/record/record.h"
#include "core/ops/schema/in_place.h"

namespace partita {
namespace {

/// Calls f with the place in the storage of each element.
void for_each_place(const Tensor& t, auto f) {
  std::vector<std::int64_t> index(t.sizes.size(), 0);
  for (std::int64_t n = t.numel(); n > 0; --n) {
    std::int64_t place = t.offset;
    for (std::size_t d = 0; d < index.size(); ++d) place += index[d] * t.strides[d];
    f(place);
    for (std::size_t d = index.size(); d-- > 0 && ++index[d] == t.sizes[d];) index[d] = 0;
  }
}

/// The whole memory of a tensor.
Tensor whole(const Tensor& t) {
  const auto elements = static_cast<std::int64_t>(t.storage->bytes() / itemsize(t.dtype));
  return {t.storage, t.dtype, {elements}, {1}, 0};
}

/// How many elements of memory it spans; nullopt when symbolic.
Result<std::optional<std::int64_t>> extent(const TensorMeta& t) {
  const auto sizes = concrete(t.sizes), strides = concrete(t.strides);
  if (!sizes || !strides) return std::optional<std::int64_t>();
  TRY(const std::int64_t elements, reach(*sizes, *strides));
  return std::optional(elements);
}

class Joining {
 public:
  Joining(Graph& graph, GraphInputs& inputs) : graph_(graph), inputs_(inputs), nodes_(graph.placeholders()) {}

  Result<std::optional<SyntheticBaseWrapper>> run() {
    for (std::size_t i = 0; i < inputs_.values.size(); ++i) out_.at.push_back(i);
    const std::vector<Node*> last = follow_in_place(graph_);
    for (std::size_t i = 0; i < nodes_.size(); ++i) last_[nodes_[i]] = last[i];
    TRY_DO(make_bases_of_places());
    TRY_DO(make_bases());
    if (out_.views.empty()) return std::optional<SyntheticBaseWrapper>();
    return std::optional(std::move(out_));
  }

 private:
  const Tensor* tensor(std::size_t i) const { return inputs_.values[i].get<Tensor>(); }

  void drop(std::size_t i, std::size_t kept) {
    graph_.erase(nodes_[i]);
    nodes_.erase(nodes_.begin() + static_cast<std::ptrdiff_t>(i));
    inputs_.drop(i, kept, out_.at);
  }

  Status make_bases() {
    if (!mutates_inputs(graph_)) return {};
    std::map<const Storage*, std::vector<std::size_t>> groups;
    for (std::size_t i = 0; i < inputs_.values.size(); ++i)
      if (const Tensor* t = tensor(i)) groups[t->storage.get()].push_back(i);
    std::erase_if(groups, [](const auto& group) { return group.second.size() < 2; });
    if (groups.empty()) return {};
    TRY(const FunctionalGraph functional, functionalize(graph_));
    std::vector<std::vector<Node*>> joined;
    for (const auto& [storage, group] : groups) {
      const auto written = [&](std::size_t i) { return functional.meta.inputs[i].mutates_data; };
      if (std::ranges::none_of(group, written) || !overlaps(group)) continue;
      joined.emplace_back();
      for (std::size_t i : group) joined.back().push_back(nodes_[i]);
    }
    for (const std::vector<Node*>& group : joined) TRY_DO(join(group));
    return {};
  }

  /// The graph in ATen calls, by which it is known what views a call makes; null if it is in ATen calls already, or
  /// cannot be, of which functionalisation tells why.
  std::unique_ptr<Graph> as_aten() const {
    const auto is_torch_level = [](const Node* n) { return n->op()->is_call() && n->op()->kind != OpKind::Torch; };
    if (std::ranges::none_of(graph_, is_torch_level)) return nullptr;
    Result<AtenGraph> made = to_aten(graph_);
    return made ? std::move(made->graph) : nullptr;
  }

  /// The place of the input of which as_strided shows memory that is not the input's, or tells a place in its memory
  /// while it begins elsewhere: compiled code knows the input's own elements only.
  Result<std::optional<std::size_t>> shown_from_outside() const {
    const auto lies_within_more = [&](std::size_t i) {
      const Tensor* t = tensor(i);
      return t && (t->offset != 0 || whole(*t).numel() != t->numel());
    };
    bool any = false;
    for (std::size_t i = 0; i < nodes_.size() && !any; ++i) any = lies_within_more(i);
    if (!any) return std::optional<std::size_t>();
    std::unique_ptr<Graph> inferred;
    const std::unique_ptr<Graph> aten = as_aten();
    const Graph& graph = aten ? *aten : graph_;
    const std::vector<Node*> inputs = graph.placeholders();
    for (const Node* n : graph) {
      if (n->op()->kind != OpKind::Torch) continue;
      const Op* view = view_in_place(n->op());
      const OpRecord* record = find_record(view ? view : n->op());
      if (!record || record->role != Role::ViewsStorage) continue;
      const auto i = static_cast<std::size_t>(std::ranges::find(inputs, memory_owner(n)) - inputs.begin());
      const Tensor* input = i < nodes_.size() ? tensor(i) : nullptr;
      const Node* known = n;
      if (!n->meta.tensor() || !n->args()[0].node()->meta.tensor()) {  // a graph without annotations
        if (!inferred) {
          inferred = graph.clone();
          if (!propagate(*inferred)) return std::optional<std::size_t>();  // functionalisation says why
        }
        known = inferred->find(n->name());
      }
      const TensorMeta *from = known->args()[0].node()->meta.tensor(), *to = known->meta.tensor();
      if (!input || !from || !to || !from->strides_known || !to->strides_known) continue;
      TRY(const Args bound, bind_arguments(*record->schema, n->args(), n->kwargs()));
      const int at = record->schema->index_of("storage_offset");
      const Arg place = at < 0 ? Arg() : bound[static_cast<std::size_t>(at)];
      if (!place.is_none() && input->offset != 0) return std::optional(i);
      if (whole(*input).numel() == input->numel()) continue;
      TRY(const std::optional<std::int64_t> end, extent(*to));
      if (const auto* from_start = place.get<std::int64_t>()) {
        TRY(const std::int64_t own, reach(input->sizes, input->strides));
        if (end && *from_start + *end > own) return std::optional(i);
      } else if (place.is_none()) {
        TRY(const std::optional<std::int64_t> own, extent(*from));
        if (end && own && *end > *own) return std::optional(i);
      }
    }
    return std::optional<std::size_t>();
  }

  Status make_bases_of_places() {
    while (true) {
      TRY(const std::optional<std::size_t> i, shown_from_outside());
      if (!i) return {};
      std::vector<Node*> group;
      for (std::size_t j = 0; j < nodes_.size(); ++j)
        if (const Tensor* t = tensor(j); j == *i || (t && t->storage == tensor(*i)->storage && mutates_inputs(graph_)))
          group.push_back(nodes_[j]);
      TRY_DO(join(group));
    }
  }

  bool overlaps(const std::vector<std::size_t>& group) const {
    for (std::size_t i = 0; i < group.size(); ++i)
      for (std::size_t j = i + 1; j < group.size(); ++j)
        if (overlap(*tensor(group[i]), *tensor(group[j]))) return true;
    return false;
  }

  std::size_t position(const Node* node) const {
    return static_cast<std::size_t>(std::ranges::find(nodes_, node) - nodes_.begin());
  }

  /// Puts one input in the place of the first of `group` and views of it in the place of all.
  Status join(const std::vector<Node*>& group) {
    const std::size_t first = position(group.front());
    const Tensor seen = *tensor(first);
    for (const Node* n : group) {
      const TensorMeta* meta = n->meta.tensor();
      const bool known = meta && concrete(meta->sizes) && concrete(meta->strides);
      if (!known || tensor(position(n))->dtype != seen.dtype)
        return unsupported("aot.shared",
                           "input " + n->name() + " overlaps an input that the graph writes, and has " +
                               (known ? "another dtype" : "symbolic sizes"),
                           place_of(*n));
    }
    const Tensor memory = whole(seen);
    Node* base = add_base(group.front(), memory);
    Node* call = graph_.first();
    while (call->is_placeholder()) call = call->next();
    std::set<const Node*> reshaped;  // their sizes or strides change
    for (Node* n : group) {
      const std::size_t i = position(n);
      const Tensor& t = *tensor(i);
      const auto list = [](const Sizes& numbers) {
        return Arg::list(std::vector<Arg>(numbers.begin(), numbers.end()));
      };
      Node* view = graph_.create(Op::torch("aten.as_strided.default"), {base, list(t.sizes), list(t.strides), t.offset},
                                 {}, n->name(), call);
      view->meta = n->meta;
      TensorMeta& meta = *view->meta.tensor();
      meta.strides.assign(t.strides.begin(), t.strides.end());
      meta.offset = t.offset;
      n->replace_all_uses_with(view);
      if (Node*& last = last_.at(n); last == n)
        last = view;
      else
        reshaped.insert(n);
      out_.views.push_back({caller(i), t.sizes, t.strides, t.offset});
    }
    for (Node* n : group) {
      const std::size_t i = position(n);
      if (reshaped.contains(n)) return_at_end(n, i);
      if (n == group.front()) continue;
      drop(i, position(group.front()));
    }
    take_place(group.front(), base, memory);
    return {};
  }

  Node* add_base(Node* before, const Tensor& memory) {
    TensorMeta meta;
    meta.dtype = memory.dtype;
    meta.sizes = {memory.numel()};
    meta.strides = {1};
    meta.storage_id = before->meta.tensor()->storage_id;
    Node* base = graph_.placeholder("base", meta, before);
    base->note = fmt::format("ViewBaseAOTInput(base_of=PlainAOTInput(idx={}))", position(before));
    return base;
  }

  void take_place(Node* first, Node* base, const Tensor& whole_memory) {
    const std::size_t i = position(first);
    graph_.erase(first);
    nodes_[i] = base;
    inputs_.values[i] = whole_memory;
    const std::string& memory = inputs_.memory[i];
    inputs_.keys[i] = memory.starts_with("storage.") ? memory : "storage." + inputs_.keys[i];
    inputs_.memory[i].clear();
  }

  void return_at_end(Node* placeholder, std::size_t i) {
    std::vector<Arg> results = graph_.outputs();
    results.emplace_back(last_.at(placeholder));
    graph_.set_output(Arg::tuple(std::move(results)));
    out_.returned.push_back(caller(i));
  }

  /// The caller's input that is still input i here.
  std::size_t caller(std::size_t i) const {
    return static_cast<std::size_t>(std::ranges::find(out_.at, i) - out_.at.begin());
  }

  Graph& graph_;
  GraphInputs& inputs_;
  std::vector<Node*> nodes_;           ///< placeholders
  std::map<const Node*, Node*> last_;  ///< by placeholder: what it is at the end
  SyntheticBaseWrapper out_;
};

}  // namespace

bool overlap(const Tensor& a, const Tensor& b) {
  if (a.storage != b.storage) return false;
  if (itemsize(a.dtype) != itemsize(b.dtype)) return true;
  std::vector<bool> touched(a.storage->bytes() / itemsize(a.dtype));
  for_each_place(a, [&](std::int64_t i) { touched[static_cast<std::size_t>(i)] = true; });
  bool meets = false;
  for_each_place(b, [&](std::int64_t i) { meets = meets || touched[static_cast<std::size_t>(i)]; });
  return meets;
}

Result<std::optional<SyntheticBaseWrapper>> SyntheticBaseWrapper::pre_compile(Graph& graph, GraphInputs& inputs) {
  return Joining(graph, inputs).run();
}

bool SyntheticBaseWrapper::is_base(std::size_t inner) const {
  return std::ranges::any_of(views, [&](const View& v) { return at[v.input] == inner; });
}

BoxedFn SyntheticBaseWrapper::post_compile(BoxedFn inner) const {
  return [w = *this, inner = std::move(inner)](std::vector<Value>& inputs) -> Result<std::vector<Value>> {
    std::vector<Value> passed(*std::ranges::max_element(w.at) + 1);
    for (const View& v : w.views) {
      const Tensor* t = inputs[v.input].get<Tensor>();
      Value& base = passed[w.at[v.input]];
      const Tensor* other = base.get<Tensor>();
      if (!t || t->sizes != v.sizes || t->strides != v.strides || t->offset != v.offset ||
          (other && other->storage != t->storage))
        return input_error(
            "aot.shared",
            fmt::format("input {} lies otherwise in memory than the one that the graph was made for", v.input));
      base = whole(*t);
    }
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      Value taken = std::exchange(inputs[i], {});
      if (!w.is_base(w.at[i])) passed[w.at[i]] = std::move(taken);
    }
    TRY(std::vector<Value> outputs, inner(passed));
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (!w.is_base(w.at[i])) inputs[i] = std::move(passed[w.at[i]]);
    const std::size_t own = outputs.size() - w.returned.size();
    for (std::size_t k = 0; k < w.returned.size(); ++k) inputs[w.returned[k]] = std::move(outputs[own + k]);
    outputs.resize(own);
    return outputs;
  };
}

}  // namespace partita

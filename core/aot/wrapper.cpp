// The list of AOTAutograd's wrappers: which come in what order, how they nest around compiled code, and a line about
// each. What one does is in core/aot/wrappers.
#include "core/aot/wrapper.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace partita {
namespace {

/// Inputs that lie in one memory have one storage_id.
void number_storages(const Graph& graph, const GraphInputs& inputs) {
  std::map<const Storage*, int> ids;
  const std::vector<Node*> nodes = graph.placeholders();
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const Tensor* t = inputs.values[i].get<Tensor>();
    TensorMeta* meta = nodes[i]->meta.tensor();
    if (t && meta) meta->storage_id = ids.emplace(t->storage.get(), static_cast<int>(ids.size())).first->second;
  }
}

template <class W>
void add(Wrappers& wrappers, std::optional<W> wrapper) {
  if (wrapper) wrappers.emplace_back(*std::move(wrapper));
}

std::string summary_of(const SubclassWrapper& w) {
  std::vector<std::string> parts;
  for (const auto& [what, items] : {std::pair{"input", &w.inputs}, {"output", &w.outputs}})
    for (std::size_t i = 0; i < items->size(); ++i)
      if (const SubclassWrapper::Item& item = (*items)[i]; !item.attributes.empty())
        parts.push_back(fmt::format("{} {} is a {} of {}", what, i, item.type, fmt::join(item.attributes, " and ")));
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string summary_of(const DedupeWrapper& w) {
  std::vector<std::string> same;
  for (std::size_t i = 0; i < w.at.size(); ++i)
    if (const auto first = static_cast<std::size_t>(std::ranges::find(w.at, w.at[i]) - w.at.begin()); first != i)
      same.push_back(fmt::format("input {} is input {}", i, first));
  return fmt::format("{}", fmt::join(same, ", "));
}

std::string summary_of(const SyntheticBaseWrapper& w) {
  std::map<std::size_t, std::vector<std::size_t>> bases;
  for (const SyntheticBaseWrapper::View& v : w.views) bases[w.at[v.input]].push_back(v.input);
  std::vector<std::string> parts;
  for (const auto& [base, views] : bases)
    parts.push_back(
        fmt::format("inputs {} are views of one memory, input {} of the graph", fmt::join(views, ", "), base));
  for (std::size_t i : w.returned) parts.push_back(fmt::format("input {} gets other sizes or strides", i));
  return fmt::format("{}", fmt::join(parts, "; "));
}

std::string summary_of(const DebugAssertWrapper&) {
  return "inputs without a gradient may not require one";
}

std::string summary_of(const RuntimeWrapper& w) {
  std::vector<std::string> parts;
  for (const RuntimeWrapper::Mutated& m : w.mutated)
    parts.push_back(fmt::format("input {} {}", m.input,
                                !m.view_offset ? m.data ? "is written" : "is replaced"
                                : m.memory_of  ? fmt::format("is a view of input {}", *m.memory_of)
                                : m.data       ? "is viewed anew and written"
                                               : "is viewed anew"));
  for (const RuntimeWrapper::Alias& a : w.aliases)
    parts.push_back(fmt::format("output {} is {}input {}", a.output, a.is_input ? "" : "a view of ", a.input));
  for (const RuntimeWrapper::Shared& s : w.shared)
    parts.push_back(fmt::format("output {} shares the memory of result {}", s.output, s.result));
  for (const RuntimeWrapper::Part& p : w.parts)
    if (p.output != p.memory)
      parts.push_back(fmt::format("output {} shares the memory of output {}", p.output, p.memory));
  if (w.intermediate_bases > 0) parts.push_back(fmt::format("{} bases are dropped", w.intermediate_bases));
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string summary_of(const AutogradDispatchWrapper& w) {
  std::string text = fmt::format("{} values are saved ({} of them numbers), {} tangents", w.saved, w.saved_symbols,
                                 w.tangent_of.size());
  if (!w.detached.empty()) text += fmt::format(", inputs {} are detached", fmt::join(w.detached, ", "));
  return text + (w.lazy_backward ? ", the backward is compiled when it is first needed" : "");
}

std::string summary_of(const FakifiedOutWrapper& w) {
  std::vector<std::string> parts;
  for (const FakifiedOutWrapper::Output& o : w.outputs) {
    std::vector<std::string> strides;
    for (SymExpr e : o.strides) strides.push_back(e.str());
    parts.push_back(fmt::format("result {} has strides [{}]", o.output, fmt::join(strides, ", ")));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string summary_of(const EffectTokensWrapper& w) {
  return fmt::format("{} token is passed through for the order of effects", w.tokens);
}

std::string summary_of(const FunctionalizedRngWrapper& w) {
  std::string text = fmt::format("result {} is the new random offset", w.offset_output);
  if (w.backward_offset_output) text += fmt::format(", of the backward result {}", *w.backward_offset_output);
  return text;
}

}  // namespace

BoxedFn boxed(CompiledFn function) {
  return [function = std::move(function)](std::vector<Value>& inputs) {
    std::vector<Value> taken(inputs.size());
    taken.swap(inputs);
    return function(std::move(taken));
  };
}

InputShapes InputShapes::of(const Graph& graph, std::size_t tokens) {
  InputShapes out;
  for (const Node* node : graph.placeholders()) {
    Shape shape;
    if (const SymExpr* e = node->meta.sym()) shape.number = *e;
    if (const TensorMeta* t = node->meta.tensor()) {
      shape.sizes = t->sizes;
      if (t->strides_known) shape.strides = t->strides;
    }
    out.inputs.push_back(std::move(shape));
  }
  out.inputs.erase(out.inputs.begin(), out.inputs.begin() + static_cast<std::ptrdiff_t>(tokens));
  return out;
}

SymbolMap InputShapes::bind(const std::vector<Value>& values) const {
  SymbolMap map;
  const auto bind_all = [&](const SymList& expected, const Sizes& found, const Sizes& sizes) {
    for (std::size_t d = 0; d < expected.size() && d < found.size(); ++d)
      if (expected[d].symbols().size() == 1 && (&found == &sizes || sizes[d] > 1)) map.bind(expected[d], found[d]);
  };
  for (std::size_t i = 0; i < inputs.size() && i < values.size(); ++i) {
    if (const auto* n = values[i].get<std::int64_t>(); n && inputs[i].number) map.bind(*inputs[i].number, *n);
    const Tensor* t = values[i].get<Tensor>();
    if (!t) continue;
    bind_all(inputs[i].sizes, t->sizes, t->sizes);
    if (t->numel() > 0) bind_all(inputs[i].strides, t->strides, t->sizes);
  }
  return map;
}

Result<Wrappers> wrap_inputs(Graph& graph, GraphInputs& inputs, bool bases) {
  Wrappers out;
  number_storages(graph, inputs);
  add(out, DedupeWrapper::pre_compile(graph, inputs));
  if (!bases) return out;
  TRY(std::optional<SyntheticBaseWrapper> joined, SyntheticBaseWrapper::pre_compile(graph, inputs));
  add(out, std::move(joined));
  return out;
}

Wrappers wrap_graphs(const AotGraphs& graphs, bool lazy_backward) {
  Wrappers out;
  add(out, DebugAssertWrapper::pre_compile(graphs));
  add(out, RuntimeWrapper::pre_compile(graphs));
  add(out, AutogradDispatchWrapper::pre_compile(graphs, lazy_backward));
  add(out, EffectTokensWrapper::pre_compile(graphs));
  add(out, FakifiedOutWrapper::pre_compile(graphs));
  add(out, FunctionalizedRngWrapper::pre_compile(graphs));
  return out;
}

BoxedFn post_compile(const Wrappers& wrappers, BoxedFn inner, std::shared_ptr<Autograd> autograd,
                     std::shared_ptr<PhiloxState> random) {
  for (std::size_t k = wrappers.size(); k-- > 0;)
    std::visit(
        [&](const auto& w) {
          using W = std::decay_t<decltype(w)>;
          if constexpr (std::is_same_v<W, AutogradDispatchWrapper>)
            inner = w.post_compile(std::move(inner), autograd);
          else if constexpr (std::is_same_v<W, FunctionalizedRngWrapper>)
            inner = w.post_compile(std::move(inner), random);
          else
            inner = w.post_compile(std::move(inner));
        },
        wrappers[k]);
  return inner;
}

CompiledFn post_compile_backward(const Wrappers& wrappers, CompiledFn backward, std::shared_ptr<PhiloxState> random) {
  for (const Wrapper& w : wrappers)
    if (const auto* rng = std::get_if<FunctionalizedRngWrapper>(&w))
      backward = rng->post_compile_backward(std::move(backward), random);
  return backward;
}

std::vector<std::size_t> places_of_inputs(const Wrappers& wrappers, std::size_t callers) {
  std::vector<std::size_t> place(callers);
  for (std::size_t i = 0; i < callers; ++i) place[i] = i;
  for (const Wrapper& w : wrappers)
    for (std::size_t& p : place) {
      if (const auto* dedupe = std::get_if<DedupeWrapper>(&w)) p = dedupe->at[p];
      if (const auto* base = std::get_if<SyntheticBaseWrapper>(&w)) p = base->at[p];
    }
  return place;
}

std::string_view name_of(const Wrapper& wrapper) {
  return std::visit([](const auto& w) { return w.name; }, wrapper);
}

std::string summary(const Wrapper& wrapper) {
  return std::visit([](const auto& w) { return summary_of(w); }, wrapper);
}

}  // namespace partita

#include <algorithm>
#include <map>

#include "core/functionalize/eager_tensors.h"

namespace partita {
namespace {

constexpr std::size_t npos = EagerTensors::npos;

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

  OutputAliasInfo classify(std::size_t i, bool needs_grad) {
    OutputAliasInfo info{.requires_grad = needs_grad};
    const std::size_t object = eager_.object_at(user_[i]);
    if (object == npos) return info;
    const EagerObject& o = eager_.objects[object];
    const std::size_t count = count_[o.memory], single = single_[o.memory];
    if (const auto it = input_of_memory_.find(o.memory); it != input_of_memory_.end()) {
      const auto same = input_of_object_.find(object);
      if (needs_grad && single == 0) return info;
      const bool is_input = same != input_of_object_.end();
      return {is_input ? OutputType::IsInput : OutputType::AliasOfInput, is_input ? same->second : it->second,
              needs_grad};
    }
    Node* content = eager_.memories[o.memory].content;
    if (!o.steps.empty() && needs_grad && needs_[content->id()]) {
      if (count == 1 || single <= 1) return {OutputType::UnsafeViewAlias, {}, needs_grad};
      if (const auto base = find_output(o.memory, [](std::size_t, const EagerObject& b) { return b.steps.empty(); }))
        return {OutputType::AliasOfIntermediateBaseIsUserOutput, base, needs_grad};
      const auto [it, fresh] = base_of_memory_.emplace(o.memory, bases.size());
      if (fresh) bases.push_back(content);
      return {fresh ? OutputType::AliasOfIntermediateSaveAsOutput : OutputType::AliasOfIntermediate, it->second,
              needs_grad};
    }
    if (count > 1 && !needs_grad) {
      // y and y.detach() are both returned: the one without gradient is a view of the other.
      const auto base = find_output(o.memory, [&](std::size_t j, const EagerObject& b) {
        return j != i && needs_[b.value->id()] && same_annotation(b.value->meta, o.value->meta);
      });
      if (base) return {OutputType::AliasOfIntermediateBaseIsUserOutput, base, needs_grad};
    }
    return info;
  }

  std::vector<Node*> bases;

 private:
  /// The first output that is in `memory` and `suits`.
  template <typename Suits>
  std::optional<std::size_t> find_output(std::size_t memory, Suits suits) const {
    for (std::size_t j = 0; j < user_.size(); ++j)
      if (const std::size_t object = eager_.object_at(user_[j]); object != npos)
        if (const EagerObject& o = eager_.objects[object]; o.memory == memory && suits(j, o)) return j;
    return std::nullopt;
  }

  const EagerTensors& eager_;
  const std::vector<Arg>& user_;
  const std::vector<char>& needs_;
  std::map<std::size_t, std::size_t> input_of_memory_, input_of_object_, base_of_memory_;
  std::map<std::size_t, std::size_t> count_, single_;  ///< outputs in a memory
};

}  // namespace

OutputAliases classify_outputs(const EagerTensors& eager, const std::vector<Node*>& inputs,
                               const std::vector<Arg>& user, const std::vector<Arg>& values,
                               const std::vector<char>& needs) {
  OutputAliases out;
  Classifier classifier(eager, inputs, user, needs);
  for (std::size_t i = 0; i < user.size(); ++i) {
    const Node* value = values[i].node();
    out.outputs.push_back(classifier.classify(i, value && needs[value->id()]));
  }
  out.bases = std::move(classifier.bases);
  return out;
}

}  // namespace partita

#include "core/functionalize/functionalize.h"

namespace partita {

std::string_view name_of(OutputType type) {
  static constexpr std::string_view names[] = {"non_alias",
                                               "alias_of_input",
                                               "is_input",
                                               "alias_of_intermediate",
                                               "alias_of_intermediate_save_as_output",
                                               "alias_of_intermediate_base_is_user_output",
                                               "unsafe_view_alias"};
  return names[static_cast<std::size_t>(type)];
}

std::string_view name_of(MutationType type) {
  static constexpr std::string_view names[] = {"NOT_MUTATED", "MUTATED_IN_GRAPH", "MUTATED_OUT_GRAPH"};
  return names[static_cast<std::size_t>(type)];
}

namespace {

/// The places of the items for which `fits` holds.
std::vector<std::size_t> places_of(const auto& items, const auto& fits) {
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < items.size(); ++i)
    if (fits(items[i])) out.push_back(i);
  return out;
}

}  // namespace

std::vector<std::size_t> ViewAndMutationMeta::mutated_runtime_inputs() const {
  return places_of(inputs, [](const auto& i) { return i.mutation_type == MutationType::MutatedOutGraph; });
}

std::vector<std::size_t> ViewAndMutationMeta::mutated_in_graph() const {
  return places_of(inputs, [](const auto& i) { return i.mutation_type == MutationType::MutatedInGraph; });
}

std::vector<std::size_t> ViewAndMutationMeta::outputs_of(OutputType type) const {
  return places_of(outputs, [&](const auto& o) { return o.type == type; });
}

std::vector<std::size_t> ViewAndMutationMeta::aliased_outputs() const {
  return places_of(
      outputs, [](const auto& o) { return o.type != OutputType::NonAlias && o.type != OutputType::UnsafeViewAlias; });
}

std::size_t ViewAndMutationMeta::num_forward_returns() const {
  return mutated_runtime_inputs().size() + outputs.size() + num_intermediate_bases;
}

}  // namespace partita

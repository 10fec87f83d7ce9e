#include "core/ops/facts/aspects.h"

#include "core/ops/record/evaluate.h"

namespace partita {
namespace {

std::string_view own(bool has, bool derived = false) {
  return has ? "own" : derived ? "derived" : "";
}

constexpr OpAspect aspects[] = {
    {"fake", [](const OpRecord& r) { return own(r.fake, r.pointwise.body || r.decompose); }},
    {"eval",
     [](const OpRecord& r) {
       const bool derived = r.eval == eval_by_loops || r.eval == eval_by_compile_decomposition;
       return own(r.eval && !derived, derived || r.pointwise.body || r.decompose);
     }},
    {"decompose", [](const OpRecord& r) { return own(r.decompose); }},
    {"compile", [](const OpRecord& r) { return own(r.compile_decompose); }},
    {"derivative",
     [](const OpRecord& r) -> std::string_view {
       return r.autograd.not_differentiable ? "none"
                                            : own(r.autograd.gradient || !r.autograd.derivative.empty(), r.decompose);
     }},
    {"lower",
     [](const OpRecord& r) -> std::string_view {
       if (!r.lower && r.library != LibraryRoutine::None) return "library";
       return own(r.lower, r.pointwise.body || r.decompose || r.compile_decompose);
     }},
};

}  // namespace

std::span<const OpAspect> op_aspects() {
  return aspects;
}

std::vector<std::string_view> op_tags(const OpRecord& r) {
  const std::pair<std::string_view, bool> tags[] = {
      {"expensive", r.cost.expensive},
      {"random", r.random || r.schema->nondeterministic_seeded},
      {"collective", r.collective != CollectivePart::None},
      {"side_effect", r.side_effect},
      {"pointwise", r.pointwise.body != nullptr},
      {"view", r.schema->is_view},
      {"mutable", r.schema->is_mutable},
  };
  std::vector<std::string_view> out;
  for (const auto& [name, has] : tags)
    if (has) out.push_back(name);
  return out;
}

}  // namespace partita

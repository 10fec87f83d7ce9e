#include "tests/fuzz/generate.h"

#include "tests/fuzz/generator.h"

namespace partita::fuzz {

Case generate(std::uint64_t seed, std::string_view only, const std::function<void(const Node&)>& trying) {
  return Generator(seed, only, trying).run();
}

std::vector<std::string> candidates(std::string_view only) {
  std::vector<std::string> names;
  for (const OpRecord* r : Candidates(only).all) names.push_back(r->schema->name);
  return names;
}

}  // namespace partita::fuzz

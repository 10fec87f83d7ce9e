#include "codegen/library/draft.h"

#include <algorithm>

#include <fmt/format.h>

namespace partita::codegen {

std::uint64_t LibraryDraft::weight(const std::string& name, const Tensor& tensor) {
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const Tensor& t = weights[i];
    if (t.storage == tensor.storage && t.offset == tensor.offset && t.sizes == tensor.sizes &&
        t.strides == tensor.strides && t.dtype == tensor.dtype)
      return i;
  }
  std::string own = name;
  const auto taken = [&](const std::string& text) {
    return std::ranges::any_of(description.weights, [&](const LibraryWeight& w) { return w.value.name == text; });
  };
  for (int k = 1; taken(own); ++k) own = fmt::format("{}.{}", name, k);
  LibraryWeight w{.value = {.name = std::move(own), .dtype = tensor.dtype}};
  for (std::int64_t n : tensor.sizes) w.value.sizes.push_back(std::to_string(n));
  for (std::int64_t n : tensor.strides) w.value.strides.push_back(std::to_string(n));
  description.weights.push_back(std::move(w));
  weights.push_back(tensor);
  return weights.size() - 1;
}

void LibraryDraft::note_written(std::size_t placeholder) {
  const LibraryArgument& a = description.arguments[placeholder];
  if (a.from == LibraryArgument::From::Weight) description.weights[a.index].written = true;
}

}  // namespace partita::codegen

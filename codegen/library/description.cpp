#include "codegen/library/description.h"

#include <algorithm>

#include "core/ir/archive_meta.h"

namespace partita::codegen {
namespace {

constexpr std::string_view heading = "PTL2";

}  // namespace

template <class A>
void fields(A& a, LibraryValue& v) {
  a(v.name, v.sizes, v.strides, v.number);
  a.choice(v.kind, 3);
  a(v.dtype);
}
template <class A>
void fields(A& a, LibraryWeight& w) {
  a(w.value, w.offset, w.written);
}
template <class A>
void fields(A& a, LibraryArgument& argument) {
  a.choice(argument.from, 4);
  a(argument.index);
}
template <class A>
void fields(A& a, LibraryGraphFacts& f) {
  a(f.numbers, f.constants, f.fixed);
}
template <class A>
void fields(A& a, LibraryDescription::Range& r) {
  a(r.low, r.high);
}
template <class A>
void fields(A& a, LibraryDescription& d) {
  a(d.trains, d.threads, d.inputs, d.outputs, d.gradients, d.weights, d.weights_file, d.arguments, d.forward,
    d.backward, d.constants, d.constant_inputs, d.folded, d.written, d.output_result, d.results, d.saved,
    d.saved_numbers, d.tangent_of, d.gradient_result, d.symbols);
}

namespace {

/// Do all indices name something?
bool sound(const LibraryDescription& d) {
  const auto below = [](const std::vector<std::uint64_t>& list, std::uint64_t count) {
    return std::ranges::all_of(list, [&](std::uint64_t i) { return i < count; });
  };
  const auto constants = [&](const LibraryGraphFacts& f) {
    return std::ranges::all_of(f.constants, [&](const auto& entry) { return entry.second < d.weights.size(); });
  };
  const auto argument = [&](const LibraryArgument& a) {
    using From = LibraryArgument::From;
    return a.from == From::Nothing || a.index < (a.from == From::Input    ? d.inputs.size()
                                                 : a.from == From::Weight ? d.weights.size()
                                                                          : d.folded);
  };
  const auto value = [](const LibraryValue& v) { return v.sizes.size() == v.strides.size(); };
  const auto written = [&](const auto& pair) { return pair.first < d.results && pair.second < d.arguments.size(); };
  return d.threads >= 1 && d.threads <= 1024 && std::ranges::all_of(d.arguments, argument) &&
         std::ranges::all_of(d.inputs, value) && std::ranges::all_of(d.outputs, value) &&
         std::ranges::all_of(d.gradients, value) &&
         std::ranges::all_of(d.weights, [&](const LibraryWeight& w) { return value(w.value); }) &&
         constants(d.forward) && constants(d.backward) && constants(d.constants) &&
         below(d.constant_inputs, d.weights.size()) && std::ranges::all_of(d.written, written) &&
         d.results <= 1'000'000 && below(d.output_result, d.results) && d.output_result.size() == d.outputs.size() &&
         d.saved <= 1'000'000 && d.saved_numbers <= d.saved && below(d.tangent_of, d.results) &&
         d.gradient_result.size() == d.gradients.size();
}

}  // namespace

std::string description_bytes(LibraryDescription description) {
  return *to_bytes(heading, std::move(description));
}

Result<LibraryDescription> read_description(std::string_view bytes) {
  if (auto d = from_bytes<LibraryDescription>(heading, bytes); d && sound(*d)) return *std::move(d);
  return input_error("library.damaged", "the library's description of its model is damaged; compile it again");
}

}  // namespace partita::codegen

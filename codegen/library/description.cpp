#include "codegen/library/description.h"

#include <algorithm>

#include "core/ir/archive_meta.h"

namespace partita::codegen {
namespace {

constexpr std::string_view heading = "PTL3";

/// Do all indices name something?
bool sound(const LibraryDescription& d) {
  const auto below = [](const std::vector<std::uint64_t>& list, std::uint64_t count) {
    return std::ranges::all_of(list, [&](std::uint64_t i) { return i < count; });
  };
  const auto parts = [&](const std::vector<LibraryPart>& list, std::uint64_t inputs) {
    return std::ranges::all_of(list, [&](const LibraryPart& p) {
      const bool holds = below(p.inputs, inputs) && p.numbers.size() == p.inputs.size() && p.results <= 1'000'000 &&
                         std::ranges::all_of(p.constants, [&](const auto& c) { return c.second < d.weights.size(); });
      inputs += p.results;
      return holds;
    });
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
         parts(d.forward, d.arguments.size()) && parts(d.backward, d.saved + d.tangent_of.size()) &&
         parts(d.constants, d.constant_inputs.size()) && d.forward.size() > 0 && d.trains == !d.backward.empty() &&
         (d.folded > 0) == !d.constants.empty() && below(d.constant_inputs, d.weights.size()) &&
         std::ranges::all_of(d.written, written) && d.results <= 1'000'000 && below(d.output_result, d.results) &&
         d.output_result.size() == d.outputs.size() && d.saved <= 1'000'000 && d.saved_numbers <= d.saved &&
         below(d.tangent_of, d.results) && d.gradient_result.size() == d.gradients.size();
}

}  // namespace

void fields(auto& a, LibraryValue& v) {
  a(v.name, v.sizes, v.strides, v.number);
  a.choice(v.kind, 3);
  a(v.dtype);
}
void fields(auto& a, LibraryWeight& w) {
  a(w.value, w.offset, w.written);
}
void fields(auto& a, LibraryArgument& argument) {
  a.choice(argument.from, 4);
  a(argument.index, argument.number);
}
void fields(auto& a, LibraryPart& p) {
  a(p.inputs, p.results, p.graph, p.numbers, p.constants, p.fixed);
}
void fields(auto& a, LibraryDescription::Range& r) {
  a(r.low, r.high);
}
void fields(auto& a, LibraryDescription& d) {
  a(d.trains, d.threads, d.inputs, d.outputs, d.gradients, d.weights, d.weights_file, d.arguments, d.forward,
    d.backward, d.constants, d.constant_inputs, d.folded, d.written, d.output_result, d.results, d.saved,
    d.saved_numbers, d.tangent_of, d.gradient_result, d.symbols);
}

std::string description_bytes(LibraryDescription description) {
  return *to_bytes(heading, std::move(description));
}

Result<LibraryDescription> read_description(std::string_view bytes) {
  if (auto d = from_bytes<LibraryDescription>(heading, bytes); d && sound(*d)) return *std::move(d);
  return input_error("library.damaged", "the library's description of its model is damaged; compile it again");
}

}  // namespace partita::codegen

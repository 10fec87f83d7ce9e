#include "codegen/library/runtime/runner.h"

#include <algorithm>
#include <unordered_map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "codegen/cpu/jit.h"
#include "core/schedule/instantiate.h"
#include "core/sym/solve.h"

namespace partita::codegen {
namespace {

constexpr std::size_t most_instances = 16, most_with_weights = 4;  // each holds its own packed weights

/// The functions that were linked into the library.
class LinkedCode final : public LoadedCode {
 public:
  explicit LinkedCode(const LibraryGraph& graph) {
    for (std::uint64_t i = 0; i < graph.function_count; ++i)
      functions_[graph.functions[i].name] = graph.functions[i].address;
  }
  Result<void*> find(const std::string& symbol) override {
    const auto found = functions_.find(symbol);
    if (found == functions_.end())
      return input_error("library.damaged", "the library has no function " + symbol + "; compile it again");
    return found->second;
  }

 private:
  std::unordered_map<std::string, void*> functions_;
};

std::string text(const std::map<std::string, std::int64_t>& sizes) {
  std::vector<std::string> parts;
  for (const auto& [name, value] : sizes) parts.push_back(fmt::format("{} = {}", name, value));
  return fmt::format("{}", fmt::join(parts, ", "));
}

/// Gives the symbol of e the value that follows, if it has none; false when e has another.
bool agrees(SymExpr e, std::int64_t value, std::map<std::string, std::int64_t>& sizes) {
  if (const auto known = schedule::instance_value(e, sizes)) return *known == value;
  const auto solved = solve(e, value);
  if (solved && !solved->value) return false;
  if (solved) sizes.emplace(solved->symbol, *solved->value);
  return true;
}

}  // namespace

Result<GraphRunner> GraphRunner::make(const LibraryGraphs& graphs, const LibraryGraphFacts& facts,
                                      const std::vector<Tensor>& weights, std::set<int> fixed,
                                      Result<Prepared> (*prepare)(const ExternContext&, std::string&)) {
  // Without the default, which would link the operators.
  GraphRunner r({.generator = nullptr, .compile_sub_graph = {}, .fixed_inputs = std::move(fixed), .prepare = prepare});
  const Diagnostic differ =
      input_error("library.damaged", "the library's program and description differ; compile it again");
  if (graphs.count != facts.fixed.size() || graphs.count == 0 || !facts.fixed[0].empty()) return differ;
  for (std::uint64_t i = 0; i < graphs.count; ++i) {
    TRY(Program program, read_program(graphs.graphs[i].program.text()));
    if (facts.numbers.size() != program.plan.inputs.size() ||
        (i > 0 && program.plan.outputs.size() != r.program().plan.outputs.size()))
      return differ;
    r.code_.push_back({facts.fixed[i], std::make_shared<const Program>(std::move(program)),
                       std::make_shared<LinkedCode>(graphs.graphs[i])});
  }
  for (const std::string& number : facts.numbers) {
    TRY(SymExpr e, number.empty() ? Result<SymExpr>(SymExpr(0)) : SymExpr::parse(number));
    r.numbers_.push_back(e);
  }
  for (const auto& [name, index] : facts.constants) r.constants_[name] = weights[index];
  return r;
}

Status GraphRunner::bind(std::size_t placeholder, const Value& value, const std::string& name,
                         std::map<std::string, std::int64_t>& sizes) const {
  if (const auto* number = value.get<std::int64_t>()) {
    if (numbers_[placeholder].is_int() || agrees(numbers_[placeholder], *number, sizes)) return {};
    return input_error("library.size", fmt::format("{} is {}, but {} is known as another number: {}", name, *number,
                                                   numbers_[placeholder].str(), text(sizes)));
  }
  const auto* tensor = value.get<Tensor>();
  const TensorMeta& meta = program().plan.inputs[placeholder];
  if (!tensor || meta.sizes.size() != tensor->sizes.size()) return {};  // the program says what it misses
  for (std::size_t d = 0; d < tensor->sizes.size(); ++d)
    if (!agrees(meta.sizes[d], tensor->sizes[d], sizes))
      return input_error("library.size",
                         fmt::format("{} has size {} in dimension {}, but the model takes {}{}", name, tensor->sizes[d],
                                     d, meta.sizes[d].str(), sizes.empty() ? "" : ", with " + text(sizes)));
  return {};
}

Value GraphRunner::number(std::size_t placeholder, const std::map<std::string, std::int64_t>& sizes) const {
  if (numbers_[placeholder].is_int()) return {};
  const auto value = schedule::instance_value(numbers_[placeholder], sizes);
  return value ? Value(*value) : Value();
}

Result<std::vector<Value>> GraphRunner::run(const std::vector<Value>& values,
                                            std::map<std::string, std::int64_t> sizes) {
  if (values.size() != numbers_.size())
    return input_error("library.inputs",
                       fmt::format("{} values are given, but the graph takes {}", values.size(), numbers_.size()));
  // A second time round, expressions whose symbols came later are checked.
  for (int round = 0; round < 2; ++round)
    for (std::size_t i = 0; i < values.size(); ++i) TRY_DO(bind(i, values[i], fmt::format("value {}", i), sizes));
  auto found = std::ranges::find(instances_, sizes, &Instance::sizes);
  if (found == instances_.end()) {
    const Code* code = code_for(sizes);
    std::vector<std::string> broken;
    for (const Guard& g : schedule::broken_guards((code ? code->program : code_[0].program)->plan.guards, sizes))
      broken.push_back(fmt::format("{} ({})", g.condition.str(), g.reason));
    if (!broken.empty())
      return input_error("library.guard",
                         fmt::format("the inputs break {}, with {}", fmt::join(broken, " and "), text(sizes)));
    if (!code)
      return input_error("library.guard",
                         fmt::format("the library has no code for {}; sizes 0 and 1 need code of their "
                                     "own, use `partita run` for them",
                                     text(sizes)));
    const bool known = code->fixed.size() == sizes.size();
    TRY(auto executable, load_program(code->program, known ? std::map<std::string, std::int64_t>() : sizes,
                                      code->functions, constants_, options_));
    instances_.push_back({std::move(sizes), std::move(executable)});
    if (instances_.size() > (options_.fixed_inputs.empty() ? most_instances : most_with_weights))
      instances_.pop_front();
    found = std::prev(instances_.end());
  } else {
    instances_.splice(instances_.end(), instances_, found);
  }
  return found->executable->run(values);
}

const GraphRunner::Code* GraphRunner::code_for(const std::map<std::string, std::int64_t>& sizes) const {
  const Code* fitting = nullptr;
  for (const Code& code : code_) {
    const auto fits = [&](const auto& size) {
      const auto it = code.fixed.find(size.first);
      return it == code.fixed.end() ? size.second >= 2 : it->second == size.second;
    };
    const auto known = [&](const auto& size) { return sizes.contains(size.first); };
    if (!std::ranges::all_of(sizes, fits) || !std::ranges::all_of(code.fixed, known)) continue;
    if (schedule::broken_guards(code.program->plan.guards, sizes).empty()) return &code;
    if (!fitting) fitting = &code;
  }
  return fitting;
}

void GraphRunner::set_threads(int threads) {
  for (Code& code : code_) {
    auto program = std::make_shared<Program>(*code.program);
    program->plan.target.threads = threads;
    code.program = std::move(program);
  }
  instances_.clear();
}

}  // namespace partita::codegen

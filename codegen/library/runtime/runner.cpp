// Runs a graph of a library part by part: learns sizes from the inputs, takes code whose guards hold, and keeps the
// last programs that were prepared for sizes. Parts without code for the sizes are interpreted.
#include "codegen/library/runtime/runner.h"

#include <algorithm>
#include <unordered_map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/base/mapped.h"
#include "core/schedule/instantiate.h"
#include "core/sym/float_symbol.h"
#include "core/sym/solve.h"

namespace partita::codegen {
namespace {

constexpr std::size_t most_instances = 16, most_with_weights = 4;  // each holds its own packed weights

/// The functions that were linked into the library.
class LinkedCode final : public LoadedCode {
 public:
  explicit LinkedCode(const LibraryPartCode& code) {
    for (std::uint64_t i = 0; i < code.function_count; ++i)
      functions_[code.functions[i].name] = code.functions[i].address;
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
  for (const auto& [name, value] : sizes)
    parts.push_back(fmt::format("{} = {}", name, symbol_value(name, value).str()));
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

Diagnostic differ() {
  return input_error("library.damaged", "the library's program and description differ; compile it again");
}

}  // namespace

Result<SymExpr> expression(const std::string& text) {
  return text.empty() ? Result<SymExpr>(SymExpr(0)) : SymExpr::parse(text);
}

Status bind_sizes(const Value& value, const SymList& sizes, SymExpr number, const std::string& name,
                  std::map<std::string, std::int64_t>& known) {
  if (const auto* integer = value.get<std::int64_t>()) {
    if (number.is_int() || agrees(number, *integer, known)) return {};
    return input_error("library.size", fmt::format("{} is {}, but {} is known as another number: {}", name, *integer,
                                                   number.str(), text(known)));
  }
  if (const auto* real = value.get<double>(); real && number.kind() == SymKind::Symbol && number.is_float())
    known.emplace(number.name(), float_bits(*real));
  const auto* tensor = value.get<Tensor>();
  if (!tensor || sizes.size() != tensor->sizes.size()) return {};  // the program says what it misses
  for (std::size_t d = 0; d < tensor->sizes.size(); ++d)
    if (!agrees(sizes[d], tensor->sizes[d], known))
      return input_error("library.size",
                         fmt::format("{} has size {} in dimension {}, but the model takes {}{}", name, tensor->sizes[d],
                                     d, sizes[d].str(), known.empty() ? "" : ", with " + text(known)));
  return {};
}

Result<PartRunner> PartRunner::make(const LibraryContext& library, const LibraryPartCodes& codes,
                                    const LibraryPart& part, std::set<int> fixed,
                                    std::shared_ptr<Generator> generator) {
  // Without the default of `prepare`, which would link the operators.
  PartRunner r({.generator = std::move(generator),
                .compile_sub_graph = {},
                .fixed_inputs = std::move(fixed),
                .prepare = library.image.prepare});
  if (codes.count != part.fixed.size() || (codes.count > 0 && !part.fixed[0].empty()) ||
      (codes.count == 0 && part.graph.empty()) || (!part.graph.empty() && !library.image.interpret))
    return differ();
  for (std::uint64_t i = 0; i < codes.count; ++i) {
    TRY(Program program, read_program(codes.codes[i].program.text()));
    if (part.numbers.size() != program.plan.inputs.size() || program.plan.outputs.size() != part.results)
      return differ();
    r.code_.push_back({part.fixed[i], std::make_shared<const Program>(std::move(program)),
                       std::make_shared<LinkedCode>(codes.codes[i])});
  }
  for (const std::string& number : part.numbers) {
    TRY(const SymExpr e, expression(number));
    r.numbers_.push_back(e);
  }
  for (const auto& [name, index] : part.constants) r.constants_[name] = library.weights[index];
  r.inputs_ = part.inputs;
  r.interpret_ = library.image.interpret;
  r.threads_ = library.threads;
  if (part.graph.empty()) return r;
  TRY(std::unique_ptr<Graph> graph, read_graph(part.graph));
  if (graph->placeholders().size() != part.inputs.size()) return differ();
  for (const auto& [name, tensor] : r.constants_) graph->attributes.insert_or_assign(name, tensor);
  r.graph_ = std::move(graph);
  return r;
}

Result<std::vector<Value>> PartRunner::interpreted(const std::vector<Value>& values) const {
  return interpret_(*graph_, values, threads_, options_.generator);
}

Result<std::vector<Value>> PartRunner::run(const std::vector<Value>& values) {
  if (!program()) return interpreted(values);
  std::map<std::string, std::int64_t> sizes;
  // A second time round, expressions whose symbols came later are checked.
  for (int round = 0; round < 2; ++round)
    for (std::size_t i = 0; i < values.size(); ++i)
      TRY_DO(bind_sizes(values[i], program()->plan.inputs[i].sizes, numbers_[i], fmt::format("value {}", i), sizes));
  auto found = std::ranges::find(instances_, sizes, &Instance::sizes);
  if (found == instances_.end()) {
    const Code* code = code_for(sizes);
    const auto broken = schedule::broken_guards((code ? *code->program : *program()).plan.guards, sizes);
    if (graph_ && (!code || !broken.empty())) return interpreted(values);
    if (!broken.empty()) {
      std::vector<std::string> guards;
      for (const Guard& g : broken) guards.push_back(fmt::format("{} ({})", g.condition.str(), g.reason));
      return input_error("library.guard",
                         fmt::format("the inputs break {}, with {}", fmt::join(guards, " and "), text(sizes)));
    }
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

const PartRunner::Code* PartRunner::code_for(const std::map<std::string, std::int64_t>& sizes) const {
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

void PartRunner::set_threads(int threads) {
  threads_ = threads;
  for (Code& code : code_) {
    auto program = std::make_shared<Program>(*code.program);
    program->plan.target.threads = threads;
    code.program = std::move(program);
  }
  instances_.clear();
}

Result<GraphRunner> GraphRunner::make(const LibraryContext& library, const LibraryGraph& graph,
                                      const std::vector<LibraryPart>& parts, std::size_t inputs, std::size_t results,
                                      const std::set<int>& fixed) {
  GraphRunner r;
  if (graph.count != parts.size() || parts.empty() || parts.back().results != results) return differ();
  if (parts.size() > 1) r.generator_ = std::make_shared<Generator>();
  std::size_t given = inputs;
  for (std::size_t k = 0; k < parts.size(); ++k) {
    std::set<int> own;
    for (std::size_t i = 0; i < parts[k].inputs.size(); ++i) {
      if (parts[k].inputs[i] >= given) return differ();
      if (parts[k].inputs[i] < inputs && fixed.contains(static_cast<int>(parts[k].inputs[i])))
        own.insert(static_cast<int>(i));
    }
    TRY(PartRunner part, PartRunner::make(library, graph.parts[k], parts[k], std::move(own), r.generator_));
    r.parts_.push_back(std::move(part));
    given += parts[k].results;
  }
  return r;
}

Result<std::vector<Value>> GraphRunner::run(const std::vector<Value>& values) {
  if (generator_) *generator_ = Generator();  // runs are alike
  std::vector<Value> pool = values;
  for (PartRunner& part : parts_) {
    TRY(std::vector<Value> made, part.run(mapped(part.inputs(), [&](std::uint64_t i) { return pool[i]; })));
    if (&part == &parts_.back()) return made;
    std::ranges::move(made, std::back_inserter(pool));
  }
  return differ();
}

void GraphRunner::set_threads(int threads) {
  for (PartRunner& part : parts_) part.set_threads(threads);
}

}  // namespace partita::codegen

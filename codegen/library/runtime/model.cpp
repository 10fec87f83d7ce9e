// A loaded model: chooses the code for this processor, takes weights from the library or a file, and runs forward and
// backward on the caller's inputs, with weights and saved values in their places.
#include "codegen/library/runtime/model.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include <dlfcn.h>
#include <fmt/format.h>

#include "codegen/cpu/extern/onednn_calls.h"
#include "codegen/cpu/extern/routines.h"
#include "core/base/assign.h"
#include "core/base/mapped.h"
#include "core/load/safetensors.h"
#include "core/schedule/instantiate.h"

namespace partita::codegen {
namespace {

bool processor_has(std::string_view isa) {
#ifdef __x86_64__
  __builtin_cpu_init();
  if (isa == "avx512")
    return processor_has("avx2") && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl");
  if (isa == "avx2")
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c") &&
           __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("lzcnt");
  return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt");
#else
  return isa == "baseline";
#endif
}

/// The code for the most that the processor has and PARTITA_ISA permits.
Result<const LibraryCode*> choose(const LibraryImage& image) {
  const char* limit = std::getenv("PARTITA_ISA");
  const LibraryCode* chosen = nullptr;
  std::string known;
  for (std::uint64_t i = 0; i < image.code_count; ++i) {
    const LibraryCode& code = image.code[i];
    known += (known.empty() ? "" : ", ") + std::string(code.isa);
    if (processor_has(code.isa)) chosen = &code;
    if (limit && std::strcmp(limit, code.isa) == 0) limit = nullptr, i = image.code_count;
  }
  if (limit && *limit)
    return input_error("library.isa", fmt::format("PARTITA_ISA is {}, but the library has code for {}", limit, known));
  if (!chosen)
    return unsupported("library.isa", "this processor lacks the instructions of every code in the library: " + known);
  return chosen;
}

std::filesystem::path own_folder(const LibraryImage& image) {
  Dl_info found{};
  if (!::dladdr(&image, &found) || !found.dli_fname) return {};
  return std::filesystem::path(found.dli_fname).parent_path();
}

Result<Sizes> integers(const std::vector<std::string>& texts) {
  Sizes out;
  for (const std::string& text : texts) {
    TRY(const SymExpr e, SymExpr::parse(text));
    out.push_back(e.is_int() ? e.as_int() : -1);
  }
  return out;
}

Result<ValueFacts> facts_of(const LibraryValue& value) {
  ValueFacts facts;
  facts.name = value.name;
  TRY(facts.sizes, integers(value.sizes));
  TRY(facts.strides, integers(value.strides));
  facts.texts = value.sizes;
  return facts;
}

/// Sets the pointers of facts that have reached their place.
void finish(std::vector<ValueFacts>& list, const std::vector<LibraryValue>& values) {
  for (std::size_t i = 0; i < list.size(); ++i) {
    ValueFacts& f = list[i];
    for (std::size_t d = 0; d < f.sizes.size(); ++d)
      f.size_names.push_back(f.sizes[d] < 0 ? f.texts[d].c_str() : nullptr);
    const bool none = values[i].kind == LibraryValue::Kind::None;
    f.info = {f.name.c_str(),
              none ? std::int32_t{PARTITA_NONE} : static_cast<std::int32_t>(values[i].dtype) + 1,
              static_cast<std::int32_t>(f.sizes.size()),
              f.sizes.data(),
              f.size_names.data(),
              f.strides.data()};
  }
}

/// A copy with the same strides.
Result<Tensor> copied(const Tensor& t) {
  TRY(Tensor copy, Tensor::empty_strided(t.dtype, t.sizes, t.strides));
  copy.copy_from(t);
  return copy;
}

}  // namespace

Result<std::unique_ptr<Model>> Model::load(const LibraryImage& image, const char* weights) {
  auto model = std::make_unique<Model>();
  TRY(model->description_, read_description(image.description.text()));
  TRY(const LibraryCode* code, choose(image));
  model->isa_ = code->isa;
  TRY_DO(model->take_weights(image, weights));
  TRY_DO(model->make_runners(*code, image));
  TRY_DO(model->describe());
  return model;
}

Status Model::take_weights(const LibraryImage& image, const char* path) {
  std::string file = path ? path : "";
  if (file.empty() && !description_.weights_file.empty()) file = own_folder(image) / description_.weights_file;
  TensorFile given;
  if (!file.empty()) TRY_DO(assign(given, read_safetensors(file)));
  for (const LibraryWeight& w : description_.weights) {
    Tensor t;
    t.dtype = w.value.dtype;
    TRY(t.sizes, integers(w.value.sizes));
    TRY(t.strides, integers(w.value.strides));
    TRY(const std::int64_t count, reach(t.sizes, t.strides));
    const std::size_t bytes = static_cast<std::size_t>(count) * itemsize(t.dtype);
    if (const Tensor* found = given.find(w.value.name)) {
      if (found->dtype != t.dtype || found->sizes != t.sizes)
        return input_error("library.weights",
                           fmt::format("{}: {} has another dtype or other sizes than the model's", file, w.value.name));
      if (found->strides == t.strides) {
        t = *found;
      } else {
        TRY(t, Tensor::empty_strided(t.dtype, t.sizes, t.strides));
        t.copy_from(*found);
      }
    } else if (!file.empty()) {
      return input_error("library.weights", fmt::format("{}: there is no {}", file, w.value.name));
    } else {
      if (w.offset > image.weights.size || bytes > image.weights.size - w.offset)
        return input_error("library.damaged", "the weight " + w.value.name + " lies outside of the library's weights");
      auto* data = reinterpret_cast<std::byte*>(const_cast<char*>(image.weights.data + w.offset));
      t.storage = Storage::borrow(data, bytes, nullptr);
      if (description_.trains || w.written) {  // the library's own bytes cannot be written
        TRY(t, copied(t));
      }
    }
    weights_.push_back(std::move(t));
  }
  return {};
}

Status Model::make_runners(const LibraryCode& code, const LibraryImage& image) {
  using From = LibraryArgument::From;
  const LibraryDescription& d = description_;
  const LibraryContext library{.image = image, .weights = weights_, .threads = d.threads};
  if (d.folded > 0) {
    TRY(GraphRunner constants,
        GraphRunner::make(library, code.constants, d.constants, d.constant_inputs.size(), d.folded, {}));
    TRY(folded_, constants.run(mapped(d.constant_inputs, [&](std::uint64_t i) { return Value(weights_[i]); })));
  }
  std::set<int> fixed;
  if (!d.trains)
    for (std::size_t i = 0; i < d.arguments.size(); ++i)
      if (const LibraryArgument& a = d.arguments[i];
          a.from == From::Folded || (a.from == From::Weight && !d.weights[a.index].written))
        fixed.insert(static_cast<int>(i));
  TRY(forward_, GraphRunner::make(library, code.forward, d.forward, d.arguments.size(), d.results + d.saved, fixed));
  // A machine without oneDNN is told so here, not in the first run.
  const bool calls_library = std::ranges::any_of(forward_->parts(), [](const PartRunner& part) {
    return part.program() && std::ranges::any_of(part.program()->calls,
                                                 [](const ProgramCall& call) { return needs_onednn(call.routine); });
  });
  if (calls_library) onednn_function("dnnl_engine_create");
  if (!d.trains) return {};
  if (d.backward.back().results < d.gradient_result.size() ||
      std::ranges::any_of(d.gradient_result, [&](std::uint64_t i) { return i >= d.backward.back().results; }))
    return input_error("library.damaged", "the library's program and description differ; compile it again");
  TRY(backward_, GraphRunner::make(library, code.backward, d.backward, d.saved + d.tangent_of.size(),
                                   d.backward.back().results, {}));
  return {};
}

Status Model::describe() {
  const auto fill = [](std::vector<ValueFacts>& out, const std::vector<LibraryValue>& values) -> Status {
    for (const LibraryValue& v : values) {
      TRY(ValueFacts facts, facts_of(v));
      out.push_back(std::move(facts));
    }
    finish(out, values);
    return {};
  };
  TRY_DO(fill(inputs_, description_.inputs));
  TRY_DO(fill(outputs_, description_.outputs));
  TRY_DO(fill(gradients_, description_.gradients));
  TRY_DO(fill(weight_facts_, mapped(description_.weights, &LibraryWeight::value)));
  for (const auto& [symbol, range] : description_.symbols)
    guards_.push_back(range.high == INT64_MAX ? fmt::format("{} <= {}", range.low, symbol)
                                              : fmt::format("{} <= {} <= {}", range.low, symbol, range.high));
  for (const GraphRunner* runner : {&*forward_, backward_ ? &*backward_ : nullptr}) {
    if (!runner) continue;
    for (const PartRunner& part : runner->parts()) {
      if (part.is_general()) continue;
      for (const Guard& g : part.program()->plan.guards)
        if (const std::string text = g.condition.str(); std::ranges::find(guards_, text) == guards_.end())
          guards_.push_back(text);
    }
  }
  for (const LibraryValue& input : description_.inputs) {
    SymList& sizes = input_sizes_.emplace_back();
    for (const std::string& size : input.sizes) {
      TRY(const SymExpr e, expression(size));
      sizes.push_back(e);
    }
  }
  for (const LibraryArgument& argument : description_.arguments) {
    TRY(const SymExpr e, expression(argument.number));
    numbers_.push_back(e);
  }
  return {};
}

Status Model::set_threads(int threads) {
  if (threads < 1 || threads > 1024)
    return input_error("library.threads", fmt::format("{} threads; from 1 to 1024 can be used", threads));
  std::lock_guard lock(mutex_);
  forward_->set_threads(threads);
  if (backward_) backward_->set_threads(threads);
  return {};
}

Result<Tensor> Model::weight(std::size_t index) const {
  if (!description_.trains)
    return input_error("library.weights", "the weights of a model without --train cannot be written");
  return weights_[index];
}

Result<std::vector<Value>> Model::arguments(const std::vector<Value>& inputs) const {
  using From = LibraryArgument::From;
  std::vector<Value> out;
  for (const LibraryArgument& a : description_.arguments)
    out.push_back(a.from == From::Input    ? inputs[a.index]
                  : a.from == From::Folded ? folded_[a.index]
                  : a.from == From::Weight ? Value(weights_[a.index])
                                           : Value());
  std::map<std::string, std::int64_t> sizes;
  for (int round = 0; round < 2; ++round)  // the second one checks expressions whose symbols came later
    for (std::size_t i = 0; i < out.size(); ++i)
      if (const LibraryArgument& a = description_.arguments[i]; a.from == From::Input)
        TRY_DO(bind_sizes(out[i], input_sizes_[a.index], numbers_[i], "input " + description_.inputs[a.index].name,
                          sizes));
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (description_.arguments[i].from != From::Nothing || numbers_[i].is_int()) continue;
    if (const auto number = schedule::instance_value(numbers_[i], sizes)) out[i] = Value(*number);
  }
  TRY_DO(check_ranges(sizes));
  return out;
}

Status Model::check_ranges(const std::map<std::string, std::int64_t>& sizes) const {
  for (const auto& [symbol, range] : description_.symbols) {
    const auto value = sizes.find(symbol);
    if (value == sizes.end() || (value->second >= range.low && value->second <= range.high)) continue;
    std::string of;
    for (const LibraryValue& input : description_.inputs)
      for (std::size_t d = 0; d < input.sizes.size() && of.empty(); ++d)
        if (input.sizes[d] == symbol) of = fmt::format(", size {} of input {},", d, input.name);
    std::string line = fmt::format("{}{} is {}, but the model takes ", symbol, of, value->second);
    line += range.high == INT64_MAX ? fmt::format("{} and more", range.low)
                                    : fmt::format("{} to {}", range.low, range.high);
    return input_error("library.guard", std::move(line));
  }
  return {};
}

Result<std::vector<Value>> Model::forward(const std::vector<Value>& inputs, Saved* saved) {
  std::lock_guard lock(mutex_);
  TRY(const std::vector<Value> values, arguments(inputs));
  TRY(std::vector<Value> results, forward_->run(values));
  std::set<const Storage*> callers, written, weights;
  const auto storage = [](const Value& v) {
    const auto* t = v.get<Tensor>();
    return t ? t->storage.get() : nullptr;
  };
  for (const Value& v : inputs) callers.insert(storage(v));
  for (const Tensor& t : weights_) weights.insert(t.storage.get());
  for (const Value& v : folded_) weights.insert(storage(v));
  for (const auto& [result, placeholder] : description_.written) written.insert(storage(values[placeholder]));
  const auto own = [&](Value& v, auto... sets) -> Status {
    if (const auto* t = v.get<Tensor>(); t && (sets->contains(t->storage.get()) || ...)) TRY_DO(assign(v, copied(*t)));
    return {};
  };
  for (std::size_t i = 0; i < results.size(); ++i) {
    // Saved values are held, and the caller may free an input before the backward.
    const bool is_result = i < description_.results;
    TRY_DO(own(results[i], &callers, is_result ? &weights : &written));
  }
  for (const auto& [result, placeholder] : description_.written) {
    const auto *target = values[placeholder].get<Tensor>(), *now = results[result].get<Tensor>();
    if (!target || !now || target->sizes != now->sizes)
      return unsupported("library.written", "an input or buffer changes its sizes in a run");
    target->copy_from(*now);
  }
  const auto at = [&](std::size_t i) { return results.begin() + static_cast<std::ptrdiff_t>(i); };
  if (saved) {
    // The forward returns numbers last, the backward takes them first.
    const auto numbers = at(results.size() - description_.saved_numbers);
    saved->values.assign(numbers, results.end());
    saved->values.insert(saved->values.end(), at(description_.results), numbers);
    // Of results that tangents are for, the sizes are still asked for.
    for (std::uint64_t i : description_.tangent_of) saved->values.push_back(results[i]);
  }
  return mapped(description_.output_result, [&](std::uint64_t i) { return results[i]; });
}

Result<std::vector<Value>> Model::backward(Saved saved, const std::vector<Value>& tangents) {
  const std::size_t count = description_.tangent_of.size();
  const bool none = std::ranges::all_of(tangents, &Value::is_none);
  if (saved.values.size() != description_.saved + count)
    return input_error("library.saved", "these saved values have been used already");
  for (std::size_t k = 0; k < count; ++k) {
    Value& place = saved.values[description_.saved + k];
    const Tensor result = *place.get<Tensor>();
    const auto output = static_cast<std::size_t>(
        std::ranges::find(description_.output_result, description_.tangent_of[k]) - description_.output_result.begin());
    const bool users = output < tangents.size();
    const Value tangent = users ? tangents[output] : Value();
    if (const auto* t = tangent.get<Tensor>()) {
      if (t->sizes != result.sizes || t->dtype != result.dtype)
        return input_error("library.input", "the tangent of output " + description_.outputs[output].name +
                                                " has another dtype or other sizes than the output");
      place = tangent;
      continue;
    }
    TRY(Tensor filled, Tensor::zeros(result.dtype, result.sizes));
    if (users && none && result.sizes.empty()) TRY_DO(assign(filled, Tensor::scalar(result.dtype, 1)));
    place = std::move(filled);
  }
  std::lock_guard lock(mutex_);
  TRY(const std::vector<Value> results, backward_->run(saved.values));
  std::vector<Value> gradients;
  for (std::uint64_t i : description_.gradient_result) {
    gradients.push_back(results[i]);
    // A gradient may be a tangent or a saved weight as it is.
    if (const auto* t = results[i].get<Tensor>())
      for (const Value& v : saved.values)
        if (const auto* given = v.get<Tensor>(); given && given->storage == t->storage) {
          TRY(gradients.back(), copied(*t));
          break;
        }
  }
  return gradients;
}

}  // namespace partita::codegen

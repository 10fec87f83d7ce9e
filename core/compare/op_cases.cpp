// Checks operator cases of the corpus: makes inputs, runs each graph, and compares metas, outputs, aliases, written
// inputs and gradients. What is outside the tolerance is weighed by a run in double.
#include "core/compare/op_cases.h"

#include <algorithm>
#include <complex>
#include <filesystem>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "core/base/assign.h"
#include "core/compare/compare.h"
#include "core/compare/gauge.h"
#include "core/compare/per_node.h"
#include "core/compare/rounding.h"
#include "core/fake/propagate.h"
#include "core/grad/joint.h"
#include "core/interp/debug_interpreter.h"
#include "core/interp/symbols.h"
#include "core/load/file.h"
#include "core/load/fx_text.h"
#include "core/load/safetensors.h"
#include "core/ops/record/record.h"
#include "core/sym/float_symbol.h"
#include "core/tensor/significant_strides.h"

namespace partita {
namespace {

using CaseJson = nlohmann::json;

Diagnostic bad(const std::string& file, std::string message) {
  return input_error("compare.cases", std::move(message), Where{.file = file});
}

/// Is it item() or similar: a number read from the one tensor argument?
bool reads_number(const Node& node) {
  const Schema* schema = find_schema(node.op());
  return schema && schema->args.size() == 1 && schema->args[0].type == SchemaType::Tensor &&
         schema->returns.size() == 1 && schema->returns[0].type == SchemaType::Scalar;
}

/// Sets `rounding` if the run in double allows it, and appends the run's verdict to `told`.
void weigh_in_double(Difference& d, const Graph& graph, const std::vector<Value>& inputs, std::size_t result,
                     const Tensor& expected, const Tensor& found, const Tolerance& tolerance, std::string& note) {
  if (!d.layout.empty() || expected.dtype == DType::Float64 || expected.dtype == DType::Complex128) return;
  const auto exact = interpret(graph, inputs, {.float64 = true});
  const Tensor* t = exact && result < exact->size() ? (*exact)[result].get<Tensor>() : nullptr;
  if (!t) return;
  std::ignore = judge_by_baseline(d, *t, expected, found, tolerance);  // whether PyTorch is right, rounding tells below
  if (!d.expected_error) return;
  note = fmt::format(" (from the result in double: {:.2g} what is expected, {:.2g} what was found)", *d.expected_error,
                     *d.found_error);
  if (!d.rounding) return;
  const auto moved = moved_by_rounding(graph, inputs, *exact, true);
  d.rounding = moved && explained_by_rounding(*t, expected, tolerance, (*moved)[result]);
  if (!d.rounding) note += ", farther than rounding explains";
}

/// Sizes and strides of a case. Anything but integers in the range of memory is refused.
Sizes integers(const CaseJson& list) {
  return list.get<std::vector<std::int64_t>>();
}

class Case {
 public:
  Case(const CaseJson& json, const std::string& kind, const TensorFile& tensors, const CaseOptions& options)
      : json_(json), kind_(kind), tensors_(tensors), options_(options) {}

  bool by_double = false;  ///< some numbers are right only by the run in double

  Status check() {
    if (json_[kind_].is_null()) return unsupported("compare.no_graph", "the case has no graph");
    TRY(auto graph, parse_fx_text(json_[kind_].get<std::string>()));
    if (kind_ == "symbolic_graph") return check_symbolic(*graph);
    TRY_DO(set_constants(*graph));
    TRY(std::vector<Value> inputs, make_inputs());
    TRY(std::vector<Value> kept, make_inputs());
    std::vector<Value> outputs;
    if (options_.run) {
      TRY(outputs, options_.run(*graph, inputs));
    } else {
      TRY(DebugRun run, debug_interpret(*graph, inputs));
      if (!run.mismatches.empty())
        return differs(run.mismatches.front().node + ": " + run.mismatches.front().message());
      outputs = std::move(run.outputs);
    }
    TRY_DO(check_metas(*graph));
    TRY_DO(check_outputs(*graph, outputs, inputs));
    TRY_DO(check_inputs_after(inputs));
    if (options_.train && json_.value("differentiable", false) && json_.value(kind_ + "_grad_ok", true))
      return check_gradients(*graph, std::move(kept));
    return {};
  }

 private:
  Result<Tensor> stored(const std::string& key) {
    const Tensor* t = tensors_.find(key);
    if (!t) return input_error("compare.cases", "the tensor " + key + " is missing in the safetensors file");
    return *t;
  }

  /// The tensor of an entry, with its dtype (complex ones are stored as pairs) and strides.
  Result<Tensor> tensor_of(const CaseJson& entry, bool with_strides) {
    TRY(Tensor values, stored(entry["key"]));
    std::string dtype_name = entry["dtype"];
    auto dtype = dtype_from_torch(dtype_name);
    if (!dtype) return input_error("compare.cases", "unknown dtype " + dtype_name);
    if (*dtype == DType::Complex32) return unsupported("compare.dtype", "complex32");
    if (is_complex(*dtype) && !is_complex(values.dtype)) TRY_DO(assign(values, view_as_complex(values)));
    if (values.dtype != *dtype) return input_error("compare.cases", "dtype of " + entry["key"].get<std::string>());
    if (!with_strides || !entry.contains("stride")) return values;
    TRY(Tensor out, Tensor::empty_strided(*dtype, values.sizes, integers(entry["stride"])));
    out.copy_from(values);
    return out;
  }

  Status set_constants(Graph& graph) {
    const char* key = kind_ == "graph" ? "constants" : "pre_dispatch_constants";
    if (!json_.contains(key)) return {};
    for (const CaseJson& entry : json_[key]) {
      TRY(Tensor t, tensor_of(entry, true));
      graph.attributes[entry["name"].get<std::string>()] = std::move(t);
    }
    return {};
  }

  Result<std::vector<Value>> make_inputs() {
    std::vector<Value> out;
    for (const CaseJson& entry : json_["inputs"]) TRY_DO(assign(out.emplace_back(), tensor_of(entry, true)));
    return out;
  }

  /// Checks the annotations under the example values of the symbols, which come from the inputs and from integers read
  /// from them. Unbacked symbols have none.
  Status check_symbolic(Graph& graph) {
    if (json_.contains("symbols"))
      for (const auto& [symbol, value] : json_["symbols"].items())
        if (value.is_number_integer() && !is_unbacked(symbol)) graph.shapes->set_hint(symbol, value);
    TRY(std::vector<Value> inputs, make_inputs());
    TRY(SymbolMap bound, bind_symbols(graph, inputs));
    const auto placeholders = graph.placeholders();
    for (std::size_t i = 0; i < placeholders.size() && i < inputs.size(); ++i)
      for (const Node* user : placeholders[i]->users())
        if (const SymExpr* e = user->meta.sym(); e && reads_number(*user))
          if (const auto* t = inputs[i].get<Tensor>();
              t && e->symbols().size() == 1 && !is_unbacked(*e->symbols().begin()))
            bound.bind(*e, static_cast<std::int64_t>(t->item_as_double()));
    for (const auto& [symbol, value] : bound.all()) graph.shapes->set_hint(symbol, value);
    MetaCheck found = partita::check_metas(graph);
    if (!found.differences.empty()) {
      const MetaDifference& d = found.differences.front();
      return differs(fmt::format("{}: meta {} expected, {} inferred", d.node, d.annotated, d.inferred));
    }
    if (found.without_record == 0) return {};
    for (Node* node : graph) {
      if (!node->op()->is_call() || node->is(Op::getitem())) continue;
      Result<Meta> inferred = infer(*node);
      if (!inferred && inferred.error().code == "ops.unknown") return std::move(inferred).error();
    }
    return {};
  }

  Tolerance tolerance() const { return {json_["tolerance"]["rtol"], json_["tolerance"]["atol"]}; }

  static Status check_metas(Graph& graph) {
    for (Node* node : graph) {
      if (!node->op()->is_call() || node->is(Op::getitem())) continue;
      Result<Meta> inferred = infer(*node);
      if (!inferred && inferred.error().code == "ops.unknown") continue;
      if (!inferred) return std::move(inferred).error();
      if (const MetaTuple* tuple = inferred->tuple()) {
        node->meta = *inferred;
        for (Node* user : node->users()) {
          auto* index = user->is(Op::getitem()) ? user->args()[1].get<std::int64_t>() : nullptr;
          if (index && *index < static_cast<std::int64_t>(tuple->items.size()))
            TRY_DO(check_meta(*user, tuple->items[static_cast<std::size_t>(*index)]));
        }
      } else {
        TRY_DO(check_meta(*node, *inferred));
      }
    }
    return {};
  }

  static Status check_meta(const Node& node, const Meta& inferred) {
    const TensorMeta *a = node.meta.tensor(), *b = inferred.tensor();
    if (!a) return {};
    // The annotations come from a run, so an inferred unbacked symbol agrees with any number.
    auto agree = [](SymExpr expected, SymExpr found) { return expected == found || !found.symbols().empty(); };
    if (b && a->dtype == b->dtype && std::ranges::equal(a->sizes, b->sizes, agree) &&
        same_significant_strides(a->sizes, a->strides, b->strides, agree))
      return {};
    return differs(
        fmt::format("{}: meta {} expected, {} inferred", node.name(), annotation(node.meta), annotation(inferred)));
  }

  /// If the case says that LAPACK chooses some of its values, they are compared up to that choice.
  Status find_gauge(const Graph& graph, const std::vector<Tensor>& found) {
    if (!json_.value("gauge_dependent", false)) return {};
    std::vector<Tensor> expected;
    for (const CaseJson& entry : json_["outputs"]) TRY_DO(assign(expected.emplace_back(), tensor_of(entry, false)));
    gauge_ = Gauge(graph, expected, found);
    return {};
  }

  /// A graph may return nested tuples; the case lists their tensors in order.
  static void collect_tensors(const Value& value, std::vector<Tensor>& tensors) {
    if (const Tensor* t = value.get<Tensor>()) tensors.push_back(*t);
    if (const ValueList* list = value.get<ValueList>())
      for (const Value& item : *list) collect_tensors(item, tensors);
  }

  /// Compares the result `result` of `graph`. With a gauge, the run in double has another gauge, so it is not used.
  Status check_values(std::string name, const Graph& graph, const std::vector<Value>& inputs, std::size_t result,
                      const Tensor& expected, const Value& found) {
    Difference d = compare_values(std::move(name), expected, found, tolerance(), false);
    if (d.ok()) return {};
    std::string note;
    if (const Tensor* t = found.get<Tensor>(); t && gauge_.fixed())
      weigh_in_double(d, graph, inputs, result, expected, *t, tolerance(), note);
    if (!d.ok()) return differs(first_wrong(d) + note);
    by_double = true;
    return {};
  }

  Status check_outputs(const Graph& graph, const std::vector<Value>& outputs, const std::vector<Value>& inputs) {
    const CaseJson& expected = json_["outputs"];
    std::vector<Tensor> tensors;
    for (const Value& v : outputs) collect_tensors(v, tensors);
    if (tensors.size() != expected.size())
      return differs(fmt::format("{} tensor outputs expected, {} found", expected.size(), tensors.size()));
    TRY_DO(find_gauge(graph, tensors));
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const CaseJson& entry = expected[i];
      const Tensor& found = tensors[i];
      TRY(Tensor values, tensor_of(entry, false));
      if (entry.value("undefined_values", false)) {
        if (found.sizes != values.sizes || found.dtype != values.dtype)
          return differs(fmt::format("output.{}: dtype or sizes differ", i));
        continue;
      }
      values.strides = row_major_strides(values.sizes);
      TRY(const std::vector<Value> again, make_inputs());
      TRY_DO(check_values(fmt::format("output.{}", i), graph, again, i, values, gauge_.aligned(i, found)));
      const CaseJson& stride =
          json_.contains(kind_ + "_out_strides") ? json_[kind_ + "_out_strides"][i] : entry["stride"];
      if (!stride.is_null()) TRY_DO(check_strides(i, integers(stride), found));
      if (!entry.contains("conj_bit")) TRY_DO(check_alias(i, entry, found, inputs));
    }
    return {};
  }

  /// Is it the input, or a view of it at the right place? PyTorch's lazy conjugate, which Partita lacks, is compared by
  /// values only.
  static Status check_alias(std::size_t i, const CaseJson& entry, const Tensor& found,
                            const std::vector<Value>& inputs) {
    for (const char* how : {"aliases_input", "is_input"}) {
      if (!entry.contains(how)) continue;
      const Tensor& base = *inputs[entry[how].get<std::size_t>()].get<Tensor>();
      if (found.storage != base.storage || found.offset != entry.value("storage_offset", std::int64_t{0}))
        return differs(fmt::format("output.{}: does not alias input {}", i, entry[how].dump()));
    }
    return {};
  }

  static Status check_strides(std::size_t i, const Sizes& expected, const Tensor& found) {
    if (same_significant_strides(found.sizes, expected, found.strides)) return {};
    return differs(fmt::format("output.{}: strides [{}] expected, [{}] found", i, fmt::join(expected, ", "),
                               fmt::join(found.strides, ", ")));
  }

  Status check_inputs_after(const std::vector<Value>& inputs) {
    if (!json_.contains("inputs_after")) return {};
    for (const CaseJson& entry : json_["inputs_after"]) {
      TRY(Tensor values, tensor_of(entry, false));
      auto i = entry["input"].get<std::size_t>();
      const auto is_it = [&](const CaseJson& output) {
        return !output.contains("conj_bit") && output.value("is_input", -1) == int(i);
      };
      if (std::ranges::any_of(json_["outputs"], is_it)) continue;  // it is also returned, and compared there
      const Tensor& found = *inputs[i].get<Tensor>();
      // The sizes or strides changed too (transpose_); check_outputs sees it.
      if (found.sizes != values.sizes || integers(entry["stride"]) != found.strides) continue;
      Difference d = compare_values(fmt::format("input_after.{}", i), values, found, tolerance(), false);
      if (!d.ok()) return differs(first_wrong(d));
    }
    return {};
  }

  /// No gradient, or one of zeros, which PyTorch may return for the other.
  static bool vanishes(const Value& gradient) {
    if (gradient.is_none()) return true;
    const Tensor* t = gradient.get<Tensor>();
    const Result<Tensor> wide = t ? t->to(DType::Complex128) : input_error("compare.kind", "no tensor");
    for (std::int64_t e = 0; wide && e < wide->numel(); ++e)
      if (wide->as<std::complex<double>>()[e] != 0.0) return false;
    return bool(wide);
  }

  Status check_gradients(const Graph& graph, std::vector<Value> inputs) {
    FunctionalizeOptions functional;
    for (const CaseJson& entry : json_["inputs"])
      functional.requires_grad.push_back(entry.value("requires_grad", false));
    TRY(FunctionalGraph forward, functionalize(graph, functional));
    std::size_t mutated = forward.meta.mutated_runtime_inputs().size();
    TRY(Joint joint, make_joint(std::move(forward), {.tangents_for_aliases = true}));
    for (std::size_t output : joint.tangent_of) {
      const CaseJson* tangent = nullptr;
      for (const CaseJson& t : json_["tangents"])
        if (output >= mutated && t["output"].get<std::size_t>() == output - mutated) tangent = &t;
      if (tangent) {
        TRY(Tensor t, tensor_of(*tangent, false));
        inputs.push_back(gauge_.tangent(output - mutated, t));
      } else {
        return unsupported("compare.tangent", "an output has a gradient here and none in PyTorch");
      }
    }
    RunGraph run =
        options_.run ? options_.run : [](const Graph& g, std::vector<Value> in) { return interpret(g, std::move(in)); };
    TRY(const std::vector<Value> own, copy_values(inputs));
    TRY(std::vector<Value> results, run(*joint.graph, own));
    for (const CaseJson& entry : json_["grads"]) {
      auto i = entry["input"].get<std::size_t>();
      const Value& found = results[joint.forward_outputs + i];
      if (entry["key"].is_null() && !vanishes(found))
        return differs(fmt::format("grad.input.{}: no gradient expected", i));
      if (entry["key"].is_null()) continue;
      TRY(Tensor values, tensor_of(entry, false));
      values.strides = row_major_strides(values.sizes);
      if (found.is_none() && !vanishes(values)) return differs(fmt::format("grad.input.{}: no gradient flows", i));
      if (found.is_none()) continue;
      TRY_DO(check_values(fmt::format("grad.input.{}", i), *joint.graph, inputs, joint.forward_outputs + i, values,
                          found));
    }
    return {};
  }

  const CaseJson& json_;
  const std::string kind_;
  const TensorFile& tensors_;
  const CaseOptions& options_;
  Gauge gauge_;
};

}  // namespace

Diagnostic differs(std::string message) {
  return {Fault::Differs, "compare.differs", std::move(message)};
}

void CaseResult::set(const Status& status) {
  if (status) return;
  const Diagnostic& d = status.error();
  outcome = d.fault == Fault::Unsupported ? Outcome::Skipped : Outcome::Failed;
  message = d.line();
  if (outcome == Outcome::Skipped) unsupported = refused(d);
}

std::string first_wrong(const Difference& d) {
  std::string text = d.name + ": ";
  if (!d.layout.empty()) return text + d.layout.front();
  if (!d.first_wrong) return text + "values differ";
  return text + fmt::format("{} of {} elements differ, first at [{}]: {} expected, {} found", d.wrong, d.numel,
                            fmt::join(d.first_wrong->index, ", "), d.first_wrong->expected, d.first_wrong->found);
}

std::string refused(const Diagnostic& d) {
  for (std::string_view prefix : {"aten.", "prims.", "higher_order.", "torch."}) {
    auto at = d.message.find(prefix);
    if (at == std::string::npos) continue;
    auto end = d.message.find_first_of(" ;,'", at);
    return d.message.substr(at, end - at);
  }
  return d.message;
}

Result<std::vector<std::string>> find_case_files(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  std::vector<std::string> files;
  if (fs::is_directory(path, error)) {
    for (const auto& entry : fs::directory_iterator(path, error))
      if (entry.path().extension() == ".json" && fs::exists(fs::path(entry.path()).replace_extension(".safetensors")))
        files.push_back(entry.path().string());
      else if (fs::exists(entry.path() / "case.json", error) && fs::exists(entry.path() / "dynamo.py", error))
        files.push_back((entry.path() / "case.json").string());
    if (files.empty() && fs::exists(fs::path(path) / "dynamo.py", error) &&
        fs::exists(fs::path(path) / "case.json", error))
      files.push_back((fs::path(path) / "case.json").string());
  } else if (fs::exists(path, error)) {
    files.push_back(path);
  }
  if (error) return bad(path, error.message());
  if (files.empty())
    return bad(
        path, "no cases here; give a folder of NAME.json with NAME.safetensors or of NAME/case.json, or one such file");
  std::sort(files.begin(), files.end());
  return files;
}

Result<std::vector<CaseResult>> check_cases(const std::string& json_path, const CaseOptions& options) {
  TRY(const auto file, FileBytes::open(json_path));
  CaseJson json = CaseJson::parse(file->text(), nullptr, false);
  if (json.is_discarded() || !json.contains("cases")) return bad(json_path, "not a file of operator cases");
  std::filesystem::path tensor_path = std::filesystem::path(json_path).replace_extension(".safetensors");
  TRY(TensorFile tensors, read_safetensors(tensor_path.string()));
  std::vector<CaseResult> out;
  std::size_t position = 0, number = 0;
  for (const CaseJson& entry : json["cases"]) {
    if (number++ % std::max<std::size_t>(options.every, 1) != 0) continue;
    for (const char* kind : {"graph", "pre_dispatch_graph", "symbolic_graph"}) {
      if (kind != std::string_view("graph") && (!entry.contains(kind) || entry[kind].is_null())) continue;
      if (position++ < options.skip) continue;
      CaseResult result;
      result.file = std::filesystem::path(json_path).stem().string();
      result.kind = kind;
      try {
        result.index = entry.at("idx");
        if (options.starting) options.starting(result);
        Case one(entry, kind, tensors, options);
        Status status = one.check();
        result.by_double = status && one.by_double;
        result.set(status);
      } catch (const CaseJson::exception& e) {
        return bad(json_path, std::string("a case that is not as corpus/README.md says: ") + e.what());
      }
      if (options.finished) options.finished(result);
      out.push_back(std::move(result));
    }
  }
  return out;
}

}  // namespace partita

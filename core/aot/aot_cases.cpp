// Checks an AOTAutograd case of the corpus: makes an IO file from case.json, runs it, and compares outputs, strides,
// shared memory, inputs afterwards and gradients. aot_case_graphs.cpp compares the graphs.
#include "core/aot/aot_cases.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "core/aot/aot_case_graphs.h"
#include "core/base/assign.h"
#include "core/compare/compare.h"
#include "core/load/file.h"
#include "core/tensor/significant_strides.h"

namespace partita {
namespace {

using CaseJson = nlohmann::json;

Diagnostic bad_case(std::string message) {
  return input_error("compare.cases", std::move(message));
}

Sizes integers(const CaseJson& list) {
  return list.get<std::vector<std::int64_t>>();
}

struct Moments {
  double mean = 0, deviation = 0;
};

Result<Moments> moments(const Tensor& t) {
  TRY(const Tensor wide, t.to(DType::Float64));
  const auto* x = wide.as<double>();
  const auto n = static_cast<double>(wide.numel());
  Moments m;
  for (std::int64_t i = 0; i < wide.numel(); ++i) m.mean += x[i] / n;
  for (std::int64_t i = 0; i < wide.numel(); ++i) m.deviation += (x[i] - m.mean) * (x[i] - m.mean) / n;
  m.deviation = std::sqrt(m.deviation);
  return m;
}

// The tensors of an entry of a case: the inner ones of a tensor subclass, whose keys end in ".a", or the only one.
std::vector<std::pair<std::string, const CaseJson*>> parts(const CaseJson& entry) {
  if (!entry.contains("subclass")) return {{"", &entry}};
  std::vector<std::pair<std::string, const CaseJson*>> inner;
  for (const CaseJson& part : entry.at("inner")) {
    const std::string key = part.at("key");
    inner.emplace_back("." + key.substr(key.rfind('.') + 1), &part);
  }
  return inner;
}

class AotCase {
 public:
  AotCase(const CaseJson& json, const TensorFile& stored, const RunFile& run, const RunFile& run_in_double)
      : json_(json), stored_(stored), run_(run), run_in_double_(run_in_double) {}

  mutable bool by_double = false;  ///< some numbers are right only by the run in double

  Status check(const Artefact& artefact, bool train) {
    artefact_ = &artefact;
    train_ = train && !json_.at("tangents").empty();
    TRY(const std::unique_ptr<Graph> graph, artefact.graph());
    TRY_DO(number_outputs(graph->outputs().size()));
    TRY_DO(make_inputs());
    if (train_) TRY_DO(make_tangents());
    TRY(found_, run_(artefact, io_, train_));
    for (std::size_t i = 0; i < json_.at("outputs").size(); ++i)
      if (graph_output_[i]) TRY_DO(check_output(i));
    for (const CaseJson& entry : json_.at("inputs_after")) TRY_DO(check_input_after(entry));
    if (train_)
      for (const CaseJson& entry : json_.at("grads")) TRY_DO(check_gradient(entry));
    return {};
  }

  /// Unset for a case that has no graphs of PyTorch's.
  Result<std::optional<CaseGraphs>> check_graphs(const std::string& folder, const Artefact& artefact) {
    if (!json_.contains("aot")) return std::optional<CaseGraphs>();
    TRY_DO(make_inputs());
    std::vector<bool> is_leaf;
    for (const std::string& key : keys_) {
      const CaseJson* entry = input(key);
      is_leaf.push_back(!entry || entry->value("is_leaf", true));
    }
    TRY(CaseGraphs found, compare_case_graphs(folder, json_["aot"], artefact, io_, is_leaf));
    return std::optional(std::move(found));
  }

 private:
  /// Dynamo's graph does not return inputs: its caller does.
  Status number_outputs(std::size_t returned) {
    const CaseJson& outputs = json_.at("outputs");
    const auto is_input = [](const CaseJson& o) {
      return o.contains("aliasing") && o["aliasing"].contains("is_input");
    };
    const bool all = returned == outputs.size();
    std::size_t next = 0;
    for (const CaseJson& o : outputs) {
      graph_output_.emplace_back();
      if (all || !is_input(o)) graph_output_.back() = next++;
    }
    if (next != returned) return bad_case(fmt::format("the graph returns {} values, the case has {}", returned, next));
    return {};
  }

  Result<Tensor> stored(const CaseJson& entry) const {
    const std::string key = entry.at("key");
    const Tensor* t = stored_.find(key);
    if (!t) return bad_case("the tensor " + key + " is missing in io.safetensors");
    if (entry.contains("stored_as")) return view_as_complex(*t);
    return *t;
  }

  const CaseJson* input(const std::string& key) const {
    for (const CaseJson& entry : json_.at("inputs"))
      if (entry.at("key") == key) return &entry;
    return nullptr;
  }

  std::optional<std::size_t> placeholder_of(const std::string& key) const {
    const auto at = std::ranges::find(keys_, key);
    if (at == keys_.end()) return std::nullopt;
    return static_cast<std::size_t>(at - keys_.begin());
  }

  /// The key of the storage that several placeholders lie in; empty if it is one placeholder's own.
  std::string shared_storage(const CaseJson& entry) const {
    if (!entry.contains("storage")) return {};
    const auto in_it = [&](const std::string& key) {
      const CaseJson* other = input(key);
      return other && other->contains("storage") && (*other)["storage"] == entry["storage"];
    };
    if (std::ranges::count_if(keys_, in_it) < 2) return {};
    return fmt::format("storage.{}", entry["storage"].get<int>());
  }

  Status make_inputs() {
    keys_.clear();
    for (const CaseJson& p : json_.at("placeholders")) keys_.push_back(p.value("key", ""));
    for (const auto& [key, constant] : stored_.tensors)  // const.GRAPH.NAME
      if (key.starts_with("const.dynamo.")) io_.tensors["constant." + key.substr(13)] = constant;
    for (std::size_t i = 0; i < keys_.size(); ++i) {
      const std::string key = fmt::format("input.{}", i);
      if (keys_[i].empty()) {
        TRY(io_.tensors[key],
            Tensor::scalar(DType::Int64, std::stod(json_["placeholders"][i].at("value").get<std::string>())));
        continue;
      }
      const CaseJson* entry = input(keys_[i]);
      if (!entry) return bad_case("no input " + keys_[i]);
      if (entry->contains("subclass")) {
        TRY_DO(make_subclass(key, *entry));
        continue;
      }
      TRY(const Tensor values, stored(*entry));
      const std::string whole_key = fmt::format("storage.{}", entry->at("storage").get<int>());
      const Tensor* whole = stored_.find(whole_key);
      if (!whole) return bad_case("the tensor " + whole_key + " is missing in io.safetensors");
      Tensor& t = io_.tensors[key];
      t = {whole->storage,
           values.dtype,
           values.sizes,
           integers(entry->at("stride")),
           entry->at("storage_offset"),
           entry->value("requires_grad", false)};
      if (const std::string shared = shared_storage(*entry); !shared.empty()) {
        io_.tensors[shared] = *whole;
        io_.storages[key] = {shared, t.offset};
        if (entry->contains("same_tensor_as") && (*entry)["same_tensor_as"].is_string())
          if (const auto first = placeholder_of((*entry)["same_tensor_as"]))
            io_.storages[key] = {fmt::format("input.{}", *first), 0};
      }
    }
    return {};
  }

  /// Operators of the corpus's subclasses act on each inner tensor apart; the comparison tells if they do not.
  Status make_subclass(const std::string& key, const CaseJson& entry) {
    CaseJson declared = CaseJson::object();
    if (const auto before = io_.metadata.find("subclasses"); before != io_.metadata.end())
      declared = CaseJson::parse(before->second);
    CaseJson& attributes = declared[entry.at("subclass").get<std::string>()] = CaseJson::array();
    for (const auto& [suffix, part] : parts(entry)) {
      attributes.push_back(suffix.substr(1));
      TRY(Tensor inner, stored(*part));
      inner.requires_grad = entry.value("requires_grad", false);
      io_.tensors[key + suffix] = std::move(inner);
    }
    io_.metadata["subclasses"] = declared.dump();
    return {};
  }

  Status make_tangents() {
    for (const CaseJson& entry : json_.at("tangents")) {
      const std::string of = entry.at("of");
      std::string key;
      if (of.starts_with("out.")) {
        if (const auto position = graph_output_.at(std::stoul(of.substr(4))))
          key = fmt::format("tangent.{}", *position);
      } else if (const auto i = placeholder_of(of.substr(std::string_view("after.").size()))) {
        key = fmt::format("tangent.input.{}", *i);
      }
      if (key.empty()) continue;
      for (const auto& [suffix, part] : parts(entry)) TRY_DO(assign(io_.tensors[key + suffix], stored(*part)));
    }
    return {};
  }

  Status compare(const std::string& key, const Tensor& expected, const Tensor* found) const {
    if (!found) return differs(key + " is missing");
    if (json_.value("random", false)) return compare_statistics(key, expected, *found);
    const Tolerance tolerance = default_tolerance(expected.dtype);
    Difference d = compare_values(key, Value(expected), Value(*found), tolerance, false);
    if (!d.ok() && d.layout.empty()) {
      if (!exact_) TRY_DO(assign(exact_, run_in_double_(*artefact_, io_, train_)));
      if (const Tensor* exact = exact_->find(key))
        std::ignore = judge_by_baseline(d, Value(*exact), Value(expected), Value(*found), tolerance);
      by_double |= d.rounding;
    }
    return d.ok() ? Status() : Status(differs(first_wrong(d)));
  }

  static Status compare_statistics(const std::string& key, const Tensor& expected, const Tensor& found) {
    if (expected.sizes != found.sizes || expected.dtype != found.dtype) return differs(key + ": dtype or sizes differ");
    TRY(const Moments a, moments(expected));
    TRY(const Moments b, moments(found));
    constexpr double sigmas = 6;
    const double error = sigmas * std::max(a.deviation, b.deviation) / std::sqrt(static_cast<double>(found.numel()));
    if (std::abs(a.mean - b.mean) <= error && std::abs(a.deviation - b.deviation) <= error) return {};
    return differs(fmt::format("{}: mean {} and deviation {} expected, {} and {} found", key, a.mean, a.deviation,
                               b.mean, b.deviation));
  }

  static Status compare_strides(const std::string& key, const CaseJson& entry, const Tensor& found) {
    const Sizes expected = integers(entry.at("stride"));
    if (same_significant_strides(found.sizes, expected, found.strides)) return {};
    return differs(fmt::format("{}: strides [{}] expected, [{}] found", key, fmt::join(expected, ", "),
                               fmt::join(found.strides, ", ")));
  }

  Status check_output(std::size_t i) const {
    const CaseJson& entry = json_["outputs"][i];
    const std::string key = fmt::format("output.{}", *graph_output_[i]);
    if (entry.contains("python")) {
      const Tensor* found = found_.find(key);
      const std::string kind = entry["python"];
      if (!found && (kind == "NoneType" || kind == "bool")) return {};
      const std::string value = entry.at("value");
      const bool same = found && found->numel() == 1 && kind != "NoneType" &&
                        found->item_as_double() == (value == "True"    ? 1
                                                    : value == "False" ? 0
                                                                       : std::stod(value));
      return same ? Status() : Status(differs(fmt::format("{}: {} expected", key, value)));
    }
    for (const auto& [suffix, part] : parts(entry))
      TRY_DO(check_tensor(key + suffix, *part, found_.find(key + suffix)));
    return entry.contains("subclass") ? Status() : check_alias(i, key);
  }

  Status check_tensor(const std::string& key, const CaseJson& entry, const Tensor* found) const {
    TRY(const Tensor expected, stored(entry));
    TRY_DO(compare(key, expected, found));
    return compare_strides(key, entry, *found);
  }

  /// In whose memory does output i lie: the first input's or output's that shares it. Unset: in its own.
  std::optional<std::pair<std::string, std::int64_t>> expected_owner(std::size_t i) const {
    const CaseJson& aliasing = json_["outputs"][i].at("aliasing");
    std::optional<std::size_t> first;
    if (aliasing.contains("shares_storage_with_inputs"))
      for (const CaseJson& key : aliasing["shares_storage_with_inputs"])
        if (const auto p = placeholder_of(key)) first = std::min(first.value_or(*p), *p);
    if (first) {
      for (const CaseJson& after : json_.at("inputs_after"))
        if (after.at("input") == keys_[*first])
          return std::pair(fmt::format("input.{}", *first), after.at("storage_offset").get<std::int64_t>());
    }
    if (aliasing.contains("shares_storage_with_outputs"))
      for (const CaseJson& other : aliasing["shares_storage_with_outputs"]) {
        const auto o = other.get<std::size_t>();
        if (graph_output_[o] && o < i && (!first || o < *first)) first = o;
      }
    if (!first) return std::nullopt;
    return std::pair(fmt::format("output.{}", *graph_output_[*first]),
                     json_["outputs"][*first].at("storage_offset").get<std::int64_t>());
  }

  Status check_alias(std::size_t i, const std::string& key) const {
    const auto expected = expected_owner(i);
    const auto found = found_.aliases.find(key);
    if (!expected && found == found_.aliases.end()) return {};
    if (!expected) return differs(fmt::format("{} lies in the memory of {}, in PyTorch not", key, found->second.key));
    if (found == found_.aliases.end() || found->second.key != expected->first)
      return differs(fmt::format("{} does not lie in the memory of {}", key, expected->first));
    const std::int64_t offset = json_["outputs"][i].at("storage_offset").get<std::int64_t>() - expected->second;
    // Offsets count elements, whose size view_as_real changes.
    const Tensor* base = found_.find(expected->first);
    if (!base) base = io_.find(expected->first);
    if (base && base->dtype != found_.find(key)->dtype) return {};
    if (found->second.offset == offset) return {};
    return differs(fmt::format("{} begins at element {} of {}, in PyTorch at {}", key, found->second.offset,
                               expected->first, offset));
  }

  Status check_input_after(const CaseJson& entry) const {
    const auto i = placeholder_of(entry.at("input"));
    if (!i) return {};
    const std::string before = fmt::format("input.{}", *i), key = fmt::format("input_after.{}", *i);
    for (const auto& [suffix, part] : parts(entry)) {
      const Tensor* found = found_.find(key + suffix);
      // What did not change is absent. The storage of io_ is the file's, which no run may write.
      if (!found) found = io_.find(before + suffix);
      TRY_DO(check_tensor(key + suffix, *part, found));
    }
    return {};
  }

  /// "leaf.N" is the tensor behind the inputs of the N-th storage whose inputs are no leaves.
  std::vector<std::size_t> inputs_over(const std::string& leaf) const {
    const auto wanted = std::stoul(leaf.substr(std::string_view("leaf.").size()));
    std::vector<CaseJson> storages;
    std::vector<std::size_t> out;
    for (const CaseJson& entry : json_.at("inputs")) {
      if (entry.value("is_leaf", true) || !entry.contains("storage")) continue;
      if (entry.contains("same_tensor_as") && entry["same_tensor_as"].is_string()) continue;
      if (std::ranges::find(storages, entry["storage"]) == storages.end()) storages.push_back(entry["storage"]);
      const auto p = placeholder_of(entry.at("key"));
      if (p && wanted < storages.size() && storages[wanted] == entry["storage"]) out.push_back(*p);
    }
    return out;
  }

  /// The gradient of the tensor that these inputs are views of.
  Result<Tensor> sum_of_views(const CaseJson& entry, const std::vector<std::size_t>& inputs) const {
    TRY(const Tensor like, stored(entry));
    TRY(Tensor total, Tensor::zeros(DType::Float64, like.sizes));
    for (std::size_t i : inputs) {
      const Tensor* gradient = found_.find(fmt::format("grad.input.{}", i));
      if (!gradient) continue;
      const CaseJson& view = *input(keys_[i]);
      const Tensor place =
          total.view_as(gradient->sizes, integers(view.at("stride")), view.at("storage_offset").get<std::int64_t>());
      TRY(const Tensor more, gradient->to(DType::Float64));
      TRY(const Tensor before, place.clone());
      for (std::int64_t k = 0; k < more.numel(); ++k) more.as<double>()[k] += before.as<double>()[k];
      place.copy_from(more);
    }
    return total.to(like.dtype);
  }

  Status check_gradient(const CaseJson& entry) const {
    const std::string leaf = entry.at("leaf");
    std::string key;
    if (const auto p = placeholder_of(leaf)) {
      key = fmt::format("grad.input.{}", *p);
    } else if (leaf.starts_with("leaf.")) {
      const std::vector<std::size_t> over = inputs_over(leaf);
      if (over.empty()) return bad_case("no input is a view of " + leaf);
      key = fmt::format("grad.input.{}", over[0]);
      if (over.size() > 1) key = "grad." + shared_storage(*input(keys_[over[0]]));
    } else {
      return {};  // an input that the graph does not have
    }
    if (entry.contains("subclass")) {
      for (const auto& [suffix, part] : parts(entry)) {
        TRY(const Tensor expected, stored(*part));
        TRY_DO(compare(key + suffix, expected, found_.find(key + suffix)));
      }
      return {};
    }
    const Tensor* found = found_.find(key);
    Tensor summed;
    if (!found && key.starts_with("grad.storage.")) {
      TRY(summed, sum_of_views(entry, inputs_over(leaf)));
      found = &summed;
    }
    if (entry.at("key").is_null()) {
      if (!found) return {};
      TRY(const Moments m, moments(*found));
      return m.mean == 0 && m.deviation == 0 ? Status() : Status(differs(key + ": no gradient expected"));
    }
    TRY(Tensor expected, stored(entry));
    if (!found) return differs(key + " is missing");
    if (leaf.starts_with("leaf.") && expected.sizes != found->sizes && expected.numel() == found->numel())
      expected = expected.view_as(found->sizes, row_major_strides(found->sizes), expected.offset);
    return compare(key, expected, found);
  }

  const CaseJson& json_;
  const TensorFile& stored_;
  const RunFile &run_, &run_in_double_;
  const Artefact* artefact_ = nullptr;
  bool train_ = false;
  std::vector<std::string> keys_;                         ///< of the case's inputs, by placeholder; empty for numbers
  std::vector<std::optional<std::size_t>> graph_output_;  ///< by output of the case
  TensorFile io_, found_;
  mutable std::optional<TensorFile> exact_;  ///< what the run in double finds, once it is needed
};

struct CaseFile {
  std::filesystem::path folder;
  CaseJson json;
  TensorFile stored;
  Loaded loaded;
};

Result<CaseFile> read_case(const std::string& json_path) {
  CaseFile c;
  TRY(const auto file, FileBytes::open(json_path));
  c.json = CaseJson::parse(file->text(), nullptr, false);
  if (c.json.is_discarded()) return bad_case(json_path + " is not JSON");
  c.folder = std::filesystem::path(json_path).parent_path();
  TRY(c.stored, read_safetensors((c.folder / "io.safetensors").string()));
  TRY(c.loaded, load((c.folder / "dynamo.py").string()));
  return c;
}

/// Whether some numbers are right only by the run in double.
Result<bool> check(const std::string& json_path, bool train, const RunFile& run, const RunFile& run_in_double) {
  TRY(const CaseFile c, read_case(json_path));
  TRY(const Artefact* artefact, c.loaded.pick({}));
  try {
    AotCase checked(c.json, c.stored, run, run_in_double);
    TRY_DO(checked.check(*artefact, train));
    return checked.by_double;
  } catch (const CaseJson::exception& e) {
    return bad_case(json_path + " is not a case: " + e.what());
  }
}

Result<std::optional<CaseGraphs>> check_graphs(const std::string& json_path) {
  TRY(const CaseFile c, read_case(json_path));
  TRY(const Artefact* artefact, c.loaded.pick({}));
  try {
    return AotCase(c.json, c.stored, {}, {}).check_graphs(c.folder.string(), *artefact);
  } catch (const CaseJson::exception& e) {
    return bad_case(json_path + " is not a case: " + e.what());
  }
}

CaseResult result_of(const std::string& json_path, const char* kind, const Status& status) {
  CaseResult result;
  result.file = std::filesystem::path(json_path).parent_path().filename().string();
  result.kind = kind;
  result.set(status);
  return result;
}

}  // namespace

bool is_aot_case(const std::string& path) {
  const std::filesystem::path file(path);
  std::error_code error;
  return file.filename() == "case.json" && std::filesystem::exists(file.parent_path() / "dynamo.py", error);
}

CaseResult check_aot_case(const std::string& json_path, bool train, const RunFile& run, const RunFile& run_in_double) {
  const Result<bool> checked = check(json_path, train, run, run_in_double);
  CaseResult result = result_of(json_path, "aot", checked ? Status() : Status(checked.error()));
  result.by_double = checked && *checked;
  return result;
}

std::vector<CaseResult> check_aot_graphs(const std::string& json_path) {
  const auto found = check_graphs(json_path);
  const auto status = [&](std::vector<std::string> CaseGraphs::* lines) -> Status {
    if (!found) return found.error();
    const std::vector<std::string>& all = (**found).*lines;
    if (all.empty()) return {};
    return differs(fmt::format("{}", fmt::join(all, "; ")));
  };
  if (found && !*found) return {};
  return {result_of(json_path, "aot_metadata", status(&CaseGraphs::metadata)),
          result_of(json_path, "aot_graphs", status(&CaseGraphs::texts))};
}

}  // namespace partita

#include "app/tasks/located.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/base/mapped.h"

namespace partita {

namespace {

/// A field of a field of the report; null when there is none.
const nlohmann::json& at(const nlohmann::json& report, std::initializer_list<const char*> path) {
  static const nlohmann::json none;
  const nlohmann::json* here = &report;
  for (const char* key : path) {
    if (!here->is_object() || !here->contains(key)) return none;
    here = &(*here)[key];
  }
  return *here;
}

/// A field that is a list; an empty one when there is none.
const nlohmann::json& list_at(const nlohmann::json& report, std::initializer_list<const char*> path) {
  static const nlohmann::json none = nlohmann::json::array();
  const nlohmann::json& found = at(report, path);
  return found.is_array() ? found : none;
}

std::string text_of(const nlohmann::json& value) {
  return value.is_string() ? value.get<std::string>() : value.is_null() ? std::string() : value.dump();
}

std::vector<std::string> texts_of(const nlohmann::json& list) {
  return mapped(list, [](const nlohmann::json& item) { return text_of(item); });
}
std::string joined(const nlohmann::json& list) {
  return fmt::format("{}", fmt::join(texts_of(list), ", "));
}

/// What still failed when the kernel was taken apart, in words.
std::string held_text(const nlohmann::json& held) {
  constexpr std::pair<std::string_view, std::string_view> words[] = {
      {"one_node", "the node alone fails"},
      {"all_outputs", "it fails with all its nodes as results"},
      {"kernel_alone", "it fails with its nodes compiled alone"},
      {"between_negations", "the node fails between exact operators"},
      {"prefix", "the nodes up to this one fail"},
      {"with_producer:", "fails together with what it reads, "},
      {"with_consumer:", "fails together with what reads it, "},
      {"right_without:", "is right without "}};
  std::vector<std::string> out;
  for (const nlohmann::json& item : held) {
    std::string text = text_of(item);
    for (const auto& [name, said] : words)
      if (text.starts_with(name)) text = std::string(said) + text.substr(name.size());
    out.push_back(std::move(text));
  }
  return fmt::format("{}", fmt::join(out, "; "));
}

/// The stages that were compared: one row for those that are right, and one for each that is not.
std::vector<std::pair<std::string, std::string>> stage_facts(const nlohmann::json& stages) {
  std::vector<std::string> right;
  std::vector<std::pair<std::string, std::string>> out;
  int of_log = 0;
  for (const nlohmann::json& row : stages) {
    const std::string source = text_of(at(row, {"source"})), verdict = text_of(at(row, {"verdict"}));
    const std::string name = text_of(at(row, {"stage"})) + (source.empty() ? "" : " (" + source + ")");
    if (verdict != "right")
      out.emplace_back(verdict, name + ": " + text_of(at(row, {"note"})));
    else if (source.empty())
      right.push_back(name);
    else
      ++of_log;
  }
  if (of_log > 0) right.insert(right.begin(), fmt::format("{} of the log's graphs", of_log));
  if (!right.empty()) out.insert(out.begin(), {"right", fmt::format("{}", fmt::join(right, ", "))});
  return out;
}

/// A rule of judge.py that a value broke, in words.
std::string kind_text(const std::string& kind) {
  constexpr std::pair<std::string_view, std::string_view> words[] = {
      {"rms", "errors beyond rounding"}, {"bias", "errors in one direction"},
      {"peak", "some elements far off"}, {"tail", "the rest of the vector loop is wrong"},
      {"nan", "NaN on one side"},        {"inf", "infinite on one side"},
      {"integer", "other integers"},     {"dtype", "another dtype"},
      {"shape", "another shape"},        {"out_of_bounds", "writes outside its buffer"}};
  for (const auto& [name, said] : words)
    if (kind == name) return std::string(said);
  return kind;
}

std::int64_t count_at(const nlohmann::json& from, const char* key) {
  const nlohmann::json& n = at(from, {key});
  return n.is_number_integer() ? n.get<std::int64_t>() : 0;
}

double number_at(const nlohmann::json& from, const char* key) {
  const nlohmann::json& x = at(from, {key});
  return x.is_number() ? x.get<double>() : NAN;
}

std::string first_wrong_text(const nlohmann::json& list) {
  std::vector<std::string> out;
  for (const nlohmann::json& one : list)
    out.push_back(fmt::format("[{}]: {} in place of {}", joined(list_at(one, {"index"})), text_of(at(one, {"got"})),
                              text_of(at(one, {"want"}))));
  return fmt::format("{}", fmt::join(out, "; "));
}

std::string evidence_text(const nlohmann::json& one) {
  std::string text = fmt::format("{} ({}): {}", text_of(at(one, {"buffer"})), text_of(at(one, {"node"})),
                                 kind_text(text_of(at(one, {"kind"}))));
  if (count_at(one, "total") > 0)
    text += fmt::format(", {} of {} elements; error {} times eager's, mean difference z {}", count_at(one, "wrong"),
                        count_at(one, "total"), text_of(at(one, {"rms_ratio"})), text_of(at(one, {"z"})));
  return text;
}

}  // namespace

std::string Located::verdict() const {
  return text_of(at(report, {"verdict"}));
}

std::vector<std::string> Located::given_nodes() const {
  return texts_of(list_at(report, {"node", "given"}));
}

std::string Located::headline() const {
  const std::string verdict = this->verdict(), kernel = kernel_name();
  if (verdict == "clean")
    return at(report, {"sure"}) == true ? "nothing is wrong" : "nothing wrong was found, but not all could be judged";
  if (verdict == "kernel")
    return fmt::format("kernel {} of {}, {}, is wrong", text_of(at(report, {"kernel", "number"})),
                       text_of(at(report, {"kernel", "of"})), kernel);
  if (verdict == "memory")
    return "a buffer is overwritten while it is needed" + (kernel.empty() ? "" : ", by " + kernel);
  if (verdict == "layout") return "a result has other strides than eager's";
  if (verdict == "wrapper") return "results are taken wrongly from right buffers";
  if (verdict == "stage") {
    const std::string stage = text_of(at(report, {"stage"})), source = text_of(at(report, {"source"}));
    if (source.empty()) return fmt::format("the graph is wrong after {}", stage);
    return fmt::format("the log's graph {} ({}) is wrong", source, stage);
  }
  if (verdict == "exception")
    return fmt::format("{} fails: {}: {}", text_of(at(report, {"stage"})), text_of(at(report, {"exception", "type"})),
                       text_of(at(report, {"exception", "message"})));
  return "results differ, and what makes them wrong is not known";
}

std::string Located::certainty() const {
  std::string text;
  if (!clean())
    text = at(report, {"sure"}) == true             ? "sure"
           : at(report, {"kernel", "sure"}) == true ? "sure of the kernel, not of the node"
                                                    : "not sure";
  if (const std::string reason = text_of(at(report, {"reason"})); !reason.empty())
    text += (text.empty() ? "" : ": ") + reason;
  return text;
}

std::vector<std::pair<std::string, std::string>> Located::facts() const {
  std::vector<std::pair<std::string, std::string>> out;
  const auto fact = [&](const char* what, const std::string& content) {
    if (!content.empty()) out.emplace_back(what, content);
  };
  for (auto& [what, content] : stage_facts(list_at(report, {"stages"}))) fact(what.c_str(), content);
  if (at(report, {"node"}).is_object()) {
    fact("node", fmt::format("{} = {}{}", text_of(at(report, {"node", "node"})), text_of(at(report, {"node", "op"})),
                             at(report, {"node", "sure"}) == true ? "" : " (not sure)"));
    fact("in the graph", fmt::format("{}", fmt::join(given_nodes(), ", ")));
    fact("at", text_of(at(report, {"node", "origin"})));
  }
  fact("pass", text_of(at(report, {"pass", "pass"})));
  fact("taken apart", held_text(list_at(report, {"held"})));
  for (const nlohmann::json& row : list_at(report, {"switches"}))
    fact("switch", fmt::format("{}: {}{}", text_of(at(row, {"switch"})), text_of(at(row, {"verdict"})),
                               at(row, {"changes_verdict"}) == true ? ", which changes it" : ""));
  fact("also wrong", joined(list_at(report, {"other_kernels"})));
  for (const nlohmann::json& note : list_at(report, {"notes"})) fact("note", text_of(note));
  return out;
}

std::vector<WrongBuffer> Located::wrong_buffers() const {
  std::vector<WrongBuffer> out;
  for (const nlohmann::json& one : list_at(report, {"evidence"}))
    out.push_back({text_of(at(one, {"kernel"})), text_of(at(one, {"buffer"})), text_of(at(one, {"node"})),
                   kind_text(text_of(at(one, {"kind"}))), count_at(one, "wrong"), count_at(one, "total"),
                   number_at(one, "rms_ratio"), first_wrong_text(list_at(one, {"first_wrong"}))});
  return out;
}

std::vector<JudgedNode> Located::judged_nodes() const {
  std::vector<JudgedNode> out;
  for (const nlohmann::json& one : list_at(report, {"buffers"}))
    for (const nlohmann::json& name : list_at(one, {"given"}))
      out.push_back({text_of(name), text_of(at(one, {"kernel"})), at(one, {"wrong"}) == true, number_at(one, "error")});
  return out;
}

std::string Located::kernel_name() const {
  return text_of(at(report, {"kernel", "name"}));
}

std::string Located::kernel_code() const {
  return text_of(at(report, {"kernel", "code"}));
}

std::vector<std::string> Located::lines() const {
  std::string first = fmt::format("{}: {}", graph, headline());
  if (const std::string sure = certainty(); !sure.empty()) first += (clean() ? ": " : "; ") + sure;
  std::vector<std::string> out = {std::move(first)};
  for (const auto& [what, content] : facts()) out.push_back(fmt::format("{}: {}", what, content));
  const nlohmann::json& evidence = list_at(report, {"evidence"});
  for (std::size_t i = 0; i < std::min<std::size_t>(evidence.size(), 3); ++i)
    out.push_back("evidence: " + evidence_text(evidence[i]));
  return out;
}

nlohmann::ordered_json to_json(const Located& located) {
  nlohmann::ordered_json one = {{"graph", located.graph}};
  one.update(nlohmann::ordered_json(located.report));
  one["graph"] = located.graph;
  return one;
}

}  // namespace partita

#include "core/load/trace_log.h"

#include <algorithm>
#include <charconv>
#include <iterator>

#include <fmt/format.h>
#include <simdjson.h>

#include "core/base/md5.h"
#include "core/load/fx_lines.h"
#include "core/load/runnable.h"
#include "core/load/trace_record.h"

namespace partita {

/// What the line of a record says.
struct TraceLogRecord {
  std::string compile_id;  ///< "0/0", "0/0_1" for a second attempt; empty outside any compile
  std::string name;        ///< "aot_joint_graph"; for an artifact, its own name
  bool has_payload = false;
  std::string checksum;  ///< md5 of the payload
  std::optional<std::pair<std::string, LoggedSymbol>> symbol;
};

struct TraceLogReader::Parser {
  simdjson::dom::parser json;
};

namespace {

using Record = TraceLogRecord;

constexpr std::size_t max_warnings = 20;

/// The JSON of a record's line; empty when the line is not a record.
std::string_view record_json(std::string_view line) {
  if (line.size() < 8 || line[0] < 'A' || line[0] > 'Z') return {};
  for (int i = 1; i <= 4; ++i)
    if (line[static_cast<std::size_t>(i)] < '0' || line[static_cast<std::size_t>(i)] > '9') return {};
  std::size_t close = line.find("] ");
  return close == std::string_view::npos ? std::string_view() : line.substr(close + 2);
}

/// {"symbol": "s77", "val": "8", "vr": "[2, int_oo]"}; nullopt for a symbol that is no integer or has no example.
std::optional<std::pair<std::string, LoggedSymbol>> read_symbol(simdjson::dom::element created) {
  std::string_view name, value, range;
  if (created["symbol"].get(name) != simdjson::SUCCESS || created["val"].get(value) != simdjson::SUCCESS ||
      created["vr"].get(range) != simdjson::SUCCESS || range.size() < 2)
    return std::nullopt;
  LoggedSymbol out;
  const auto limits = fx::read_range(range.substr(1, range.size() - 2));
  const auto [end, bad] = std::from_chars(value.data(), value.data() + value.size(), out.hint);
  if (!limits || bad != std::errc() || end != value.data() + value.size()) return std::nullopt;
  out.range = *limits;
  return std::pair(std::string(name), out);
}

trace::CompileId read_id(simdjson::dom::object object) {
  const auto number = [&](const char* key) {
    std::int64_t value;
    return object[key].get(value) == simdjson::SUCCESS ? std::optional(value) : std::nullopt;
  };
  const auto& keys = trace::id_keys;
  return {number(keys[0]), number(keys[1]), number(keys[2]).value_or(0), number(keys[3]).value_or(0)};
}

Result<Record> read_record(simdjson::dom::parser& parser, std::string_view json) {
  if (json.empty()) return input_error("load.trace_log", "neither a record nor a payload");
  simdjson::dom::object object;
  if (parser.parse(json.data(), json.size()).get(object) != simdjson::SUCCESS)
    return input_error("load.trace_log", "not a JSON object");
  Record r;
  for (auto field : object) {
    std::string_view key = field.key;
    if (key == "rank" || key == "process" || key == "stack" ||
        std::ranges::find(trace::id_keys, key) != std::end(trace::id_keys))
      continue;
    if (key == trace::payload_key) {
      r.has_payload = true;
      if (std::string_view md5; field.value.get(md5) == simdjson::SUCCESS) r.checksum = md5;
      continue;
    }
    if (!r.name.empty()) continue;
    r.name = key;
    std::string_view inner;
    if (key == trace::artifact_key && field.value["name"].get(inner) == simdjson::SUCCESS) r.name = inner;
    if (key == "create_symbol") r.symbol = read_symbol(field.value);
  }
  if (r.name.empty()) return input_error("load.trace_log", "a record without an entry");
  r.compile_id = text_of(read_id(object));
  return r;
}

/// Is the record one of thousands that are useful only together? Those of a compile become one text.
bool is_gathered(const Record& r) {
  return !r.has_payload || r.name == "chromium_event";
}

bool holds_graph(std::string_view payload) {
  return payload.find("(torch.nn.Module):") != std::string_view::npos &&
         payload.find("def forward(") != std::string_view::npos;
}

/// Behind the line that begins here, or the end of the text.
std::size_t line_end(std::string_view text, std::size_t at) {
  const std::size_t newline = text.find('\n', at);
  return newline == std::string_view::npos ? text.size() : newline + 1;
}

/// A record in the text, from its line to the end of its payload.
struct Place {
  std::size_t begin = 0, payload = 0, end = 0;
  int payload_lines = 0;
};

Place place_at(std::string_view text, std::size_t at) {
  Place place{at, line_end(text, at), line_end(text, at)};
  for (; place.end < text.size() && text[place.end] == '\t'; ++place.payload_lines)
    place.end = line_end(text, place.end);
  return place;
}

/// Of the payload without the tab before each line and without the newline at the end.
std::string checksum_of(std::string_view payload) {
  Md5 sum;
  while (!payload.empty()) {
    const std::size_t end = line_end(payload, 0);
    std::string_view line = payload.substr(1, end - 1);
    if (end == payload.size() && line.ends_with('\n')) line.remove_suffix(1);
    sum.update(line);
    payload.remove_prefix(end);
  }
  return sum.hex();
}

}  // namespace

TraceLogReader::TraceLogReader(std::string prefix) : prefix_(std::move(prefix)), parser_(new Parser) {}
TraceLogReader::~TraceLogReader() = default;

Result<std::size_t> TraceLogReader::read(const std::shared_ptr<const FileBytes>& bytes, bool last, Loading& loading) {
  bytes_ = bytes;
  for (auto& [id, known] : compilations_) known.given = true;
  const std::string_view text = bytes->text();
  std::size_t at = 0, next_report = 0;
  while (at < text.size()) {
    if (at >= next_report) {
      TRY_DO(step(&loading.progress, static_cast<double>(at) / static_cast<double>(text.size()), "trace log"));
      next_report = at + (1 << 22);
    }
    const Place place = place_at(text, at);
    const std::string_view content = text.substr(at, place.payload - at);
    if (!last && !content.ends_with('\n')) break;
    if (content[0] == '\t' || content == "\n") {
      if (content != "\n" && !skipping_payload_)
        warn(line_, "a payload line without a record before it", Severity::Warning, loading);
      at = place.payload;
      ++line_;
      continue;
    }
    const auto record = read_record(parser_->json, record_json(content));
    const std::string_view payload = text.substr(place.payload, place.end - place.payload);
    const std::string checksum = record && !record->checksum.empty() ? checksum_of(payload) : std::string();
    const bool may_go_on = record ? record->has_payload && (checksum.empty() || checksum != record->checksum) : true;
    if (!last && may_go_on && place.end == text.size()) break;
    skipping_payload_ = !record;
    if (!record) {
      warn(line_, record.error().message, Severity::Warning, loading);
    } else {
      if (checksum != record->checksum)
        warn(line_ + 1,
             fmt::format("the payload of {} was read, but its checksum is {} and the log says {}; the log was changed "
                         "after PyTorch wrote it",
                         record->name, checksum, record->checksum),
             Severity::Note, loading);
      keep(*record, place.begin, place.payload, place.end, loading);
    }
    line_ += 1 + place.payload_lines;
    at = place.end;
  }
  return at;
}

/// A note is about something that was read all the same.
void TraceLogReader::warn(int line, const std::string& what, Severity severity, Loading& loading) {
  if (severity == Severity::Warning) lost_beyond_ |= warnings_ >= max_warnings;
  if (++warnings_ > max_warnings) return;
  const bool read = severity == Severity::Note;
  Diagnostic d = input_error(read ? "load.trace_log.checksum" : "load.trace_log", (read ? "" : "damaged: ") + what,
                             {.file = bytes_->path(), .line = line});
  d.severity = severity;
  loading.out.warnings.push_back(std::move(d));
}

void TraceLogReader::keep(const Record& record, std::size_t begin, std::size_t payload, std::size_t end,
                          Loading& loading) {
  if (record.symbol) compilation(record.compile_id).symbols->insert(*record.symbol);
  if (is_gathered(record)) {
    Gathered& all = gathered_[{record.compile_id, record.name}];
    if (all.parts.empty() || all.parts.back().bytes != bytes_) all.parts.push_back({bytes_, {}});
    std::vector<Artefact::Piece>& pieces = all.parts.back().pieces;
    if (record.has_payload)
      pieces.push_back({payload, end - payload, true});
    else
      pieces.push_back({begin, payload - begin, false});
    all.grown = true;
    return;
  }
  loading.add(artefact_of(record, payload, end, loading));
}

Artefact TraceLogReader::artefact_of(const Record& record, std::size_t payload, std::size_t end,
                                     const Loading& loading) {
  constexpr std::string_view lost = " = <lambda>()";
  const std::string_view content = bytes_->text().substr(payload, end - payload);
  Artefact a = Artefact::of_text(bytes_, {{payload, end - payload, true}});
  if (record.name == "torch._functorch.config")
    if (const auto text = a.text()) read_config(*text, *compilation(record.compile_id).functorch);
  if (holds_graph(content)) {
    a.kind = kind_of_name(record.name);
    if (content.find(lost) != content.npos)
      if (const auto text = a.text()) a.companion = find_sub_graphs(*text, record.compile_id, loading.out.artefacts);
  }
  a.where.line = line_ + 1;
  return named(std::move(a), record.compile_id, record.name);
}

bool TraceLogReader::show_rest(const std::shared_ptr<const FileBytes>& rest, Loading& loading) {
  bytes_ = rest;
  const std::string_view text = rest->text();
  const Place place = place_at(text, 0);
  const auto record = read_record(parser_->json, record_json(text.substr(0, place.payload)));
  if (!record || !record->has_payload || place.end < text.size()) return true;
  if (!is_gathered(*record)) {
    Artefact a = artefact_of(*record, place.payload, place.end, loading);
    if (const auto used = loading.copies.find(a.id); used != loading.copies.end() && used->second > 0)
      a.id += fmt::format("_{}", used->second);
    loading.out.artefacts.push_back(std::move(a));
  }
  // A log that was made by hand, or by another program, may have no checksum: then its end is taken as it is.
  return record->checksum.size() == 32 &&
         checksum_of(text.substr(place.payload, place.end - place.payload)) != record->checksum;
}

TraceLogReader::Compilation& TraceLogReader::compilation(const std::string& compile_id) {
  Compilation& known = compilations_[compile_id];
  if (std::exchange(known.given, false)) {
    known.symbols = std::make_shared<LoggedSymbols>(*known.symbols);
    known.functorch = std::make_shared<FunctorchConfig>(*known.functorch);
  }
  return known;
}

/// The numbers and flags of a configuration that is logged as JSON; none of text that is damaged.
void TraceLogReader::read_config(std::string_view json, FunctorchConfig& out) {
  simdjson::dom::object object;
  if (parser_->json.parse(json.data(), json.size()).get(object) != simdjson::SUCCESS) return;
  for (const auto field : object) {
    bool flag = false;
    double number = 0;
    if (field.value.get(flag) == simdjson::SUCCESS)
      out[std::string(field.key)] = flag;
    else if (field.value.get(number) == simdjson::SUCCESS)
      out[std::string(field.key)] = number;
  }
}

Artefact TraceLogReader::named(Artefact a, const std::string& compile_id, const std::string& name) {
  if (a.is_graph()) {
    a.symbols = compilation(compile_id).symbols;
    a.functorch = compilation(compile_id).functorch;
  }
  std::string id = compile_id;
  std::ranges::replace(id, '/', '_');
  id += (id.empty() ? "" : ".") + name;
  a.id = join_id(prefix_, id);
  a.group = compile_id;
  a.title = compile_id.empty() ? name : fmt::format("{} of {}", name, compile_id);
  return a;
}

void TraceLogReader::flush(Loading& loading) {
  for (auto& [key, all] : gathered_) {
    if (!std::exchange(all.grown, false)) continue;
    Artefact a = named(Artefact::of_text(all.parts), key.first, key.second);
    if (all.id.empty()) {
      loading.add(std::move(a));
      all.id = loading.out.artefacts.back().id;
    } else {
      a.id = all.id;
      loading.out.artefacts.push_back(std::move(a));
    }
  }
  if (warnings_ > max_warnings) {
    loading.out.warnings.push_back(input_error(
        "load.trace_log", fmt::format("and {} more such lines", warnings_ - max_warnings), {.file = bytes_->path()}));
    loading.out.warnings.back().severity = lost_beyond_ ? Severity::Warning : Severity::Note;
    warnings_ = max_warnings;
  }
}

std::string trace::text_of(const CompileId& id) {
  std::string text = id.compiled_autograd ? fmt::format("!{}/", *id.compiled_autograd) : std::string();
  if (id.frame) text += fmt::format("{}/{}", *id.frame, id.compile);
  if (id.frame && id.attempt != 0) text += fmt::format("_{}", id.attempt);
  return text;
}

bool is_trace_log(std::string_view text, std::string_view) {
  // The first lines may be damaged, so try several.
  for (int i = 0; i < 20 && !text.empty(); ++i) {
    std::size_t end = std::min(text.find('\n'), text.size() - 1);
    if (record_json(text.substr(0, end)).starts_with("{")) return true;
    text.remove_prefix(end + 1);
  }
  return false;
}

Status load_trace_log(std::shared_ptr<const FileBytes> bytes, const std::string& prefix, Loading& loading) {
  TraceLogReader reader(prefix);
  TRY_DO(reader.read(bytes, true, loading));
  reader.flush(loading);
  return {};
}

}  // namespace partita

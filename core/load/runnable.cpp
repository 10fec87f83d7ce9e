#include "core/load/runnable.h"

#include "core/base/raise.h"
#include "core/base/text.h"
#include "core/load/fx_expression.h"
#include "core/load/output_flow.h"

namespace partita {
namespace {

/// What stands in the brackets that `text` begins with; empty if they are not closed.
std::string_view inside(std::string_view text) {
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '(') ++depth;
    if (text[i] == ')' && --depth == 0) return text.substr(1, i - 1);
  }
  return {};
}

/// One line: "buf0 = reader.storage(None, 8192)" or "reader.tensor(buf0, (s77, 32), is_leaf=True)  # primals_1".
struct Call {
  std::string_view result, function;
  std::vector<std::string_view> args;
  std::map<std::string_view, std::string_view> kwargs;

  explicit Call(std::string_view line) {
    const std::size_t open = std::min(line.find('('), line.size());
    std::string_view before = line.substr(0, open);
    if (const std::size_t assigned = before.find('='); assigned != std::string_view::npos) {
      result = trimmed(before.substr(0, assigned));
      before.remove_prefix(assigned + 1);
    }
    function = trimmed(before);
    for (std::string_view item : call_arguments(inside(line.substr(open)))) {
      const std::size_t assigned = item.find('=');
      if (assigned < item.find_first_of("('"))
        kwargs[trimmed(item.substr(0, assigned))] = trimmed(item.substr(assigned + 1));
      else
        args.push_back(item);
    }
  }

  /// The value of a keyword; nullopt if the call has none of that type.
  template <class T>
  std::optional<T> get(std::string_view key) const {
    const auto it = kwargs.find(key);
    if (it == kwargs.end()) return std::nullopt;
    Graph scratch;
    python::Lexer lexer = python::Lexer::of_expression(it->second);
    const auto value = fx::ExpressionReader(lexer, scratch).argument();
    const T* found = value ? value->template get<T>() : nullptr;
    return found ? std::optional(*found) : std::nullopt;
  }
};

std::optional<SymExpr> expression(std::string_view text) {
  auto read = SymExpr::parse(text);
  return read ? std::optional(*read) : std::nullopt;
}

/// "(s77, 32)"
std::optional<SymList> sizes(std::string_view text) {
  if (!text.starts_with('(')) return std::nullopt;
  SymList out;
  for (std::string_view item : call_arguments(inside(text))) {
    const auto size = expression(item);
    if (!size) return std::nullopt;
    out.push_back(*size);
  }
  return out;
}

/// buf0 = reader.storage('14307973389f...', 256, device=device(type='cuda', index=0))
struct Buffer {
  Device device;
  std::string_view file;  ///< the name of the file with its bytes; empty: None
};

/// reader.tensor(buf0, (4, 8), (8, 1), dtype=torch.int64, is_leaf=True)
std::optional<Meta> tensor(const Call& call, const std::map<std::string_view, Buffer>& buffers) {
  if (call.args.size() < 2 || !buffers.contains(call.args[0])) return std::nullopt;
  const auto shape = sizes(call.args[1]);
  if (!shape) return std::nullopt;
  auto made = catch_raised<TensorMeta>(
      [&] { return TensorMeta::contiguous(call.get<DType>("dtype").value_or(DType::Float32), *shape); });
  if (!made) return std::nullopt;
  TensorMeta t = *std::move(made);
  if (call.args.size() > 2) {
    const auto strides = sizes(call.args[2]);
    if (!strides || strides->size() != shape->size()) return std::nullopt;
    t.strides = *strides;
  }
  if (const auto offset = call.kwargs.find("storage_offset"); offset != call.kwargs.end()) {
    const auto read = expression(offset->second);
    if (!read) return std::nullopt;
    t.offset = *read;
  }
  t.requires_grad = call.get<bool>("requires_grad").value_or(false);
  t.device = buffers.at(call.args[0]).device;
  return Meta(std::move(t));
}

}  // namespace

LoadArgs read_load_args(std::string_view text) {
  constexpr std::string_view head = "\ndef load_args(reader):\n";
  const std::size_t at = text.find(head);
  if (at == std::string_view::npos) return {};
  LoadArgs out;
  std::map<std::string_view, Buffer> buffers;
  for (std::string_view line : lines_of(text.substr(at + head.size()))) {
    if (!line.starts_with(' ')) break;
    const Call call(trimmed(line));
    if (call.function == "reader.storage") {
      Buffer& buffer = buffers[call.result];
      buffer.device = call.get<Device>("device").value_or(Device{});
      if (!call.args.empty() && call.args[0].size() > 2 && call.args[0].front() == '\'')
        buffer.file = call.args[0].substr(1, call.args[0].size() - 2);
    } else if (call.function == "reader.tensor") {
      auto meta = tensor(call, buffers);
      if (!meta) return {};
      out.inputs.push_back(*std::move(meta));
      out.storages.emplace_back(buffers[call.args[0]].file);
    } else if (call.function == "reader.symint") {
      const auto value = call.args.empty() ? std::nullopt : expression(call.args[0]);
      if (!value || !value->is_int()) return {};
      const auto named = call.get<std::string>("expr");
      const auto symbolic = named ? expression(*named) : value;
      if (!symbolic) return {};
      if (symbolic->kind() == SymKind::Symbol) out.hints[symbolic->name()] = value->as_int();
      out.inputs.emplace_back(*symbolic);
      out.storages.emplace_back();
    } else if (call.function == "reader.const" || call.function == "reader.unsupported" ||
               call.function == "reader.opaque") {
      out.inputs.emplace_back();
      out.storages.emplace_back();
    } else {
      return {};
    }
  }
  return out;
}

}  // namespace partita

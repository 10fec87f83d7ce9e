#include "core/load/runnable.h"

#include "core/load/fx_expression.h"

namespace partita {
namespace {

std::optional<SymList> integers(const Arg& arg) {
  auto* list = arg.get<ArgList>();
  if (!list) return std::nullopt;
  SymList out;
  for (const Arg& item : list->items) {
    auto* n = item.get<std::int64_t>();
    if (!n) return std::nullopt;
    out.push_back(*n);
  }
  return out;
}

const Arg* keyword(const Kwargs& kwargs, std::string_view key) {
  for (const auto& [name, value] : kwargs)
    if (name == key) return &value;
  return nullptr;
}

/// Reads reader.tensor(buf0, (4, 8), (8, 1), dtype=torch.int64, is_leaf=True)
std::optional<Meta> tensor(const fx::Expression& call) {
  if (call.args.size() < 2 || !call.args[0].node()) return std::nullopt;
  auto sizes = integers(call.args[1]);
  if (!sizes) return std::nullopt;
  TensorMeta t = TensorMeta::contiguous(DType::Float32, *sizes);
  if (call.args.size() > 2) {
    auto strides = integers(call.args[2]);
    if (!strides || strides->size() != sizes->size()) return std::nullopt;
    t.strides = *strides;
  }
  if (const Arg* dtype = keyword(call.kwargs, "dtype"); dtype && dtype->get<DType>()) t.dtype = *dtype->get<DType>();
  if (const Arg* offset = keyword(call.kwargs, "storage_offset"); offset && offset->get<std::int64_t>())
    t.offset = *offset->get<std::int64_t>();
  if (const Arg* grad = keyword(call.kwargs, "requires_grad"); grad && grad->get<bool>())
    t.requires_grad = *grad->get<bool>();
  const Node* storage = call.args[0].node();
  if (const Arg* device = keyword(storage->kwargs(), "device"); device && device->get<Device>())
    t.device = *device->get<Device>();
  return Meta(std::move(t));
}

}  // namespace

std::vector<Meta> read_load_args(std::string_view text) {
  constexpr std::string_view head = "\ndef load_args(reader):\n";
  std::size_t at = text.find(head);
  std::vector<Meta> out;
  if (at == std::string_view::npos) return out;
  Graph scratch;
  python::Lexer lexer(text);
  fx::ExpressionReader reader(lexer, scratch);
  for (at += head.size(); at < text.size() && text[at] == ' ';) {
    std::size_t end = std::min(text.find('\n', at), text.size());
    lexer.seek(at);
    at = end + 1;
    std::string_view name;
    if (lexer.peek().kind == python::TokenKind::Name && lexer.after_peek() == '=') {
      name = lexer.next().text;
      lexer.next();
    }
    auto call = reader.expression();
    if (!call || !call->op) return {};
    if (!name.empty()) {
      reader.names[name] = reader.materialise(*std::move(call), name);
    } else if (call->op->name == "reader.tensor") {
      auto meta = tensor(*call);
      if (!meta) return {};
      out.push_back(*std::move(meta));
    } else if (call->op->name == "reader.symint") {
      auto* value = call->args.empty() ? nullptr : call->args[0].get<std::int64_t>();
      if (!value) return {};
      out.emplace_back(SymExpr(*value));
    } else {
      return {};
    }
  }
  return out;
}

}  // namespace partita

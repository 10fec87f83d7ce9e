#include "core/interp/widen.h"

#include <optional>

#include "core/ops/record/record.h"
#include "core/tensor/float8.h"

namespace partita {

DType widened(DType t) {
  // What a graph rounds to float8 it rounds on purpose, as it does to integers.
  if (is_float8(t) || is_opaque(t)) return t;
  return is_complex(t) ? DType::Complex128 : is_floating(t) ? DType::Float64 : t;
}

Result<Value> widened(Value v) {
  if (auto* list = std::get_if<ValueList>(&v.v)) {
    for (Value& item : *list) {
      TRY(item, widened(std::move(item)));
    }
    return v;
  }
  const auto* t = v.get<Tensor>();
  if (!t || widened(t->dtype) == t->dtype) return v;
  // Keep the strides, because the meaning of views depends on them.
  TRY(Tensor wide, Tensor::empty_strided(widened(t->dtype), t->sizes, t->strides));
  TRY(const Tensor values, t->to(wide.dtype));
  wide.copy_from(values);
  return Value(std::move(wide));
}

namespace {

/// Converts a tensor of a double-precision run to the dtype of its node, with its strides. Null if it has that dtype
/// already.
Result<std::optional<Tensor>> narrowed(const Value& v, const Arg& arg) {
  const auto* wide = v.get<Tensor>();
  const Node* node = arg.node();
  const TensorMeta* meta = node ? node->meta.tensor() : nullptr;
  if (!wide || !meta || meta->dtype == wide->dtype) return std::optional<Tensor>();
  TRY(Tensor narrow, Tensor::empty_strided(meta->dtype, wide->sizes, wide->strides));
  TRY(const Tensor values, wide->to(meta->dtype));
  narrow.copy_from(values);
  return std::optional(std::move(narrow));
}

}  // namespace

void clear_half_to_float(const Node& node, std::vector<Value>& args,
                         std::vector<std::pair<std::string, Value>>& kwargs) {
  constexpr std::string_view name = "half_to_float";
  const Schema* schema = find_schema(node.op());
  const int at = schema ? schema->index_of(name) : -1;
  if (at < 0) return;
  if (static_cast<std::size_t>(at) < args.size()) args[static_cast<std::size_t>(at)] = false;
  for (auto& [key, value] : kwargs)
    if (key == name) value = false;
}

bool is_run_as_written(const Op* op) {
  const OpRecord* record = find_record(op);
  return record && (record->random || record->precision.as_written);
}

Result<Value> run_as_written(const Node& node, std::vector<Value> args,
                             std::vector<std::pair<std::string, Value>> kwargs, const EvalContext& context) {
  const Schema& schema = *find_schema(node.op());
  std::vector<std::pair<Tensor, Tensor>> written;  // wide, narrow
  const auto narrow = [&](Value& v, const Arg& arg, std::size_t position) -> Status {
    TRY(std::optional<Tensor> t, narrowed(v, arg));
    if (!t) return {};
    if (schema.args[position].is_write) written.emplace_back(*v.get<Tensor>(), *t);
    v = *std::move(t);
    return {};
  };
  for (std::size_t i = 0; i < args.size(); ++i) TRY_DO(narrow(args[i], node.args()[i], i));
  for (std::size_t i = 0; i < kwargs.size(); ++i)
    if (const int at = schema.index_of(kwargs[i].first); at >= 0)
      TRY_DO(narrow(kwargs[i].second, node.kwargs()[i].second, static_cast<std::size_t>(at)));
  TRY(Value result, evaluate(node.op(), std::move(args), std::move(kwargs), context, &node));
  for (const auto& [wide, narrow] : written) {
    wide.copy_from(narrow);
    if (const auto* t = result.get<Tensor>(); t && t->storage == narrow.storage) result = wide;
  }
  return widened(std::move(result));
}

}  // namespace partita

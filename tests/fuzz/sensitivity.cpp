#include "tests/fuzz/sensitivity.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "core/interp/interpreter.h"
#include "core/interp/widen.h"
#include "core/ops/record.h"

namespace partita::fuzz {
namespace {

constexpr int runs = 32;

/// Relative shift of a value of dtype `t`; 0: integers stay as they are.
double shift_of(DType t, bool input) {
  switch (t) {
    case DType::Float64:
    case DType::Complex128:
      return 0x1p-51;
    case DType::Float32:
    case DType::Complex64:
      return 0x1p-22;
    case DType::Float16:
      return input ? 0x1p-22 : 0x1p-10;  // inputs are what they are; what is computed of them is in float32
    case DType::BFloat16:
      return input ? 0x1p-22 : 0x1p-7;
    default:
      return 0;
  }
}

class Shaker {
 public:
  explicit Shaker(unsigned seed) : random_(seed) {}

  /// A tensor of doubles (or pairs of them) shifted; others as they are. Elements that share memory are shifted apart:
  /// what is computed of them rounds for each.
  Tensor shaken(const Tensor& t, double shift) {
    if (shift == 0 || (t.dtype != DType::Float64 && t.dtype != DType::Complex128)) return t;
    bool shared = false;
    for (std::size_t d = 0; d < t.sizes.size(); ++d) shared = shared || (t.strides[d] == 0 && t.sizes[d] > 1);
    Result<Tensor> row_major = Tensor::empty(t.dtype, t.sizes),
                   out = shared ? row_major : Tensor::empty_strided(t.dtype, t.sizes, t.strides);
    if (!row_major || !out) return t;
    row_major->copy_from(t);
    if (t.dtype == DType::Float64) {
      for (std::int64_t i = 0; i < t.numel(); ++i) row_major->as<double>()[i] *= 1 + shift * sign();
    } else {
      for (std::int64_t i = 0; i < t.numel(); ++i) {
        std::complex<double>& z = row_major->as<std::complex<double>>()[i];
        const double size = std::isfinite(std::abs(z)) ? shift * std::abs(z) : 0;
        z += std::complex<double>(size * sign(), size * sign());
      }
    }
    if (!shared) out->copy_from(*row_major);
    return *std::move(out);
  }

  /// `read`: elements of the largest argument. A number made of n may have been rounded n times, in any order.
  Value shaken(const Value& v, const Meta& meta, bool input, std::int64_t read = 0) {
    if (const auto* list = v.get<ValueList>()) {
      const MetaTuple* tuple = meta.tuple();
      ValueList out = *list;
      for (std::size_t i = 0; tuple && i < out.size() && i < tuple->items.size(); ++i)
        out[i] = shaken(out[i], tuple->items[i], input, read);
      return out;
    }
    const Tensor* t = v.get<Tensor>();
    if (!t || !meta.tensor()) return v;
    const double terms = static_cast<double>(read) / static_cast<double>(std::max<std::int64_t>(t->numel(), 1));
    return shaken(*t, shift_of(meta.tensor()->dtype, input) * std::sqrt(std::max(terms, 1.0)));
  }

 private:
  double sign() { return random_() % 2 ? 1 : -1; }
  std::mt19937_64 random_;
};

/// Elements of the largest tensor.
std::int64_t largest(const std::vector<Value>& args) {
  std::int64_t most = 0;
  for (const Value& v : args) {
    if (const Tensor* t = v.get<Tensor>()) most = std::max(most, t->numel());
    if (const auto* list = v.get<ValueList>()) most = std::max(most, largest(*list));
  }
  return most;
}

/// May a product of the elements overflow on its way, in some order, in `t`? With a 0 among them it is then NaN, else
/// 0.
bool may_overflow(const Tensor& elements, DType t) {
  const double largest = t == DType::Float64 || t == DType::Complex128 ? std::numeric_limits<double>::max()
                                                                       : std::numeric_limits<float>::max();
  double size = 0;
  for (std::int64_t i = 0; i < elements.numel(); ++i)
    size += std::max(0.0, std::log(std::abs(elements.item_as_double(i))));
  return size > std::log(largest);
}

double distance(double a, double b) {
  if (a == b || (std::isnan(a) && std::isnan(b))) return 0;
  const double d = std::abs(a - b);
  return std::isnan(d) ? std::numeric_limits<double>::infinity() : d;
}

double distance(const Tensor& a, const Tensor& b, std::int64_t i) {
  if (!is_complex(a.dtype)) return distance(a.item_as_double(i), b.item_as_double(i));
  const Tensor x = *a.contiguous(), y = *b.contiguous();
  const auto p = x.as<std::complex<double>>()[i], q = y.as<std::complex<double>>()[i];
  return std::hypot(distance(p.real(), q.real()), distance(p.imag(), q.imag()));
}

}  // namespace

std::optional<std::vector<std::vector<double>>> moved_by_rounding(const Graph& graph, const std::vector<Value>& inputs,
                                                                  const std::vector<Value>& exact) {
  std::vector<std::vector<double>> moved(exact.size());
  for (std::size_t k = 0; k < exact.size(); ++k)
    if (const Tensor* t = exact[k].get<Tensor>()) moved[k].assign(static_cast<std::size_t>(t->numel()), 0);
  for (int run = 0; run < runs; ++run) {
    Shaker shaker(static_cast<unsigned>(run));
    InterpOptions options;
    options.float64 = true;
    options.evaluate = [&](const Node& node, std::vector<Value> args, ValueKwargs kwargs,
                           const EvalContext& context) -> Result<Value> {
      const std::int64_t read = largest(args);
      const Tensor* factors = node.op()->name.starts_with("aten.prod.") ? args[0].get<Tensor>() : nullptr;
      const TensorMeta* product = node.meta.tensor();
      const bool overflows = factors && product && may_overflow(*factors, product->dtype);
      TRY(Value result, evaluate(node.op(), std::move(args), std::move(kwargs), context, &node));
      TRY(Value out, widened(std::move(result)));
      if (overflows && out.get<Tensor>() && out.get<Tensor>()->dtype == DType::Float64) {
        const Tensor* t = out.get<Tensor>();
        std::fill_n(t->as<double>(), t->numel(), std::numeric_limits<double>::infinity());
        return out;
      }
      const OpRecord* record = find_record(node.op());
      return record && record->schema->is_view ? out : shaker.shaken(out, node.meta, false, read);
    };
    options.check_inputs = false;
    std::vector<Value> shaken_inputs;
    for (const Node* node : graph.placeholders()) {
      Result<Value> wide = widened(inputs[shaken_inputs.size()]);
      if (!wide) return std::nullopt;
      shaken_inputs.push_back(shaker.shaken(*wide, node->meta, true));
    }
    const auto shaken = interpret(graph, std::move(shaken_inputs), options);
    if (!shaken || shaken->size() != exact.size()) return std::nullopt;
    for (std::size_t k = 0; k < exact.size(); ++k) {
      const Tensor *a = exact[k].get<Tensor>(), *b = (*shaken)[k].get<Tensor>();
      if (!a || !b) continue;
      if (a->sizes != b->sizes || a->dtype != b->dtype) return std::nullopt;
      for (std::int64_t i = 0; i < a->numel(); ++i) {
        double& most = moved[k][static_cast<std::size_t>(i)];
        most = std::max(most, distance(*a, *b, i));
      }
    }
  }
  return moved;
}

}  // namespace partita::fuzz

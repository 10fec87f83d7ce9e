#pragma once
#include <QtTest>
#include <random>

#include "core/fake/propagate.h"
#include "core/interp/interpreter.h"
#include "core/load/fx_text.h"
#include "core/ops/record/call.h"
#include "core/schedule/execute_plan.h"
#include "core/schedule/make_plan.h"

namespace partita::testing {

inline std::unique_ptr<Graph> parse(const std::string& text) {
  auto graph = parse_fx_text(text, "test.py");
  if (!graph) qFatal("%s", graph.error().line().c_str());
  return std::move(*graph);
}

/// A class M with the given body, one statement per line.
inline std::string module(const std::string& arguments, const std::vector<std::string>& statements) {
  std::string text = "class M(torch.nn.Module):\n    def forward(self, " + arguments + "):\n";
  for (const std::string& s : statements) text += "        " + s + "\n";
  return text;
}

/// Random values for the placeholders: normal floats, whole numbers below `high`, random bools.
inline std::vector<Value> random_inputs(const Graph& graph, std::uint64_t seed = 1, std::int64_t high = 4) {
  std::mt19937_64 engine(seed);
  std::normal_distribution<double> normal;
  std::vector<Value> values;
  for (const Node* n : graph.placeholders()) {
    const TensorMeta* meta = n->meta.tensor();
    if (!meta) {
      values.emplace_back(std::int64_t{0});
      continue;
    }
    Tensor t = unwrap(Tensor::empty(DType::Float64, *concrete(meta->sizes)));
    for (std::int64_t i = 0; i < t.numel(); ++i)
      t.as<double>()[i] = is_floating(meta->dtype) ? normal(engine)
                          : meta->dtype == DType::Bool
                              ? static_cast<double>(engine() % 2)
                              : static_cast<double>(engine() % static_cast<std::uint64_t>(high));
    Tensor strided = unwrap(Tensor::empty_strided(meta->dtype, t.sizes, *concrete(meta->strides)));
    strided.copy_from(unwrap(t.to(meta->dtype)));
    values.emplace_back(strided);
  }
  return values;
}

inline std::vector<Value> copies(const std::vector<Value>& values) {
  std::vector<Value> out;
  for (const Value& v : values) {
    const Tensor* t = v.get<Tensor>();
    if (!t) {
      out.push_back(v);
      continue;
    }
    Tensor copy = unwrap(Tensor::empty_strided(t->dtype, t->sizes, t->strides));
    copy.copy_from(*t);
    out.emplace_back(copy);
  }
  return out;
}

/// The largest |a - b| / (1 + |b|); infinite if only one is NaN or they differ in kind.
inline double difference(const Value& a, const Value& b, bool same_dtype = true) {
  const Tensor *x = a.get<Tensor>(), *y = b.get<Tensor>();
  if (!x || !y) return x || y ? INFINITY : 0;
  if ((same_dtype && x->dtype != y->dtype) || x->sizes != y->sizes) return INFINITY;
  double worst = 0;
  for (std::int64_t i = 0; i < x->numel(); ++i) {
    double u = x->item_as_double(i), v = y->item_as_double(i);
    if (std::isnan(u) && std::isnan(v)) continue;
    if (u == v) continue;
    double d = std::abs(u - v) / (1 + std::abs(v));
    worst = std::isnan(d) ? INFINITY : std::max(worst, d);
  }
  return worst;
}

}  // namespace partita::testing

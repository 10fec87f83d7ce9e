#pragma once
// A plan of one library call, and what the call's evaluation gives.
#include <QtTest>
#include <cmath>
#include <random>

#include "codegen/cpu/cpu_machine.h"
#include "codegen/cpu/cpu_target.h"
#include "codegen/program/executable.h"
#include "core/ops/record/evaluate.h"
#include "core/ops/schema/schema.h"
#include "core/schedule/plan.h"

namespace partita::testing {

/// "Partita avx512" or "Partita avx2", as this machine's kernels of products and of what is made of them are called;
/// empty where there are none.
inline std::string own_kernels() {
#ifdef __x86_64__
  if (__builtin_cpu_supports("x86-64-v4")) return "Partita avx512";
  if (__builtin_cpu_supports("x86-64-v3")) return "Partita avx2";
#endif
  return {};
}
/// Are matrices that change multiplied by our own kernel too?
inline bool owns_changing_products() {
  return own_kernels() == "Partita avx2";
}

inline Tensor random_tensor(const Sizes& sizes, std::uint32_t seed) {
  Tensor t = *Tensor::empty(DType::Float32, sizes);
  std::mt19937 rng(seed);
  std::uniform_real_distribution<float> d(-1, 1);
  for (std::int64_t i = 0; i < t.numel(); ++i) t.as<float>()[i] = d(rng);
  return t;
}

inline TensorMeta meta(const Tensor& t) {
  TensorMeta m;
  m.dtype = t.dtype;
  m.sizes.assign(t.sizes.begin(), t.sizes.end());
  m.strides.assign(t.strides.begin(), t.strides.end());
  return m;
}

inline schedule::PlanView view(int buffer, const Tensor& t) {
  return {buffer, t.dtype, meta(t).sizes, meta(t).strides, 0};
}

/// A plan of one call. The tensors among its arguments become inputs, its results outputs.
struct OneCall {
  schedule::Plan plan;
  std::vector<Value> inputs;
  Value expected;

  OneCall(const char* op, std::vector<Value> args) {
    std::vector<Value> positional;
    std::vector<std::pair<std::string, Value>> named;
    const Schema& schema = *find_schema(Op::torch(op));
    for (std::size_t i = 0; i < args.size(); ++i) {
      if (schema.args[i].keyword_only)
        named.emplace_back(schema.args[i].name, args[i]);
      else
        positional.push_back(args[i]);
    }
    plan.target = codegen::host_target(2);
    auto result = evaluate(Op::torch(op), positional, named);
    if (!result) qFatal("%s", result.error().line().c_str());
    expected = *result;
    schedule::ExternCall call;
    call.op = Op::torch(op);
    call.origin = "node";
    for (const Value& a : args) {
      if (auto* t = a.get<Tensor>()) {
        int b = static_cast<int>(plan.buffers.size());
        plan.buffers.push_back({schedule::PlanBuffer::Kind::Input, static_cast<int>(inputs.size()), "", t->dtype,
                                *reach(t->sizes, t->strides), 0});
        plan.inputs.push_back(meta(*t));
        inputs.push_back(a);
        call.args.push_back(view(b, *t));
      } else {
        call.args.push_back(literal(a));
      }
    }
    auto add = [&](const Value& v) {
      auto* t = v.get<Tensor>();
      int b = static_cast<int>(plan.buffers.size());
      if (!t) {
        call.results.push_back({-1, DType::Float32, {}, {}, 0});
        return;
      }
      plan.buffers.push_back(
          {schedule::PlanBuffer::Kind::Output, static_cast<int>(plan.outputs.size()), "", t->dtype, t->numel(), 0});
      schedule::PlanView out = view(b, *t);
      out.strides = contiguous_strides(out.sizes);
      call.results.push_back(out);
      plan.outputs.push_back(out);
    };
    if (auto* list = expected.get<ValueList>())
      for (const Value& v : *list) add(v);
    else
      add(expected);
    plan.steps.push_back(std::move(call));
  }

  static Arg literal(const Value& v) {
    if (auto* list = v.get<ValueList>()) {
      std::vector<Arg> items;
      for (const Value& i : *list) items.push_back(literal(i));
      return Arg::list(items);
    }
    if (auto* i = v.get<std::int64_t>()) return *i;
    if (auto* d = v.get<double>()) return *d;
    if (auto* b = v.get<bool>()) return *b;
    return {};
  }

  /// The first result, images, gets its channels innermost.
  OneCall& innermost_channels() {
    schedule::PlanView& out = call().results[0];
    SymExpr distance = out.sizes[1];
    for (std::size_t d = out.sizes.size(); d-- > 2; distance = distance * out.sizes[d]) out.strides[d] = distance;
    out.strides[1] = 1;
    out.strides[0] = distance;
    plan.outputs[0] = out;
    return *this;
  }
  schedule::ExternCall& call() { return std::get<schedule::ExternCall>(plan.steps[0]); }
};

inline double worst(const Tensor& got, const Tensor& want) {
  double w = got.sizes == want.sizes ? 0 : INFINITY;
  for (std::int64_t i = 0; i < want.numel() && w < INFINITY; ++i)
    w = std::max(w, std::fabs(got.item_as_double(i) - want.item_as_double(i)));
  return w;
}

/// Images with their channels innermost.
inline Tensor channels_last(const Tensor& images) {
  Sizes strides = images.strides;
  std::int64_t distance = images.sizes[1];
  for (std::size_t d = images.sizes.size(); d-- > 2; distance *= images.sizes[d]) strides[d] = distance;
  strides[1] = 1;
  strides[0] = distance;
  Tensor t = *Tensor::empty_strided(images.dtype, images.sizes, strides);
  t.copy_from(images);
  return t;
}

/// The call's results are those of its evaluation, by this library.
inline void check(OneCall& c, const std::string& library, const codegen::CompileOptions& options = {}) {
  auto e = codegen::compile_plan(*codegen::cpu_machine(), c.plan, {}, options);
  if (!e) QFAIL(e.error().line().c_str());
  QVERIFY2((*e)->externs[0].library.starts_with(library),
           ((*e)->externs[0].library + " " + (*e)->externs[0].why_not).c_str());
  for (int round = 0; round < 2; ++round) {
    auto got = (*e)->run(c.inputs);
    if (!got) QFAIL(got.error().line().c_str());
    std::vector<Value> want;
    if (auto* list = c.expected.get<ValueList>())
      for (const Value& v : *list) v.is_none() ? void() : want.push_back(v);
    else
      want.push_back(c.expected);
    QCOMPARE(got->size(), want.size());
    for (std::size_t i = 0; i < want.size(); ++i) {
      double w = worst(*(*got)[i].get<Tensor>(), *want[i].get<Tensor>());
      QVERIFY2(w < 1e-4, std::to_string(w).c_str());
    }
  }
}

inline ValueList ints(std::initializer_list<std::int64_t> v) {
  ValueList l;
  for (auto i : v) l.push_back(i);
  return l;
}

inline Tensor transposed(const Tensor& t) {
  Sizes sizes = t.sizes, strides = t.strides;
  std::swap(sizes[sizes.size() - 1], sizes[sizes.size() - 2]);
  std::swap(strides[sizes.size() - 1], strides[sizes.size() - 2]);
  return t.view_as(sizes, strides, 0);
}

}  // namespace partita::testing

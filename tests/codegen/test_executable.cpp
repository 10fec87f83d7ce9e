#include <array>
#include <cmath>
#include <limits>
#include <random>

#include <fmt/format.h>

#include "codegen/cpu/cpu_machine.h"
#include "codegen/cpu/cpu_target.h"
#include "codegen/cpu/extern/onednn.h"
#include "codegen/cpu/jit.h"
#include "codegen/program/executable.h"
#include "core/ops/record/record.h"
#include "tests/codegen/one_call.h"
#include "tests/codegen/run_kernel.h"
#include "tests/support/values.h"

using namespace partita;
using namespace partita::codegen;
using namespace partita::testing;
using schedule::KernelCall;
using schedule::Plan;
using schedule::PlanBuffer;
using schedule::PlanView;

class TestExecutable : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void matmul_data() {
    QTest::addColumn<bool>("at");
    QTest::addColumn<bool>("bt");
    QTest::addColumn<bool>("fixed");
    for (bool at : {false, true})
      for (bool bt : {false, true})
        for (bool fixed : {false, true}) QTest::addRow("%d%d%s", at, bt, fixed ? " fixed" : "") << at << bt << fixed;
  }
  void matmul() {
    QFETCH(bool, at);
    QFETCH(bool, bt);
    QFETCH(bool, fixed);
    Tensor a = at ? transposed(random_tensor({40, 33}, 1)) : random_tensor({33, 40}, 1);
    Tensor b = bt ? transposed(random_tensor({21, 40}, 2)) : random_tensor({40, 21}, 2);
    OneCall mm("aten.mm.default", {a, b});
    CompileOptions options;
    if (fixed) options.fixed_inputs = {1};
    const bool own = fixed ? !at && !own_kernels().empty() : owns_changing_products();
    const char* const library = own ? "Partita" : "oneDNN";
    check(mm, library, options);
    if (fixed) options.fixed_inputs = {2};
    for (const Tensor& bias : {random_tensor({21}, 3), random_tensor({33, 21}, 3), random_tensor({33, 1}, 3)}) {
      OneCall addmm("aten.addmm.default", {bias, a, b, std::int64_t{1}, std::int64_t{1}});
      check(addmm, bias.sizes.back() == 1 ? "oneDNN" : library, options);
      OneCall scaled("aten.addmm.default", {bias, a, b, std::int64_t{1}, 0.5});
      check(scaled, "oneDNN", options);
    }
  }
  /// Our own kernel: several blocks of the depth and of rows, columns that fill no vector, results that do not depend
  /// on threads, nothing written between rows.
  void own_products_data() {
    QTest::addColumn<Sizes>("size");  // rows, depth, columns
    QTest::addColumn<bool>("turned");
    QTest::addColumn<bool>("fixed");
    for (const Sizes& size : {Sizes{1, 1, 1},
                              {2, 40, 150},
                              {23, 1030, 49},
                              {520, 33, 100},
                              {19, 2500, 97},
                              {300, 70, 7},
                              {70, 1100, 260},
                              {40, 1030, 49}})
      for (const bool turned : {false, true})
        for (const bool fixed : {false, true})
          QTest::addRow("%lldx%lldx%lld%s%s", static_cast<long long>(size[0]), static_cast<long long>(size[1]),
                        static_cast<long long>(size[2]), turned ? " turned" : "", fixed ? " fixed" : "")
              << size << turned << fixed;
  }
  void own_products() {
    QFETCH(Sizes, size);
    QFETCH(bool, turned);
    QFETCH(bool, fixed);
    if (own_kernels().empty()) QSKIP("our own products need AVX2");
    if (!fixed && !owns_changing_products()) QSKIP("with AVX-512 oneDNN multiplies matrices that change");
    const auto whole_numbers = [](const Sizes& sizes, std::uint32_t seed) {  // whose sums are exact in any order
      Tensor t = random_tensor(sizes, seed);
      for (std::int64_t i = 0; i < t.numel(); ++i) t.as<float>()[i] = std::round(4 * t.as<float>()[i]);
      return t;
    };
    const std::int64_t rows = size[0], depth = size[1], columns = size[2];
    const Tensor apart = whole_numbers({rows, depth + 3}, 1).view_as({rows, depth}, {depth + 3, 1}, 0);
    const Tensor a = turned && !fixed ? transposed(whole_numbers({depth, rows}, 1)) : apart;
    const Tensor b = turned ? transposed(whole_numbers({columns, depth}, 2)) : whole_numbers({depth, columns}, 2);
    for (const Tensor& added : {whole_numbers({columns}, 3), whole_numbers({rows, columns}, 4)}) {
      std::optional<std::string> first;
      for (const int threads : {1, 2, 4}) {
        OneCall c("aten.addmm.default", {added, a, b, std::int64_t{1}, std::int64_t{1}});
        c.plan.target.threads = threads;
        CompileOptions options;
        if (fixed) options.fixed_inputs = {2};
        check(c, fixed || rows >= 32 ? "Partita" : "oneDNN", options);
        auto e = compile_plan(*cpu_machine(), c.plan, {}, options);
        QVERIFY(e);
        auto got = (*e)->run(c.inputs);
        QVERIFY(got);
        const Tensor& result = *(*got)[0].get<Tensor>();
        const std::string bytes(reinterpret_cast<const char*>(result.data()),
                                static_cast<std::size_t>(rows * columns) * 4);
        QVERIFY(!first || *first == bytes);
        first = bytes;
      }
    }
  }
  /// Rows that lie pages apart are packed for each run.
  void wide() {
    OneCall c("aten.mm.default", {random_tensor({70, 9}, 1), random_tensor({9, 3072}, 2)});
    check(c, owns_changing_products() ? "Partita" : "oneDNN");
  }
  void batched() {
    const std::string own = owns_changing_products() ? own_kernels() : "oneDNN";
    Tensor a = random_tensor({5, 17, 22}, 1), b = random_tensor({5, 22, 19}, 2);
    OneCall plain("aten.bmm.default", {a, b});
    check(plain, own);
    OneCall turned("aten.bmm.default",
                   {transposed(random_tensor({5, 22, 17}, 1)), transposed(random_tensor({5, 19, 22}, 2))});
    check(turned, own);
    OneCall repeated("aten.bmm.default", {a, random_tensor({22, 19}, 4).view_as({5, 22, 19}, {0, 19, 1}, 0)});
    check(repeated, own);
    OneCall rows("aten.bmm.default", {random_tensor({3, 300, 40}, 1), random_tensor({3, 40, 70}, 2)});
    check(rows, own);
    OneCall vectors("aten.bmm.default", {random_tensor({4, 1, 80}, 1), random_tensor({4, 80, 90}, 2)});
    check(vectors, "oneDNN");
    // Attention heads side by side in a row: the rows of one head are 110 elements apart.
    OneCall heads("aten.bmm.default", {random_tensor({17, 5, 22}, 1).view_as({5, 17, 22}, {22, 110, 1}, 0), b});
    check(heads, own);
    OneCall strided("aten.mm.default",
                    {random_tensor({37, 64}, 1).view_as({37, 32}, {64, 2}, 0), random_tensor({32, 29}, 2)});
    check(strided, owns_changing_products() ? "Partita" : "oneDNN");
  }
  void small_products() {
    Tensor a = random_tensor({4, 5}, 1), b = random_tensor({5, 3}, 2);
    for (const Tensor& added : {random_tensor({3}, 3), random_tensor({4, 3}, 3), random_tensor({4, 1}, 3)}) {
      OneCall addmm("aten.addmm.default", {added, a, b, std::int64_t{1}, 0.5});
      check(addmm, "oneDNN");
    }
    OneCall batched("aten.bmm.default", {random_tensor({2, 4, 5}, 1), transposed(random_tensor({2, 3, 5}, 2))});
    check(batched, owns_changing_products() ? own_kernels() : "oneDNN");
  }
  /// Calls that oneDNN does not support are run by the record, and give the reason.
  void refused() {
    OneCall beta("aten.addmm.default",
                 {random_tensor({3}, 1), random_tensor({2, 4}, 2), random_tensor({4, 3}, 3), 0.5, std::int64_t{1}});
    check(beta, "interpreter");
    auto e = compile_plan(*cpu_machine(), beta.plan, {}, {});
    QCOMPARE((*e)->externs[0].why_not, std::string("beta is not 1"));
  }
  void convolution_data() {
    QTest::addColumn<int>("channels");
    QTest::addColumn<int>("filters");
    QTest::addColumn<int>("groups");
    QTest::addColumn<int>("stride");
    QTest::addColumn<int>("padding");
    QTest::addColumn<bool>("bias");
    QTest::newRow("3 channels") << 3 << 48 << 1 << 2 << 3 << false;
    QTest::newRow("32 channels") << 32 << 48 << 1 << 1 << 1 << true;
    QTest::newRow("groups") << 32 << 48 << 4 << 1 << 1 << true;
    QTest::newRow("8 channels") << 8 << 8 << 1 << 1 << 1 << false;
    QTest::newRow("20 channels") << 20 << 12 << 1 << 2 << 1 << true;
    QTest::newRow("depthwise") << 16 << 48 << 16 << 2 << 0 << false;
  }
  void convolution() {
    QFETCH(int, channels);
    QFETCH(int, filters);
    QFETCH(int, groups);
    QFETCH(int, stride);
    QFETCH(int, padding);
    QFETCH(bool, bias);
    Tensor x = random_tensor({2, channels, 14, 13}, 1), w = random_tensor({filters, channels / groups, 3, 3}, 2);
    Value b = bias ? Value(random_tensor({filters}, 3)) : Value();
    ValueList two = ints({stride, stride}), pad = ints({padding, padding}), one = ints({1, 1}), none = ints({0, 0});
    OneCall forward("aten.convolution.default", {x, w, b, two, pad, one, false, none, std::int64_t{groups}});
    check(forward, "oneDNN");
    Tensor grad = random_tensor(forward.expected.get<Tensor>()->sizes, 5);
    OneCall backward("aten.convolution_backward.default", {grad, x, w, ints({filters}), two, pad, one, false, none,
                                                           std::int64_t{groups}, ValueList{true, true, bias}});
    check(backward, "oneDNN");
  }
  /// Of each pixel by itself: a product, if channels are innermost and the images small.
  void convolution_of_pixels() {
    if (own_kernels().empty()) QSKIP("our own products need AVX2");
    const Tensor w = random_tensor({35, 20, 1, 1}, 2);
    const ValueList one = ints({1, 1}), none = ints({0, 0});
    const auto check_one = [&](const Tensor& x, const Value& bias, const ValueList& stride, const ValueList& padding,
                               const std::string& library) {
      OneCall c("aten.convolution.default", {x, w, bias, stride, padding, one, false, none, std::int64_t{1}});
      c.innermost_channels();
      CompileOptions options;
      options.fixed_inputs = {1};
      check(c, library, options);
    };
    const auto images = [](std::int64_t n, std::int64_t size, std::int64_t row) {
      return random_tensor({n, size, row, 20}, 1).view_as({n, 20, size, size}, {20 * row * size, 1, 20 * row, 20}, 0);
    };
    check_one(images(2, 5, 5), Value(), one, none, "Partita");
    check_one(images(2, 5, 5), random_tensor({35}, 3), one, none, "Partita");
    const std::string taps = owns_changing_products() ? own_kernels() + " taps" : "oneDNN";
    check_one(images(1, 5, 6), Value(), one, none, taps);
    check_one(images(2, 5, 5), Value(), ints({2, 2}), none, taps);
    check_one(images(2, 25, 26), random_tensor({35}, 3), ints({2, 2}), none, own_kernels() + " taps");
    check_one(images(2, 5, 5), Value(), one, one, taps);
    check_one(images(1, 120, 120), Value(), one, none, owns_changing_products() ? "Partita" : "oneDNN");
    check_one(random_tensor({2, 20, 5, 5}, 1), Value(), one, none, "oneDNN");
  }
  void attention_data() {
    QTest::addColumn<Sizes>("sizes");  // batch, heads, queries, keys, width
    QTest::addColumn<DType>("dtype");
    QTest::addColumn<bool>("causal");
    QTest::addColumn<QString>("mask");
    const DType f32 = DType::Float32;
    const auto row = [](const char* name, Sizes sizes, DType dtype, bool causal = false, const char* mask = "") {
      QTest::newRow(name) << std::move(sizes) << dtype << causal << QString(mask);
    };
    row("whole blocks", {2, 3, 64, 128, 16}, f32);
    row("parts of blocks", {1, 2, 77, 131, 20}, f32);
    row("many blocks", {1, 1, 300, 200, 8}, f32);
    row("causal", {1, 2, 130, 130, 16}, f32, true);
    row("causal, fewer keys", {1, 2, 90, 33, 16}, f32, true);
    row("causal, more keys", {1, 2, 5, 70, 16}, f32, true);
    row("one query", {2, 2, 1, 100, 64}, f32);
    row("three queries", {1, 2, 3, 150, 52}, f32, false, "full");
    row("three queries, causal", {1, 2, 3, 70, 16}, f32, true);
    row("two queries that attend to nothing", {2, 2, 2, 90, 16}, f32, false, "empty rows");
    row("four queries, NaN in a mask", {1, 3, 4, 140, 80}, f32, false, "NaN");
    row("two queries of double", {1, 2, 2, 70, 13}, DType::Float64, true, "full");
    row("one query of bfloat16", {1, 2, 1, 70, 96}, DType::BFloat16, false, "keys");
    row("one query, no keys", {1, 2, 1, 0, 4}, f32);
    row("one key", {2, 2, 9, 1, 3}, f32);
    row("width 1", {1, 1, 4, 5, 1}, f32);
    row("double", {1, 2, 37, 70, 12}, DType::Float64, true, "full");
    row("bfloat16", {1, 2, 37, 70, 12}, DType::BFloat16, false, "full");
    row("float16", {1, 2, 37, 70, 12}, DType::Float16, true);
    row("mask", {2, 2, 40, 70, 16}, f32, false, "full");
    row("causal and mask", {2, 2, 40, 70, 16}, f32, true, "full");
    row("mask of keys", {2, 2, 40, 70, 16}, f32, false, "keys");
    row("mask of a matrix", {2, 2, 40, 70, 16}, f32, false, "matrix");
    row("boolean mask", {2, 2, 40, 70, 16}, f32, false, "boolean");
    row("rows that attend to nothing", {1, 2, 70, 90, 16}, f32, false, "empty rows");
    row("NaN in a mask", {1, 2, 40, 70, 16}, f32, false, "NaN");
    row("no queries", {1, 2, 0, 7, 4}, f32);
    row("no keys", {1, 2, 7, 0, 4}, f32);
    row("no batch", {0, 2, 7, 3, 4}, f32);
  }
  /// Forward and backward beside the operators' evaluations, which compute in double. Operands lie as [batch, row,
  /// head, column], as models have them, and key and value of the second half of heads repeat the first half's.
  void attention() {
    QFETCH(Sizes, sizes);
    QFETCH(DType, dtype);
    QFETCH(bool, causal);
    QFETCH(QString, mask);
    const std::int64_t batch = sizes[0], heads = sizes[1], queries = sizes[2], keys = sizes[3], width = sizes[4];
    const auto operand = [&](std::int64_t rows, std::uint32_t seed) {
      Tensor t = *random_tensor({batch, rows, heads, width}, seed).to(dtype);
      return t.view_as({batch, heads, rows, width}, {rows * heads * width, width, heads * width, 1}, 0);
    };
    Tensor q = operand(queries, 1), k = operand(keys, 2), v = operand(keys, 3), grad = operand(queries, 4);
    v.strides[1] = 0;  // every head has the first one's values
    Value given;
    if (!mask.isEmpty()) {
      Sizes of_mask = {batch, heads, queries, keys};
      if (mask == "keys") of_mask = {batch, 1, 1, keys};
      if (mask == "matrix") of_mask = {queries, keys};
      Tensor m = random_tensor(of_mask, 5);
      for (std::int64_t i = 0; i < m.numel(); ++i) {
        float& x = m.as<float>()[i];
        const bool empty = mask == "empty rows" && i / keys % 3 == 0;
        if (empty || i % 7 == 3) x = -std::numeric_limits<float>::infinity();
        if (mask == "NaN" && i % 501 == 5) x = std::numeric_limits<float>::quiet_NaN();
      }
      given = *m.to(mask == "boolean" ? DType::Bool : dtype);
    }
    // The evaluation rounds once to the dtype, and so does the kernel what it has computed in float.
    const double tolerance = dtype == DType::Float64    ? 1e-12
                             : dtype == DType::Float32  ? 1e-5
                             : dtype == DType::BFloat16 ? 0x1p-7
                                                        : 0x1p-10;
    const auto beside = [&](OneCall& c) {
      auto e = compile_plan(*cpu_machine(), c.plan, {});
      QVERIFY2(e, e ? "" : e.error().line().c_str());
      QVERIFY2((*e)->externs[0].library.starts_with("Partita"), (*e)->externs[0].why_not.c_str());
      const auto got = (*e)->run(c.inputs);
      QVERIFY2(got, got ? "" : got.error().line().c_str());
      const ValueList& want = *c.expected.get<ValueList>();
      QCOMPARE(got->size(), want.size());
      for (std::size_t i = 0; i < want.size(); ++i) {
        const Tensor &a = *(*got)[i].get<Tensor>(), &b = *want[i].get<Tensor>();
        QCOMPARE(a.sizes, b.sizes);
        for (std::int64_t j = 0; j < b.numel(); ++j) {
          const double x = a.item_as_double(j), y = b.item_as_double(j);
          const bool same =
              x == y || (std::isnan(x) && std::isnan(y)) || std::fabs(x - y) <= tolerance * (1 + std::fabs(y));
          QVERIFY2(same, fmt::format("result {} [{}]: {} beside {}", i, j, x, y).c_str());
        }
      }
    };
    OneCall forward("aten._scaled_dot_product_flash_attention_for_cpu.default", {q, k, v, 0.0, causal, given, 0.3});
    beside(forward);
    const ValueList results = *forward.expected.get<ValueList>();
    OneCall backward("aten._scaled_dot_product_flash_attention_for_cpu_backward.default",
                     {grad, q, k, v, results[0], results[1], 0.0, causal, given, Value()});
    beside(backward);
  }
  /// Rows, columns, and parts of what is summed over, beside evaluation; groups may be empty, and leave rows over.
  void groups_of_products() {
    if (own_kernels().empty()) QSKIP("no kernels of our own for this processor");
    Tensor ends = *f32({4}, {3, 3, 40, 52}).to(DType::Int32);
    const auto turned = [](const Tensor& t) {
      const std::size_t d = t.sizes.size();
      Sizes sizes = t.sizes, strides = t.strides;
      std::swap(sizes[d - 1], sizes[d - 2]);
      std::swap(strides[d - 1], strides[d - 2]);
      return t.view_as(sizes, strides, 0);
    };
    const Tensor rows = random_tensor({60, 33}, 1), weights = random_tensor({4, 33, 50}, 2);
    const char* op = "aten._grouped_mm.default";
    for (OneCall c : {OneCall("transformers.grouped_mm_fallback.default", {rows, weights, ends}),
                      OneCall(op, {rows, turned(random_tensor({4, 50, 33}, 3)), ends}),
                      OneCall(op, {turned(rows), random_tensor({60, 21}, 4), ends}),
                      OneCall(op, {random_tensor({4, 17, 33}, 5), turned(rows), ends})})
      check(c, own_kernels());
    // By the definition.
    const OneCall c(op, {rows, weights, ends});
    const Tensor& found = *c.expected.get<Tensor>();
    for (std::int64_t r = 0; r < 60; ++r) {
      const std::int64_t group = r < 3 ? 0 : r < 40 ? 2 : 3;
      double sum = 0;
      for (std::int64_t k = 0; k < 33 && r < 52; ++k)
        sum += static_cast<double>(rows.as<float>()[r * 33 + k]) * weights.as<float>()[(group * 33 + k) * 50 + 7];
      QVERIFY(std::fabs(found.item_as_double(r * 50 + 7) - sum) < 1e-5);
    }
  }
  void groups_that_go_back_are_refused() {
    OneCall c("aten._grouped_mm.default",
              {random_tensor({6, 4}, 1), random_tensor({2, 4, 5}, 2), *f32({2}, {2, 6}).to(DType::Int32)});
    const auto e = compile_plan(*cpu_machine(), c.plan, {});
    QVERIFY(e);
    c.inputs[2] = *f32({2}, {4, 2}).to(DType::Int32);
    const auto run = (*e)->run(c.inputs);
    QVERIFY(!run && run.error().line().find("offs must not decrease") != std::string::npos);
  }
  void attention_that_is_evaluated() {
    Tensor x = random_tensor({1, 2, 4, 8}, 1);
    OneCall c("aten._scaled_dot_product_flash_attention_for_cpu.default", {x, x, x, 0.0, false, Value(), Value()});
    c.call().args[3] = Arg(0.5);
    auto e = compile_plan(*cpu_machine(), c.plan, {});
    QVERIFY(e);
    QCOMPARE((*e)->externs[0].library, std::string("interpreter"));
    QCOMPARE((*e)->externs[0].why_not, std::string("dropout"));
  }
  /// Two results, the second of another dtype.
  void interpreted() {
    OneCall pool("aten.max_pool2d_with_indices.default", {random_tensor({2, 3, 8, 8}, 1), ints({2, 2}), ints({2, 2})});
    check(pool, "interpreter");
  }

  /// relu(mm) + residual, as an epilogue.
  void epilogue() {
    Tensor a = random_tensor({33, 40}, 1), b = random_tensor({40, 21}, 2), r = random_tensor({33, 21}, 3);
    OneCall c("aten.mm.default", {a, b});
    auto body = std::make_shared<loops::ScalarBuilder>();
    loops::Scalar product = body->input(0, DType::Float32), added = body->input(1, DType::Float32);
    c.call().epilogue_value = body->Add(body->Max(product, body->constant(DType::Float32, 0)), added);
    c.call().epilogue = body;
    int buffer = static_cast<int>(c.plan.buffers.size());
    c.plan.buffers.push_back({PlanBuffer::Kind::Input, 2, "", DType::Float32, r.numel(), 0});
    c.plan.inputs.push_back(meta(r));
    c.inputs.push_back(r);
    c.call().epilogue_inputs = {view(buffer, r)};
    Tensor want = *c.expected.get<Tensor>()->clone();
    for (std::int64_t i = 0; i < want.numel(); ++i)
      want.as<float>()[i] = std::max(want.as<float>()[i], 0.f) + r.as<float>()[i];
    c.expected = want;
    check(c, owns_changing_products() ? "Partita" : "oneDNN");
  }

  /// Nothing runs on other devices yet: everything that would have to must refuse, and must not read the memory.
  void other_devices() {
    const Device cuda{DeviceType::Cuda, 0};
    const auto named = [](const auto& result, const char* code) {
      QVERIFY(!result);
      QCOMPARE(result.error().code, code);
      QVERIFY2(result.error().line().find("cuda:0") != std::string::npos, result.error().line().c_str());
    };
    named(Storage::allocate(16, false, cuda), "tensor.device");
    Tensor there = random_tensor({3, 3}, 1);
    there.storage = Storage::borrow(nullptr, 36, nullptr, cuda);
    QCOMPARE(there.device(), cuda);
    named(there.to(DType::Float64), "tensor.device");
    named(evaluate(Op::torch("aten.neg.default"), {there}, {}), "tensor.device");
    OneCall mm("aten.mm.default", {random_tensor({3, 3}, 1), random_tensor({3, 3}, 2)});
    auto e = compile_plan(*cpu_machine(), mm.plan, {});
    QVERIFY(e);
    named((*e)->run({mm.inputs[0], there}), "tensor.device");
    OneCall call = mm, memory = mm;
    call.call().device = cuda;
    named(compile_plan(*cpu_machine(), call.plan, {}), "codegen.device");
    QVERIFY(print(call.plan).find(" on cuda:0  # ") != std::string::npos);
    memory.plan.buffers[1].device = cuda;
    named(compile_plan(*cpu_machine(), memory.plan, {}), "codegen.device");
  }

  /// Constants, temporaries, views of inputs as outputs, literals, stored code.
  void whole_plan() {
    loops::Kernel k;
    k.name = "scale";
    SymExpr n = 100, i = SymExpr::symbol("i0");
    k.buffers = {{"x", DType::Float32, n, loops::Buffer::Role::Input},
                 {"w", DType::Float32, n, loops::Buffer::Role::Input},
                 {"y", DType::Float32, n, loops::Buffer::Role::Output}};
    auto& s = k.scalars;
    k.body.push_back(
        loops::Loop{"i0",
                    n,
                    loops::Mapping::Thread,
                    true,
                    {},
                    {loops::Store{2, i, {}, s.Mul(s.load(0, i, DType::Float32), s.load(1, i, DType::Float32))}}});
    Plan plan;
    plan.target = host_target();
    plan.buffers = {{PlanBuffer::Kind::Input, 0, "", DType::Float32, n, 0},
                    {PlanBuffer::Kind::Constant, 0, "w", DType::Float32, n, 0},
                    {PlanBuffer::Kind::Temporary, 0, "", DType::Float32, n, 64},
                    {PlanBuffer::Kind::Output, 0, "", DType::Float32, n, 0}};
    plan.arena_bytes = 64 + 400;
    plan.kernels = {k};
    plan.steps = {KernelCall{0, {0, 1, 2}}, KernelCall{0, {2, 1, 3}}};
    Tensor x = random_tensor({100}, 1), w = random_tensor({100}, 2);
    plan.inputs = {meta(x)};
    PlanView half{0, DType::Float32, {10}, {2}, 5};
    plan.outputs = {view(3, x), half, Arg(std::int64_t{7}), SymExpr(9)};
    std::map<std::string, std::string> store;
    CompileOptions options{.load_code = [&](const std::string& key) -> std::optional<std::string> {
                             auto it = store.find(key);
                             return it == store.end() ? std::nullopt : std::optional(it->second);
                           },
                           .store_code = [&](const std::string& key, const std::string& code) { store[key] = code; }};
    for (bool stored : {false, true}) {
      auto e = compile_plan(*cpu_machine(), plan, {{"w", w}}, options);
      QVERIFY(bool(e));
      QCOMPARE((*e)->times.from_store, stored);
      QCOMPARE((*e)->times.compile_ms == 0, stored);
      QCOMPARE(store.size(), std::size_t{1});
      auto out = (*e)->run({x});
      QVERIFY(bool(out));
      auto& y = *(*out)[0].get<Tensor>();
      for (std::int64_t j = 0; j < 100; ++j)
        QCOMPARE(y.as<float>()[j], x.as<float>()[j] * w.as<float>()[j] * w.as<float>()[j]);
      auto& alias = *(*out)[1].get<Tensor>();
      QCOMPARE(alias.storage.get(), x.storage.get());
      QCOMPARE(alias.item_as_double(2), double(x.as<float>()[9]));
      QCOMPARE(*(*out)[2].get<std::int64_t>(), std::int64_t{7});
      QCOMPARE(*(*out)[3].get<std::int64_t>(), std::int64_t{9});
      // Another run must not overwrite this result.
      float first = y.as<float>()[0];
      QVERIFY(bool((*e)->run({w})));
      QCOMPARE(y.as<float>()[0], first);
      // Strides other than the plan's are copied to match.
      Tensor wide = random_tensor({200}, 3);
      auto strided = (*e)->run({wide.view_as({100}, {2}, 0)});
      QCOMPARE((*strided)[0].get<Tensor>()->as<float>()[7], wide.as<float>()[14] * w.as<float>()[7] * w.as<float>()[7]);
    }
    // A kernel without text, as of an empty result, counts.
    const auto keyed = [&](const std::vector<loops::Kernel>& kernels) { return code_key(kernels, {}, plan.target); };
    QVERIFY(keyed({k}) != keyed({k, {}}) && keyed({k, {}}) != keyed({{}, k}) && keyed({k}) == keyed({k}));
    // An entry that does not fit is made again.
    const std::string good = store.begin()->second;
    for (const std::string& bad : {std::string("nonsense"), pack({}), pack(std::vector<std::string>{"no object"})}) {
      store.begin()->second = bad;
      auto e = compile_plan(*cpu_machine(), plan, {{"w", w}}, options);
      QVERIFY2(e, e ? "" : e.error().line().c_str());
      QVERIFY(!(*e)->times.from_store);
      QCOMPARE(store.begin()->second, good);
      auto out = (*e)->run({x});
      QVERIFY(bool(out));
      QCOMPARE((*out)[0].get<Tensor>()->as<float>()[7], x.as<float>()[7] * w.as<float>()[7] * w.as<float>()[7]);
    }
  }

  void weights_are_packed_once() {
    using dnnl::memory;
    std::vector<float> values(16);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
    const memory::desc plain({4, 4}, memory::data_type::f32, memory::dims{4, 1});
    const memory::desc turned({4, 4}, memory::data_type::f32, memory::dims{1, 4});
    memory given(plain, cpu_engine(), values.data());
    dnnl::stream stream(cpu_engine());
    PackedWeights weights;
    const auto reorder = [&](dnnl::memory& made) { dnnl::reorder(given, made).execute(stream, given, made); };
    auto first = weights.packed(given, turned, reorder), second = weights.packed(given, turned, reorder);
    QCOMPARE(first.get(), second.get());
    const auto at = [](const memory& m, int i) { return static_cast<const float*>(m.get_data_handle())[i]; };
    QCOMPARE(at(*first, 1), 4.0F);
    const auto other = weights.packed(given, plain, reorder);
    QVERIFY(other != first);
    QCOMPARE(at(*other, 1), 1.0F);
    // Nobody uses it any more, so that other values may be there.
    first.reset();
    second.reset();
    values[4] = 7;
    QCOMPARE(at(*weights.packed(given, turned, reorder), 1), 7.0F);
  }

  void wrong_inputs() {
    OneCall c("aten.mm.default", {random_tensor({3, 4}, 1), random_tensor({4, 5}, 2)});
    auto e = compile_plan(*cpu_machine(), c.plan, {}, {});
    auto message = [&](std::vector<Value> in) { return QString::fromStdString((*e)->run(in).error().message); };
    QCOMPARE(message({c.inputs[0]}), "1 inputs are given, but the graph takes 2");
    QCOMPARE(message({c.inputs[0], std::int64_t{1}}), "input 1 is not a tensor");
    QCOMPARE(message({c.inputs[0], random_tensor({4, 6}, 1)}),
             "input 1 has sizes [4, 6], but the graph was compiled for [4, 5]; mark what changes "
             "dynamic (torch._dynamo.mark_dynamic) and capture again");
    QCOMPARE(message({c.inputs[0], *random_tensor({4, 5}, 1).to(DType::Float64)}),
             "input 1 is float64, but the graph was compiled for float32");
  }
};

QTEST_GUILESS_MAIN(TestExecutable)
#include "test_executable.moc"

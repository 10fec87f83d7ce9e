// Halves on processors that multiply only floats.
#include <fmt/format.h>

#include "codegen/cpu/extern/in_floats.h"
#include "codegen/cpu/extern/product.h"
#include "codegen/cpu/extern/product_kernel.h"
#include "core/fake/propagate.h"
#include "core/interp/interpreter.h"
#include "core/schedule/make_plan.h"
#include "tests/codegen/one_call.h"
#include "tests/support/fx.h"
#include "tests/support/values.h"

using namespace partita;
using namespace partita::codegen;
using namespace partita::testing;

namespace {

/// Whole numbers, whose sums are exact in any order.
Tensor whole_numbers(const Sizes& sizes, DType dtype, std::uint32_t seed) {
  Tensor t = random_tensor(sizes, seed);
  for (std::int64_t i = 0; i < t.numel(); ++i) t.as<float>()[i] = std::round(3 * t.as<float>()[i]);
  return *t.to(dtype);
}

std::vector<const ProductKernel*> kernels() {
  std::vector<const ProductKernel*> found;
#ifdef __x86_64__
  if (__builtin_cpu_supports("x86-64-v3")) found.push_back(&product_avx2);
  if (__builtin_cpu_supports("x86-64-v4")) found.push_back(&product_avx512);
#endif
  return found;
}

}  // namespace

class TestHalves : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void all_halves_are_widened() {
    for (const ProductKernel* k : kernels())
      for (const NarrowType type : {NarrowType::BFloat16, NarrowType::Float16}) {
        std::vector<std::uint16_t> bits(65536 + 3);
        for (std::size_t i = 0; i < bits.size(); ++i) bits[i] = static_cast<std::uint16_t>(i);
        std::vector<float> floats(bits.size());
        k->narrow->widen(type, bits.data(), std::ssize(bits), floats.data());
        for (std::size_t i = 0; i < bits.size(); ++i) {
          const float want = type == NarrowType::Float16 ? to_float(Half{bits[i]}) : to_float(BFloat16{bits[i]});
          QVERIFY2(floats[i] == want || (std::isnan(want) && std::isnan(floats[i])), std::to_string(i).c_str());
        }
      }
  }
  void floats_are_rounded_to_the_nearest() {
    std::vector<float> floats = {0.0F,       -0.0F,  INFINITY,    -INFINITY,   NAN,      65504,
                                 65519.996F, 65520,  1e-8F,       5.96e-8F,    2.98e-8F, 3e-8F,
                                 3.4e38F,    1e-40F, 1.00390625F, 1.01171875F, 2049.0F,  2051.0F};
    const Tensor random = random_tensor({3000}, 1);
    for (std::int64_t i = 0; i < 3000; ++i)
      floats.push_back(std::ldexp(random.as<float>()[i], static_cast<int>(i % 60) - 30));
    for (const ProductKernel* k : kernels())
      for (const NarrowType type : {NarrowType::BFloat16, NarrowType::Float16}) {
        std::vector<std::uint16_t> bits(floats.size());
        k->narrow->narrow(type, floats.data(), std::ssize(floats), bits.data());
        for (std::size_t i = 0; i < floats.size(); ++i) {
          if (std::isnan(floats[i])) {
            QVERIFY(std::isnan(type == NarrowType::Float16 ? to_float(Half{bits[i]}) : to_float(BFloat16{bits[i]})));
            continue;
          }
          QCOMPARE(bits[i], type == NarrowType::Float16 ? to_half(floats[i]).bits : to_bfloat16(floats[i]).bits);
        }
      }
  }
  void products_with_narrow_matrices_data() {
    QTest::addColumn<int>("type");
    QTest::addColumn<bool>("columns_apart");
    for (const int type : {0, 1, 2})
      for (const bool apart : {false, true})
        QTest::addRow("%d%s", type, apart ? ", columns apart" : "") << type << apart;
  }
  void products_with_narrow_matrices() {
    QFETCH(int, type);
    QFETCH(bool, columns_apart);
    constexpr DType dtypes[] = {DType::BFloat16, DType::Float16, DType::Int8};
    const auto narrow = static_cast<NarrowType>(type);
    for (const ProductKernel* k : kernels())
      for (const Sizes& size : {Sizes{1, 1, 1}, {2, 40, 150}, {23, 1030, 49}, {7, 2500, 97}}) {
        const std::int64_t rows = size[0], depth = size[1], columns = size[2];
        const Tensor left = whole_numbers({rows, depth}, DType::Float32, 1);
        const Tensor right = whole_numbers({depth, columns}, dtypes[type], 2);
        Tensor plain = right;
        if (columns_apart) {
          plain = *Tensor::empty(right.dtype, {columns, depth});
          transposed(plain).copy_from(right);
        }
        const std::int64_t row = columns_apart ? 1 : columns, column = columns_apart ? depth : 1;
        std::vector<std::byte> packed(static_cast<std::size_t>(k->packed_elements(depth, columns)) *
                                      itemsize(right.dtype));
        const std::int64_t panels = (columns + k->panel_columns - 1) / k->panel_columns;
        k->narrow->pack(narrow, plain.storage->data(), row, column, depth, columns, 0, panels, packed.data());
        std::vector<float> out(static_cast<std::size_t>(rows * columns));
        ProductProblem p{columns, depth, left.as<float>(), packed.data()};
        p.out = out.data();
        p.left_row = depth;
        p.out_row = columns;
        k->narrow->run(narrow, p, 0, rows, 0, panels);
        for (std::int64_t r = 0; r < rows; ++r)
          for (std::int64_t c = 0; c < columns; ++c) {
            double sum = 0;
            for (std::int64_t t = 0; t < depth; ++t)
              sum += left.item_as_double(r * depth + t) * right.item_as_double(t * columns + c);
            QCOMPARE(static_cast<double>(out[static_cast<std::size_t>(r * columns + c)]), sum);
          }
      }
  }
  /// A product reads the matrix that is cast for it, whether that changes or not.
  void casts_of_matrices_data() {
    QTest::addColumn<QString>("left");
    QTest::addColumn<QString>("right");
    for (const auto& [left, right] :
         {std::pair{"f32", "i8"}, {"f32", "bf16"}, {"f32", "f16"}, {"bf16", "i8"}, {"f16", "i8"}})
      for (const char* rows : {"1", "40"})
        QTest::addRow("%s and %s, %s rows", left, right, rows) << QString("%1[%2, 70]").arg(left, rows) << right;
  }
  void casts_of_matrices() {
    QFETCH(QString, left);
    QFETCH(QString, right);
    if (kernels().empty()) QSKIP("our own products need AVX2");
    const std::string other = right == "i8" ? left.left(left.indexOf('[')).toStdString() : "f32";
    const std::string dtype(torch_name(*dtype_from_short(other)));
    const auto graph = fx("x: <" + left.toStdString() + ">, w: <" + right.toStdString() + "[49, 70]>",
                          "c = torch.ops.prims.convert_element_type.default(w, torch." + dtype +
                              ")\nt = $t(c)\nm = $mm(x, t)\nreturn (m,)");
    QVERIFY(propagate(*graph));
    std::vector<Value> inputs;
    for (const Node* n : graph->placeholders()) {
      const TensorMeta& t = *n->meta.tensor();
      inputs.emplace_back(whole_numbers(*concrete(t.sizes), t.dtype, 1));
    }
    const auto expected = interpret(*graph, inputs);
    QVERIFY(expected);
    const auto plan = schedule::make_plan(*graph, {{}, host_target()});
    QVERIFY(plan);
    const bool is_cast = multiplies(DType::BFloat16) && dtype == "bfloat16" && !left.contains("[1,");
    QCOMPARE(plan->steps.size(), is_cast ? 2U : 1U);
    for (const std::set<int>& fixed : {std::set<int>{}, {1}}) {
      const auto e = compile_plan(*cpu_machine(), *plan, {}, {.fixed_inputs = fixed});
      QVERIFY(e);
      const std::string& library = (*e)->externs[0].library;
      QVERIFY2(library != "interpreter" && (is_cast || fixed.empty() || library.find(" of ") != std::string::npos),
               library.c_str());
      const auto found = (*e)->run(inputs);
      QVERIFY(found);
      QCOMPARE(worst(*(*found)[0].get<Tensor>(), *(*expected)[0].get<Tensor>()), 0.0);
    }
  }
  /// Other weights than in the run before, in memory of their own.
  void fixed_halves_at_another_address() {
    if (kernels().empty()) QSKIP("our own products need AVX2");
    const auto tensor = [](const Sizes& sizes, std::uint32_t seed) {
      return whole_numbers(sizes, DType::Float16, seed);
    };
    const ValueList one{std::int64_t{1}, std::int64_t{1}}, none{std::int64_t{0}, std::int64_t{0}};
    const Tensor images = tensor({2, 20, 14, 13}, 1);
    const auto product = [&](std::uint32_t seed) {
      return OneCall("aten.mm.default", {tensor({3, 50}, 1), tensor({50, 49}, seed)});
    };
    const auto convolution = [&](std::uint32_t seed) {
      return OneCall("aten.convolution.default",
                     {images, tensor({12, 20, 3, 3}, seed), Value(), one, one, one, false, none, std::int64_t{1}});
    };
    for (const std::vector<OneCall>& calls : {std::vector{product(2), product(3), product(4)},
                                              std::vector{convolution(2), convolution(3), convolution(4)}}) {
      const auto e = compile_plan(*cpu_machine(), calls[0].plan, {}, {.fixed_inputs = {1}});
      QVERIFY(e);
      for (const OneCall& c : calls) {
        const auto found = (*e)->run(c.inputs);
        QVERIFY(found);
        QCOMPARE(worst(*(*found)[0].get<Tensor>(), *c.expected.get<Tensor>()), 0.0);
      }
    }
  }
  /// As on processors without VNNI: several parts of the depth, the largest products, sums that wrap around.
  void products_of_integers() {
    if (kernels().empty()) QSKIP("our own products need AVX2");
    const auto filled = [](const Sizes& sizes, DType dtype, double value) {
      Tensor t = random_tensor(sizes, 1);
      std::fill_n(t.as<float>(), t.numel(), static_cast<float>(value));
      return *t.to(dtype);
    };
    const auto random = [](const Sizes& sizes, DType dtype, std::uint32_t seed) {
      Tensor t = random_tensor(sizes, seed);
      for (std::int64_t i = 0; i < t.numel(); ++i)
        t.as<float>()[i] = std::round(127 * t.as<float>()[i]) + (dtype == DType::UInt8 ? 128 : 0);
      return *t.to(dtype);
    };
    for (const auto& [left, right] :
         {std::pair{random({5, 70}, DType::Int8, 1), random({70, 23}, DType::Int8, 2)},
          {random({300, 1100}, DType::UInt8, 1), transposed(random({100, 1100}, DType::Int8, 2))},
          {transposed(random({513, 17}, DType::Int8, 1)), random({513, 49}, DType::Int8, 2)},
          {filled({3, 140000}, DType::UInt8, 255), filled({140000, 2}, DType::Int8, -128)}}) {
      OneCall c("aten._int_mm.default", {left, right});
      const auto context = ExternContext{
          .call = c.call(), .routine = LibraryRoutine::Matmul, .threads = 2, .fixed = [](int) { return true; }};
      const Prepared own =
          prepare_int_product(context, *context.view(0), *context.view(1), *concrete_view(c.call().results[0]));
      QVERIFY(own.step);
      const Tensor& expected = *c.expected.get<Tensor>();
      const Tensor found = *Tensor::empty(DType::Int32, expected.sizes);
      std::byte* buffers[] = {left.storage->data(), right.storage->data(), found.storage->data()};
      for (int round = 0; round < 2; ++round) {
        QVERIFY(own.step->run(buffers));
        QCOMPARE(worst(found, expected), 0.0);
      }
    }
  }
  void calls_data() {
    QTest::addColumn<DType>("dtype");
    QTest::newRow("float16") << DType::Float16;
    QTest::newRow("bfloat16") << DType::BFloat16;
  }
  void calls() {
    QFETCH(DType, dtype);
    if (kernels().empty()) QSKIP("our own products need AVX2");
    const bool in_floats = !multiplies(dtype);
    const auto check_one = [&](OneCall c, const std::set<int>& fixed, const std::string& kernel = {}) {
      CompileOptions options;
      options.fixed_inputs = fixed;
      check(c, in_floats ? kernel : "", options);
      const auto e = compile_plan(*cpu_machine(), c.plan, {}, options);
      QVERIFY(e);
      const std::string& library = (*e)->externs[0].library;
      QVERIFY2(!in_floats || library.ends_with(", in floats"), library.c_str());
      QCOMPARE((*e)->externs[0].why_not, std::string());
    };
    const auto tensor = [&](const Sizes& sizes, std::uint32_t seed) { return whole_numbers(sizes, dtype, seed); };
    const std::string narrow = fmt::format("{} of {}", own_kernels(), torch_name(dtype));
    for (const std::int64_t rows : {1, 5, 70}) {
      // Rows apart, and columns of a matrix that lies by columns.
      const Tensor a = tensor({rows, 60}, 1).view_as({rows, 50}, {60, 1}, 0), b = transposed(tensor({49, 50}, 2));
      check_one(OneCall("aten.mm.default", {a, b}), {}, {});
      check_one(OneCall("aten.mm.default", {a, b}), {1}, narrow);
      for (const Sizes& added : {Sizes{49}, {rows, 49}})
        check_one(OneCall("aten.addmm.default", {tensor(added, 3), a, b, std::int64_t{1}, std::int64_t{1}}), {0, 2},
                  narrow);
    }
    const Tensor repeated = tensor({1, 22, 19}, 4).view_as({5, 22, 19}, {0, 19, 1}, 0);
    check_one(OneCall("aten.bmm.default", {transposed(tensor({5, 22, 40}, 1)), repeated}), {});
    check_one(OneCall("aten._grouped_mm.default",
                      {tensor({60, 32}, 1), tensor({3, 32, 48}, 2), *f32({3}, {3, 40, 60}).to(DType::Int32)}),
              {1});
    const Tensor images = tensor({2, 20, 14, 13}, 1), weight = tensor({12, 20, 3, 3}, 2);
    const ValueList one{std::int64_t{1}, std::int64_t{1}}, none{std::int64_t{0}, std::int64_t{0}};
    for (const Tensor& x : {images, channels_last(images)}) {
      const OneCall forward("aten.convolution.default",
                            {x, weight, tensor({12}, 3), one, one, one, false, none, std::int64_t{1}});
      check_one(forward, {1, 2});
      const Tensor grad = tensor(forward.expected.get<Tensor>()->sizes, 5);
      check_one(
          OneCall("aten.convolution_backward.default", {grad, x, weight, ValueList{std::int64_t{12}}, one, one, one,
                                                        false, none, std::int64_t{1}, ValueList{true, true, true}}),
          {});
    }
  }
};

QTEST_GUILESS_MAIN(TestHalves)
#include "test_halves.moc"

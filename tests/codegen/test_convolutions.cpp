// Convolutions by other ways than oneDNN's own, beside their evaluation: Winograd's algorithm, windows side by side,
// a product for each tap, depthwise ones, and those of few channels.
#include <limits>

#include <fmt/format.h>

#include "codegen/cpu/cpu_machine.h"
#include "codegen/program/executable.h"
#include "tests/codegen/one_call.h"

using namespace partita;
using namespace partita::codegen;
using namespace partita::testing;

/// What computes results of this width, and gradients of weights, where no other kernel of our own does.
std::string by_taps(std::int64_t width = 16) {
  return owns_changing_products() && width >= 16 ? own_kernels() + " taps" : "oneDNN";
}

class TestConvolutions : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void by_winograd_data() {
    QTest::addColumn<Sizes>("sizes");  // images, channels, filters, height, width, rows and columns of zeros
    QTest::addColumn<bool>("bias");
    QTest::newRow("even") << Sizes{1, 16, 16, 20, 24, 1, 1} << false;
    QTest::newRow("odd") << Sizes{1, 32, 48, 21, 23, 1, 1} << true;
    QTest::newRow("no zeros around") << Sizes{2, 48, 16, 17, 18, 0, 0} << true;
    QTest::newRow("more zeros above than beside") << Sizes{3, 16, 64, 12, 13, 2, 0} << false;
    QTest::newRow("one row of results") << Sizes{1, 16, 16, 3, 500, 0, 1} << true;
    QTest::newRow("many channels") << Sizes{1, 208, 112, 22, 20, 1, 1} << false;
  }
  void by_winograd() {
    if (own_kernels().empty()) QSKIP("Winograd's algorithm needs AVX2");
    QFETCH(Sizes, sizes);
    QFETCH(bool, bias);
    const std::int64_t filters = sizes[2];
    const Tensor x = channels_last(random_tensor({sizes[0], sizes[1], sizes[3], sizes[4]}, 1));
    const Tensor w = random_tensor({filters, sizes[1], 3, 3}, 2);
    const Value b = bias ? Value(random_tensor({filters}, 3)) : Value();
    const ValueList one = ints({1, 1}), none = ints({0, 0}), padding = ints({sizes[5], sizes[6]});
    for (bool fixed : {false, true}) {
      OneCall forward("aten.convolution.default", {x, w, b, one, padding, one, false, none, std::int64_t{1}});
      forward.innermost_channels();
      CompileOptions options;
      if (fixed) options.fixed_inputs = {1};
      const Tensor& y = *forward.expected.get<Tensor>();
      check(forward, !fixed && y.numel() < 400 * filters ? by_taps(y.sizes[3]) : own_kernels() + " winograd", options);
    }
    OneCall forward("aten.convolution.default", {x, w, b, one, padding, one, false, none, std::int64_t{1}});
    const Tensor grad = channels_last(random_tensor(forward.expected.get<Tensor>()->sizes, 5));
    OneCall backward("aten.convolution_backward.default", {grad, x, w, ints({filters}), one, padding, one, false, none,
                                                           std::int64_t{1}, ValueList{true, true, bias}});
    backward.innermost_channels();
    check(backward, own_kernels() + " winograd, " + own_kernels() + " taps");
  }
  /// Infinities and NaNs are in the results that depend on them, and are what they are when computed directly.
  void infinities_by_winograd() {
    if (own_kernels().empty()) QSKIP("Winograd's algorithm needs AVX2");
    Tensor x = channels_last(random_tensor({2, 16, 20, 20}, 1)), w = random_tensor({16, 16, 3, 3}, 2);
    x.as<float>()[5 * x.strides[2] + 7 * x.strides[3] + 3] = INFINITY;
    x.as<float>()[x.strides[0] + 2 * x.strides[2] + 9 * x.strides[3]] = std::numeric_limits<float>::quiet_NaN();
    const ValueList one = ints({1, 1}), none = ints({0, 0});
    const auto same = [&](OneCall& c, const std::string& library) {
      auto e = compile_plan(*cpu_machine(), c.plan, {}, {});
      QVERIFY(e);
      QVERIFY((*e)->externs[0].library.starts_with(library));
      auto got = (*e)->run(c.inputs);
      QVERIFY(got);
      const auto* list = c.expected.get<ValueList>();
      for (std::size_t i = 0; i < got->size(); ++i) {
        const Tensor found = *(*got)[i].get<Tensor>(), want = *(list ? (*list)[i] : c.expected).get<Tensor>();
        std::int64_t infinite = 0;
        for (std::int64_t k = 0; k < want.numel(); ++k) {
          const double f = found.item_as_double(k), v = want.item_as_double(k);
          infinite += std::isinf(v);
          QVERIFY2(std::isfinite(v) ? std::fabs(f - v) < 1e-4
                   : std::isnan(v)  ? std::isnan(f)
                                    : f == v,
                   fmt::format("result {}, element {}: {} in place of {}", i, k, f, v).c_str());
        }
        QVERIFY(infinite > 0);
      }
    };
    OneCall forward("aten.convolution.default", {x, w, Value(), one, one, one, false, none, std::int64_t{1}});
    same(forward.innermost_channels(), own_kernels() + " winograd");
    Tensor grad = channels_last(random_tensor({2, 16, 20, 20}, 5));
    grad.as<float>()[8 * grad.strides[2] + 5 * grad.strides[3] + 1] = -INFINITY;
    const Tensor plain = channels_last(random_tensor({2, 16, 20, 20}, 1));
    OneCall backward("aten.convolution_backward.default", {grad, plain, w, ints({16}), one, one, one, false, none,
                                                           std::int64_t{1}, ValueList{true, true, false}});
    same(backward.innermost_channels(), own_kernels() + " winograd, " + own_kernels() + " taps");
  }

  /// One long sum would be several times as far from the result in double as sums of short ones.
  void adds_short_sums_data() {
    QTest::addColumn<Sizes>("sizes");  // images, channels, filters, height, width, the window's rows and columns
    QTest::addColumn<bool>("innermost");
    for (const bool innermost : {false, true}) {
      const char* layout = innermost ? "channels innermost" : "row-major";
      QTest::addRow("3x3, %s", layout) << Sizes{1, 256, 32, 10, 10, 3, 3} << innermost;
      QTest::addRow("5x5, %s", layout) << Sizes{1, 64, 32, 20, 20, 5, 5} << innermost;
      QTest::addRow("1x1, %s", layout) << Sizes{2, 1024, 32, 14, 14, 1, 1} << innermost;
      QTest::addRow("1x3, %s", layout) << Sizes{2, 96, 96, 1, 64, 1, 3} << innermost;
      QTest::addRow("3x3 by Winograd's algorithm, %s", layout) << Sizes{1, 256, 32, 24, 24, 3, 3} << innermost;
    }
  }
  void adds_short_sums() {
    QFETCH(Sizes, sizes);
    QFETCH(bool, innermost);
    if (own_kernels().empty()) QSKIP("sums of short sums need AVX2");
    const auto laid = [&](const Tensor& t) { return innermost ? channels_last(t) : t; };
    const Tensor x = laid(random_tensor({sizes[0], sizes[1], sizes[3], sizes[4]}, 1));
    const Tensor w = random_tensor({sizes[2], sizes[1], sizes[5], sizes[6]}, 2);
    const ValueList one = ints({1, 1}), none = ints({0, 0}), padding = ints({sizes[5] / 2, sizes[6] / 2});
    OneCall forward("aten.convolution.default", {x, w, Value(), one, padding, one, false, none, std::int64_t{1}});
    if (innermost) forward.innermost_channels();
    for (const bool fixed : {false, true}) {
      CompileOptions options;
      if (fixed) options.fixed_inputs = {1};
      auto e = compile_plan(*cpu_machine(), forward.plan, {}, options);
      QVERIFY(e);
      auto got = (*e)->run(forward.inputs);
      QVERIFY(got);
      const Tensor found = *(*got)[0].get<Tensor>(), want = *forward.expected.get<Tensor>();  // summed in double
      double errors = 0, squares = 0;
      for (std::int64_t i = 0; i < want.numel(); ++i) {
        errors += std::pow(found.item_as_double(i) - want.item_as_double(i), 2);
        squares += std::pow(want.item_as_double(i), 2);
      }
      // PyTorch's are 2.2e-7 to 2.5e-7, those of 5x5 3.5e-7 and of 1x3 1.3e-7; one long sum's 5.7e-7 to 8.3e-7, of 1x3
      // 3.1e-7.
      // Without AVX-512 oneDNN, PyTorch's too, adds up one long sum where the weight changes and rows lie one by one.
      const bool one_sum = (*e)->externs[0].library == "oneDNN jit:avx2";
      const double limit = one_sum ? 9e-7 : sizes[5] == 1 && sizes[6] == 3 ? 2.7e-7 : 3.6e-7;
      const double relative = std::sqrt(errors / squares);
      QVERIFY2(relative < limit, fmt::format("{} ({})", relative, (*e)->externs[0].library).c_str());
    }
  }

  void depthwise_data() {
    QTest::addColumn<Sizes>("sizes");  // images, channels, height, width, strides, rows and columns of zeros
    QTest::addColumn<bool>("bias");
    QTest::newRow("3x3") << Sizes{1, 32, 9, 11, 1, 1, 1, 1} << false;
    QTest::newRow("channels that fill no vector") << Sizes{2, 53, 8, 13, 1, 1, 1, 1} << true;
    QTest::newRow("stride 2") << Sizes{1, 48, 15, 16, 2, 2, 1, 1} << true;
    QTest::newRow("stride 2, no zeros") << Sizes{1, 16, 14, 21, 2, 2, 0, 0} << false;
    QTest::newRow("another stride of rows") << Sizes{1, 40, 20, 9, 3, 1, 1, 0} << true;
    QTest::newRow("more zeros") << Sizes{3, 32, 5, 6, 1, 2, 2, 2} << false;
    QTest::newRow("one pixel") << Sizes{1, 32, 1, 1, 1, 1, 1, 1} << true;
    QTest::newRow("two rows, narrow") << Sizes{1, 64, 2, 5, 1, 1, 1, 1} << false;
    QTest::newRow("some results of zeros alone") << Sizes{1, 32, 1, 4, 2, 1, 3, 3} << true;
  }
  void depthwise() {
    if (own_kernels().empty()) QSKIP("our own depthwise convolution needs AVX2");
    QFETCH(Sizes, sizes);
    QFETCH(bool, bias);
    const std::int64_t channels = sizes[1];
    const Tensor x = channels_last(random_tensor({sizes[0], channels, sizes[2], sizes[3]}, 1));
    const Tensor w = random_tensor({channels, 1, 3, 3}, 2);
    const Value b = bias ? Value(random_tensor({channels}, 3)) : Value();
    const ValueList one = ints({1, 1}), none = ints({0, 0});
    for (bool fixed : {false, true}) {
      OneCall forward("aten.convolution.default",
                      {x, w, b, ints({sizes[4], sizes[5]}), ints({sizes[6], sizes[7]}), one, false, none, channels});
      CompileOptions options;
      if (fixed) options.fixed_inputs = {1};
      check(forward.innermost_channels(), own_kernels() + " depthwise", options);
    }
  }
  void depthwise_gradients_data() {
    QTest::addColumn<Sizes>("sizes");   // images, channels, height, width
    QTest::addColumn<Sizes>("window");  // height, width, and for rows and columns: strides, zeros, dilation
    QTest::newRow("3x3") << Sizes{2, 32, 9, 11} << Sizes{3, 3, 1, 1, 1, 1, 1, 1};
    QTest::newRow("channels that fill no vector") << Sizes{1, 21, 8, 13} << Sizes{3, 3, 1, 1, 1, 1, 1, 1};
    QTest::newRow("few channels") << Sizes{3, 3, 7, 6} << Sizes{3, 3, 1, 1, 1, 1, 1, 1};
    QTest::newRow("stride 2, 5x5") << Sizes{1, 48, 15, 16} << Sizes{5, 5, 2, 2, 2, 2, 1, 1};
    QTest::newRow("more stride than window") << Sizes{1, 16, 14, 21} << Sizes{2, 2, 3, 4, 0, 0, 1, 1};
    QTest::newRow("dilation") << Sizes{2, 24, 12, 17} << Sizes{3, 3, 1, 2, 2, 3, 2, 3};
    QTest::newRow("a wide window") << Sizes{1, 16, 6, 40} << Sizes{1, 11, 1, 1, 0, 5, 1, 1};
    QTest::newRow("a window wider than the image") << Sizes{1, 16, 3, 2} << Sizes{5, 7, 1, 1, 2, 3, 1, 1};
    QTest::newRow("some results of zeros alone") << Sizes{1, 32, 1, 4} << Sizes{3, 3, 2, 1, 3, 3, 1, 1};
  }
  void depthwise_gradients() {
    if (own_kernels().empty()) QSKIP("our own depthwise convolution needs AVX2");
    QFETCH(Sizes, sizes);
    QFETCH(Sizes, window);
    const Tensor x = channels_last(random_tensor(sizes, 1));
    const Tensor w = random_tensor({sizes[1], 1, window[0], window[1]}, 2);
    const auto pair = [&](std::size_t i) { return ints({window[i], window[i + 1]}); };
    const ValueList none = ints({0, 0});
    OneCall forward("aten.convolution.default", {x, w, Value(), pair(2), pair(4), pair(6), false, none, sizes[1]});
    const Tensor grad = channels_last(random_tensor(forward.expected.get<Tensor>()->sizes, 5));
    const std::string own = own_kernels() + " depthwise";
    for (const bool bias : {false, true}) {
      OneCall backward("aten.convolution_backward.default", {grad, x, w, ints({sizes[1]}), pair(2), pair(4), pair(6),
                                                             false, none, sizes[1], ValueList{true, true, bias}});
      check(backward.innermost_channels(), own + ", " + own);
    }
  }
  void few_channels_data() {
    QTest::addColumn<Sizes>("sizes");   // images, channels, filters, height, width, groups
    QTest::addColumn<Sizes>("window");  // height, width, and for rows and columns: strides, zeros, dilation
    QTest::addColumn<bool>("bias");
    QTest::newRow("groups") << Sizes{1, 48, 48, 9, 31, 3} << Sizes{3, 3, 1, 1, 1, 1, 1, 1} << true;
    QTest::newRow("groups, stride 2") << Sizes{2, 32, 64, 15, 12, 4} << Sizes{3, 3, 2, 2, 1, 1, 1, 1} << false;
    QTest::newRow("groups that fill no vector") << Sizes{1, 42, 42, 7, 7, 3} << Sizes{3, 3, 1, 1, 1, 1, 1, 1} << true;
    QTest::newRow("groups of several vectors") << Sizes{1, 12, 160, 6, 8, 2} << Sizes{1, 1, 1, 1, 0, 0, 1, 1} << true;
    QTest::newRow("colours") << Sizes{2, 3, 64, 30, 29, 1} << Sizes{7, 7, 2, 2, 3, 3, 1, 1} << true;
    QTest::newRow("patches") << Sizes{1, 3, 40, 24, 20, 1} << Sizes{4, 4, 4, 4, 0, 0, 1, 1} << false;
    QTest::newRow("one colour, dilation") << Sizes{3, 1, 16, 13, 17, 1} << Sizes{3, 5, 1, 1, 2, 4, 3, 2} << true;
    QTest::newRow("a window wider than the image")
        << Sizes{1, 2, 16, 3, 2, 1} << Sizes{5, 5, 1, 1, 2, 2, 1, 1} << false;
    QTest::newRow("some results of zeros alone") << Sizes{1, 4, 32, 2, 3, 1} << Sizes{3, 3, 2, 1, 4, 4, 1, 1} << true;
  }
  void few_channels() {
    if (own_kernels().empty()) QSKIP("our own convolution of few channels needs AVX2");
    QFETCH(Sizes, sizes);
    QFETCH(Sizes, window);
    QFETCH(bool, bias);
    const Tensor w = random_tensor({sizes[2], sizes[1] / sizes[5], window[0], window[1]}, 2);
    const Value b = bias ? Value(random_tensor({sizes[2]}, 3)) : Value();
    const auto pair = [&](std::size_t i) { return ints({window[i], window[i + 1]}); };
    for (bool last : {false, true})
      for (bool fixed : {false, true}) {
        Tensor x = random_tensor({sizes[0], sizes[1], sizes[3], sizes[4]}, 1);
        if (last) x = channels_last(x);
        OneCall forward("aten.convolution.default",
                        {x, w, b, pair(2), pair(4), pair(6), false, ints({0, 0}), sizes[5]});
        CompileOptions options;
        if (fixed) options.fixed_inputs = {1};
        check(forward.innermost_channels(), own_kernels() + " few channels", options);
      }
  }

  void windows_data() {
    QTest::addColumn<Sizes>("sizes");   // images, channels, filters, length
    QTest::addColumn<Sizes>("window");  // taps, stride
    QTest::addColumn<bool>("bias");
    QTest::newRow("overlapping") << Sizes{1, 20, 50, 31} << Sizes{3, 2} << true;
    QTest::newRow("gaps between") << Sizes{1, 8, 16, 30} << Sizes{2, 3} << false;
    QTest::newRow("one window") << Sizes{1, 17, 33, 5} << Sizes{5, 1} << true;
    QTest::newRow("several images") << Sizes{3, 20, 48, 24} << Sizes{2, 2} << false;
  }
  void windows() {
    if (own_kernels().empty()) QSKIP("our own product needs AVX2");
    QFETCH(Sizes, sizes);
    QFETCH(Sizes, window);
    QFETCH(bool, bias);
    const Tensor x = channels_last(random_tensor({sizes[0], sizes[1], sizes[3]}, 1));
    const Tensor w = random_tensor({sizes[2], sizes[1], window[0]}, 2);
    const Value b = bias ? Value(random_tensor({sizes[2]}, 3)) : Value();
    OneCall forward("aten.convolution.default",
                    {x, w, b, ints({window[1]}), ints({0}), ints({1}), false, ints({0}), std::int64_t{1}});
    check(forward.innermost_channels(), "oneDNN");
    CompileOptions options;
    options.fixed_inputs = {1};
    check(forward, own_kernels(), options);
  }

  void infinities_data() {
    QTest::addColumn<std::int64_t>("groups");
    QTest::addColumn<QString>("kernel");
    QTest::newRow("depthwise") << std::int64_t{32} << " depthwise";
    QTest::newRow("few channels") << std::int64_t{2} << " few channels";
  }
  /// Zeros around an image, times infinity, are no part of a result.
  void infinities() {
    if (own_kernels().empty()) QSKIP("our own convolutions need AVX2");
    QFETCH(std::int64_t, groups);
    QFETCH(QString, kernel);
    Tensor w = random_tensor({32, 32 / groups, 3, 3}, 2);
    for (std::int64_t i : {0, 8})
      w.as<float>()[5 * w.strides[0] + i] = INFINITY;  // of filter 5, the first and the last
    const ValueList one = ints({1, 1}), none = ints({0, 0});
    OneCall forward("aten.convolution.default",
                    {channels_last(random_tensor({1, 32, 9, 8}, 1)), w, Value(), one, one, one, false, none, groups});
    auto compiled = compile_plan(*cpu_machine(), forward.innermost_channels().plan, {}, {});
    QVERIFY(compiled);
    QCOMPARE((*compiled)->externs[0].library, own_kernels() + kernel.toStdString());
    auto got = (*compiled)->run(forward.inputs);
    QVERIFY(got);
    const Tensor found = *(*got)[0].get<Tensor>();
    for (std::int64_t c = 0; c < 32; ++c)
      for (std::int64_t y = 0; y < 9; ++y)
        for (std::int64_t x = 0; x < 8; ++x) {
          const bool first = y > 0 && x > 0, last = y < 8 && x < 7;  // does this infinity meet the image?
          const float v = found.as<float>()[c * found.strides[1] + y * found.strides[2] + x * found.strides[3]];
          const bool right = c != 5 || (!first && !last) ? std::isfinite(v)
                             : first && last             ? std::isinf(v) || std::isnan(v)
                                                         : std::isinf(v);
          QVERIFY2(right, fmt::format("channel {}, row {}, column {}: {}", c, y, x, v).c_str());
        }
  }

  void transposed_data() {
    QTest::addColumn<Sizes>("sizes");   // images, channels, filters of a group, height, width
    QTest::addColumn<Sizes>("window");  // of taps, stride, zeros, zeros of the output, dilation, groups
    QTest::newRow("2x2") << Sizes{2, 24, 16, 5, 7} << Sizes{2, 2, 0, 0, 1, 1};
    QTest::newRow("3x3, zeros of the output") << Sizes{1, 6, 5, 8, 5} << Sizes{3, 2, 1, 1, 1, 1};
    QTest::newRow("dilation") << Sizes{1, 16, 8, 6, 6} << Sizes{3, 1, 1, 0, 2, 1};
    QTest::newRow("groups") << Sizes{2, 12, 5, 6, 4} << Sizes{4, 3, 1, 2, 1, 3};
    QTest::newRow("depthwise") << Sizes{1, 32, 1, 6, 6} << Sizes{4, 2, 1, 0, 1, 32};
  }
  void transposed() {
    QFETCH(Sizes, sizes);
    QFETCH(Sizes, window);
    const auto twice = [](std::int64_t n) { return ints({n, n}); };
    for (const bool last : {false, true}) {
      Tensor x = random_tensor({sizes[0], sizes[1], sizes[3], sizes[4]}, 1);
      if (last) x = channels_last(x);
      const Tensor w = random_tensor({sizes[1], sizes[2], window[0], window[0]}, 2);
      for (const Value& bias : {Value(), Value(random_tensor({sizes[2] * window[5]}, 3))}) {
        OneCall c("aten.convolution.default", {x, w, bias, twice(window[1]), twice(window[2]), twice(window[4]), true,
                                               twice(window[3]), window[5]});
        check(c, "oneDNN");
        CompileOptions options;
        options.fixed_inputs = {1};
        check(c, "oneDNN", options);
      }
      const Sizes out = OneCall("aten.convolution.default", {x, w, Value(), twice(window[1]), twice(window[2]),
                                                             twice(window[4]), true, twice(window[3]), window[5]})
                            .expected.get<Tensor>()
                            ->sizes;
      Tensor grad = random_tensor(out, 4);
      if (last) grad = channels_last(grad);
      for (const ValueList& mask :
           {ValueList{true, true, true}, ValueList{true, false, false}, ValueList{false, true, false}}) {
        OneCall c("aten.convolution_backward.default", {grad, x, w, ints({out[1]}), twice(window[1]), twice(window[2]),
                                                        twice(window[4]), true, twice(window[3]), window[5], mask});
        const bool many_channels = last && window[5] == 1 && std::min(sizes[1], sizes[2]) >= 8;
        check(c, std::get<bool>(mask[0].v) || !many_channels ? "oneDNN" : by_taps());
      }
    }
  }

  void taps_data() {
    QTest::addColumn<Sizes>("sizes");   // images, channels, filters, height, width
    QTest::addColumn<Sizes>("window");  // height, width, stride, zeros, dilation
    QTest::addColumn<bool>("transposed");
    for (const bool transposed : {false, true}) {
      const auto row = [&](const char* name, const Sizes& sizes, const Sizes& window) {
        QTest::newRow((std::string(name) + (transposed ? ", transposed" : "")).c_str())
            << sizes << window << transposed;
      };
      row("5x5", {2, 24, 40, 19, 21}, {5, 5, 1, 2, 1});
      row("stride 2", {3, 16, 37, 35, 36}, {3, 3, 2, 1, 1});
      row("4x4, stride 2", {1, 33, 64, 34, 34}, {4, 4, 2, 1, 1});
      row("taps that miss some pixels", {1, 20, 24, 33, 34}, {1, 1, 2, 0, 1});
      row("dilation", {1, 40, 17, 23, 22}, {3, 3, 1, 6, 6});
      row("dilation and stride, no zeros", {1, 9, 50, 12, 52}, {2, 3, 3, 0, 2});
      row("more channels than a block has", {1, 530, 80, 4, 20}, {3, 1, 1, 0, 1});
    }
  }
  /// By a product for each tap: results, and gradients with the bias.
  void taps() {
    if (!owns_changing_products()) QSKIP("with AVX-512 oneDNN computes such convolutions");
    QFETCH(Sizes, sizes);
    QFETCH(Sizes, window);
    QFETCH(bool, transposed);
    const auto twice = [](std::int64_t n) { return ints({n, n}); };
    const ValueList stride = twice(window[2]), zeros = twice(window[3]), dilation = twice(window[4]);
    const Tensor x = channels_last(random_tensor({sizes[0], sizes[1], sizes[3], sizes[4]}, 1));
    const Sizes filters = transposed ? Sizes{sizes[1], sizes[2]} : Sizes{sizes[2], sizes[1]};
    const Tensor w = random_tensor({filters[0], filters[1], window[0], window[1]}, 2);
    const Value none = twice(0), one_group = std::int64_t{1};
    for (const Tensor& weight : {w, channels_last(w)})
      for (const Value& bias : {Value(), Value(random_tensor({sizes[2]}, 3))}) {
        OneCall forward("aten.convolution.default",
                        {x, weight, bias, stride, zeros, dilation, transposed, none, one_group});
        check(forward.innermost_channels(), by_taps());
        CompileOptions options;
        options.fixed_inputs = {1};
        check(forward, by_taps(), options);
        const Tensor grad = channels_last(random_tensor(forward.expected.get<Tensor>()->sizes, 5));
        OneCall backward("aten.convolution_backward.default",
                         {grad, x, weight, ints({sizes[2]}), stride, zeros, dilation, transposed, none, one_group,
                          ValueList{true, true, !bias.is_none()}});
        check(backward.innermost_channels(), by_taps() + ", " + by_taps());
      }
  }

  /// Of a convolution of each pixel by itself, with the bias.
  void pixels_gradients() {
    if (!owns_changing_products()) QSKIP("with AVX-512 oneDNN multiplies matrices that change");
    const Tensor x = channels_last(random_tensor({3, 20, 9, 11}, 1)), w = random_tensor({35, 20, 1, 1}, 2);
    const Tensor grad = channels_last(random_tensor({3, 35, 9, 11}, 3));
    const ValueList one = ints({1, 1}), none = ints({0, 0});
    for (const bool bias : {false, true}) {
      OneCall backward("aten.convolution_backward.default", {grad, x, w, ints({35}), one, none, one, false, none,
                                                             std::int64_t{1}, ValueList{true, true, bias}});
      check(backward.innermost_channels(), own_kernels() + ", " + own_kernels());
    }
  }

  void by_windows_data() {
    QTest::addColumn<Sizes>(
        "sizes");  // images, channels, filters, height, width, window, stride, dilation, zeros around
    QTest::addColumn<bool>("innermost");
    QTest::newRow("3x3") << Sizes{2, 128, 128, 4, 4, 3, 1, 1, 1} << false;
    QTest::newRow("channels of weights innermost") << Sizes{2, 128, 128, 4, 4, 3, 1, 1, 1} << true;
    QTest::newRow("stride") << Sizes{1, 96, 160, 7, 8, 3, 2, 1, 1} << false;
    QTest::newRow("dilation, no zeros") << Sizes{1, 96, 160, 7, 8, 3, 1, 2, 0} << false;
    QTest::newRow("5x5") << Sizes{3, 72, 80, 5, 3, 5, 1, 1, 2} << true;
    QTest::newRow("1x1") << Sizes{1, 320, 320, 2, 3, 1, 1, 1, 0} << false;
    QTest::newRow("one pixel") << Sizes{1, 3, 4, 5, 5, 5, 1, 1, 0} << false;
    QTest::newRow("1x1, stride") << Sizes{1, 320, 320, 5, 5, 1, 2, 1, 0} << false;
  }
  /// Of small images with large weights that change.
  void by_windows() {
    QFETCH(Sizes, sizes);
    QFETCH(bool, innermost);
    const Tensor x = channels_last(random_tensor({sizes[0], sizes[1], sizes[3], sizes[4]}, 1));
    Tensor w = random_tensor({sizes[2], sizes[1], sizes[5], sizes[5]}, 2);
    if (innermost) w = channels_last(w);
    const auto twice = [](std::int64_t n) { return ints({n, n}); };
    const ValueList stride = twice(sizes[6]), dilation = twice(sizes[7]), zeros = twice(sizes[8]), none = twice(0);
    OneCall forward("aten.convolution.default", {x, w, Value(), stride, zeros, dilation, false, none, std::int64_t{1}});
    const bool product = owns_changing_products() && sizes[5] == 1 && sizes[6] == 1;
    check(forward.innermost_channels(), product ? "Partita" : "oneDNN");
    auto made = compile_plan(*cpu_machine(), forward.plan, {}, {});
    QVERIFY(made && (*made)->externs[0].library.ends_with("of windows") == !product);
    const Tensor grad = channels_last(random_tensor(forward.expected.get<Tensor>()->sizes, 5));
    OneCall backward("aten.convolution_backward.default", {grad, x, w, ints({sizes[2]}), stride, zeros, dilation, false,
                                                           none, std::int64_t{1}, ValueList{true, true, false}});
    auto compiled = compile_plan(*cpu_machine(), backward.innermost_channels().plan, {}, {});
    QVERIFY(compiled);
    QCOMPARE(QString::fromStdString((*compiled)->externs[0].library).count("of windows"), product ? 0 : 2);
    check(backward, product ? "Partita" : "oneDNN");
  }

  /// The gradient of a sum over pixels lies in memory once, so that its rows are no matrix.
  void a_repeated_gradient_is_no_matrix() {
    const Tensor x = channels_last(random_tensor({1, 320, 2, 3}, 1)), w = random_tensor({320, 320, 1, 1}, 2);
    const Tensor grad = random_tensor({320}, 3).view_as({1, 320, 2, 3}, {0, 1, 0, 0}, 0);
    const ValueList one = ints({1, 1}), none = ints({0, 0});
    OneCall backward("aten.convolution_backward.default", {grad, x, w, ints({320}), one, none, one, false, none,
                                                           std::int64_t{1}, ValueList{true, true, false}});
    check(backward, "interpreter");
  }

  /// Zeros around an image, times infinity, are no part of a result.
  void infinities_by_windows() {
    const Tensor x = channels_last(random_tensor({2, 128, 4, 4}, 1));
    Tensor w = random_tensor({128, 128, 3, 3}, 2), grad = channels_last(random_tensor({2, 128, 4, 4}, 5));
    w.as<float>()[9 * 5] = INFINITY;                   // of filter 0, channel 5, the first row and column
    grad.as<float>()[grad.strides[3] + 7] = INFINITY;  // of filter 7, in the first row
    const ValueList one = ints({1, 1}), none = ints({0, 0});
    OneCall forward("aten.convolution.default", {x, w, Value(), one, one, one, false, none, std::int64_t{1}});
    auto result = compile_plan(*cpu_machine(), forward.innermost_channels().plan, {}, {});
    QVERIFY(result && (*result)->externs[0].library.ends_with("of windows"));
    auto out = (*result)->run(forward.inputs);
    QVERIFY(out);
    const Tensor y = *(*out)[0].get<Tensor>();
    const auto at = [](const Tensor& t, std::int64_t c, std::int64_t row, std::int64_t column) {
      return t.as<float>()[c * t.strides[1] + row * t.strides[2] + column * t.strides[3]];
    };
    QVERIFY(std::isfinite(at(y, 0, 0, 2)) && std::isinf(at(y, 0, 1, 1)) && std::isfinite(at(y, 1, 1, 1)));
    const Tensor finite = random_tensor({128, 128, 3, 3}, 2);
    OneCall backward("aten.convolution_backward.default", {grad, x, finite, ints({128}), one, one, one, false, none,
                                                           std::int64_t{1}, ValueList{true, true, false}});
    auto gradients = compile_plan(*cpu_machine(), backward.innermost_channels().plan, {}, {});
    QVERIFY(gradients);
    QCOMPARE(QString::fromStdString((*gradients)->externs[0].library).count("of windows"), 2);
    auto made = (*gradients)->run(backward.inputs);
    QVERIFY(made);
    const Tensor dw = *(*made)[1].get<Tensor>();
    const float* of_filter = dw.as<float>() + 7 * dw.strides[0];  // of channel 0
    QVERIFY(std::isfinite(of_filter[0]) && std::isinf(of_filter[8]) && std::isfinite(dw.as<float>()[8]));
  }
};

QTEST_GUILESS_MAIN(TestConvolutions)
#include "test_convolutions.moc"

// Graphs that cannot be run: compiled code must refuse them in the words of the interpreter before it touches memory.
// Each of them once crashed, hung or wrote out of bounds.
#include <QtTest>

#include <fmt/format.h>

#include "codegen/backends.h"
#include "core/aot/graph_io.h"
#include "core/aot/run_compiled.h"
#include "core/aot/run_program.h"
#include "core/fake/propagate.h"
#include "core/interp/interpreter.h"
#include "core/interp/random_values.h"
#include "tests/support/fx.h"
#include "tests/support/interpreted.h"
#include "tests/support/run_options.h"
#include "tests/support/values.h"

using namespace partita;
using namespace partita::testing;

namespace {

struct Row {
  const char* name;
  const char* parameters;
  const char* lines;
  const char* says;
};

const char* const vector = "x: <f32[4][1]>";
const char* const matrix = "x: <f32[4, 3][3, 1]>, y: <f32[3][1]>";
const char* const number = "x: <f32[][]>";

const Row rows[] = {
    {"None in a list of tensors", vector, "a = $stack([None, x])\nreturn (a,)", "must not hold None"},
    {"None for a number", vector, "a = $mul.Scalar(x, None)\nreturn (a,)", "must not be None"},
    {"a result beyond a tuple", vector, "a = $sort(x)\nb = a[2]\nreturn (b,)", "index 2 of a list of 2 results"},
    {"a result beyond a list", vector, "a = $_foreach_frac([x, x, x])\nb = a[7]\nreturn (b,)",
     "index 7 of a list of 3 results"},
    {"a result before a tuple", vector, "a = $sort(x)\nb = a[-3]\nreturn (b,)", "index -3 of a list of 2 results"},
    {"a result far beyond a tuple", vector, "a = $sort(x)\nb = a[4611686018427387904]\nreturn (b,)",
     "index 4611686018427387904 of a list of 2 results"},
    {"select_scatter to an index that a node computes", matrix,
     "k = 100000000 - 1\na = $select_scatter(x, y, 0, k)\nreturn (a,)", "index 99999999 out of range"},
    {"select_backward to an index that a node computes", "y: <f32[3][1]>",
     "k = 100000000 - 1\na = $select_backward(y, [4, 3], 0, k)\nreturn (a,)", "index 99999999 out of range"},
    {"slice_scatter to an index that a node computes", "x: <f32[4, 3][3, 1]>",
     "k = 100000000 - 1\ne = k + 4\na = $slice_scatter(x, x, 0, k, e)\nreturn (a,)", "size"},
    {"slice_backward to an index that a node computes", "x: <f32[4, 3][3, 1]>",
     "k = 100000000 - 1\ne = k + 4\na = $slice_backward(x, [4, 3], 0, k, e, 1)\nreturn (a,)", "size"},
    {"padding beyond 64 bits", vector,
     "a = $constant_pad_nd(x, [9223372036854775807, 9223372036854775807])\nreturn (a,)", "overflow"},
    {"cat of expanded tensors", number, "a = $expand(x, [4611686018427387904])\nb = $cat([a, a, a, a])\nreturn (b,)",
     "overflow"},
    {"an expanded tensor of more elements than numbers", vector,
     "a = $expand(x, [4611686018427387904, 4])\nreturn (a,)", "overflow"},
    {"repeat beyond 64 bits", vector, "a = $repeat(x, [4611686018427387904])\nreturn (a,)", "overflow"},
    {"repeat beyond memory", number, "a = $repeat(x, [1152921504606846976])\nreturn (a,)", "--memory-limit"},
    {"ones beyond memory", vector, "a = $ones([1099511627776])\nreturn (a,)", "--memory-limit"},
    {"a value in between beyond memory", vector,
     "a = $ones([1099511627776])\nb = $cumsum(a, 0)\nc = $sum(b)\nreturn (c,)", "--memory-limit"},
    {"strides beyond 64 bits", vector, "a = $new_empty_strided(x, [4], [4611686018427387904])\nreturn (a,)",
     "out of range"},
    {"pixels shuffled by 2**32", "x: <f32[1, 4, 2, 2][16, 4, 2, 1]>", "a = $pixel_shuffle(x, 4294967296)\nreturn (a,)",
     "overflow"},
    {"a product of sizes beyond 64 bits", vector, "k = 4611686018427387904 * 4\na = $ones([k])\nreturn (a,)",
     "overflow"},
    {"a power of sizes beyond 64 bits", vector, "k = 2 ** 9223372036854775807\na = $ones([k])\nreturn (a,)",
     "overflow"},
    {"triu of one dimension", vector, "a = $triu(x)\nreturn (a,)", "triu: input tensor must have at least 2"},
    {"tril of a number", number, "a = $tril(x)\nreturn (a,)", "tril: input tensor must have at least 2"},
    {"roll of a number", number, "a = $roll(x, [1], [0])\nreturn (a,)", "tensor has no dimensions"},
    {"coordinates beyond memory", "", "a = $tril_indices(1000000000, 1000000000)\nreturn (a,)", "--memory-limit"},
    {"cells beyond memory", "x: <f32[1, 4, 2, 2][16, 4, 2, 1]>",
     "a = $_adaptive_avg_pool2d(x, [100000, 1000000])\nreturn (a,)", "--memory-limit"},
    {"terms without end", vector, "a = $mvlgamma(x, 1000000000000)\nreturn (a,)", "at most"},
    {"attention over vectors", "q: <f32[4, 3, 8][24, 8, 1]>, k: <f32[8][1]>",
     "a = $scaled_dot_product_attention(q, k, q)\nreturn (a,)", "at least 2 dimensional"},
    {"None for a tensor", vector, "a = $logical_xor(x, None)\nreturn (a,)", "must not be None"},
    {"the greatest of no elements", "x: <f32[0][1]>", "m = $max.dim(x, 0)\na = m[0]\nreturn (a,)", "non-zero size"},
    {"an image scaled to nothing", "x: <f32[2, 3, 4][12, 4, 1]>",
     "a = $upsample_linear1d.vec(x, None, False, [1e-300])\nreturn (a,)", "should be greater than 0"},
    {"an image without channels", "x: <f32[2, 0, 4, 4][16, 16, 4, 1]>",
     "a = $upsample_nearest2d.vec(x, None, [2.0, 2.0])\nreturn (a,)", "without channels"},
    {"a probability below 0 of dropping nothing", vector, "a = $dropout(x, -1.0, False)\nreturn (a,)",
     "has to be between 0 and 1"},
    {"an index beyond the plane of a max_unpool", "x: <f32[1, 2, 2, 2][8, 4, 2, 1]>",
     "i = $full([1, 2, 2, 2], 16, dtype = torch.int64)\na = $max_unpool2d(x, i, [4, 4])\nreturn (a,)",
     "Found an invalid max index: 16"},
    {"indices that are no integers", "x: <f32[1, 2, 3, 6][36, 18, 6, 1]>",
     "m = $max_pool2d_with_indices(x, [3, 3], [2, 2])\ng = m[0]\ni = m[0]\na = $max_pool2d_with_indices_backward(g, "
     "x, [3, 3], [2, 2], [0, 0], [1, 1], False, i)\nreturn (a,)",
     "indices must be int64"},
    {"batch norm of nothing", "x: <f32[0, 2][2, 1]>, w: <f32[2][1]>",
     "m = $native_batch_norm(x, w, w, None, None, True, 0.1, 1e-05)\na = m[0]\nreturn (a,)",
     "Expected more than 1 value"},
    {"a divisor of 0", "x: <f32[1, 1, 4, 4][16, 16, 4, 1]>",
     "a = $avg_pool2d(x, [2, 2], [], [0], False, True, 0)\nreturn (a,)", "divisor must be not zero"},
    {"a tuple for a tensor", "x: <f32[3, 3][3, 1]>",
     "m = $linalg_inv_ex(x)\na = m[0]\n$_linalg_check_errors(m, 'linalg.inv', is_matrix = True)\nreturn (a,)",
     "'info' must be a tensor"},
    {"a tuple for a condition", "x: <f32[3, 3][3, 1]>",
     "m = $_linalg_slogdet(x)\na = m[0]\nb = $where.self(m, a, a)\nreturn (b,)", "'condition' must be a tensor"},
    {"a norm in complex32", vector, "a = $linalg_vector_norm(x, 2, [], dtype = torch.complex32)\nreturn (a,)",
     "dtype should be real"},
    {"a quotient of complex32", vector, "a = $to.dtype(x, torch.complex32)\nb = $div.Tensor(a, a)\nreturn (b,)",
     "complex32"},
    {"a result larger than what it is written to", "x: <f32[1, 1][1, 1]>, y: <f32[2, 2][2, 1]>",
     "c = $clone(x)\na = $lerp_.Tensor(c, y, y)\nreturn (a,)",
     "on an argument of size [1, 1], which the result of size [2, 2] does not fit"},
    {"a list of results larger than what they are written to", "x: <f32[1, 1][1, 1]>, y: <f32[2, 2][2, 1]>",
     "c = $clone(x)\n$_foreach_mul_.List([c], [y])\nreturn (c,)", "which the result of size [2, 2] does not fit"},
    {"a float written to integers", "x: <i64[4][1]>", "c = $clone(x)\na = $div_.Scalar(c, 2)\nreturn (a,)",
     "can't be cast to the desired output type int64"},
    {"a dimension flipped twice", vector, "a = $flip(x, [0, -1])\nreturn (a,)", "appears multiple times"},
    {"a power that has no opposite", "x: <f32[1, 1][1, 1]>",
     "a = $linalg_matrix_power(x, -9223372036854775808)\nreturn (a,)", "overflow"},
    {"combinations of too many", "x: <b8[2][1]>", "a = $combinations(x, 100000007)\nreturn (a,)",
     "combinations of 100000007 elements"},
    {"a sum over more elements than memory has bytes", "x: <b8[5][1]>",
     "a = $expand(x, [1099511627776, 5])\nb = $sum(a)\nreturn (b,)", "--memory-limit"},
    {"an index beyond a dimension of size 1", "x: <f32[1][1]>",
     "i = $full([3], 4, dtype = torch.int64)\na = $gather(x, 0, i)\nreturn (a,)", "index 4 is out of bounds"},
    {"a class beyond the only one", "x: <f32[2, 1][1, 1]>",
     "i = $full([2], 1, dtype = torch.int64)\nm = $nll_loss_forward(x, i, None, 1, -100)\na = m[0]\nreturn (a,)",
     "out of bounds"},
    {"a window of less than nothing", "x: <f32[2, 3, 5, 5, 5][375, 125, 25, 5, 1]>, r: <f32[2, 3, 3][9, 3, 1]>",
     "m = $fractional_max_pool3d(x, [-9223372036854775807, 2, 2], [2, 2, 2], r)\na = m[0]\nreturn (a,)",
     "must be greater than zero"},
    {"a weight of too few dimensions for padding", "x: <f32[2, 3, 4, 4, 4][192, 64, 16, 4, 1]>, w: <f32[2][1]>",
     "a = $conv3d.padding(x, w, None, [1, 1, 1], 'same')\nreturn (a,)", "the weight has 1"},
    {"arithmetic on float8", vector, "a = $_to_copy(x, dtype = torch.float8_e4m3fn)\nb = $neg(a)\nreturn (b,)",
     "neg.default of float8_e4m3fn"},
};

}  // namespace

class TestRefusals : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void in_the_same_words_data() {
    QTest::addColumn<int>("index");
    for (int i = 0; i < static_cast<int>(std::size(rows)); ++i) QTest::newRow(rows[i].name) << i;
  }
  void in_the_same_words() {
    QFETCH(int, index);
    const Row& row = rows[index];
    const auto graph = fx(row.parameters, row.lines);
    const auto inputs = random_inputs(*graph, 3);
    QVERIFY2(inputs, inputs ? "" : inputs.error().line().c_str());
    const auto interpreted = interpret(*graph, *inputs);
    QVERIFY(!interpreted);
    QVERIFY2(interpreted.error().message.find(row.says) != std::string::npos, interpreted.error().line().c_str());
    const auto compiled = run_compiled(*graph, *inputs, default_compiler().make({}));
    QVERIFY(!compiled);
    QVERIFY2(compiled.error().message.find(row.says) != std::string::npos, compiled.error().line().c_str());
  }

  /// Kernels make no overlapping elements, so the call is evaluated.
  void overlapping_elements_are_returned() {
    const auto graph = fx(vector, "a = $new_empty_strided(x, [5, 5], [2, 1])\nreturn (a,)");
    const auto inputs = random_inputs(*graph, 3);
    QVERIFY(inputs);
    const auto compiled = run_compiled(*graph, *inputs, default_compiler().make({}));
    QVERIFY2(compiled, compiled ? "" : compiled.error().line().c_str());
    QCOMPARE(compiled->front().get<Tensor>()->strides, (Sizes{2, 1}));
  }

  /// Inputs of which several elements are one place in memory, known while compiling or not.
  void overlapping_inputs_are_read() {
    const Tensor memory = f32({8}, {1, 2, 3, 4, 5, 6, 7, 8});
    const auto y = *random_inputs(*fx("y: <f32[2, 3][3, 1]>", "return (y,)"), 3);
    for (const Sizes& strides : {Sizes{0, 1}, Sizes{1, 0}, Sizes{0, 0}, Sizes{1, 1}, Sizes{2, 1}}) {
      const Tensor x = memory.view_as({2, 3}, strides, 1);
      for (const std::string& known : {std::string("3, 1"), fmt::format("{}, {}", strides[0], strides[1])}) {
        const auto graph = fx("x: <f32[2, 3][" + known + "]>, y: <f32[2, 3][3, 1]>",
                              "a = $add.Tensor(x, y)\nb = $sum.dim_IntList(x, [0])\nt = $t(y)\nc = $mm(x, t)\n"
                              "d = $cat([x, y], 1)\nreturn (a, b, c, d)");
        const auto expected = interpret(*graph, {*x.clone(), y[0]});
        QVERIFY2(expected, expected ? "" : expected.error().line().c_str());
        const auto found = run_compiled(*graph, {x, y[0]}, default_compiler().make({}));
        QVERIFY2(found, found ? "" : found.error().line().c_str());
        for (std::size_t i = 0; i < 4; ++i) {
          const std::vector<double> a = elements((*expected)[i]), b = elements((*found)[i]);
          QCOMPARE(a.size(), b.size());
          for (std::size_t k = 0; k < a.size(); ++k) QVERIFY(std::abs(a[k] - b[k]) <= 1e-5 * (1 + std::abs(a[k])));
        }
      }
    }
  }

  /// An input or attribute whose annotation overlaps, given as values of a layout of their own.
  void given_values_count_where_the_annotation_overlaps_data() {
    QTest::addColumn<QString>("type");
    for (const char* type : {"f32[2, 3][0, 1]", "f32[2, 3][1, 0]", "f32[2, 3][1, 1]", "f32[2, 3][2, 1]",
                             "f32[s0, 3][0, 1]", "f32[2, s1][1, 1]"})
      QTest::newRow(type) << type;
  }
  void given_values_count_where_the_annotation_overlaps() {
    QFETCH(QString, type);
    const auto graph = fx("x: <" + type.toStdString() + ">",
                          "a = $mul.Tensor(x, 2)\nt = $t(x)\nb = $add.Tensor(t, 1)\n"
                          "return (a, b)");
    TensorFile io;
    io.tensors["input.0"] = f32({2, 3}, {1, 2, 3, 4, 5, 6});
    for (const Backend* backend : {*find_backend("interp"), &default_compiler()}) {
      const auto out = run_program(artefact_of(*graph), io, run_options(*backend));
      VERIFY_DONE(out);
      QCOMPARE(elements(Value(out->tensors.at("output.0"))), (std::vector<double>{2, 4, 6, 8, 10, 12}));
      QCOMPARE(elements(Value(out->tensors.at("output.1"))), (std::vector<double>{2, 5, 3, 6, 4, 7}));
    }
    if (type.contains('s')) return;
    // Code for such a layout refuses other values, and takes those that it can hold.
    const auto refused = run_compiled(*graph, {io.tensors.at("input.0")}, default_compiler().make({}));
    QVERIFY(!refused);
    QVERIFY2(refused.error().message.find("they share memory") != std::string::npos, refused.error().line().c_str());
    const auto taken = run_compiled(*graph, {f32({2, 3}, {4, 4, 4, 4, 4, 4})}, default_compiler().make({}));
    VERIFY_DONE(taken);
    QCOMPARE(elements(taken->front()), std::vector<double>(6, 8));
  }

  /// Elements that overlap are written after all of them were read; those that expand repeats are refused.
  void overlapping_inputs_are_written() {
    const auto graph_of = [](const std::string& strides) {
      return fx("x: <f32[2, 3][" + strides + "]>, y: <f32[2, 3][3, 1]>", "a = $add_.Tensor(x, y)\nreturn (y,)");
    };
    const Tensor y = f32({2, 3}, {0, 1, 2, 1, 2, 3});
    for (const char* known : {"1, 1", "3, 1"}) {
      const Tensor memory = f32({4}, {0, 1, 2, 3});
      const auto found =
          run_compiled(*graph_of(known), {memory.view_as({2, 3}, {1, 1}, 0), y}, default_compiler().make({}));
      QVERIFY2(found, found ? "" : found.error().line().c_str());
      QCOMPARE(elements(memory), (std::vector<double>{0, 2, 4, 6}));
    }
    const Tensor x = f32({3}, {0, 1, 2}).view_as({2, 3}, {0, 1}, 0);
    const auto interpreted = interpret(*graph_of("3, 1"), {x, y});
    QVERIFY(!interpreted);
    QVERIFY2(interpreted.error().message.starts_with("unsupported operation: more than one element"),
             interpreted.error().line().c_str());
    const auto late = run_compiled(*graph_of("3, 1"), {x, y}, default_compiler().make({}));
    QVERIFY(!late);
    QCOMPARE(late.error().message, interpreted.error().message);
    const auto early = run_compiled(*graph_of("0, 1"), {x, y}, default_compiler().make({}));
    QVERIFY(!early);
    QCOMPARE(early.error().code, std::string("functionalize.mutation"));
  }

  /// Annotations are checked like arguments.
  void an_annotation_is_held_against_its_call() {
    for (const char* said : {"f32[8]", "i64[4]"}) {
      const auto graph = fx(vector, "a: <" + std::string(said) + "[1]> = $neg(x)\nreturn (a,)");
      const auto inputs = random_inputs(*graph, 3);
      QVERIFY(inputs);
      const auto compiled = default_compiler().make({})(*graph);
      QVERIFY(!compiled);
      QVERIFY2(compiled.error().message.find(said) != std::string::npos, compiled.error().line().c_str());
    }
  }

  /// Calls that once crashed or never ended when they were compiled.
  void odd_arguments_are_taken() {
    const std::pair<const char*, const char*> graphs[] = {
        {number, "a = $flip(x, [0])\nreturn (a,)"},
        {"x: <f32[4, 2][2, 1]>, w: <f32[2][1]>",
         "m = $_batch_norm_with_update(x, w, w, w, w, 0.1, 1e-05)\nk = 1 + 1\na = m[-1]\nb = m[k]\nreturn (a, b)"},
        {"x: <f32[3, 3, 4][12, 4, 1]>, n: <i64[3][1]>",
         "k = -1 + 1\nr = $ones_like(n)\na = $repeat_interleave.self_Tensor(x, r, k, output_size = 3)\nreturn (x,)"},
        {"x: <f32[1, 1, 4, 5, 6][120, 120, 30, 6, 1]>, w: <f32[1, 1, 1, 1, 5][5, 5, 5, 5, 1]>",
         "a = $conv3d.padding(x, w, None, [1, 1, 1], 'same', [1, 1, 2147483648])\nreturn (a,)"},
        {vector,
         "a = $new_ones(x, [1152921504606846976, 0])\nb = $neg(a)\nd = "
         "$cumsum(a, 1)\nreturn (a, b, d)"},
        {"x: <f32[5, 3][3, 1]>", "a = $constant_pad_nd(x, [-1, -2, 1, 1099511627776], 2.0)\nreturn (a,)"},
        {"x: <f32[1, 1, 2, 3][6, 6, 3, 1]>",
         "m = $max_pool2d_with_indices(x, [1, 2])\nk = -1 + 1\na = m[k]\nreturn (a,)"},
    };
    for (const auto& [parameters, lines] : graphs) {
      const auto graph = fx(parameters, lines);
      const auto inputs = random_inputs(*graph, 3);
      QVERIFY(inputs);
      const auto expected = interpret(*graph, *inputs);
      QVERIFY2(expected, expected ? "" : expected.error().line().c_str());
      const auto found = run_compiled(*graph, *inputs, default_compiler().make({}));
      QVERIFY2(found, found ? "" : (lines + found.error().line()).c_str());
      QCOMPARE(found->size(), expected->size());
      for (std::size_t i = 0; i < found->size(); ++i) {
        const Tensor &a = *expected->at(i).get<Tensor>(), &b = *found->at(i).get<Tensor>();
        QCOMPARE(b.dtype, a.dtype);
        QVERIFY2(b.sizes == a.sizes, lines);
      }
    }
  }

  void a_graph_may_not_return_a_tuple() {
    const auto made = aot(*fx(vector, "a = $sort(x)\nreturn (a,)"), nullptr, {});
    QVERIFY(!made);
    QCOMPARE(made.error().code, std::string("functionalize.output"));
  }

  /// A list that a graph returns is its items.
  void returned_lists_are_flattened() {
    const auto graph = fx("x: <f64[5, 5][5, 1]>", "h = $histogramdd(x, [1, 1, 1, 1, 1])\na = h[-1]\nreturn (x, a)");
    const auto inputs = random_inputs(*graph, 3);
    QVERIFY(inputs);
    const auto expected = interpret(*graph, *inputs),
               found = run_compiled(*graph, *inputs, default_compiler().make({}));
    QVERIFY2(expected, expected ? "" : expected.error().line().c_str());
    QVERIFY2(found, found ? "" : found.error().line().c_str());
    GraphInputs given;
    given.values = *inputs;
    given.keys = {"input.0"};
    const auto a = collect_outputs(nullptr, given, {}, *expected), b = collect_outputs(nullptr, given, {}, *found);
    QVERIFY(a && b);
    QCOMPARE(a->tensors.size(), 6U);
    for (const auto& [key, tensor] : a->tensors) {
      QVERIFY2(b->find(key), key.c_str());
      QCOMPARE(elements(*b->find(key)), elements(tensor));
    }
  }

  /// Each addition reads the one before it: fused as one kernel, they would nest 8000 deep.
  void long_chains_are_compiled() {
    constexpr int n = 8000;
    std::string lines = "a0: <f32[4][1]> = $add.Tensor(x, y)\n";
    for (int i = 1; i < n; ++i)
      lines += "a" + std::to_string(i) + ": <f32[4][1]> = $add.Tensor(a" + std::to_string(i - 1) + ", y)\n";
    const auto graph = fx("x: <f32[4][1]>, y: <f32[4][1]>", lines + "return (a" + std::to_string(n - 1) + ",)");
    const auto inputs = random_inputs(*graph, 3);
    QVERIFY(inputs);
    const auto compiled = default_compiler().make({})(*graph);
    QVERIFY2(compiled, compiled ? "" : compiled.error().line().c_str());
    const auto found = (*compiled)(*inputs), expected = interpret(*graph, *inputs);
    QVERIFY2(found && expected, found ? "" : found.error().line().c_str());
    QCOMPARE(found->at(0).get<Tensor>()->item_as_double(2), expected->at(0).get<Tensor>()->item_as_double(2));
  }

  /// A tensor without elements takes no time, however large its other sizes are.
  void empty_results_are_made_at_once() {
    const auto graph = fx("x: <f32[0, 4, 2, 2][16, 4, 2, 1]>",
                          "a = $_adaptive_avg_pool2d(x, [1000000000000, 1])\nt = $tril_indices(9000000000000000000, 1, "
                          "-8999999999999999999)\nreturn (a, t)");
    const auto inputs = random_inputs(*graph, 3);
    QVERIFY(inputs);
    const auto found = interpret(*graph, *inputs);
    QVERIFY2(found, found ? "" : found.error().line().c_str());
    QCOMPARE(found->at(1).get<Tensor>()->item_as_double(0), 8999999999999999999.0);
  }
};

QTEST_GUILESS_MAIN(TestRefusals)
#include "test_refusals.moc"

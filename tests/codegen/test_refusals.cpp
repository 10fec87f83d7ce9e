// Graphs that cannot be run: compiled code must refuse them in the words of the interpreter before it touches memory.
// Each of them once crashed, hung or wrote out of bounds.
#include <QtTest>

#include "codegen/backends.h"
#include "core/aot/run_compiled.h"
#include "core/fake/propagate.h"
#include "core/interp/interpreter.h"
#include "core/interp/random_values.h"
#include "tests/support/fx.h"

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
    {"a conversion to float8", vector, "a = $_to_copy(x, dtype = torch.float8_e4m3fn)\nreturn (a,)", "float8_e4m3fn"},
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

  /// Annotations are checked like arguments.
  void an_annotation_is_held_against_its_call() {
    const auto graph = fx(vector, "a: <f32[8][1]> = $neg(x)\nreturn (a,)");
    const auto inputs = random_inputs(*graph, 3);
    QVERIFY(inputs);
    const auto compiled = default_compiler().make({})(*graph);
    QVERIFY(!compiled);
    QVERIFY2(compiled.error().message.find("f32[8]") != std::string::npos, compiled.error().line().c_str());
  }

  void a_graph_may_not_return_a_list() {
    const auto graph = fx(vector, "a = $sort(x)\nreturn (a,)");
    const auto made = aot(*graph, nullptr, {});
    QVERIFY(!made);
    QCOMPARE(made.error().code, std::string("functionalize.output"));
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

// Which results of convolutions have their channels innermost; this must not be visible outside of the graph.
#include "tests/schedule/plan_test.h"

namespace partita {

namespace {

struct Case {
  const char* name;
  std::vector<std::string> statements;
  int changed;      ///< number of calls whose results are in channels-last order
  int images = -1;  ///< number of calls that read such images; -1: any
};

const std::string convolution = " = torch.ops.aten.convolution.default(";
const std::string same_size = ", None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1)";

const std::vector<Case> cases = {
    {"a chain: all but what is returned",
     {"a" + convolution + "x, w" + same_size, "b = torch.ops.aten.relu.default(a)",
      "c" + convolution + "b, w" + same_size, "d = torch.ops.aten.add.Tensor(c, b)",
      "e" + convolution + "d, w" + same_size, "return (e,)"},
     2},
    {"what is returned keeps its strides, and one convolution alone is not worth a transposition",
     {"a" + convolution + "x, w" + same_size, "b = torch.ops.aten.relu.default(a)", "return (b,)"},
     0},
    {"a view of it is returned",
     {"a" + convolution + "x, w" + same_size, "b = torch.ops.aten.transpose.int(a, 2, 3)",
      "c" + convolution + "a, w" + same_size, "return (b, c)"},
     0},
    {"an operator that reads strides",
     {"a" + convolution + "x, w" + same_size, "s = torch.ops.aten.as_strided.default(a, [3, 4], [4, 1], 5)",
      "c" + convolution + "a, w" + same_size, "return (s, c)"},
     0},
    {"what loops make of an image for the next convolution",
     {"a" + convolution + "x, w" + same_size, "i = torch.ops.aten.arange.default(8)",
      "u = torch.ops.aten._unsafe_index.Tensor(a, [None, None, None, i])", "c" + convolution + "u, w" + same_size,
      "d" + convolution + "c, w" + same_size, "m = torch.ops.aten.mean.dim(d, [2, 3])", "return (m,)"},
     3,
     2},
    {"batch norm and pooling between",
     {"a" + convolution + "x, w" + same_size,
      "n = torch.ops.aten._native_batch_norm_legit_no_training.default(a, s, s, s, s, 0.1, 1e-05)", "g = n[0]",
      "p = torch.ops.aten.max_pool2d_with_indices.default(g, [2, 2], [1, 1], [0, 0])", "q = p[0]",
      "c" + convolution + "q, w" + same_size, "m = torch.ops.aten.mean.dim(c, [2, 3])", "return (m,)"},
     2},
    {"batch norm of training, whose statistics are returned",
     {"a" + convolution + "x, w" + same_size,
      "n = torch.ops.aten._native_batch_norm_legit_functional.default(a, s, s, s, s, True, 0.1, 1e-05)", "g = n[0]",
      "e = n[1]", "r = n[4]", "b = torch.ops.aten.relu.default(g)", "c" + convolution + "b, w" + same_size,
      "m = torch.ops.aten.mean.dim(c, [2, 3])", "return (m, e, r)"},
     2},
    {"group norm and elementwise work before a convolution of one dimension",
     {"a = torch.ops.aten.convolution.default(y, k, None, [1], [1], [1], False, [0], 1)",
      "n = torch.ops.aten.native_group_norm.default(a, None, None, 2, 6, 40, 3, 1e-05)", "b = n[0]",
      "c = torch.ops.aten.gelu.default(b)", "d = torch.ops.aten.mul.Tensor(c, 2)",
      "e = torch.ops.aten.convolution.default(d, k, None, [1], [1], [1], False, [0], 1)",
      "m = torch.ops.aten.mean.dim(e, [2])", "return (m,)"},
     2,
     1},
    {"of one dimension, read by rows of channels",
     {"a = torch.ops.aten.convolution.default(y, k, None, [1], [1], [1], False, [0], 1)",
      "b = torch.ops.aten.relu.default(a)", "c = torch.ops.aten.permute.default(b, [0, 2, 1])",
      "d = torch.ops.aten.add.Tensor(c, r)", "m = torch.ops.aten.mean.dim(d, [2])", "return (m,)"},
     1},
    {"flattened for a matrix product: elements keep their order",
     {"a" + convolution + "x, w" + same_size, "b" + convolution + "a, w" + same_size,
      "f = torch.ops.aten.reshape.default(b, [2, 240])", "g = torch.ops.aten.mm.default(f, v)", "return (g,)"},
     1},
};

bool is_channels_last(const schedule::PlanView& v) {
  return v.sizes.size() >= 3 && v.strides[1].is(1) && !v.strides.back().is(1);
}

}  // namespace

class ChannelsLast : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void results_data() {
    QTest::addColumn<int>("row");
    for (std::size_t i = 0; i < cases.size(); ++i) QTest::addRow("%s", cases[i].name) << static_cast<int>(i);
  }
  void results() {
    QFETCH(int, row);
    const Case& c = cases[static_cast<std::size_t>(row)];
    auto graph =
        testing::parse(testing::module("x: 'f32[2, 6, 5, 8]', w: 'f32[6, 6, 3, 3]', s: 'f32[6]', v: 'f32[240, 3]', "
                                       "y: 'f32[2, 6, 40]', k: 'f32[6, 6, 3]', r: 'f32[40, 6]'",
                                       c.statements));
    auto propagated = propagate(*graph);
    QVERIFY2(propagated, propagated ? "" : propagated.error().line().c_str());
    loops::Target target;
    target.routines = {LibraryRoutine::Convolution};
    target.channels_last = {DType::Float32, DType::BFloat16};
    auto plan = schedule::make_plan(*graph, {{}, target});
    QVERIFY2(plan, plan ? "" : plan.error().line().c_str());
    int changed = 0, images = 0;
    for (const auto& step : plan->steps)
      if (auto* call = std::get_if<schedule::ExternCall>(&step)) {
        for (const schedule::PlanView& v : call->results) changed += is_channels_last(v);
        if (auto* image = std::get_if<schedule::PlanView>(&call->args[0])) images += is_channels_last(*image);
      }
    QVERIFY2(changed == c.changed, print(*plan).c_str());
    QVERIFY2(c.images < 0 || images == c.images, print(*plan).c_str());
    auto inputs = testing::random_inputs(*graph);
    if (auto* variance = inputs[2].get<Tensor>())
      for (std::int64_t i = 0; i < variance->numel(); ++i)
        variance->as<float>()[i] = std::abs(variance->as<float>()[i]) + 0.5F;
    auto expected = interpret(*graph, inputs);
    QVERIFY2(expected, expected ? "" : expected.error().line().c_str());
    auto found = schedule::execute(*plan, graph->attributes, inputs);
    QVERIFY2(found, found ? "" : found.error().line().c_str());
    for (std::size_t i = 0; i < expected->size(); ++i) {
      QVERIFY2(testing::difference((*found)[i], (*expected)[i]) < 1e-4, print(*plan).c_str());
      QVERIFY((*found)[i].get<Tensor>()->strides == (*expected)[i].get<Tensor>()->strides);
    }
  }
};

}  // namespace partita

QTEST_MAIN(partita::ChannelsLast)
#include "test_channels_last.moc"

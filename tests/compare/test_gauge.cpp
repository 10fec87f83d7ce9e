// Results of decompositions, compared up to what LAPACK may choose (signs, phases, bases).
#include <QTest>
#include <cmath>

#include "core/compare/gauge.h"
#include "core/load/fx_text.h"

using namespace partita;

namespace {

Tensor matrix(Sizes sizes, const std::vector<double>& values) {
  Tensor t = *Tensor::empty(DType::Float64, std::move(sizes));
  std::copy(values.begin(), values.end(), t.as<double>());
  return t;
}

double distance(const Tensor& a, const Tensor& b) {
  double most = 0;
  for (std::int64_t i = 0; i < a.numel(); ++i)
    most = std::max(most, std::abs(a.item_as_double(i) - b.item_as_double(i)));
  return most;
}

std::shared_ptr<Graph> svd_graph() {
  auto graph = parse_fx_text(R"(class f(torch.nn.Module):
    def forward(self, a: "f64[2, 2][2, 1]cpu"):
        svd = torch.ops.aten._linalg_svd.default(a);  a = None
        u: "f64[2, 2][1, 2]cpu" = svd[0]
        s: "f64[2][1]cpu" = svd[1]
        vh: "f64[2, 2][1, 2]cpu" = svd[2];  svd = None
        v: "f64[2, 2][2, 1]cpu" = torch.ops.aten.transpose.int(vh, -2, -1);  vh = None
        return (u, s, v)
)");
  return graph ? std::shared_ptr<Graph>(std::move(*graph)) : nullptr;
}

const double c = std::cos(0.3), s = std::sin(0.3);
const Tensor identity = matrix({2, 2}, {1, 0, 0, 1}), rotated = matrix({2, 2}, {c, -s, s, c});
const Tensor flipped = matrix({2, 2}, {-1, 0, 0, 1});

}  // namespace

class TestGauge : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void signsMayDiffer() {
    auto graph = svd_graph();
    QVERIFY(graph);
    Tensor values = matrix({2}, {3, 1});
    Gauge gauge(*graph, {identity, values, identity}, {flipped, values, flipped});
    QVERIFY(!gauge.fixed());
    QVERIFY(distance(gauge.aligned(0, flipped), identity) < 1e-14);
    QVERIFY(distance(gauge.aligned(2, flipped), identity) < 1e-14);
    QVERIFY(distance(gauge.tangent(0, identity), flipped) < 1e-14);
    QVERIFY(distance(gauge.aligned(1, values), values) == 0);
  }

  void bothSidesMustFlip() {
    auto graph = svd_graph();
    Tensor values = matrix({2}, {3, 1});
    Gauge gauge(*graph, {identity, values, identity}, {flipped, values, identity});
    QVERIFY(distance(gauge.aligned(2, identity), identity) > 1);
  }

  void vectorsOfEqualValuesMayTurn() {
    auto graph = svd_graph();
    Tensor equal = matrix({2}, {2, 2}), apart = matrix({2}, {3, 1});
    Gauge free(*graph, {identity, equal, identity}, {rotated, equal, rotated});
    QVERIFY(distance(free.aligned(0, rotated), identity) < 1e-14);
    QVERIFY(distance(free.aligned(2, rotated), identity) < 1e-14);
    Gauge bound(*graph, {identity, apart, identity}, {rotated, apart, rotated});
    QVERIFY(distance(bound.aligned(0, rotated), identity) > 0.1);
  }

  void nullVectorsAreNotTied() {
    auto graph = svd_graph();
    Tensor values = matrix({2}, {0, 0});
    Gauge gauge(*graph, {identity, values, identity}, {rotated, values, flipped});
    QVERIFY(distance(gauge.aligned(0, rotated), identity) < 1e-14);
    QVERIFY(distance(gauge.aligned(2, flipped), identity) < 1e-14);
  }

  void lengthsAreNoGauge() {
    auto graph = svd_graph();
    Tensor values = matrix({2}, {3, 1}), twice = matrix({2, 2}, {2, 0, 0, 2});
    Gauge gauge(*graph, {identity, values, identity}, {twice, values, identity});
    QVERIFY(distance(gauge.aligned(0, twice), identity) > 0.5);
  }
};

QTEST_APPLESS_MAIN(TestGauge)
#include "test_gauge.moc"

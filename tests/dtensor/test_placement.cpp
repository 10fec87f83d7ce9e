// Annotations of DTensors, shards of sizes, and groups of mesh dimensions.
#include <QtTest>

#include "core/dtensor/enter.h"
#include "core/dtensor/placement.h"

using namespace partita;

namespace {

std::string read_again(const char* annotation) {
  const auto meta = dtensor_meta(OpaqueMeta{annotation});
  if (!meta) return meta.error().code;
  return *meta ? text(**meta) : "none";
}

}  // namespace

class TestPlacement : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void annotations_data() {
    QTest::addColumn<QString>("annotation");
    QTest::addColumn<QString>("read");
    const auto row = [](const char* name, const char* annotation, const char* read) {
      QTest::newRow(name) << annotation << read;
    };
    const char* one = "DTensor(f32[4, 128][128, 1]cpu, S(1))";
    row("shard", one, one);
    const char* two = "DTensor(bf16[4][1]cuda:0, RP(sum))";
    row("two mesh dimensions", two, two);
    row("order of shards", "DTensor(f32[16, 6][6, 1]cpu, S(0)[0]S(0)[1])", "DTensor(f32[16, 6][6, 1]cpu, S(0)S(0))");
    row("another order", "DTensor(f32[16, 6][6, 1]cpu, S(0)[1]S(0)[0])", "dtensor.placement");
    row("scalar", "DTensor(f32[][]cpu, P(avg))", "DTensor(f32[][]cpu, P(avg))");
    row("embedding", "DTensor(f32[5, 8][8, 1]cpu, MaskP(sum, torch.Size([12, 8]), 0))",
        "DTensor(f32[5, 8][8, 1]cpu, P(masked rows))");
    row("pieces", "DTensor(f32[8, 3][3, 1]cpu, _S(0, 2))", "DTensor(f32[8, 3][3, 1]cpu, _S(0, 2))");
    row("no such dimension", "DTensor(f32[4][1]cpu, S(1))", "dtensor.placement");
    row("unknown placement", "DTensor(f32[4][1]cpu, _NormP(2))", "dtensor.placement");
    row("symbolic", "DTensor(f32[s0, 4][4, 1]cpu, S(0))", "dtensor.dynamic");
    row("another subclass", "TwoTensor(f32[3][1]cpu)", "none");
  }
  void annotations() {
    QFETCH(QString, annotation);
    QFETCH(QString, read);
    QCOMPARE(QString::fromStdString(read_again(annotation.toUtf8().constData())), read);
  }

  /// As torch.chunk cuts: the last ranks may have less, or nothing.
  void shards() {
    const auto sizes = [](std::int64_t size, std::int64_t parts) {
      Sizes out;
      for (std::int64_t i = 0; i < parts; ++i) out.push_back(part_of(size, parts, i).size);
      return out;
    };
    QCOMPARE(sizes(8, 4), (Sizes{2, 2, 2, 2}));
    QCOMPARE(sizes(5, 4), (Sizes{2, 2, 1, 0}));
    QCOMPARE(part_of(5, 4, 3).begin, 5);
  }

  void local_metas() {
    const Mesh mesh{{2, 2}, 3};
    TensorMeta whole = TensorMeta::contiguous(DType::Float32, {6, 8});
    whole.strides = {1, 6};  // a transposed one
    const TensorMeta local = local_meta(whole, {Placement::shard(0), Placement::shard(1)}, mesh);
    QCOMPARE(annotation(local), std::string("f32[3, 4][1, 3]cpu"));
    // Nested shards: 5 is 3 + 2, and 2 is 1 + 1.
    const TensorMeta nested =
        local_meta(TensorMeta::contiguous(DType::Float32, {5}), {Placement::shard(0), Placement::shard(0)}, mesh);
    QCOMPARE(annotation(nested), std::string("f32[1][1]cpu"));
  }

  void groups() {
    const Mesh mesh{{2, 3}, 4};
    QCOMPARE(mesh.coordinate(0), 1);
    QCOMPARE(mesh.coordinate(1), 1);
    QCOMPARE(mesh.group(0), std::string("[1, 4]"));
    QCOMPARE(mesh.group(1), std::string("[3, 4, 5]"));
    QCOMPARE((Mesh{{4}, 2}.group(0)), std::string("0"));
    const auto again = parse_mesh(text(mesh));
    QVERIFY(again && *again == mesh);
    // What is larger than any job would take forever to weigh.
    for (const char* bad : {"", "2", "2@", "0@0", "2,@1", "2@1x", "1,1,1,1,1,1,1,1,1@0", "1024,1025@0"})
      QVERIFY2(!parse_mesh(bad), bad);
  }
};

QTEST_APPLESS_MAIN(TestPlacement)
#include "test_placement.moc"

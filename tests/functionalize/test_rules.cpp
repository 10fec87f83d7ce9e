// Each stage refuses graphs that break its rules. Graphs of the corpus that keep them are in tests/grad and
// tests/partition.
#include <QtTest>

#include "core/functionalize/stage_rules.h"
#include "tests/support/fx.h"

using namespace partita;
using namespace partita::testing;

namespace {

struct Row {
  const char* name;
  Stage stage;
  const char* parameters;
  const char* lines;
  const char* says;  ///< "": the stage accepts the graph
};

const char* const x = "x: <f32[4][1]>";
const char* const joint = "primals_1: <f32[4][1]>, primals_2: <f32[4][1]>, tangents_1: <f32[4][1]>";

const Row rows[] = {
    {"ATen: sound", Stage::Aten, x, "a: <f32[4][1]> = $neg(x)\nreturn (a,)", ""},
    {"ATen: a torch-level call", Stage::Aten, x, "a: <f32[4][1]> = torch.relu(x)\nreturn (a,)", "is no ATen operator"},
    {"ATen: a method", Stage::Aten, x, "a: <f32[4][1]> = x.relu()\nreturn (a,)", "is no ATen operator"},
    {"ATen: arithmetic on tensors", Stage::Aten, x, "a: <f32[4][1]> = x + 1\nreturn (a,)", "is no ATen operator"},
    {"ATen: an operator without its overload", Stage::Aten, x, "a: <f32[4][1]> = torch.ops.aten.relu(x)\nreturn (a,)",
     "is no ATen operator"},
    {"ATen: an operator that is not known is refused later", Stage::Aten, x,
     "a: <f32[4][1]> = torch.ops.aten.no_such_op.default(x)\nreturn (a,)", ""},
    {"ATen: an overload that is not known is refused later", Stage::Aten, x,
     "a: <f32[4][1]> = torch.ops.aten.relu.no_such_overload(x)\nreturn (a,)", ""},
    {"ATen: an operator of another library", Stage::Aten, x,
     "a: <f32[4][1]> = torch.ops.mine.op.default(x)\nreturn (a,)", ""},
    {"ATen: no meta", Stage::Aten, x, "a = $neg(x)\nreturn (a,)", "has no meta"},
    {"ATen: a write is allowed", Stage::Aten, x, "a: <f32[4][1]> = $neg_(x)\nreturn (a,)", ""},
    {"functional: sound", Stage::Functional, x, "a: <f32[4][1]> = $neg(x)\nc: <f32[4][1]> = $copy_(x, a)\nreturn (a,)",
     ""},
    {"functional: a write in place", Stage::Functional, x, "a: <f32[4][1]> = $neg_(x)\nreturn (a,)",
     "writes to its argument"},
    {"functional: a copy into a value", Stage::Functional, x,
     "a: <f32[4][1]> = $neg(x)\nc: <f32[4][1]> = $copy_(a, x)\nreturn (c,)", "writes to its argument"},
    {"functional: an input that is read after it was written", Stage::Functional, x,
     "a: <f32[4][1]> = $neg(x)\nc: <f32[4][1]> = $copy_(x, a)\nd: <f32[4][1]> = $neg(x)\nreturn (d,)",
     "writes to its argument"},
    {"joint: sound", Stage::Joint, joint, "a: <f32[4][1]> = $mul.Tensor(tangents_1, primals_2)\nreturn (a, a, None)",
     ""},
    {"joint: another name", Stage::Joint, x, "a: <f32[4][1]> = $neg(x)\nreturn (a,)",
     "is named primals_N or tangents_N"},
    {"joint: a primal after a tangent", Stage::Joint, "tangents_1: <f32[4][1]>, primals_1: <f32[4][1]>",
     "a: <f32[4][1]> = $neg(primals_1)\nreturn (a, a)", "a primal after a tangent"},
    {"joint: no gradient", Stage::Joint, joint, "a: <f32[4][1]> = $neg(primals_1)\nreturn (a,)",
     "no gradient or None for each primal"},
    {"joint: a gradient of another dtype", Stage::Joint, joint,
     "a: <f64[4][1]> = $_to_copy(tangents_1, dtype = torch.float64)\nreturn (a, a, None)", "another dtype or rank"},
    {"joint: a gradient of another rank", Stage::Joint, joint, "a: <f32[][]> = $sum(tangents_1)\nreturn (a, None, a)",
     "another dtype or rank"},
};

}  // namespace

class TestRules : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void stages_refuse_data() {
    QTest::addColumn<int>("index");
    for (int i = 0; i < static_cast<int>(std::size(rows)); ++i) QTest::newRow(rows[i].name) << i;
  }
  void stages_refuse() {
    QFETCH(int, index);
    const Row& row = rows[index];
    const auto graph = fx(row.parameters, row.lines);
    const std::vector<Diagnostic> found = verify(*graph, row.stage);
    if (!*row.says) {
      QVERIFY2(found.empty(), found.empty() ? "" : found.front().line().c_str());
      return;
    }
    QVERIFY(!found.empty());
    QVERIFY2(found.front().message.find(row.says) != std::string::npos, found.front().line().c_str());
    QCOMPARE(found.front().fault, Fault::Internal);
  }
};

QTEST_APPLESS_MAIN(TestRules)
#include "test_rules.moc"

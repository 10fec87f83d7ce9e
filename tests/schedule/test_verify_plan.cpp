// A plan that is sound, and what verify() says of it when one thing in it is broken.
#include <functional>

#include "core/schedule/verify_plan.h"
#include "tests/schedule/plan_test.h"

using namespace partita;
using namespace partita::schedule;
using partita::testing::module;
using partita::testing::parse;

namespace {

struct Row {
  const char* name;
  std::function<void(Plan&)> damage;
  const char* says;
};

std::vector<std::size_t> temporaries(const Plan& plan) {
  std::vector<std::size_t> out;
  for (std::size_t b = 0; b < plan.buffers.size(); ++b)
    if (plan.buffers[b].kind == PlanBuffer::Kind::Temporary) out.push_back(b);
  return out;
}

const Row rows[] = {
    {"a step is missing", [](Plan& p) { p.steps.erase(p.steps.begin()); }, "holds nothing yet"},
    {"steps in another order", [](Plan& p) { std::swap(p.steps.front(), p.steps.back()); }, "holds nothing yet"},
    {"no step writes the output", [](Plan& p) { p.steps.pop_back(); }, "the output reads buffer"},
    {"a buffer is too small", [](Plan& p) { p.buffers[temporaries(p).front()].elements = 3; }, "has a view of 64"},
    {"a temporary outside of the arena", [](Plan& p) { p.buffers[temporaries(p).front()].offset = p.arena_bytes; },
     "ends outside of the arena"},
    {"two values in one place",
     [](Plan& p) { p.buffers[temporaries(p)[1]].offset = p.buffers[temporaries(p)[0]].offset; }, "holds nothing yet"},
    {"an output with other strides", [](Plan& p) { std::get<PlanView>(p.outputs[0]).strides = {1, 8}; },
     "output 0 is f32[8, 8][1, 8]cpu, but its meta promises f32[8, 8][8, 1]cpu"},
    {"an output of another dtype", [](Plan& p) { std::get<PlanView>(p.outputs[0]).dtype = DType::Int32; },
     "output 0 is i32[8, 8][8, 1]cpu, but its meta promises f32"},
    {"an output that is no tensor", [](Plan& p) { p.outputs[0] = Arg(std::int64_t{7}); }, "output 0 is no tensor"},
    {"an output beyond its buffer", [](Plan& p) { std::get<PlanView>(p.outputs[0]).offset = 1; }, "has a view of 65"},
};

}  // namespace

class TestVerifyPlan : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void refuses_data() {
    QTest::addColumn<int>("index");
    for (int i = 0; i < static_cast<int>(std::size(rows)); ++i) QTest::newRow(rows[i].name) << i;
  }
  void refuses() {
    QFETCH(int, index);
    const auto graph = parse(module(R"(x: "f32[8, 8][8, 1]cpu")",
                                    {R"(a: "f32[8, 8][8, 1]cpu" = torch.ops.aten.mm.default(x, x))",
                                     R"(b: "f32[8, 8][8, 1]cpu" = torch.ops.aten.mm.default(a, x))",
                                     R"(c: "f32[8, 8][8, 1]cpu" = torch.ops.aten.mm.default(a, b))", "return (c,)"}));
    Result<Plan> plan = make_plan(*graph);
    QVERIFY2(plan, plan ? "" : plan.error().line().c_str());
    const std::vector<std::string> sound = verify(*plan);
    QVERIFY2(sound.empty(), sound.empty() ? "" : sound.front().c_str());
    QCOMPARE(temporaries(*plan).size(), std::size_t{2});
    rows[index].damage(*plan);
    const std::vector<std::string> found = verify(*plan);
    QVERIFY(!found.empty());
    QVERIFY2(found.front().find(rows[index].says) != std::string::npos, found.front().c_str());
  }

  void sees_an_input_read_after_it_was_overwritten() {
    const auto graph = parse(module(R"(x: "f32[8, 8][8, 1]cpu")",
                                    {R"(a: "f32[8, 8][8, 1]cpu" = torch.ops.aten.mm.default(x, x))",
                                     R"(c: "f32[8, 8][8, 1]cpu" = torch.ops.aten.copy_.default(x, a))",
                                     R"(b: "f32[8, 8][8, 1]cpu" = torch.ops.aten.mm.default(a, a))", "return (b,)"}));
    Result<Plan> plan = make_plan(*graph);
    QVERIFY2(plan, plan ? "" : plan.error().line().c_str());
    QVERIFY(verify(*plan).empty());
    plan->steps.push_back(plan->steps.front());  // mm(x, x) once more
    const std::vector<std::string> found = verify(*plan);
    QVERIFY(!found.empty());
    QVERIFY2(found.front().find("overwritten before") != std::string::npos, found.front().c_str());
  }
};

QTEST_GUILESS_MAIN(TestVerifyPlan)
#include "test_verify_plan.moc"

// What inductor's wrapper holds, read from its code.
#include <QtTest>

#include "core/load/wrapper_memory.h"
#include "tests/support/fx.h"
#include "tests/support/result.h"

using namespace partita;

namespace {

std::unique_ptr<Graph> post_grad() {
  return testing::fx(R"x(primals_1: "f32[4, 8]", primals_2: "f32[8, 8]", s7: "Sym(s7)")x",
                     R"(mm: "f32[4, 8]" = $mm(primals_1, primals_2)
sin: "f32[4, 8]" = $sin(mm)
max_1 = $max.dim(sin, 1)
getitem: "f32[4]" = max_1[0]
getitem_1: "i64[4]" = max_1[1]
view: "f32[32]" = $view(sin, [32])
return (getitem, view))");
}

InductorCode code_of(const std::string& body) {
  InductorCode code{.text = "def call(args):\n    primals_1, primals_2, s7 = args\n    args.clear()\n" + body};
  code.kernels = read_output_code(code.text);
  return code;
}

/// "buf0 128 4-7 returned": each storage, its bytes, from line to line.
std::string told(const WrapperMemory& memory) {
  std::string out;
  for (const WrapperStorage& s : memory.storages)
    out += fmt::format("{} {:.0f} {}-{}{}\n", s.name, s.bytes, s.made, s.freed, s.returned ? " returned" : "");
  return out;
}

}  // namespace

class TestWrapperMemory : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void storages_are_held_from_line_to_line_data() {
    QTest::addColumn<QString>("body");
    QTest::addColumn<QString>("expected");
    const QString inputs = "primals_1 128 2-", weights = "primals_2 256 2-";
    QTest::newRow("allocated, let go of, returned")
        << "    buf0 = empty_strided_cpu((4, 8), (8, 1), torch.float32)\n"
           "    extern_kernels.mm(primals_1, primals_2, out=buf0)\n"
           "    del primals_1\n"
           "    buf1 = empty_strided_cpu((4, 8), (8, 1), torch.float64)\n"
           "    del buf0\n"
           "    return (buf1, )\n"
        << inputs + "6\n" + weights + "9\nbuf0 128 4-8\nbuf1 256 7-9 returned\n";
    QTest::newRow("reused memory is one storage")
        << "    buf0 = empty_strided_cpu((4, 8), (8, 1), torch.float32)\n"
           "    buf1 = reinterpret_tensor(buf0, (32, ), (1, ), 0); del buf0  # reuse\n"
           "    buf2 = buf1; del buf1  # reuse\n"
           "    return (reinterpret_tensor(buf2, (8, 4), (4, 1), 0), primals_1, )\n"
        << inputs + "7 returned\n" + weights + "7\nbuf0 128 4-7 returned\n";
    QTest::newRow("the results of an operator, by the graph")
        << "    buf0 = empty_strided_cpu((4, 8), (8, 1), torch.float32)\n"
           "    buf1 = torch.ops.aten.max.dim(buf0, 1)\n"
           "    del buf0\n"
           "    buf2 = buf1[0]\n"
           "    del buf1\n"
           "    return (buf2, )\n"
        << inputs + "9\n" + weights + "9\nbuf0 128 4-6\nbuf1 16 5-9 returned\nbuf1 32 5-8\n";
    QTest::newRow("a view by an operator has no memory of its own")
        << "    buf0 = empty_strided_cpu((4, 8), (8, 1), torch.float32)\n"
           "    buf1 = torch.ops.aten.view.default(buf0, [32])\n"
           "    del buf0\n"
           "    return (buf1, )\n"
        << inputs + "7\n" + weights + "7\nbuf0 128 4-7 returned\n";
    QTest::newRow("gaps between rows count, empty tensors do not")
        << "    buf0 = empty_strided_cuda((4, 1), (8, 1), torch.float32)\n"
           "    buf1 = empty_strided_cuda((0, 8), (8, 1), torch.float32)\n"
           "    return (buf0, )\n"
        << inputs + "6\n" + weights + "6\nbuf0 100 4-6 returned\nbuf1 0 5-6\n";
  }
  void storages_are_held_from_line_to_line() {
    QFETCH(QString, body);
    QFETCH(QString, expected);
    const auto memory = read_wrapper_memory(code_of(body.toStdString()), *post_grad());
    QVERIFY2(memory, memory ? "" : memory.error().line().c_str());
    QCOMPARE(QString::fromStdString(told(*memory)), expected);
    QVERIFY(memory->unknown.empty());
    QCOMPARE(memory->inputs.size(), 3u);
    QCOMPARE(memory->inputs[2], -1);
  }

  void what_is_not_known_is_named() {
    const auto memory = read_wrapper_memory(code_of("    buf0 = torch.ops.mylib.f.default(primals_1)\n"
                                                    "    buf1 = empty_strided_cpu((s99, ), (1, ), torch.float32)\n"
                                                    "    return (buf0, )\n"),
                                            *post_grad());
    QVERIFY(memory);
    QCOMPARE(memory->unknown.size(), 2u);
    QCOMPARE(memory->unknown[0], "torch.ops.mylib.f.default");
  }

  void other_wrappers_are_refused() {
    InductorCode code{.text = "extern \"C\" void kernel() {}\n"};
    QVERIFY(!read_wrapper_memory(code, *post_grad()));
    code.text = "def f(args):\n    a, = args\n    return (a, )\ndef call(args):\n    b, = args\n    return (b, )\n";
    const auto several = read_wrapper_memory(code, *post_grad());
    QVERIFY(!several);
    QVERIFY(several.error().message.find("several functions") != std::string::npos);
    QVERIFY(!read_wrapper_memory(code_of("    buf0 = primals_1\n"), *post_grad()));
  }
};

QTEST_APPLESS_MAIN(TestWrapperMemory)
#include "test_wrapper_memory.moc"

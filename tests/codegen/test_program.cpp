// Programs as bytes: what is read back runs as what was written, and damage is found.
#include <QtTest>

#include "codegen/cpu/cpu_machine.h"
#include "codegen/cpu/cpu_target.h"
#include "codegen/host/elf_link.h"
#include "codegen/program/executor.h"
#include "core/aot/pipeline.h"
#include "core/base/archive.h"
#include "core/interp/interpreter.h"
#include "core/interp/random_values.h"
#include "core/ir/verify.h"
#include "core/schedule/make_plan.h"
#include "core/schedule/specialise.h"
#include "tests/support/close.h"
#include "tests/support/fx.h"
#include "tests/support/values.h"

using namespace partita;
using namespace partita::codegen;
using namespace partita::testing;

namespace {

using SymbolValues = std::map<std::string, std::int64_t>;

struct Row {
  const char* name;
  const char* parameters;
  const char* lines;
  SymbolValues sizes, others;  ///< the plan's, and others that it is for; empty: numbers only
  const char* children = "";   ///< sub graphs
};

const Row rows[] = {
    {"kernels", "x: <f32[40, 8][8, 1]>", "y = $sin(x)\ns = $sum.dim_IntList(y, [0])\nreturn (y, s, 3)", {}, {}},
    {"a product and what follows it",
     "x: <f32[6, 8][8, 1]>, w: <f32[8, 5][5, 1]>, b: <f32[5][1]>",
     "y = $addmm(b, x, w)\nz = $relu(y)\nreturn (z,)",
     {},
     {}},
    {"evaluations",
     "x: <f32[6, 8][8, 1]>",
     "s = $sort.default(x, 1, True)\na = s[0]\nb = s[1]\nc = $cat([a, x], 1)\nreturn (a, b, c)",
     {},
     {}},
    {"an index",
     "x: <f32[6, 8][8, 1]>, i: <i64[3][1]>",
     "j = $remainder.Scalar(i, 6)\ny = $index.Tensor(x, [j])\nreturn (y,)",
     {},
     {}},
    {"symbols",
     "s0: 'Sym(s0)', s1: 'Sym(s1)', x: <f32[s0, s1][s1, 1]>",
     "k = s0 * s1\nq = s0 / s1\na = $_softmax(x, 1, False)\nb = $mul.Tensor(a, q)\nf = $view(b, [k])\nreturn (f, k)",
     {{"s0", 12}, {"s1", 4}},
     {{"s0", 5}, {"s1", 33}}},
    {"a symbol as a literal",
     "s0: 'Sym(s0)', x: <f32[s0, 8][8, 1]>",
     "k = s0 - 1\ny = $topk(x, k, 0)\na = y[0]\nreturn (a,)",
     {{"s0", 7}},
     {{"s0", 4}}},
    {"sub graphs",
     "s0: 'Sym(s0)', p: <b8[][]>, x: <f32[s0, 4][4, 1]>",
     "t = self.true_graph_0\nf = self.false_graph_0\nc = torch.ops.higher_order.cond(p, t, f, (x, s0))\na: <f32[s0, "
     "4][4, 1]> = c[0]\nb = $neg(a)\nreturn (a, b)",
     {{"s0", 7}},
     {{"s0", 4}},
     "    class true_graph_0(torch.nn.Module):\n        def forward(self, x: <f32[s0, 4][4, 1]>, s0: 'Sym(s0)'):\n     "
     " "
     "      a = $sum.dim_IntList(x, [1], True)\n            b = $mul.Tensor(x, a)\n            return (b,)\n"
     "    class false_graph_0(torch.nn.Module):\n        def forward(self, x: <f32[s0, 4][4, 1]>, s0: 'Sym(s0)'):\n    "
     " "
     "       a = $add.Tensor(x, s0)\n            return (a,)\n"},
};

std::unique_ptr<Graph> graph_of(const Row& row) {
  auto graph = fx(row.parameters, row.lines, row.children);
  if (!graph->shapes) graph->shapes = std::make_shared<ShapeEnv>();
  for (const auto& [symbol, value] : row.sizes) graph->shapes->set_hint(symbol, value);
  return graph;
}

Result<CompiledProgram> compiled(const Graph& given, const SymbolValues& sizes) {
  const auto graph = given.clone();
  PassContext context;
  if (auto passed = post_grad_passes(*graph, context); !passed) return passed.error();
  TRY(schedule::Plan plan,
      schedule::make_plan(*graph, {.sizes = sizes, .target = host_target(1), .symbolic = !sizes.empty()}));
  plan.symbols = sizes;
  return compile_program(*cpu_machine(), plan);
}

}  // namespace

class TestProgram : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void there_and_back_data() {
    QTest::addColumn<int>("index");
    for (int i = 0; i < static_cast<int>(std::size(rows)); ++i) QTest::newRow(rows[i].name) << i;
  }
  void there_and_back() {
    QFETCH(int, index);
    const Row& row = rows[index];
    const auto graph = graph_of(row);
    const auto made = compiled(*graph, row.sizes);
    QVERIFY2(bool(made), made ? "" : made.error().line().c_str());
    const auto bytes = program_bytes(*made->program);
    QVERIFY2(bool(bytes), bytes ? "" : bytes.error().line().c_str());
    auto read = read_program(*bytes);
    QVERIFY2(bool(read), read ? "" : read.error().line().c_str());
    QCOMPARE(*program_bytes(*read), *bytes);
    const auto program = std::make_shared<const Program>(*std::move(read));
    for (const SymbolValues& sizes : {row.sizes, row.others}) {
      const auto special = schedule::specialise(*graph, sizes);
      QVERIFY(bool(special));
      const auto inputs = random_inputs(**special, 3);
      const auto expected = interpret(*graph, *inputs);
      const auto executable = load_program(program, sizes, made->code, {}, {.prepare = cpu_machine()->prepare()});
      QVERIFY2(bool(executable), executable ? "" : executable.error().line().c_str());
      const auto found = (*executable)->run(*inputs);
      QVERIFY2(bool(found), found ? "" : found.error().line().c_str());
      QCOMPARE(found->size(), expected->size());
      for (std::size_t i = 0; i < found->size(); ++i) QCOMPARE(wrong((*expected)[i], (*found)[i], {}), std::string());
    }
  }

  void damage_is_found() {
    for (const Row& row : rows) {
      const auto made = compiled(*graph_of(row), row.sizes);
      QVERIFY2(bool(made), made ? "" : made.error().line().c_str());
      const std::string bytes = *program_bytes(*made->program);
      for (std::size_t n = 0; n < bytes.size(); ++n) {
        const auto cut = read_program(std::string_view(bytes).substr(0, n));
        QVERIFY(!cut);
        QCOMPARE(cut.error().code, std::string("codegen.program"));
        // Another byte may make another program, which is read or refused.
        std::string other = bytes;
        other[n] = static_cast<char>(other[n] ^ (1 + n * 37 % 255));
        (void)read_program(other);
      }
      QVERIFY(!read_program(bytes + "x"));
    }
  }

  /// Of calls that run sub graphs, and of calls whose sizes values decide.
  void graphs_there_and_back() {
    const auto graph = fx("s0: 'Sym(s0)', p: <b8[][]>, x: <f32[s0, 4][4, 1]>",
                          "t = self.true_graph_0\nf = self.false_graph_0\nc = torch.ops.higher_order.cond(p, t, f, "
                          "(x, s0))\na: <f32[s0, 4][4, 1]> = c[0]\nb = $view(a, [s0, -1])\nreturn (b, None, 2.5)");
    graph->children.emplace_back("true_graph_0", fx("x: <f32[s0, 4][4, 1]>, s0: 'Sym(s0)'",
                                                    "a = $sum.dim_IntList(x, [1], True)\nb = $mul.Tensor(x, "
                                                    "a)\nreturn (b,)"));
    graph->children.emplace_back("false_graph_0", fx("x: <f32[s0, 4][4, 1]>, s0: 'Sym(s0)'",
                                                     "c: <f32[4][1]> = self.c\na = $add.Tensor(x, c)\nreturn (a,)"));
    graph->children[1].second->attributes["c"] = f32({4}, {1, 2, 3, 4});
    const auto bytes = graph_bytes(*graph);
    QVERIFY2(bool(bytes), bytes ? "" : bytes.error().line().c_str());
    const auto read = read_graph(*bytes);
    QVERIFY2(bool(read), read ? "" : read.error().line().c_str());
    QCOMPARE(print(**read), print(*graph));
    QCOMPARE(*graph_bytes(**read), *bytes);
    for (const double p : {0.0, 1.0}) {
      const std::vector<Value> inputs{std::int64_t{2}, *Tensor::scalar(DType::Bool, p),
                                      f32({2, 4}, {1, 2, 3, 4, 5, 6, 7, 8})};
      const auto expected = interpret(*graph, inputs), found = interpret(**read, inputs);
      QVERIFY2(expected && found, found ? "" : found.error().line().c_str());
      QCOMPARE(wrong((*expected)[0], (*found)[0], {}), std::string());
    }
    for (std::size_t n = 0; n < bytes->size(); ++n) {
      const auto cut = read_graph(std::string_view(*bytes).substr(0, n));
      QVERIFY(!cut);
      QCOMPARE(cut.error().code, std::string("codegen.program"));
      std::string other = *bytes;
      other[n] = static_cast<char>(other[n] ^ (1 + n * 37 % 255));
      if (const auto another = read_graph(other)) QVERIFY(verify(**another).empty());
    }
  }

  void equal_kernels_are_compiled_once() {
    const auto graph = fx("a: <f32[64][1]>, b: <f32[64][1]>, w: <f32[64, 64][64, 1]>",
                          "s = $sin(a)\nu = $mv(w, s)\nt = $sin(b)\nv = $mv(w, t)\nreturn (u, v, s, t)");
    const auto plan = schedule::make_plan(*graph, {.target = host_target(1), .fuse = false});
    QVERIFY(bool(plan));
    const auto source = make_program(*cpu_machine(), *plan);
    QVERIFY(bool(source));
    QVERIFY(source->kernels->kernels().size() < source->program.kernels.size());
  }

  void our_own_objects_need_no_llvm_to_be_linked() {
    const auto made = compiled(*graph_of(rows[0]), {});
    const std::string& object = made->objects.at(0);
    const auto code = link_elf(made->objects);
#ifdef __x86_64__
    QVERIFY(code);
    for (const ProgramKernel& k : made->program->kernels)
      for (const Phase& phase : k.entry.phases) QVERIFY(bool(code->find(phase.symbol)));
    QCOMPARE(code->find("nothing").error().code, std::string("codegen.link"));
#endif
    // Damage is refused or makes other code, which is not run; nothing is read or written beyond the object.
    for (std::size_t n = 0; n < object.size(); ++n) {
      (void)link_elf(std::vector{object.substr(0, n)});
      for (const int mask : {1, 0x80, 0xff}) {
        std::string other = object;
        other[n] = static_cast<char>(other[n] ^ mask);
        (void)link_elf(std::vector{other});
      }
    }
  }

  void archives_refuse_impossible_sizes() {
    ArchiveWriter writer;
    writer.number(1'000'000);  // items, of which there are none
    ArchiveReader reader(writer.bytes);
    std::vector<std::string> list;
    reader(list);
    QVERIFY(!reader.complete() && list.empty());
  }
};

QTEST_GUILESS_MAIN(TestProgram)
#include "test_program.moc"
